//! The order of the rows of a screen.

use super::{apart, not_ranked, points};
use crate::report::{Report, Row};

/// The number by which rows are sorted, best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The bill saved.
    #[default]
    Bill,
    /// Tokens saved.
    Tokens,
    /// Facts kept.
    Facts,
    /// Answers right.
    Answers,
    /// Actions supported.
    Actions,
    /// Calls of the strategy's own: fewest first.
    Calls,
    /// Modelled time of the calls that the agent makes or waits for: shortest first.
    Waiting,
    /// The name.
    Name,
}

impl SortBy {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Bill,
        Self::Tokens,
        Self::Facts,
        Self::Answers,
        Self::Actions,
        Self::Calls,
        Self::Waiting,
        Self::Name,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bill => "bill",
            Self::Tokens => "tokens",
            Self::Facts => "facts",
            Self::Answers => "answers",
            Self::Actions => "actions",
            Self::Calls => "calls",
            Self::Waiting => "waiting",
            Self::Name => "name",
        }
    }
}

/// The rows of the strategies, the best first; those that take part in no ranking come last.
pub(super) fn sorted(report: &Report, sort: SortBy) -> Vec<&Row> {
    let mut rows: Vec<&Row> = report.strategies().collect();
    let is_priced = rows.iter().any(|row| points(report, row, "bill").is_some());
    let metric = match sort {
        SortBy::Bill if is_priced => Some("bill"),
        SortBy::Bill => Some("bill_saved"),
        SortBy::Tokens => Some("tokens"),
        SortBy::Facts => Some("facts"),
        SortBy::Answers => Some("answers"),
        SortBy::Actions => Some("actions"),
        SortBy::Calls => Some("calls"),
        SortBy::Waiting => Some("waiting"),
        SortBy::Name => None,
    };
    let sign = match sort {
        SortBy::Bill if is_priced => -1.0,
        SortBy::Calls | SortBy::Waiting => -1.0,
        _ => 1.0,
    };
    let key = |row: &Row| {
        let value = metric.and_then(|metric| points(report, row, metric));
        value.map_or(f64::NEG_INFINITY, |value| sign * value)
    };
    rows.sort_by(|left, right| {
        // A sum over other sessions is not comparable.
        let last = |row: &Row| (not_ranked(row).is_some(), apart(row).is_some());
        let by_value = key(right).total_cmp(&key(left));
        let name = |row: &Row| (sort == SortBy::Name).then(|| row.name.clone());
        let by_name = name(left).cmp(&name(right));
        last(left).cmp(&last(right)).then(by_value).then(by_name)
    });
    rows
}
