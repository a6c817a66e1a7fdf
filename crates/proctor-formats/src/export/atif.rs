//! Writes a session as ATIF, the trajectories of Harbor: one object with steps.

use crate::prelude::*;

use super::{ExportCounts, Exported};

/// The version that is written.
const VERSION: &str = "ATIF-v1.6";

/// Writes a session as a trajectory. A step of the agent's holds its call, and what its tools
/// answered; what the product wrote in the user's place is the system's.
pub fn atif(session: &Session) -> Exported {
    let mut left_out = ExportCounts::default();
    left_out.add("compaction", session.compactions().len());
    let mut steps: Vec<Value> = Vec::new();
    steps.extend(session.system().map(|system| step("system", system, None)));
    // The step of each tool use.
    let mut calls: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for message in session.messages() {
        let text = texts(message.content(), &mut left_out);
        match message.role() {
            // A message that the product wrote for the model is no call.
            Role::Assistant if message.has_tag(Tag::Synthetic) => {
                steps.push(step("system", &text, message.details.timestamp));
            }
            Role::Assistant => {
                let mut said = step("agent", &text, message.details.timestamp);
                add_answer(&mut said, message, &mut left_out);
                let model = message.details.model.as_deref();
                if let Some(model) = model.filter(|model| Some(*model) != session.model()) {
                    said["model_name"] = json!(model);
                }
                let uses = message.tool_uses();
                calls.extend(uses.map(|(_, tool_use)| (tool_use.id.clone(), steps.len())));
                steps.push(said);
            }
            Role::User => {
                for (_, result) in message.tool_results() {
                    left_out.add("failure of a tool", result.is_error);
                    let told = texts(&result.content, &mut left_out);
                    let id = &result.tool_use_id;
                    let told = json!({"source_call_id": &**id, "content": told});
                    match calls.get(id).and_then(|at| steps.get_mut(*at)) {
                        Some(step) => match step["observation"]["results"].as_array_mut() {
                            Some(results) => results.push(told),
                            None => step["observation"]["results"] = json!([told]),
                        },
                        None => left_out.add("result without a call", true),
                    }
                }
                if !text.is_empty() {
                    let product = [Tag::Meta, Tag::CompactSummary, Tag::Synthetic];
                    // Words of the system's at the beginning are the system prompt.
                    let injected = product.iter().any(|tag| message.has_tag(*tag))
                        && !message.has_tag(Tag::TypedUser)
                        && !steps.is_empty();
                    let who = if injected { "system" } else { "user" };
                    steps.push(step(who, &text, message.details.timestamp));
                }
            }
        }
    }
    for (at, step) in steps.iter_mut().enumerate() {
        step["step_id"] = json!(at + 1);
    }
    let tools: Vec<Value> = session.tools().iter().map(|tool| tool.definition.value()).collect();
    let mut agent = json!({"name": session.source().format, "version": "unknown"});
    if let Some(model) = session.model() {
        agent["model_name"] = json!(model);
    }
    if !tools.is_empty() {
        agent["tool_definitions"] = json!(tools);
    }
    let trajectory = json!({
        "schema_version": VERSION, "session_id": session.id(), "agent": agent,
        "final_metrics": {"total_steps": steps.len()}, "steps": steps,
    });
    Exported { json: format!("{trajectory:#}\n"), left_out: left_out.0 }
}

fn step(who: &str, text: &str, time: When) -> Value {
    let mut step = json!({"source": who, "message": text});
    if let Some(time) = time.and_then(|time| jiff::Timestamp::from_millisecond(time.0).ok()) {
        step["timestamp"] = json!(time.to_string());
    }
    step
}

/// Adds what the model thought, the tools it asked for, and what the call cost.
fn add_answer(step: &mut Value, message: &Message, left_out: &mut ExportCounts) {
    let mut thoughts: Vec<&str> = Vec::new();
    for block in message.content() {
        if let ContentBlock::Thinking(thinking) = block {
            left_out.add("signature of thinking", thinking.signature.is_some());
            thoughts.push(&thinking.text);
        }
    }
    if !thoughts.is_empty() {
        step["reasoning_content"] = json!(thoughts.join("\n"));
    }
    let calls: Vec<Value> = message.tool_uses().map(|(_, it)| {
        json!({"tool_call_id": &*it.id, "function_name": &*it.name, "arguments": it.input.value()})
    }).collect();
    if !calls.is_empty() {
        step["tool_calls"] = json!(calls);
    }
    left_out.add("request within a call", message.details.inner_requests.len());
    if let Some(usage) = message.details.usage {
        left_out.add("lifetime of a cache write", usage.cache_write_1h.0 > 0);
        // The prompt counts what was read from the cache and written to it.
        let written = usage.cache_write_5m + usage.cache_write_1h;
        step["metrics"] = json!({
            "prompt_tokens": usage.prompt().0, "completion_tokens": usage.output.0,
            "cached_tokens": usage.cache_read.0,
            "extra": {"cache_creation_input_tokens": written.0},
        });
    }
}

/// The texts of blocks, one a line; other blocks than tools' and thinking are left out.
fn texts(blocks: &[ContentBlock], left_out: &mut ExportCounts) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => texts.push(text),
            ContentBlock::Image(_) => left_out.add("image", true),
            ContentBlock::Opaque(_) => left_out.add("unknown block", true),
            ContentBlock::Thinking(_) | ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_) => {}
        }
    }
    texts.join("\n")
}
