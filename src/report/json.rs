//! JSON: the whole report, exact, for programs.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::report::{Artifact, FORMAT_VERSION, RenderError, Renderer, Report, escape};

/// Writes the report as one JSON object, keys in the order of [`Report`].
///
/// Numbers are exact: shares are fractions of 1, tokens are whole. A value is `not_measured` where
/// nobody measured it, and `not_applicable` where there is nothing to measure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

/// A JSON Schema (draft 2020-12) of what [`Json`] writes.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<File<'_>>()
        .to_value()
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
