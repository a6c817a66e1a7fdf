//! Metrics: pure functions of records, one file per family.
//!
//! A [`CellSummary`] holds every metric of one cell. What a metric means, how it is computed and
//! which way is better stands in [`METRICS`], which reports and documentation print.
//!
//! A superscript 0 marks the reference `full` on the same calls.

use schemars::JsonSchema;
use serde::Serialize;

pub mod answers;
pub mod calls;
pub mod compaction;
pub mod completion;
pub mod cost;
mod details;
pub mod fidelity;
pub mod forecast;
pub mod generations;
pub mod kept;
pub mod noise;
pub mod reference;
pub mod rereads;
pub mod retention;
pub mod silent;
pub mod strain;
pub mod summaries;
pub mod summary;
pub mod support;
pub mod survival;
mod table;
pub mod tokens;
pub mod trail;
pub mod validity;

pub use details::DETAILS;
pub use summary::CellSummary;
pub use table::METRICS;

/// What is measured, for people to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Metric {
    /// Its name: the id of a column in every format.
    pub name: &'static str,
    /// Its heading in tables.
    pub label: &'static str,
    /// In what it is measured.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// One sentence.
    pub doc: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// Who measures it: the counter, string matching, a reader.
    pub source: &'static str,
}

/// In what a metric is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// From 0 to 1, printed in percent; savings can be negative.
    Share,
    /// Tokens of the scenario's counter.
    Tokens,
    /// How many.
    Count,
    /// Dollars.
    Dollars,
    /// Seconds.
    Seconds,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it describes.
    Neutral,
}

/// The metric of this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own_and_says_what_it_is() {
        let all = || METRICS.iter().chain(DETAILS);
        let names: BTreeSet<_> = all().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len() + DETAILS.len());
        for metric in all() {
            assert!(!metric.doc.is_empty() && !metric.formula.is_empty());
            assert!(metric.doc.starts_with(char::is_lowercase), "{}", metric.doc);
        }
        assert_eq!(metric("fidelity").unwrap().direction, Direction::Higher);
        assert_eq!(metric("score"), None);
    }
}
