//! Values that are rare: hashes, addresses, codes, long numbers, and settings with their keys.

use std::collections::{BTreeMap, BTreeSet};

use super::{Proposal, Texts, Touched, key_words, tokens};
use crate::session::Session;
use crate::session::ground_truth::{ArtifactVerb, Fact, Importance, KeyValue, Revision};

/// A key is made of so many of the rarest words of the line.
const KEY_WORDS: usize = 4;

/// Values are looked for in the first so many percent of the messages: behind them is what every
/// strategy keeps.
const NOT_THE_TAIL: usize = 80;

/// A line of more characters than this is no line that somebody reads.
const LINE_CHARS: usize = 400;

/// What kind of value a token is, in words; nothing where it is none that cannot be guessed.
///
/// Each kind has at least 20 bits: 7 hexadecimal digits, 7 decimal ones, or an address.
pub(super) fn class_of(token: &str) -> Option<&'static str> {
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = token
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
    if token.len() > 120 || digits == 0 {
        return None;
    }
    if token.len() == 36 && token.split('-').map(str::len).eq([8, 4, 4, 4, 12]) {
        return Some("id");
    }
    if is_hex && (7..=64).contains(&token.len()) && digits < token.len() {
        return Some("hash");
    }
    if token.starts_with("http") && token.contains("://") && token.len() > 24 && digits >= 4 {
        return Some("address");
    }
    let number = token.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    if number.len() >= 7 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("number");
    }
    let (letters, rest) = token.split_at(token.bytes().take_while(u8::is_ascii_uppercase).count());
    let rest = rest.trim_start_matches(['-', '_']);
    let is_code = (2..=6).contains(&letters.len())
        && rest.len() >= 4
        && rest.bytes().all(|byte| byte.is_ascii_digit());
    is_code.then_some("code")
}

/// Lines of a session, with their messages.
pub(super) fn lines(session: &Session) -> impl Iterator<Item = (usize, &str)> {
    let messages = session.messages().iter().enumerate();
    messages.flat_map(|(at, message)| {
        let texts = message.model_text().iter();
        let lines = texts.flat_map(|text| text.lines());
        lines
            .filter(|line| line.len() <= LINE_CHARS)
            .map(move |line| (at, line))
    })
}

/// Values that were said once, beside words that stand nowhere else.
pub(super) fn recalls(session: &Session, texts: &Texts) -> Vec<Proposal> {
    let end = session.messages().len() * NOT_THE_TAIL / 100;
    let mut proposals: Vec<Proposal> = Vec::new();
    let mut messages = BTreeSet::new();
    for (at, line) in lines(session).take_while(|(at, _)| *at < end) {
        // One value a message: what stands side by side is lost side by side.
        if messages.contains(&at) {
            continue;
        }
        let mut values = tokens(line).filter_map(|token| Some((token, class_of(token)?)));
        let (Some((value, class)), None) = (values.next(), values.next()) else {
            continue;
        };
        let words = texts.rarest(&key_words(line, value), KEY_WORDS);
        let names_it = words.iter().any(|word| texts.frequency(word) == 1);
        if words.len() < 2 || !names_it || !texts.is_unique(value) {
            continue;
        }
        messages.insert(at);
        let key = words.join(" ");
        proposals.push(Proposal {
            kind: "recall",
            question: format!("Which {class} was given beside the words: {key}?"),
            evidence: vec![at],
            importance: Importance::Normal,
            fact: Fact::Recall {
                key,
                value: value.to_owned(),
            },
        });
    }
    proposals
}

/// `key = value` or `key: value`, the value a single token with a digit.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_end_matches([',', ';']);
    let (key, value) = line.split_once('=').or_else(|| line.split_once(": "))?;
    let key = key.trim().trim_matches(['"', '\'']);
    let key = key.rsplit(' ').next().unwrap_or(key);
    let value = value.trim().trim_matches(['"', '\'']);
    let is_key = key.len() >= 4
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_value = value.len() >= 4
        && value.contains(|c: char| c.is_ascii_digit())
        && !value.contains(char::is_whitespace)
        && tokens(value).eq([value]);
    (is_key && is_value).then_some((key, value))
}

/// A value of a key: message, value, and the file that shows it.
type Assigned = (usize, String, Option<String>);

fn assignments(
    session: &Session,
    texts: &Texts,
    touched: Touched<'_>,
) -> BTreeMap<String, Vec<Assigned>> {
    let mut files: BTreeMap<usize, String> = BTreeMap::new();
    for (at, message) in session.messages().iter().enumerate() {
        let read = message.tool_uses().flat_map(|(_, tool)| touched(tool));
        let read: Vec<String> = read
            .filter(|(verb, _)| *verb == ArtifactVerb::Read)
            .map(|(_, path)| path)
            .collect();
        // The result of a single read is the next message.
        if let [path] = &read[..] {
            files.insert(at + 1, path.clone());
        }
    }
    let mut found: BTreeMap<String, Vec<Assigned>> = BTreeMap::new();
    for (at, line) in lines(session) {
        if let Some((key, value)) = assignment(line)
            && texts.is_unique(value)
        {
            let assigned = (at, value.to_owned(), files.get(&at).cloned());
            found.entry(key.to_owned()).or_default().push(assigned);
        }
    }
    found
}

/// Keys that were given several values, one after the other, in one file or in none.
pub(super) fn revised(session: &Session, texts: &Texts) -> Vec<Proposal> {
    let found = assignments(session, texts, &|_| Vec::new());
    let mut proposals = Vec::new();
    for (key, values) in found {
        let messages: BTreeSet<usize> = values.iter().map(|(at, _, _)| *at).collect();
        if values.len() < 2 || messages.len() != values.len() {
            continue;
        }
        let values: Vec<Revision> = values
            .into_iter()
            .map(|(message, value, _)| Revision { value, message })
            .collect();
        proposals.push(Proposal {
            kind: "update",
            question: format!("Which value has `{key}` now?"),
            evidence: messages.into_iter().collect(),
            importance: Importance::Normal,
            fact: Fact::Update { key, values },
        });
    }
    proposals
}

/// The same key in several files, each with a value of its own.
pub(super) fn bindings(session: &Session, texts: &Texts, touched: Touched<'_>) -> Vec<Proposal> {
    let found = assignments(session, texts, touched);
    let mut proposals = Vec::new();
    for (key, values) in found {
        let paths: BTreeSet<&String> = values
            .iter()
            .filter_map(|(_, _, path)| path.as_ref())
            .collect();
        let [(at, value, Some(path)), others @ ..] = &values[..] else {
            continue;
        };
        if paths.len() != values.len() || others.is_empty() {
            continue;
        }
        let others = others.iter().filter_map(|(_, value, path)| {
            Some(KeyValue {
                key: format!("{key} {}", path.as_ref()?),
                value: value.clone(),
            })
        });
        proposals.push(Proposal {
            kind: "binding",
            question: format!("Which value has `{key}` in `{path}`?"),
            evidence: vec![*at],
            importance: Importance::Normal,
            fact: Fact::Binding {
                key: key.clone(),
                value: value.clone(),
                others: others.collect(),
            },
        });
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

    #[test]
    fn assignments_are_read_in_the_usual_notations() {
        for (line, expected) in [
            ("port = 48213", Some(("port", "48213"))),
            ("  \"retries\": \"n5-x\",", Some(("retries", "n5-x"))),
            ("export TOKEN_TTL=90s;", None),
            ("let size = 4096 + 1;", None),
            ("image.tag: rel-48f1", Some(("image.tag", "rel-48f1"))),
        ] {
            assert_eq!(assignment(line), expected, "{line}");
        }
    }
}
