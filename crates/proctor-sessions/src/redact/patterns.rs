//! Finds secrets in a text: by their shape, or by the name in front of them.
//!
//! Shapes and names are data: see `patterns.toml`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{Class, is_replaced};

/// The patterns, compiled at their first use. A test reads the file, so that it is never broken.
pub(super) static PATTERNS: LazyLock<Option<SecretPatterns>> =
    LazyLock::new(|| toml::from_str(include_str!("patterns.toml")).ok());

#[derive(Deserialize)]
pub(super) struct SecretPatterns {
    tokens: TokenShape,
    shapes: Vec<SecretShape>,
    pub(super) names: Names,
}

/// An expression on bytes.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct SecretPattern(Regex);

impl TryFrom<String> for SecretPattern {
    type Error = regex::Error;

    fn try_from(pattern: String) -> Result<Self, Self::Error> {
        RegexBuilder::new(&pattern).unicode(false).build().map(Self)
    }
}

/// One expression for all tokens: their beginnings are searched at once.
#[derive(Deserialize)]
#[serde(try_from = "BTreeMap<String, usize>")]
struct TokenShape(SecretShape);

impl TryFrom<BTreeMap<String, usize>> for TokenShape {
    type Error = regex::Error;

    /// How tokens begin, and the least number of characters behind.
    fn try_from(tokens: BTreeMap<String, usize>) -> Result<Self, Self::Error> {
        let alternatives = tokens.iter().map(|(prefix, least)| {
            let dot = if prefix.ends_with('.') { "." } else { "" };
            let prefix = regex::escape(prefix);
            format!(r"{prefix}[\w{dot}-]{{{},}}[\w-]", least - 1)
        });
        let alternatives: Vec<String> = alternatives.collect();
        Ok(Self(SecretShape {
            class: Class::Token,
            regex: format!(r"\b(?:{})", alternatives.join("|")).try_into()?,
            unless: None,
            digit: true,
        }))
    }
}

/// A shape of secrets: see `patterns.toml`.
#[derive(Deserialize)]
struct SecretShape {
    class: Class,
    regex: SecretPattern,
    unless: Option<SecretPattern>,
    #[serde(default)]
    digit: bool,
}

/// Names behind which secrets are expected, and values that are none.
#[derive(Deserialize)]
pub(super) struct Names {
    assignment: SecretPattern,
    strong: Vec<String>,
    weak: Vec<String>,
    harmless: Vec<String>,
    computed: SecretPattern,
    search_output: SecretPattern,
    code: SecretPattern,
    identifier: SecretPattern,
}

/// All secrets of a text in order; none overlap. Of two that would, the one that begins first
/// stays, and of those the longer.
pub(super) fn secrets(text: &str) -> Vec<(Range<usize>, Class)> {
    let Some(patterns) = &*PATTERNS else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for shape in patterns.shapes.iter().chain([&patterns.tokens.0]) {
        for captures in shape.regex.0.captures_iter(text.as_bytes()) {
            let whole = &captures[0];
            let groups = captures.iter().skip(1).flatten();
            let Some(secret) = groups.chain(captures.get(0)).next() else {
                continue;
            };
            let excepted = shape.unless.as_ref().is_some_and(|unless| unless.0.is_match(whole));
            if !excepted && (!shape.digit || has_digit(secret.as_bytes())) {
                found.push((secret.range(), shape.class));
            }
        }
    }
    patterns.names.find(text, &mut found);
    found.retain(|(range, _)| !range.is_empty() && !is_replaced(&text[range.clone()]));
    found.sort_by_key(|(range, class)| (range.start, std::cmp::Reverse(range.end), *class));
    let mut end = 0;
    found.retain(|(range, _)| {
        let free = range.start >= end;
        if free {
            end = range.end;
        }
        free
    });
    found
}

impl Names {
    /// Finds the values of names that say that they are secret.
    fn find(&self, text: &str, found: &mut Vec<(Range<usize>, Class)>) {
        let mut at = 0;
        // A value may hold an assignment itself: `Set-Cookie: sid=…`.
        while let Some(captures) = self.assignment.0.captures_at(text.as_bytes(), at) {
            let mut groups = captures.iter().skip(1).flatten();
            let (Some(name), Some(value)) = (groups.next(), groups.next()) else {
                return;
            };
            at = name.end();
            if self.is_secret(&text[name.range()], &text[value.range()], captures.get(5).is_none())
            {
                found.push((value.range(), Class::Secret));
            }
        }
    }

    /// Whether a name is that of a secret, whatever the value behind it.
    pub(super) fn is_of_secret(&self, name: &str) -> bool {
        let name = plain(name);
        (self.strong.iter().any(|part| name.contains(part)) || ends_with_one_of(&name, &self.weak))
            && !ends_with_one_of(&name, &self.harmless)
    }

    /// Whether a value behind that name is a secret.
    pub(super) fn is_secret(&self, name: &str, value: &str, is_quoted: bool) -> bool {
        let spelled = plain(name);
        let bytes = value.as_bytes();
        if name.len() > MAX_NAME
            || bytes.len() > MAX_VALUE
            || ends_with_one_of(&spelled, &self.harmless)
            || self.computed.0.is_match(bytes)
            || is_placeholder(bytes)
            || !is_quoted && self.is_code(bytes)
        {
            return false;
        }
        let mixed = has_digit(bytes) && bytes.iter().any(u8::is_ascii_alphabetic);
        if self.strong.iter().any(|part| spelled.contains(part)) {
            let odd = !bytes.iter().all(u8::is_ascii_alphabetic);
            return bytes.len() >= 8 && mixed
                || is_quoted && bytes.len() >= 12 && odd && entropy(value) >= 3.0;
        }
        let proof = spelled.ends_with("signature") && bytes.len() > MAX_SIGNATURE;
        let identifier = spelled.ends_with("key") && self.identifier.0.is_match(bytes);
        ends_with_one_of(&spelled, &self.weak)
            && spelled != "key"
            && !proof
            && !identifier
            && bytes.len() >= 20
            && mixed
            && entropy(value) >= 3.5
    }

    /// Whether an unquoted value is code or the output of a search. Names have few digits.
    fn is_code(&self, value: &[u8]) -> bool {
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        self.search_output.0.is_match(value)
            || self.code.0.is_match(value) && digits * 5 <= value.len()
    }
}

/// A name without what separates its parts.
fn plain(name: &str) -> String {
    let mut plain = name.to_ascii_lowercase();
    plain.retain(|c| c.is_ascii_alphanumeric());
    plain
}

fn ends_with_one_of(name: &str, ends: &[String]) -> bool {
    ends.iter().any(|end| name.ends_with(end))
}

/// The longest name, and the longest value, in bytes.
const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 4_096;

/// A longer signature is a provider's proof of what its model thought.
const MAX_SIGNATURE: usize = 160;

fn has_digit(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit)
}

/// Whether one character fills a part of a value: `sk-xxxxxxxx`.
fn is_placeholder(value: &[u8]) -> bool {
    let mut runs = value.chunk_by(|one, next| one == next);
    runs.any(|run| run.len() >= 6)
}

/// Shannon entropy in bits per character.
fn entropy(text: &str) -> f64 {
    let mut counts: BTreeMap<char, u32> = BTreeMap::new();
    for c in text.chars() {
        *counts.entry(c).or_default() += 1;
    }
    let whole = f64::from(counts.values().sum::<u32>());
    let shares = counts.values().map(|count| f64::from(*count) / whole);
    shares.map(|share| -share * libm::log2(share)).sum()
}
