//! What of a text must stand as it is: numbers, ids, paths and names.

use std::ops::Range;

use super::lists::LISTS;
use super::words::each_word;
use crate::script::is_unspaced;

/// Characters that join the parts of an id, a path or a number.
const JOINING: &[char] = &[
    '-', '_', '.', '/', '\\', ':', ',', '@', '#', '\'', '\u{2019}',
];

/// Something that must stand as it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Anchor {
    pub(super) kind: AnchorKind,
    /// Lower-cased, a number without the commas of its thousands.
    pub(super) text: String,
    /// Of a number in thousands (`1k`) or percent, its value.
    scaled: Option<f64>,
    unit: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnchorKind {
    Number,
    Id,
    Name,
}

impl Anchor {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let is_value = self.text == other.text
            || match (self.value(), other.value()) {
                (Some(own), Some(others)) => {
                    (self.scaled.is_some() || other.scaled.is_some()) && (own - others).abs() < 1e-9
                }
                _ => false,
            };
        let units = self.unit.as_ref().zip(other.unit.as_ref());
        is_value
            && units.is_none_or(|(own, others)| {
                own == others || own.trim_end_matches('s') == others.trim_end_matches('s')
            })
    }

    fn value(&self) -> Option<f64> {
        self.scaled.or_else(|| self.text.parse().ok())
    }
}

/// The words of an anchor, as a text has them.
pub(super) fn parts_of(anchor: &str) -> Vec<String> {
    let mut parts = Vec::new();
    each_word(anchor, |word, _| parts.push(word.to_owned()));
    parts
}

/// The numbers, ids, paths and names of a text.
pub(super) fn anchors(text: &str) -> Vec<Anchor> {
    let tokens = tokens(text);
    let is_shouted = !text.chars().any(char::is_lowercase);
    let mut found = Vec::new();
    for (at, range) in tokens.iter().enumerate() {
        let token = &text[range.clone()];
        let before = text[..range.start].trim_end();
        let lower: String = token
            .chars()
            .flat_map(char::to_lowercase)
            .map(plain_digit)
            .collect();
        let has_digit = lower.contains(|c: char| c.is_ascii_digit());
        let touches = |c: Option<char>| matches!(c, Some('/' | '\\'));
        let is_path = touches(text[range.end..].chars().next())
            || touches(text[..range.start].chars().next_back());
        let is_joined = lower.contains(['_', '/', '\\', '@', '#'])
            || lower
                .match_indices('.')
                .any(|(dot, _)| lower[dot + 1..].starts_with(char::is_alphabetic));
        let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':', '。']);
        let is_name = token.starts_with(char::is_uppercase)
            && token.chars().nth(1).is_some()
            && !begins
            && !is_shouted;
        let sign = text[range.end..].trim_start().chars().next();
        if has_digit && let Some(mut number) = number(&lower) {
            if sign == Some('%') {
                number.scaled = number.value().map(|value| value / 100.0);
            } else if number.unit.is_none() {
                let next = tokens
                    .get(at + 1)
                    .map(|range| text[range.clone()].to_lowercase());
                number.unit = next.filter(|word| LISTS.units.contains(word.as_str()));
            }
            found.push(number);
        } else if has_digit || is_joined || is_path {
            found.push(Anchor {
                kind: AnchorKind::Id,
                text: lower,
                scaled: None,
                unit: None,
            });
        } else if is_name {
            found.push(Anchor {
                kind: AnchorKind::Name,
                text: lower,
                scaled: None,
                unit: None,
            });
        }
    }
    found
}

/// `1,500`, `5000`, `1.10`, `5mb`, `1k`; `None` of an id that begins with digits.
fn number(text: &str) -> Option<Anchor> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')));
    let (digits, unit) = text.split_at(digits.unwrap_or(text.len()));
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && unit.len() <= 3
        && unit.chars().all(|c| c.is_ascii_alphabetic());
    let text = digits.replace(',', "");
    let thousand = (unit == "k").then(|| text.parse().ok().map(|value: f64| value * 1_000.0));
    let is_unit = !unit.is_empty() && unit != "k";
    is_number.then(|| Anchor {
        kind: AnchorKind::Number,
        scaled: thousand.flatten(),
        unit: is_unit.then(|| unit.to_owned()),
        text,
    })
}

/// A digit of a Chinese keyboard as the digit that it is.
fn plain_digit(c: char) -> char {
    let offset = u32::from(c).wrapping_sub(0xFF10);
    char::from_digit(offset, 10).unwrap_or(c)
}

/// Runs of letters and digits, joined ones as one; without scripts that have no spaces.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        if c.is_alphanumeric() && !is_unspaced(c) {
            match found.last_mut() {
                Some(last) if last.end == at || (joins && last.end + 1 == at) => last.end = end,
                _ => found.push(at..end),
            }
            joins = false;
        } else {
            joins = c.is_ascii()
                && JOINING.contains(&c)
                && found.last().is_some_and(|last| last.end == at);
        }
    }
    found
}
