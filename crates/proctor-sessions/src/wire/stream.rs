//! Puts a streamed answer together as the API would have given it whole.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json_bytes::mend_surrogates;

pub use super::api::Api;

mod gemini;

/// Why an answer is not whole.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// It ended before its last event.
    BrokeOff,
    /// A part of it is not JSON.
    Unreadable,
    /// The API reported an error in this event.
    Reported(Value),
}

impl Problem {
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
    problem: Option<Problem>,
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
        self.bytes
            .extend_from_slice(lines.next().unwrap_or_default());
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
    pub fn finish(self) -> Result<Box<RawValue>, Problem> {
        let (whole, problem) = self.so_far();
        problem.map_or_else(|| whole.ok_or(Problem::Unreadable), Err)
    }

    /// As much of the answer as came, and its first problem.
    pub fn so_far(mut self) -> (Option<Box<RawValue>>, Option<Problem>) {
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
            let problem = whole.is_none().then_some(Problem::Unreadable);
            return (whole, problem);
        }
        self.line(&rest);
        if !self.is_complete && !self.has_ended() {
            self.problem.get_or_insert(Problem::BrokeOff);
        }
        self.put_items();
        parse_inputs(&mut self.whole);
        let whole = serde_json::value::to_raw_value(&self.whole).ok();
        (whole.filter(|raw| raw.get() != "null"), self.problem)
    }

    /// Whether each choice has its reason to stop: some servers leave out the last line of OpenAI's streams.
    fn has_ended(&self) -> bool {
        let choices = self.whole["choices"].as_array();
        let mut choices = choices.into_iter().flatten().peekable();
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
        let event = serde_json::from_slice::<Value>(data).or_else(|_| {
            // A character may be cut between two events.
            let mut mended = String::from_utf8_lossy(data).into_owned().into_bytes();
            mend_surrogates(&mut mended);
            serde_json::from_slice(&mended)
        });
        let event = event.unwrap_or_default();
        if !event.is_object() {
            self.problem.get_or_insert(Problem::Unreadable);
            return;
        }
        let is_error = event["type"] == "error" || event["type"] == "response.failed";
        if is_error || event.get("error").is_some_and(|error| !error.is_null()) {
            self.problem.get_or_insert(Problem::Reported(event));
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
    ["data:", "event:", "id:", ":"]
        .iter()
        .any(|field| begun.starts_with(field.as_bytes()))
}

/// The JSON of a tool's input is collected under this key until it is whole.
const PARTIAL: &str = "partial_json";

/// The API's streams hold no more blocks, choices or calls than this.
const MOST: u64 = 10_000;

/// The place of that index in a list, which is made and filled up as need be. No index is 0.
fn slot<'v>(list: &'v mut Value, index: &Value) -> Option<&'v mut Value> {
    let index = index.as_u64().or(index.is_null().then_some(0));
    let index = usize::try_from(index.filter(|index| *index < MOST)?).ok()?;
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let list = list.as_array_mut()?;
    while list.len() <= index {
        list.push(Value::Null);
    }
    list.get_mut(index)
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
    let is_named = !text_at(item, "/function/name").is_empty();
    let is_begun = !text_at(known, "/function/arguments").is_empty();
    is_named && is_begun && !own.is_empty() && !new.is_empty() && own != new
}

/// The text at this JSON pointer; empty if there is none.
fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Parses the inputs of tools, which came as JSON in pieces.
fn parse_inputs(message: &mut Value) {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut);
    let blocks = blocks.into_iter().flatten();
    for block in blocks.filter_map(Value::as_object_mut) {
        if let Some(Value::String(text)) = block.remove(PARTIAL) {
            let input = serde_json::from_str(&text).unwrap_or(Value::String(text));
            block.insert("input".to_owned(), input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the stream in pieces of every size, which must not matter.
    fn whole(api: Api, stream: &str) -> Result<Value, Problem> {
        let feed = |size: usize| {
            let mut assembly = Assembly::new(api, true);
            for piece in stream.as_bytes().chunks(size) {
                assembly.push(piece);
            }
            assembly.finish().map(|raw| raw.get().to_owned())
        };
        let at_once = feed(stream.len().max(1));
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(feed(size), at_once, "pieces of {size} bytes");
        }
        at_once.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Searched again from its start at each piece, this stream would take hours.
    #[test]
    fn a_stream_without_line_feeds_is_searched_once() {
        let mut assembly = Assembly::new(Api::Messages, true);
        for _ in 0..4 << 20 {
            assembly.push(b"x");
        }
        assert_eq!(assembly.bytes.len(), 4 << 20);
    }

    #[test]
    fn a_streamed_message_is_put_together() {
        let stream = r#"event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"some-model","content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
data: {"type":"content_block_stop","index":0}
event: ping
data: {"type":"ping"}
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüß "}}
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich"}}
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a.rs\"}"}}
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":31}}
data: {"type":"message_stop"}
"#;
        let expected = json!({
            "id": "m1", "type": "message", "role": "assistant", "model": "some-model",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "Grüß dich"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.rs"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 31},
        });
        assert_eq!(whole(Api::Messages, stream), Ok(expected));
        let cut = stream.replace("data: {\"type\":\"message_stop\"}\n", "");
        assert_eq!(whole(Api::Messages, &cut), Err(Problem::BrokeOff));
        let failed = format!("{cut}data: {{\"type\":\"error\",\"error\":{{}}}}\n");
        assert!(whole(Api::Messages, &failed).is_err());
    }

    #[test]
    fn a_streamed_completion_is_put_together() {
        let stream = "data: {\"id\":\"c1\",\"created\":5,\"model\":\"some-model\",\"choices\":[{\"index\":0,\
            \"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\r\n\r\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\r\n\r\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
            \"id\":\"t1\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}]}}]}\n\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
            \"function\":{\"arguments\":\"{\\\"a\\\":\"}},{\"index\":1,\"id\":\"t2\",\"type\":\"function\",\
            \"function\":{\"name\":\"grep\",\"arguments\":\"{}\"}}]}}]}\n\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
            \"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
            data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n\
            data: [DONE]\n\n";
        let expected = json!({
            "id": "c1", "object": "chat.completion", "created": 5, "model": "some-model",
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant", "content": "Hi",
                    "tool_calls": [
                        {"id": "t1", "type": "function",
                         "function": {"name": "read", "arguments": "{\"a\":1}"}},
                        {"id": "t2", "type": "function",
                         "function": {"name": "grep", "arguments": "{}"}},
                    ],
                },
                "finish_reason": "tool_calls",
            }],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        });
        assert_eq!(whole(Api::ChatCompletions, stream), Ok(expected.clone()));
        // Some servers leave out the last line.
        let without_end = stream.replace("data: [DONE]\n\n", "");
        assert_eq!(whole(Api::ChatCompletions, &without_end), Ok(expected));
        let cut_character = stream.replace("\"Hi\"", r#""\ud83d""#);
        let answer = whole(Api::ChatCompletions, &cut_character).unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "\u{fffd}");
    }

    #[test]
    fn a_stream_is_one_under_any_content_type() {
        let stream = "\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
            data: {\"type\":\"message_stop\"}\n\n";
        for (text, expected) in [
            (stream, Ok(json!({"id": "m"}))),
            (&stream[..stream.len() - 32], Err(Problem::BrokeOff)),
            ("evening", Err(Problem::Unreadable)),
        ] {
            let mut answer = Assembly::new(Api::Messages, false);
            answer.push(text.as_bytes());
            let whole = answer
                .finish()
                .map(|raw| serde_json::from_str(raw.get()).unwrap());
            assert_eq!(whole, expected, "{text}");
        }
    }

    #[test]
    fn what_gateways_do_to_a_stream_changes_nothing() {
        let stream = [
            r#"{"id":"","created":0,"model":"","choices":[],"prompt_filter_results":[]}"#,
            r#"{"id":"c1","created":5,"model":"some-model","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"read","arguments":"{\"a\":"}}]}}]}"#,
            r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"","tool_calls":[{"index":0,"id":"","type":"","function":{"name":"","arguments":"1}"}}]}}]}"#,
            // Another call under the same index.
            r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t2","type":"function","function":{"name":"grep","arguments":"{}"}}]}}]}"#,
            r#"{"id":"c1","choices":[7,{"delta":{},"finish_reason":"tool_calls","usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
            "[DONE]",
        ];
        let stream: Vec<String> = stream.iter().map(|it| format!("data: {it}\n\n")).collect();
        let expected = json!({
            "id": "c1", "object": "chat.completion", "created": 5, "model": "some-model",
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant", "content": null,
                    "tool_calls": [
                        {"id": "t1", "type": "function",
                         "function": {"name": "read", "arguments": "{\"a\":1}"}},
                        {"id": "t2", "type": "function",
                         "function": {"name": "grep", "arguments": "{}"}},
                    ],
                },
                "finish_reason": "tool_calls",
            }],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        });
        assert_eq!(whole(Api::ChatCompletions, &stream.concat()), Ok(expected));
        let stream = r#"data: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"cache_read_input_tokens":0,"output_tokens":3}}
data: {"type":"message_stop"}
"#;
        let usage = whole(Api::Messages, stream).map(|whole| whole["usage"].clone());
        let expected = json!({"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 3});
        assert_eq!(usage, Ok(expected));
    }

    #[test]
    fn a_streamed_response_is_in_its_last_event() {
        let stream = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\
            data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[1]}}\n";
        let expected = json!({"id": "r", "output": [1]});
        assert_eq!(whole(Api::Responses, stream), Ok(expected));
        let items = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\
            data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":2}\n";
        assert_eq!(whole(Api::Responses, items), Err(Problem::BrokeOff));
        let mut broken = Assembly::new(Api::Responses, true);
        broken.push(items.as_bytes());
        let (so_far, problem) = broken.so_far();
        let so_far = so_far.map(|raw| raw.get().to_owned());
        assert_eq!(so_far.as_deref(), Some(r#"{"id":"r","output":[2]}"#));
        assert_eq!(problem, Some(Problem::BrokeOff));
        let done = format!(
            "{items}data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\",\"output\":[]}}}}\n"
        );
        let expected = json!({"id": "r", "output": [2]});
        assert_eq!(whole(Api::Responses, &done), Ok(expected));
        let failed = "data: {\"type\":\"response.failed\",\"response\":{}}\n";
        assert!(whole(Api::Responses, failed).is_err());
    }

    #[test]
    fn hostile_streams_are_errors() {
        let odd = "data: {\"type\":\"message_start\",\"message\":[]}\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"citation\":1,\"text\":2}}\n\
            data: {\"choices\":[7,{\"index\":0,\"delta\":{\"tool_calls\":[\"x\",[]],\"content\":[3]}}]}\n\
            data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"tool_calls\":\"b\"}}]}\n";
        let far =
            "data: {\"type\":\"content_block_start\",\"index\":99999999999,\"content_block\":{}}\n";
        let torn = ["", "data: {\n", "data: []\ndata: [DONE]\n", "nonsense\n\n"];
        for stream in torn.into_iter().chain([odd, far]) {
            for api in Api::ALL {
                drop(whole(api, stream));
            }
        }
    }
}
