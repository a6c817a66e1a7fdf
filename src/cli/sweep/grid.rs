//! The grid: knobs with the values they take.

use crate::cli::{Exit, Stop};
use crate::settings::{Place, Setting, Table, Value, parse_value};
use crate::strategy::trigger::CONDITIONS;
use crate::units::ContentHash;

/// More settings than this are refused: nobody means them.
const MOST_POINTS: usize = 10_000;

/// One knob with its values.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    path: String,
    values: Vec<Setting>,
}

impl Axis {
    /// Reads `knob=a,b,c` or `knob=min..max:step`.
    pub(super) fn read(typed: &str) -> anyhow::Result<Self> {
        let wrong = |problem: &str| {
            Stop::new(Exit::Usage, format!("`-P {typed}`: {problem}"))
                .with_hint("write `-P stage.knob=1,3,10` or `-P stage.knob=1..10:3`")
        };
        let (path, values) = typed.split_once('=').ok_or_else(|| wrong("no values"))?;
        let place = Place::Flag(format!("-P {typed}").into());
        let values: Vec<Setting> = match values.split_once("..") {
            Some((low, rest)) => {
                let (high, step) = rest
                    .split_once(':')
                    .ok_or_else(|| wrong("a range needs a step"))?;
                range(low, high, step)
                    .ok_or_else(|| wrong("a range is `min..max:step`, with a step above 0"))?
                    .into_iter()
                    .map(|value| Setting {
                        value,
                        place: place.clone(),
                    })
                    .collect()
            }
            None => values
                .split(',')
                .map(|value| parse_value(value.trim(), &place))
                .collect(),
        };
        if values.is_empty() || path.is_empty() || values.len() > MOST_POINTS {
            return Err(wrong("no values, or more than 10,000").into());
        }
        Ok(Self {
            path: path.trim().to_owned(),
            values,
        })
    }
}

/// The values from `low` to `high`, both included, in whole numbers where all three are whole; else in
/// decimals, computed as multiples of the step so that no rounding adds up.
fn range(low: &str, high: &str, step: &str) -> Option<Vec<Value>> {
    if let (Ok(low), Ok(high), Ok(step)) =
        (low.parse::<i64>(), high.parse::<i64>(), step.parse::<i64>())
    {
        if step <= 0 || high < low || high.checked_sub(low)? / step >= 10_000 {
            return None;
        }
        let mut values = Vec::new();
        let mut value = low;
        while value <= high {
            values.push(Value::Whole(value));
            value += step;
        }
        return Some(values);
    }
    let digits = [low, high, step]
        .iter()
        .map(|text| {
            text.split_once('.')
                .map_or(0, |(_, fraction)| fraction.len())
        })
        .max()?;
    let (low, high, step): (f64, f64, f64) =
        (low.parse().ok()?, high.parse().ok()?, step.parse().ok()?);
    if !(step > 0.0 && high >= low && (high - low) / step < 10_000.0) {
        return None;
    }
    let mut values = Vec::new();
    for at in 0_u32.. {
        let value = low + f64::from(at) * step;
        if value > high + step * 1e-9 {
            break;
        }
        // The shortest decimal of that many digits: 0.7, not 0.7000000000000001.
        values.push(Value::Real(format!("{value:.digits$}").parse().ok()?));
    }
    Some(values)
}

/// `stage.when.window_fraction = 0.7` as a trigger of its own: a stage fires on one condition, and the
/// preset's would stand beside it. Other keys of a trigger, such as its counter, are set as they are.
pub(super) fn trigger(path: &str, setting: &Setting) -> (String, Setting) {
    if let Some((stage, condition)) = path.split_once(".when.")
        && CONDITIONS.iter().any(|kind| kind.name == condition)
    {
        let mut when = Table::new(setting.place.clone());
        when.set(condition, setting.clone());
        let place = setting.place.clone();
        let value = Value::Table(when);
        return (format!("{stage}.when"), Setting { value, place });
    }
    (path.to_owned(), setting.clone())
}

/// All combinations, the last knob turning fastest.
pub(super) fn product(axes: &[Axis]) -> Vec<Vec<(String, Setting)>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        points
            .iter()
            .flat_map(|point: &Vec<(String, Setting)>| {
                axis.values.iter().map(move |value| {
                    let mut longer = point.clone();
                    longer.push((axis.path.clone(), value.clone()));
                    longer
                })
            })
            .collect()
    })
}

/// `most` of `count` indices, ascending, the same for the same seed.
pub(super) fn drawn(count: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<(String, usize)> = (0..count)
        .map(|at| {
            let hash = ContentHash::of_parts([&seed.to_le_bytes()[..], &at.to_le_bytes()[..]]);
            (hash.hex(16), at)
        })
        .collect();
    order.sort();
    let mut chosen: Vec<usize> = order.into_iter().take(most).map(|(_, at)| at).collect();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        let shown = match Axis::read(typed) {
            Ok(axis) => {
                let values: Vec<String> = axis.values.iter().map(|v| v.value.to_string()).collect();
                format!("{}: {}", axis.path, values.join(" "))
            }
            Err(error) => error.to_string(),
        };
        assert!(shown.contains(expected), "{shown} does not say {expected}");
    }

    #[test]
    fn values_are_lists_or_ranges() {
        check("a.b=1,3,10", "a.b: 1 3 10");
        check("a.b=1..10:3", "a.b: 1 4 7 10");
        check("a.b=0.5..0.9:0.1", "a.b: 0.5 0.6 0.7 0.8 0.9");
        check("a.b=true,false", "a.b: true false");
        check("a.b=drop,keep", "a.b: \"drop\" \"keep\"");
        check("a.b", "no values");
        check("a.b=1..10", "needs a step");
        check("a.b=1..10:0", "step above 0");
        check("a.b=10..1:1", "step above 0");
        check("a.b=1..99999999:1", "step above 0");
    }

    #[test]
    fn the_grid_is_all_combinations_and_draws_are_the_same_each_time() {
        let axes = [
            Axis::read("a.b=1,2").unwrap(),
            Axis::read("c.d=1..3:1").unwrap(),
        ];
        assert_eq!(product(&axes).len(), 6);
        let chosen = drawn(64, 10, 1);
        assert_eq!(chosen.len(), 10);
        assert_eq!(chosen, drawn(64, 10, 1));
        assert_ne!(chosen, drawn(64, 10, 2));
        assert_eq!(drawn(3, 10, 1), [0, 1, 2]);
    }
}
