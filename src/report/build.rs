//! From records to a report.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::NoteCode;
use crate::compare::advice::Verdict;
use crate::metric::CellSummary;
use crate::metric::answers::{ControlCells, was_asked};
use crate::metric::cost::SimulatedCost;
use crate::metric::fidelity::ReaderCeiling;
use crate::metric::live::LiveTotals;
use crate::record::words::{ModelKind, Worth};
use crate::record::{Arm, CellKey, CellRecord, End, Manifest};
use crate::report::strategy_summary::{Anchors, StrategySummary};
use crate::report::{
    Banner, BannerLevel, Cell, Controls, Coverage, Report, Row, RowMark, Run, display, escape,
    evidence, sections, sections::answers,
};

use BannerLevel::{Invalid, Note, Warning};

/// The reference's name in records.
pub(super) const FULL: &str = "full";
/// The floor's name in records.
pub(super) const EMPTY: &str = "empty";

/// Everything that sections are made of.
pub(super) struct Material<'a> {
    /// The manifest of the run.
    pub(super) manifest: &'a Manifest,
    /// One record per measured cell of the plan, by session in the order of the scenario, strategy and
    /// repeat.
    pub(super) cells: Vec<&'a CellRecord>,
    /// Cells of the plan without a measurement: they count in no number.
    pub(super) unmeasured: Vec<&'a CellRecord>,
    /// Their metrics, in the same order.
    pub(super) summaries: Vec<CellSummary>,
    /// `full`, `empty`, then the strategies in the order of the manifest.
    pub(super) strategies: Vec<StrategySummary>,
    /// The bills of agents, where any ran: then nothing was recorded before.
    pub(super) live: Option<LiveTotals>,
    /// What the reader knows with everything in front of it, where one was asked.
    pub(super) ceiling: Option<ReaderCeiling>,
}

impl<'a> Material<'a> {
    fn of(manifest: &'a Manifest, recorded: &BTreeMap<CellKey, &'a CellRecord>) -> Self {
        // Sessions in the order of the scenario; a cell of none of them is in no plan.
        let own = manifest.sessions.iter().flat_map(|entry| {
            let later = recorded.range(key(&entry.id, "", 0)..).map(|(_, cell)| *cell);
            later.take_while(move |cell| cell.session == entry.id)
        });
        let (cells, unmeasured): (Vec<&CellRecord>, Vec<_>) =
            own.partition(|cell| cell.end.is_measured());
        let entries = manifest.entries();
        let mut summaries = Vec::new();
        for cell in &cells {
            let [full, first, empty] = [(FULL, cell.repeat), (FULL, 0), (EMPTY, 0)]
                .map(|(arm, repeat)| recorded.get(&key(&cell.session, arm, repeat)).copied());
            let controls = ControlCells { full: full.or(first), empty };
            let summary = CellSummary::with_controls(cell, controls);
            summaries.push(summary.in_session(entries.get(cell.session.as_str()).copied()));
        }
        let [full, empty] = [FULL, EMPTY].map(|control| summaries_of(&summaries, control));
        let anchors = Anchors::of(&full, &empty);
        let mut names = vec![(Arm::Reference, FULL), (Arm::Floor, EMPTY)];
        names.extend(manifest.strategies.iter().map(|entry| (Arm::Strategy, &*entry.name)));
        let each = names.into_iter().map(|(arm, name)| {
            StrategySummary::of(arm, name, &summaries_of(&summaries, name), anchors)
        });
        let mut strategies: Vec<StrategySummary> = each.collect();
        let live = manifest.reader.as_ref().filter(|reader| reader.kind == ModelKind::Live);
        let ceiling = live.and_then(|_| ReaderCeiling::of(&full, &empty));
        if ceiling.is_some_and(|ceiling| ceiling.is_refused()) {
            for strategy in strategies.iter_mut().filter(|strategy| strategy.arm == Arm::Strategy) {
                strategy.values.remove("answers");
            }
        }
        Self {
            live: LiveTotals::of(manifest, &cells, &summaries),
            manifest,
            cells,
            unmeasured,
            summaries,
            strategies,
            ceiling,
        }
    }

    /// The rows of every strategy, of full history and of an empty context.
    pub(super) fn rows<'s, C: IntoIterator<Item = Vec<Cell>>>(
        &'s self,
        cells: impl Fn(&'s StrategySummary) -> C,
    ) -> Vec<Row> {
        let rows = self.strategies.iter().flat_map(|strategy| {
            let role = sections::role(strategy.arm);
            cells(strategy).into_iter().map(move |cells| sections::row(&strategy.name, role, cells))
        });
        rows.collect()
    }

    /// The summaries of the strategies alone.
    pub(super) fn compared(&self) -> impl Iterator<Item = &StrategySummary> {
        self.strategies.iter().filter(|one| one.arm == Arm::Strategy)
    }

    /// The rows of [`Self::rows`], with a mark at strategies that are broken.
    pub(super) fn marked_rows<'s, C: IntoIterator<Item = Vec<Cell>>>(
        &'s self,
        cells: impl Fn(&'s StrategySummary) -> C,
    ) -> Vec<Row> {
        let mut rows = self.rows(cells);
        for strategy in self.strategies.iter().filter(|one| one.broken().is_some()) {
            let own = rows.iter_mut().filter(|row| row.name == strategy.name);
            own.for_each(|row| row.marks.push(RowMark::Broken(None)));
        }
        rows
    }

    /// The measured cells of a strategy.
    pub(super) fn cells_of(&self, strategy: &str) -> impl Iterator<Item = &'a CellRecord> {
        self.cells.iter().copied().filter(move |cell| cell.strategy == strategy)
    }

    /// The metrics of these cells.
    pub(super) fn summaries_of(&self, strategy: &str) -> impl Iterator<Item = &CellSummary> {
        self.summaries.iter().filter(move |cell| cell.strategy == strategy)
    }

    /// The cells of full history.
    pub(super) fn references(&self) -> impl Iterator<Item = &'a CellRecord> + Clone {
        self.cells.iter().copied().filter(|cell| cell.arm == Arm::Reference)
    }

    /// How far simulated costs are from the bill.
    pub(super) fn simulated_cost(&self) -> Option<SimulatedCost> {
        SimulatedCost::of(self.cells.iter().copied())
    }

    /// Whether any strategy asked a model.
    pub(super) fn has_calls(&self) -> bool {
        self.strategies.iter().any(|strategy| strategy.model_calls.total().calls > 0)
    }

    /// Whether anything was planted in any session that was run.
    pub(super) fn has_items(&self) -> bool {
        self.cells.iter().any(|cell| !cell.probes.is_empty())
    }
}

/// Full history and the strategies of a plan, the controls that it adds included.
pub(crate) fn foreseen(manifest: &Manifest, cells: &[CellRecord]) -> Vec<StrategySummary> {
    let (recorded, _) = planned(manifest, cells);
    let mut strategies = Material::of(manifest, &recorded).strategies;
    strategies.retain(|strategy| strategy.arm != Arm::Floor);
    strategies
}

pub(super) fn report(manifest: &Manifest, cells: &[CellRecord]) -> Report {
    let (mut recorded, coverage) = planned(manifest, cells);
    // The controls that the run added have no row.
    let mut shown = manifest.clone();
    shown.strategies.retain(|entry| !entry.is_added);
    let added = manifest.strategies.iter().filter(|entry| entry.is_added);
    let added: BTreeSet<&str> = added.map(|entry| &*entry.name).collect();
    recorded.retain(|key, _| !added.contains(&*key.strategy));
    let material = Material::of(&shown, &recorded);
    let controls = Controls::of(&material.summaries);
    let (comparison, twins) = sections::comparison::section(&material);
    let trust = evidence::trust(&material);
    let mut notices = banners(&material, &coverage, &controls);
    notices.push(Note.banner(NoteCode::Trust, &*trust));
    notices.extend(twins);
    notices.extend(sections::sizes::banners(&material));
    notices.extend(sections::generations::banner(&material));
    let mut tables = vec![comparison];
    tables.extend(sections::details(&material));
    for strategy in &manifest.strategies {
        let worth = strategy.worth.as_ref().and_then(Worth::in_words);
        let (mut worth, own) = (worth.map(RowMark::from), strategy.own_mechanism());
        // Only the comparison, which comes first, says what a strategy is worth.
        for section in &mut tables {
            for row in section.table.rows.iter_mut().filter(|row| row.name == strategy.name) {
                row.marks.extend(worth.clone().into_iter().chain(own.map(RowMark::from)));
            }
            worth = None;
        }
    }
    let verdict = evidence::verdict(manifest, cells, &material);
    let next = evidence::next(manifest, &verdict);
    let (quoted_controls, quoted_cells) = quoted_controls(manifest, cells, &verdict);
    let run = Run {
        proctor: manifest.proctor.clone(),
        fingerprint: manifest.fingerprint.clone(),
        scenario: manifest.scenario.clone(),
        sessions: manifest.sessions.len(),
        strategies: shown.strategies.len(),
        repeats: manifest.repeats,
        counter: manifest.counter.clone(),
        window: manifest.window.clone(),
        seed: manifest.seed,
        summariser: manifest.summariser.clone(),
        reader: manifest.reader.clone(),
        judge: manifest.judge.clone(),
        judges: sections::models::judges(&material),
    };
    Report {
        title: format!("Compaction report: {}", manifest.scenario),
        lines: lines(&run, &coverage, &material),
        run: Some(run),
        coverage,
        controls,
        unfit_judges: sections::models::unfit(&material),
        totals: evidence::heading(&material),
        priced_as: sections::cost::priced_as(&material).unwrap_or_default(),
        is_recorded: evidence::is_recorded(manifest),
        trust,
        simulated_cost: material.simulated_cost(),
        quoted_controls,
        quoted_cells,
        next: next.0,
        next_why: next.1.to_owned(),
        verdict: Some(verdict),
        live: material.live,
        banners: notices,
        sections: tables,
        records: material.cells.iter().map(|cell| (*cell).clone()).collect(),
        cells: material.summaries,
        ..Report::default()
    }
}

/// The rows of the controls that a verdict quotes, and the metrics of their cells.
fn quoted_controls(
    manifest: &Manifest,
    cells: &[CellRecord],
    verdict: &Verdict,
) -> (Vec<Row>, Vec<CellSummary>) {
    let quoted: BTreeSet<&str> = verdict.quoted_controls().collect();
    if quoted.is_empty() {
        return Default::default();
    }
    let (mut recorded, _) = planned(manifest, cells);
    let mut shown = manifest.clone();
    shown.strategies.retain(|one| quoted.contains(&*one.name));
    recorded.retain(|key, cell| cell.arm != Arm::Strategy || quoted.contains(&*key.strategy));
    let mut material = Material::of(&shown, &recorded);
    let rows = sections::comparison::rows(&material);
    material.summaries.retain(|cell| cell.arm == Arm::Strategy);
    (rows, material.summaries)
}

/// A description of the run, in two lines for people.
fn lines(run: &Run, coverage: &Coverage, material: &Material<'_>) -> Vec<String> {
    let judge = sections::models::judges_in_words(&run.judges).unwrap_or_else(|| "none".to_owned());
    let reader = run.reader.as_ref().map_or("none", |reader| &reader.name);
    vec![
        format!(
            "{}, {}, {} of {} cells; window {}{}, counter {}, seed {}",
            display::many(run.sessions, "session", "sessions"),
            display::many(run.strategies, "strategy", "strategies"),
            coverage.recorded,
            coverage.planned,
            run.window,
            window_sizes(run, material),
            run.counter,
            run.seed
        ),
        format!(
            "summariser {}, reader {reader}, judge {judge}; run {}, proctor {}",
            run.summariser.name, run.fingerprint, run.proctor
        ),
    ]
}

/// The windows of a mode that names no number: ` (80.0k tokens)`.
fn window_sizes(run: &Run, material: &Material<'_>) -> String {
    let windows = material.cells.iter().filter_map(|cell| cell.window);
    let sizes: BTreeSet<u64> = windows.map(|window| window.tokens.0).collect();
    let tokens = display::tokens;
    match (sizes.first(), sizes.last()) {
        (Some(least), Some(most)) if least < most => {
            format!(" ({} to {} tokens)", tokens(*least), tokens(*most))
        }
        (Some(size), _) if !run.window.starts_with(&size.to_string()) => {
            format!(" ({} tokens)", tokens(*size))
        }
        (Some(_) | None, _) => String::new(),
    }
}

/// The records of planned cells, by key, and the missing ones.
fn planned<'a>(
    manifest: &Manifest,
    cells: &'a [CellRecord],
) -> (BTreeMap<CellKey, &'a CellRecord>, Coverage) {
    // The cells of the plan, and repeats of the controls outside it, which count as recorded.
    let (mut plan, mut known): (BTreeSet<CellKey>, BTreeSet<CellKey>) = Default::default();
    for session in &manifest.sessions {
        plan.insert(key(&session.id, FULL, 0));
        plan.extend((session.items > 0).then(|| key(&session.id, EMPTY, 0)));
        for repeat in 0..manifest.repeats.max(1) {
            known.extend([FULL, EMPTY].map(|control| key(&session.id, control, repeat)));
            let strategies = manifest.strategies.iter();
            plan.extend(strategies.map(|strategy| key(&session.id, &strategy.name, repeat)));
        }
    }
    // Of a cell that was recorded twice the last line counts.
    let mut recorded: BTreeMap<_, _> = cells.iter().map(|cell| (cell.key(), cell)).collect();
    recorded.retain(|key, _| plan.contains(key) || known.contains(key));
    let ends = recorded.values().map(|cell| &cell.end);
    let failed = ends.clone().filter(|end| matches!(end, End::Failed { .. }));
    let unmeasured = ends.filter(|end| !end.is_measured());
    let covered = plan.iter().filter(|key| recorded.contains_key(key)).count();
    // Agents run as often as they are started.
    let open_ended = cells.iter().any(|cell| cell.live.is_some());
    let coverage = Coverage {
        planned: if open_ended { covered } else { plan.len() },
        recorded: covered,
        failed: failed.count(),
        not_measurable: unmeasured.count(),
        outstanding: if open_ended { 0 } else { plan.len() - covered },
        unused: cells.len() - recorded.len(),
    };
    (recorded, coverage)
}

fn key(session: &str, strategy: &str, repeat: u32) -> CellKey {
    CellKey { session: session.to_owned(), strategy: strategy.to_owned(), repeat }
}

/// The metrics of the cells of a strategy.
pub(super) fn summaries_of<'c>(
    summaries: impl IntoIterator<Item = &'c CellSummary>,
    strategy: &str,
) -> Vec<&'c CellSummary> {
    summaries.into_iter().filter(|cell| cell.strategy == strategy).collect()
}

fn banners(material: &Material<'_>, coverage: &Coverage, controls: &Controls) -> Vec<Banner> {
    let manifest = material.manifest;
    let asked = material.cells.iter().any(|cell| was_asked(cell));
    let models = [
        ("answers", manifest.reader.as_ref()),
        ("summaries", Some(&manifest.summariser)),
        ("verdicts", manifest.judge.as_ref()),
    ];
    let scripted = models.into_iter().filter_map(|(what, model)| {
        let text = format!("{what} scripted, not a result of a model");
        (model?.kind == ModelKind::Scripted).then(|| Warning.banner(NoteCode::Scripted, text))
    });
    let invalid = controls.check().err().map(|error| {
        let text = format!("INVALID: {error}; no number below may be believed");
        Invalid.banner(NoteCode::ControlsFailed, text)
    });
    let mut banners: Vec<Banner> = invalid.into_iter().collect();
    banners.extend(nothing_to_choose(material));
    banners.extend(scripted);
    banners.extend(sections::models::uncalibrated(material));
    let drifted = sections::models::drifted(material).into_iter();
    banners.extend(drifted.map(|text| Warning.banner(NoteCode::JudgeMisses, text)));
    banners.extend(manifest.left_out.iter().map(|(reason, count)| {
        let sessions = display::many(*count, "session is", "sessions are");
        Note.banner(NoteCode::LeftOut, format!("{sessions} left out: {reason}"))
    }));
    let happened = if material.cells.iter().any(|cell| !cell.faults.is_empty()) {
        "what went wrong, went wrong on purpose"
    } else {
        "this was to go wrong on purpose, and did in no session"
    };
    let faults = manifest.faults.as_ref().map(|faults| format!("{happened}: {faults}"));
    let nothing =
        (coverage.recorded == 0).then_some("no cell was recorded: there is nothing to compare");
    let more = "are outstanding: run the same command again to continue";
    let outstanding = coverage.in_words(coverage.outstanding, more);
    let failed = coverage.in_words(coverage.failed, "failed: see the cells that ended early");
    let unused = (coverage.unused > 0).then(|| {
        let count = coverage.unused;
        format!("{count} records are not used: they repeat a cell or belong to none of this run")
    });
    let askable = coverage.recorded > 0 && material.has_items() && manifest.reader.is_some();
    let unasked =
        (askable && !asked).then_some("the reader was not asked: answers are not measured");
    let apart = "are not measurable, and count in no number: see the cells that ended early";
    let not_measurable = coverage.in_words(coverage.not_measurable, apart);
    let alone =
        (manifest.sessions.len() == 1).then_some("one session: no number here has an interval");
    let [not_applied, no_room] = [LiveTotals::not_applied, LiveTotals::no_room]
        .map(|of| material.live.as_ref().and_then(of));
    let found = [
        (Warning, NoteCode::TooLong, answers::too_long(material)),
        (Warning, NoteCode::NeedsJudge, answers::need_judge(material)),
        (Warning, NoteCode::Faults, faults),
        (Warning, NoteCode::NotApplied, not_applied),
        (Warning, NoteCode::NotMeasurable, no_room),
        (Warning, NoteCode::NothingRan, nothing.map(str::to_owned)),
        (Warning, NoteCode::Outstanding, outstanding),
        (Warning, NoteCode::Failed, failed),
        (Warning, NoteCode::Unused, unused),
        (Note, NoteCode::EvidenceCeiling, answers::ceiling(material)),
        (Note, NoteCode::NotAsked, unasked.map(str::to_owned)),
        (Note, NoteCode::NotMeasurable, not_measurable),
        (Note, NoteCode::OneSession, alone.map(str::to_owned)),
    ];
    let known = found.into_iter();
    banners.extend(known.filter_map(|(level, code, text)| Some(level.banner(code, text?))));
    banners
}

impl Coverage {
    /// `3 of 192 cells failed`; nothing of no cell.
    fn in_words(&self, cells: usize, what: &str) -> Option<String> {
        (cells > 0).then(|| format!("{cells} of {} cells {what}", self.planned))
    }
}

/// Says that the strategies differ in nothing worth knowing: none fits, or none changed anything.
fn nothing_to_choose(material: &Material<'_>) -> Option<Banner> {
    let ran: Vec<&StrategySummary> = material.compared().filter(|one| one.cells > 0).collect();
    let window = in_window(&material.manifest.window);
    let (code, text) = if ran.is_empty() {
        return None;
    } else if ran.iter().all(|one| !one.failures.is_empty()) {
        let failed = material.cells.iter().find_map(|cell| match &cell.end {
            End::Failed { error, .. } => Some(escape::short(error, 300)),
            _ => None,
        });
        let everywhere = ran.iter().all(|one| one.failures.len() == one.cells);
        let place = if everywhere { "" } else { " in some session" };
        let text = format!("every strategy failed{place}: {}", failed.unwrap_or_default());
        (NoteCode::AllFailed, text)
    } else if ran.iter().all(|one| one.broken().is_some_and(|why| why.is_too_large())) {
        let first = ran.iter().filter_map(|one| one.deaths.first()).min();
        let at = first.map_or_else(String::new, |call| format!(", the first at call {call}"));
        let text = format!(
            "nothing fits: under every strategy some session breaks {window}{at}; use a larger one"
        );
        (NoteCode::AllBroken, text)
    } else if ran.iter().any(|one| one.fired > 0 || one.broken().is_some()) {
        return None;
    } else if let Some(failure) = material.cells.iter().flat_map(|cell| &cell.failures).next() {
        let text = format!(
            "no strategy changed anything {window}: attempts failed, the first because {}",
            escape::short(&failure.error, 300)
        );
        (NoteCode::AttemptsFailed, text)
    } else if ran.iter().any(|one| one.has_acted()) {
        return None;
    } else {
        let text = format!(
            "nothing fires: no strategy changed anything {window}; a smaller one shows what they do"
        );
        (NoteCode::NothingFires, text)
    };
    Some(Invalid.banner(code, text))
}

/// `in the window of 80000 tokens`; the window is as the manifest writes it.
fn in_window(window: &str) -> String {
    if let Some(more) = window.strip_prefix("native") {
        format!("in the sessions' own windows{more}")
    } else if let Some(share) = window.strip_prefix("fit:") {
        format!("in windows of {share} of each session")
    } else {
        format!("in the window of {window}")
    }
}
