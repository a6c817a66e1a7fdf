//! Comparisons on one screen: what changed in a few rows each, the verdict, and what was lost.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::difference::{change, interval, level, margin};
use super::hard_breaks::{self, fact_of, probe_and_percent};
use super::{Comparisons, GatedComparison, MOST_BREAKS};
use crate::compare::gate::{GateResult, Verdict};
use crate::compare::{
    Axis, AxisFinding, ChangedProbe, NoteCode, State, Target, VerdictLine, of_pair,
};
use crate::report::display::many;
use crate::report::evidence::capital;
use crate::report::grid::{GridRow, INDENT};
use crate::report::screen::Room;
use crate::report::terminal::{Terminal, add};
use crate::report::{Report, escape};

/// Where the rest is.
const MORE: &str = "-o comment.md (of `run`: --comparison-output): for a pull request; --tables: every metric, what it rests on, and every fact that changed";

impl Terminal {
    /// Lays comparisons out; as many of them as there is room for, the worst first.
    pub(in crate::report) fn compared(
        self,
        report: &Report,
        compared: &Comparisons,
        room: Room,
    ) -> Vec<String> {
        let mut comparisons: Vec<&GatedComparison> = compared.comparisons.iter().collect();
        comparisons.sort_by_key(|one| Reverse(one.gated.as_ref().map(|gated| gated.verdict)));
        let [rows, lost, sentences, _] = room;
        // Each takes some six lines.
        let shown = comparisons.len().min((rows / 3).max(1));
        let first = comparisons.first().map(|one| sides(one));
        let one_pair = comparisons.iter().all(|one| Some(sides(one)) == first);
        let mut out = self.paragraph("", &title(compared, one_pair), INDENT.len());
        add(&mut out, self.notices(report));
        for one in &comparisons[..shown] {
            add(&mut out, self.rows_of(one, &heading(one, one_pair)));
        }
        let more = comparisons.len() - shown;
        if more > 0 {
            let others = many(more, "more comparison", "more comparisons");
            out.push(format!("{INDENT}… and {others}: --tables"));
        }
        let alone = comparisons.len() == 1;
        let each = comparisons.iter();
        let said: Vec<VerdictLine> = each
            .map(|one| sentence(one, (!alone).then(|| heading(one, one_pair)).as_deref()))
            .collect();
        add(&mut out, self.verdict(&said, sentences));
        let mut ends = self.losses(&comparisons, lost);
        ends.extend(self.beside("Sure?", &trust(compared)));
        ends.extend(self.beside("More", MORE));
        add(&mut out, ends);
        out
    }

    fn rows_of(self, one: &GatedComparison, heading: &str) -> Vec<String> {
        let heads = ["before", "after", "change"].map(str::to_owned);
        let mut rows = vec![GridRow::of("", heads)];
        for metric in shown(one) {
            let gated = one.gated_axis(metric.axis);
            let verdict = gated.map_or(metric.state.name(), |gated| gated.verdict.name());
            let mut difference = change(metric);
            let ends = interval(metric, one.comparison.target);
            if ends != "exact" {
                difference.extend([" ", &ends]);
            }
            let [before, after] =
                [metric.baseline, metric.candidate].map(|side| level(metric, side));
            let mut row = GridRow::of(metric.axis.name(), [before, after, difference]);
            verdict.clone_into(&mut row.end);
            row.below = metric.scope(one.comparison.coverage.paired_clusters).unwrap_or_default();
            rows.push(row);
        }
        let mut out = vec![self.heading(&escape::plain(heading))];
        out.extend(self.grid(&rows));
        out
    }

    /// Facts of high importance that the candidates lost.
    fn losses(self, comparisons: &[&GatedComparison], most: usize) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let lost = comparisons.iter().flat_map(|one| lost(one));
        let lost: Vec<&ChangedProbe> = lost.filter(|probe| seen.insert(fact_of(probe))).collect();
        let mut lines = Vec::new();
        if !lost.is_empty() {
            let facts = many(lost.len(), "fact", "facts");
            lines.push(format!("{facts} of high importance"));
        }
        for probe in lost.iter().take(most) {
            let at = probe.lost_at.as_deref().unwrap_or("a call that is not known");
            let fate = format!("at {at}, in session {}", probe.session);
            let (id, _) = probe_and_percent(&probe.probe);
            let unknown = format!("the {} probe {id}", probe.kind);
            let (question, value) = match &probe.text {
                Some(text) => (&text.question, &*text.value),
                None => (&unknown, ""),
            };
            let (question, value) = (escape::plain(question), escape::plain(value));
            lines.extend(self.fact(&question, &value, &fate));
        }
        self.labelled("Lost", lines)
    }
}

/// `main → reports/new`.
fn sides(one: &GatedComparison) -> String {
    format!("{} → {}", one.baseline_source, one.candidate_source)
}

/// The strategy, and both sides where several pairs of them are compared.
fn heading(one: &GatedComparison, one_pair: bool) -> String {
    if one_pair { one.title() } else { format!("{}: {}", sides(one), one.title()) }
}

/// `gate: non-inferior: main → reports/new, 8 sessions`; several pairs are named one by one below.
fn title(compared: &Comparisons, one_pair: bool) -> String {
    let what = match compared.verdict() {
        Some(verdict) => format!("gate: {verdict}"),
        None => "compare".to_owned(),
    };
    let Some(one) = compared.comparisons.first().filter(|_| one_pair) else {
        return what;
    };
    let sessions = many(one.comparison.coverage.paired_clusters, "session", "sessions");
    escape::plain(&format!("{what}: {}, {sessions}", sides(one)))
}

/// The axes of the screen, and what is worse or not decided besides. Of facts and answers the ones that can be
/// compared.
fn shown(one: &GatedComparison) -> impl Iterator<Item = &AxisFinding> {
    let kept = one.comparison.kept().map(|found| found.axis);
    one.comparison.axes.iter().filter(move |found| {
        let gated = one.gated_axis(found.axis);
        let open = gated
            .is_some_and(|one| matches!(one.verdict, Verdict::Regressed | Verdict::Inconclusive));
        (match found.axis {
            Axis::Bill | Axis::Plumbing | Axis::Actions | Axis::Tokens | Axis::Calls => true,
            Axis::Facts | Axis::Answers => kept == Some(found.axis),
            Axis::Completion => found.baseline.min(found.candidate) < 1.0,
            Axis::Refused => found.baseline.max(found.candidate) > 0.0,
            Axis::Waiting => false,
        }) || open
    })
}

/// Facts of high importance that a candidate lost; without a gate, those that were right in all repeats and
/// are wrong in all.
fn lost(one: &GatedComparison) -> impl Iterator<Item = &ChangedProbe> {
    let gated = one.gated.iter().flat_map(|gated| &gated.lost);
    let ungated = one.gated.is_none();
    let all = one.comparison.changed.iter();
    let changed = all.filter(move |probe| ungated && probe.lost && probe.high_importance);
    gated.chain(changed)
}

/// The verdict on one comparison, with its heading where there are several.
fn sentence(one: &GatedComparison, heading: Option<&str>) -> VerdictLine {
    let named = heading.map_or_else(String::new, |heading| format!("{heading}: "));
    let Some(gated) = &one.gated else {
        let said = of_pair(&one.comparison);
        return VerdictLine { text: named + &said.text, ..said };
    };
    let mut text = format!("{}: {named}", capital(gated.verdict.name()));
    text += &reasons(one, gated).join("; ");
    for note in &gated.notes {
        let _ = write!(text, ". {}", capital(note));
    }
    VerdictLine::new(gated.code, text + ".")
}

/// The reasons for a verdict: hard breaks first, then the metrics with that verdict.
fn reasons(one: &GatedComparison, gated: &GateResult) -> Vec<String> {
    if let Some(unchanged) = one.unchanged() {
        return vec![unchanged];
    }
    let mut reasons = hard_breaks::in_short(gated);
    if gated.verdict == Verdict::Inconclusive {
        reasons.extend(hard_breaks::unconfirmed(gated));
    }
    let more = reasons.len().saturating_sub(MOST_BREAKS);
    reasons.truncate(MOST_BREAKS);
    if more > 0 {
        reasons.push(many(more, "more hard break", "more hard breaks"));
    }
    // Where both sides break, the verdict on better metrics is no better than this.
    let capped = gated.verdict == Verdict::NonInferior;
    let decisive = gated
        .axes
        .iter()
        .filter(|one| one.verdict == gated.verdict || capped && one.verdict < gated.verdict);
    for decisive in decisive {
        let axis = decisive.axis;
        let Some(metric) = one.comparison.axis(axis) else {
            reasons.push(format!("{axis}: {}", decisive.why()));
            continue;
        };
        let reason = decisive.reason.as_ref().map(|reason| format!(" ({reason})"));
        let (change, margin) = (change(metric), margin(metric.kind, decisive.margin));
        reasons.push(format!("{axis} {change}, margin {margin}{}", reason.unwrap_or_default()));
    }
    reasons
}

/// Says which sessions the differences are about, and if nothing in them depends on chance.
fn trust(compared: &Comparisons) -> String {
    let comparisons = compared.comparisons.iter().map(|one| &one.comparison);
    let of_suite = comparisons.clone().all(|one| one.target == Target::Suite);
    let about = if of_suite {
        "Differences are about these sessions, and say nothing about others (`--target population`)."
    } else {
        "Differences are about sessions like these; in brackets the 95 % interval."
    };
    let mut text = about.to_owned();
    let axes = comparisons.flat_map(|one| &one.axes);
    if axes.clone().filter_map(|found| found.bounds).all(|bounds| bounds.is_exact()) {
        text += " Nothing in them depends on chance.";
    } else if of_suite {
        text += " Those with an interval are about sessions like these.";
    }
    let apart = axes.filter(|found| found.state == State::NotComparable);
    let reasons: BTreeSet<&str> = apart.filter_map(|found| found.note.as_deref()).collect();
    for why in reasons {
        let sentence = format!("Not comparable: {why}");
        let _ = write!(text, " {}.", NoteCode::NotComparable.behind(&sentence));
    }
    for (code, note) in compared.notes() {
        let _ = write!(text, " {}.", code.behind(&capital(&note)));
    }
    text
}
