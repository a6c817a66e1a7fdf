//! Bencher Metric Format: each strategy's figures, for a service that follows them over time.

use serde_json::{Map, Value as Json, json};

use crate::report::{Artifact, Cell, RenderError, Renderer, Report, Role, Value};

/// Writes `{ strategy: { metric: { value, lower_value, upper_value } } }` of the comparison: shares as
/// fractions of 1, tokens and counts whole. What nobody measured is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bmf;

impl Renderer for Bmf {
    fn format(&self) -> &'static str {
        "bmf.json"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let mut strategies = Map::new();
        if let Some(section) = report.section("comparison") {
            let table = &section.table;
            for row in table.rows.iter().filter(|row| row.role == Role::Strategy) {
                let cells = table.columns.iter().skip(1).zip(&row.cells);
                let measures: Map<String, Json> = cells
                    .filter(|(column, _)| column.measure.is_some())
                    .filter_map(|(column, cell)| Some((column.id.to_owned(), measure(cell)?)))
                    .collect();
                strategies.insert(row.name.clone(), Json::Object(measures));
            }
        }
        Ok(vec![Artifact {
            name: "report.bmf.json".to_owned(),
            bytes: format!("{:#}\n", Json::Object(strategies)).into_bytes(),
        }])
    }
}

fn measure(cell: &Cell) -> Option<Json> {
    let value = match &cell.value {
        Value::Percent(share) => *share,
        Value::Tokens(count) | Value::Count(count) | Value::Of(count, _) => *count as f64,
        Value::Text(_) | Value::NotMeasured | Value::NotApplicable => return None,
    };
    Some(match cell.interval {
        Some(interval) => json!({
            "value": value,
            "lower_value": interval.lower_bound,
            "upper_value": interval.upper_bound,
        }),
        None => json!({ "value": value }),
    })
}
