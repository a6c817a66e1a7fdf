//! Lines of JSON, which any program can write: `{"task": "NAME", "strategy": "NAME", "trial": 0, "score": 1}`.

use super::{Outcome, Problem, score};
use crate::prelude::*;

/// One line; only the task and the score have to be there.
#[derive(Deserialize)]
struct Written {
    task: String,
    strategy: Option<String>,
    #[serde(default, alias = "repeat")]
    trial: u32,
    score: f64,
}

/// Whether a document is the only line of such a file.
pub(super) fn is_line(object: &Object<'_>) -> bool {
    object.has("task") && object.has("score")
}

pub(super) fn read(text: &str) -> Result<Vec<Outcome>, Problem> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        let place = format!(":{number}");
        let line: Written =
            serde_json::from_str(line).map_err(|error| (place.clone(), error.to_string()))?;
        let score = score(line.score, &place)?;
        Ok(Outcome {
            strategy: line.strategy,
            ..Outcome::new(&line.task, line.trial, score, place)
        })
    });
    read.collect()
}
