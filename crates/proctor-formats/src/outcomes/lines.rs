//! Lines of JSON, which any program can write: `{"task": "NAME", "strategy": "NAME", "trial": 0, "score": 1}`.

use serde_json::Value;

use super::{Problem, TrialOutcome, no_score, number, score};
use crate::prelude::*;

/// One line; only the task and the score have to be there.
#[derive(Deserialize)]
struct Written<'a> {
    task: String,
    /// A name or a number.
    #[serde(default)]
    strategy: Value,
    #[serde(default, alias = "repeat")]
    trial: u32,
    /// `null` where the trial did not run.
    #[serde(borrow)]
    score: &'a RawValue,
    /// Why not, in a form of the program's own.
    error: Option<Value>,
}

/// Whether a document is the only line of such a file.
pub(super) fn is_line(object: &Object<'_>) -> bool {
    object.has("task") && object.contains("score")
}

pub(super) fn read(text: &str) -> Result<Vec<TrialOutcome>, Problem> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, text)| {
        let place = format!(":{number}");
        line(text, &place).map_err(|why| (place, why))
    });
    read.collect()
}

fn line(text: &str, place: &str) -> Result<TrialOutcome, String> {
    let line: Written<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let strategy = match line.strategy {
        Value::Null => None,
        Value::String(name) => Some(name),
        Value::Number(number) => Some(number.to_string()),
        other => return Err(format!("a strategy is a name or a number, not `{other}`")),
    };
    let score = match (number(line.score).map(score), line.error.and_then(reason)) {
        (Some(Ok(value)), _) => Ok(value),
        (_, Some(why)) => Err(why),
        (Some(Err(why)), None) => return Err(why),
        (None, None) => Err(no_score("score", line.score)),
    };
    Ok(TrialOutcome { strategy, ..TrialOutcome::new(&line.task, line.trial, score, place) })
}

/// The reason in an `error`; an empty one is none.
fn reason(error: Value) -> Option<String> {
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(why) => (!why.trim().is_empty()).then_some(why),
        other => Some(other.to_string()),
    }
}
