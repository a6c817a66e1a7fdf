//! Number formats: how a value is written, the same in every format for people.

use std::fmt::Display;

use serde::Serialize;

use crate::report::{Cell, Range, Value, escape};
use crate::stats::{Estimate, SampleSize, wilson};
use crate::units::Tokens;
pub(crate) use crate::units::many;

/// The sign of negative numbers.
const MINUS: char = '−';

/// `61.2 %`: one decimal, and never `−0.0 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", points(share))
}

/// `61.2`: percent without its sign. Shares in a report are finite.
pub(crate) fn points(share: f64) -> String {
    let text = format!("{:.1}", (share * 100.0).abs());
    if share < 0.0 && text != "0.0" { format!("{MINUS}{text}") } else { text }
}

/// `61`: whole points.
pub(crate) fn whole(share: f64) -> String {
    match format!("{:.0}", share * 100.0).as_str() {
        "-0" => "0".to_owned(),
        text => text.replace('-', "−"),
    }
}

/// `812`, `12.3k`, `1.2M`.
pub(crate) fn tokens(tokens: u64) -> String {
    Tokens(tokens).in_short()
}

/// A value in words, without its interval. Texts are not escaped here.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Share(share) => percent(*share),
        Value::Tokens(count) => tokens(*count),
        Value::Count(count) => count.to_string(),
        Value::Fraction(part, whole) => format!("{part}/{whole}"),
        Value::Dollars(dollars) => dollars.to_string(),
        Value::Seconds(seconds) => format!("{seconds:.1} s"),
        Value::Text(text) => text.clone(),
        Value::NotMeasured => "not measured".to_owned(),
        Value::NotApplicable => "–".to_owned(),
    }
}

/// The value of a cell: `62.4 %`, or `62.4–71.0 %` where it may be more.
pub(crate) fn cell(cell: &Cell) -> String {
    match (&cell.value, cell.most) {
        (Value::Share(least), Some(most)) => format!("{}–{}", points(*least), percent(most)),
        (value, _) => self::value(value),
    }
}

/// Words with a sign between them; `None` without any.
pub(crate) fn listed(
    words: impl IntoIterator<Item = impl Display>,
    between: &str,
) -> Option<String> {
    words.into_iter().map(|word| word.to_string()).reduce(|all, word| all + between + &word)
}

/// Words with a sign between them.
pub(crate) fn joined(words: impl IntoIterator<Item = impl Display>, between: &str) -> String {
    listed(words, between).unwrap_or_default()
}

/// The most characters of a question or a value in a line.
const LONGEST_FACT: usize = 80;

/// A question or a value on one line, cut where it is long.
pub(crate) fn short_fact(text: &str) -> String {
    escape::short(&joined(text.split_whitespace(), " "), LONGEST_FACT)
}

/// A fact by its question and value: `"Which port does the gateway use?" (48213)`.
pub(crate) fn fact(question: &str, value: &str) -> String {
    format!("\"{}\" ({})", short_fact(question), short_fact(value))
}

/// `±3.1`, in points; `0.0–18.5` where the value is not in the middle: cut where a share ends, or Wilson's.
pub(crate) fn interval(cell: &Cell) -> Option<String> {
    let (low, high) = bounds(cell)?;
    let half = points((high - low) / 2.0);
    let Value::Share(share) = cell.value else {
        return Some(format!("±{half}"));
    };
    Some(match [share - low, high - share].map(points) {
        [below, above] if below == half && above == half => format!("±{half}"),
        _ => format!("{}–{}", points(low), points(high)),
    })
}

/// The ends of an interval as they are printed: those of shares at 0 and 1, where the value itself
/// lies between them; savings may be negative.
pub(crate) fn bounds(cell: &Cell) -> Option<(f64, f64)> {
    let interval = cell.interval?;
    let (low, high) = (interval.lower_bound, interval.upper_bound);
    let Value::Share(share) = cell.value else {
        return Some((low, high));
    };
    // A share that was corrected for chance may lie below 0 itself.
    let least = match cell.range {
        Range::Share => share.min(0.0),
        Range::Savings => f64::NEG_INFINITY,
    };
    Some((low.max(least), high.min(share.max(1.0))))
}

/// `n=6/120`: sessions, and the items in them.
pub(crate) fn n(n: SampleSize) -> String {
    format!("n={}/{}", n.sessions, n.items)
}

/// The name of a variant without data, as files write it.
pub(super) fn name_of(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(_) | Err(_) => String::new(),
    }
}

impl Cell {
    /// An estimate of a share of something; `NotMeasured` without one.
    pub(crate) fn estimate(estimate: Option<Estimate>) -> Self {
        estimate.map_or(Self::NOT_MEASURED, |estimate| Self {
            n: Some(estimate.n),
            interval: estimate.confidence_interval,
            ..Self::share(Some(estimate.point_estimate))
        })
    }

    /// An estimate of savings.
    pub(crate) fn savings(estimate: Option<Estimate>) -> Self {
        Self { range: Range::Savings, ..Self::estimate(estimate) }
    }

    /// The share of all items of all sessions together, with Wilson's interval for as many items as they
    /// would be if those of a session did not go together; `NotMeasured` without any.
    pub(crate) fn rate(sessions: &[Vec<f64>]) -> Self {
        let used = sessions.iter().filter(|values| !values.is_empty()).count();
        let items: usize = sessions.iter().map(Vec::len).sum();
        let sum: f64 = sessions.iter().flatten().sum();
        Self {
            n: (items > 0).then_some(SampleSize { sessions: used, items }),
            interval: wilson::of_sessions(sessions).map(|(interval, _)| interval),
            ..Self::share((items > 0).then(|| sum / items as f64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_honest() {
        for (share, text) in [
            (1.0, "100.0 %"),
            (0.6124, "61.2 %"),
            (-0.031, "−3.1 %"),
            (-0.0, "0.0 %"),
            (-0.0001, "0.0 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (12_345, "12.3k"),
            (999_949, "999.9k"),
            (999_950, "1.0M"),
            (1_234_567, "1.2M"),
            (2_000_000_000, "2.0G"),
        ] {
            assert_eq!(tokens(count), text);
        }
    }
    #[track_caller]
    fn check_interval(cell: &Cell, expected: Option<&str>) {
        assert_eq!(interval(cell).as_deref(), expected, "{cell:?}");
    }

    #[test]
    fn an_interval_ends_where_shares_do_and_says_where_it_is_not_even() {
        let of = |values: &[f64]| Estimate::of_sessions(values, values.len());
        let near = [0.48, 0.5, 0.52];
        check_interval(&Cell::estimate(of(&near)), Some("±5.0"));
        check_interval(&Cell::savings(of(&near)), Some("±5.0"));
        let wide = [0.0, 0.0, 0.18];
        check_interval(&Cell::estimate(of(&wide)), Some("0.0–31.8"));
        check_interval(&Cell::savings(of(&wide)), Some("±25.8"));
        let high = [1.0, 1.0, 0.82];
        check_interval(&Cell::savings(of(&high)), Some("68.2–100.0"));
        check_interval(&Cell::estimate(of(&[-0.02, 0.0, 0.0])), Some("−0.7–2.2"));
        check_interval(&Cell::estimate(of(&[0.5])), None);
    }

    #[test]
    fn a_rate_has_wilsons_interval_for_what_its_items_are_worth() {
        let apart = vec![vec![1.0, 0.0, 1.0, 0.0]; 10];
        let rate = Cell::rate(&apart);
        assert_eq!(rate.value, Value::Share(0.5));
        // statsmodels.stats.proportion.proportion_confint(20, 40, method="wilson")
        check_interval(&rate, Some("±14.8"));
        let together = [vec![vec![1.0; 4]; 5], vec![vec![0.0; 4]; 5]].concat();
        check_interval(&Cell::rate(&together), Some("±26.3"));
        check_interval(&Cell::rate(&[vec![0.0; 10]]), Some("0.0–27.8"));
        assert_eq!(Cell::rate(&[Vec::new()]), Cell::share(None));
    }
}
