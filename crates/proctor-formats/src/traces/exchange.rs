//! The input and the output of a call, in whatever shape the library gave them to the tool that
//! recorded them.
//!
//! Messages may be those of `OpenAI`'s two APIs, of Anthropic's, of Gemini's, of `OpenTelemetry`, of
//! the AI SDK, or of `LangChain`; alone, in a list or in the request; as JSON, or as a text of JSON.
//! Each is read by the importer of its shape, or of the one that [`chat`] gives it.

use super::super::request::read_by;
use super::super::requests::ToldCompaction;
use super::super::{conversations::Conversation, langchain};
use super::chat::{self, first};
use crate::prelude::*;

/// A call as a trace records it.
#[derive(Default)]
pub(in super::super) struct Exchange {
    pub(in super::super) id: Value,
    /// The model that was asked, and the one that answered where that is known.
    pub(in super::super) model: Value,
    pub(in super::super) answered_by: Value,
    pub(in super::super) tools: Value,
    /// When the answer was there.
    pub(in super::super) end: When,
    pub(in super::super) usage: Option<Usage>,
    pub(in super::super) asked: Vec<Value>,
    pub(in super::super) answers: Vec<Value>,
    /// Whether several answers were asked for.
    pub(in super::super) several: bool,
    /// The compaction before it, where the trace says that there was one.
    pub(in super::super) compaction: Option<ToldCompaction>,
}

/// Keys under which an input or an output holds its messages.
const MESSAGES: &str = "generations choices candidates messages contents message content input \
    output prompts prompt response completion text";

/// Keys beside a message that repeat it, or say how it ended.
const BESIDE: &str = "text generation_info finish_reason finishReason index logprobs type";

impl Exchange {
    /// Takes the input of the call: a request, its messages, or a text.
    pub(in super::super) fn ask(&mut self, input: Value, source: &mut Source) {
        let mut request = parsed(input.clone());
        if let Some(request) = request.as_object_mut() {
            // Gemini's libraries put everything but the contents there.
            if request.contains_key("contents")
                && let Some(Value::Object(config)) = request.shift_remove("config")
            {
                request.extend(config);
            }
            for key in ["tools", "functions"] {
                let tools = request.shift_remove(key).map(declared);
                self.tools = tools.unwrap_or(self.tools.take());
            }
            let model = request.shift_remove("model");
            if self.model.is_null() {
                self.model = model.unwrap_or_default();
            }
            for key in "system instructions systemInstruction system_instruction".split(' ') {
                let said = request.shift_remove(key).filter(|value| !value.is_null());
                self.asked.extend(said.map(|said| match said.get("parts") {
                    Some(parts) => json!({"role": "system", "parts": parts}),
                    None => json!({"role": "system", "content": said}),
                }));
            }
        }
        self.asked
            .extend(messages(request, "user", source).unwrap_or_else(|| as_text(input, "user")));
    }

    /// Takes the output of the call.
    pub(in super::super) fn answer(&mut self, output: Value, source: &mut Source) {
        let answer = parsed(output.clone());
        self.several |= answer.get("candidates").is_some();
        let found = messages(answer, "assistant", source);
        self.answers.extend(found.unwrap_or_else(|| as_text(output, "assistant")));
    }

    /// Reads the request and its answer.
    pub(in super::super) fn read(self, assembler: &mut Assembler) {
        let mut all = self.asked.iter().chain(&self.answers);
        if all.clone().any(langchain::is_message) {
            self.read_langchain(assembler);
        } else {
            let items = all.any(is_item);
            self.read_openai(items, assembler);
        }
    }

    /// The usage, in the shape that all readers know.
    fn billed(&self) -> Value {
        self.usage.map_or(Value::Null, |usage| {
            let written = usage.cache_write_5m + usage.cache_write_1h;
            json!({
                "input_tokens": usage.prompt().0,
                "output_tokens": usage.output.0,
                "input_tokens_details": {
                    "cached_tokens": usage.cache_read.0,
                    "cache_write_tokens": written.0,
                },
            })
        })
    }

    /// Reads a request of OpenAI's, in items or in messages.
    fn read_openai(self, is_items: bool, assembler: &mut Assembler) {
        let usage = self.billed();
        let (asked, list, answers) = if is_items {
            (self.asked, "output", self.answers)
        } else {
            let asked = self.asked.into_iter().flat_map(chat::messages);
            let answers = chat::choices(self.answers, self.several).into_iter();
            // A tool of the provider's may have answered in between.
            let (told, answers): (Vec<Value>, Vec<Value>) =
                answers.flat_map(chat::messages).partition(|value: &Value| value["role"] == "tool");
            let choices = answers.into_iter().map(|answer| json!({"message": answer}));
            (asked.chain(told).collect(), "choices", choices.collect())
        };
        let request = json!({
            "model": self.model, "tools": self.tools, "timestamp": self.end, "messages": asked,
            "response": {"id": self.id, "model": self.answered_by, list: answers, "usage": usage},
        });
        let text = request.to_string();
        let mut around: Object<'_> = serde_json::from_str(&text).unwrap_or_default();
        let conversation = Conversation { messages: around.items("messages"), around };
        let api = if is_items { Api::Responses } else { Api::ChatCompletions };
        read_by(api, conversation, assembler);
    }

    fn read_langchain(self, assembler: &mut Assembler) {
        let usage = self.billed();
        let mut answers = self.answers;
        for answer in &mut answers {
            let fields = match (answer["kwargs"].is_object(), answer["data"].is_object()) {
                (true, _) => &mut answer["kwargs"],
                (false, true) => &mut answer["data"],
                (false, false) => answer,
            };
            if let Some(fields) = fields.as_object_mut() {
                if !fields.get("usage_metadata").is_some_and(Value::is_object) && !usage.is_null() {
                    fields.insert("usage_metadata".to_owned(), usage.clone());
                }
                fields.insert("timestamp".to_owned(), json!(self.end));
                fields.entry("id").or_insert_with(|| self.id.clone());
            }
        }
        let messages = self.asked.iter().chain(&answers).map(langchain_message);
        let messages = Value::Array(messages.collect()).to_string();
        let header = json!({"model": self.model, "tools": self.tools}).to_string();
        langchain::read(serde_json::from_str(&messages).unwrap_or_default(), assembler);
        let mut header: Object<'_> = serde_json::from_str(&header).unwrap_or_default();
        header.header(assembler);
    }
}

/// The object or list that a text holds as JSON; any other value as it is.
pub(in super::super) fn parsed(value: Value) -> Value {
    match &value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or(value)
        }
        _ => value,
    }
}

/// The messages in a value, of which those without a role are of `role`; none if it is something
/// else.
fn messages(value: Value, role: &str, source: &mut Source) -> Option<Vec<Value>> {
    let mut object = match value {
        Value::Null => return Some(Vec::new()),
        // Parts of one message.
        Value::Array(items) if !items.is_empty() && items.iter().all(is_loose_part) => {
            return Some(vec![json!({"role": role, "content": items})]);
        }
        Value::Array(items) => {
            let listed = items.into_iter().map(|item| {
                let text = item.clone();
                messages(item, role, source).unwrap_or_else(|| as_text(text, role))
            });
            return Some(listed.collect::<Vec<_>>().concat());
        }
        Value::Object(object) => object,
        Value::String(_) | Value::Number(_) | Value::Bool(_) => return None,
    };
    let mut keys = ["content", "tool_calls", "parts"].iter();
    let says = keys.any(|key| object.get(*key).is_some_and(|value| !value.is_object()));
    let value = Value::Object(object.clone());
    if object.contains_key("role") || langchain::is_message(&value) || is_item(&value) {
        return Some(vec![value]);
    }
    if says {
        object.insert("role".to_owned(), json!(role));
        return Some(vec![object.into()]);
    }
    if is_loose_part(&value) {
        return Some(vec![json!({"role": role, "content": [value]})]);
    }
    let mut keys = MESSAGES.split_whitespace();
    let inner = keys.find_map(|key| object.shift_remove(key).filter(|value| !value.is_null()))?;
    for key in object.keys().filter(|key| !is_one_of(BESIDE, key)) {
        source.skip(&format!("key `{key}`"));
    }
    let text = inner.clone();
    Some(messages(inner, role, source).unwrap_or_else(|| as_text(text, role)))
}

/// Whether it is a part without its message.
fn is_loose_part(value: &Value) -> bool {
    let message = value.get("role").is_some() || langchain::is_message(value) || is_item(value);
    !message && chat::is_named(value)
}

/// The tools of a request; Gemini lists the functions of each.
fn declared(tools: Value) -> Value {
    let Value::Array(tools) = tools else {
        return tools;
    };
    let keys = "functionDeclarations function_declarations";
    let functions = tools.into_iter().flat_map(|tool| match first(&tool, keys) {
        Some(Value::Array(functions)) => functions.clone(),
        _ => vec![tool],
    });
    functions.collect()
}

/// A message of anything that is none.
fn as_text(value: Value, role: &str) -> Vec<Value> {
    let text = match value {
        Value::Null => return Vec::new(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    vec![json!({"role": role, "content": text})]
}

/// Whether it is an item of the responses API that no other API has.
fn is_item(value: &Value) -> bool {
    let kinds = "function_call function_call_output reasoning custom_tool_call \
                 custom_tool_call_output";
    let kind = value["type"].as_str();
    let mut parts = value["content"].as_array().into_iter().flatten();
    kind.is_some_and(|kind| is_one_of(kinds, kind))
        || parts.any(|part| matches!(part["type"].as_str(), Some("input_text" | "output_text")))
}

/// A message as `LangChain` has it.
fn langchain_message(message: &Value) -> Value {
    let kind = match message["role"].as_str() {
        Some("user") => "human",
        Some("assistant") => "ai",
        Some(other) => other,
        None => return message.clone(),
    };
    let mut message: Map<String, Value> = message.as_object().cloned().unwrap_or_default();
    message.shift_remove("role");
    message.insert("type".to_owned(), json!(kind));
    message.into()
}
