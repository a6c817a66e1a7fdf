//! Finds secrets in a text: by their shape, or by the name in front of them.
//!
//! Shapes and names are data: see `patterns.toml`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{Class, is_replaced};

/// The patterns, compiled at their first use. A test reads the file, so that it is never broken.
pub(super) static PATTERNS: LazyLock<Option<Patterns>> =
    LazyLock::new(|| toml::from_str(include_str!("patterns.toml")).ok());

#[derive(Deserialize)]
pub(super) struct Patterns {
    /// How tokens begin, and the least number of characters behind.
    #[serde(deserialize_with = "tokens")]
    tokens: Shape,
    shapes: Vec<Shape>,
    pub(super) names: Names,
}

#[derive(Deserialize)]
struct Shape {
    class: Class,
    #[serde(deserialize_with = "compiled")]
    regex: Regex,
    #[serde(default, deserialize_with = "optional")]
    unless: Option<Regex>,
    #[serde(default)]
    digit: bool,
}

/// Names behind which secrets are expected, and values that are none.
#[derive(Deserialize)]
pub(super) struct Names {
    #[serde(deserialize_with = "compiled")]
    assignment: Regex,
    strong: Vec<String>,
    weak: Vec<String>,
    harmless: Vec<String>,
    #[serde(deserialize_with = "compiled")]
    computed: Regex,
    #[serde(deserialize_with = "compiled")]
    search_output: Regex,
    #[serde(deserialize_with = "compiled")]
    code: Regex,
    #[serde(deserialize_with = "compiled")]
    identifier: Regex,
}

fn regex(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).build()
}

fn compiled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    regex(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    compiled(deserializer).map(Some)
}

/// One expression for all tokens: their beginnings are searched at once.
fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
    let tokens = BTreeMap::<String, usize>::deserialize(deserializer)?;
    let alternatives: Vec<String> = tokens
        .iter()
        .map(|(prefix, least)| {
            let dot = if prefix.ends_with('.') { "." } else { "" };
            let prefix = regex::escape(prefix);
            format!(r"{prefix}[\w{dot}-]{{{},}}[\w-]", least - 1)
        })
        .collect();
    let regex = regex(&format!(r"\b(?:{})", alternatives.join("|"))).map_err(D::Error::custom)?;
    Ok(Shape {
        class: Class::Token,
        regex,
        unless: None,
        digit: true,
    })
}

/// All secrets of a text in order; none overlap. Of two that would, the one that begins first
/// stays, and of those the longer.
pub(super) fn secrets(text: &str) -> Vec<(Range<usize>, Class)> {
    let Some(patterns) = &*PATTERNS else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for shape in patterns.shapes.iter().chain([&patterns.tokens]) {
        for captures in shape.regex.captures_iter(text.as_bytes()) {
            let whole = &captures[0];
            let groups = captures.iter().skip(1).flatten();
            let Some(secret) = groups.chain(captures.get(0)).next() else {
                continue;
            };
            let is_excepted = shape.unless.as_ref().is_some_and(|it| it.is_match(whole));
            if !is_excepted && (!shape.digit || has_digit(secret.as_bytes())) {
                found.push((secret.range(), shape.class));
            }
        }
    }
    patterns.names.find(text, &mut found);
    found.retain(|(range, _)| !range.is_empty() && !is_replaced(&text[range.clone()]));
    found.sort_by_key(|(range, class)| (range.start, std::cmp::Reverse(range.end), *class));
    let mut end = 0;
    found.retain(|(range, _)| {
        let is_free = range.start >= end;
        if is_free {
            end = range.end;
        }
        is_free
    });
    found
}

impl Names {
    /// Finds the values of names that say that they are secret.
    fn find(&self, text: &str, found: &mut Vec<(Range<usize>, Class)>) {
        let mut at = 0;
        // A value may hold an assignment itself: `Set-Cookie: sid=…`.
        while let Some(captures) = self.assignment.captures_at(text.as_bytes(), at) {
            let mut groups = captures.iter().skip(1).flatten();
            let (Some(name), Some(value)) = (groups.next(), groups.next()) else {
                return;
            };
            at = name.end();
            let is_quoted = captures.get(5).is_none();
            if self.is_secret(&text[name.range()], &text[value.range()], is_quoted) {
                found.push((value.range(), Class::Secret));
            }
        }
    }

    /// Whether a value behind that name is a secret.
    pub(super) fn is_secret(&self, name: &str, value: &str, is_quoted: bool) -> bool {
        let mut plain = name.to_ascii_lowercase();
        plain.retain(|c| c.is_ascii_alphanumeric());
        let ends_with_one_of = |ends: &[String]| ends.iter().any(|end| plain.ends_with(end));
        let bytes = value.as_bytes();
        if name.len() > MAX_NAME
            || bytes.len() > MAX_VALUE
            || ends_with_one_of(&self.harmless)
            || self.computed.is_match(bytes)
            || is_placeholder(bytes)
            || !is_quoted && self.is_code(bytes)
        {
            return false;
        }
        let is_mixed = has_digit(bytes) && bytes.iter().any(u8::is_ascii_alphabetic);
        if self.strong.iter().any(|part| plain.contains(part)) {
            let is_odd = !bytes.iter().all(u8::is_ascii_alphabetic);
            return bytes.len() >= 8 && is_mixed
                || is_quoted && bytes.len() >= 12 && is_odd && entropy(value) >= 3.0;
        }
        let is_proof = plain.ends_with("signature") && bytes.len() > MAX_SIGNATURE;
        let is_identifier = plain.ends_with("key") && self.identifier.is_match(bytes);
        ends_with_one_of(&self.weak)
            && plain != "key"
            && !is_proof
            && !is_identifier
            && bytes.len() >= 20
            && is_mixed
            && entropy(value) >= 3.5
    }

    /// Whether an unquoted value is code or the output of a search. Names have few digits.
    fn is_code(&self, value: &[u8]) -> bool {
        let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
        self.search_output.is_match(value) || self.code.is_match(value) && digits * 5 <= value.len()
    }
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
    let share = |count: &u32| f64::from(*count) / whole;
    counts
        .values()
        .map(|count| -share(count) * libm::log2(share(count)))
        .sum()
}
