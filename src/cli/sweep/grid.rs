//! The grid: knobs with the values they take.

use std::collections::BTreeSet;

use crate::cli::{Exit, Result, stop_with};
use crate::settings::{Place, Setting, SettingTable, SettingValue, parse_value};
use crate::strategy::StrategySpec;
use crate::strategy::preset::Tune;
use crate::strategy::trigger::condition;
use crate::units::ContentHash;

/// More settings than this are refused as a mistake.
const MOST_POINTS: usize = 10_000;

/// The knobs that are typed; without one, those that the strategy offers.
pub(super) fn axes(typed: &[String], strategy: &StrategySpec) -> Result<Vec<Tune>> {
    if !typed.is_empty() {
        return typed.iter().map(|typed| knob_of(typed, strategy)).collect();
    }
    let tunes = strategy.tunes()?;
    if tunes.is_empty() {
        let name = strategy.name();
        let problem = format!(
            "`{name}` has nothing to tune: no size that it waits for, and no number that it keeps"
        );
        let hint = "name a knob, as in `-P stage.knob=1,3,10`, or write it into the preset: `[[tune]]`, \
                    `knob = \"stage.knob\"`, `values = [1, 3, 10]`";
        return stop_with(Exit::Usage, problem, hint);
    }
    Ok(tunes)
}

/// A knob of this strategy with its values. A key of the window is none: all settings are tried in one window.
fn knob_of(typed: &str, strategy: &StrategySpec) -> Result<Tune> {
    let axis = named_once(read(typed)?, strategy);
    let head = axis.knob.split_once('.').map(|(head, _)| head);
    if head == Some("window") && strategy.stage_names().iter().all(|name| name != "window") {
        let problem = format!("`-P {typed}`: a window is no knob of a strategy");
        let hint =
            format!("`--window 80k`, or `--set {}=VALUE`, sweeps in another window", axis.knob);
        return stop_with(Exit::Usage, problem, hint);
    }
    Ok(axis)
}

/// One name for each knob, however it is typed: without the strategy's, and with its stage's.
fn named_once(axis: Tune, strategy: &StrategySpec) -> Tune {
    let base = strategy.base_name();
    let behind = axis.knob.strip_prefix(&base).and_then(|rest| rest.strip_prefix('.'));
    // A stage may be called like its strategy.
    let typed = behind.filter(|_| !strategy.stage_names().contains(&base)).unwrap_or(&axis.knob);
    let stages = if typed.contains('.') { Vec::new() } else { strategy.stages_with(typed) };
    let knob = match &stages[..] {
        [stage] => format!("{stage}.{typed}"),
        _ => typed.to_owned(),
    };
    Tune { knob, ..axis }
}

/// Reads `knob=a,b,c` or `knob=min..max:step`.
fn read(typed: &str) -> Result<Tune> {
    let Some((path, listed)) = typed.split_once('=') else {
        return wrong(typed, "no values");
    };
    let place = Place::Flag(format!("-P {typed}").into());
    let all: Vec<Setting> = if let Some((low, rest)) = listed.split_once("..") {
        let Some((high, step)) = rest.split_once(':') else {
            return wrong(typed, "a range needs a step");
        };
        let Some(steps) = range(low, high, step) else {
            return wrong(
                typed,
                "a range is `min..max:step`, with min below max, a step above 0 and at most 10,000 values",
            );
        };
        steps.into_iter().map(|value| Setting::new(value, &place)).collect()
    } else {
        listed.split(',').map(|word| parse_value(word.trim(), &place)).collect()
    };
    let mut values: Vec<Setting> = Vec::new();
    for one in all {
        if values.iter().all(|other| other.value != one.value) {
            values.push(one);
        }
    }
    if path.is_empty() || values.len() > MOST_POINTS {
        return wrong(typed, "no values, or more than 10,000");
    }
    Ok(Tune { knob: path.trim().to_owned(), values })
}

fn wrong<T>(typed: &str, problem: &str) -> Result<T> {
    let hint = "write `-P stage.knob=1,3,10` or `-P stage.knob=1..10:3`";
    stop_with(Exit::Usage, format!("`-P {typed}`: {problem}"), hint)
}

/// The values from `low` to `high`, both included: whole numbers, or decimals where one of the three is.
/// All are multiples of the last digit, so that no rounding adds up.
fn range(low: &str, high: &str, step: &str) -> Option<Vec<SettingValue>> {
    let digits = [low, high, step].map(decimals).into_iter().max()?;
    let first = scaled(low, digits)?;
    let (last, step) = (scaled(high, digits)?, scaled(step, digits)?);
    if step <= 0 || last < first || last.checked_sub(first)? / step >= 10_000 {
        return None;
    }
    let scale = 10_f64.powi(i32::try_from(digits).ok()?);
    let numbers = (first..=last).step_by(usize::try_from(step).ok()?);
    // The shortest decimal of that many digits: 0.7, not 0.7000000000000001.
    let values = numbers.map(|number| {
        if digits == 0 {
            return Some(SettingValue::Integer(number));
        }
        let shortest = format!("{:.digits$}", number as f64 / scale);
        shortest.parse().ok().map(SettingValue::Real)
    });
    values.collect()
}

/// How many digits are behind the point.
fn decimals(number: &str) -> usize {
    number.split_once('.').map(|(_, fraction)| fraction).map_or(0, str::len)
}

/// The number without its point, with so many digits behind it.
fn scaled(number: &str, digits: usize) -> Option<i64> {
    let zeros = "0".repeat(digits - decimals(number));
    (number.replace('.', "") + &zeros).parse().ok()
}

/// `stage.when.window_fraction = 0.7` as a trigger of its own where the stage waits for something else, which would
/// be a second condition. Other keys of a trigger, such as its counter, are set as they are.
pub(super) fn trigger(strategy: &StrategySpec, path: &str, setting: &Setting) -> (String, Setting) {
    if let Some((stage, name)) = path.split_once(".when.")
        && condition::names().contains(&name)
        && strategy.value_of(path).is_none()
    {
        let mut when = SettingTable::new(setting.place.clone());
        when.set(name, setting.clone());
        return (format!("{stage}.when"), Setting::new(when, &setting.place));
    }
    (path.to_owned(), setting.clone())
}

/// One combination, the last knob turning fastest.
fn combination(axes: &[Tune], mut at: usize) -> Vec<(String, Setting)> {
    let mut values = Vec::new();
    for axis in axes.iter().rev() {
        let value = axis.values[at % axis.values.len()].clone();
        at /= axis.values.len();
        values.push((axis.knob.clone(), value));
    }
    values.reverse();
    values
}

/// The combinations that are tried: all of them, or `random` drawn ones. A grid of more than 10,000 is
/// refused, unless it is drawn from.
pub(super) fn chosen(
    axes: &[Tune],
    random: Option<usize>,
    seed: u64,
) -> Result<Vec<Vec<(String, Setting)>>> {
    for (at, axis) in axes.iter().enumerate() {
        if axes[..at].iter().any(|other| other.knob == axis.knob) {
            let problem = format!("`-P {}` is there twice", axis.knob);
            let hint = "one `-P` takes all values of a knob: `-P stage.knob=1,3,10`";
            return stop_with(Exit::Usage, problem, hint);
        }
    }
    let size = axes.iter().map(|axis| axis.values.len()).try_fold(1_usize, usize::checked_mul);
    let wanted = size.map(|size| random.map_or(size, |most| most.min(size)));
    let (Some(size), Some(wanted)) = (size, wanted.filter(|wanted| *wanted <= MOST_POINTS)) else {
        let problem = format!(
            "the grid has {}, and at most {MOST_POINTS} are tried",
            size.map(|size| format!("{size} settings"))
                .as_deref()
                .unwrap_or("more settings than can be counted")
        );
        let hint = "take larger steps, or draw some of them with `--random N`";
        return stop_with(Exit::Usage, problem, hint);
    };
    let places = drawn(size, wanted, seed).into_iter();
    Ok(places.map(|at| combination(axes, at)).collect())
}

/// Of `count` indices `most`, ascending, the same for the same seed.
fn drawn(count: usize, most: usize, seed: u64) -> Vec<usize> {
    if most >= count {
        return (0..count).collect();
    }
    // Hashes of a counter, taken modulo `count`; what came before is drawn again.
    let mut found = BTreeSet::new();
    for number in 0_u64.. {
        if found.len() >= most {
            break;
        }
        let hash = ContentHash::of_parts([&seed.to_le_bytes()[..], &number.to_le_bytes()[..]]);
        let bits = u64::from_str_radix(&hash.hex(15), 16).unwrap_or(0);
        // The bias of the remainder is far below anything a draw could matter.
        found.insert(usize::try_from(bits % count as u64).unwrap_or(0));
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::trigger::Trigger;

    #[test]
    fn a_knob_has_one_name_however_it_is_typed() {
        let always = Trigger::always();
        let masking = StrategySpec::parse("observation-masking", &always, &Place::BuiltIn).unwrap();
        let stage = "[[stage]]\nkind = 'clear_results'\nkeep_last = 4\n";
        let table = SettingTable::parse("clear_results.toml", stage).unwrap();
        let own = StrategySpec::of("clear_results", table, &always).unwrap();
        for (strategy, typed, knob) in [
            (&masking, "keep_last", "clear_results.keep_last"),
            (&masking, "observation-masking.keep_last", "clear_results.keep_last"),
            (&masking, "observation-masking.clear_results.keep_last", "clear_results.keep_last"),
            (&own, "clear_results.when.tokens", "clear_results.when.tokens"),
        ] {
            let found = axes(&[format!("{typed}=1,2")], strategy).unwrap();
            assert_eq!(found[0].knob, knob, "{typed}");
        }
    }

    #[track_caller]
    fn check(typed: &str, expected: &str) {
        let shown = match read(typed) {
            Ok(axis) => {
                let values: Vec<String> = axis.values.iter().map(|v| v.value.to_string()).collect();
                format!("{}: {}", axis.knob, values.join(" "))
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
        let axes = [read("a.b=1,2").unwrap(), read("c.d=1..3:1").unwrap()];
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
        let wide = [read("a.b=1..9000:1").unwrap(), read("c.d=1..9000:1").unwrap()];
        assert_eq!(chosen(&wide, Some(2), 1).unwrap().len(), 2);
        let refused = chosen(&wide, None, 1).unwrap_err().to_string();
        assert_eq!(refused, "the grid has 81000000 settings, and at most 10000 are tried");
        let endless = vec![wide[0].clone(); 8];
        assert!(chosen(&endless, Some(2), 1).is_err());
    }
}
