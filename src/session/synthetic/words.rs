//! The words and numbers of the generator: data beside the presets, embedded and parsed once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::code::CodeLanguage;
use super::facts::Class;
use super::workspace::Intent;

/// Words or templates of one kind.
pub(crate) type Bank = Vec<&'static str>;

/// A distribution as `(thousandths of a percent, value)`, both ascending, from 0 to 100,000.
pub(crate) type Quantiles = Vec<(u64, u64)>;

pub(crate) static NAMES: LazyLock<Names> =
    LazyLock::new(|| table(include_str!("../../../presets/families/shared/names.toml")));
pub(crate) static PROSE: LazyLock<Prose> =
    LazyLock::new(|| table(include_str!("../../../presets/families/shared/prose.toml")));
pub(crate) static CODE: LazyLock<Code> =
    LazyLock::new(|| table(include_str!("../../../presets/families/shared/code.toml")));
pub(crate) static HELP_DESK: LazyLock<HelpDeskWords> = LazyLock::new(|| {
    table(include_str!(
        "../../../presets/families/shared/help-desk.toml"
    ))
});
pub(crate) static SMALL_TALK: LazyLock<SmallTalk> = LazyLock::new(|| {
    table(include_str!(
        "../../../presets/families/shared/small-talk.toml"
    ))
});
pub(crate) static FACTS: LazyLock<FactWords> =
    LazyLock::new(|| table(include_str!("../../../presets/families/shared/facts.toml")));
pub(crate) static REPOSITORY_FACTS: LazyLock<WorkFacts> = LazyLock::new(|| {
    table(include_str!(
        "../../../presets/families/shared/facts-repository.toml"
    ))
});
pub(crate) static HELP_DESK_FACTS: LazyLock<WorkFacts> = LazyLock::new(|| {
    table(include_str!(
        "../../../presets/families/shared/facts-help-desk.toml"
    ))
});
pub(crate) static SIZES: LazyLock<Sizes> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../presets/families/shared/sizes.toml")).unwrap_or_default()
});

/// A test loads every table, so that none is ever empty.
fn table<T: Deserialize<'static> + Default>(text: &'static str) -> T {
    toml::from_str(text).unwrap_or_default()
}

/// What things in the simulated repository are called.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct Names {
    /// What a module is about: the first part of most identifiers.
    pub(crate) nouns: Bank,
    /// What a file does for its module.
    pub(crate) roles: Bank,
    /// What functions do,
    pub(crate) verbs: Bank,
    /// and to what.
    pub(crate) objects: Bank,
    /// What goes wrong: the names of error variants.
    pub(crate) faults: Bank,
    pub(crate) participles: Bank,
    /// When a test looks at it.
    pub(crate) moments: Bank,
}

/// Sentences of a repository: comments in code, log events, and what the agent and the user say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prose {
    pub(crate) system: &'static str,
    pub(crate) purposes: Bank,
    pub(crate) docs: Bank,
    pub(crate) reasons: Bank,
    pub(crate) events: Bank,
    pub(crate) findings: Bank,
    pub(crate) next: Bank,
    pub(crate) thoughts: Bank,
    pub(crate) report_heads: Bank,
    pub(crate) report_points: Bank,
    pub(crate) requests: Bank,
    pub(crate) openings: Bank,
    pub(crate) compacting: Bank,
    pub(crate) focus: Bank,
    pub(crate) wrap_ups: Bank,
    pub(crate) intents: BTreeMap<Intent, Bank>,
}

/// The languages of the simulated repository.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct Code {
    pub(crate) languages: Vec<CodeLanguage>,
}

/// What there is at a help desk, and what is said about it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct HelpDeskWords {
    pub(crate) items: Bank,
    pub(crate) carriers: Bank,
    /// States of an order; the first four before anybody changes it.
    pub(crate) states: Bank,
    /// Subjects of the policy.
    pub(crate) subjects: Bank,
    pub(crate) events: Bank,
    pub(crate) clauses: Bank,
    pub(crate) notes: Bank,
    pub(crate) letters: Bank,
    pub(crate) findings: Bank,
    pub(crate) thoughts: Bank,
    pub(crate) intents: BTreeMap<Intent, Bank>,
}

/// A little script and some talk.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct SmallTalk {
    /// How the person begins.
    pub(crate) first: Bank,
    pub(crate) greeted: Bank,
    /// The second request.
    pub(crate) second: Bank,
    /// Questions of the person with the agent's answers.
    pub(crate) chat: Vec<(&'static str, &'static str)>,
    /// What the agent says before it uses a tool.
    pub(crate) said: Vec<Bank>,
    pub(crate) done: Bank,
}

/// How planted facts are said and asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct FactWords {
    pub(crate) asked: Bank,
    pub(crate) said: Bank,
    pub(crate) logged: Bank,
    /// How the user leads over to a rule.
    pub(crate) rule_leads: Bank,
    /// How a request is filed.
    pub(crate) filed: Bank,
    /// What can fail, how that is printed, and in which files.
    pub(crate) attempts: Bank,
    pub(crate) failed: Bank,
    pub(crate) folders: Vec<(&'static str, &'static str)>,
    /// How a step of a series is reported.
    pub(crate) passed: Bank,
    /// How the start and the end of a handle are reported.
    pub(crate) started: Bank,
    pub(crate) finished: Bank,
    /// How an instruction is given and taken back.
    pub(crate) instructed: Bank,
    pub(crate) withdrawn: Bank,
    pub(crate) syllables: Syllables,
    pub(crate) attributes: BTreeMap<Class, Bank>,
}

/// Syllables of made-up names, which no two kinds of names share.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct Syllables {
    pub(crate) facts: Bank,
    pub(crate) rules: Bank,
    pub(crate) timeline: Bank,
}

/// What facts are made of in one kind of workspace: the words of one would give a fact away in the
/// other.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct WorkFacts {
    /// The first words of keys,
    pub(crate) places: Bank,
    /// the second,
    pub(crate) parts: Bank,
    /// and the classes of their values.
    pub(crate) classes: Vec<Class>,
    /// What goes on in steps.
    pub(crate) series: Bank,
    /// What is started and ended.
    pub(crate) owners: Bank,
    /// What an instruction is about.
    pub(crate) subjects: Bank,
    /// A key, the class of its value, and a question that shares no content word with it.
    pub(crate) rewordings: Vec<(&'static str, Class, &'static str)>,
    pub(crate) way: Way,
    pub(crate) rules: Vec<RuleWords>,
}

/// What has a place of its own, how that is said, and how a value of the place is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Way {
    pub(crate) system: &'static str,
    pub(crate) led: Bank,
    pub(crate) attributes: Vec<(&'static str, Class)>,
    pub(crate) asked: &'static str,
}

/// One kind of rule.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleWords {
    /// What it may be about; each is used once.
    pub(crate) abouts: Bank,
    /// How it is said: `{about}`, a made-up `{name}`, a `{number}`. Where a place must be left
    /// alone, another one is free: `{spare}`.
    pub(crate) templates: Bank,
    /// Two rules that differ in polarity, number or object alone: one is set, the other is its
    /// foil. They share as many words with the question, and hold the same slots but for
    /// `{number}`, which is `{other}` in the second. Many hang on a negation and an exception,
    /// which a careless summary drops. Empty where the rule is asked for by calls.
    #[serde(default)]
    pub(crate) pairs: Vec<(&'static str, &'static str)>,
    /// How it is named, in words of each template.
    pub(crate) topic: &'static str,
    /// Work that breaks it, at a `{place}`; only where a place must be left alone.
    #[serde(default)]
    pub(crate) task: &'static str,
}

/// Distributions of sizes and times.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sizes {
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
    /// Milliseconds between a tool result and the next response.
    pub(crate) thinking: Quantiles,
    /// Milliseconds until a person has read an answer and typed the next request.
    pub(crate) reading: Quantiles,
}

/// Replaces each `{slot}` of a template by its value; a doubled brace is a brace.
pub(crate) fn fill(template: &str, slots: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let brace = &after[..1];
        if let Some(tail) = after[1..].strip_prefix(brace) {
            text.push_str(brace);
            rest = tail;
            continue;
        }
        let (name, tail) = after[1..].split_once('}').unwrap_or((&after[1..], ""));
        let value = slots.iter().find(|(slot, _)| *slot == name);
        text.push_str(value.map_or(name, |(_, value)| value));
        rest = tail;
    }
    text.push_str(rest);
    text
}

/// `load_invoice` as `loadInvoice`.
pub(crate) fn camel(snake: &str) -> String {
    let mut parts = snake.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + &capital(part))
}

/// `stale_cursor` as `StaleCursor`.
pub(crate) fn pascal(snake: &str) -> String {
    snake.split('_').map(capital).collect()
}

pub(crate) fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_and_their_values_are_not_read_again() {
        let filled = fill("a {x} c {y} {{z}}", &[("x", "{y}"), ("y", "d")]);
        assert_eq!(filled, "a {y} c d {z}");
    }

    #[test]
    fn every_table_is_read() {
        assert!(NAMES.nouns.len() > 20);
        assert!(PROSE.findings.len() > 5 && PROSE.intents.len() == 10);
        assert_eq!(CODE.languages.len(), 3);
        assert!(HELP_DESK.items.len() > 5 && HELP_DESK.intents.len() == 9);
        assert_eq!(SMALL_TALK.said.len(), 4);
        assert!(FACTS.attributes.len() == 6 && FACTS.syllables.rules.len() > 10);
        for facts in [&REPOSITORY_FACTS, &HELP_DESK_FACTS] {
            assert_eq!(facts.rules.len(), 7);
        }
        assert!(SIZES.tasks.first_morning < SIZES.phases.first_morning);
    }
}
