//! Annotations and outputs of a GitHub workflow.

use std::fmt::Write as _;

use super::comparison::Comparisons;
use super::escape::plain;
use super::junit::CaseOutcome;
use crate::compare::gate::Verdict;

/// The most annotations: GitHub shows ten of a step.
const MOST: usize = 10;

/// Workflow commands, one line each: an error per hard break and regressed metric, a warning per
/// inconclusive one, the most important first. Where there are more than ten the last one counts the rest.
pub(crate) fn annotations(comparisons: &Comparisons) -> String {
    let suites = comparisons.suites();
    let mut found = Vec::new();
    for suite in &suites {
        for case in &suite.cases {
            let level = match case.outcome {
                CaseOutcome::Passed => continue,
                CaseOutcome::Failed(_) => "error",
                CaseOutcome::Skipped => "warning",
            };
            let messages = case.messages.iter().enumerate();
            // Every check shows its first finding before one shows its second.
            found.extend(messages.map(|(at, message)| (level, at, suite, case, message)));
        }
    }
    found.sort_by_key(|(level, at, ..)| (*level, *at));
    let shown = if found.len() > MOST { MOST - 1 } else { MOST };
    let mut out = String::new();
    for (level, _, suite, case, message) in found.iter().take(shown) {
        let title = property(&suite.name);
        let message = data(&format!("{}: {message}", case.name));
        let _ = writeln!(out, "::{level} title={title}::{message}");
    }
    if let Some((level, ..)) = found.get(shown) {
        let more = found.len() - shown;
        let findings = "findings: the step's summary names the worst";
        let _ = writeln!(out, "::{level} title=Proctor::and {more} more {findings}");
    }
    out
}

/// Outputs of the step, `name=value` per line: `verdict`, and `delta` and `ci_low` of the metric that
/// decided, in its own unit, turned so that higher is better; of a total the share that is saved (below
/// 0: spent more).
pub(crate) fn outputs(comparisons: &Comparisons) -> String {
    let verdict = comparisons.verdict().map_or("none", Verdict::name);
    let mut out = format!("verdict={verdict}\n");
    let deciding = comparisons.deciding().and_then(|(one, gated)| {
        let metric = one.comparison.axis(gated.axis)?;
        Some((metric, metric.bounds?))
    });
    if let Some((metric, bounds)) = deciding {
        let axis = metric.axis;
        // 0.0 turns −0 into 0.
        let [delta, low] = [bounds.difference, bounds.interval_lower].map(|end| end + 0.0);
        let _ = write!(out, "metric={axis}\ndelta={delta}\nci_low={low}\n");
    }
    out
}

/// The text of a workflow command, as its documentation asks: percent signs and line ends escaped.
fn data(text: &str) -> String {
    let text = plain(text).replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command: what ends one is escaped as well.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
