//! `LangSmith`'s runs: in a list, one per line, under `runs`, or with their children in `child_runs`.
//!
//! Each run of a model is a request with its context. The shape is that of the page *Run (span) data
//! format* of its documentation, and of `langchain-ai/langsmith-sdk`, `python/langsmith/schemas.py`.
//!
//! Rules of this format, beside those every importer shares:
//! - Inputs and outputs are what the traced library gave: [`traces`] reads them.
//! - A thread is a conversation: `thread_id`, `session_id` or `conversation_id` of the metadata. The
//!   `session_id` of a run itself names the project.
//! - Runs of chains, tools and prompts repeat what the runs of the model hold, and are skipped.
//! - The input of a usage includes the cached tokens.

use super::prelude::*;
use super::traces::{self, Exchange, TraceCall};

/// The shapes of a file.
const SHAPES: &str = "run_type:s inputs,outputs,trace_id,dotted_order | \
     runs/0/run_type:s runs/0/inputs,runs/0/outputs,runs/0/trace_id,runs/0/dotted_order";

pub(super) const IMPORTER: Importer = Importer::new("langsmith", Detect::Item(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut calls = Vec::new();
    let mut seen: BTreeSet<ContentHash> = BTreeSet::new();
    for line in file.values(source)? {
        let mut open = vec![line.parse::<&RawValue>()?];
        while let Some(raw) = open.pop() {
            if let Some(inner) = items(raw) {
                open.extend(inner.into_iter().rev());
                continue;
            }
            let Some(mut run) = Object::read(raw) else {
                source.not_understood("value that is no run");
                continue;
            };
            let inner = ["child_runs", "runs"].map(|key| run.take(key));
            open.extend(inner.into_iter().flatten());
            let kind = run.take_text("run_type");
            match kind.as_deref() {
                Some("llm") if !seen.insert(look_of(&run)) => source.skip("run recorded twice"),
                Some("llm") => {
                    let mut metadata = run.clone().inner("extra").inner("metadata");
                    let names = ["thread_id", "session_id", "conversation_id"];
                    let start = run.take("start_time").and_then(time);
                    calls.push(TraceCall::of(metadata.first_text(&names), start, run));
                }
                Some(kind) => source.skip(&format!("run of {kind}")),
                None => {}
            }
        }
    }
    traces::sessions(calls, file, source, exchange)
}

/// The same of one run wherever it stands: a child is indented more than the same run beside its parent.
fn look_of(run: &Object<'_>) -> ContentHash {
    let keys = ["id", "inputs", "outputs"];
    ContentHash::of_values(keys.map(|key| run.get(key).map(value).unwrap_or_default()))
}

fn exchange(mut run: Object<'_>, source: &mut Source) -> Exchange {
    let mut extra = run.inner("extra");
    let (mut metadata, mut parameters) =
        (extra.inner("metadata"), extra.inner("invocation_params"));
    let mut outputs = run.value("outputs");
    let mut keys = ["usage_metadata", "usage"].into_iter();
    let own =
        keys.find_map(|key| outputs.as_object_mut()?.shift_remove(key).filter(Value::is_object));
    let output = outputs.as_object_mut().and_then(|outputs| outputs.shift_remove("llm_output"));
    let usage = own
        .or_else(|| output.map(|output| output["token_usage"].clone()))
        .filter(Value::is_object)
        .or_else(|| metadata.take("usage_metadata").map(value))
        .unwrap_or_else(|| {
            serde_json::json!({
                "prompt_tokens": run.get("prompt_tokens").map(value),
                "completion_tokens": run.get("completion_tokens").map(value),
                "input_token_details": run.get("prompt_token_details").map(value),
            })
        });
    let model = metadata.take("ls_model_name").or(parameters.first(&["model", "model_name"]));
    let mut exchange = Exchange {
        id: run.value("id"),
        model: model.map(value).unwrap_or_default(),
        tools: parameters.value("tools"),
        end: run.take("end_time").and_then(time),
        usage: unless_zero(usage_in(&usage, CachedTokens::Within, source)),
        ..Exchange::default()
    };
    exchange.ask(run.value("inputs"), source);
    exchange.answer(outputs, source);
    exchange
}
