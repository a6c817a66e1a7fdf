//! The grid: knobs with the values they take.

use std::collections::BTreeSet;

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
                    .map(|value| Setting::new(value, &place))
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
        return (format!("{stage}.when"), Setting::new(when, &setting.place));
    }
    (path.to_owned(), setting.clone())
}

/// How many combinations there are; nothing where nobody could count them.
pub(super) fn size(axes: &[Axis]) -> Option<usize> {
    axes.iter()
        .try_fold(1_usize, |size, axis| size.checked_mul(axis.values.len()))
}

/// One combination of [`size`], the last knob turning fastest.
pub(super) fn combination(axes: &[Axis], mut at: usize) -> Vec<(String, Setting)> {
    let mut values: Vec<(String, Setting)> = axes
        .iter()
        .rev()
        .map(|axis| {
            let value = axis.values[at % axis.values.len()].clone();
            at /= axis.values.len();
            (axis.path.clone(), value)
        })
        .collect();
    values.reverse();
    values
}

/// The combinations that are tried: all of them, or `random` drawn ones. A grid of more than 10,000 is
/// refused, unless it is drawn from.
pub(super) fn chosen(
    axes: &[Axis],
    random: Option<usize>,
    seed: u64,
) -> anyhow::Result<Vec<Vec<(String, Setting)>>> {
    let size = size(axes);
    let wanted = random.map_or(size, |most| Some(size.map_or(most, |size| most.min(size))));
    let (Some(size), Some(wanted)) = (size, wanted.filter(|wanted| *wanted <= MOST_POINTS)) else {
        let count = size.map_or_else(
            || "more settings than can be counted".to_owned(),
            |size| format!("{size} settings"),
        );
        let problem = format!("the grid has {count}, and at most {MOST_POINTS} are tried");
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint("take larger steps, or draw some of them with `--random N`")
            .into());
    };
    let places = match random {
        Some(_) => drawn(size, wanted, seed),
        None => (0..size).collect(),
    };
    Ok(places.into_iter().map(|at| combination(axes, at)).collect())
}

/// Of `count` indices `most`, ascending, the same for the same seed.
pub(super) fn drawn(count: usize, most: usize, seed: u64) -> Vec<usize> {
    if most >= count {
        return (0..count).collect();
    }
    // Hashes of a counter, taken modulo `count`; what came before is drawn again. Below half of all, which
    // a larger number is turned into, that ends soon.
    let leaves_out = most > count / 2;
    let draws = if leaves_out { count - most } else { most };
    let mut found = BTreeSet::new();
    for number in 0_u64.. {
        if found.len() >= draws {
            break;
        }
        let hash = ContentHash::of_parts([&seed.to_le_bytes()[..], &number.to_le_bytes()[..]]);
        let bits = u64::from_str_radix(&hash.hex(15), 16).unwrap_or(0);
        // The bias of the remainder is far below anything a draw could matter.
        found.insert(usize::try_from(bits % count as u64).unwrap_or(0));
    }
    if leaves_out {
        (0..count).filter(|at| !found.contains(at)).collect()
    } else {
        found.into_iter().collect()
    }
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
        let all = chosen(&axes, None, 1).unwrap();
        let shown: Vec<String> = all
            .iter()
            .map(|values| format!("{}{}", values[0].1.value, values[1].1.value))
            .collect();
        assert_eq!(shown, ["11", "12", "13", "21", "22", "23"]);
        let chosen = drawn(64, 10, 1);
        assert_eq!(chosen.len(), 10);
        assert_eq!(chosen, drawn(64, 10, 1));
        assert_ne!(chosen, drawn(64, 10, 2));
        assert_eq!(drawn(64, 60, 1).len(), 60);
        assert_eq!(drawn(3, 10, 1), [0, 1, 2]);
    }

    #[test]
    fn a_grid_that_nobody_could_hold_is_drawn_from_or_refused() {
        let wide = [
            Axis::read("a.b=1..9000:1").unwrap(),
            Axis::read("c.d=1..9000:1").unwrap(),
        ];
        assert_eq!(chosen(&wide, Some(2), 1).unwrap().len(), 2);
        let refused = chosen(&wide, None, 1).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the grid has 81000000 settings, and at most 10000 are tried"
        );
        let endless = vec![wide[0].clone(); 8];
        assert!(chosen(&endless, Some(2), 1).is_err());
    }
}
