//! Metrics: pure functions of records, one file per family.
//!
//! A [`CellSummary`] holds every metric of one cell. [`METRICS`] says what each metric means, how it
//! is computed and which way is better; reports and documentation print it.
//!
//! A superscript 0 marks the reference `full` on the same calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod answers;
pub mod assumption;
pub mod cached_calls;
pub mod calls;
pub mod compaction;
pub mod completion;
pub mod context_pressure;
pub mod cost;
pub mod fidelity;
pub mod forecast;
pub mod generations;
pub mod live;
pub mod name;
pub mod noise;
mod pool;
mod prelude;
pub mod reference;
pub mod rereads;
pub mod retention;
pub mod summaries;
pub mod summary;
pub mod support;
pub mod survival;
mod table;
pub mod tokens;
pub mod trail;
pub mod unscored;
pub mod validity;

pub(crate) use pool::{
    Formula, PooledValue, cluster_total, clusters, estimate, saved, sessions, total,
};
pub use summary::CellSummary;
pub use table::METRICS;

/// A metric: its texts for people, and its function.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Metric {
    /// Its name: the id of a column in every format.
    pub name: &'static str,
    /// Its heading in tables.
    pub label: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// One sentence.
    pub doc: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// Its evaluator: the counter, string matching, a reader.
    pub source: &'static str,
    /// Its place in the comparison, and its priority there; `None` where it has no column there.
    #[serde(skip)]
    pub(crate) column: Option<(u8, u8)>,
    #[serde(skip)]
    marks: &'static [MetricMark],
    #[serde(skip)]
    pub(crate) function: Formula,
}

/// How the comparison treats a metric. Without a mark it applies to strategies alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricMark {
    /// It applies to full history as well.
    Reference,
    /// It applies to full history and to the empty context as well.
    Controls,
    /// The best value is marked. Counts have no best: doing nothing makes few calls. Nor has the
    /// compacted region: its items differ from strategy to strategy.
    Best,
    /// The best value is marked, unless only a model's writing decides what is kept.
    BestKept,
    /// It is a share that may be negative, and below 0 no value is the best.
    Savings,
    /// Without a value it is not listed as missing.
    Optional,
    /// Without a value it does not apply: no summary was written, or nothing fired.
    WhereWritten,
    /// A column of zeros is not shown.
    HideZeros,
    /// It has a column only where agents ran.
    Closed,
    /// It has a column only where no price is known.
    Unpriced,
    /// It has no column in CSV and Parquet, or one of another name.
    NotInCsv,
}

impl Metric {
    /// Whether the comparison treats it so.
    pub(crate) fn is(&self, mark: MetricMark) -> bool {
        self.marks.contains(&mark)
    }
}

/// The metrics with a column in the comparison, in its order.
pub(crate) fn columns() -> Vec<&'static Metric> {
    let shown = METRICS.iter().filter(|metric| metric.column.is_some());
    let mut columns: Vec<&Metric> = shown.collect();
    columns.sort_by_key(|metric| metric.column);
    columns
}

/// In what a metric is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
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
    fn every_column_has_a_function_of_its_unit() {
        for metric in columns() {
            let is_pooled = match metric.function {
                Formula::Mean(_) | Formula::Saved(_) => metric.unit == Unit::Share,
                Formula::Total(_) => {
                    matches!(metric.unit, Unit::Dollars | Unit::Seconds | Unit::Tokens)
                }
                Formula::Count(_) => metric.unit == Unit::Count,
                Formula::Tokens(_) | Formula::Largest(_) => metric.unit == Unit::Tokens,
                Formula::Pool(_) => true,
            };
            assert!(is_pooled, "{}", metric.name);
        }
    }

    #[test]
    fn every_metric_has_a_name_of_its_own_and_says_what_it_is() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        assert!(METRICS.len() > 50);
        for metric in METRICS {
            assert!(!metric.doc.is_empty() && !metric.formula.is_empty());
            assert!(metric.doc.starts_with(char::is_lowercase), "{}", metric.doc);
        }
        let places: BTreeSet<_> = columns().iter().map(|metric| metric.column).collect();
        assert_eq!(places.len(), columns().len());
        assert_eq!(metric("fidelity").unwrap().direction, Direction::Higher);
        assert!(metric("score").is_none());
    }
}
