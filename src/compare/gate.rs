//! The gate: may this change go in?
//!
//! Failures are looked for in this order: hard breaks (a session that newly dies, a probe of high
//! importance that was right and is wrong, a rule of the provider that is newly broken), coverage,
//! then the verdict of each declared metric.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    BrokenRule, COMPARED, ChangedProbe, ComparableMetric, Comparison, Kind, MetricDifference,
    NewDeath,
};
use crate::stats::gate::{Target, Verdict};
use crate::stats::paired::FEWEST_SESSIONS;

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
        // A weak reader's miss is not a loss: the text may still be in the prompt.
        .filter(|probe| probe.metric != "extract")
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
    let metrics: Vec<GatedMetric> = comparison
        .metrics
        .iter()
        .filter_map(|metric| {
            let margin = *rules.margins.get(metric.metric)?;
            Some(one(metric, margin, noise(metric.metric), family))
        })
        .collect();
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
    let margin = if is_amount {
        libm::log1p(margin)
    } else {
        margin
    };
    let verdict = bounds.verdict(family, margin, noise);
    if metric.missing_sessions > 0 && verdict != Verdict::Regressed {
        let ended = if is_amount {
            ", or ended at different calls"
        } else {
            ""
        };
        return unclear(format!(
            "{} sessions are missing{ended}",
            metric.missing_sessions
        ));
    }
    // Pairs without a score, at their worst and at their best.
    if let Some((low, high)) = metric.paired.bounds {
        let point = metric.paired.by_session.point_estimate;
        let moved = || (bounds.moved(low - point), bounds.moved(high - point));
        let (worst, best) = metric.worst.unwrap_or_else(moved);
        if [worst, best]
            .iter()
            .any(|it| it.verdict(family, margin, noise) != verdict)
        {
            return unclear(format!(
                "{} pairs were not scored, and could turn the verdict",
                metric.paired.unscored
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
    gated(
        verdict,
        Some(reason),
        needed.filter(|_| metric.suite.is_none()),
    )
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
            return Err(format!(
                "no metric `{metric}` can be gated: {}",
                names.join(", ")
            ));
        };
        self.margins.insert(known.name, margin);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Chance, ProbeSample, Sample, SessionSample, Settings};
    use crate::record::Importance;

    /// Twenty sessions of ten probes, all right; each session weighs a little less than the one before.
    fn sample() -> Sample {
        let probe = || ProbeSample {
            kind: "recall".to_owned(),
            importance: Importance::High,
            survival: vec![1.0],
            extract: Vec::new(),
            accuracy: vec![1.0],
            answers: Vec::new(),
            lost_at: None,
        };
        let session = |at: u32| SessionSample {
            metrics: BTreeMap::from([
                ("completion".to_owned(), vec![1.0]),
                ("tokens".to_owned(), vec![1_000.0 + f64::from(at)]),
            ]),
            probes: (0..10).map(|at| (format!("p{at}@50"), probe())).collect(),
            ..SessionSample::default()
        };
        Sample {
            sessions: (0..20)
                .map(|at| (format!("s{at:02}"), session(at)))
                .collect(),
            ..Sample::default()
        }
    }

    fn gated(
        alter: impl Fn(&mut Sample),
        chance: Chance,
        rules: &Rules,
    ) -> (Comparison, GateResult) {
        let baseline = sample();
        let mut candidate = sample();
        alter(&mut candidate);
        let settings = Settings {
            target: Target::Population,
            chance,
            seed: 1,
        };
        let comparison = Comparison::of(&baseline, &candidate, settings);
        let gated = judge(&comparison, rules, &|_| 0.0, 1);
        (comparison, gated)
    }

    fn dies(sample: &mut Sample) {
        let session = sample.sessions.get_mut("s07").unwrap();
        session.metrics.insert("completion".to_owned(), vec![0.5]);
        session.dead = 1;
        session.died_at = Some("call 31".to_owned());
    }

    #[test]
    fn one_session_of_twenty_that_newly_dies_breaks_the_gate_though_no_mean_is_sure() {
        let (_, broken) = gated(dies, Chance::Answers, &Rules::default());
        let completion = broken.metrics.iter().find(|m| m.metric == "completion");
        assert_eq!(completion.unwrap().verdict, Verdict::Inconclusive);
        assert_eq!(broken.verdict, Verdict::Regressed);
        assert_eq!(broken.deaths[0].session, "s07");
        assert_eq!(broken.deaths[0].at.as_deref(), Some("call 31"));
        // By chance once: the report says so, and nothing is as good as before.
        let (_, unsure) = gated(dies, Chance::Everywhere, &Rules::default());
        assert_eq!(
            (unsure.deaths.len(), unsure.unconfirmed_deaths.len()),
            (0, 1)
        );
        assert_eq!(unsure.verdict, Verdict::Inconclusive);
        let (_, same) = gated(|_| {}, Chance::Everywhere, &Rules::default());
        assert_eq!(same.verdict, Verdict::NonInferior);
    }

    #[test]
    fn one_draw_of_a_live_summariser_loses_no_probe_for_sure() {
        let lose = |sample: &mut Sample| {
            let session = sample.sessions.get_mut("s03").unwrap();
            session.probes.get_mut("p4@50").unwrap().survival = vec![0.0];
        };
        let (_, exact) = gated(lose, Chance::Answers, &Rules::default());
        assert_eq!((exact.lost.len(), exact.unconfirmed.len()), (1, 0));
        assert_eq!(exact.verdict, Verdict::Regressed);
        let (_, by_chance) = gated(lose, Chance::Everywhere, &Rules::default());
        assert_eq!((by_chance.lost.len(), by_chance.unconfirmed.len()), (0, 1));
        assert_ne!(by_chance.verdict, Verdict::Regressed);
    }

    #[test]
    fn what_is_always_scored_does_not_hide_the_answers_that_are_missing() {
        // Eight answers of 200: 96 % of them, and 98 % of all items.
        let silent = |sample: &mut Sample| {
            for session in sample.sessions.values_mut().take(8) {
                session.probes.get_mut("p0@50").unwrap().accuracy.clear();
            }
        };
        let (comparison, gated) = gated(silent, Chance::Answers, &Rules::default());
        assert!((comparison.coverage.share() - 0.96).abs() < 1e-12);
        let says = gated.coverage.unwrap();
        assert!(
            says.starts_with("accuracy: scored 192 of the baseline's 200 items"),
            "{says}"
        );
        assert_eq!(gated.verdict, Verdict::Regressed);
    }

    /// The verdict on one metric without a rule for coverage.
    fn said(alter: impl Fn(&mut Sample), metric: &str) -> (Verdict, String) {
        let rules = Rules {
            coverage: 0.0,
            ..Rules::default()
        };
        let (_, gated) = gated(alter, Chance::Nowhere, &rules);
        let mut metrics = gated.metrics.into_iter();
        let found = metrics.find(|found| found.metric == metric).unwrap();
        (found.verdict, found.reason.unwrap_or_default())
    }

    #[test]
    fn what_is_missing_is_never_as_good_as_before() {
        use Verdict::{Inconclusive, NonInferior, Regressed};
        let (verdict, reason) = said(|_| {}, "completion");
        assert_eq!((verdict, &*reason), (NonInferior, ""));
        let gone = |sample: &mut Sample| {
            sample.sessions.remove("s07");
        };
        let (verdict, reason) = said(gone, "completion");
        assert_eq!(
            (verdict, &*reason),
            (Inconclusive, "1 sessions are missing")
        );
        // A tenth of the answers, by which the margin of a twentieth could be missed.
        let silent = |sample: &mut Sample| {
            for session in sample.sessions.values_mut() {
                session.probes.get_mut("p0@50").unwrap().accuracy.clear();
            }
        };
        let (verdict, reason) = said(silent, "accuracy");
        let turns = "20 pairs were not scored, and could turn the verdict";
        assert_eq!((verdict, &*reason), (Inconclusive, turns));
        // It does not make a sure loss unsure.
        let worse = |sample: &mut Sample| {
            silent(sample);
            for session in sample.sessions.values_mut() {
                for at in 1..6 {
                    let probe = session.probes.get_mut(&format!("p{at}@50")).unwrap();
                    probe.accuracy = vec![0.0];
                }
            }
        };
        assert_eq!(said(worse, "accuracy").0, Regressed);
    }

    #[test]
    fn a_probe_is_lost_where_no_repeat_has_it_and_unscored_where_one_side_does_not_ask_it() {
        let changed = |survival: &[f64]| {
            let lose = |sample: &mut Sample| {
                let session = sample.sessions.get_mut("s03").unwrap();
                session.probes.get_mut("p4@50").unwrap().survival = survival.to_vec();
            };
            let (comparison, _) = gated(lose, Chance::Nowhere, &Rules::default());
            comparison.changed[0].lost
        };
        assert!(changed(&[0.0; 3]));
        assert!(!changed(&[1.0, 0.0, 0.0]));
        let more = |sample: &mut Sample| {
            let session = sample.sessions.get_mut("s03").unwrap();
            let probe = session.probes["p4@50"].clone();
            session.probes.insert("p99@50".to_owned(), probe);
        };
        let (comparison, _) = gated(more, Chance::Nowhere, &Rules::default());
        assert_eq!(comparison.metric("survival").unwrap().paired.unscored, 1);
    }

    #[test]
    fn an_amount_of_nothing_has_no_margin_and_says_so() {
        let mut rules = Rules::default();
        rules.set_margin("tokens", 0.02).unwrap();
        let tokens = |gated: &GateResult| {
            let found = gated.metrics.iter().find(|m| m.metric == "tokens");
            found.unwrap().clone()
        };
        let dearer = |sample: &mut Sample| {
            for session in sample.sessions.values_mut() {
                session.metrics.get_mut("tokens").unwrap()[0] *= 1.5;
            }
        };
        let (comparison, more) = gated(dearer, Chance::Everywhere, &rules);
        assert_eq!(tokens(&more).verdict, Verdict::Regressed);
        // The test flips the signs of what the interval is of: logarithms.
        let found = comparison.metric("tokens").unwrap();
        assert!((found.by_session[3].1 - 1.5_f64.ln()).abs() < 1e-12);
        assert!((found.bounds.unwrap().difference + 1.5_f64.ln()).abs() < 1e-12);
        let free = |sample: &mut Sample| {
            sample
                .sessions
                .get_mut("s05")
                .unwrap()
                .metrics
                .insert("tokens".to_owned(), vec![0.0]);
        };
        let (_, nothing) = gated(free, Chance::Everywhere, &rules);
        assert_eq!(tokens(&nothing).verdict, Verdict::Inconclusive);
        assert!(tokens(&nothing).reason.unwrap().contains("an amount is 0"));
    }

    #[test]
    fn a_session_that_died_earlier_has_saved_nothing() {
        let mut rules = Rules::default();
        rules.set_margin("tokens", 0.02).unwrap();
        let dies_cheaply = |sample: &mut Sample| {
            dies(sample);
            let session = sample.sessions.get_mut("s07").unwrap();
            session.metrics.insert("tokens".to_owned(), vec![1.0]);
        };
        let (comparison, one) = gated(dies_cheaply, Chance::Everywhere, &rules);
        let tokens = comparison.metric("tokens").unwrap();
        assert_eq!(tokens.missing_sessions, 1);
        assert_eq!(tokens.paired.by_session.n.sessions, 19);
        assert!((tokens.ratio.unwrap().of_totals - 1.0).abs() < 1e-12);
        let told = one.metrics.iter().find(|m| m.metric == "tokens").unwrap();
        assert_eq!(told.verdict, Verdict::Inconclusive);
        assert!(told.reason.as_deref().unwrap().contains("different calls"));
        // Two that end at the same call made the same calls.
        let mut both = sample();
        dies(&mut both);
        let settings = Settings {
            target: Target::Population,
            chance: Chance::Everywhere,
            seed: 1,
        };
        let comparison = Comparison::of(&both, &both, settings);
        assert_eq!(comparison.metric("tokens").unwrap().missing_sessions, 0);
    }

    #[test]
    fn about_a_suite_repeats_are_what_is_missing_and_what_the_numbers_rest_on() {
        // Session s00 alone has noise: its answers come out either way.
        let repeated = |flip: &[f64]| {
            let mut sample = sample();
            for (id, session) in &mut sample.sessions {
                for values in session.metrics.values_mut() {
                    *values = vec![values[0]; 3];
                }
                for probe in session.probes.values_mut() {
                    probe.survival = vec![1.0; 3];
                    probe.accuracy = if id == "s00" {
                        flip.to_vec()
                    } else {
                        vec![1.0; 3]
                    };
                }
            }
            sample
        };
        let settings = Settings {
            target: Target::Suite,
            chance: Chance::Answers,
            seed: 1,
        };
        let mut rules = Rules::default();
        rules.set_margin("accuracy", 0.01).unwrap();
        let (old, new) = (repeated(&[1.0, 1.0, 0.0]), repeated(&[1.0, 0.0, 0.0]));
        let comparison = Comparison::of(&old, &new, settings);
        assert_eq!(comparison.target, Target::Suite);
        let accuracy = comparison.metric("accuracy").unwrap();
        let suite = accuracy.suite.unwrap();
        assert_eq!((suite.freedom, suite.repeats), (4, 3));
        assert_eq!(accuracy.p(), Some(suite.p));
        let judged = judge(&comparison, &rules, &|_| 0.0, 1);
        let found = judged
            .metrics
            .iter()
            .find(|m| m.metric == "accuracy")
            .unwrap();
        let reason = found.reason.clone().unwrap();
        assert!(
            reason.starts_with("3 repeats are too few: about "),
            "{reason}"
        );
        // Where a score is missing, worst and best are relabelled for themselves.
        assert_eq!(accuracy.worst, None);
        let mut silent = new.clone();
        let session = silent.sessions.get_mut("s00").unwrap();
        session.probes.get_mut("p0@50").unwrap().accuracy.clear();
        let unscored = Comparison::of(&old, &silent, settings);
        let accuracy = unscored.metric("accuracy").unwrap();
        let ((low, high), (worst, best)) =
            (accuracy.paired.bounds.unwrap(), accuracy.worst.unwrap());
        assert!((worst.difference - low).abs() < 1e-12, "{worst:?}");
        assert!((best.difference - high).abs() < 1e-12, "{best:?}");
        assert!(worst.permuted < best.permuted, "{worst:?} {best:?}");
        // Metrics without a model are exact on the same suite.
        let survival = comparison.metric("survival").unwrap();
        assert_eq!(survival.bounds.unwrap().deviation, None);
        assert!(survival.suite.is_none());
    }
}
