//! The order of the rows of a screen.

use std::cmp::Ordering;

use super::{apart, not_ranked};
use crate::report::{Report, Row};

/// The number by which rows are sorted, best first, or their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortBy(&'static str);

impl Default for SortBy {
    fn default() -> Self {
        Self("bill")
    }
}

/// The order by name.
const NAME: SortBy = SortBy("name");

impl SortBy {
    /// All of them: metrics, and the name.
    pub const ALL: [Self; 8] = [
        Self("bill"),
        Self("tokens"),
        Self("facts"),
        Self("answers"),
        Self("actions"),
        Self("calls"),
        Self("waiting"),
        NAME,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// The rows of the strategies, the best first; those that take part in no ranking come last.
pub(super) fn sorted(report: &Report, sort: SortBy) -> Vec<&Row> {
    let mut rows: Vec<&Row> = report.strategies().collect();
    let priced = rows.iter().any(|row| report.is_measured(row, "bill"));
    let (metric, sign) = match sort.0 {
        "bill" if !priced => ("bill_saved", 1.0),
        "bill" | "calls" | "waiting" => (sort.0, -1.0),
        metric => (metric, 1.0),
    };
    rows.sort_by(|left, right| {
        // A sum over other sessions is not comparable.
        let [first, second] =
            [left, right].map(|row| (not_ranked(row).is_some(), apart(row).is_some()));
        let [left_value, right_value] = [left, right]
            .map(|row| report.number(row, metric).map_or(f64::NEG_INFINITY, |value| sign * value));
        let by_value = right_value.total_cmp(&left_value);
        let by_name = if sort == NAME { left.name.cmp(&right.name) } else { Ordering::Equal };
        first.cmp(&second).then(by_value).then(by_name)
    });
    rows
}
