//! What of a text must stand as it is: numbers, ids, paths and names.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use super::lists::{LISTS, WordClass};
use super::order::{ValueState, standing};
use super::quantity::{CLOCK, decimal, moments, scale_of};
use crate::script::is_unspaced;

/// Characters that join the parts of an id, a path or a number.
const JOINING: &[char] = &['-', '_', '.', '/', '\\', ':', ',', '@', '#', '\'', '\u{2019}'];

/// Before a number they make it another.
const SIGNS: &[char] = &['^', '~', '≈', '±'];

/// The unit of a number that is as much as a hundredth of it without one.
const PERCENT: &str = "percent";

/// Something that must stand as it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextAnchor {
    pub(super) kind: AnchorKind,
    /// As it is written, in lower case.
    pub(super) written: String,
    /// The same as it is compared: numbers without the commas of their thousands, in the base of their unit.
    pub(super) text: String,
    pub(super) unit: Option<String>,
    /// The number of words before it.
    pub(super) at: usize,
    /// Whether it is the most or the least: by a sign before it (`<= 5`), else by a word (`Sentence::bound_numbers`).
    pub(super) bound: Option<WordClass>,
    /// Whether a word right before it makes another of it: `after 18:30`.
    pub(super) is_shifted: bool,
    /// Whether another number beside it is said to hold in its place.
    pub(super) is_former: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnchorKind {
    Number,
    Id,
    Name,
}

impl TextAnchor {
    fn new(kind: AnchorKind, text: String) -> Self {
        let written = text.clone();
        let (at, bound) = (0, None);
        Self { kind, written, text, unit: None, at, bound, is_shifted: false, is_former: false }
    }

    /// Whether it is a number of this unit.
    pub(super) fn counts(&self, word: &str) -> bool {
        let unit = LISTS.stands_for(WordClass::Units, word);
        let base = unit.map(|unit| scale_of(unit).map_or(unit, |(base, _)| base));
        self.unit.is_some() && self.unit.as_deref() == base
    }

    /// Whether both are of one kind, numbers of one unit.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind && self.unit == other.unit
    }

    /// Whether both are the same number of another unit, or behind another sign.
    pub(super) fn is_in_other_unit(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|anchor| {
            let written = &anchor.written;
            written.trim_matches(|c: char| !c.is_alphanumeric())
        });
        own == others && !self.is_same(other)
    }

    /// Whether it is of one kind with another, and not perhaps the same amount in another unit.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let units = self.unit.as_ref().zip(other.unit.as_ref());
        self.kind == other.kind
            && !units.is_some_and(|(own, others)| {
                let clock = own == CLOCK || others == CLOCK;
                own != others && clock == (self.text == other.text)
            })
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        let units = self.unit.as_ref().zip(other.unit.as_ref());
        let verbatim = units.is_none() && self.written == other.written;
        (self.text == other.text || verbatim || self.is_same_name(other))
            && units.is_none_or(|(own, others)| own == others)
    }

    /// Whether two names are the same, one of them in the plural.
    fn is_same_name(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|name| name.text.trim_end_matches('s'));
        self.kind == AnchorKind::Name && other.kind == AnchorKind::Name && own == others
    }

    /// Makes it so many times as much, and so much in the base of its unit.
    fn multiply(&mut self, power: f64, factor: f64) {
        if let Ok(value) = self.text.parse::<f64>()
            && (power, factor) != (1.0, 1.0)
        {
            self.written = decimal(value * power);
            self.text = decimal(value * power * factor);
        }
    }

    /// The anchor that the token at this place is, if it is one; the token behind it may be its unit.
    fn read(text: &str, place: &Range<usize>, next: Option<&str>) -> Option<Self> {
        let token = &text[place.clone()];
        let (before, behind) = (&text[..place.start], &text[place.end..]);
        let lower = rooted(text, place);
        let digits = LISTS.stands_for(WordClass::Numbers, &lower);
        if digits.is_some() || lower.contains(|c: char| c.is_ascii_digit()) {
            let Some(mut number) = number(digits.unwrap_or(&lower)) else {
                return Some(Self::new(AnchorKind::Id, lower));
            };
            let mut percent = behind.trim_start().starts_with('%');
            if number.unit.is_none() && !percent {
                number.unit = currency(before.chars().next_back())
                    .or_else(|| currency(behind.trim_start().chars().next()))
                    .or_else(|| unit(next));
                percent = number.unit.take_if(|unit| unit == PERCENT).is_some();
            }
            let (base, factor) = match &number.unit {
                Some(unit) => scale_of(unit).unwrap_or((unit, 1.0)),
                None => ("", if percent { 0.01 } else { 1.0 }),
            };
            number.unit = Some(base.to_owned()).filter(|base| !base.is_empty());
            number.multiply(power(next).unwrap_or(1.0), factor);
            if percent {
                number.written.push('%');
            }
            if before
                .strip_suffix(['-', '−'])
                .is_some_and(|front| front.ends_with([' ', '(', '`', '=']))
            {
                number.text.insert(0, '-');
                number.written.insert(0, '-');
            }
            if let Some(sign) = before.chars().next_back().filter(|c| SIGNS.contains(c)) {
                number.text.insert(0, sign);
                number.written.insert(0, sign);
            }
            number.bound = bound(before.trim_end());
            return Some(number);
        }
        if is_joined(&lower) || before.ends_with(['/', '\\']) || behind.starts_with(['/', '\\']) {
            return Some(Self::new(AnchorKind::Id, lower));
        }
        is_name(token, before.trim_end(), behind).then(|| Self::new(AnchorKind::Name, lower))
    }
}

/// The numbers, ids, paths and names of a text whose words start at these bytes.
pub(super) fn anchors(text: &str, words: &[usize]) -> Vec<TextAnchor> {
    let dated = moments(text);
    let mut places = tokens(text);
    places.retain(|place| !dated.iter().any(|(whole, _)| whole.contains(&place.start)));
    let mut found: Vec<TextAnchor> = Vec::new();
    let mut numbers: Vec<(usize, Range<usize>)> = Vec::new();
    let mut last: Option<TextAnchor> = None;
    for (at, place) in places.iter().enumerate() {
        // The unit of a number is no name: `MB`.
        let counted = last.is_some_and(|last| last.counts(&text[place.clone()].to_lowercase()));
        let next = places.get(at + 1).map(|next| &text[next.clone()]);
        let mut read = TextAnchor::read(text, place, next).filter(|_| !counted);
        if let Some(read) = &mut read {
            read.at = words.partition_point(|start| *start < place.start);
        }
        if let Some(TextAnchor { kind: AnchorKind::Number, .. }) = read {
            numbers.push((found.len(), place.clone()));
        }
        found.extend(read.clone());
        last = read;
    }
    for (place, moment) in dated {
        found.push(TextAnchor {
            at: words.partition_point(|start| *start < place.start),
            written: text[place].to_lowercase(),
            unit: Some(moment.unit),
            ..TextAnchor::new(AnchorKind::Number, moment.amount)
        });
    }
    for (own, place) in &numbers {
        let like = numbers.iter().filter(|(at, _)| found[*at].is_like(&found[*own]));
        let like: Vec<Range<usize>> = like.map(|(_, place)| place.clone()).collect();
        let at = like.partition_point(|other| other.start < place.start);
        let former = standing(text, &(0..text.len()), &like, at, false) == ValueState::Former;
        found[*own].is_former = like.len() > 1 && former;
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
    LISTS.stands_for(WordClass::Signs, &symbol).map(str::to_owned)
}

/// The unit that the token behind a number is.
fn unit(next: Option<&str>) -> Option<String> {
    let word = next?.to_lowercase();
    LISTS.stands_for(WordClass::Units, &word).map(str::to_owned)
}

/// The power that a word behind a number is.
fn power(word: Option<&str>) -> Option<f64> {
    LISTS.stands_for(WordClass::Powers, &word?.to_lowercase())?.parse().ok()
}

/// How signs before a number limit it. An arrow points, and what ends a tag or begins a quotation says nothing.
fn bound(before: &str) -> Option<WordClass> {
    let signs = before.trim_end_matches('=');
    let sign = signs.chars().next_back()?;
    let front = signs.strip_suffix(sign)?;
    match sign {
        '<' | '≤' => Some(WordClass::Upper),
        '≥' => Some(WordClass::Lower),
        '>' if front.ends_with([' ', '`', '(']) => Some(WordClass::Lower),
        _ => None,
    }
}

/// What must stand as it is, each as one: lower-cased, paths with `/`, names without what makes them a genitive.
pub(super) fn exact(text: &str, tokens: &[Range<usize>]) -> Vec<String> {
    tokens.iter().map(|place| rooted(text, place)).collect()
}

/// A token in the folder of a user, which is no other folder.
fn rooted(text: &str, place: &Range<usize>) -> String {
    let root = if text[..place.start].ends_with("~/") { "~/" } else { "" };
    format!("{root}{}", canonical(&text[place.clone()]))
}

fn canonical(token: &str) -> String {
    let lower = token.nfkc().flat_map(char::to_lowercase).collect::<String>().replace('\\', "/");
    let mut genitives = ["'s", "\u{2019}s"].iter();
    genitives.find_map(|ending| lower.strip_suffix(ending)).unwrap_or(&lower).to_owned()
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
    let label =
        token.chars().all(is_shouted) && behind.trim_start_matches(is_shouted).starts_with(':');
    token.starts_with(char::is_uppercase)
        && !label
        && token.chars().nth(1).is_some()
        && !before.is_empty()
        && !before.ends_with(['.', '!', '?', ':', '。'])
}

fn is_shouted(c: char) -> bool {
    c.is_uppercase() || c == ' '
}

/// `1,500`, `5000`, `1.10`, `5mb`, `1k`; `None` of an id that begins with digits.
fn number(text: &str) -> Option<TextAnchor> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || ".,'_".contains(c)));
    let (digits, suffix) = text.split_at(digits.unwrap_or(text.len()));
    if !digits.starts_with(|c: char| c.is_ascii_digit())
        || suffix.len() > 3
        || !suffix.chars().all(|c| c.is_ascii_alphabetic())
    {
        return None;
    }
    let plain = match digits.split_once(',') {
        // `1,5` is one and a half; a comma before three digits parts thousands.
        Some((whole, rest)) if rest.len() != 3 && !rest.contains([',', '.']) => {
            format!("{}.{rest}", whole.replace(['.', '\'', '_'], ""))
        }
        Some(_) | None => digits.replace([',', '\'', '_'], ""),
    };
    let mut number = TextAnchor::new(AnchorKind::Number, plain);
    match suffix {
        "" => {}
        own if power(Some(own)).is_some() => number.multiply(power(Some(own))?, 1.0),
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
