//! The state of a program of the user's own: whether it is still the one that made a run's results.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::many;

/// What a program of the user's own was when a run was planned: with another one its numbers may differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramState {
    /// The files that it loaded, by name, each with a hash of its content.
    pub files: BTreeMap<String, String>,
    /// A hash of its cell of the shortest session; `None` where it failed there, or answered twice differently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
}

impl ProgramState {
    /// Why a later state is not the same program, in words; `None` if it is. Files that came since do not count: a
    /// program that works as before does not need them.
    pub fn difference(&self, later: &Self) -> Option<String> {
        let files = self.files.iter();
        let mut changed = files.filter(|(name, hash)| later.files.get(*name) != Some(*hash));
        if let Some((name, _)) = changed.next() {
            let more = match changed.count() {
                0 => String::new(),
                count => format!(" and {}", many(count, "other file", "other files")),
            };
            return Some(format!("`{name}`{more} changed"));
        }
        let answers = self.answers.as_ref().zip(later.answers.as_ref());
        let differ = answers.is_some_and(|(one, other)| one != other);
        differ.then(|| "its answers changed".to_owned())
    }
}

/// The facts that a program keeps where its summaries quote every fact that the program sends: what is missing here, no
/// summary lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plumbing {
    /// Scores of the planted items, each times its weight.
    pub kept: f64,
    /// Their weights.
    pub weight: f64,
    /// How many there are.
    pub items: usize,
}

/// The kinds of the stages that are on, in a strategy that is written as TOML.
pub(crate) fn kinds_of(toml: &str) -> Vec<String> {
    let table: toml::Table = toml.parse().unwrap_or_default();
    let stages = table.get("stage").and_then(toml::Value::as_array);
    let on = stages.into_iter().flatten().filter(|stage| {
        let enabled = stage.get("enabled").and_then(toml::Value::as_bool);
        enabled != Some(false)
    });
    on.filter_map(|stage| Some(stage.get("kind")?.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_is_off_has_no_kind() {
        let toml =
            "[[stage]]\nkind = \"recorded\"\nenabled = false\n\n[[stage]]\nkind = \"clear\"\n";
        assert_eq!(kinds_of(toml), ["clear"]);
        assert!(kinds_of("name = \"none\"").is_empty());
    }
}
