//! Writes a session as a trace of OpenTelemetry in JSON: one span for each call, with its context.
//!
//! Nothing in it is random. The trace has the beginning of the hash of the session's id as its id,
//! each span that of its place. A span ends when its answer came, and begins when the last message
//! since the answer before did, or else when it ends; where the recording has no time, it is that of the span before, or 0.

use super::{ExportCounts, Exported};
use crate::prelude::*;
use proctor_sessions::wire::{Provider, definition, for_provider};

/// The largest trace that is written, in bytes: no importer reads a larger file.
const LARGEST: usize = 1 << 30;

/// A trace that no importer would read.
#[derive(Debug, thiserror::Error)]
#[error(
    "a trace of session `{id}` would be larger than 1 GiB: it holds the whole context of each of \
     {calls} calls"
)]
pub struct TraceTooLarge {
    id: String,
    calls: usize,
}

/// Writes a session as a trace. After a compaction, a span holds what the compaction left.
pub fn otlp(session: &Session) -> Result<Exported, TraceTooLarge> {
    let mut left_out = ExportCounts::default();
    let messages = session.messages();
    let told: Vec<String> = messages.iter().map(|message| chat(message, &mut left_out)).collect();
    let calls = session.calls();
    let after = calls.last().map_or(0, |last| last + 1);
    left_out.add("message after the last call", messages.len() - after);
    let trace = ContentHash::of(session.id()).hex(32);
    let mut spans: Vec<String> = Vec::new();
    let mut compactions = session.compactions().iter().peekable();
    // The context before message `next`.
    let (mut context, mut next): (Vec<String>, usize) = (Vec::new(), 0);
    let (mut size, mut start, mut answered) = (0, 0, 0);
    for (place, at) in calls.iter().copied().enumerate() {
        while let Some(compaction) = compactions.next_if(|value| value.at <= at) {
            match &compaction.after {
                CompactedTo::Replaced(pieces) => {
                    context = replaced(pieces, &told, messages);
                    next = compaction.at;
                }
                CompactedTo::Encrypted | CompactedTo::Missing => left_out.add("compaction", true),
            }
        }
        context.extend_from_slice(&told[next..at]);
        next = at;
        size += context.iter().map(String::len).sum::<usize>();
        if size > LARGEST {
            return Err(TraceTooLarge { id: session.id().to_owned(), calls: calls.len() });
        }
        let answer = &messages[at];
        let mut asked = messages[answered..at].iter().rev();
        let before = asked.find_map(|value| value.details.timestamp);
        left_out.add("time", asked.filter(|value| value.details.timestamp.is_some()).count());
        answered = at + 1;
        let began = before.or(answer.details.timestamp);
        start = began.map_or(start, |began| began.0.max(start));
        let end = answer.details.timestamp.map_or(start, |time| time.0.max(start));
        let mut attributes = call(session, answer, &mut left_out);
        attributes.push(text("gen_ai.input.messages", &format!("[{}]", context.join(","))));
        let finished = if answer.tool_uses().next().is_some() { "tool_call" } else { "stop" };
        let answered = told[at].strip_suffix('}').unwrap_or(&told[at]);
        let answered = format!("[{answered},\"finish_reason\":\"{finished}\"}}]");
        attributes.push(text("gen_ai.output.messages", &answered));
        let model = session.model().unwrap_or_default();
        let span = json!({
            "traceId": trace, "spanId": ContentHash::of(format!("{trace} {place}")).hex(16),
            "name": format!("chat {model}").trim_end(), "kind": 3,
            "startTimeUnixNano": nanoseconds(start), "endTimeUnixNano": nanoseconds(end),
            "attributes": attributes,
        });
        spans.push(span.to_string());
    }
    let service = text("service.name", &session.source().format);
    let json = format!(
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{service}]}},\
         \"scopeSpans\":[{{\"scope\":{{\"name\":\"proctor\"}},\"spans\":[\n{}\n]}}]}}]}}\n",
        spans.join(",\n")
    );
    Ok(Exported { json, left_out: left_out.0 })
}

/// The messages that a compaction left.
fn replaced(pieces: &[Recorded], told: &[String], messages: &[Arc<Message>]) -> Vec<String> {
    let mut left: Vec<String> = Vec::new();
    let mut edited: Option<(usize, Arc<Message>)> = None;
    for piece in pieces {
        // Blocks of one message that were edited one by one are one message.
        if let Some((message, _)) = &edited
            && !matches!(piece, Recorded::Edited { message: at, .. } if at == message)
        {
            left.extend(edited.take().map(|(_, message)| sent(&message)));
        }
        match piece {
            Recorded::Kept(range) => left.extend_from_slice(&told[range.clone()]),
            Recorded::Written(message) => left.push(sent(message)),
            Recorded::Edited { message, block, text } => {
                let own = edited.take().map_or_else(|| messages[*message].clone(), |(_, own)| own);
                edited = Some((*message, Arc::new(own.with_block_text(*block, text))));
            }
        }
    }
    left.extend(edited.map(|(_, message)| sent(&message)));
    left
}

fn sent(message: &Arc<Message>) -> String {
    chat(message, &mut ExportCounts::default())
}

/// The attributes of a call beside its messages.
fn call(session: &Session, answer: &Message, left_out: &mut ExportCounts) -> Vec<Value> {
    let model = session.model().or(answer.details.model.as_deref());
    let system =
        session.system().map(|text| json!([{"type": "text", "content": &**text}]).to_string());
    let tools: Value = session.tools().iter().map(function).collect();
    let tools = (!session.tools().is_empty()).then(|| tools.to_string());
    let response = answer.details.api_call.as_ref();
    let texts = [
        ("operation.name", Some("chat")),
        ("provider.name", Some(provider(model.unwrap_or_default()))),
        ("conversation.id", Some(session.id())),
        ("request.model", model),
        ("response.model", answer.details.model.as_deref()),
        ("response.id", response.map(|call| &*call.0)),
        ("system_instructions", system.as_deref()),
        ("tool.definitions", tools.as_deref()),
    ];
    let each =
        texts.into_iter().filter_map(|(key, value)| Some(text(&format!("gen_ai.{key}"), value?)));
    let mut attributes: Vec<Value> = each.collect();
    if let Some(usage) = answer.details.usage {
        left_out.add("lifetime of a cache write", usage.cache_write_1h.0 > 0);
        let written = usage.cache_write_5m + usage.cache_write_1h;
        for (key, tokens) in [
            ("input_tokens", usage.prompt()),
            ("output_tokens", usage.output),
            ("cache_read.input_tokens", usage.cache_read),
            ("cache_creation.input_tokens", written),
        ] {
            let value = json!({"intValue": tokens.0.to_string()});
            attributes.push(json!({"key": format!("gen_ai.usage.{key}"), "value": value}));
        }
    }
    attributes
}

/// The definition of a tool as the conventions have it.
fn function(tool: &ToolSchema) -> Value {
    let json = definition(tool, Provider::OpenAi);
    let mut value: Value = serde_json::from_str(&json).unwrap_or_default();
    match value.get_mut("function").map(Value::take) {
        Some(Value::Object(mut function)) => {
            function.insert("type".to_owned(), json!("function"));
            function.into()
        }
        _ => value,
    }
}

/// The provider of a model, by the names that the conventions give.
fn provider(model: &str) -> &'static str {
    let known = [
        ("claude", Provider::Anthropic.name()),
        ("gemini", "gcp.gemini"),
        ("gpt", Provider::OpenAi.name()),
    ];
    known.iter().find(|(prefix, _)| model.starts_with(prefix)).map_or("unknown", |(_, name)| name)
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn nanoseconds(milliseconds: i64) -> String {
    (i128::from(milliseconds) * 1_000_000).to_string()
}

/// A message: the results of tools in one of their own, and the rest.
fn chat(message: &Arc<Message>, left_out: &mut ExportCounts) -> String {
    let summary = message.has_tag(Tag::CompactSummary);
    let message = for_provider(message, Provider::Anthropic);
    let (mut results, mut parts) = (Vec::new(), Vec::new());
    for block in message.content() {
        match block {
            ContentBlock::ToolResult(result) => {
                left_out.add("failure of a tool", result.is_error);
                let response = match &result.content[..] {
                    [ContentBlock::Text(text)] => json!(&**text),
                    blocks => blocks.iter().map(part).collect(),
                };
                let id = &*result.tool_use_id;
                results.push(json!({"type": "tool_call_response", "id": id, "response": response}));
            }
            ContentBlock::Text(text) if summary => {
                parts.push(json!({"type": "compaction", "content": &**text}));
            }
            block => parts.push(part(block)),
        }
    }
    let both = [("tool", results), (message.role().name(), parts)];
    let filled = both.into_iter().filter(|(_, parts)| !parts.is_empty());
    let texts = filled.map(|(role, parts)| json!({"role": role, "parts": parts}).to_string());
    texts.collect::<Vec<_>>().join(",")
}

fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({"type": "text", "content": &**text}),
        ContentBlock::Thinking(thinking) => {
            let mut part = json!({"type": "reasoning", "content": &*thinking.text});
            if let Some(signature) = &thinking.signature {
                part["signature"] = json!(&**signature);
            }
            part
        }
        ContentBlock::ToolUse(it) => json!({
            "type": "tool_call", "id": &*it.id, "name": &*it.name, "arguments": it.input.value(),
        }),
        ContentBlock::Image(image) => {
            let source = image.source.value();
            let media = &source["media_type"];
            match (source["data"].as_str(), source["url"].as_str()) {
                (Some(data), _) => json!({
                    "type": "blob", "modality": "image", "mime_type": media, "content": data,
                }),
                (None, Some(uri)) => json!({"type": "uri", "modality": "image", "uri": uri}),
                (None, None) => json!({"type": "image", "source": source}),
            }
        }
        ContentBlock::Opaque(opaque) => match opaque.json.value() {
            value @ Value::Object(_) => value,
            other => json!({"type": &*opaque.kind, "value": other}),
        },
        ContentBlock::ToolResult(_) => Value::Null,
    }
}
