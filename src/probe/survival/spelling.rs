//! Other spellings of a value: amounts and dates.

use std::ops::Range;

use super::order;

/// Signs of currencies.
const SIGNS: [char; 3] = ['$', '€', '£'];

/// Whether a number at this place is a part of a longer one, or of another currency than what was said.
pub(super) fn is_another(text: &str, place: &Range<usize>, said: &str) -> bool {
    let (before, behind) = (&text[..place.start], &text[place.end..]);
    let is_joined = |text: &mut dyn Iterator<Item = char>| {
        text.next().is_some_and(|c| matches!(c, ',' | '.'))
            && text.next().is_some_and(|c| c.is_ascii_digit())
    };
    let sign = before
        .trim_end()
        .chars()
        .next_back()
        .filter(|c| SIGNS.contains(c));
    let own = said.chars().find(|c| SIGNS.contains(c));
    is_joined(&mut behind.chars())
        || is_joined(&mut before.chars().rev())
        || (sign.is_some() && sign != own)
}

/// Months, by their number.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// An amount without its sign and with or without commas, and a date as it is spoken.
pub(super) fn others(text: &str) -> Vec<String> {
    let amount = text.trim_start_matches(SIGNS).trim_end_matches(SIGNS);
    let digits = amount.trim().replace(',', "");
    let grouped = order::grouped(&digits);
    if grouped.is_some()
        || digits.len() < text.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        // Few digits are in any text.
        let plain = (digits.len() > 3).then_some(digits);
        return grouped
            .into_iter()
            .chain(plain)
            .filter(|other| other != text)
            .collect();
    }
    let mut numbers = text.splitn(3, '-').map(|part| part.parse::<usize>().ok());
    let [Some(Some(year)), Some(Some(month)), Some(Some(day))] =
        [numbers.next(), numbers.next(), numbers.next()]
    else {
        return Vec::new();
    };
    if year < 1_000 || !(1..=31).contains(&day) {
        return Vec::new();
    }
    let Some(name) = month.checked_sub(1).and_then(|at| MONTHS.get(at)) else {
        return Vec::new();
    };
    let names = [name, &name[..3]];
    names
        .into_iter()
        .flat_map(|name| {
            [
                format!("{name} {day}, {year}"),
                format!("{day} {name} {year}"),
            ]
        })
        .collect()
}
