//! Atoms: the pieces of a tool call's arguments that an agent cannot make up.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::patterns::{Boundary, Pattern};

/// Shorter pieces occur everywhere by chance.
const MIN_CHARS: usize = 4;
/// Longer ones are content, not names.
const MAX_CHARS: usize = 120;

/// The entities in the strings and numbers of a tool call's arguments.
pub(super) fn entities(input: &Value) -> BTreeSet<Pattern> {
    let mut found = BTreeSet::new();
    each_text(input, &mut |text| lex(text, &mut found));
    found
}

/// Calls `found` with the strings and numbers of a value.
pub(crate) fn each_text(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Number(number) => found(&number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Adds the entities of one string: paths, identifiers, ids, numbers, quoted strings.
fn lex(text: &str, found: &mut BTreeSet<Pattern>) {
    for line in text.lines() {
        for quote in ['"', '`'] {
            for quoted in line.split(quote).skip(1).step_by(2) {
                // A single word in quotes is found again below, if it is not a plain word.
                if quoted.contains(' ') {
                    add(quoted.trim(), Boundary::Word, found);
                }
            }
        }
    }
    each_name(text, |name, boundary| add(name, boundary, found));
}

/// Calls `found` with the paths, identifiers, ids and numbers of a text: entities without the
/// quoted strings, which only a search finds in a text.
pub(crate) fn names(text: &str, mut found: impl FnMut(&str)) {
    each_name(text, |name, _| {
        if is_entity(name) {
            found(name);
        }
    });
}

fn each_name(text: &str, mut found: impl FnMut(&str, Boundary)) {
    for token in tokens(text) {
        let token = trimmed(token);
        if is_path(token) {
            found(token, Boundary::Path);
            continue;
        }
        for piece in token.split('/').map(|piece| piece.trim_matches(['.', '-', '@'])) {
            if is_name(piece) {
                found(piece, Boundary::Word);
            }
        }
    }
}

fn is_entity(text: &str) -> bool {
    (MIN_CHARS..=MAX_CHARS).contains(&text.chars().count())
}

/// Calls `found` with every name that a text supports: its [`names`], and the ends and the parts
/// of its paths.
pub(crate) fn supported(text: &str, mut found: impl FnMut(&str)) {
    let mut found = |name: &str| {
        if is_entity(name) && (is_path(name) || is_name(name)) {
            found(name);
        }
    };
    for token in tokens(text) {
        let token = trimmed(token);
        if is_path(token) {
            found(token);
            let relative = token.trim_start_matches('/');
            found(relative);
            for (at, _) in relative.match_indices('/') {
                found(&relative[at + 1..]);
            }
        }
        for piece in token.trim_start_matches('/').split('/') {
            found(piece.trim_matches(['.', '-', '@']));
        }
    }
}

/// The tokens of a text that may be names or hold some: plain words and short tokens, which most are, are left out.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let tokens = text.split(|c: char| !is_part(c));
    tokens.filter(|token| token.len() >= MIN_CHARS && !is_plain_word(token.as_bytes()))
}

/// Letters of which only the first may be a capital.
fn is_plain_word(token: &[u8]) -> bool {
    token.split_first().is_some_and(|(first, rest)| {
        first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase)
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@')
}

/// A token without what ends a sentence or begins an option.
fn trimmed(token: &str) -> &str {
    let begun = token.trim_end_matches(['.', '-', '/', '@']);
    begun.trim_start_matches(['-', '@']).trim_start_matches("./")
}

fn add(text: &str, boundary: Boundary, found: &mut BTreeSet<Pattern>) {
    if is_entity(text) {
        found.insert(Pattern { text: text.to_owned(), boundary });
    }
}

/// Several parts, each of them something: `src/a.rs`, not `and/or`, nor a regular expression.
fn is_path(token: &str) -> bool {
    if !token.contains('/') {
        return false;
    }
    let mut parts = token.trim_start_matches('/').split('/');
    let Some(named) = parts.try_fold(0, |named, part| (!part.is_empty()).then_some(named + 1))
    else {
        return false;
    };
    token.starts_with('/') || named > 2 || token.contains(['.', '_', '-'])
}

/// An identifier, an id, a file name or a number; plain words are none, and neither are versions
/// of them with only a capital in front.
fn is_name(piece: &str) -> bool {
    let mut digits = false;
    let mut joined = false;
    let mut camel = false;
    let mut lower = false;
    for c in piece.chars() {
        digits |= c.is_ascii_digit();
        joined |= matches!(c, '_' | '-' | '.' | '@');
        camel |= c.is_uppercase() && lower;
        lower = c.is_lowercase();
    }
    digits || joined || camel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found = entities(&Value::String(text.to_owned()));
        let found: Vec<&str> = found.iter().map(|entity| entity.text.as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_numbers_paths_and_quotations_are_entities() {
        check("cargo test --lib parse_header", &["parse_header"]);
        check("cat ./src/a.rs /etc/hosts and/or", &["/etc/hosts", "src/a.rs"]);
        check("the HttpClient, HTTP, Client", &["HttpClient"]);
        check("port 48213, 99, 7f3a91c", &["48213", "7f3a91c"]);
        check(r#"grep "no such file" x"#, &["no such file"]);
        check("main.rs:120: x-request-id.", &["main.rs", "x-request-id"]);
        check("plain words only. Nothing else", &[]);
        check(&"a_".repeat(100), &[]);
        let nested = serde_json::json!({"a": [{"b": "log_level"}, 51_001, 7, true]});
        assert_eq!(entities(&nested).len(), 2);
    }
}
