//! Other spellings of a value: amounts and dates.

use std::ops::Range;

use super::lists::{Class, LISTS};
use super::order;

/// The sign and the code of the currency that a text names.
fn currency(text: &str) -> Option<(&'static str, String)> {
    let mut known = LISTS.of(Class::Signs).filter_map(|group| {
        let [code, sign] = group else { return None };
        Some((sign.as_str(), code.to_uppercase()))
    });
    known.find(|(sign, code)| text.contains(sign) || text.contains(code.as_str()))
}

/// Whether a number at this place is a part of a longer one, or of another currency than what was said.
pub(super) fn is_another(text: &str, place: &Range<usize>, said: &str) -> bool {
    let (before, behind) = (&text[..place.start], &text[place.end..]);
    let is_joined = |text: &mut dyn Iterator<Item = char>| {
        text.next().is_some_and(|c| matches!(c, ',' | '.'))
            && text.next().is_some_and(|c| c.is_ascii_digit())
    };
    let before_it = before.trim_end().chars().next_back();
    let sign = before_it.and_then(|sign| currency(sign.encode_utf8(&mut [0; 4])));
    is_joined(&mut behind.chars())
        || is_joined(&mut before.chars().rev())
        || (sign.is_some() && sign != currency(said))
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

/// An amount with or without commas, its sign or its code; a number with the other names of its unit; and a date as it is
/// written and spoken.
pub(super) fn others(text: &str) -> Vec<String> {
    let mut all = dates(text);
    if all.is_empty() && currency(text).is_none() {
        all = with_unit(text);
    }
    if all.is_empty() {
        all = amounts(text);
    }
    all.retain(|other| other != text);
    all
}

fn amounts(text: &str) -> Vec<String> {
    let named = currency(text);
    let amount = named.iter().fold(text, |amount, (sign, code)| {
        let amount = amount.trim_matches(|c| sign.contains(c));
        amount.strip_suffix(code.as_str()).unwrap_or(amount)
    });
    let amount = amount.trim();
    let digits = amount.replace(',', "");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let mut all = Vec::new();
    if let Some((sign, code)) = &named {
        all.extend([format!("{sign}{amount}"), format!("{amount} {code}")]);
    }
    all.extend(order::grouped(&digits));
    let thousands = digits.strip_suffix("000").filter(|rest| !rest.is_empty());
    all.extend(thousands.map(|rest| format!("{rest}k")));
    // Few digits are in any text.
    all.extend((digits.len() > 3).then_some(digits));
    all
}

/// A number with a unit, by all its names.
fn with_unit(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let (unit, lower) = (unit.trim(), unit.trim().to_lowercase());
    if number.is_empty() || unit.is_empty() {
        return Vec::new();
    }
    let lower = if unit == "%" {
        "percent".to_owned()
    } else {
        lower
    };
    let Some(names) = LISTS.group(Class::Units, &lower) else {
        return Vec::new();
    };
    let sign = (lower == "percent").then_some("%");
    let names = names.iter().map(String::as_str).chain([unit]).chain(sign);
    names
        .flat_map(|name| [format!("{number} {name}"), format!("{number}{name}")])
        .collect()
}

/// A date, written with numbers or spoken.
fn dates(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text
        .split([' ', '-'])
        .map(|part| part.trim_matches(','))
        .collect();
    let [first, second, third] = parts[..] else {
        return Vec::new();
    };
    let month = |name: &str| {
        MONTHS
            .iter()
            .position(|own| *own == name || &own[..3] == name)
    };
    let number = |part: &str| part.parse::<usize>().ok();
    let read = match (month(first), month(second)) {
        (Some(month), _) => Some((number(third), Some(month + 1), number(second))),
        (_, Some(month)) => Some((number(third), Some(month + 1), number(first))),
        _ if text.contains(' ') => None,
        _ => Some((number(first), number(second), number(third))),
    };
    let Some((Some(year), Some(month), Some(day))) = read else {
        return Vec::new();
    };
    let name = month.checked_sub(1).and_then(|at| MONTHS.get(at));
    let Some(name) = name.filter(|_| year >= 1_000 && (1..=31).contains(&day)) else {
        return Vec::new();
    };
    let spoken = [name, &name[..3]].into_iter().flat_map(|name| {
        [
            format!("{name} {day}, {year}"),
            format!("{day} {name} {year}"),
        ]
    });
    spoken
        .chain([format!("{year}-{month:02}-{day:02}")])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_other_spellings() {
        for (said, other) in [
            ("45 seconds", "45 s"),
            ("45 seconds", "45s"),
            ("45s", "45 seconds"),
            ("20 MB", "20MB"),
            ("20 MB", "20 megabytes"),
            ("7.5 %", "7.5%"),
            ("7.5%", "7.5 percent"),
            ("1,000", "1000"),
            ("1000", "1k"),
            ("12,500 EUR", "€12,500"),
            ("€12,500", "12,500 EUR"),
            ("$2500", "2,500"),
            ("2027-12-31", "31 December 2027"),
            ("31 December 2027", "2027-12-31"),
            ("March 4, 2026", "2026-03-04"),
        ] {
            let all = others(said);
            assert!(all.iter().any(|own| own == other), "{said}: {all:?}");
        }
        for none in ["rq-4417", "10-20-30", "2026-13-01", "v2.14.0", "600", ""] {
            assert_eq!(others(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn an_amount_of_another_currency_is_another() {
        let place = |text: &str| text.find("2,500").map(|at| at..at + 5).unwrap();
        for (text, said, expected) in [
            ("€2,500", "2500 EUR", false),
            ("$2,500", "2500 EUR", true),
            ("2,500 left", "$2500", false),
            ("2,500.5", "$2500", true),
        ] {
            assert_eq!(is_another(text, &place(text), said), expected, "{text}");
        }
    }
}
