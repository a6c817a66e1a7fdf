//! JSON: the whole report, exact, for programs.

use serde::Serialize;

use crate::report::{Artifact, FORMAT_VERSION, RenderError, Renderer, Report, escape};

/// Writes the report as one JSON object, keys in the order of [`Report`].
///
/// Numbers are exact: shares are fractions of 1, tokens are whole. A value is `not_measured` where
/// nobody measured it, and `not_applicable` where there is nothing to measure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

#[derive(Serialize)]
struct File<'a> {
    format: &'static str,
    version: u32,
    report: &'a Report,
}

impl Renderer for Json {
    fn format(&self) -> &'static str {
        "json"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let file = File {
            format: "proctor-report",
            version: FORMAT_VERSION,
            report,
        };
        let mut text =
            escape::json(&serde_json::to_string_pretty(&file).map_err(RenderError::Json)?);
        text.push('\n');
        Ok(vec![Artifact {
            name: "report.json".to_owned(),
            bytes: text.into_bytes(),
        }])
    }
}
