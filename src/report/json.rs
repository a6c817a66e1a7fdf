//! JSON, exact, for programs: the whole report, and line by line the metrics of each cell.

use schemars::JsonSchema;
use serde::Serialize;

use crate::metric::CellSummary;
use crate::record::schema_of;
use crate::report::{FORMAT_VERSION, RenderError, Report, Subject, escape};

/// A JSON Schema (draft 2020-12) of a run's report as JSON.
pub fn schema() -> serde_json::Value {
    schema_of::<File<'_>>()
}

/// A Proctor report as JSON.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Proctor report")]
struct File<'a> {
    /// Always `proctor-report`.
    format: &'static str,
    /// Version of this format.
    version: u32,
    /// The report.
    report: &'a Report,
}

/// Writes the report as one JSON object, keys in the order of [`Report`]; of a comparison or a sweep what
/// was computed.
///
/// Numbers are exact: shares are fractions of 1, tokens are whole. A value is `not_measured` where
/// it was not measured, and `not_applicable` where there is nothing to measure.
pub fn render(report: &Report) -> Result<String, RenderError> {
    let text = match &report.subject {
        Subject::Run => serde_json::to_string_pretty(&File {
            format: "proctor-report",
            version: FORMAT_VERSION,
            report,
        }),
        Subject::Comparison(comparisons) => serde_json::to_string_pretty(comparisons),
        Subject::Sweep(sweep) => serde_json::to_string_pretty(sweep),
    };
    Ok(escape::json(&text.map_err(RenderError::Json)?) + "\n")
}

/// The metrics of one cell.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    cell: &'a CellSummary,
}

/// Writes one line per cell: [`CellSummary`] with the run's fingerprint in front.
///
/// Values that were not measured are `null`; shares are computed from the counts beside them.
pub(super) fn lines(report: &Report) -> Result<String, RenderError> {
    let run = report.run.as_ref().map_or("", |run| &run.fingerprint);
    let line = |cell| {
        let line = serde_json::to_string(&Line { run, cell }).map_err(RenderError::Json)?;
        Ok(escape::json(&line) + "\n")
    };
    report.cells.iter().map(line).collect()
}
