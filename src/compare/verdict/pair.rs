//! The verdict on a comparison of two strategies, in one sentence.

use super::words::{interval, points, signed};
use super::{Axis, Line, MARGIN};
use crate::compare::Comparison;
use crate::naming::short_name;
use crate::stats::gate::Bounds;

/// The axes of a comparison. Answers, where models gave them, take the place of the facts.
fn axes(comparison: &Comparison) -> Vec<(Axis, Bounds)> {
    let measured = |axis: Axis| Some((axis, comparison.metric(axis.metric())?.bounds?));
    let kept = measured(Axis::Answers).or_else(|| measured(Axis::Facts));
    let all = [measured(Axis::Cost), kept, measured(Axis::Actions)];
    all.into_iter().flatten().collect()
}

/// Names the one to use. It must be shown to be better on one axis, and worse by no more than the margin on
/// each of the others.
pub(crate) fn of_pair(comparison: &Comparison) -> Line {
    let axes = axes(comparison);
    let [baseline, candidate] =
        [&comparison.baseline, &comparison.candidate].map(|name| short_name(name));
    let of = |is: fn(&Bounds) -> bool| -> Vec<String> {
        let these = axes.iter().filter(|(_, bounds)| is(bounds));
        these
            .map(|(axis, bounds)| in_words(*axis, bounds))
            .collect()
    };
    let better = of(|bounds| bounds.lower > 0.0);
    let worse = of(|bounds| bounds.upper < 0.0 && bounds.lower < -MARGIN);
    let open = of(|bounds| bounds.upper >= 0.0 && bounds.lower < -MARGIN);
    let held = of(|bounds| (-MARGIN..=0.0).contains(&bounds.lower));
    let is_nothing = |it: &Bounds| (it.interval_lower, it.interval_upper) == (0.0, 0.0);
    let is_better = !better.is_empty();
    let margin = format!("worse by no more than {} points", points(MARGIN));
    let is_one = baseline == candidate;
    let name = if is_one { "the candidate" } else { &candidate };
    if axes.is_empty() {
        let why = "no axis could be compared: cost, facts and actions need bounds on both sides";
        return Line::new("no recommendation", why);
    }
    if worse.is_empty() && open.is_empty() {
        return match (is_better, held.join(" and ").as_str()) {
            (true, "") => Line::new(
                "use",
                format!("{name}: better on {}.", better.join(" and ")),
            ),
            (true, held) => {
                let better = better.join(" and ");
                let text = format!("{name}: better on {better}, and {margin} on {held}.");
                Line::new("use", text)
            }
            (false, _) if axes.iter().all(|(_, bounds)| is_nothing(bounds)) => {
                let both = if is_one {
                    "both".to_owned()
                } else {
                    format!("{candidate} and {baseline}")
                };
                Line::new(
                    "no difference",
                    format!("{both} are the same on every axis."),
                )
            }
            (false, _) => {
                let held = held.join(", ");
                let text = format!("{name} is {margin} on any axis, and better on none: {held}.");
                Line::new("no difference", text)
            }
        };
    }
    let parts = [
        ("better", better),
        ("worse", worse),
        ("not shown to be no worse", open),
    ];
    let parts = parts.into_iter().filter(|(_, axes)| !axes.is_empty());
    let parts = parts.map(|(how, axes)| format!("{how} on {}", axes.join(" and ")));
    let text = format!("{name} is {}.", parts.collect::<Vec<_>>().join(", "));
    match (is_better, is_one) {
        (true, _) => Line::new("no recommendation", text),
        (false, true) => Line::new("keep", text),
        (false, false) => Line::new("keep", format!("{baseline}: {text}")),
    }
}

/// `cost +9 [+3, +15]`; exact differences have no interval.
fn in_words(axis: Axis, bounds: &Bounds) -> String {
    let text = format!("{} {}", axis.name(), signed(bounds.difference));
    if bounds.error.is_none() {
        return text;
    }
    let ends = (bounds.interval_lower, bounds.interval_upper);
    format!("{text} {}", interval(ends))
}
