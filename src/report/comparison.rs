//! Comparisons as reports: what changed, how sure that is, and the verdict of the gate.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::junit::{CaseOutcome, Suite, TestCase};
use super::{BannerLevel, Cell, Report, ReportData, Role, Row, Section, display, sections};
use crate::compare::gate::{Ending, GateResult, GatedAxis, Verdict};
use crate::compare::{Axis, AxisFinding, Findings, Mismatch, NoteCode, Repriced};
use crate::metric::cost::SimulatedCost;
use crate::record::{OWN_MECHANISM, schema_of};

mod difference;
mod hard_breaks;
mod screen;

use difference::{basis, level, margin, paired, warning};
pub(crate) use difference::{change, ends, interval, signed};

/// Version of the comparison as JSON.
///
/// 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// The most hard breaks that a section names; a change that loses much loses hundreds.
const MOST_BREAKS: usize = 8;

/// The most changed probes that a terminal shows.
const MOST_CHANGED: usize = 10;

/// Several comparisons, and how the gate ended over all of them.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Comparisons {
    /// Always `proctor-comparison`.
    pub format: &'static str,
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// The differences between the sides that were allowed.
    pub mismatches: Vec<Mismatch>,
    /// The verdict over everything; `None` where nothing was gated.
    pub ending: Option<Ending>,
    /// The comparisons, in the order of the command line.
    pub comparisons: Vec<GatedComparison>,
    /// Whether `inconclusive` fails.
    #[serde(skip)]
    pub(crate) fails_on_inconclusive: bool,
}

/// One comparison with the names of its sides.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct GatedComparison {
    /// Where the baseline comes from, as typed.
    pub baseline_source: String,
    /// Where the candidate comes from, as typed.
    pub candidate_source: String,
    /// The differences.
    pub comparison: Findings,
    /// The result of the gate; `None` without one.
    pub gated: Option<GateResult>,
    /// What importers mended in the sessions of each side that is a run, in sentences.
    #[serde(skip)]
    pub repairs: Vec<String>,
    /// How far simulated costs are from the bill, in each side that is a run of billed sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated_cost: Vec<SimulatedCost>,
}

/// A JSON Schema (draft 2020-12) of a comparison as JSON.
pub fn schema() -> serde_json::Value {
    schema_of::<Comparisons>()
}

impl Default for Comparisons {
    fn default() -> Self {
        Self {
            format: "proctor-comparison",
            version: FORMAT_VERSION,
            mismatches: Vec::new(),
            ending: None,
            comparisons: Vec::new(),
            fails_on_inconclusive: false,
        }
    }
}

impl Comparisons {
    /// The report: the verdict with its reason as the title, and three tables for each comparison.
    pub fn report(self) -> Report {
        let differs = self.mismatches.iter().map(|mismatch| {
            let text = format!(
                "differs: {}: {} in the baseline, {} in the candidate",
                mismatch.what, mismatch.baseline, mismatch.candidate
            );
            BannerLevel::Warning.banner(NoteCode::Differs, text)
        });
        let each = self.notes().into_iter();
        let notes = each.map(|(code, text)| BannerLevel::Note.banner(code, text));
        Report {
            title: self.title(),
            banners: differs.chain(notes).collect(),
            sections: self.comparisons.iter().flat_map(tables).collect(),
            subject: ReportData::Comparison(Box::new(self)),
            ..Report::default()
        }
    }

    /// Which costs were computed again at the candidate's prices, what importers mended in the sessions, and how
    /// far simulated costs are from the bill, in words: once for all strategies of a run.
    fn notes(&self) -> BTreeSet<(NoteCode, String)> {
        let mut notes = BTreeSet::new();
        for one in &self.comparisons {
            let repriced = one.comparison.repriced.iter().map(Repriced::words);
            let simulated = one.simulated_cost.iter().map(SimulatedCost::words);
            notes.extend(repriced.map(|text| (NoteCode::Repriced, text)));
            let repairs = one.repairs.iter().cloned();
            notes.extend(repairs.map(|text| (NoteCode::Repaired, text)));
            notes.extend(simulated.map(|text| (NoteCode::SimulatedCost, text)));
        }
        notes
    }

    fn title(&self) -> String {
        let Some(verdict) = self.verdict() else {
            return "Proctor: compared, nothing gated".to_owned();
        };
        let sign = match (self.ending, verdict) {
            (Some(Ending::Failed), _) => "❌",
            // It passes unless the rules say that it fails, and is not a success either.
            (Some(Ending::Inconclusive), _) | (_, Verdict::Inconclusive) => "❔",
            (Some(Ending::Passed) | None, _) => "✅",
        };
        let why = self.why().map(|why| format!(": {why}"));
        let title = format!("{sign} Proctor: {verdict}{}", why.unwrap_or_default());
        verdict.code().behind(&title)
    }

    /// The worst verdict of all; `None` where nothing was gated.
    pub fn verdict(&self) -> Option<Verdict> {
        let gated = self.comparisons.iter().filter_map(|one| one.gated.as_ref());
        gated.map(|gated| gated.verdict).max()
    }

    /// The reason for the verdict, in one line: the first hard break, or the metric that decided.
    pub fn why(&self) -> Option<String> {
        let mut hard = self.comparisons.iter().flat_map(|one| {
            let lines = one.gated.iter().flat_map(hard_breaks::lines);
            lines.map(move |line| format!("{}: {line}", one.title()))
        });
        if let Some(first) = hard.next() {
            return Some(match hard.count() {
                0 => first,
                more => format!("{first} (and {more} more)"),
            });
        }
        let (one, gated) = self.deciding()?;
        let Some(metric) = one.comparison.axis(gated.axis) else {
            return Some(format!("{}: {}: {}", one.title(), gated.axis, gated.why()));
        };
        let reason = gated.reason.iter().map(|reason| format!(": {reason}"));
        Some(format!(
            "{}: {} {} {}, margin {}{}",
            one.title(),
            gated.axis,
            change(metric),
            interval(metric, one.comparison.target),
            margin(metric.kind, gated.margin),
            reason.collect::<String>()
        ))
    }

    /// The metric whose verdict decided: the first that has the verdict over everything, else the worst.
    pub(crate) fn deciding(&self) -> Option<(&GatedComparison, &GatedAxis)> {
        let all = self.comparisons.iter().flat_map(|one| {
            one.gated.iter().flat_map(|gated| &gated.axes).map(move |metric| (one, metric))
        });
        // What improved decides only where nothing is worse.
        let verdict = self.verdict();
        let same = all.clone().find(|(_, metric)| Some(metric.verdict) == verdict);
        same.or_else(|| all.rev().max_by_key(|(_, metric)| metric.verdict))
    }

    /// Each comparison as a suite of tests: one for what may never happen, and one per gated metric.
    pub(crate) fn suites(&self) -> Vec<Suite> {
        self.comparisons.iter().filter_map(|one| self.suite(one)).collect()
    }

    fn suite(&self, one: &GatedComparison) -> Option<Suite> {
        let gated = one.gated.as_ref()?;
        let broken = hard_breaks::lines(gated);
        let kept = ["nothing of high importance was lost".to_owned()];
        let mut cases = vec![if broken.is_empty() {
            self.case("hard breaks", Verdict::NonInferior, &kept)
        } else {
            self.case("hard breaks", Verdict::Regressed, &broken)
        }];
        let unconfirmed = hard_breaks::unconfirmed(gated);
        if !unconfirmed.is_empty() {
            cases.push(self.case("not confirmed", Verdict::Inconclusive, &unconfirmed));
        }
        cases.extend(gated.axes.iter().map(|gated| {
            let Some(metric) = one.comparison.axis(gated.axis) else {
                return self.case(gated.axis.name(), gated.verdict, gated.reason.as_slice());
            };
            let repriced = one.comparison.repriced_words(gated.axis);
            let mut says = format!(
                "Δ = {} {} · margin {} → {} · {} · {} · evaluator {} · seed {}",
                change(metric),
                interval(metric, one.comparison.target),
                margin(metric.kind, gated.margin),
                gated.verdict,
                paired(metric),
                basis(metric),
                metric.evaluator,
                one.comparison.seed,
            );
            for reason in gated.reason.iter().chain(&repriced) {
                says += " · ";
                says += reason;
            }
            self.case(gated.axis.name(), gated.verdict, &[says])
        }));
        Some(Suite { name: one.title(), cases })
    }

    fn case(&self, name: &str, verdict: Verdict, messages: &[String]) -> TestCase {
        let outcome = match verdict {
            Verdict::Improved | Verdict::NonInferior => CaseOutcome::Passed,
            Verdict::Inconclusive if !self.fails_on_inconclusive => CaseOutcome::Skipped,
            Verdict::Inconclusive | Verdict::Regressed => CaseOutcome::Failed(verdict.name()),
        };
        let coded = messages.iter().map(|message| verdict.code().behind(message));
        TestCase { name: name.to_owned(), outcome, messages: coded.collect() }
    }
}

impl GatedComparison {
    /// The heading of its table: the strategy, or both where they differ.
    pub(crate) fn title(&self) -> String {
        let (baseline, candidate) = (&self.comparison.baseline, &self.comparison.candidate);
        if baseline == candidate {
            candidate.clone()
        } else {
            format!("{candidate} against {baseline}")
        }
    }

    /// Says of a side that it uses a mechanism of its provider alone; a stored baseline holds only its name.
    fn own_mechanism(&self) -> Option<String> {
        let sides = [&self.comparison.candidate, &self.comparison.baseline];
        let own = sides.into_iter().find(|name| {
            name.starts_with("claude-code-cached-micro") && !name.contains("micro.mode=")
        })?;
        Some(format!("note: {own}: {OWN_MECHANISM}"))
    }

    /// The gate's result for an axis.
    pub(crate) fn gated_axis(&self, axis: Axis) -> Option<&GatedAxis> {
        let axes = &self.gated.as_ref()?.axes;
        axes.iter().find(|gated| gated.axis == axis)
    }

    /// Says that the two sides came out the same in everything, if they did.
    fn unchanged(&self) -> Option<String> {
        let zero =
            |metric: &AxisFinding| metric.paired.counts.wins + metric.paired.counts.losses == 0;
        let all = &self.comparison;
        let sessions = display::many(all.coverage.paired_clusters, "session", "sessions");
        (all.axes.iter().all(zero) && all.broken_rules.is_empty())
            .then(|| format!("no change in any metric over {sessions}"))
    }

    /// A note on the correction for several comparisons at once; `None` where all differences are
    /// exact.
    fn correction(&self) -> Option<String> {
        let gated = self.gated.as_ref().filter(|gated| gated.family > 1)?;
        self.comparison.axes.iter().any(|metric: &AxisFinding| {
            metric.bounds.is_some_and(|bounds| bounds.error.is_some())
                && self.gated_axis(metric.axis).is_some()
        }).then(|| {
            format!(
                "one of {} gated together: `improved` and `regressed` are said at a level of 5 %/{}",
                gated.family, gated.family
            )
        })
    }

    fn notes(&self) -> Vec<String> {
        let comparison = &self.comparison;
        let mut notes: Vec<String> = self.own_mechanism().into_iter().collect();
        notes.extend(self.unchanged());
        if let Some(gated) = &self.gated {
            let broken = hard_breaks::lines(gated);
            let shown = broken.iter().take(MOST_BREAKS);
            notes.extend(shown.map(|line| format!("hard break: {line}")));
            let more = broken.len().saturating_sub(MOST_BREAKS);
            notes.extend((more > 0).then(|| format!("… and {more} more hard breaks")));
            notes.extend(hard_breaks::unconfirmed(gated));
            let absent = gated.axes.iter().filter(|gated| comparison.axis(gated.axis).is_none());
            notes.extend(
                absent.map(|gated| format!("{} is {}: {}", gated.axis, gated.verdict, gated.why())),
            );
            notes.extend(self.correction());
        }
        let sessions = comparison.coverage.paired_clusters;
        let scopes =
            comparison.axes.iter().filter_map(|one| Some((one.axis, one.scope(sessions)?)));
        notes.extend(scopes.map(|(axis, scope)| format!("{axis}: {scope}")));
        notes.extend(comparison.axes.iter().filter_map(warning));
        let gated = self.gated.iter();
        notes.extend(gated.map(|gated| format!("verdict: {}", gated.verdict)));
        notes
    }
}

fn row<const N: usize>(name: &str, cells: [String; N]) -> Row {
    sections::row(name, Role::Other, cells.map(Cell::text).into())
}

/// The tables of one comparison: what changed, what that rests on, and probe by probe.
fn tables(one: &GatedComparison) -> Vec<Section> {
    let comparison = &one.comparison;
    let differences = comparison.axes.iter().map(|metric| {
        let gated = one.gated_axis(metric.axis);
        let verdict = gated.map(|gated| match &gated.reason {
            Some(reason) => format!("{}: {reason}", gated.verdict),
            None => gated.verdict.to_string(),
        });
        let margin = gated.map(|gated| margin(metric.kind, gated.margin));
        let cells = [
            level(metric, metric.baseline),
            level(metric, metric.candidate),
            change(metric),
            interval(metric, comparison.target),
            margin.unwrap_or_else(|| "–".to_owned()),
            verdict.unwrap_or_else(|| "–".to_owned()),
        ];
        row(metric.axis.name(), cells)
    });
    let basis = comparison.axes.iter().map(|metric| {
        let cells = [paired(metric), basis(metric), metric.evaluator.to_owned()];
        row(metric.axis.name(), cells)
    });
    let changed = comparison.changed.iter().map(|probe| {
        let (id, percent) = hard_breaks::probe_and_percent(&probe.probe);
        let text = probe.text.as_ref();
        let cells = [
            text.map_or_else(|| "–".to_owned(), |text| display::short_fact(&text.value)),
            probe.axis.name().to_owned(),
            format!("{:.2}", probe.baseline),
            format!("{:.2}", probe.candidate),
            probe.lost_at.clone().unwrap_or_else(|| "–".to_owned()),
            if probe.high_importance { "high" } else { "normal" }.to_owned(),
            probe.session.clone(),
            format!("{percent} %"),
            probe.kind.clone(),
            id.to_owned(),
        ];
        let question = text.map(|text| display::short_fact(&text.question));
        row(&question.unwrap_or_else(|| probe.probe.clone()), cells)
    });
    let title = one.title();
    let mut sections = vec![
        Section::new("differences", differences)
            .fill("strategy", &title)
            .fill("baseline", &one.baseline_source)
            .fill("candidate", &one.candidate_source)
            .fill("target", comparison.target.name())
            .with_notes(one.notes()),
        Section::new("basis", basis)
            .fill("strategy", &title)
            .fill("seed", &comparison.seed.to_string()),
        Section::new("changed_probes", changed).fill("strategy", &title).at_most(MOST_CHANGED),
    ];
    sections.retain(|section| !section.table.rows.is_empty());
    sections
}
