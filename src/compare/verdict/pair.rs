//! The verdict on a comparison of two strategies, in one sentence.

use super::words::{points, short_name, signed};
use super::{Axis, Line, MARGIN};
use crate::compare::{Comparison, MetricDifference};
use crate::stats::gate::Bounds;

/// The axes of a comparison. Answers, where models gave them, take the place of the facts.
fn axes(comparison: &Comparison) -> Vec<(Axis, &MetricDifference, Bounds)> {
    let measured = |axis: Axis| {
        let metric = comparison.metric(axis.metric())?;
        Some((axis, metric, metric.bounds?))
    };
    let kept = measured(Axis::Answers).or_else(|| measured(Axis::Facts));
    [measured(Axis::Cost), kept, measured(Axis::Actions)]
        .into_iter()
        .flatten()
        .collect()
}

/// Names the one to use. It must be shown to be better on one axis, and worse by no more than the margin on
/// each of the others.
pub(crate) fn of_pair(comparison: &Comparison) -> Line {
    let axes = axes(comparison);
    let [baseline, candidate] =
        [&comparison.baseline, &comparison.candidate].map(|name| short_name(name));
    let of = |is: fn(&Bounds) -> bool| -> Vec<String> {
        let these = axes.iter().filter(|(.., bounds)| is(bounds));
        these
            .map(|(axis, _, bounds)| in_words(*axis, bounds))
            .collect()
    };
    let better = of(|bounds| bounds.lower > 0.0);
    let worse = of(|bounds| bounds.upper < 0.0 && bounds.lower < -MARGIN);
    let open = of(|bounds| bounds.upper >= 0.0 && bounds.lower < -MARGIN);
    let held = of(|bounds| (-MARGIN..=0.0).contains(&bounds.lower));
    let line = |label, text| Line { label, text };
    let margin = points(MARGIN);
    let of_names = if baseline == candidate {
        "the candidate".to_owned()
    } else {
        candidate.clone()
    };
    match (better.is_empty(), worse.is_empty() && open.is_empty()) {
        _ if axes.is_empty() => line(
            "no recommendation",
            "no axis could be compared: cost, facts and actions need bounds on both sides"
                .to_owned(),
        ),
        (false, true) => {
            let rest = if held.is_empty() {
                String::new()
            } else {
                format!(
                    ", and worse by no more than {margin} points on {}",
                    held.join(" and ")
                )
            };
            line(
                "use",
                format!("{of_names}: better on {}{rest}.", better.join(" and ")),
            )
        }
        (true, true)
            if axes.iter().all(|(.., bounds)| {
                (bounds.interval_lower, bounds.interval_upper) == (0.0, 0.0)
            }) =>
        {
            line(
                "no difference",
                "both are the same on every axis.".to_owned(),
            )
        }
        (true, true) => line(
            "no difference",
            format!(
                "{of_names} is worse by no more than {margin} points on any axis, and better on none: {}.",
                held.join(", ")
            ),
        ),
        (is_no_better, false) => {
            let parts = [
                ("better", better),
                ("worse", worse),
                ("not shown to be no worse", open),
            ];
            let parts = parts.into_iter().filter(|(_, axes)| !axes.is_empty());
            let parts = parts.map(|(how, axes)| format!("{how} on {}", axes.join(" and ")));
            let parts: Vec<String> = parts.collect();
            let label = if is_no_better {
                "keep"
            } else {
                "no recommendation"
            };
            let text = format!("{of_names} is {}.", parts.join(", "));
            let text = if is_no_better && baseline != candidate {
                format!("{baseline}: {text}")
            } else {
                text
            };
            line(label, text)
        }
    }
}

/// `cost +9 [+3, +15]`; exact differences have no interval.
fn in_words(axis: Axis, bounds: &Bounds) -> String {
    let text = format!("{} {}", axis.name(), signed(bounds.difference));
    if bounds.error.is_none() {
        return text;
    }
    let ends = [bounds.interval_lower, bounds.interval_upper].map(signed);
    format!("{text} [{}]", ends.join(", "))
}
