//! JSON lines: the metrics of one cell per line, for programs that read as they go.

use serde::Serialize;

use crate::metric::CellSummary;
use crate::report::{Artifact, RenderError, Renderer, Report, escape};

/// Writes one line per cell: [`CellSummary`] with the run's fingerprint in front.
///
/// What nobody measured is `null`; shares are computed from the counts beside them.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonLines;

#[derive(Serialize)]
struct Line<'a> {
    run: &'a str,
    cell: &'a CellSummary,
}

impl Renderer for JsonLines {
    fn format(&self) -> &'static str {
        "jsonl"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let mut out = String::new();
        for cell in &report.cells {
            let line = Line {
                run: &report.run.fingerprint,
                cell,
            };
            out.push_str(&escape::json(
                &serde_json::to_string(&line).map_err(RenderError::Json)?,
            ));
            out.push('\n');
        }
        Ok(vec![Artifact {
            name: "report.jsonl".to_owned(),
            bytes: out.into_bytes(),
        }])
    }
}
