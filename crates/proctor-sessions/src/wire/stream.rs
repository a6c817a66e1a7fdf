//! Puts a streamed answer together as the API would have given it whole.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json_bytes::mend_surrogates;

pub use super::api::Api;

mod gemini;

/// Why an answer is not whole.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamProblem {
    /// It ended before its last event.
    BrokeOff,
    /// A part of it is not JSON.
    Unreadable,
    /// The API reported an error in this event.
    Reported(Value),
}

impl StreamProblem {
    /// The problem in words.
    pub fn message(&self) -> &'static str {
        match self {
            Self::BrokeOff => "the answer broke off",
            Self::Unreadable => "the answer cannot be read",
            Self::Reported(_) => "the API reported an error in the stream",
        }
    }
}

/// An answer as it comes in.
#[derive(Debug)]
pub struct Assembly {
    api: Api,
    is_stream: bool,
    /// Bytes of which no event was made yet; of an answer that is not a stream, all of them.
    bytes: Vec<u8>,
    /// The answer so far.
    whole: Value,
    /// Items of a response, each as it was done.
    items: Vec<Value>,
    is_complete: bool,
    /// The first problem.
    problem: Option<StreamProblem>,
}

impl Assembly {
    /// An answer of that API, streamed as server-sent events or not.
    pub fn new(api: Api, is_stream: bool) -> Self {
        Self {
            api,
            is_stream,
            bytes: Vec::new(),
            whole: Value::Null,
            items: Vec::new(),
            is_complete: false,
            problem: None,
        }
    }

    /// Takes the next bytes, which may be cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.is_stream {
            return self.bytes.extend_from_slice(bytes);
        }
        let mut lines = bytes.split(|byte| *byte == b'\n');
        self.bytes.extend_from_slice(lines.next().unwrap_or_default());
        for next in lines {
            let line = std::mem::replace(&mut self.bytes, next.to_vec());
            self.line(&line);
        }
    }

    /// Whether an event could not be read or reported an error.
    pub fn has_failed(&self) -> bool {
        self.problem.is_some()
    }

    /// The text of a streamed completion, as far as it came.
    pub fn completion_text(&self) -> Option<&str> {
        self.whole["choices"][0]["message"]["content"].as_str()
    }

    /// The whole answer; an error where it did not come to its end.
    pub fn finish(self) -> Result<Box<RawValue>, StreamProblem> {
        let (whole, problem) = self.so_far();
        problem.map_or_else(|| whole.ok_or(StreamProblem::Unreadable), Err)
    }

    /// As much of the answer as came, and its first problem.
    pub fn so_far(mut self) -> (Option<Box<RawValue>>, Option<StreamProblem>) {
        let rest = std::mem::take(&mut self.bytes);
        if !self.is_stream {
            let whole = match self.api {
                Api::GenerateContent => gemini::whole(&rest),
                _ => serde_json::from_slice(&rest).ok(),
            };
            if whole.is_none() && is_stream(&rest) {
                let mut stream = Self::new(self.api, true);
                stream.push(&rest);
                return stream.so_far();
            }
            let problem = whole.is_none().then_some(StreamProblem::Unreadable);
            return (whole, problem);
        }
        self.line(&rest);
        if !self.is_complete && !self.has_ended() {
            self.problem.get_or_insert(StreamProblem::BrokeOff);
        }
        self.put_items();
        parse_inputs(&mut self.whole);
        let whole = serde_json::value::to_raw_value(&self.whole).ok();
        (whole.filter(|raw| raw.get() != "null"), self.problem)
    }

    /// Whether each choice has its reason to stop: some servers leave out the last line of OpenAI's streams.
    fn has_ended(&self) -> bool {
        let mut choices = self.whole["choices"].as_array().into_iter().flatten().peekable();
        self.api == Api::ChatCompletions
            && choices.peek().is_some()
            && choices.all(|choice| choice["finish_reason"].is_string())
    }

    /// Adds the items of a response whose last event does not repeat them.
    fn put_items(&mut self) {
        if !self.items.is_empty() && self.whole["output"].as_array().is_none_or(Vec::is_empty) {
            if !self.whole.is_object() {
                self.whole = json!({"object": "response"});
            }
            self.whole["output"] = std::mem::take(&mut self.items).into();
        }
    }

    /// Reads one line of the stream. Each event of these APIs has its data in one line, which names
    /// its type.
    fn line(&mut self, line: &[u8]) {
        let data = line.strip_prefix(b"data:").unwrap_or_default().trim_ascii();
        if data.is_empty() {
            return;
        }
        if data == b"[DONE]" {
            self.is_complete = true;
            return;
        }
        let parsed = serde_json::from_slice::<Value>(data).or_else(|_| {
            // A character may be cut between two events.
            let mut mended = String::from_utf8_lossy(data).into_owned().into_bytes();
            mend_surrogates(&mut mended);
            serde_json::from_slice(&mended)
        });
        let event = parsed.unwrap_or_default();
        if !event.is_object() {
            self.problem.get_or_insert(StreamProblem::Unreadable);
            return;
        }
        let failed = event["type"] == "error" || event["type"] == "response.failed";
        if failed || event.get("error").is_some_and(|error| !error.is_null()) {
            self.problem.get_or_insert(StreamProblem::Reported(event));
            return;
        }
        match self.api {
            Api::Messages => self.message_event(event),
            Api::ChatCompletions => self.chunk(event),
            Api::Responses => self.response_event(event),
            Api::GenerateContent => self.is_complete |= gemini::add(&mut self.whole, event),
        }
    }

    fn message_event(&mut self, mut event: Value) {
        match event["type"].as_str() {
            Some("message_start") if event["message"].is_object() => {
                self.whole = event["message"].take();
            }
            Some("content_block_start") => {
                let block = event["content_block"].take();
                if let Some(slot) = slot(&mut self.whole["content"], &event["index"]) {
                    *slot = block;
                }
            }
            Some("content_block_delta") => {
                if let Some(block) = slot(&mut self.whole["content"], &event["index"]) {
                    // A compaction's summary comes as `content`.
                    for key in ["text", "thinking", "signature", PARTIAL, "content"] {
                        if let Some(more) = event["delta"][key].as_str() {
                            append(block, key, more);
                        }
                    }
                    if let Some(citation) = event["delta"].get("citation")
                        && block.is_object()
                        && let Some(slot) = end(&mut block["citations"])
                    {
                        *slot = citation.clone();
                    }
                }
            }
            Some("message_delta") => {
                merge(&mut self.whole, event["delta"].take());
                merge(&mut self.whole["usage"], event["usage"].take());
                if event["context_management"].is_object() {
                    self.whole["context_management"] = event["context_management"].take();
                }
            }
            Some("message_stop") => self.is_complete = true,
            _ => {}
        }
    }

    fn chunk(&mut self, mut chunk: Value) {
        if self.whole.is_null() {
            self.whole = json!({
                "id": null,
                "object": "chat.completion",
                "created": null,
                "model": null,
                "choices": [],
            });
        }
        // Gateways begin with a chunk of their own, whose id and model are empty.
        for key in ["id", "created", "model"] {
            let known = &mut self.whole[key];
            if (known.is_null() || *known == "" || *known == 0) && !chunk[key].is_null() {
                *known = chunk[key].take();
            }
        }
        if chunk["usage"].is_object() {
            self.whole["usage"] = chunk["usage"].take();
        }
        let choices = chunk["choices"].as_array_mut().into_iter().flatten();
        for choice in choices.filter(|choice| choice.is_object()) {
            let Some(slot) = slot(&mut self.whole["choices"], &choice["index"]) else {
                continue;
            };
            if slot.is_null() {
                *slot = json!({
                    "index": choice["index"].as_u64().unwrap_or(0),
                    "message": {"role": "assistant", "content": null},
                    "finish_reason": null,
                });
            }
            if !choice["finish_reason"].is_null() {
                slot["finish_reason"] = choice["finish_reason"].take();
            }
            grow(&mut slot["message"], choice["delta"].take());
            // Some servers put the usage beside the last delta.
            if choice["usage"].is_object() && !self.whole["usage"].is_object() {
                self.whole["usage"] = choice["usage"].take();
            }
        }
    }

    fn response_event(&mut self, mut event: Value) {
        match event["type"].as_str().unwrap_or_default() {
            "response.completed" | "response.incomplete" => {
                self.whole = event["response"].take();
                self.is_complete = true;
            }
            "response.created" if self.whole.is_null() => {
                self.whole = event["response"].take();
            }
            "response.output_item.done" => self.items.push(event["item"].take()),
            _ => {}
        }
    }
}

/// Whether these bytes are a stream of events, whatever their server calls them.
fn is_stream(bytes: &[u8]) -> bool {
    let begun = bytes.trim_ascii_start();
    ["data:", "event:", "id:", ":"].iter().any(|field| begun.starts_with(field.as_bytes()))
}

/// The JSON of a tool's input is collected under this key until it is whole.
const PARTIAL: &str = "partial_json";

/// The API's streams hold no more blocks, choices or calls than this.
const MOST: u64 = 10_000;

/// The place of that index in a list, which is made and filled up as need be. No index is 0.
fn slot<'v>(list: &'v mut Value, index: &Value) -> Option<&'v mut Value> {
    let number = index.as_u64().or(index.is_null().then_some(0));
    let index = usize::try_from(number.filter(|number| *number < MOST)?).ok()?;
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let slots = list.as_array_mut()?;
    while slots.len() <= index {
        slots.push(Value::Null);
    }
    slots.get_mut(index)
}

/// A new place at the end of a list.
fn end(list: &mut Value) -> Option<&mut Value> {
    slot(list, &Value::from(list.as_array().map_or(0, Vec::len)))
}

/// Makes an object of anything else.
fn make_object(value: &mut Value) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
}

/// Appends to a text of an object, which is made as need be.
fn append(object: &mut Value, key: &str, more: &str) {
    make_object(object);
    match &mut object[key] {
        Value::String(text) => text.push_str(more),
        other => *other = Value::from(more),
    }
}

/// Sets the fields of `news`. A counter that is null or lower there stays: the last event repeats
/// totals, and some servers leave out what the first event counted.
fn merge(object: &mut Value, news: Value) {
    let Value::Object(news) = news else { return };
    make_object(object);
    for (key, value) in news {
        if value.is_object() {
            merge(&mut object[key], value);
        } else if !value.is_null() && value.as_u64() >= object[&key].as_u64() {
            object[key] = value;
        }
    }
}

/// Adds a delta of chat completions: texts grow, lists grow by index, everything else is set.
fn grow(object: &mut Value, delta: Value) {
    let Value::Object(delta) = delta else { return };
    make_object(object);
    for (key, value) in delta {
        match value {
            Value::Null => {}
            // Said once, though some servers repeat them, or repeat them empty.
            Value::String(_) if matches!(&*key, "role" | "id" | "type" | "name") => {
                if value != "" || object[&*key].is_null() {
                    object[key] = value;
                }
            }
            Value::String(text) => append(object, &key, &text),
            Value::Array(items) => {
                for mut item in items.into_iter().filter(Value::is_object) {
                    let index = item["index"].take();
                    let place = if index.is_u64() && !is_another(&object[&*key], &index, &item) {
                        slot(&mut object[&*key], &index)
                    } else {
                        end(&mut object[&*key])
                    };
                    let Some(place) = place else { continue };
                    if let Value::Object(fields) = &mut item {
                        fields.remove("index");
                    }
                    grow(place, item);
                }
            }
            Value::Object(_) => grow(&mut object[&*key], value),
            other => object[key] = other,
        }
    }
}

/// Whether a whole call has the index of one that is whole already: some servers give all of a
/// message's calls the same one.
fn is_another(list: &Value, index: &Value, item: &Value) -> bool {
    let Some(known) = list.pointer(&format!("/{index}")) else {
        return false;
    };
    let (own, new) = (text_at(known, "/id"), text_at(item, "/id"));
    let named = !text_at(item, "/function/name").is_empty();
    let begun = !text_at(known, "/function/arguments").is_empty();
    named && begun && !own.is_empty() && !new.is_empty() && own != new
}

/// The text at this JSON pointer; empty if there is none.
fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Parses the inputs of tools, which came as JSON in pieces.
fn parse_inputs(message: &mut Value) {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    for block in blocks.filter_map(Value::as_object_mut) {
        // A tool without arguments comes with an empty piece: its input is that of the block's start.
        if let Some(Value::String(text)) = block.remove(PARTIAL)
            && !text.is_empty()
        {
            let input = serde_json::from_str(&text).unwrap_or(Value::String(text));
            block.insert("input".to_owned(), input);
        }
    }
}

#[cfg(test)]
mod tests;
