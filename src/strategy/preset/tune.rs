//! What a sweep varies unasked: when a strategy fires, and how much it keeps.
//!
//! A preset may name its knobs in `[[tune]]` tables. Without them they are derived from what it sets: the size
//! that it waits for and the number that it keeps, each with a few steps around its value.

use std::cmp::Ordering;

use super::{OVERFLOW, StrategySpec, name_of};
use crate::settings::{CheckedTable, Reader, Setting, SettingError, SettingTable, SettingValue};
use crate::strategy::knob::KEYS;
use crate::strategy::trigger::condition;

/// The digits of the steps of whole numbers: 1, 2, 5, 10, 20, and so on.
const DIGITS: [i64; 3] = [1, 2, 5];

/// A step that is nearer to the strategy's own value than this factor tries nothing new.
const NEAREST: f64 = 1.2;

/// The steps of shares.
const SHARES: [f64; 13] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// The same of a share.
const NEAREST_SHARE: f64 = 0.015;

/// A knob with the values that a sweep tries.
#[derive(Debug, Clone, PartialEq)]
pub struct Tune {
    /// `stage.knob`, or `stage.when.CONDITION`.
    pub knob: String,
    /// The values, the strategy's own among them; numbers ascend.
    pub values: Vec<Setting>,
}

/// A knob, with how many steps below and above its value a sweep tries.
type Stepped = (String, [usize; 2]);

/// What could be varied of one stage.
#[derive(Default)]
struct Tunable {
    /// A size that its trigger waits for.
    waits: Option<Stepped>,
    /// Another knob that says how often it does something.
    fires: Option<Stepped>,
    /// How much it keeps.
    keeps: Option<Stepped>,
}

impl StrategySpec {
    /// The knobs that a sweep varies where none is named: those of the preset's `[[tune]]` tables, else when
    /// the strategy fires, and how much it keeps. Empty where it has no such knob.
    pub fn tunes(&self) -> Result<Vec<Tune>, SettingError> {
        let mut tunes = self.written_tunes()?;
        if tunes.is_empty() {
            tunes = self.derived_tunes();
        }
        for tune in &mut tunes {
            if let Some(own) = self.value_of(&tune.knob) {
                tune.add(own);
            }
            for value in &tune.values {
                self.clone().with(&tune.knob, value.clone())?;
            }
        }
        Ok(tunes)
    }

    /// The value of a knob, `stage.knob`, `guards.…` or `overflow.…`: what is set, else the default. Of
    /// `stage.when.CONDITION` and `stage.prepare_at.CONDITION` the value in its trigger, however it is combined with
    /// others.
    pub fn value_of(&self, path: &str) -> Option<Setting> {
        let (head, knob) = path.split_once('.')?;
        let (kind, table) = match head {
            "guards" => (head, self.table.table(head)?),
            OVERFLOW => self.overflow_kind()?,
            _ => {
                let stage = self.stage(head)?;
                (stage.text("kind")?, stage)
            }
        };
        if let Some((nested @ ("when" | "prepare_at" | "guards"), name)) = knob.split_once('.') {
            return waited_for(table.get(nested)?, name).cloned();
        }
        match table.get(knob) {
            Some(set) => Some(set.clone()),
            None => KEYS.table(kind).table(knob)?.get("default").cloned(),
        }
    }

    /// The tables as they are written.
    pub(super) fn written_tunes(&self) -> Result<Vec<Tune>, SettingError> {
        Reader::new(&self.table, "").tables("tune")?.into_iter().map(Tune::read).collect()
    }

    fn derived_tunes(&self) -> Vec<Tune> {
        let tunes = self.tunable().into_iter().flatten().filter_map(|(knob, steps)| {
            let own = self.value_of(&knob)?;
            let tried = around(&own.value, steps)?.into_iter();
            let values = tried.map(|value| Setting::new(value, &own.place)).collect();
            Some(Tune { knob, values })
        });
        tunes.collect()
    }

    /// When it fires and what it keeps: of one stage where one says both, else the first of each. Sizes that
    /// triggers wait for go before other knobs.
    fn tunable(&self) -> [Option<Stepped>; 2] {
        let on = self.stages_set().filter(|stage| is_on(stage));
        let named = on.filter_map(|stage| Some((name_of(stage)?, stage.text("kind")?, stage)));
        let overflow = self.overflow_kind().map(|(kind, table)| (OVERFLOW, kind, table));
        let stages: Vec<Tunable> = named
            .chain(overflow)
            .map(|(name, kind, table)| Tunable::of(name, kind, table))
            .collect();
        let waits = stages.iter().any(|stage| stage.waits.is_some());
        let mut found = [None, None];
        for stage in stages {
            let pair = [if waits { stage.waits } else { stage.fires }, stage.keeps];
            if pair.iter().all(Option::is_some) {
                return pair;
            }
            for (first, own) in found.iter_mut().zip(pair) {
                if first.is_none() {
                    *first = own;
                }
            }
        }
        found
    }

    /// The table of `[overflow]`, with the kind of its stage.
    fn overflow_kind(&self) -> Option<(&str, &SettingTable)> {
        let table = self.table.table(OVERFLOW)?;
        let wanted = table.text("stage")?;
        let kind = self.stage(wanted).and_then(|stage| stage.text("kind"));
        Some((kind.unwrap_or(wanted), table))
    }
}

impl Tune {
    fn read(table: &SettingTable) -> Result<Self, SettingError> {
        let checked = CheckedTable::new(table, "tune", (&KEYS, "tune"))?;
        let Some(knob) = checked.text("knob") else {
            let problem = "`tune` names no `knob`";
            return Err(SettingError::new(table.place(), problem)
                .with_hint("write `knob = \"stage.knob\"` and `values = [1, 3, 10]`"));
        };
        let Some(values) = table.list("values").filter(|values| !values.is_empty()) else {
            let problem = format!("`tune` has no list of `values` for `{knob}`");
            return Err(SettingError::new(checked.place_of("values"), problem)
                .with_hint("write `values = [1, 3, 10]`"));
        };
        Ok(Self { knob: knob.to_owned(), values: values.to_vec() })
    }

    /// Adds a value that is not there yet, in its order.
    fn add(&mut self, own: Setting) {
        if self.values.iter().any(|value| value.value == own.value) {
            return;
        }
        self.values.push(own);
        self.values.sort_by(|left, right| {
            let numbers = number(&left.value).zip(number(&right.value));
            numbers.map_or(Ordering::Equal, |(left, right)| left.total_cmp(&right))
        });
    }
}

impl Tunable {
    fn of(name: &str, kind: &str, stage: &SettingTable) -> Self {
        let when = stage.get("when");
        let keeps = first_set(kind, stage, "keeps");
        let waits = when.and_then(|when| {
            condition::names().into_iter().find_map(|name| {
                let steps = steps_of("condition", name, "fires")?;
                waited_for(when, name).map(|_| (format!("when.{name}"), steps))
            })
        });
        // A stage without a trigger fires before every call: the knob that decides together with what it keeps
        // says how often it does something.
        let beside = keeps.as_ref().filter(|_| when.is_none()).and_then(|(knob, _)| {
            let (other, _) = decides_with(kind, knob)?;
            Some((other.to_owned(), steps_of(kind, other, "fires")?))
        });
        let fires = first_set(kind, stage, "fires").or(beside);
        let [waits, fires, keeps] = [waits, fires, keeps]
            .map(|found| found.map(|(knob, steps)| (format!("{name}.{knob}"), steps)));
        Self { waits, fires, keeps }
    }
}

/// Whether a stage is not switched off.
fn is_on(stage: &SettingTable) -> bool {
    let enabled = stage.get("enabled").map(|enabled| &enabled.value);
    enabled != Some(&SettingValue::Flag(false))
}

/// The first knob of a stage that is set and has this part.
fn first_set(kind: &str, stage: &SettingTable, part: &str) -> Option<Stepped> {
    stage.entries().iter().find_map(|(key, _)| Some((key.clone(), steps_of(kind, key, part)?)))
}

/// How many steps a key has for a part, `fires` or `keeps`; `None` where it has no such part.
fn steps_of(section: &str, key: &str, part: &str) -> Option<[usize; 2]> {
    let [below, above] = KEYS.table(section).table(key)?.list(part)? else {
        return None;
    };
    match (&below.value, &above.value) {
        (SettingValue::Integer(below), SettingValue::Integer(above)) => {
            Some([usize::try_from(*below).ok()?, usize::try_from(*above).ok()?])
        }
        _ => None,
    }
}

/// The knob that decides together with this one, and values to sweep it over: `sweep_with` in `keys.toml`.
pub(super) fn decides_with(kind: &str, knob: &str) -> Option<(&'static str, &'static str)> {
    KEYS.table(kind).table(knob)?.text("sweep_with")?.split_once('=')
}

/// The value of the first condition of this name in a trigger.
fn waited_for<'a>(when: &'a Setting, name: &str) -> Option<&'a Setting> {
    let table = when.as_table()?;
    let nested = table.entries().iter().filter_map(|(_, list)| list.as_list());
    table.get(name).or_else(|| nested.flatten().find_map(|item| waited_for(item, name)))
}

/// Sets `when.CONDITION` of a stage where its trigger has such a condition; `false` where it has none.
pub(super) fn set_condition(stage: &mut SettingTable, knob: &str, value: &Setting) -> bool {
    let named = knob.strip_prefix("when.").zip(stage.get_mut("when"));
    named.is_some_and(|(name, when)| set_first(when, name, value))
}

/// Sets the first condition of this name in a trigger.
fn set_first(when: &mut Setting, name: &str, value: &Setting) -> bool {
    let Some(table) = when.as_table_mut() else {
        return false;
    };
    if let Some(own) = table.get_mut(name) {
        own.clone_from(value);
        return true;
    }
    table.entries_mut().any(|(_, list)| match &mut list.value {
        SettingValue::List(items) => items.iter_mut().any(|item| set_first(item, name, value)),
        _ => false,
    })
}

fn number(value: &SettingValue) -> Option<f64> {
    match value {
        SettingValue::Integer(number) => Some(*number as f64),
        SettingValue::Real(number) => Some(*number),
        _ => None,
    }
}

/// A number between so many steps below and above it. Where one side has too few, the other gets more.
fn around(own: &SettingValue, [below, above]: [usize; 2]) -> Option<Vec<SettingValue>> {
    let own_number = number(own)?;
    let steps: Vec<SettingValue> = match own {
        SettingValue::Integer(_) => {
            let powers = (0..16).map(|power| 10_i64.pow(power));
            powers
                .flat_map(|power| DIGITS.map(|digit| SettingValue::Integer(digit * power)))
                .collect()
        }
        _ => SHARES.map(SettingValue::Real).into(),
    };
    let (lower, higher): (Vec<SettingValue>, Vec<SettingValue>) = steps
        .into_iter()
        .filter(|step| number(step).is_some_and(|step| is_apart(own, own_number, step)))
        .partition(|step| number(step) < Some(own_number));
    let low = below.max((below + above).saturating_sub(higher.len())).min(lower.len());
    let high = (below + above - low).min(higher.len());
    let values = lower[lower.len() - low..].iter().chain([own]);
    Some(values.chain(&higher[..high]).cloned().collect())
}

/// Whether a step tries something else than the strategy's own value.
fn is_apart(own: &SettingValue, own_number: f64, step: f64) -> bool {
    match own {
        SettingValue::Integer(_) => step / own_number >= NEAREST || own_number / step >= NEAREST,
        _ => (step - own_number).abs() >= NEAREST_SHARE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Place;
    use crate::strategy::preset::PRESETS;
    use crate::strategy::trigger::Trigger;

    fn named(name: &str) -> StrategySpec {
        StrategySpec::parse(name, &Trigger::always(), &Place::BuiltIn).unwrap()
    }

    /// Each knob with its values, one a line.
    fn shown(spec: &StrategySpec) -> Vec<String> {
        let tunes = spec.tunes().unwrap_or_else(|error| panic!("{error}"));
        let tunes = tunes.iter().map(|tune| {
            let values: Vec<String> =
                tune.values.iter().map(|setting| setting.value.to_string()).collect();
            format!("{} {}", tune.knob, values.join(" "))
        });
        tunes.collect()
    }

    #[test]
    fn every_preset_that_fires_or_keeps_has_knobs_around_its_own_values() {
        let mut without = Vec::new();
        for (name, _) in PRESETS {
            let spec = named(name);
            let tunes = spec.tunes().unwrap_or_else(|error| panic!("{name}: {error}"));
            if tunes.is_empty() {
                without.push(*name);
            }
            assert!(tunes.len() <= 2, "{name}: a screen has two sides");
            for tune in tunes {
                let numbers: Vec<f64> =
                    tune.values.iter().filter_map(|setting| number(&setting.value)).collect();
                assert_eq!(numbers.len(), 5, "{name}: {}", tune.knob);
                assert!(numbers.is_sorted_by(|left, right| left < right), "{name}: {}", tune.knob);
                // The preset's own value is one of them, and changes nothing.
                let own = spec.value_of(&tune.knob).unwrap();
                assert!(
                    tune.values.iter().any(|value| value.value == own.value),
                    "{name}: {}",
                    tune.knob
                );
                let same = spec.clone().with(&tune.knob, own.clone()).unwrap();
                // One that is not set is written out.
                let (_, knob) = tune.knob.rsplit_once('.').unwrap();
                let line = format!("{knob} = {}\n", own.value);
                let [same, own] = [&same, &spec].map(|spec| spec.to_toml().replace(&line, ""));
                assert_eq!(same, own, "{name}: {}", tune.knob);
            }
            assert!(!spec.to_toml().contains("tune"), "{name}: what is tuned is no behaviour");
        }
        assert_eq!(without, ["none", "recorded"]);
    }

    #[test]
    fn knobs_are_those_of_the_stage_that_does_the_work() {
        for (name, knobs) in [
            (
                "observation-masking",
                &["clear_results.every 1 2 5 10 20", "clear_results.keep_last 2 5 10 20 50"][..],
            ),
            (
                "codex",
                &[
                    "summarize.when.window_fraction 0.6 0.7 0.8 0.9 1.0",
                    "summarize.user_messages_max_tokens 5000 10000 20000 50000 100000",
                ],
            ),
            (
                // A stage that is off is not turned; what is restored is more than the newest round.
                "claude-code",
                &[
                    "summarize.when.reserve_tokens 10000 13000 20000 50000 100000",
                    "restore.total_tokens 10000 20000 50000 100000 200000",
                ],
            ),
            (
                "learn-claude-code-s06",
                &[
                    "summarize.when.tokens_over 5000 10000 20000 50000 100000",
                    "clear_results.keep_last 1 2 3 5 10",
                ],
            ),
            ("strands-window", &["drop_middle.max_messages 10 20 41 50 100"]),
            ("tail@20000", &["select.budget_tokens 5000 10000 20000 50000 100000"]),
            (
                // As it was overridden.
                "codex[summarize.when.window_fraction=0.75]",
                &[
                    "summarize.when.window_fraction 0.5 0.6 0.7 0.75 0.8",
                    "summarize.user_messages_max_tokens 5000 10000 20000 50000 100000",
                ],
            ),
        ] {
            assert_eq!(shown(&named(name)), knobs, "{name}");
        }
    }

    #[test]
    fn a_preset_of_ones_own_says_what_is_tuned_or_is_told_what_is_wrong() {
        #[track_caller]
        fn check(tune: &str, says: &str) {
            let text = format!("{tune}\n[[stage]]\nkind = 'clear_results'\nkeep_last = 4\n");
            let table = SettingTable::parse("mine.toml", &text).unwrap();
            let spec = StrategySpec::of("mine", table, &Trigger::always());
            let said = spec.and_then(|spec| spec.tunes().map(|_| shown(&spec).join("; ")));
            let said = said.unwrap_or_else(|error| error.to_string());
            assert_eq!(said, says);
        }
        check("", "clear_results.every 1 2 5 10 20; clear_results.keep_last 1 2 4 5 10");
        check(
            "tune = [{ knob = 'clear_results.keep_last', values = [8, 2] }]",
            "clear_results.keep_last 2 4 8",
        );
        check("tune = [{ values = [8, 2] }]", "`mine.toml`: line 1: `tune` names no `knob`");
        check(
            "tune = [{ knob = 'clear_results.keep_last' }]",
            "`mine.toml`: line 1: `tune` has no list of `values` for `clear_results.keep_last`",
        );
        check(
            "tune = [{ knob = 'clear_results.keep_lost', values = [1] }]",
            "`mine.toml`: line 1: unknown key `clear_results.keep_lost`, did you mean `keep_last`?",
        );
        check(
            "tune = [{ knob = 'clear_results.keep_last', values = [1], of = 2 }]",
            "`mine.toml`: line 1: unknown key `tune.of`",
        );
    }
}
