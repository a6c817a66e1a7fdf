//! What of a text must stand as it is: numbers, ids, paths and names.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use super::lists::{Class, LISTS};
use super::order::{Standing, standing};
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
    /// Whether another number beside it is said to hold in its place.
    pub(super) is_former: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnchorKind {
    Number,
    Id,
    Name,
}

impl Anchor {
    fn new(kind: AnchorKind, text: String) -> Self {
        Self {
            kind,
            text,
            scaled: None,
            unit: None,
            is_former: false,
        }
    }

    /// Whether it is a number of this unit.
    pub(super) fn counts(&self, word: &str) -> bool {
        self.unit.is_some() && self.unit.as_deref() == LISTS.stands_for(Class::Units, word)
    }

    /// Whether both are of one kind, numbers of one unit.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind && self.unit == other.unit
    }

    /// Whether both are the same number of another unit.
    pub(super) fn is_in_other_unit(&self, other: &Self) -> bool {
        self.text == other.text && !self.is_same(other)
    }

    /// Whether it is of one kind with another, and not perhaps the same amount in another unit.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let units = self.unit.as_ref().zip(other.unit.as_ref());
        let is_converted =
            units.is_some_and(|(own, other)| own != other) && self.text != other.text;
        self.kind == other.kind && !is_converted
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        let units = self.unit.as_ref().zip(other.unit.as_ref());
        (self.text == other.text || self.is_same_amount(other) || self.is_same_name(other))
            && units.is_none_or(|(own, others)| own == others)
    }

    /// Whether two names are the same, one of them in the plural.
    fn is_same_name(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|name| name.text.trim_end_matches('s'));
        self.kind == AnchorKind::Name && other.kind == AnchorKind::Name && own == others
    }

    /// Whether two numbers, one of them in thousands or percent, have the same value.
    fn is_same_amount(&self, other: &Self) -> bool {
        let values = self.value().zip(other.value());
        (self.scaled.is_some() || other.scaled.is_some())
            && values.is_some_and(|(own, others)| (own - others).abs() < 1e-9)
    }

    fn value(&self) -> Option<f64> {
        self.scaled.or_else(|| self.text.parse().ok())
    }

    /// The anchor that the token at this place is, if it is one; the token behind it may be its unit.
    fn read(text: &str, place: &Range<usize>, next: Option<&str>) -> Option<Self> {
        let token = &text[place.clone()];
        let (before, behind) = (&text[..place.start], &text[place.end..]);
        let lower = canonical(token);
        if lower.contains(|c: char| c.is_ascii_digit()) {
            let Some(mut number) = number(&lower) else {
                return Some(Self::new(AnchorKind::Id, lower));
            };
            if behind.trim_start().starts_with('%') {
                number.scaled = number.value().map(|value| value / 100.0);
            } else if number.unit.is_none() {
                number.unit = currency(before.chars().next_back())
                    .or_else(|| currency(behind.trim_start().chars().next()))
                    .or_else(|| unit(next));
            }
            return Some(number);
        }
        if let Some(digits) = LISTS.stands_for(Class::Numbers, &lower) {
            let mut number = Self::new(AnchorKind::Number, digits.to_owned());
            number.unit = unit(next);
            return Some(number);
        }
        if is_joined(&lower) || before.ends_with(['/', '\\']) || behind.starts_with(['/', '\\']) {
            return Some(Self::new(AnchorKind::Id, lower));
        }
        is_name(token, before.trim_end(), behind).then(|| Self::new(AnchorKind::Name, lower))
    }
}

/// The numbers, ids, paths and names of a text.
pub(super) fn anchors(text: &str) -> Vec<Anchor> {
    let places = tokens(text);
    let mut found: Vec<Anchor> = Vec::new();
    let mut numbers: Vec<(usize, Range<usize>)> = Vec::new();
    let mut last: Option<Anchor> = None;
    for (at, place) in places.iter().enumerate() {
        // The unit of a number is no name: `MB`.
        let counted = last.is_some_and(|last| last.counts(&text[place.clone()].to_lowercase()));
        let next = places.get(at + 1).map(|next| &text[next.clone()]);
        let read = Anchor::read(text, place, next).filter(|_| !counted);
        if let Some(Anchor {
            kind: AnchorKind::Number,
            ..
        }) = read
        {
            numbers.push((found.len(), place.clone()));
        }
        found.extend(read.clone());
        last = read;
    }
    for (own, place) in &numbers {
        let like = numbers
            .iter()
            .filter(|(at, _)| found[*at].is_like(&found[*own]));
        let like: Vec<Range<usize>> = like.map(|(_, place)| place.clone()).collect();
        let at = like.partition_point(|other| other.start < place.start);
        let standing = standing(text, &(0..text.len()), &like, at, false);
        found[*own].is_former = like.len() > 1 && standing == Standing::Former;
    }
    // Where all is in capitals, they name nothing.
    if !text.contains(char::is_lowercase) {
        found.retain(|anchor| anchor.kind != AnchorKind::Name);
    }
    found
}

/// The unit that a character beside a number is: `$`.
fn currency(beside: Option<char>) -> Option<String> {
    let symbol = beside.filter(|c| !c.is_alphanumeric())?.to_string();
    LISTS.stands_for(Class::Signs, &symbol).map(str::to_owned)
}

/// The unit that the token behind a number is.
fn unit(next: Option<&str>) -> Option<String> {
    let word = next?.to_lowercase();
    LISTS.stands_for(Class::Units, &word).map(str::to_owned)
}

/// What must stand as it is, each as one: lower-cased, paths with `/`, names without what makes them a genitive.
pub(super) fn exact(text: &str, tokens: &[Range<usize>]) -> Vec<String> {
    let tokens = tokens.iter().map(|place| &text[place.clone()]);
    tokens.map(canonical).collect()
}

fn canonical(token: &str) -> String {
    let composed = token.nfkc().flat_map(char::to_lowercase);
    let lower = composed.collect::<String>().replace('\\', "/");
    let mut genitives = ["'s", "\u{2019}s"].iter();
    let own = genitives.find_map(|ending| lower.strip_suffix(ending));
    own.unwrap_or(&lower).to_owned()
}

/// Whether a token without digits is a path or an id: `a_b`, `a/b`, `a.b`.
fn is_joined(token: &str) -> bool {
    let mut dots = token.match_indices('.');
    token.contains(['_', '/', '\\', '@', '#'])
        || dots.any(|(dot, _)| token[dot + 1..].starts_with(char::is_alphabetic))
}

/// Whether a token is a name: it begins with a capital, and neither does a sentence begin with it nor is it of a label in
/// capitals (`HARD RULE:`).
fn is_name(token: &str, before: &str, behind: &str) -> bool {
    let shouted = |c: char| c.is_uppercase() || c == ' ';
    let label = token.chars().all(shouted) && behind.trim_start_matches(shouted).starts_with(':');
    token.starts_with(char::is_uppercase)
        && !label
        && token.chars().nth(1).is_some()
        && !before.is_empty()
        && !before.ends_with(['.', '!', '?', ':', '。'])
}

/// `1,500`, `5000`, `1.10`, `5mb`, `1k`; `None` of an id that begins with digits.
fn number(text: &str) -> Option<Anchor> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')));
    let (digits, suffix) = text.split_at(digits.unwrap_or(text.len()));
    if !digits.starts_with(|c: char| c.is_ascii_digit())
        || suffix.len() > 3
        || !suffix.chars().all(|c| c.is_ascii_alphabetic())
    {
        return None;
    }
    let mut number = Anchor::new(AnchorKind::Number, digits.replace(',', ""));
    match suffix {
        "" => {}
        "k" => number.scaled = number.value().map(|value| value * 1_000.0),
        own => number.unit = unit(Some(own)).or_else(|| Some(own.to_owned())),
    }
    Some(number)
}

/// Runs of letters and digits, joined ones as one; without scripts that have no spaces.
pub(super) fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut joins: Option<char> = None;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        if c.is_alphanumeric() && !is_unspaced(c) {
            // A comma joins the thousands of a number, and parts what is listed.
            joins = joins.filter(|joining| *joining != ',' || c.is_ascii_digit());
            match found.last_mut() {
                Some(last)
                    if last.end == at
                        || joins.is_some_and(|joining| last.end + joining.len_utf8() == at) =>
                {
                    last.end = end;
                }
                _ => found.push(at..end),
            }
            joins = None;
        } else {
            let follows = found.last().is_some_and(|last| last.end == at);
            joins = Some(c).filter(|c| follows && JOINING.contains(c));
        }
    }
    found
}
