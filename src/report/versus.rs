//! A comparison for people and for build servers: what changed, how sure that is, and the verdict.

use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::compare::gate::{Ending, Gated, GatedMetric};
use crate::compare::{Comparison, Kind, MetricDifference, Mismatch, NewDeath};
use crate::metric::Direction;
use crate::record::OWN_MECHANISM;
use crate::stats::gate::{Target, Verdict};
use crate::stats::power;

pub mod bmf;
pub mod github;
pub mod junit;
pub mod markdown;
pub mod text;

/// Version of the comparison as JSON.
///
/// 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// Several comparisons, and how the gate ended over all of them.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Versus {
    /// Always `proctor-comparison`.
    pub format: &'static str,
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// What differs between the sides and was allowed to.
    pub mismatches: Vec<Mismatch>,
    /// The verdict over everything; nothing where nothing was gated.
    pub ending: Option<Outcome>,
    /// The comparisons, in the order of the command line.
    pub comparisons: Vec<Versed>,
}

/// One comparison with the names of its sides.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Versed {
    /// Where the baseline comes from, as typed.
    pub baseline_source: String,
    /// Where the candidate comes from, as typed.
    pub candidate_source: String,
    /// What changed.
    pub comparison: Comparison,
    /// What the gate says; nothing where nothing was gated.
    pub gated: Option<Gated>,
}

/// How a gate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing speaks against the change.
    Passed,
    /// Something regressed.
    Failed,
    /// Something is inconclusive, and that was to fail.
    Inconclusive,
}

impl From<Ending> for Outcome {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Passed => Self::Passed,
            Ending::Failed => Self::Failed,
            Ending::Inconclusive => Self::Inconclusive,
        }
    }
}

/// A JSON Schema (draft 2020-12) of a comparison as JSON.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Versus>()
        .to_value()
}

impl Versus {
    /// Puts comparisons together.
    pub fn new(
        comparisons: Vec<Versed>,
        mismatches: Vec<Mismatch>,
        ending: Option<Ending>,
    ) -> Self {
        Self {
            format: "proctor-comparison",
            version: FORMAT_VERSION,
            mismatches,
            ending: ending.map(Outcome::from),
            comparisons,
        }
    }

    /// The comparison as JSON, keys in the order of the type.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(super::escape::json(&text) + "\n")
    }

    /// The worst verdict of all; nothing where nothing was gated.
    pub fn verdict(&self) -> Option<Verdict> {
        let gated = self.comparisons.iter().filter_map(|one| one.gated.as_ref());
        gated.map(|gated| gated.verdict).max()
    }

    /// Why the verdict is what it is, in one line: the first hard break, or the metric that decided.
    pub fn why(&self) -> Option<String> {
        let mut hard = self.comparisons.iter().flat_map(|one| {
            let gated = one.gated.iter();
            let lines = gated.flat_map(breaks);
            lines.map(move |line| format!("{}: {line}", one.title()))
        });
        if let Some(first) = hard.next() {
            return Some(match hard.count() {
                0 => first,
                more => format!("{first} (and {more} more)"),
            });
        }
        let (one, gated) = self.deciding()?;
        let metric = one.comparison.metric(gated.metric)?;
        Some(format!(
            "{}: {} {} {}, margin {}",
            one.title(),
            gated.metric,
            change(metric),
            interval(metric, one.comparison.target),
            margin(metric.kind, gated.margin)
        ))
    }

    /// The metric whose verdict decided: the worst, and of these the first.
    pub(crate) fn deciding(&self) -> Option<(&Versed, &GatedMetric)> {
        let all = self.comparisons.iter().filter_map(|one| {
            let gated = one.gated.as_ref()?;
            let worst = gated.metrics.iter().map(|metric| metric.verdict).max()?;
            let first = gated
                .metrics
                .iter()
                .find(|metric| metric.verdict == worst)?;
            Some((one, first))
        });
        all.reduce(|best, next| {
            if next.1.verdict > best.1.verdict {
                next
            } else {
                best
            }
        })
    }
}

impl Versed {
    /// What stands above its table: the strategy, or both where they differ.
    pub(crate) fn title(&self) -> String {
        let Comparison {
            baseline,
            candidate,
            ..
        } = &self.comparison;
        if baseline == candidate {
            candidate.clone()
        } else {
            format!("{candidate} against {baseline}")
        }
    }

    /// A line on a side that nobody else can use; its name is all that a stored baseline holds.
    pub(crate) fn note(&self) -> Option<String> {
        let Comparison {
            baseline,
            candidate,
            ..
        } = &self.comparison;
        let is_own = |name: &&String| {
            name.starts_with("claude-code-cached-micro") && !name.contains("micro.mode=")
        };
        let own = [candidate, baseline].into_iter().find(is_own)?;
        Some(format!("{own}: {OWN_MECHANISM}"))
    }

    /// What the gate says of a metric.
    pub(crate) fn gated_metric(&self, name: &str) -> Option<&GatedMetric> {
        let metrics = &self.gated.as_ref()?.metrics;
        metrics.iter().find(|metric| metric.metric == name)
    }

    /// Whether the two sides came out the same in everything.
    pub(crate) fn is_unchanged(&self) -> bool {
        let zero = |metric: &MetricDifference| {
            metric.paired.counts.wins + metric.paired.counts.losses == 0
        };
        self.comparison.metrics.iter().all(zero) && self.comparison.broken_rules.is_empty()
    }
}

/// A number of this kind with its sign: `−3.1 pts`, `+2.0`, `×0.92`.
pub(crate) fn change(metric: &MetricDifference) -> String {
    match (metric.kind, &metric.ratio) {
        (Kind::Amount, Some(ratio)) => format!("×{:.3}", ratio.geometric.point_estimate),
        (Kind::Probes | Kind::Share, _) => {
            format!(
                "{} pts",
                signed(metric.paired.by_session.point_estimate * 100.0, 1)
            )
        }
        (Kind::Count | Kind::Amount, _) => signed(metric.paired.by_session.point_estimate, 2),
    }
}

/// The interval behind a change, in the same unit; `exact` where it has none.
pub(crate) fn interval(metric: &MetricDifference, target: Target) -> String {
    if let (Target::Suite, Some(bounds)) = (target, metric.bounds)
        && bounds.deviation.is_none()
    {
        return "exact".to_owned();
    }
    let (low, high, scale, digits) = match (metric.kind, &metric.ratio) {
        (Kind::Amount, Some(_)) => {
            // Turned so that higher is better, and of logarithms: the other way round.
            let Some(bounds) = metric.bounds else {
                return "no interval".to_owned();
            };
            return format!(
                "[{:.3}, {:.3}]",
                libm::exp(-bounds.interval_upper),
                libm::exp(-bounds.interval_lower)
            );
        }
        (kind, _) => {
            let Some(bounds) = metric.bounds else {
                return "no interval".to_owned();
            };
            let (scale, digits) = match kind {
                Kind::Probes | Kind::Share => (100.0, 1),
                Kind::Count | Kind::Amount => (1.0, 2),
            };
            match metric.direction {
                Direction::Higher | Direction::Neutral => {
                    (bounds.interval_lower, bounds.interval_upper, scale, digits)
                }
                Direction::Lower => (
                    -bounds.interval_upper,
                    -bounds.interval_lower,
                    scale,
                    digits,
                ),
            }
        }
    };
    format!(
        "[{}, {}]",
        signed(low * scale, digits),
        signed(high * scale, digits)
    )
}

/// `+2.7`, `−3.1`, `0.0`.
pub(crate) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        text
    } else if value < 0.0 {
        format!("−{text}")
    } else {
        format!("+{text}")
    }
}

/// A margin as it is written: `5 pts`, `5 %` of an amount, `0`.
pub(crate) fn margin(kind: Kind, margin: f64) -> String {
    let number = format!("{:.2}", margin * 100.0);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    match kind {
        Kind::Probes | Kind::Share => format!("{number} pts"),
        Kind::Amount => format!("{number} %"),
        Kind::Count => format!("{margin}"),
    }
}

/// A level of a metric: `61.2 %`, `12.3k`.
pub(crate) fn level(metric: &MetricDifference, value: f64) -> String {
    match metric.kind {
        Kind::Probes | Kind::Share => super::figure::percent(value),
        Kind::Count => format!("{value:.2}"),
        Kind::Amount => format!("{value:.0}"),
    }
}

/// What a difference rests on: `20 sessions, 398 of 400 probes paired, wins/ties/losses 31/324/43 ·
/// t(19), clustered by session · MDE 8.1 · evaluator survival v1 · seed 7`.
pub(crate) fn rests_on(metric: &MetricDifference, comparison: &Comparison) -> String {
    let paired = &metric.paired;
    let sessions = paired.by_session.n.sessions;
    let mut parts = vec![super::figure::many(sessions, "session", "sessions")];
    let counts = paired.counts;
    let outcome = format!(
        "wins/ties/losses {}/{}/{}",
        counts.wins, counts.ties, counts.losses
    );
    if metric.kind == Kind::Probes {
        let items = paired.by_session.n.items;
        let whole = items + paired.unscored;
        let _ = write!(parts[0], ", {items} of {whole} probes paired, {outcome}");
    } else {
        let _ = write!(parts[0], ", {outcome}");
    }
    let exact = metric
        .bounds
        .is_some_and(|bounds| bounds.deviation.is_none());
    if exact {
        parts.push("exact on this suite".to_owned());
    } else {
        match comparison.target {
            Target::Population => {
                let freedom = sessions.max(1) - 1;
                parts.push(format!("t({freedom}), clustered by session"));
            }
            Target::Suite => {
                let suite = metric.suite.as_ref();
                let repeats = suite.map(|suite| {
                    format!(
                        "t({}) of {} repeats, on this suite",
                        suite.freedom, suite.repeats
                    )
                });
                parts.extend(repeats);
            }
        }
        if let (Target::Population, Some(drawn)) = (comparison.target, paired.bootstrap)
            && matches!(metric.kind, Kind::Probes | Kind::Share)
        {
            let (low, high) = (drawn.lower_bound * 100.0, drawn.upper_bound * 100.0);
            parts.push(format!(
                "bootstrap [{}, {}]",
                signed(low, 1),
                signed(high, 1)
            ));
        }
        if let Some(test) = metric.adjusted_p {
            let name = match metric.suite {
                Some(_) => "permutation",
                None => "sign flip",
            };
            parts.push(format!("{name} p {test:.3}"));
        }
        parts.extend(detectable(metric));
    }
    parts.push(format!("evaluator {}", metric.evaluator));
    parts.push(format!("seed {}", comparison.seed));
    parts.join(" · ")
}

/// `MDE 8.1`: the smallest difference that would have been seen, in the unit of the change; of an amount
/// in percent.
fn detectable(metric: &MetricDifference) -> Option<String> {
    if let Some(suite) = &metric.suite {
        let found = suite.detectable()?;
        return Some(match metric.kind {
            Kind::Probes | Kind::Share => format!("MDE {:.1}", found * 100.0),
            Kind::Amount => format!("MDE {:.1} %", libm::expm1(found) * 100.0),
            Kind::Count => format!("MDE {found:.1}"),
        });
    }
    let scaled = match (metric.kind, &metric.ratio) {
        (Kind::Probes | Kind::Share, _) => metric.paired.detectable? * 100.0,
        (Kind::Amount, Some(ratio)) => {
            let error = ratio.geometric.standard_error?;
            let log = power::detectable(error, ratio.geometric.n.sessions)?;
            return Some(format!("MDE {:.1} %", libm::expm1(log) * 100.0));
        }
        (Kind::Count | Kind::Amount, _) => metric.paired.detectable?,
    };
    Some(format!("MDE {scaled:.1}"))
}

/// What must be said below a metric: weights that matter, totals that contradict, pairs without score.
pub(crate) fn warnings(metric: &MetricDifference) -> Vec<String> {
    let mut found = Vec::new();
    let paired = &metric.paired;
    if metric.kind == Kind::Probes && paired.weights_matter {
        found.push(format!(
            "{}: {} pts with every probe weighing the same, {} pts with every session; long sessions differ \
             from short ones",
            metric.metric,
            signed(paired.by_probe.point_estimate * 100.0, 1),
            signed(paired.by_session.point_estimate * 100.0, 1)
        ));
    }
    if metric.ratio.is_some_and(|ratio| ratio.contradict) {
        let totals = metric.ratio.map_or(1.0, |ratio| ratio.of_totals);
        found.push(format!(
            "{}: the ratio of totals is ×{totals:.3} and points the other way: long sessions differ from \
             short ones",
            metric.metric
        ));
    }
    if let Some((low, high)) = paired.bounds {
        found.push(format!(
            "{}: {} pairs were not scored; at worst and at best for the candidate they make it {} to {} pts",
            metric.metric,
            paired.unscored,
            signed(low * 100.0, 1),
            signed(high * 100.0, 1)
        ));
    }
    found
}

fn death(death: &NewDeath) -> String {
    let at = death.at.as_deref().unwrap_or("a call that is not known");
    let ((before, old), (after, new)) = (death.baseline, death.candidate);
    if (old, new) == (1, 1) {
        return format!(
            "session {} died at {at}, under the candidate only",
            death.session
        );
    }
    format!(
        "session {} died in {after} of {new} repeats, first at {at}, and under the baseline in {before} of {old}",
        death.session
    )
}

/// What may be a hard break, and may be chance: it has to be repeated to know.
pub(crate) fn unconfirmed(gated: &Gated) -> Vec<String> {
    let mut lines: Vec<String> = gated.unconfirmed_deaths.iter().map(death).collect();
    lines.extend(gated.unconfirmed.iter().map(|probe| {
        format!(
            "lost {} probe {} of session {} ({})",
            probe.kind, probe.probe, probe.session, probe.metric
        )
    }));
    let why = format!(
        "not confirmed: {} repeats on each side would tell it from chance",
        crate::compare::gate::CONFIRM
    );
    lines.iter().map(|line| format!("{line}; {why}")).collect()
}

/// What looking at several comparisons at once asks of each; nothing where one stands alone, or all is
/// exact.
pub(crate) fn among(one: &Versed) -> Option<String> {
    let gated = one.gated.as_ref().filter(|gated| gated.family > 1)?;
    let metrics = &one.comparison.metrics;
    let estimated = |metric: &MetricDifference| {
        metric.bounds.is_some_and(|bounds| bounds.error.is_some())
            && one.gated_metric(metric.metric).is_some()
    };
    metrics.iter().any(estimated).then(|| {
        format!(
            "one of {} gated together: `improved` and `regressed` are said at a level of 5 %/{}",
            gated.family, gated.family
        )
    })
}

/// One line per hard break, the probe named with where it was lost.
pub(crate) fn breaks(gated: &Gated) -> Vec<String> {
    let mut lines: Vec<String> = gated.deaths.iter().map(death).collect();
    for probe in &gated.lost {
        let place = probe.lost_at.as_deref().unwrap_or("an unknown place");
        lines.push(format!(
            "lost {} probe {} of session {} ({}): {} under the baseline, {} now; lost at {place}",
            probe.kind, probe.probe, probe.session, probe.metric, probe.baseline, probe.candidate
        ));
    }
    for rule in &gated.broken_rules {
        lines.push(format!(
            "broke rule {} in session {}, which the baseline keeps: the provider would refuse the prompt",
            rule.rule, rule.session
        ));
    }
    lines.extend(gated.coverage.clone());
    lines
}
