//! The gate: may this change go in?
//!
//! What breaks it is looked at in this order: hard breaks (a probe of high importance that was right
//! and is wrong, a rule of the provider that is newly broken), coverage, then the verdict of each
//! declared metric.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{BrokenRule, COMPARED, ChangedProbe, Compared, Comparison, Kind, MetricDifference};
use crate::stats::gate::{Target, Verdict};

/// Fresh answers on each side that must agree before a probe counts as lost, with live models.
pub const CONFIRM: usize = 3;

/// What is asked of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Margin by metric, at least 0: how much worse the candidate may be. Only these metrics fail a
    /// build. An amount's margin is a share: 0.05 is 5 % more.
    pub margins: BTreeMap<&'static str, f64>,
    /// What verdicts are about; by default `suite` where nothing depends on chance.
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
            margins: COMPARED
                .iter()
                .filter_map(|metric| Some((metric.name, metric.margin?)))
                .collect(),
            target: None,
            hard_break: true,
            coverage: 0.98,
            fail_on_inconclusive: false,
        }
    }
}

/// What the gate says of one strategy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Gated {
    /// The baseline strategy.
    pub baseline: String,
    /// The candidate strategy.
    pub candidate: String,
    /// The worst of all below.
    pub verdict: Verdict,
    /// Probes of high importance that were lost: each is a hard break.
    pub lost: Vec<ChangedProbe>,
    /// Rules that are newly broken: each is a hard break.
    pub broken_rules: Vec<BrokenRule>,
    /// Why coverage is too low, in words.
    pub coverage: Option<String>,
    /// Metric by metric, those that have a margin.
    pub metrics: Vec<GatedMetric>,
}

/// What the gate says of one metric.
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
    /// How many sessions like these would make it clear; nothing where it is clear, or none would.
    pub sessions_needed: Option<usize>,
}

/// Looks at one comparison. `noise` gives the noise of a metric, 0 where none is known.
pub fn judge(comparison: &Comparison, rules: &Rules, noise: &dyn Fn(&str) -> f64) -> Gated {
    let confirmed = |probe: &&ChangedProbe| {
        // String matching is exact; an answer of a model is not.
        probe.metric != "accuracy" || probe.repeats >= CONFIRM
    };
    let lost: Vec<ChangedProbe> = comparison
        .changed
        .iter()
        .filter(|probe| rules.hard_break && probe.lost && probe.high_importance)
        // A weak reader's miss is no loss: the text may still stand there.
        .filter(|probe| probe.metric != "extract")
        .filter(confirmed)
        .cloned()
        .collect();
    let share = comparison.coverage.share();
    let coverage = (share < rules.coverage).then(|| {
        let of = &comparison.coverage;
        format!(
            "scored {} of the baseline's {} items in {} of {} sessions: {:.1} %, and {:.1} % is asked",
            of.paired_items,
            of.items,
            of.paired_sessions,
            of.sessions,
            share * 100.0,
            rules.coverage * 100.0
        )
    });
    let metrics: Vec<GatedMetric> = comparison
        .metrics
        .iter()
        .filter_map(|metric| {
            let margin = *rules.margins.get(metric.metric)?;
            Some(one(metric, margin, noise(metric.metric)))
        })
        .collect();
    let broken = !lost.is_empty() || !comparison.broken_rules.is_empty() || coverage.is_some();
    let worst = metrics.iter().map(|metric| metric.verdict).max();
    let verdict = if broken {
        Verdict::Regressed
    } else {
        // The best is only said where nothing is worse than it.
        let improved = metrics
            .iter()
            .any(|metric| metric.verdict == Verdict::Improved);
        match worst {
            Some(Verdict::NonInferior) if improved => Verdict::Improved,
            Some(worst) => worst,
            None => Verdict::Inconclusive,
        }
    };
    Gated {
        baseline: comparison.baseline.clone(),
        candidate: comparison.candidate.clone(),
        verdict,
        lost,
        broken_rules: comparison.broken_rules.clone(),
        coverage,
        metrics,
    }
}

fn one(metric: &MetricDifference, margin: f64, noise: f64) -> GatedMetric {
    let margin_on_scale = match metric.kind {
        Kind::Amount => libm::log1p(margin),
        Kind::Probes | Kind::Share | Kind::Count => margin,
    };
    let gated = |verdict, reason: Option<String>, sessions_needed| GatedMetric {
        metric: metric.metric,
        margin,
        verdict,
        reason,
        sessions_needed,
    };
    let Some(bounds) = metric.bounds else {
        let reason = "one session alone leaves the error unknown";
        return gated(Verdict::Inconclusive, Some(reason.to_owned()), None);
    };
    let verdict = bounds.verdict(margin_on_scale, noise);
    if metric.missing_sessions > 0 && verdict != Verdict::Regressed {
        let reason = format!("{} sessions are missing", metric.missing_sessions);
        return gated(Verdict::Inconclusive, Some(reason), None);
    }
    // Pairs without a score, at their worst and at their best.
    if let Some((low, high)) = metric.paired.bounds {
        let point = metric.paired.by_session.point_estimate;
        let shifted = |to: f64| {
            let shift = to - point;
            let mut moved = bounds;
            for value in [
                &mut moved.difference,
                &mut moved.lower,
                &mut moved.upper,
                &mut moved.interval_lower,
                &mut moved.interval_upper,
            ] {
                *value += shift;
            }
            moved.verdict(margin_on_scale, noise)
        };
        if shifted(low) != verdict || shifted(high) != verdict {
            let reason = format!(
                "{} pairs were not scored, and could turn the verdict",
                metric.paired.unscored
            );
            return gated(Verdict::Inconclusive, Some(reason), None);
        }
    }
    if verdict != Verdict::Inconclusive {
        return gated(verdict, None, None);
    }
    let needed = bounds.sessions_needed(margin_on_scale);
    let reason = if bounds.sessions < crate::stats::paired::FEWEST_SESSIONS {
        "fewer than 6 sessions say nothing about others".to_owned()
    } else {
        match needed {
            Some(needed) => format!(
                "{} sessions are too few: about {needed} are needed",
                bounds.sessions
            ),
            None => "no number of sessions would decide it".to_owned(),
        }
    };
    gated(verdict, Some(reason), needed)
}

/// How a gate ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nothing speaks against the change.
    Passed,
    /// Something regressed.
    Failed,
    /// Something is inconclusive, and that fails as well.
    Inconclusive,
}

impl Rules {
    /// How a gate over several strategies ends.
    pub fn ending<'a>(&self, gated: impl IntoIterator<Item = &'a Gated>) -> Ending {
        let worst = gated.into_iter().map(|gated| gated.verdict).max();
        match worst {
            Some(Verdict::Regressed) => Ending::Failed,
            Some(Verdict::Inconclusive) | None if self.fail_on_inconclusive => Ending::Inconclusive,
            _ => Ending::Passed,
        }
    }

    /// Sets one margin; the names that are known where this one is not.
    pub fn set_margin(&mut self, metric: &str, margin: f64) -> Result<(), String> {
        let Some(known) = Compared::named(metric) else {
            let names: Vec<&str> = COMPARED.iter().map(|metric| metric.name).collect();
            return Err(format!(
                "no metric `{metric}` can be gated: {}",
                names.join(", ")
            ));
        };
        self.margins.insert(known.name, margin);
        Ok(())
    }
}
