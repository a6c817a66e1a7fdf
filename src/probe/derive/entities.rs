//! Values that are rare: hashes, addresses, codes, long numbers, and settings with their keys.

use std::collections::{BTreeMap, BTreeSet};

use super::stated::setting;
use super::{Proposal, Texts, messages_of, proposal, tokens};
use crate::probe::Pattern;
use crate::session::ground_truth::{ArtifactVerb, Fact, KeyValue, Revision};
use crate::session::{ToolClass, ToolUse};

/// The number of a line's rarest words that make a key.
const KEY_WORDS: usize = 4;

/// The first part of the messages, in percent, in which values are searched for: every strategy keeps
/// the rest.
const NOT_THE_TAIL: usize = 80;

/// The class of a value that cannot be guessed, in words; `None` for any other token.
///
/// Each kind has at least 20 bits: 7 hexadecimal digits, 7 decimal ones, or an address.
pub(super) fn class_of(token: &str) -> Option<&'static str> {
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let is_address = token.starts_with("http") && token.contains("://");
    if token.len() > 120 || digits == 0 {
        None
    } else if is_address && token.len() > 24 && digits >= 4 {
        Some("address")
    } else {
        let mut classes = CLASSES.iter();
        let class = classes.find(|(_, pattern)| pattern.is_match(token));
        class.map(|(name, _)| *name)
    }
}

/// The first that fits counts.
static CLASSES: [(&str, Pattern); 5] = [
    (
        "id",
        Pattern::new("^[^-]{8}-[^-]{4}-[^-]{4}-[^-]{4}-[^-]{12}$"),
    ),
    ("number", Pattern::new("^[0-9]{7,}$")),
    ("hash", Pattern::new("^[0-9a-f]{7,64}$")),
    ("number", Pattern::new("^[0-9]{7,}[A-Za-z%]*$")),
    ("code", Pattern::new("^[A-Z]{2,6}[-_]*[0-9]{4,}$")),
];

/// Values that were said once, beside words that occur nowhere else.
pub(super) fn recalls(texts: &Texts<'_>) -> Vec<Proposal> {
    let end = texts.session.messages().len() * NOT_THE_TAIL / 100;
    let mut proposals: Vec<Proposal> = Vec::new();
    let mut messages = BTreeSet::new();
    for (at, line) in texts.lines().take_while(|(at, _)| *at < end) {
        // One value a message: neighbours are lost together.
        if messages.contains(&at) {
            continue;
        }
        let mut values = tokens(line).filter_map(|token| Some((token, class_of(token)?)));
        let (Some((value, class)), None) = (values.next(), values.next()) else {
            continue;
        };
        let words = texts.key_of(line, value, KEY_WORDS).unwrap_or_default();
        let names_it = words.iter().any(|word| texts.frequency(word) == 1);
        if !names_it || !texts.is_unique(value) {
            continue;
        }
        messages.insert(at);
        let key = words.join(" ");
        let question = format!("Which {class} was given beside the words: {key}?");
        let value = value.to_owned();
        proposals.push(proposal(question, vec![at], Fact::Recall { key, value }));
    }
    proposals
}

/// A value of a key.
#[derive(Debug)]
struct AssignedValue {
    message: usize,
    value: String,
    /// The file that shows it.
    path: Option<String>,
    /// Whether it occurs nowhere else.
    is_unique: bool,
}

fn assignments(texts: &Texts<'_>) -> BTreeMap<String, Vec<AssignedValue>> {
    let mut files: BTreeMap<usize, String> = BTreeMap::new();
    for (at, message) in texts.session.messages().iter().enumerate() {
        let tools = message.tool_uses().map(|(_, tool)| tool);
        let touched = tools.flat_map(texts.touched);
        let mut read = touched.filter(|(verb, _)| *verb == ArtifactVerb::Read);
        let mut tools = message.tool_uses().map(|(_, tool)| tool);
        // The result of a single read is the next message. A part of a file may show another of its
        // keys of that name.
        if let (Some((_, path)), None) = (read.next(), read.next())
            && !tools.any(reads_a_part)
        {
            files.insert(at + 1, path);
        }
    }
    let mut found: BTreeMap<String, Vec<AssignedValue>> = BTreeMap::new();
    for (at, line) in texts.lines() {
        if let Some((key, value)) = setting(line) {
            let of_key = found.entry(key.to_owned()).or_default();
            of_key.push(AssignedValue {
                message: at,
                value: value.to_owned(),
                path: files.get(&at).cloned(),
                is_unique: texts.is_unique(value),
            });
        }
    }
    // After one assignment that looks like other text, the value in force is unknown.
    found.retain(|_, values| values.iter().all(|assigned| assigned.is_unique));
    found
}

/// Whether the tool use names lines of its file, by their numbers.
fn reads_a_part(tool: &ToolUse) -> bool {
    let input = tool.input.value();
    let mut values = input.as_object().into_iter().flatten();
    values.any(|(_, value)| value.is_number() || value.is_array())
}

/// The messages in which a tool that does more than look is given the
/// key: its value may have changed there.
fn changed(texts: &Texts<'_>, key: &str, path: &str) -> Vec<usize> {
    let may_change = |tool: &ToolUse| match tool.class {
        ToolClass::Read | ToolClass::Grep | ToolClass::Glob | ToolClass::Todo => false,
        ToolClass::Edit | ToolClass::Write => {
            let files = (texts.touched)(tool);
            files.is_empty() || files.iter().any(|(_, file)| file == path)
        }
        _ => true,
    };
    let messages = texts.session.messages().iter().enumerate();
    let changes = messages.filter(|(_, message)| {
        message.tool_uses().any(|(block, tool)| {
            let text = message.model_text().get(block);
            text.is_some_and(|text| text.contains(key)) && may_change(tool)
        })
    });
    changes.map(|(at, _)| at).collect()
}

/// Replaces a value that a tool was given and no message shows.
const NOT_SHOWN: &str = "not shown";

/// Keys that were given several values, one after the other, in one file.
///
/// A key that a text outside of a known file holds too is left out: there, one key may belong to
/// several things.
pub(super) fn revised(texts: &Texts<'_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (key, values) in assignments(texts) {
        let messages: BTreeSet<usize> = values.iter().map(|said| said.message).collect();
        let paths: BTreeSet<Option<&String>> =
            values.iter().map(|said| said.path.as_ref()).collect();
        let [Some(path)] = paths.into_iter().collect::<Vec<_>>()[..] else {
            continue;
        };
        if values.len() < 2 || messages.len() != values.len() {
            continue;
        }
        let first = values.first().map_or(0, |said| said.message);
        let changes = changed(texts, &key, path);
        let ended = changes
            .into_iter()
            .filter(|at| *at > first && !messages.contains(at))
            .map(|message| Revision {
                value: NOT_SHOWN.to_owned(),
                message,
                unasked: true,
            });
        let said = values.iter();
        let said = said.map(|said| Revision::new(&*said.value, said.message));
        let mut values: Vec<Revision> = ended.chain(said).collect();
        values.sort_by_key(|said| said.message);
        let question = format!("Which value has `{key}` now?");
        let evidence = messages_of(&values);
        proposals.push(proposal(question, evidence, Fact::Update { key, values }));
    }
    proposals
}

/// The same key in several files, each with a value of its own that no tool changes later.
pub(super) fn bindings(texts: &Texts<'_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (key, values) in assignments(texts) {
        let paths: BTreeSet<&String> = values
            .iter()
            .filter_map(|said| said.path.as_ref())
            .collect();
        let [asked, others @ ..] = &values[..] else {
            continue;
        };
        let Some(path) = &asked.path else {
            continue;
        };
        let changes = changed(texts, &key, path);
        let is_changed = changes.last().is_some_and(|at| *at > asked.message);
        if paths.len() != values.len() || others.is_empty() || is_changed {
            continue;
        }
        let others = others.iter().filter_map(|other| {
            Some(KeyValue {
                key: format!("{key} {}", other.path.as_ref()?),
                value: other.value.clone(),
            })
        });
        let fact = Fact::Binding {
            key: key.clone(),
            value: asked.value.clone(),
            others: others.collect(),
        };
        let question = format!("Which value has `{key}` in `{path}`?");
        proposals.push(proposal(question, vec![asked.message], fact));
    }
    proposals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_guessed_have_a_class() {
        for (token, class) in [
            ("4f8a1c2", Some("hash")),
            ("deadbee", None),
            ("1234567", Some("number")),
            ("1234567ms", Some("number")),
            ("12345", None),
            ("OPS-48213", Some("code")),
            ("E0308", None),
            ("v1.2.3", None),
            ("https://example.org/builds/48213/log", Some("address")),
            ("0b7c3a51-0d7e-4b6c-9a55-1f2e3d4c5b6a", Some("id")),
        ] {
            assert_eq!(class_of(token), class, "{token}");
        }
    }
}
