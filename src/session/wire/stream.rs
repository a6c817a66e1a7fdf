//! Puts a streamed answer together as the API would have given it whole.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// An API whose calls are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's chat completions.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
}

impl Api {
    /// The API that a request to this path speaks to, if its calls are kept.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        [
            ("/messages", Self::Messages),
            ("/chat/completions", Self::ChatCompletions),
            ("/responses", Self::Responses),
        ]
        .into_iter()
        .find_map(|(end, api)| path.ends_with(end).then_some(api))
    }
}

/// An answer as it comes in.
#[derive(Debug)]
pub struct Assembly {
    api: Api,
    is_stream: bool,
    /// Bytes that no event was made of yet; of an answer that is no stream, all of them.
    bytes: Vec<u8>,
    /// What was put together so far.
    whole: Value,
    /// Items of a response, each as it was done.
    items: Vec<Value>,
    is_complete: bool,
    /// What is wrong with it.
    problem: Option<&'static str>,
}

const BROKE_OFF: &str = "the answer broke off";
const UNREADABLE: &str = "the answer cannot be read";

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

    /// Takes the next bytes; they may be cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if !self.is_stream {
            return;
        }
        let mut start = 0;
        while let Some(length) = self.bytes[start..].iter().position(|byte| *byte == b'\n') {
            let line = self.bytes[start..start + length].to_vec();
            start += length + 1;
            self.line(line.strip_suffix(b"\r").unwrap_or(&line));
        }
        self.bytes.drain(..start);
    }

    /// The whole answer; an error where it did not come to its end.
    pub fn finish(self) -> Result<Box<RawValue>, &'static str> {
        let (whole, problem) = self.so_far();
        problem.map_or_else(|| whole.ok_or(UNREADABLE), Err)
    }

    /// What there is of the answer, and what is wrong with it.
    pub fn so_far(mut self) -> (Option<Box<RawValue>>, Option<&'static str>) {
        if !self.is_stream {
            let whole = serde_json::from_slice(&self.bytes).ok();
            let problem = whole.is_none().then_some(UNREADABLE);
            return (whole, problem);
        }
        if !self.bytes.is_empty() {
            let line = std::mem::take(&mut self.bytes);
            self.line(&line);
        }
        if !self.is_complete {
            self.problem.get_or_insert(BROKE_OFF);
        }
        self.put_items();
        parse_inputs(&mut self.whole);
        let whole = (!self.whole.is_null()).then_some(&self.whole);
        let whole = whole.and_then(|whole| serde_json::value::to_raw_value(whole).ok());
        (whole, self.problem)
    }

    /// The items of a response whose last event does not repeat them.
    fn put_items(&mut self) {
        let is_empty = |output: &Value| output.as_array().is_none_or(Vec::is_empty);
        if !self.items.is_empty() && is_empty(&self.whole["output"]) {
            if !self.whole.is_object() {
                self.whole = json!({"object": "response"});
            }
            self.whole["output"] = std::mem::take(&mut self.items).into();
        }
    }

    /// One line of the stream. Each event of these APIs has its data in one line, which names its
    /// type.
    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.strip_prefix(b"data:") else {
            return;
        };
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.is_complete = true;
            return;
        }
        let event = serde_json::from_slice::<Value>(data);
        let Some(event) = event.ok().filter(Value::is_object) else {
            self.problem.get_or_insert(UNREADABLE);
            return;
        };
        if event["type"] == "error" || event.get("error").is_some_and(|error| !error.is_null()) {
            self.problem
                .get_or_insert("the API reported an error in the stream");
            return;
        }
        match self.api {
            Api::Messages => self.message_event(event),
            Api::ChatCompletions => self.chunk(event),
            Api::Responses => self.response_event(event),
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
                let delta = event["delta"].take();
                if let Some(block) = slot(&mut self.whole["content"], &event["index"]) {
                    for (from, to) in [
                        ("text", "text"),
                        ("thinking", "thinking"),
                        ("signature", "signature"),
                        ("partial_json", PARTIAL),
                        // A compaction's summary.
                        ("content", "content"),
                    ] {
                        if let Some(more) = delta[from].as_str() {
                            append(block, to, more);
                        }
                    }
                    if let Some(citation) = delta.get("citation")
                        && block.is_object()
                        && let Some(slot) = end(&mut block["citations"])
                    {
                        *slot = citation.clone();
                    }
                }
            }
            Some("message_delta") => {
                merge(&mut self.whole, event["delta"].take());
                // Counters that the end does not tell stand as they were.
                let mut usage = event["usage"].take();
                if let Some(usage) = usage.as_object_mut() {
                    usage.retain(|_, count| !count.is_null());
                }
                merge(&mut self.whole["usage"], usage);
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
                "id": chunk["id"].take(),
                "object": "chat.completion",
                "created": chunk["created"].take(),
                "model": chunk["model"].take(),
                "choices": [],
            });
        }
        // Gateways begin with a chunk of their own, which names nothing.
        for key in ["id", "created", "model"] {
            let is_unsaid =
                |value: &Value| matches!(value, Value::Null) || value == "" || *value == 0;
            if is_unsaid(&self.whole[key]) && !is_unsaid(&chunk[key]) {
                self.whole[key] = chunk[key].take();
            }
        }
        if chunk["usage"].is_object() {
            self.whole["usage"] = chunk["usage"].take();
        }
        let Some(choices) = chunk["choices"].as_array_mut() else {
            return;
        };
        for choice in choices {
            let Some(slot) = slot(&mut self.whole["choices"], &choice["index"]) else {
                continue;
            };
            if slot.is_null() {
                *slot = json!({
                    "index": choice["index"],
                    "message": {"role": "assistant", "content": null},
                    "finish_reason": null,
                });
            }
            if !choice["finish_reason"].is_null() {
                slot["finish_reason"] = choice["finish_reason"].take();
            }
            let usage = choice["usage"].take();
            grow(&mut slot["message"], choice["delta"].take());
            // Some say beside the last delta what the call cost.
            if usage.is_object() && !self.whole["usage"].is_object() {
                self.whole["usage"] = usage;
            }
        }
    }

    fn response_event(&mut self, mut event: Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        match kind {
            "response.completed" | "response.incomplete" => {
                self.whole = event["response"].take();
                self.is_complete = true;
            }
            "response.created" if self.whole.is_null() => {
                self.whole = event["response"].take();
            }
            "response.output_item.done" => self.items.push(event["item"].take()),
            "response.failed" => {
                self.problem
                    .get_or_insert("the API reported an error in the stream");
            }
            _ => {}
        }
    }
}

/// Where the JSON of a tool's input is collected until it is whole.
const PARTIAL: &str = "\u{1}partial_json";

/// The API's streams hold no more blocks, choices or calls than this.
const MOST: u64 = 10_000;

/// The place of that index in a list, which is made and filled up as need be.
fn slot<'v>(list: &'v mut Value, index: &Value) -> Option<&'v mut Value> {
    let index = index.as_u64().filter(|index| *index < MOST)?;
    let index = usize::try_from(index).ok()?;
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
    let length = list.as_array().map_or(0, Vec::len);
    slot(list, &Value::from(length))
}

/// Appends to a text of an object, which is made as need be.
fn append(object: &mut Value, key: &str, more: &str) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match &mut object[key] {
        Value::String(text) => text.push_str(more),
        other => *other = Value::from(more),
    }
}

/// Sets what `news` says.
fn merge(object: &mut Value, news: Value) {
    let Value::Object(news) = news else { return };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    for (key, value) in news {
        object[key] = value;
    }
}

/// Adds a delta of chat completions: texts grow, lists grow by index, everything else is set.
fn grow(object: &mut Value, delta: Value) {
    let Value::Object(delta) = delta else { return };
    for (key, value) in delta {
        match value {
            Value::Null => {}
            // Said once, though some servers repeat them, or repeat them empty.
            Value::String(text) if matches!(&*key, "role" | "id" | "type" | "name") => {
                if !text.is_empty() || object[&*key].is_null() {
                    object[key] = Value::String(text);
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
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    if let Value::Object(fields) = &mut item {
                        fields.remove("index");
                    }
                    grow(place, item);
                }
            }
            Value::Object(_) => {
                if !object[&*key].is_object() {
                    object[&*key] = Value::Object(Map::new());
                }
                grow(&mut object[&*key], value);
            }
            other => object[key] = other,
        }
    }
}

/// Whether a whole call has the index of one that is whole already: some servers give all of a
/// message's calls the same one.
fn is_another(list: &Value, index: &Value, item: &Value) -> bool {
    let at = index.as_u64().and_then(|index| usize::try_from(index).ok());
    let Some(known) = at.and_then(|at| list.get(at)) else {
        return false;
    };
    let text = |call: &Value, at: &str| {
        let text = call.pointer(at).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (own, new) = (text(known, "/id"), text(item, "/id"));
    let is_named = !text(item, "/function/name").is_empty();
    let is_begun = !text(known, "/function/arguments").is_empty();
    is_named && is_begun && !own.is_empty() && !new.is_empty() && own != new
}

/// Makes the inputs of tools out of the JSON that came in pieces.
fn parse_inputs(message: &mut Value) {
    let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) else {
        return;
    };
    for block in blocks {
        let Some(block) = block.as_object_mut() else {
            continue;
        };
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
    fn whole(api: Api, stream: &str) -> Result<Value, &'static str> {
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
        assert_eq!(whole(Api::Messages, &cut), Err(BROKE_OFF));
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
        assert_eq!(whole(Api::ChatCompletions, stream), Ok(expected));
    }

    #[test]
    fn what_gateways_do_to_a_stream_changes_nothing() {
        let stream = [
            r#"{"id":"","created":0,"model":"","choices":[],"prompt_filter_results":[]}"#,
            r#"{"id":"c1","created":5,"model":"some-model","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"read","arguments":"{\"a\":"}}]}}]}"#,
            r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"","tool_calls":[{"index":0,"id":"","type":"","function":{"name":"","arguments":"1}"}}]}}]}"#,
            // Another call under the same index.
            r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t2","type":"function","function":{"name":"grep","arguments":"{}"}}]}}]}"#,
            r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls","usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
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
        let stream = r#"data: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":3}}
data: {"type":"message_stop"}
"#;
        let usage = whole(Api::Messages, stream).map(|whole| whole["usage"].clone());
        assert_eq!(usage, Ok(json!({"input_tokens": 9, "output_tokens": 3})));
    }

    #[test]
    fn a_streamed_response_is_in_its_last_event() {
        let stream = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\
            data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[1]}}\n";
        let expected = json!({"id": "r", "output": [1]});
        assert_eq!(whole(Api::Responses, stream), Ok(expected));
        let items = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\
            data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":2}\n";
        assert_eq!(whole(Api::Responses, items), Err(BROKE_OFF));
        let mut broken = Assembly::new(Api::Responses, true);
        broken.push(items.as_bytes());
        let (so_far, problem) = broken.so_far();
        let so_far = so_far.map(|raw| raw.get().to_owned());
        assert_eq!(so_far.as_deref(), Some(r#"{"id":"r","output":[2]}"#));
        assert_eq!(problem, Some(BROKE_OFF));
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
        for stream in [
            odd,
            "",
            "data: {\n",
            "data: []\ndata: [DONE]\n",
            far,
            "nonsense\n\n",
        ] {
            for api in [Api::Messages, Api::ChatCompletions, Api::Responses] {
                drop(whole(api, stream));
            }
        }
    }

    #[test]
    fn only_calls_of_models_are_kept() {
        for (path, api) in [
            ("/v1/messages", Some(Api::Messages)),
            ("/v1/messages/", Some(Api::Messages)),
            ("/v1/messages/count_tokens", None),
            ("/openai/v1/chat/completions", Some(Api::ChatCompletions)),
            ("/v1/responses", Some(Api::Responses)),
            ("/v1/models", None),
        ] {
            assert_eq!(Api::of_path(path), api, "{path}");
        }
    }
}
