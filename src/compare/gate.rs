//! The gate: may this change go in?
//!
//! Failures are looked for in this order: hard breaks (a session that newly dies, a probe of high
//! importance that was right and is wrong, a rule of the provider that is newly broken), coverage,
//! then the verdict of each declared metric.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::prices::PRICED;
use super::{
    BrokenRule, COMPARED, ChangedProbe, ComparableMetric, Comparison, Kind, MetricDifference,
    NewDeath,
};
use crate::stats::gate::{Target, Verdict};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::many;

/// Repeats on each side that must agree before a probe counts as lost, or a session as dead, where
/// results depend on chance.
pub const CONFIRM: usize = 3;

/// The rules that a change must meet.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Margin by metric, at least 0: how much worse the candidate may be. Only these metrics fail a
    /// build. An amount's margin is a share: 0.05 is 5 % more.
    pub margins: BTreeMap<&'static str, f64>,
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
        let margins = COMPARED.iter().filter_map(|it| Some((it.name, it.margin?)));
        Self {
            margins: margins.collect(),
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
    /// Why coverage is too low, in words.
    pub coverage: Option<String>,
    /// Metric by metric, those that have a margin.
    pub metrics: Vec<GatedMetric>,
    /// How many comparisons were gated together: where an error is estimated, `improved` and `regressed` are
    /// said at 5 % divided by it.
    pub family: usize,
}

/// The gate's result for one metric.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct GatedMetric {
    /// The metric.
    pub metric: &'static str,
    /// δ: how much worse it may be.
    pub margin: f64,
    /// Verdict.
    pub verdict: Verdict,
    /// Why it is `inconclusive`, in words.
    pub reason: Option<String>,
    /// How many sessions like these would make it clear; `None` where it is clear, or none would,
    /// or where repeats are what is missing.
    pub sessions_needed: Option<usize>,
}

impl GatedMetric {
    /// Why there is no difference.
    pub(crate) fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or("not measured")
    }
}

/// Looks at one comparison, one of a `family` that are gated together. `noise` gives the noise of a metric,
/// 0 where none is known.
pub fn judge(
    comparison: &Comparison,
    rules: &Rules,
    noise: &dyn Fn(&str) -> f64,
    family: usize,
) -> GateResult {
    // A replay by rules alone is exact; a model's summary or answer is one draw of many, and a
    // script may answer otherwise the next time, too.
    let is_exact = |metric: &str| metric != "accuracy" && !comparison.chance.touches(metric);
    let (lost, unconfirmed): (Vec<ChangedProbe>, Vec<ChangedProbe>) = comparison
        .changed
        .iter()
        .filter(|probe| rules.hard_break && probe.lost && probe.high_importance)
        .cloned()
        .partition(|probe| is_exact(probe.metric) || probe.repeats >= CONFIRM);
    let is_sure = |death: &NewDeath| {
        let ((before, old), (after, new)) = (death.baseline, death.candidate);
        let in_all = before == 0 && after == new && old.min(new) >= CONFIRM;
        !comparison.chance.touches("completion") || in_all
    };
    let (deaths, unconfirmed_deaths): (Vec<NewDeath>, Vec<NewDeath>) =
        comparison.deaths.iter().cloned().partition(is_sure);
    let share = comparison.coverage.share();
    let coverage = (share < rules.coverage).then(|| {
        let of = &comparison.coverage;
        let worst = of.worst().unwrap_or_default();
        format!(
            "{}: scored {} of the baseline's {} items in {} of {} sessions: {:.1} %, and {:.1} % is asked",
            worst.metric,
            worst.paired_items,
            worst.items,
            of.paired_sessions,
            of.sessions,
            share * 100.0,
            rules.coverage * 100.0
        )
    });
    let metrics = comparison.metrics.iter().filter_map(|metric| {
        let margin = *rules.margins.get(metric.metric)?;
        Some(one(metric, margin, noise(metric.metric), family))
    });
    let mut metrics: Vec<GatedMetric> = metrics.collect();
    if comparison.unpriced_sessions > 0 {
        doubt_costs(&mut metrics, comparison.unpriced_sessions, rules);
    }
    let broken = !lost.is_empty()
        || !deaths.is_empty()
        || !comparison.broken_rules.is_empty()
        || coverage.is_some();
    let worst = metrics.iter().map(|metric| metric.verdict).max();
    let verdict = if broken {
        Verdict::Regressed
    } else {
        // The best is only said where nothing is worse than it.
        let improved = metrics.iter().any(|it| it.verdict == Verdict::Improved);
        match worst {
            Some(worst) if !unconfirmed_deaths.is_empty() => worst.max(Verdict::Inconclusive),
            Some(Verdict::NonInferior) if improved => Verdict::Improved,
            Some(worst) => worst,
            None => Verdict::Inconclusive,
        }
    };
    GateResult {
        baseline: comparison.baseline.clone(),
        candidate: comparison.candidate.clone(),
        verdict,
        deaths,
        lost,
        unconfirmed_deaths,
        unconfirmed,
        broken_rules: comparison.broken_rules.clone(),
        coverage,
        metrics,
        family,
    }
}

/// Makes verdicts on costs inconclusive: of some sessions no cost was compared.
fn doubt_costs(metrics: &mut Vec<GatedMetric>, sessions: usize, rules: &Rules) {
    let margins = rules.margins.iter();
    for (metric, margin) in margins.filter(|(metric, _)| PRICED.contains(metric)) {
        let doubted = GatedMetric {
            metric,
            margin: *margin,
            verdict: Verdict::Inconclusive,
            reason: Some(format!(
                "the prices of {} are not those of the baseline: \
                 `proctor baseline refresh` measures it again",
                many(sessions, "session", "sessions")
            )),
            sessions_needed: None,
        };
        match metrics.iter_mut().find(|known| known.metric == *metric) {
            Some(known) if known.verdict == Verdict::Regressed => {}
            Some(known) => *known = doubted,
            None => metrics.push(doubted),
        }
    }
}

/// The verdict on one metric; where it is `inconclusive`, the reason, and how many sessions would make it
/// clear.
fn one(metric: &MetricDifference, margin: f64, noise: f64, family: usize) -> GatedMetric {
    let gated = |verdict, reason, sessions_needed| GatedMetric {
        metric: metric.metric,
        margin,
        verdict,
        reason,
        sessions_needed,
    };
    let unclear = |reason: String| gated(Verdict::Inconclusive, Some(reason), None);
    let is_amount = metric.kind == Kind::Amount;
    let Some(bounds) = metric.bounds else {
        let reason = if is_amount && metric.ratio.is_none() {
            "an amount is 0, and a ratio to nothing is no number"
        } else if metric.paired.by_session.n.sessions < 2 {
            "one session alone leaves the error unknown"
        } else {
            "a session was not scored in two repeats on both sides, which leaves the error unknown"
        };
        return unclear(reason.to_owned());
    };
    // On the scale of the bounds: of amounts the logarithm.
    let on_scale = is_amount.then(|| libm::log1p(margin));
    let margin = on_scale.unwrap_or(margin);
    let verdict = bounds.verdict(family, margin, noise);
    let missing = metric.missing_sessions;
    if missing > 0 && verdict != Verdict::Regressed {
        let ended = if is_amount {
            ", or ended at different calls"
        } else {
            ""
        };
        return unclear(format!("{missing} sessions are missing{ended}"));
    }
    // Pairs without a score, at their worst and at their best.
    if let Some((low, high)) = metric.paired.bounds {
        let point = metric.paired.by_session.point_estimate;
        let moved = || (bounds.moved(low - point), bounds.moved(high - point));
        let (worst, best) = metric.worst.unwrap_or_else(moved);
        let at_ends = [worst, best].map(|it| it.verdict(family, margin, noise));
        let is_held = |it: &Verdict| matches!(it, Verdict::Improved | Verdict::NonInferior);
        if is_held(&verdict) && at_ends.iter().all(is_held) {
            // Whether it is better may be open: that it is no worse is not.
            return gated(at_ends[0].max(verdict), None, None);
        }
        if at_ends.iter().any(|it| *it != verdict) {
            let unscored = metric.paired.unscored;
            return unclear(format!(
                "{unscored} pairs were not scored, and could turn the verdict"
            ));
        }
    }
    if verdict != Verdict::Inconclusive {
        return gated(verdict, None, None);
    }
    let (what, count, needed) = match &metric.suite {
        Some(suite) => {
            let seen = bounds.difference.abs();
            let distance = if margin > 0.0 { margin } else { seen };
            ("repeats", suite.repeats, suite.repeats_needed(distance))
        }
        None => ("sessions", bounds.sessions, bounds.sessions_needed(margin)),
    };
    let reason = match needed {
        _ if metric.suite.is_none() && count < FEWEST_SESSIONS => {
            "fewer than 6 sessions say nothing about others".to_owned()
        }
        Some(needed) => format!("{count} {what} are too few: about {needed} are needed"),
        None => format!("no number of {what} would decide it"),
    };
    let needed = needed.filter(|_| metric.suite.is_none());
    gated(verdict, Some(reason), needed)
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

    /// Sets one margin; the names that are known where this one is not.
    pub fn set_margin(&mut self, metric: &str, margin: f64) -> Result<(), String> {
        let Some(known) = ComparableMetric::named(metric) else {
            let names: Vec<&str> = COMPARED.iter().map(|metric| metric.name).collect();
            let names = names.join(", ");
            return Err(format!("no metric `{metric}` can be gated: {names}"));
        };
        let is_share = matches!(known.kind, Kind::Probes | Kind::Share);
        if is_share && margin > 1.0 {
            return Err(format!(
                "`{metric}` is a share: a margin of 0.05 is 5 points, and 1 is all"
            ));
        }
        self.margins.insert(known.name, margin);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
