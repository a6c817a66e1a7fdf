//! The order of the rows of a screen.

use super::{apart, not_ranked, points};
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
    let is_priced = rows.iter().any(|row| points(report, row, "bill").is_some());
    let (metric, sign) = match sort.0 {
        "bill" if !is_priced => ("bill_saved", 1.0),
        "bill" | "calls" | "waiting" => (sort.0, -1.0),
        metric => (metric, 1.0),
    };
    let key = |row: &Row| {
        let value = points(report, row, metric);
        value.map_or(f64::NEG_INFINITY, |value| sign * value)
    };
    rows.sort_by(|left, right| {
        // A sum over other sessions is not comparable.
        let last = |row: &Row| (not_ranked(row).is_some(), apart(row).is_some());
        let by_value = key(right).total_cmp(&key(left));
        let name = |row: &Row| (sort == NAME).then(|| row.name.clone());
        let by_name = name(left).cmp(&name(right));
        last(left).cmp(&last(right)).then(by_value).then(by_name)
    });
    rows
}
