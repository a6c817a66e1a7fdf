//! Amounts, dates and telephone numbers as they are compared, however they are written.
//!
//! `1.5 hours`, `90 minutes` and `1h30` are one [`Quantity`], and so are `€1,250` and `1250 EUR`; `40 ms` and `40 s` are
//! two. Units, their sizes and the names of months are data: `words.toml`.

use std::ops::Range;

use regex::{Captures, Match};

use super::beside::goes_on;
use super::is_part;
use super::lists::{LISTS, WordClass};
use crate::probe::LazyPattern;

/// With fewer digits a number without its unit is in any text.
const TELLING_DIGITS: usize = 4;

static DATES: LazyPattern = LazyPattern::new(
    r"\b(?:(?P<y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)|(?P<d2>\d{1,2})(?:\p{L}{2})?\.? (?:\p{L}{2} )?(?P<m2>\p{L}+)\.?,? (?:\p{L}{2} )?(?P<y2>\d{4})|(?P<m3>\p{L}+)\.? (?P<d3>\d{1,2})(?:\p{L}{2})?,? (?P<y3>\d{4})|(?P<d4>\d{1,2})\.(?P<m4>\d{1,2})\.(?P<y4>\d{4}))\b",
);

/// The unit of a date.
pub(super) const DATE: &str = "date";

/// The unit of what may be a time of the other half of the day, or a ratio: `9:15`.
pub(super) const CLOCK: &str = "clock";

/// A time of day, or what looks like it.
static TIME: LazyPattern = LazyPattern::new(
    r"\b(?P<hour>\d{1,2})(?:(?P<sign>[:.])(?P<minute>[0-5]\d))?(?: ?(?P<half>[AaPp])\.?[Mm]\b\.?)?",
);

/// With the code of a country.
static TELEPHONE: LazyPattern = LazyPattern::new(r"\+\d[\d ()./-]{5,}\d\b");

/// A sign or code, a number with signs between its thousands, and two words or signs that may be a power and a unit. Behind
/// a blank one group of digits may be a number of its own.
static AMOUNT: LazyPattern = LazyPattern::new(
    r"(?:(?P<before>\p{Sc}|\b\p{L}{3}) ?)?\b(?P<number>\d{1,3}(?:(?:[,'_\x{a0}\x{202f}\x{2009}]\d{3})+|(?: \d{3}){2,})\b|\d+)(?P<rest>\.\d+)?(?:(?P<gap>[ \x{a0}\x{202f}-]?)(?P<one>\p{L}+|[\p{Sc}%]))?(?: ?(?P<two>\p{L}+|\p{Sc}))?",
);

/// A smaller part behind a time: `30`, ` 30 min`, ` and 30 minutes`.
static SMALLER: LazyPattern =
    LazyPattern::new(r"^(?: (?P<and>\p{L}+))?(?P<gap> ?)(?P<number>\d+)(?: ?(?P<unit>\p{L}+))?\b");

/// A number and its unit, in the base of this unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quantity {
    pub(super) amount: String,
    /// Empty of a plain number.
    pub(super) unit: String,
    /// The number as it is written, without signs between its thousands.
    number: String,
}

impl Quantity {
    /// The quantity that the whole of a text is, if it is one that may be written in another way.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (place, quantity) = quantities(text).into_iter().next()?;
        let telling = !quantity.is_plain() || quantity.number.len() >= TELLING_DIGITS;
        (place == (0..text.len()) && telling).then_some(quantity)
    }

    /// Whether a text that gives the other one says this.
    pub(super) fn is_said_by(&self, other: &Self) -> bool {
        if self.is_time() && other.is_time() {
            return self.amount == other.amount;
        }
        if self.is_plain() || (other.is_plain() && self.number.len() >= TELLING_DIGITS) {
            return self.number == other.number;
        }
        self.unit == other.unit && self.amount == other.amount
    }

    /// Whether both measure the same thing; all currencies do.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let mut both = [self, other].into_iter();
        self.unit == other.unit || both.all(|own| LISTS.has(&[WordClass::Signs], &own.unit))
    }

    fn is_time(&self) -> bool {
        matches!(&*self.unit, "time" | CLOCK)
    }

    pub(super) fn is_plain(&self) -> bool {
        self.unit.is_empty()
    }
}

/// Whether two texts are one amount or date, written in two ways.
pub(crate) fn is_same_quantity(one: &str, other: &str) -> bool {
    Quantity::of(one).zip(Quantity::of(other)).is_some_and(|(one, other)| one.is_said_by(&other))
}

/// The quantities of a text, each with its place.
pub(super) fn quantities(text: &str) -> Vec<(Range<usize>, Quantity)> {
    let mut found = moments(text);
    let numbers = TELEPHONE.matches(text).filter_map(|found| {
        let place = found.get(0)?;
        let digits = place.as_str().chars().filter(char::is_ascii_digit);
        Some((place.range(), exact(digits.collect(), "+")))
    });
    found.extend(numbers);
    let mut at = 0;
    while let Some(captures) = AMOUNT.at(text, at) {
        let Some(number) = captures.name("number") else {
            break;
        };
        let read = amount(text, &captures, number);
        at = read.as_ref().map_or(number.end(), |(place, _)| place.end);
        found.extend(read.filter(|(place, _)| {
            let mut known = found.iter();
            !known.any(|(other, _)| is_part(place, other) || place == other)
        }));
    }
    found
}

/// The dates and times of a text.
pub(super) fn moments(text: &str) -> Vec<(Range<usize>, Quantity)> {
    let dates = DATES.matches(text).filter_map(|found| date(&found));
    let times = TIME.matches(text).filter_map(|found| time(text, &found));
    dates.chain(times).collect()
}

/// From one to twelve o'clock only what has its half, or a zero in front, is known to be a time.
fn time(text: &str, found: &Captures<'_>) -> Option<(Range<usize>, Quantity)> {
    let (place, hour) = (found.get(0)?.range(), found.name("hour")?.as_str());
    let number: u8 = hour.parse().ok()?;
    let sign = found.name("sign").map_or("", |sign| sign.as_str());
    let (hours, unit) = match found.name("half").map(|half| half.as_str()) {
        Some("p" | "P") if number <= 12 => (number % 12 + 12, "time"),
        Some("a" | "A") if number <= 12 => (number % 12, "time"),
        None if sign == ":" && (13..24).contains(&number) => (number, "time"),
        None if sign == ":" && hour.starts_with('0') => (number, "time"),
        None if sign == ":" && number < 24 => (number, CLOCK),
        _ => return None,
    };
    let cut = text[..place.start].ends_with(['-', '.', ':', ',', '/'])
        || text[place.end..].starts_with(':');
    let minute = found.name("minute").map_or("00", |minute| minute.as_str());
    (!cut).then(|| (place, exact(format!("{hours:02}:{minute}"), unit)))
}

fn exact(amount: String, unit: &str) -> Quantity {
    Quantity { number: amount.clone(), amount, unit: unit.to_owned() }
}

fn date(found: &Captures<'_>) -> Option<(Range<usize>, Quantity)> {
    let name = part(found, ["m", "m2", "m3", "m4"])?;
    let month: u8 = LISTS.stands_for(WordClass::Months, &name).unwrap_or(&name).parse().ok()?;
    let day: u8 = part(found, ["d", "d2", "d3", "d4"])?.parse().ok()?;
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day);
    let amount = format!("{}-{month:02}-{day:02}", part(found, ["y", "y2", "y3", "y4"])?);
    valid.then_some((found.get(0)?.range(), exact(amount, DATE)))
}

/// The group of a date that has one of these names, in lower case.
fn part(found: &Captures<'_>, names: [&str; 4]) -> Option<String> {
    names.iter().find_map(|name| found.name(name)).map(|part| part.as_str().to_lowercase())
}

/// The amount at a number that is no part of an id.
fn amount(text: &str, found: &Captures<'_>, number: Match<'_>) -> Option<(Range<usize>, Quantity)> {
    let rest = found.name("rest");
    let mut place = number.start()..rest.map_or(number.end(), |rest| rest.end());
    if goes_on(text, &place) {
        return None;
    }
    let mut written: String = number.as_str().chars().filter(char::is_ascii_digit).collect();
    written.push_str(rest.map_or("", |rest| rest.as_str()));
    let mut value: f64 = written.parse().ok()?;
    let names = ["one", "two"].into_iter();
    let mut words = names.filter_map(|name| found.name(name)).peekable();
    if let Some(power) = words.peek().and_then(|word| listed(WordClass::Powers, *word)) {
        value *= power.parse::<f64>().ok()?;
        written = decimal(value);
        place.end = words.next()?.end();
    }
    let behind = words.next();
    let before = found.name("before");
    let mut unit = before.and_then(|sign| listed(WordClass::Signs, sign));
    if unit.is_some() {
        place.start = before?.start();
    } else if let Some(word) = behind {
        unit = listed(WordClass::Signs, word).or_else(|| listed(WordClass::Units, word));
        place.end = unit.map_or(place.end, |_| word.end());
    }
    let cut = text[place.end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let scale = unit.and_then(scale_of);
    if let Some((base, factor)) = scale {
        (unit, value) = (Some(base), value * factor);
        while let Some((length, part)) = smaller(&text[place.end..], base) {
            value += part;
            place.end += length;
        }
    } else if cut || (unit.is_none() && written.contains('.')) {
        // The version of something, or an id.
        return None;
    }
    let quantity = Quantity {
        amount: unit.map_or_else(|| written.clone(), |_| decimal(value)),
        unit: unit.unwrap_or_default().to_owned(),
        number: written,
    };
    Some((place, quantity))
}

fn listed(class: WordClass, word: Match<'_>) -> Option<&'static str> {
    LISTS.stands_for(class, &word.as_str().to_lowercase())
}

/// The length and the value of a smaller part of a time at the begin of a text.
fn smaller(text: &str, base: &str) -> Option<(usize, f64)> {
    let found = SMALLER.at(text, 0)?;
    let and = found.name("and");
    let value: f64 = found.name("number")?.as_str().parse().ok()?;
    let word = found.name("unit");
    let unit = word.and_then(|word| listed(WordClass::Units, word));
    let end = found.get(0)?.end();
    let joined = and.is_none_or(|and| listed(WordClass::And, and).is_some());
    match unit.and_then(scale_of) {
        Some((own, factor)) if own == base && joined => Some((end, value * factor)),
        // An hour and its minutes.
        None if found.name("number")?.start() == 0 => Some((end, value * 60.0)),
        _ => None,
    }
}

/// The base of a unit, and how many of it the unit is.
pub(super) fn scale_of(unit: &str) -> Option<(&'static str, f64)> {
    let mut scales = LISTS.of(WordClass::Scales);
    scales.find_map(|scale| match scale {
        [base, own, factor] if own == unit => Some((base.as_str(), factor.parse().ok()?)),
        _ => None,
    })
}

/// A number in digits, without zeros at its end.
pub(super) fn decimal(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_the_same_however_it_is_written() {
        for (one, other) in [
            ("45 seconds", "45s"),
            ("1.5 hours", "90 minutes"),
            ("1.5 hours", "1h30"),
            ("1.5 hours", "1 hour and 30 minutes"),
            ("20 MB", "20 megabytes"),
            ("7.5 %", "7.5 percent"),
            ("1,250,000 rows", "1.25 million rows"),
            ("1 250 000", "1250000"),
            ("12,500 EUR", "€12500"),
            ("$2500", "2,500"),
            ("31 December 2027", "2027-12-31"),
            ("March 4, 2026", "4. März 2026"),
            ("+49 30 5557 0192", "+49-30-55570192"),
            ("4th of March 2026", "04.03.2026"),
            ("4 de marzo de 2026", "2026/03/04"),
            ("18:30", "6:30 p.m."),
            ("09:15", "9:15 AM"),
        ] {
            assert!(is_same_quantity(one, other), "{one} | {other}");
        }
        for (one, other) in [
            ("40 ms", "40 s"),
            ("EUR 2,500", "USD 2,500"),
            ("1.5 hours", "15 hours"),
            ("2027-12-31", "2027-12-30"),
            ("1.10", "1.1"),
            ("rq-4417", "4417"),
            ("18:30", "6:30 am"),
            ("9:15", "9:15 pm"),
        ] {
            assert!(!is_same_quantity(one, other), "{one} | {other}");
        }
    }
}
