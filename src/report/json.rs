//! JSON, exact, for programs: the whole report, and line by line the metrics of each cell.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::metric::{CellSummary, Unit};
use crate::record::schema_of;
use crate::report::{Cell, FORMAT_VERSION, RenderError, Report, ReportData, Value, escape};

/// A JSON Schema (draft 2020-12) of a run's report as JSON.
pub fn schema() -> serde_json::Value {
    schema_of::<ReportFile<'_>>()
}

/// A Proctor report as JSON.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Proctor report")]
struct ReportFile<'a> {
    /// Always `proctor-report`.
    format: &'static str,
    /// Version of this format.
    version: u32,
    /// The numbers of the comparison: `results[strategy][metric]`.
    results: ComparisonFigures<'a>,
    /// All the rest.
    #[serde(flatten)]
    report: &'a Report,
}

/// The numbers of a comparison, by strategy and by the metric's name, which is that of the screen. What was not
/// measured is not there.
pub type ComparisonFigures<'a> = BTreeMap<&'a str, BTreeMap<&'static str, Figure>>;

/// A number of a strategy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Figure {
    /// The value, in its unit.
    pub(super) value: f64,
    /// Of a share that is at least its value, the most that it may be: string matching cannot tell of the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<f64>,
    /// The lower end of its interval, where it is an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    /// The upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    /// The sessions that it rests on, or is a count of.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<usize>,
    /// Its unit: a `share` is a fraction of 1.
    unit: Unit,
}

impl Figure {
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        let (value, unit) = match cell.value {
            Value::Share(share) => (share, Unit::Share),
            Value::Tokens(tokens) => (tokens as f64, Unit::Tokens),
            Value::Count(count) | Value::Fraction(count, _) => (count as f64, Unit::Count),
            Value::Dollars(dollars) => (dollars.in_dollars(), Unit::Dollars),
            Value::Seconds(seconds) => (seconds, Unit::Seconds),
            Value::Text(_) | Value::NotMeasured | Value::NotApplicable => return None,
        };
        let n = match cell.value {
            Value::Fraction(_, all) => usize::try_from(all).ok(),
            _ => cell.n.map(|n| n.sessions),
        };
        Some(Self {
            value,
            most: cell.most,
            low: cell.interval.map(|interval| interval.lower_bound),
            high: cell.interval.map(|interval| interval.upper_bound),
            n,
            unit,
        })
    }
}

/// The numbers of a run's comparison; none of a report that has no comparison.
pub fn results(report: &Report) -> ComparisonFigures<'_> {
    let Some(comparison) = report.section("comparison") else {
        return ComparisonFigures::new();
    };
    let columns = &comparison.table.columns;
    let rows = comparison.table.rows.iter().chain(&report.quoted_controls);
    let numbers = rows.map(|row| {
        let cells = columns.iter().skip(1).zip(&row.cells);
        let figures = cells.filter_map(|(column, cell)| Some((column.id, Figure::of(cell)?)));
        (&*row.name, figures.collect())
    });
    numbers.collect()
}

/// Writes the report as one JSON object, the numbers of the comparison first; of a comparison or a sweep what
/// was computed.
///
/// Numbers are exact: shares are fractions of 1, tokens are whole. A value is `not_measured` where
/// it was not measured, and `not_applicable` where there is nothing to measure.
pub fn render(report: &Report) -> Result<String, RenderError> {
    let text = match &report.subject {
        ReportData::Run => serde_json::to_string_pretty(&ReportFile {
            format: "proctor-report",
            version: FORMAT_VERSION,
            results: results(report),
            report,
        }),
        ReportData::Comparison(comparisons) => serde_json::to_string_pretty(comparisons),
        ReportData::Sweep(sweep) => serde_json::to_string_pretty(sweep),
    };
    Ok(escape::json(&text.map_err(RenderError::Json)?) + "\n")
}

/// The metrics of one cell.
#[derive(Serialize)]
struct CellLine<'a> {
    run: &'a str,
    cell: &'a CellSummary,
}

/// Writes one line per cell: [`CellSummary`] with the run's fingerprint in front.
///
/// Values that were not measured are `null`; shares are computed from the counts beside them.
pub(super) fn lines(report: &Report) -> Result<String, RenderError> {
    let run = report.run.as_ref().map_or("", |run| &run.fingerprint);
    let lines = report.cells.iter().map(|cell| {
        let line = serde_json::to_string(&CellLine { run, cell }).map_err(RenderError::Json)?;
        Ok(escape::json(&line) + "\n")
    });
    lines.collect()
}
