//! The words and numbers of the generator: data beside the presets, embedded and parsed once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::family::Every;
use super::workspace::Intent;

/// Words or templates of one kind.
pub(crate) type Bank = Vec<&'static str>;

/// A distribution as `(thousandths of a percent, value)`, both ascending, from 0 to 100,000.
pub(crate) type Quantiles = Vec<(u64, u64)>;

pub(crate) static REPOSITORY_FACTS: LazyLock<WorkFacts> =
    LazyLock::new(|| table(include_str!("../families/shared/facts-repository.toml")));
pub(crate) static HELP_DESK_FACTS: LazyLock<WorkFacts> =
    LazyLock::new(|| table(include_str!("../families/shared/facts-help-desk.toml")));
pub(crate) static SIZES: LazyLock<SizeRanges> =
    LazyLock::new(|| table(include_str!("../families/shared/sizes.toml")));

/// A test loads every table, so that none is ever empty.
fn table<T: Deserialize<'static> + Default>(text: &'static str) -> T {
    toml::from_str(text).unwrap_or_default()
}

/// The words of facts in one kind of workspace: the words of one would give a fact away in the
/// other.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct WorkFacts {
    /// The first words of keys,
    pub(crate) places: Bank,
    /// the second,
    pub(crate) parts: Bank,
    /// and the classes of their values.
    pub(crate) classes: Bank,
    /// Processes that go on in steps.
    pub(crate) series: Bank,
    /// Things that are started and ended.
    pub(crate) owners: Bank,
    /// Subjects of instructions.
    pub(crate) subjects: Bank,
    /// A key, the class of its value, and a question that shares no content word with it.
    pub(crate) rewordings: Vec<(&'static str, &'static str, &'static str)>,
    /// By kind of fact: one is planted every this many rounds, up to a cap.
    pub(crate) every: Every,
    pub(crate) way: Way,
    pub(crate) rules: Vec<RuleWords>,
    /// The agent's first sentences before each kind of work.
    pub(crate) intents: BTreeMap<Intent, Bank>,
}

/// A thing that has a place of its own, the sentence about it, and the question for a value of the
/// place.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Way {
    pub(crate) system: &'static str,
    pub(crate) led: Bank,
    pub(crate) attributes: Vec<(&'static str, &'static str)>,
    pub(crate) asked: &'static str,
}

/// One kind of rule.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleWords {
    /// Its possible objects; each is used once.
    pub(crate) abouts: Bank,
    /// How it is said: `{about}`, a `{name}` of its own, a `{number}`. Where a place must be left
    /// alone, another one is free: `{spare}`.
    pub(crate) templates: Bank,
    /// Two rules that differ in polarity, number or object alone: one is set, the other is its
    /// foil. They share as many words with the question, and hold the same slots but for
    /// `{number}`, which is `{other}` in the second. Many hang on a negation and an exception,
    /// which a careless summary drops. Empty where the rule is asked for by calls.
    #[serde(default)]
    pub(crate) pairs: Vec<(&'static str, &'static str)>,
    /// How it is named, in words of each template,
    pub(crate) topic: &'static str,
    /// and how it is asked for.
    pub(crate) asked: &'static str,
    /// Work that breaks it, at a `{place}`; only where a place must be left alone.
    #[serde(default)]
    pub(crate) task: &'static str,
}

/// Distributions of sizes and times.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SizeRanges {
    pub(crate) files: Quantiles,
    pub(crate) results: Quantiles,
    pub(crate) help_desk_results: Quantiles,
    pub(crate) running: Quantiles,
    pub(crate) away: [Quantiles; 2],
    pub(crate) tasks: Pace,
    pub(crate) phases: Pace,
}

/// How a session passes the time.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pace {
    /// When the first of its days begins, in milliseconds since 1970.
    pub(crate) first_morning: i64,
    /// How many files a repository has besides the first 40, in percent of the rounds.
    pub(crate) files_percent: u64,
    /// The number of calls between two summaries of the conversation.
    pub(crate) compact_every: (u64, u64),
    /// Milliseconds between a tool result and the next response.
    pub(crate) thinking: Quantiles,
    /// Milliseconds until a person has read an answer and typed the next request.
    pub(crate) reading: Quantiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_read() {
        for facts in [&REPOSITORY_FACTS, &HELP_DESK_FACTS] {
            assert_eq!(facts.rules.len(), 7);
            assert!(facts.intents.len() > 8);
        }
        assert!(SIZES.tasks.first_morning < SIZES.phases.first_morning);
    }
}
