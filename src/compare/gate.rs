//! The gate: may this change go in?
//!
//! Failures are looked for in this order: hard breaks (a session that newly dies, a probe of high
//! importance that was right and is wrong, a rule of the provider that is newly broken, facts that its
//! summariser no longer sees), coverage, then the verdict on each axis with a margin.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::axis::{Axis, Kind, Margins};
use super::judge::{AxisFinding, Findings, LEVEL, NOTHING, State, Target};
use super::prices::PRICED;
use super::{BrokenRule, ChangedProbe, NewDeath, NoteCode, Sample};
use crate::stats::bounds::Bounds;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::many;

/// Repeats on each side that must agree before a probe counts as lost, or a session as dead, where
/// results depend on chance.
pub const CONFIRM: usize = 3;

/// The verdict on one axis, or on a whole comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better by more than the margin.
    Improved,
    /// Not worse by the margin.
    NonInferior,
    /// The data allow both.
    Inconclusive,
    /// Worse.
    Regressed,
}

impl Verdict {
    /// Its name in files and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::NonInferior => "non-inferior",
            Self::Inconclusive => "inconclusive",
            Self::Regressed => "regressed",
        }
    }

    pub(crate) fn code(self) -> NoteCode {
        match self {
            Self::Improved => NoteCode::Improved,
            Self::NonInferior => NoteCode::NonInferior,
            Self::Inconclusive => NoteCode::Inconclusive,
            Self::Regressed => NoteCode::Regressed,
        }
    }

    /// The verdict on a difference, for a margin δ ≥ 0.
    ///
    /// `regressed` if the two-sided interval lies below 0 and the lower bound below −δ; `improved` if the
    /// difference is over δ and the interval above 0; `non-inferior` if the lower bound is at or above −δ (with
    /// a margin of 0, no change at all passes); else `inconclusive`. About a population nothing is said with
    /// fewer than 6 sessions.
    ///
    /// Of a `family` of comparisons that are gated together, `improved` and `regressed` are said at a level of
    /// 5 % divided by their number (Bonferroni), so that among all of them a false one stays as rare.
    /// `non-inferior` needs none of it: all must be. Nor are they said where sign flips of sessions bring as much
    /// as often as `flipped` says, if that is more than one time in twenty.
    pub fn of(
        bounds: &Bounds,
        target: Target,
        margin: f64,
        family: usize,
        flipped: Option<f64>,
    ) -> Self {
        if target == Target::Population && bounds.sessions < FEWEST_SESSIONS {
            return Self::Inconclusive;
        }
        // 1 − 1.02 is a little less than −0.02.
        let margin = margin + NOTHING;
        let level = 0.05 / family.max(1) as f64;
        let (low, high) = bounds.interval_at(level);
        let shown = flipped.is_none_or(|p| p <= LEVEL);
        if high < 0.0 && bounds.lower < -margin && shown {
            Self::Regressed
        } else if bounds.difference > margin && low > 0.0 && shown {
            Self::Improved
        } else if bounds.lower >= -margin {
            Self::NonInferior
        } else {
            Self::Inconclusive
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The rules that a change must meet.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// By how much the candidate may be worse. Only axes with a margin fail a build.
    pub margins: Margins,
    /// The subject of verdicts; by default `suite` if nothing depends on chance.
    pub target: Option<Target>,
    /// Whether a lost probe of high importance breaks the gate.
    pub hard_break: bool,
    /// Share of what the baseline scored that must be scored again.
    pub coverage: f64,
    /// Whether `inconclusive` fails too.
    pub fail_on_inconclusive: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            margins: Margins::default(),
            target: None,
            hard_break: true,
            coverage: 0.98,
            fail_on_inconclusive: false,
        }
    }
}

/// The gate's result for one strategy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "Gated")]
pub struct GateResult {
    /// The baseline strategy.
    pub baseline: String,
    /// The candidate strategy.
    pub candidate: String,
    /// The worst of all below.
    pub verdict: Verdict,
    /// Its code, which `proctor explain` tells more about.
    pub(crate) code: NoteCode,
    /// Sessions that newly die: each is a hard break.
    pub deaths: Vec<NewDeath>,
    /// Probes of high importance that were lost: each is a hard break.
    pub lost: Vec<ChangedProbe>,
    /// Sessions that died, and may have died by chance: nothing is better, or as good, before they are
    /// repeated.
    pub unconfirmed_deaths: Vec<NewDeath>,
    /// Probes of high importance that were lost in repeats too few to rule out chance.
    pub unconfirmed: Vec<ChangedProbe>,
    /// Rules that are newly broken: each is a hard break.
    pub broken_rules: Vec<BrokenRule>,
    /// What `run` would warn of, in words, where the baseline gave no cause: each is a hard break.
    pub avoided: Vec<String>,
    /// Why coverage is too low, in words.
    pub coverage: Option<String>,
    /// Axis by axis, those that have a margin.
    #[serde(rename = "metrics")]
    pub axes: Vec<GatedAxis>,
    /// What is worse and within the margin, or not gated, in words.
    pub notes: Vec<String>,
    /// How many comparisons were gated together: where an error is estimated, `improved` and `regressed` are
    /// said at 5 % divided by it.
    pub family: usize,
}

/// The gate's result for one axis.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct GatedAxis {
    /// The axis.
    #[serde(rename = "metric")]
    pub axis: Axis,
    /// δ: how much worse it may be.
    pub margin: f64,
    /// Verdict.
    pub verdict: Verdict,
    /// Why it is `inconclusive`, in words.
    pub reason: Option<String>,
    /// How many sessions like these would make it clear; `None` where it is clear, or none would.
    pub sessions_needed: Option<usize>,
}

impl GatedAxis {
    /// A verdict; an error says why there is none, and how many sessions would make it clear.
    fn new(axis: Axis, margin: f64, found: Result<Verdict, Unclear>) -> Self {
        let (verdict, reason, sessions_needed) = match found {
            Ok(verdict) => (verdict, None, None),
            Err((reason, needed)) => (Verdict::Inconclusive, Some(reason), needed),
        };
        Self { axis, margin, verdict, reason, sessions_needed }
    }

    /// Why there is no difference.
    pub(crate) fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or("not measured")
    }
}

/// Why nothing can be said of an axis, and how many sessions like these would make it clear.
type Unclear = (String, Option<usize>);

/// Gates one comparison, one of a `family` that are gated together. `sides` are baseline and candidate.
pub fn gate(findings: &Findings, sides: [&Sample; 2], rules: &Rules, family: usize) -> GateResult {
    let changed = findings.changed.iter();
    let hard = changed.filter(|probe| rules.hard_break && probe.lost && probe.high_importance);
    let (lost, unconfirmed): (Vec<_>, Vec<_>) = hard.cloned().partition(|probe| {
        // A replay by rules alone is exact; a model's summary or answer is one draw of many, and a
        // script may answer otherwise the next time, too.
        let drawn = probe.axis == Axis::Answers || findings.chance.touches(probe.axis);
        !drawn || probe.repeats >= CONFIRM
    });
    let deaths = findings.deaths.iter().cloned();
    let (deaths, unconfirmed_deaths): (Vec<NewDeath>, Vec<NewDeath>) =
        deaths.partition(|death| !findings.chance.touches(Axis::Completion) || is_in_all(death));
    let axes = findings.axes.iter().filter_map(|found| {
        let margin = rules.margins.get(found.axis)?;
        let target = findings.chance.target(findings.target, found.axis);
        Some(GatedAxis::new(found.axis, margin, verdict(found, margin, target, family)))
    });
    let mut axes: Vec<GatedAxis> = axes.collect();
    axes.extend(one_sided(findings, sides, rules));
    if findings.unpriced_sessions > 0 {
        doubt_costs(&mut axes, findings.unpriced_sessions, rules);
    }
    let avoided = newly_avoided(findings, sides, rules);
    let coverage = lacking(findings, rules.coverage);
    let whole = lost.is_empty() && deaths.is_empty() && findings.broken_rules.is_empty();
    let broken = !whole || !avoided.is_empty() || coverage.is_some();
    let worst = axes.iter().map(|axis| axis.verdict).max();
    let verdict = if broken {
        Verdict::Regressed
    } else {
        // The best is only said where nothing is worse than it, and nothing breaks.
        let improved = findings.broken[1].is_none()
            && axes.iter().any(|axis| axis.verdict == Verdict::Improved);
        match worst {
            Some(worst) if !unconfirmed_deaths.is_empty() => worst.max(Verdict::Inconclusive),
            Some(Verdict::Improved | Verdict::NonInferior) if improved => Verdict::Improved,
            Some(worst) => worst.max(Verdict::NonInferior),
            None => Verdict::Inconclusive,
        }
    };
    GateResult {
        baseline: findings.baseline.clone(),
        candidate: findings.candidate.clone(),
        verdict,
        code: verdict.code(),
        deaths,
        lost,
        unconfirmed_deaths,
        unconfirmed,
        broken_rules: findings.broken_rules.clone(),
        avoided,
        coverage,
        notes: notes(findings, &axes),
        axes,
        family,
    }
}

/// Axes with a margin that one side alone has: nothing says that they are as good as before.
fn one_sided(findings: &Findings, sides: [&Sample; 2], rules: &Rules) -> Vec<GatedAxis> {
    // Whether a program asks for summaries is its own business.
    let each = Axis::ALL.into_iter();
    let axes = each.filter(|axis| *axis != Axis::Plumbing && findings.axis(*axis).is_none());
    let found = axes.filter_map(|axis| {
        let margin = rules.margins.get(axis)?;
        let side = match sides.map(|side| side.has(axis)) {
            [false, true] => "the baseline",
            [true, false] => "the candidate",
            [true, true] | [false, false] => return None,
        };
        let reason = format!("{side} has none that could be compared");
        Some(GatedAxis::new(axis, margin, Err((reason, None))))
    });
    found.collect()
}

/// Whether a session died in all of enough repeats, and in none before.
fn is_in_all(death: &NewDeath) -> bool {
    let ((before, old), (after, new)) = (death.baseline, death.candidate);
    before == 0 && after == new && old.min(new) >= CONFIRM
}

/// The warnings that `run` has under the candidate alone. One about facts counts only if the candidate loses more of those
/// that the baseline keeps than the margin allows.
fn newly_avoided(
    findings: &Findings,
    [baseline, candidate]: [&Sample; 2],
    rules: &Rules,
) -> Vec<String> {
    let lost = findings.changed.iter().filter(|probe| probe.lost && probe.axis == Axis::Facts);
    let coverage = findings.coverage.by_axis.iter().find(|one| one.axis == Axis::Facts);
    let most = rules.margins.get(Axis::Facts).unwrap_or_default();
    let is_news = coverage.is_some_and(|facts| lost.count() as f64 > most * facts.items as f64);
    let unseen = candidate.unseen_losses().filter(|_| baseline.unseen_losses().is_none());
    unseen.filter(|_| is_news).into_iter().collect()
}

/// Why too little was scored again, in words.
fn lacking(findings: &Findings, asked: f64) -> Option<String> {
    let coverage = &findings.coverage;
    let share = coverage.share();
    let what = match coverage.worst() {
        Some(worst) => format!(
            "{}: scored {} of the baseline's {} items in",
            worst.axis, worst.paired_items, worst.items
        ),
        None => "scored".to_owned(),
    };
    if share >= asked {
        return None;
    }
    let (paired, all) = (coverage.paired_sessions, coverage.sessions);
    let [share, asked] = [share, asked].map(|share| share * 100.0);
    Some(format!("{what} {paired} of {all} sessions: {share:.1} %, and {asked:.1} % is asked"))
}

/// Lists the differences that are worse and pass: on both sides, within the margin, or without one.
fn notes(findings: &Findings, axes: &[GatedAxis]) -> Vec<String> {
    let passed = axes.iter().filter(|one| one.verdict <= Verdict::NonInferior);
    let differences = passed.filter_map(|gated| findings.axis(gated.axis));
    let worse = differences.filter(|found| found.difference() < 0.0);
    let words = worse.map(|found| format!("{}, within the margin", found.in_words()));
    let both = match &findings.broken {
        [Some(_), Some(why)] => Some(format!("both sides break: {why}")),
        _ => None,
    };
    let mut found: Vec<String> = both.into_iter().chain(words).collect();
    let lost = findings.changed.iter().filter(|probe| probe.lost);
    let fewer: BTreeSet<(&str, &str)> = lost.map(fact).collect();
    if !fewer.is_empty() {
        let facts = many(fewer.len(), "fact", "facts");
        let named: Vec<&str> = fewer.iter().take(3).map(|(_, name)| *name).collect();
        let more = if fewer.len() > named.len() { ", …" } else { "" };
        found.push(format!("{facts} fewer: {}{more}", named.join("; ")));
    }
    let each = findings.axes.iter();
    let open = each.filter(|found| !axes.iter().any(|gated| gated.axis == found.axis));
    let open: Vec<String> = open.map(AxisFinding::in_words).collect();
    if !open.is_empty() {
        found.push(format!("not gated: {}", open.join(", ")));
    }
    found
}

/// A changed probe as one fact: its session, and its question or id.
fn fact(probe: &ChangedProbe) -> (&str, &str) {
    let id = probe.probe.rsplit_once('@').map_or(&*probe.probe, |(id, _)| id);
    let text = probe.text.as_ref().map(|text| &*text.question);
    (&probe.session, text.unwrap_or(id))
}

/// Makes verdicts on the bill inconclusive: of some sessions no bill was compared.
fn doubt_costs(axes: &mut Vec<GatedAxis>, sessions: usize, rules: &Rules) {
    let Some(margin) = rules.margins.get(PRICED) else {
        return;
    };
    let reason = format!(
        "the prices of {} are not those of the baseline: `proctor baseline refresh` measures it again",
        many(sessions, "session", "sessions")
    );
    let doubted = GatedAxis::new(PRICED, margin, Err((reason, None)));
    match axes.iter_mut().find(|known| known.axis == PRICED) {
        Some(known) if known.verdict == Verdict::Regressed => {}
        Some(known) => *known = doubted,
        None => axes.push(doubted),
    }
}

/// The verdict on one axis; where it is `inconclusive`, the reason, and how many sessions would make it clear.
fn verdict(
    found: &AxisFinding,
    margin: f64,
    target: Target,
    family: usize,
) -> Result<Verdict, Unclear> {
    if let (State::NotComparable, Some(why)) = (found.state, &found.note) {
        return Err((format!("not comparable: {why}"), None));
    }
    let Some(bounds) = found.bounds else {
        let reason = if found.kind == Kind::Total && found.baseline <= 0.0 {
            "the baseline's total is 0, and a share of nothing is no number"
        } else {
            "one session alone leaves the error unknown"
        };
        return Err((reason.to_owned(), None));
    };
    // What is better or worse is so by its test, too.
    let flipped = found.p().filter(|_| target == Target::Population);
    let verdict = Verdict::of(&bounds, target, margin, family, flipped);
    let missing = found.missing_sessions;
    if missing > 0 && verdict != Verdict::Regressed {
        let ended = match found.kind {
            Kind::Total => ", have no price, or ended at different calls",
            Kind::Probes | Kind::Share | Kind::Count => "",
        };
        return Err((format!("{missing} sessions are missing{ended}"), None));
    }
    // Pairs without a score, or with one that is a range, at their worst and at their best.
    if let Some((worst, best)) = found.ends {
        let at_ends = [worst, best].map(|end| Verdict::of(&end, target, margin, family, flipped));
        let all = [verdict, at_ends[0], at_ends[1]];
        if all.iter().all(|verdict| *verdict <= Verdict::NonInferior) {
            // Whether it is better may be open: that it is no worse is not.
            return Ok(at_ends[0].max(verdict));
        }
        // Where the sessions are too few by themselves, that is said.
        if verdict != Verdict::Inconclusive && at_ends.iter().any(|end| *end != verdict) {
            let reason = format!("{}, which could turn the verdict", found.open());
            return Err((reason, None));
        }
    }
    match verdict {
        Verdict::Inconclusive => Err(too_few(&bounds, margin)),
        clear => Ok(clear),
    }
}

/// That there are too few sessions, and how many would be enough.
fn too_few(bounds: &Bounds, margin: f64) -> Unclear {
    let (sessions, needed) = (bounds.sessions, bounds.sessions_needed(margin));
    if sessions < FEWEST_SESSIONS {
        return ("fewer than 6 sessions say nothing about others".to_owned(), needed);
    }
    let width = (bounds.interval_upper - bounds.interval_lower) * 100.0;
    let wide = if margin > 0.0 && width > margin * 200.0 {
        format!("the interval is {width:.0} points wide, more than twice the margin: ")
    } else {
        String::new()
    };
    let reason = match needed {
        Some(needed) => format!("{wide}{sessions} sessions are too few: about {needed} are needed"),
        None => format!("{wide}no number of sessions would decide it"),
    };
    (reason, needed)
}

/// How a gate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Ended")]
pub enum Ending {
    /// Nothing speaks against the change.
    Passed,
    /// Something regressed.
    Failed,
    /// Something is inconclusive, and that was to fail.
    Inconclusive,
}

impl Rules {
    /// How a gate over several strategies ends.
    pub fn ending<'a>(&self, gated: impl IntoIterator<Item = &'a GateResult>) -> Ending {
        let worst = gated.into_iter().map(|gated| gated.verdict).max();
        match worst {
            Some(Verdict::Regressed) => Ending::Failed,
            Some(Verdict::Inconclusive) | None if self.fail_on_inconclusive => Ending::Inconclusive,
            _ => Ending::Passed,
        }
    }
}

#[cfg(test)]
mod tests;
