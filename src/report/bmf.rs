//! Bencher Metric Format: figures of each strategy, for a service that follows them over time.
//!
//! `{ strategy: { metric: { value, lower_value, upper_value } } }`: shares as fractions of 1,
//! tokens and counts whole. Values that were not measured are left out.

use serde_json::{Map, Value as Json, json};

use super::comparison::GatedComparison;
use super::{Cell, Report, Role, Subject, Value};
use crate::compare::{Kind, MetricDifference};
use crate::stats::ConfidenceInterval;

pub(super) fn render(report: &Report) -> String {
    let strategies = match &report.subject {
        Subject::Comparison(comparisons) => of_comparisons(&comparisons.comparisons),
        Subject::Run | Subject::Sweep(_) => of_run(report),
    };
    format!("{:#}\n", Json::Object(strategies))
}

/// The measures of the comparison of a run.
fn of_run(report: &Report) -> Map<String, Json> {
    let Some(section) = report.section("comparison") else {
        return Map::new();
    };
    let table = &section.table;
    let rows = table.rows.iter().filter(|row| row.role == Role::Strategy);
    let of_row = |cells: &[Cell]| -> Map<String, Json> {
        let columns = table.columns.iter().skip(1).zip(cells);
        columns
            .filter(|(column, _)| column.measure.is_some())
            .filter_map(|(column, cell)| {
                let value = match &cell.value {
                    Value::Percent(share) => *share,
                    Value::Tokens(count) | Value::Count(count) | Value::Fraction(count, _) => {
                        *count as f64
                    }
                    Value::Text(_)
                    | Value::Seconds(_)
                    | Value::NotMeasured
                    | Value::NotApplicable => return None,
                };
                Some((column.id.to_owned(), measure(value, cell.interval, 0.0)))
            })
            .collect()
    };
    rows.map(|row| (row.name.clone(), Json::Object(of_row(&row.cells))))
        .collect()
}

/// The level of each candidate with the interval of its difference around it, where it has one. A strategy
/// that is compared more than once is named with its sources, `run::strategy (baseline)`.
fn of_comparisons(comparisons: &[GatedComparison]) -> Map<String, Json> {
    let of_metric = |metric: &MetricDifference| {
        let is_exact = metric.bounds.is_some_and(|it| it.deviation.is_none());
        let interval = metric.paired.by_session.confidence_interval;
        let interval = interval.filter(|_| !is_exact && metric.kind != Kind::Amount);
        let measure = measure(metric.candidate, interval, metric.baseline);
        (metric.metric.to_owned(), measure)
    };
    let of_comparison = |one: &GatedComparison| {
        let candidate = &one.comparison.candidate;
        let same = |other: &&GatedComparison| other.comparison.candidate == *candidate;
        let name = if comparisons.iter().filter(same).count() > 1 {
            let (own, other) = (&one.candidate_source, &one.baseline_source);
            format!("{own}::{candidate} ({other})")
        } else {
            candidate.clone()
        };
        let measures = one.comparison.metrics.iter().map(of_metric).collect();
        (name, Json::Object(measures))
    };
    comparisons.iter().map(of_comparison).collect()
}

fn measure(value: f64, interval: Option<ConfidenceInterval>, around: f64) -> Json {
    match interval {
        Some(interval) => json!({
            "value": value,
            "lower_value": around + interval.lower_bound,
            "upper_value": around + interval.upper_bound,
        }),
        None => json!({ "value": value }),
    }
}
