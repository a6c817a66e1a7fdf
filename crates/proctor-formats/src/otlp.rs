//! OpenTelemetry's traces of generative models: OTLP in JSON, one object or one per line, as the
//! file exporter of the collector writes it.
//!
//! Each span of a call is a request with its context. The shape is that of
//! `open-telemetry/semantic-conventions-genai`, `docs/gen-ai/` (commit 002c8a6): attributes of the
//! span, or the event with the details of a call, in the span or as a log record. Older forms are
//! read too: the events of one message each (version 1.36), and the flat attributes of `OpenLLMetry`;
//! so are the attributes of the AI SDK (`ai.prompt.messages`, `ai.response.text`).
//!
//! Rules of this format, beside those every importer shares:
//! - Spans of tools, agents and workflows repeat the messages of the calls, and are skipped; so do
//!   those that name neither an operation nor a model, where others of their trace name theirs.
//! - Attributes of messages are structured, or JSON in a text.
//! - The messages of an output are one answer, unless several were asked for.
//! - `gen_ai.usage.input_tokens` includes the cached tokens.
//! - A part of the type `compaction` is a summary that the provider wrote. Spans of calls, and other spans with
//!   `gen_ai.conversation.compacted`, and ADK's spans `compact_events` say that there was one before the next call.
//! - Metrics and attributes of other conventions (`llm.*`, `langfuse.*`) are not read.

use super::file::COPIED;
use super::prelude::*;
use super::traces::{self, Exchange, ToldCompaction, TraceCall, parsed};

mod messages;

type Attributes = BTreeMap<String, Value>;
type SpanCall = TraceCall<CallSpan>;

pub(super) const IMPORTER: Importer = Importer::new("otlp", Detect::Any(20, SHAPES), import);

/// The shapes of an export.
const SHAPES: &str = "resourceSpans:l | resourceLogs:l";

/// Where spans and log records are.
const SPANS: [&str; 3] = ["resourceSpans", "scopeSpans", "spans"];
const LOGS: [&str; 3] = ["resourceLogs", "scopeLogs", "logRecords"];

/// Operations that call a model.
const CALLS: &str = "chat generate_content text_completion";

/// The attribute of a call, or of a span around or before it, whose context was compacted, and the event of that name
/// (`open-telemetry/semantic-conventions-genai`, pull request 162). It may be said again at each later call.
const COMPACTED: &str = "gen_ai.conversation.compacted";

/// Attributes of a span around a compaction (`google/adk-python`, `telemetry/tracing.py` of 2.13). Only one that was done
/// names its result.
const TRIGGER: &str = "gen_ai.compaction.trigger";
const RESULT: &str = "gen_ai.compaction.result_event_id";

/// The event that holds all messages of a call.
const DETAILS: &str = "gen_ai.client.inference.operation.details";

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let (mut calls, mut logs) = (Vec::new(), Vec::new());
    let mut named: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for raw in file.listed(source)? {
        // An exporter sends again what was not confirmed.
        if !seen.insert(raw.get()) {
            source.warn(COPIED);
            continue;
        }
        logs.extend(records(raw, LOGS, source));
        for raw in records(raw, SPANS, source) {
            if !seen.insert(raw.get()) {
                source.skip("span recorded twice");
            } else if let Some(call) = span(raw, &mut named, source) {
                calls.push(call);
            }
        }
    }
    calls.retain(|call| {
        let kept = call.record.unnamed_in.as_ref().is_none_or(|trace| !named.contains(trace));
        if !kept {
            source.skip("span of no model");
        }
        kept
    });
    let ids = calls.iter().map(|call| call.record.id.clone());
    let known: BTreeMap<Arc<str>, usize> = ids.zip(0..).collect();
    for raw in logs {
        let mut log = Object::read(raw).unwrap_or_default();
        let mut fields = attributes_of(&mut log);
        let name = log.take_text("eventName").or_else(|| text(&mut fields, "event.name"));
        if let Some(Value::Object(body)) = log.take("body").map(|raw| any(&value(raw))) {
            fields.extend(body);
        }
        let id = log.take_text("spanId").filter(|id| !id.is_empty());
        let time = log.take("timeUnixNano").and_then(nanoseconds);
        match (id.as_ref().and_then(|id| known.get(id)), name.as_deref()) {
            (Some(at), Some(name)) => calls[*at].record.event(name, fields, source),
            (None, Some(DETAILS)) => calls.push(call_of(id, [time, time], fields)),
            (None, Some(COMPACTED)) if time.is_some() => {
                fields.insert(COMPACTED.to_owned(), true.into());
                calls.push(call_of(id, [time, time], fields));
            }
            _ => source.skip("log record of no call"),
        }
    }
    // A compaction comes before the calls that begin when it was said.
    calls.sort_by_key(|call| call.record.has_messages());
    traces::sessions(calls, file, source, CallSpan::exchange)
}

/// The items of the innermost lists.
fn records<'a>(raw: &'a RawValue, keys: [&str; 3], source: &mut Source) -> Vec<&'a RawValue> {
    let mut found = vec![raw];
    for key in keys {
        let mut below = Vec::new();
        for raw in found {
            match Object::read(raw) {
                Some(mut object) => below.extend(object.items(key)),
                None => source.not_understood(&format!("value without `{key}`")),
            }
        }
        found = below;
    }
    found
}

/// A call of a model, as far as it was read.
#[derive(Default)]
struct CallSpan {
    id: Arc<str>,
    /// The trace, if the span names neither an operation nor a model.
    unnamed_in: Text,
    attributes: Attributes,
    end: Option<i128>,
    /// Messages in events: of the request, and of the answer.
    asked: Vec<Value>,
    answered: Vec<Value>,
    compaction: Option<ToldCompaction>,
}

/// A call of that id, with its start and end.
fn call_of(id: Text, [start, end]: [Option<i128>; 2], mut attributes: Attributes) -> SpanCall {
    let own = text(&mut attributes, "gen_ai.conversation.id");
    let compaction = told(&mut attributes);
    // The calls within such a span write the summary.
    let dated = compaction.as_ref().is_some_and(|told| told.is_dated);
    TraceCall {
        conversation: own.or(text(&mut attributes, "session.id")),
        start: end.filter(|_| dated).or(start),
        record: CallSpan {
            id: id.unwrap_or_default(),
            compaction,
            attributes,
            end,
            ..CallSpan::default()
        },
    }
}

/// The compaction that attributes tell of.
fn told(attributes: &mut Attributes) -> Option<ToldCompaction> {
    let result = attributes.remove(RESULT);
    (attributes.remove(COMPACTED) == Some(Value::Bool(true)) || result.is_some())
        .then(|| ToldCompaction { trigger: text(attributes, TRIGGER), is_dated: result.is_some() })
}

/// Reads a span, unless it neither calls a model nor says of a compaction; a trace whose call names its operation is put
/// in `named`.
fn span(raw: &RawValue, named: &mut BTreeSet<Arc<str>>, source: &mut Source) -> Option<SpanCall> {
    let Some(mut span) = Object::read(raw) else {
        source.not_understood("span that is no object");
        return None;
    };
    let mut attributes = attributes_of(&mut span);
    let operation = text(&mut attributes, "gen_ai.operation.name");
    let keys = ["startTimeUnixNano", "endTimeUnixNano"];
    let times = keys.map(|key| span.take(key).and_then(nanoseconds));
    let mut call = call_of(span.take_text("spanId"), times, attributes);
    for mut event in span.objects("events") {
        let name = event.take_text("name").unwrap_or_default();
        call.record.event(&name, attributes_of(&mut event), source);
    }
    let trace = span.take_text("traceId").filter(|id| !id.is_empty());
    match &operation {
        Some(operation) if is_one_of(CALLS, operation) => named.extend(trace),
        None if call.record.has_messages() => {
            call.record.unnamed_in = trace.filter(|_| !call.record.names_a_model());
        }
        // It may repeat the messages of the calls in it.
        _ if call.record.compaction.is_some() && call.start.is_some() => {
            let compaction = call.record.compaction;
            call.record = CallSpan { compaction, ..CallSpan::default() };
        }
        _ => {
            let what = operation.as_deref().unwrap_or("no model");
            source.skip(&format!("span of {what}"));
            return None;
        }
    }
    Some(call)
}

impl CallSpan {
    fn names_a_model(&self) -> bool {
        let mut keys = ["gen_ai.request.model", "gen_ai.response.model"].iter();
        keys.any(|key| self.attributes.contains_key(*key))
    }

    fn has_messages(&self) -> bool {
        let marks = "gen_ai.input. gen_ai.output.messages gen_ai.prompt gen_ai.completion ai.prompt.messages";
        let said = self.asked.len() + self.answered.len();
        let mut keys = self.attributes.keys();
        said > 0 || keys.any(|key| marks.split(' ').any(|mark| key.starts_with(mark)))
    }

    /// Adds what an event says of the call.
    fn event(&mut self, name: &str, mut fields: Attributes, source: &mut Source) {
        if name == COMPACTED {
            self.compaction.get_or_insert_default();
            return;
        }
        let role = name.strip_prefix("gen_ai.").and_then(|role| role.strip_suffix(".message"));
        if name == DETAILS {
            for (key, value) in fields {
                self.attributes.entry(key).or_insert(value);
            }
            return;
        }
        fields.remove("gen_ai.system");
        let whole = fields.remove("gen_ai.event.content").map(parsed);
        let mut message = if let Some(Value::Object(message)) = whole {
            message
        } else {
            let structured = fields.into_iter().map(|(key, value)| match &*key {
                "content" | "message" => (key, messages::content(value)),
                _ => (key, parsed(value)),
            });
            structured.collect()
        };
        match role {
            Some(role) => {
                message.entry("role").or_insert_with(|| json!(role));
                self.asked.push(Value::Object(message));
            }
            None if name == "gen_ai.choice" => {
                let said = message.remove("message");
                let inner = said.clone().map(parsed).filter(Value::is_object);
                message.extend(said.map(|said| ("content".to_owned(), said)));
                self.answered.push(inner.unwrap_or(Value::Object(message)));
            }
            None => source.skip(&format!("event {name}")),
        }
    }

    /// The request and its answer.
    fn exchange(mut self, source: &mut Source) -> Exchange {
        let flat = ["gen_ai.prompt.", "gen_ai.completion."];
        let [flat_asked, flat_answered] =
            flat.map(|prefix| messages::flat(&mut self.attributes, prefix));
        let of_ai_sdk = messages::ai_sdk_answer(&mut self.attributes);
        let mut take = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| self.attributes.remove(*key));
            found.filter(|found| !found.is_null())
        };
        let instructions = take(&["gen_ai.system_instructions"]).map(parsed);
        let system = instructions.map(|parts| json!({"role": "system", "parts": parts}));
        let input = take(&["gen_ai.input.messages", "ai.prompt.messages"]).map(parsed);
        let listed = input.map(|input| messages::list(input, "user"));
        let asked = listed.unwrap_or_else(|| [flat_asked, self.asked].concat());
        let output = take(&["gen_ai.output.messages"]).map(parsed);
        let answers = output
            .map(|output| messages::list(output, "assistant"))
            .or_else(|| Some(vec![of_ai_sdk?]))
            .unwrap_or_else(|| [flat_answered, self.answered].concat());
        let choices = take(&["gen_ai.request.choice.count"]).and_then(|value| value.as_u64());
        let usage = json!({
            "total_tokens": take(&["gen_ai.usage.total_tokens"]),
            "input_tokens": take(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
            "output_tokens": take(&["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]),
            "cache_read_tokens": take(&[
                "gen_ai.usage.cache_read.input_tokens",
                "gen_ai.usage.cache_read_input_tokens",
                "gen_ai.usage.details.cache_read_tokens",
                "gen_ai.usage.details.cache_read_input_tokens",
                "ai.usage.cachedInputTokens",
            ]),
            "cache_write_tokens": take(&[
                "gen_ai.usage.cache_creation.input_tokens",
                "gen_ai.usage.cache_creation_input_tokens",
                "gen_ai.usage.cache_write_input_tokens",
                "gen_ai.usage.details.cache_write_tokens",
                "gen_ai.usage.details.cache_creation_input_tokens",
                "ai.usage.inputTokenDetails.cacheWriteTokens",
            ]),
        });
        let definitions = take(&["gen_ai.tool.definitions", "ai.prompt.tools"]).map(parsed);
        let tools = definitions.map(|tools| match tools {
            Value::Array(tools) => tools.into_iter().map(parsed).collect(),
            other => other,
        });
        let id = take(&["gen_ai.response.id"]);
        let end = self.end.and_then(|end| i64::try_from(end / 1_000_000).ok());
        let exchange = Exchange {
            id: id.unwrap_or_else(|| json!(&*self.id)),
            model: take(&["gen_ai.request.model"]).unwrap_or_default(),
            answered_by: take(&["gen_ai.response.model"]).unwrap_or_default(),
            tools: tools.unwrap_or_default(),
            end: end.map(Timestamp),
            usage: unless_zero(usage_in(&usage, CachedTokens::Within, source)),
            asked: system.into_iter().chain(asked).collect(),
            answers,
            several: choices > Some(1),
            compaction: self.compaction,
        };
        for known in ["operation.name", "provider.name", "system"] {
            take(&[format!("gen_ai.{known}").as_str()]);
        }
        for key in self.attributes.keys() {
            source.skip(&format!("attribute `{key}`"));
        }
        exchange
    }
}

/// The attributes of a span, an event or a log record.
fn attributes_of(record: &mut Object<'_>) -> Attributes {
    record.items("attributes").into_iter().map(value).filter_map(|pair| entry(&pair)).collect()
}

/// A key, and its value without its type.
fn entry(pair: &Value) -> Option<(String, Value)> {
    Some((pair["key"].as_str()?.to_owned(), any(&pair["value"])))
}

/// A value without its type.
fn any(typed: &Value) -> Value {
    let mut entries = typed.as_object().into_iter().flatten();
    let Some((kind, inner)) = entries.find(|(kind, _)| kind.ends_with("Value")) else {
        return Value::Null;
    };
    let inner_values = inner["values"].as_array().into_iter().flatten();
    match (&**kind, inner) {
        ("arrayValue", _) => inner_values.map(any).collect(),
        ("kvlistValue", _) => Value::Object(inner_values.filter_map(entry).collect()),
        // A number of 64 bits is a text.
        ("intValue", Value::String(text)) => text.parse::<i64>().map_or(Value::Null, Value::from),
        _ => inner.clone(),
    }
}

/// Takes a text out.
fn text(attributes: &mut Attributes, key: &str) -> Text {
    let text = attributes.get(key)?.as_str().filter(|text| !text.is_empty())?.into();
    attributes.remove(key);
    Some(text)
}

/// A time in nanoseconds since 1970, which is a text or a number.
fn nanoseconds(raw: &RawValue) -> Option<i128> {
    raw.get().trim_matches('"').parse().ok().filter(|number| *number > 0)
}
