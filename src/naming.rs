//! The names of strategies: a base, and in brackets the knobs that were changed.
//!
//! A name is printed in reports and typed on the command line, so it has one grammar, which is read and
//! written here: `observation-masking[clear_results.keep_last=5,clear_results.every=10]`. A value may hold
//! commas and brackets of its own inside quotes, lists and tables.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

/// A strategy's name in its parts. Printed, it is the text that it was read from, without spaces around
/// paths and values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyName {
    /// The preset or the control, without overrides. In `tail@STRATEGY` the overrides are those of STRATEGY.
    pub base: String,
    /// Each changed knob (`stage.knob`) with its value as it was written: TOML, or a bare word.
    pub overrides: Vec<(String, String)>,
}

/// A mistake in the name of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyNameError {
    /// Overrides end with `]`.
    #[error("`{0}` opens a bracket and does not close it")]
    UnclosedBracket(String),
    /// An override, here the first, is a path, `=` and a value; the second is the whole name.
    #[error("`{0}` in `{1}` sets nothing: write `stage.knob=value`")]
    SetsNothing(String, String),
}

impl StrategyName {
    /// Reads a name that a run recorded. One that is not well formed has no overrides.
    pub fn recorded(name: &str) -> Self {
        name.parse().unwrap_or_else(|_| Self { base: name.to_owned(), overrides: Vec::new() })
    }

    /// Sets a knob in place of an earlier value for it. The last change is shown last.
    pub fn set(&mut self, path: &str, value: impl fmt::Display) {
        self.overrides.retain(|(other, _)| other != path);
        self.overrides.push((path.to_owned(), value.to_string()));
    }

    /// The form in sentences, with knobs but not the stages that they belong to:
    /// `observation-masking[keep_last=5]`.
    pub fn short(mut self) -> String {
        for (path, _) in &mut self.overrides {
            if let Some((_, knob)) = path.rsplit_once('.') {
                *path = knob.to_owned();
            }
        }
        self.to_string()
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        for (at, (path, value)) in self.overrides.iter().enumerate() {
            write!(f, "{}{path}={value}", if at == 0 { '[' } else { ',' })?;
        }
        f.write_str(if self.overrides.is_empty() { "" } else { "]" })
    }
}

impl FromStr for StrategyName {
    type Err = StrategyNameError;

    fn from_str(name: &str) -> Result<Self, StrategyNameError> {
        let mut overrides = Vec::new();
        let Some((base, rest)) = name.split_once('[') else {
            return Ok(Self { base: name.to_owned(), overrides });
        };
        let Some(items) = rest.strip_suffix(']') else {
            return Err(StrategyNameError::UnclosedBracket(name.to_owned()));
        };
        for item in split_at_commas(items) {
            let Some((path, value)) = item.split_once('=') else {
                return Err(StrategyNameError::SetsNothing(item.to_owned(), name.to_owned()));
            };
            overrides.push((path.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self { base: base.to_owned(), overrides })
    }
}

/// A recorded name without overrides.
pub fn base_name(name: &str) -> String {
    StrategyName::recorded(name).base
}

/// The [short](StrategyName::short) form of a recorded name.
pub fn short_name(name: &str) -> String {
    StrategyName::recorded(name).short()
}

/// One token of overrides: a text in any of TOML's quotes, or a character.
static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let quoted = r#""{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'"#;
    Regex::new(&format!("(?s){quoted}|.")).ok()
});

/// The parts between commas outside brackets, braces and quotes.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut depth) = (0, 0_u32);
    for token in TOKEN.iter().flat_map(|token| token.find_iter(text)) {
        match token.as_str() {
            "[" | "{" => depth += 1,
            "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                parts.push(&text[from..token.start()]);
                from = token.end();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::settings::{Place, Setting, SettingTable, SettingValue};

    /// Values of every kind, with text that holds what the grammar of names is made of.
    fn value() -> impl Strategy<Value = SettingValue> {
        let text = prop_oneof!["[\\[\\]{},='\"\\\\ ab]{0,8}", any::<String>()];
        let leaf = prop_oneof![
            text.prop_map(SettingValue::Text),
            any::<i64>().prop_map(SettingValue::Integer),
            any::<f64>().prop_map(SettingValue::Real),
            any::<bool>().prop_map(SettingValue::Flag),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..3);
            let table = prop::collection::vec(("[a-z_]{1,4}", inner), 0..3);
            prop_oneof![
                list.prop_map(|values| {
                    let values = values.into_iter();
                    let items = values.map(|value| Setting::new(value, &Place::BuiltIn));
                    SettingValue::List(items.collect())
                }),
                table.prop_map(|entries| {
                    let mut table = SettingTable::new(Place::BuiltIn);
                    for (key, value) in entries {
                        table.put(&key, value, &Place::BuiltIn);
                    }
                    SettingValue::Table(table)
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_printed_name_is_read_as_the_name_it_was(
            base in "[a-z0-9][a-z0-9._@-]{0,9}",
            changes in prop::collection::vec(("[a-z_]{1,6}([.][a-z_]{1,6}){0,2}", value()), 0..4),
        ) {
            let mut name = StrategyName { base, overrides: Vec::new() };
            for (path, value) in changes {
                name.set(&path, value);
            }
            prop_assert_eq!(name.to_string().parse::<StrategyName>(), Ok(name.clone()));
            let short = name.clone().short().parse::<StrategyName>().unwrap();
            prop_assert_eq!(short.base, name.base);
            for ((knob, shown), (path, value)) in short.overrides.iter().zip(&name.overrides) {
                prop_assert!(path.ends_with(knob.as_str()) && shown == value);
            }
            prop_assert_eq!(short.overrides.len(), name.overrides.len());
        }
    }
}
