//! Figures: how a value is written, the same in every format for people.

use crate::probe::Outcome;
use crate::record::Fate;
use crate::report::{Cell, Value};
use crate::stats::{Estimate, SampleSize};

/// The sign of negative numbers.
const MINUS: char = '−';

/// `61.2 %`: one decimal, and never `−0.0 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", points(share))
}

/// `61.2`: percent without its sign. Shares in a report are finite.
pub(crate) fn points(share: f64) -> String {
    let text = format!("{:.1}", (share * 100.0).abs());
    if share < 0.0 && text != "0.0" {
        format!("{MINUS}{text}")
    } else {
        text
    }
}

/// `812`, `12.3k`, `1.2M`.
pub(crate) fn tokens(tokens: u64) -> String {
    const THOUSAND: f64 = 1_000.0;
    let value = tokens as f64;
    match tokens {
        0..1_000 => tokens.to_string(),
        // 999,950 and above round to 1,000.0k.
        1_000..999_950 => format!("{:.1}k", value / THOUSAND),
        999_950..999_950_000 => format!("{:.1}M", value / THOUSAND / THOUSAND),
        _ => format!("{:.1}G", value / THOUSAND / THOUSAND / THOUSAND),
    }
}

/// A value in words, without its interval. Texts are not escaped here.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Percent(share) => percent(*share),
        Value::Tokens(count) => tokens(*count),
        Value::Count(count) => count.to_string(),
        Value::Of(part, whole) => format!("{part}/{whole}"),
        Value::Text(text) => text.clone(),
        Value::NotMeasured => "not measured".to_owned(),
        Value::NotApplicable => "–".to_owned(),
    }
}

/// `1 session`, `6 sessions`.
pub(crate) fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// `±3.1`, in points.
pub(crate) fn interval(cell: &Cell) -> Option<String> {
    let interval = cell.interval?;
    Some(format!("±{}", points(interval.half_width())))
}

/// `n=6/120`: sessions, and the items in them.
pub(crate) fn n(n: SampleSize) -> String {
    format!("n={}/{}", n.sessions, n.items)
}

/// What became of a planted value, in a word.
pub(super) fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Survived => "survived",
        Fate::Partial => "partial",
        Fate::Reachable => "reachable",
        Fate::Unbound => "unbound",
        Fate::Distorted => "distorted",
        Fate::Stale => "stale",
        Fate::Ambiguous => "ambiguous",
        Fate::Lost => "lost",
    }
}

/// In what way an answer is right or wrong, in a word.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Right => "right",
        Outcome::Partial => "partial",
        Outcome::Wrong => "wrong",
        Outcome::Stale => "stale",
        Outcome::Misbound => "misbound",
        Outcome::Abstained => "abstained",
        Outcome::Invented => "invented",
    }
}

impl Cell {
    /// An estimate; `NotMeasured` without one.
    pub(crate) fn estimate(estimate: Option<Estimate>) -> Self {
        match estimate {
            Some(estimate) => Self {
                value: Value::percent(Some(estimate.point_estimate)),
                n: Some(estimate.n),
                interval: estimate.confidence_interval,
                best: false,
            },
            None => Self::exact(Value::NotMeasured),
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
}
