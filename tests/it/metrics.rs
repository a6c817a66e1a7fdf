//! From hand-made records to figures, and from figures to bytes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::{BTreeMap, BTreeSet};

use proctor::metric::CellSummary;
use proctor::metric::answers::ControlCells;
use proctor::metric::context_pressure::ContextPressure;
use proctor::metric::fidelity::FidelityRefusal;
use proctor::model::{ModelKind, Purpose};
use proctor::probe::{GradeVerdict, Outcome, ProbeKind, Unscored};
use proctor::record::{
    ActionSupport, AnswerRecord, Arm, CacheBasis, CellRecord, CompactionEvent, CounterError,
    DeathCause, End, FailureEvent, Fate, KnownBy, Level, LostAt, Manifest, ModelCall, ModelEntry,
    NativeWindow, PlaceInPrompt, Plumbing, ProbeRecord, SessionCache, SessionEntry, SessionSizes,
    StrategyEntry, SurvivalRecord, UnseenResults, Violation,
};
use proctor::report::json;
use proctor::report::strategy_summary::{Anchors, StrategyAccuracy, StrategySummary};
use proctor::report::terminal::Terminal;
use proctor::report::{self, BannerLevel, Cell, Controls, Report, ReportKind, Value};
use proctor::report::{comment, markdown};
use proctor::stats::SampleSize;
use proctor::units::{Tokens, Usage};
use proctor::window::Window;

const CALLS: usize = 8;

/// A cell that reaches all of its calls; prompts grow by 1,000 tokens per call.
fn cell(session: &str, strategy: &str) -> CellRecord {
    let arm = match strategy {
        "full" => Arm::Reference,
        "empty" => Arm::Floor,
        _ => Arm::Strategy,
    };
    CellRecord {
        session: session.to_owned(),
        strategy: strategy.to_owned(),
        repeat: 0,
        arm,
        end: End::Completed,
        planned_calls: CALLS,
        reached_calls: CALLS,
        window: (arm == Arm::Strategy).then(|| Window::new(Tokens(100_000))),
        fixed_tokens: Tokens(500),
        prompt_tokens: (1..=CALLS as u64).map(|call| Tokens(call * 1_000)).collect(),
        model_calls: Vec::new(),
        lost_calls: Vec::new(),
        later_calls: Vec::new(),
        compactions: Vec::new(),
        changes: Vec::new(),
        failures: Vec::new(),
        violations: Vec::new(),
        overflows: Vec::new(),
        faults: Vec::new(),
        refusals: Vec::new(),
        blocked_turns: Vec::new(),
        blocked_agents: Vec::new(),
        unseen: UnseenResults::default(),
        action_support: ActionSupport {
            wanted: vec![2; CALLS],
            present: vec![2; CALLS],
            compacted_wanted: vec![0; CALLS],
            compacted_present: vec![0; CALLS],
            reachable: None,
        },
        probes: Vec::new(),
        counter_error: None,
        prompt_cache: Vec::new(),
        observed_cache: None,
        messages: Vec::new(),
        answered_by: Vec::new(),
        output_tokens: Vec::new(),
        summary_health: proctor::record::SummaryHealth::default(),
        sentinels: Vec::new(),
        saved_texts: 0,
        rereads: None,
        trail: None,
        summary_atoms: None,
        probe_texts: Vec::new(),
        plumbing: Some(Plumbing { kept: 3.0, weight: 4.0, items: 2 }),
        recovery: None,
        live: None,
    }
}

fn dies_at(fatal: usize, mut cell: CellRecord) -> CellRecord {
    cell.end = End::Died { call: fatal, prompt: Tokens(100_001), cause: DeathCause::Overflow };
    cell.reached_calls = fatal;
    cell.prompt_tokens.truncate(fatal);
    let support = &mut cell.action_support;
    for series in [
        &mut support.wanted,
        &mut support.present,
        &mut support.compacted_wanted,
        &mut support.compacted_present,
    ] {
        series.truncate(fatal);
    }
    for probe in &mut cell.probes {
        if probe.call >= fatal {
            probe.survival = survival(0.0);
            probe.answer = None;
        }
    }
    cell
}

fn survival(score: f64) -> SurvivalRecord {
    SurvivalRecord {
        fate: if score > 0.0 { Fate::Kept } else { Fate::Lost },
        score,
        place: (score > 0.0).then_some(PlaceInPrompt::Verbatim),
        compacted_score: None,
        lost_at: None,
        most: None,
        said: None,
        judged: None,
    }
}

fn probe(id: &str, kind: ProbeKind, call: usize, score: f64, outcome: Outcome) -> ProbeRecord {
    let right = outcome == Outcome::Right;
    ProbeRecord {
        probe: id.to_owned(),
        kind,
        weight: 3,
        is_call: false,
        percent: if call < CALLS / 2 { 50 } else { 100 },
        call,
        said_at: None,
        survival: survival(score),
        answer: Some(AnswerRecord {
            refusal: None,
            text: Some("8443".to_owned()),
            typed: GradeVerdict::Scored { score: if right { 1.0 } else { 0.0 }, outcome },
            judged: None,
            rejudged: Vec::new(),
            panel: Vec::new(),
            judge_usage: Usage::default(),
            calls: Vec::new(),
            usage: Usage::default(),
        }),
        more: Vec::new(),
        qualifying: None,
        from_summary: None,
        of_evidence: false,
    }
}

/// One item of each kind at both halves of a session: planted ones survive with this score.
fn planted(score: f64) -> Vec<ProbeRecord> {
    let outcome = if score > 0.5 { Outcome::Right } else { Outcome::Wrong };
    let mut probes = Vec::new();
    for call in [3, 7] {
        probes.push(probe("recall-01", ProbeKind::Recall, call, score, outcome));
        probes.push(probe("constraint-01", ProbeKind::Constraint, call, score, outcome));
        probes.push(probe("artifact-01", ProbeKind::Artifact, call, score, outcome));
        probes.push(probe("decoy-01", ProbeKind::Decoy, call, 0.0, Outcome::Right));
    }
    probes
}

fn patch(call: usize, before: u64, after: u64) -> CompactionEvent {
    CompactionEvent {
        call,
        stage: "clear_results".to_owned(),
        reason: "3 results older than the last 3".to_owned(),
        before: Tokens(before),
        after: Tokens(after),
        still_over: false,
        prepared_at: None,
    }
}

fn model(name: &str, kind: ModelKind) -> ModelEntry {
    ModelEntry { name: name.to_owned(), kind }
}

fn strategy(name: &str, toml: &str) -> StrategyEntry {
    StrategyEntry {
        name: name.to_owned(),
        description: "a strategy".to_owned(),
        toml: toml.to_owned(),
        is_added: false,
        is_random: false,
        program: None,
        worth: None,
    }
}

fn manifest(sessions: &[&str], strategies: &[&str]) -> Manifest {
    Manifest {
        format: "proctor-run".to_owned(),
        version: 1,
        proctor: "0.1.0".to_owned(),
        fingerprint: "4f3a21b7".to_owned(),
        scenario: "quick-start".to_owned(),
        counter: "o200k".to_owned(),
        seed: 7,
        window: "fit:0.6".to_owned(),
        summariser: model("offline", ModelKind::Deterministic),
        reader: None,
        judge: None,
        sessions: sessions
            .iter()
            .map(|id| SessionEntry {
                id: (*id).to_owned(),
                hash: "00".to_owned(),
                cluster: None,
                format: "synthetic".to_owned(),
                messages: 2 * CALLS,
                calls: CALLS,
                tokens: Tokens(9_000),
                items: 8,
                probes: None,
                compactions: 0,
                sizes: SessionSizes {
                    sizes: proctor::record::Sizes::Counted,
                    ..SessionSizes::default()
                },
                native_window: NativeWindow {
                    tokens: Tokens(200_000),
                    max_output: Tokens::ZERO,
                    known_by: KnownBy::Assumed,
                },
                price: None,
                unpriced: None,
                cache: SessionCache {
                    scheme: "anthropic-5m".to_owned(),
                    basis: CacheBasis::Assumed,
                },
                unknown: BTreeMap::new(),
                warnings: BTreeMap::new(),
            })
            .collect(),
        sample: None,
        left_out: BTreeMap::new(),
        strategies: strategies.iter().map(|name| strategy(name, "")).collect(),
        repeats: 1,
        answers: 1,
        judgements: 1,
        faults: None,
        conditions: BTreeMap::new(),
        servers: BTreeMap::new(),
        margins: BTreeMap::new(),
        calibrations: Vec::new(),
    }
}

/// `full` and `empty` as they must be.
fn controls(session: &str) -> [CellRecord; 2] {
    let mut full = cell(session, "full");
    full.probes = planted(1.0);
    let mut empty = cell(session, "empty");
    empty.probes = planted(0.0);
    empty.action_support = ActionSupport::default();
    [full, empty]
}

/// A strategy that halves every prompt from the middle on and keeps `score` of what was planted.
fn masked(session: &str, strategy: &str, score: f64) -> CellRecord {
    let mut cell = cell(session, strategy);
    for call in CALLS / 2..CALLS {
        cell.prompt_tokens[call] = Tokens(cell.prompt_tokens[call].0 / 2);
        cell.action_support.present[call] = 1;
        cell.action_support.compacted_wanted[call] = 1;
    }
    cell.compactions.push(patch(4, 5_000, 2_500));
    cell.probes = planted(1.0);
    for item in cell.probes.iter_mut().filter(|item| item.call >= 4) {
        if item.kind != ProbeKind::Decoy {
            item.survival = SurvivalRecord {
                compacted_score: Some(score),
                lost_at: (score < 1.0).then(|| LostAt {
                    call: 4,
                    stage: "clear_results".to_owned(),
                    reason: "3 results older than the last 3".to_owned(),
                    seen_by_summariser: None,
                }),
                ..survival(score)
            };
        }
    }
    cell
}

/// [`answered_run`] without a reader.
fn run() -> (Manifest, Vec<CellRecord>) {
    let (manifest, mut cells) = answered_run();
    let items = cells.iter_mut().flat_map(|cell| &mut cell.probes);
    items.for_each(|item| item.answer = None);
    (manifest, cells)
}

/// Two sessions, four strategies: two that work, one that asks a model, one that dies.
fn answered_run() -> (Manifest, Vec<CellRecord>) {
    let sessions = ["refactor-1.aaaaaa", "refactor-2.bbbbbb"];
    let mut manifest = manifest(
        &sessions,
        &[
            "none",
            "observation-masking",
            "observation-masking[clear_results.keep_last=5]",
            "learn-claude-code-s06",
        ],
    );
    manifest.sessions[1].unknown.insert("queue-operation".to_owned(), 4);
    manifest.sessions[1].warnings.insert("timestamps out of order".to_owned(), 2);
    let mut cells = Vec::new();
    for (index, session) in sessions.into_iter().enumerate() {
        let [mut full, empty] = controls(session);
        if index == 1 {
            full.counter_error =
                Some(CounterError { increments: 41, median: 0.031, p95: 0.12, ratio: 0.982 });
        }
        cells.extend([full, empty]);
        let mut none = cell(session, "none");
        none.probes = planted(1.0);
        cells.push(if index == 1 { dies_at(4, none) } else { none });
        cells.push(masked(session, "observation-masking", 0.0));
        cells.push(masked(
            session,
            "observation-masking[clear_results.keep_last=5]",
            if index == 0 { 1.0 } else { 0.0 },
        ));
        let mut summary = masked(session, "learn-claude-code-s06", 0.0);
        summary
            .compactions
            .push(CompactionEvent { stage: "summarize".to_owned(), ..patch(6, 3_000, 600) });
        summary.prompt_tokens[6] = Tokens(1_100);
        summary.prompt_tokens[7] = Tokens(2_100);
        summary.model_calls.push(ModelCall {
            call: 6,
            purpose: Purpose::Compaction,
            usage: Usage::uncached(Tokens(3_000), Tokens(600)),
            model: None,
            failure: None,
            key: None,
        });
        if index == 1 {
            summary.failures.push(FailureEvent {
                call: 5,
                stage: "summarize".to_owned(),
                error: "timed out".to_owned(),
            });
            summary.model_calls.push(ModelCall {
                call: 5,
                purpose: Purpose::Recovery,
                usage: Usage::uncached(Tokens(2_000), Tokens::ZERO),
                model: None,
                failure: Some("timed out".to_owned()),
                key: None,
            });
            summary.violations.push(Violation {
                call: 6,
                calls: 2,
                rule: "orphan tool result".to_owned(),
                level: Level::Rejected,
                subject: "toolu_1".to_owned(),
            });
        }
        cells.push(summary);
    }
    (manifest, cells)
}

/// The value of a strategy in a column of the comparison.
fn figure<'a>(report: &'a Report, strategy: &str, column: &str) -> &'a Cell {
    let table = &report.section("comparison").unwrap().table;
    let at = table.columns.iter().position(|c| c.id == column).unwrap();
    let row = table.rows.iter().find(|row| row.name == strategy).unwrap();
    &row.cells[at - 1]
}

fn share(cell: &Cell) -> f64 {
    match cell.value {
        Value::Share(share) => share,
        ref other => panic!("{other:?} is no share"),
    }
}

fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-9, "{left} is not {right}");
}

#[test]
fn savings_bill_every_call_the_strategy_made() {
    let full = cell("s", "full");
    let mut halved = masked("s", "x", 0.0);
    // Full: 1+2+…+8 = 36k. Halved from call 4 on: 10k + 13k = 23k.
    let savings = CellSummary::of(&halved, Some(&full)).savings.unwrap();
    close(savings.share().unwrap(), 13.0 / 36.0);
    for (purpose, failure) in [
        (Purpose::Compaction, None),
        (Purpose::Recovery, Some("timed out".to_owned())),
        (Purpose::Probe, None),
        (Purpose::Judge, None),
    ] {
        halved.model_calls.push(ModelCall {
            call: 4,
            purpose,
            usage: Usage::uncached(Tokens(4_000), Tokens(500)),
            model: None,
            failure,
            key: None,
        });
    }
    let summary = CellSummary::of(&halved, Some(&full));
    let savings = summary.savings.unwrap();
    close(savings.share().unwrap(), 1.0 - (23.0 + 9.0) / 36.0);
    assert_eq!(summary.model_calls.total().calls, 2);
    assert_eq!(summary.model_calls.recovery.failed, 1);
    assert_eq!(summary.peak_prompt, Some(Tokens(4_000)));
    close(summary.retained.unwrap(), 0.5);
}

#[test]
fn a_session_that_dies_at_half_its_calls_saves_nothing_by_dying() {
    let [full, _] = controls("s");
    let mut none = cell("s", "none");
    none.probes = planted(1.0);
    let dead = CellSummary::of(&dies_at(4, none), Some(&full));
    close(dead.completion.share().unwrap(), 0.5);
    close(dead.savings.unwrap().share().unwrap(), 0.0);
    assert_eq!(dead.savings.unwrap().calls, 4);
    // What was asked after the death is lost, in every evaluator.
    close(dead.survival.planted().mean().unwrap(), 0.5);
    close(dead.support.share().unwrap(), 0.5);
    close(dead.answers.as_ref().unwrap().score.mean().unwrap(), 0.5);
    assert!(dead.is_broken());
}

#[test]
fn what_is_spent_at_the_fatal_call_is_on_the_bill() {
    let full = cell("s", "full");
    let mut dead = dies_at(4, cell("s", "x"));
    for call in [3, 4] {
        dead.model_calls.push(ModelCall {
            call,
            purpose: Purpose::Recovery,
            usage: Usage::uncached(Tokens(1_000), Tokens::ZERO),
            model: None,
            failure: None,
            key: None,
        });
    }
    let savings = CellSummary::of(&dead, Some(&full)).savings.unwrap();
    close(savings.share().unwrap(), 1.0 - 12.0 / 10.0);
}

#[test]
fn a_rejected_call_counts_once() {
    let mut broken = cell("s", "x");
    for (call, calls, level) in [
        (2, 3, Level::Rejected),
        (4, 1, Level::Rejected),
        (7, 90, Level::Rejected),
        (0, 8, Level::Warning),
    ] {
        broken.violations.push(Violation {
            call,
            calls,
            rule: "roles".to_owned(),
            level,
            subject: "3".to_owned(),
        });
    }
    let findings = CellSummary::of(&broken, None).findings;
    assert_eq!((findings.rejected, findings.warnings), (4, 1));
}

#[test]
fn decoys_are_chance_and_no_part_of_the_headline() {
    let mut half = cell("s", "x");
    half.probes = vec![
        probe("r1", ProbeKind::Recall, 7, 1.0, Outcome::Right),
        probe("r2", ProbeKind::Recall, 7, 1.0, Outcome::Stale),
        probe("r3", ProbeKind::Recall, 7, 1.0, Outcome::Misbound),
        probe("r4", ProbeKind::Recall, 7, 0.0, Outcome::Abstained),
        probe("d1", ProbeKind::Decoy, 7, 1.0, Outcome::Invented),
        probe("d2", ProbeKind::Decoy, 7, 0.0, Outcome::Right),
    ];
    let summary = CellSummary::of(&half, None);
    let arm = StrategySummary::of(Arm::Strategy, "x", &[&summary], Anchors::default());
    close(arm.survival_uncorrected.unwrap().point_estimate, 0.75);
    // (0.75 − 0.5) / (1 − 0.5)
    close(arm.survival.unwrap().point_estimate, 0.5);
    assert_eq!(arm.survival.unwrap().n, SampleSize { sessions: 1, items: 4 });
    assert_eq!(arm.survival.unwrap().confidence_interval, None);
    let answers = arm.answers.unwrap();
    close(answers.accuracy.unwrap().point_estimate, 0.25);
    // Omitted, distorted, stale and misbound of the planted items; hallucinated of the decoys.
    let failings = answers.failings[..5].iter();
    let failings: Vec<f64> = failings.map(|it| it.unwrap().point_estimate).collect();
    assert_eq!(failings, [0.25, 0.5, 0.25, 0.25, 0.5]);
}

#[test]
fn fidelity_needs_a_ceiling_and_a_floor() {
    let [full, empty] = controls("s");
    let mut half_right = masked("s", "x", 0.0);
    for item in half_right.probes.iter_mut().filter(|item| item.call >= 4) {
        item.answer = probe("", item.kind, 7, 0.0, Outcome::Wrong).answer;
    }
    // An answer nobody graded is left out on both sides.
    half_right.probes[0].answer.as_mut().unwrap().typed =
        GradeVerdict::Unscored { reason: Unscored::NeedsJudge };
    let of = |cell: &CellRecord| CellSummary::of(cell, Some(&full));
    let anchors = Anchors::of(&[&of(&full)], &[&of(&empty)]);
    assert_eq!(anchors, Anchors { full: Some(1.0), empty: Some(0.0) });
    let arm =
        |anchors| StrategySummary::of(Arm::Strategy, "x", &[&of(&half_right)], anchors).answers;
    let Some(StrategyAccuracy {
        accuracy,
        bounds,
        fidelity,
        fidelity_bounds,
        unscored,
        needs_judge,
        ..
    }) = arm(anchors)
    else {
        panic!("no accuracy");
    };
    close(accuracy.unwrap().point_estimate, 0.4);
    // Two of six are right; the one without a score may be.
    for (least, most) in [bounds.unwrap(), fidelity_bounds.unwrap()] {
        close(least, 2.0 / 6.0);
        close(most, 3.0 / 6.0);
    }
    assert_eq!(needs_judge, 1);
    let measured = fidelity.unwrap();
    close(measured.point_estimate, 0.4);
    assert_eq!((measured.n.sessions, measured.n.items), (1, 5));
    assert_eq!(unscored, 1);
    for (full, empty, refusal) in
        [(0.59, 0.0, FidelityRefusal::CeilingTooLow), (0.7, 0.51, FidelityRefusal::SpanTooSmall)]
    {
        let anchors = Anchors { full: Some(full), empty: Some(empty) };
        assert_eq!(arm(anchors).unwrap().fidelity, Err(refusal));
    }
}

/// By hand: F* = Σ(a − e)/Σ(f − e) over `s` and `t`. `u` has no floor, and is in no part of it.
#[test]
fn normalised_fidelity_is_taken_over_the_sessions_scored_in_all_three() {
    let arm = |sessions: &[(&str, f64, bool)]| {
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for (session, score, has_floor) in sessions {
            let [full, empty] = controls(session);
            let mut cell = masked(session, "x", 1.0);
            let planted = cell.probes.iter_mut();
            for item in planted.filter(|item| item.kind != ProbeKind::Decoy) {
                item.answer.as_mut().unwrap().typed =
                    GradeVerdict::Scored { score: *score, outcome: Outcome::Partial };
            }
            let controls = ControlCells { full: Some(&full), empty: has_floor.then_some(&empty) };
            let of = |cell: &CellRecord| CellSummary::with_controls(cell, controls);
            all[0].push(of(&full));
            all[1].extend(has_floor.then(|| of(&empty)));
            all[2].push(of(&cell));
        }
        let [full, empty, cells] =
            all.each_ref().map(|cells: &Vec<CellSummary>| cells.iter().collect::<Vec<_>>());
        let anchors = Anchors::of(&full, &empty);
        let summary = StrategySummary::of(Arm::Strategy, "x", &cells, anchors);
        let found = summary.answers.unwrap();
        (found.fidelity, found.normalised)
    };
    let (fidelity, normalised) = arm(&[("s", 0.5, true), ("t", 1.0, true), ("u", 0.0, false)]);
    close(fidelity.unwrap().point_estimate, 0.5);
    let normalised = normalised.unwrap();
    close(normalised.point_estimate, 0.75);
    assert_eq!(normalised.n.sessions, 2);
    // The residuals are −0.25 and 0.25: SE = √(2 · 0.125)/2, and t(0.975, 1) = 12.706.
    close(normalised.standard_error.unwrap(), 0.25);
    let interval = normalised.confidence_interval.unwrap();
    assert!((interval.half_width() - 12.706 * 0.25).abs() < 1e-3);
    let (_, none) = arm(&[("s", 0.5, false)]);
    assert_eq!(none, None);
}

#[test]
fn a_report_holds_the_figures() {
    let (manifest, cells) = run();
    let report = Report::of(&manifest, &cells);
    assert_eq!(report.controls.check(), Ok(()));
    assert_eq!(report.controls, Controls::Passed { items: 16 });
    let rows = &report.section("comparison").unwrap().table.rows;
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names[..3], ["full", "empty", "none"]);
    close(share(figure(&report, "none", "completion")), 0.75);
    let masking = figure(&report, "observation-masking", "facts");
    close(share(masking), 0.5);
    assert_eq!(masking.n, Some(SampleSize { sessions: 2, items: 12 }));
    // Session means 1.0 and 0.5: mean 0.75, SE 0.25, t(0.975, 1) = 12.706.
    let kept = figure(&report, "observation-masking[clear_results.keep_last=5]", "facts");
    close(share(kept), 0.75);
    assert!((kept.interval.unwrap().half_width() - 12.706 * 0.25).abs() < 1e-3);
    assert!(kept.best && !masking.best);
    assert_eq!(figure(&report, "none", "answers").value, Value::NotMeasured);
    assert_eq!(figure(&report, "full", "fired").value, Value::NotApplicable);
    assert_eq!(figure(&report, "none", "fired").value, Value::Fraction(0, 2));
    let marks = |name: &str| rows.iter().find(|row| row.name == name).unwrap().marks_in_words();
    assert_eq!(marks("none"), ["never fired", "broken (died in 1 of 2, first at 4)"]);
    assert_eq!(marks("learn-claude-code-s06"), ["broken (2 refused)"]);
    for row in rows.iter().filter(|row| !row.ranked) {
        assert!(row.cells.iter().all(|cell| !cell.best), "{}", row.name);
    }
}

#[test]
fn a_run_whose_controls_are_off_is_invalid() {
    let (manifest, cells) = run();
    let check = |at: usize, spoil: fn(&mut CellRecord), expected: &str| {
        let mut cells = cells.clone();
        spoil(&mut cells[at]);
        let report = Report::of(&manifest, &cells);
        let error = report.controls.check().unwrap_err().to_string();
        assert_eq!(error, format!("the run is invalid: {expected}"));
        assert_eq!(report.banners[0].level, BannerLevel::Invalid);
        for shown in [
            Terminal::plain(80).render(&report),
            markdown::render(&report).unwrap(),
            comment::render(&report).unwrap(),
        ] {
            assert!(shown.contains("INVALID"));
        }
    };
    check(
        0,
        |full| full.probes[0].survival.score = 0.0,
        "under `full`, 1 of 2 recall items survive in session `refactor-1.aaaaaa`, and all should",
    );
    check(
        1,
        |empty| empty.probes[0].survival.score = 1.0,
        "under `empty`, 1 of 2 recall items survive in session `refactor-1.aaaaaa`, and none \
         should",
    );
    check(
        0,
        |full| full.probes[3].survival.score = 1.0,
        "under `full`, 1 of 2 decoy items survive in session `refactor-1.aaaaaa`, and none should",
    );
}

#[test]
fn what_only_a_model_could_tell_apart_gets_no_best_mark() {
    let summarize = |template: &str| {
        format!(
            "description = \"{template}\"\n[[stage]]\nkind = \"summarize\"\ntemplate = \"{template}\"\n"
        )
    };
    let run = |kind| {
        let mut manifest = manifest(&["a", "b"], &[]);
        manifest.summariser.kind = kind;
        manifest.strategies = vec![
            strategy("plain", &summarize("plain")),
            strategy("continuity", &summarize("continuity")),
        ];
        let mut cells = Vec::new();
        for session in ["a", "b"] {
            cells.extend(controls(session));
            cells.push(masked(session, "plain", 0.0));
            cells.push(masked(session, "continuity", 1.0));
        }
        Report::of(&manifest, &cells)
    };
    let report = run(ModelKind::Deterministic);
    assert!(!figure(&report, "continuity", "facts").best);
    let said = |report: &Report| {
        report
            .banners
            .iter()
            .any(|banner| banner.text.starts_with("no best-mark between `plain`, `continuity`"))
    };
    assert!(said(&report));
    let report = run(ModelKind::Live);
    assert!(figure(&report, "continuity", "facts").best);
    assert!(!said(&report));
}

#[test]
fn scripted_answers_are_watermarked_in_every_format() {
    let (mut manifest, cells) = answered_run();
    manifest.reader = Some(model("script", ModelKind::Scripted));
    let report = Report::of(&manifest, &cells);
    for shown in [
        Terminal::plain(80).render(&report),
        markdown::render(&report).unwrap(),
        comment::render(&report).unwrap(),
        json::render(&report).unwrap(),
    ] {
        assert!(shown.contains("answers scripted, not a result of a model"));
    }
    close(share(figure(&report, "full", "answers")), 1.0);
    assert!(Terminal::plain(80).render(&report).contains("(scripted)"));
}

#[test]
fn nothing_that_was_recorded_is_obeyed() {
    let evil = "\u{1b}[31mx|y`<b>\n\u{202e}世\u{9b}2J";
    let (mut manifest, mut cells) = run();
    manifest.sessions[0].id = evil.to_owned();
    manifest.scenario = evil.to_owned();
    manifest.strategies[1].name = evil.to_owned();
    manifest.reader = Some(model(evil, ModelKind::Live));
    manifest.sessions[0].unknown.insert(evil.to_owned(), 1);
    for cell in &mut cells {
        if cell.session == "refactor-1.aaaaaa" {
            evil.clone_into(&mut cell.session);
        }
        if cell.strategy == "observation-masking" {
            evil.clone_into(&mut cell.strategy);
            evil.clone_into(&mut cell.compactions[0].stage);
        }
        for item in &mut cell.probes {
            evil.clone_into(&mut item.probe);
            if let Some(lost) = &mut item.survival.lost_at {
                lost.reason = evil.repeat(30);
            }
        }
        for text in &mut cell.probe_texts {
            evil.clone_into(&mut text.probe);
            evil.clone_into(&mut text.question);
            evil.clone_into(&mut text.gold);
        }
        for violation in &mut cell.violations {
            evil.clone_into(&mut violation.subject);
        }
    }
    let report = Report::of(&manifest, &cells);
    let json = json::render(&report).unwrap();
    let markdown = markdown::render(&report).unwrap() + &comment::render(&report).unwrap();
    let terminal = Terminal::plain(80).render(&report);
    for (format, shown) in [("json", &json), ("md", &markdown), ("txt", &terminal)] {
        assert!(
            !shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{format}"
        );
    }
    assert!(!markdown.contains("<b>") && !markdown.contains("x|y"));
    for line in terminal.lines() {
        let wide = line.chars().count() + line.matches('世').count();
        assert!(wide <= 80, "{wide}: {line}");
    }
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed["run"]["scenario"], evil);
}

#[test]
fn a_run_without_cells_is_a_report_all_the_same() {
    let report = Report::of(&manifest(&["a"], &["none"]), &[]);
    assert_eq!(report.controls, Controls::NotMeasured);
    assert_eq!(report.coverage.outstanding, 3);
    assert_eq!(figure(&report, "none", "completion").value, Value::NotMeasured);
    insta::assert_snapshot!("no_cells", Terminal::plain(80).render(&report));
    let nothing = Report::of(&manifest(&[], &[]), &[]);
    assert_eq!(nothing.coverage.planned, 0);
    for shown in [
        Terminal::plain(1).render(&nothing),
        markdown::render(&nothing).unwrap(),
        comment::render(&nothing).unwrap(),
        json::render(&nothing).unwrap(),
    ] {
        assert!(!shown.contains("NaN"));
    }
}

#[test]
fn a_pull_request_shows_what_matters_and_folds_the_rest() {
    let (manifest, cells) = run();
    let report = Report::of(&manifest, &cells);
    let shown = markdown::render(&report).unwrap();
    let mut sections = shown.split("\n## ");
    let comparison = sections.find(|text| text.starts_with("Comparison"));
    let comparison = comparison.unwrap();
    let heads: Vec<Vec<&str>> = comparison
        .lines()
        .filter(|line| line.starts_with("| strategy"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let [heads] = heads.as_slice() else { panic!("{heads:?}") };
    let names = heads.iter().map(|head| head.split("<br>").next().unwrap());
    let names: Vec<&str> = names.collect();
    assert_eq!(names[..3], ["strategy", "completion", "fired"]);
    // What was measured stands in one table, and what was not in none.
    let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len(), "{names:?}");
    for name in ["tokens saved", "facts kept", "calls"] {
        assert!(distinct.contains(name), "{names:?}");
    }
    assert!(!distinct.contains("bill saved"));
    assert!(comparison.contains("not measured: bill, bill saved, "));
    let (open, closed) = ("<details>", "</details>");
    assert_eq!(shown.matches(open).count(), shown.matches(closed).count());
}

#[test]
fn what_was_not_planted_is_said_in_one_line_and_takes_no_column() {
    let (mut manifest, mut cells) = run();
    for session in &mut manifest.sessions {
        session.items = 0;
    }
    cells.retain(|cell| cell.arm != Arm::Floor);
    for cell in &mut cells {
        cell.probes.clear();
    }
    let report = Report::of(&manifest, &cells);
    let comparison = &report.section("comparison").unwrap().table;
    assert!(comparison.rows.iter().all(|row| row.name != "empty"));
    for width in [80, 140] {
        let shown = Terminal::plain(width).render(&report);
        let line = "facts kept: not measured (nothing was planted in these sessions)";
        assert_eq!(shown.matches("not measured").count(), 1, "{shown}");
        assert!(shown.contains(line), "{shown}");
        let head = shown.lines().find(|line| line.starts_with("strategy ")).unwrap();
        assert!(!head.contains("facts") && head.contains("action"), "{head}");
    }
}

#[test]
fn refused_prompts_are_shown_whether_recovered_or_not() {
    let (manifest, mut cells) = run();
    for cell in &mut cells {
        match cell.strategy.as_str() {
            "none" if cell.end != End::Completed => cell.overflows = vec![4],
            "learn-claude-code-s06" => cell.overflows = vec![2, 6],
            _ => {}
        }
    }
    let report = Report::of(&manifest, &cells);
    let rows = &report.section("overflows").unwrap().table.rows;
    let counts =
        |at: usize| -> Vec<&Value> { rows[at].cells.iter().map(|cell| &cell.value).collect() };
    assert_eq!(rows[0].name, "none");
    assert_eq!(counts(0), [1, 0, 1, 1, 4].map(Value::Count).each_ref());
    assert_eq!(counts(1), [4, 4, 0, 2, 2].map(Value::Count).each_ref());
    assert_eq!(figure(&report, "none", "overflows").value, Value::Count(1));
}

#[test]
fn lost_facts_that_tell_strategies_apart_come_first_and_broken_strategies_do_not_count() {
    let (manifest, cells) = run();
    let report = Report::of(&manifest, &cells);
    let table = &report.section("lost").unwrap().table;
    let at = |id: &str| table.columns.iter().position(|it| it.id == id).unwrap() - 1;
    let broken = report.section("comparison").unwrap().table.rows.iter();
    let broken = broken.filter(|row| row.marks_in_words().concat().contains("broken"));
    let broken: Vec<Value> = broken.map(|row| Value::Text(row.name.clone())).collect();
    assert!(!broken.is_empty() && !table.rows.is_empty());
    let all_lose = |value: &Value| match value {
        Value::Fraction(part, whole) => part == whole,
        other => panic!("{other:?}"),
    };
    let mut rows = table.rows.iter();
    assert!(rows.all(|row| !broken.contains(&row.cells[at("strategy")].value)));
    let lost = table.rows.iter().map(|row| &row.cells[at("lost")].value);
    assert!(lost.map(all_lose).is_sorted());
}

#[test]
fn records_out_of_plan_are_counted_and_not_used() {
    let (manifest, mut cells) = run();
    let clean = Report::of(&manifest, &cells);
    cells.push(cells[0].clone());
    cells.push(cell("refactor-1.aaaaaa", "unheard-of"));
    let report = Report::of(&manifest, &cells);
    assert_eq!(report.coverage.unused, 2);
    assert_eq!(report.sections, clean.sections);
    cells.reverse();
    assert_eq!(Report::of(&manifest, &cells).sections, clean.sections);
}

#[test]
fn terminals_of_any_width_hold_the_report() {
    let (manifest, cells) = run();
    let report = Report::of(&manifest, &cells);
    for width in 60..200 {
        for line in Terminal::plain(width).render(&report).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    assert!(Terminal::new(80, true).render(&report).contains("\u{1b}[32m"));
    insta::assert_snapshot!("terminal_80", Terminal::plain(80).render(&report));
    insta::assert_snapshot!("terminal_140", Terminal::plain(140).render(&report));
}

#[test]
fn files_hold_everything() {
    let (manifest, cells) = run();
    let report = Report::of(&manifest, &cells);
    insta::assert_snapshot!("markdown", markdown::render(&report).unwrap());
    insta::assert_snapshot!("comment", comment::render(&report).unwrap());
    insta::assert_snapshot!("json", json::render(&report).unwrap());
    let trace = report::format(ReportKind::Run, "out.otlp.json").unwrap();
    let trace = trace.render(&report).unwrap().remove(0).bytes;
    let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
    let spans = &trace["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let spans = spans.as_array().unwrap();
    assert_eq!(spans.len(), report.cells.len());
    let ids: BTreeSet<&str> = spans.iter().map(|it| it["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    let shown = |event: &serde_json::Value| {
        assert_eq!(event["name"], "gen_ai.evaluation.result");
        let pairs = event["attributes"].as_array().unwrap().iter();
        let pairs = pairs.map(|it| {
            let value = it["value"].as_object().unwrap().values().next().unwrap();
            format!("{} {value}", it["key"].as_str().unwrap())
        });
        format!("{} {}", event["timeUnixNano"], pairs.collect::<Vec<_>>().join(", "))
    };
    let died = spans.iter().find(|it| it["status"]["code"] == 2).unwrap();
    let events: Vec<String> = died["events"].as_array().unwrap().iter().map(shown).collect();
    insta::assert_snapshot!("otlp", format!("{}\n{}", died["status"], events.join("\n")));
    for kind in [ReportKind::Run, ReportKind::Comparison, ReportKind::Sweep] {
        for ending in report::endings(kind) {
            let format = report::format(kind, &format!("out.{ending}")).unwrap();
            let artifacts = format.render(&report).unwrap();
            assert_eq!(artifacts[0].ending, ending);
        }
    }
    for (name, ending) in [
        ("out.MD", Some("md")),
        ("out.otlp.json", Some("otlp.json")),
        ("a.b.BILL.SVG", Some("bill.svg")),
        ("tokens.svg", Some("tokens.svg")),
        ("out.svg", None),
        ("out.docx", None),
        ("md", None),
    ] {
        let found = report::format(ReportKind::Run, name).map(|format| format.ending);
        assert_eq!(found, ending, "{name}");
    }
}

#[test]
fn strain_counts_zones_and_restless_compactions() {
    let event = |call: usize, before: u64, after: u64| CompactionEvent {
        call,
        stage: "summarize".to_owned(),
        reason: String::new(),
        before: Tokens(before),
        after: Tokens(after),
        still_over: false,
        prepared_at: None,
    };
    let asked = |call: usize, failure: Option<&str>| ModelCall {
        call,
        purpose: Purpose::Compaction,
        usage: Usage::default(),
        model: None,
        failure: failure.map(str::to_owned),
        key: None,
    };
    let mut strained = cell("s", "strained");
    // Of a window of 100,000: warned from 67,000, automatic from 87,000, blocking from 97,000.
    strained.prompt_tokens = [66_999, 67_000, 87_000, 96_999, 97_000].map(Tokens).to_vec();
    strained.compactions = vec![
        event(1, 100, 81),
        event(3, 100, 80),
        event(6, 100, 10),
        event(7, 100, 10),
        event(20, 100, 10),
        // Nobody was asked at 21, and at 22 nobody answered.
        event(21, 100, 99),
        event(22, 100, 99),
    ];
    // One for which a model was asked, and one for which nobody was.
    for at in [1, 5] {
        strained.compactions[at].still_over = true;
    }
    strained.model_calls = [1, 3, 6, 7, 20].map(|call| asked(call, None)).to_vec();
    strained.model_calls.push(asked(22, Some("timed out")));
    // Asked again, and once where nothing was freed.
    strained.model_calls.push(asked(22, Some("timed out")));
    strained.model_calls.push(asked(30, Some("server error")));
    strained
        .model_calls
        .push(ModelCall { purpose: Purpose::Agent, ..asked(4, Some("rate limited")) });
    strained.blocked_turns = vec![4];
    strained.blocked_agents = vec![4, 6];
    strained.unseen = UnseenResults { results: 9, altered: 5, reachable: 2, saved: 3 };
    let strain = ContextPressure::of(&strained);
    let expected = ContextPressure {
        warned_calls: 1,
        auto_compact_calls: 2,
        blocking_calls: 1,
        blocked_turns: 1,
        blocked_agents: 2,
        // 1, 3, 6 and 3, 6, 7.
        thrash: 2,
        retriggered: 2,
        next_call: 1,
        futile: 1,
        unseen_altered: 5,
        unseen_reachable: 2,
        unseen_gone: 2,
        agent_failures: 1,
        failed_calls: 3,
        retried_calls: 1,
        wasted_calls: 1,
    };
    assert_eq!(strain, expected);
    strained.window = None;
    assert_eq!(ContextPressure::of(&strained).blocking_calls, 0);
}
