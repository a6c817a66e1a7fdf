//! What a GitHub workflow is told: annotations beside the change, and outputs for later steps.

use std::fmt::Write as _;

use super::{Versus, breaks, change, interval, unconfirmed};
use crate::compare::Kind;
use crate::report::escape::plain;
use crate::stats::gate::Verdict;

/// Workflow commands, one line each: an error per hard break and regressed metric, a warning per
/// inconclusive one.
pub fn annotations(versus: &Versus) -> String {
    let mut out = String::new();
    for one in &versus.comparisons {
        let Some(gated) = &one.gated else { continue };
        for line in breaks(gated) {
            let _ = writeln!(
                out,
                "::error title={}::{}",
                property(&one.title()),
                data(&line)
            );
        }
        for line in unconfirmed(gated) {
            let title = property(&one.title());
            let _ = writeln!(out, "::warning title={title}::{}", data(&line));
        }
        for gated in &gated.metrics {
            let level = match gated.verdict {
                Verdict::Regressed => "error",
                Verdict::Inconclusive => "warning",
                Verdict::Improved | Verdict::NonInferior => continue,
            };
            let Some(metric) = one.comparison.metric(gated.metric) else {
                continue;
            };
            let says = format!(
                "{} {}: Δ = {} {}{}",
                gated.metric,
                gated.verdict,
                change(metric),
                interval(metric, one.comparison.target),
                gated
                    .reason
                    .as_ref()
                    .map_or_else(String::new, |reason| format!("; {reason}"))
            );
            let _ = writeln!(
                out,
                "::{level} title={}::{}",
                property(&one.title()),
                data(&says)
            );
        }
    }
    out
}

/// Outputs of the step, `name=value` per line: `verdict`, and `delta` and `ci_low` of the metric that
/// decided, in its own unit, turned so that higher is better; of an amount the share that is saved (below
/// 0: spent more).
pub fn outputs(versus: &Versus) -> String {
    let verdict = versus.verdict().map_or("none", Verdict::name);
    let mut out = format!("verdict={verdict}\n");
    let deciding = versus.deciding().and_then(|(one, gated)| {
        let metric = one.comparison.metric(gated.metric)?;
        Some((metric, metric.bounds?))
    });
    if let Some((metric, bounds)) = deciding {
        let in_its_unit = |value: f64| match metric.kind {
            // 1 − ratio, of −ln(ratio); 0.0 turns −0 into 0.
            Kind::Amount => 0.0 - libm::expm1(-value),
            Kind::Probes | Kind::Share | Kind::Count => value,
        };
        let _ = write!(
            out,
            "metric={}\ndelta={}\nci_low={}\n",
            metric.metric,
            in_its_unit(bounds.difference),
            in_its_unit(bounds.interval_lower)
        );
    }
    out
}

/// The text of a workflow command, as its documentation asks: percent signs and line ends escaped.
fn data(text: &str) -> String {
    plain(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command: what ends one is escaped as well.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
