//! The input and the output of a call, in whatever shape the library gave them to the tool that
//! recorded them.
//!
//! Messages may be those of `OpenAI`'s two APIs, of Anthropic's, or of `LangChain`; alone, in a list
//! or in the request; as JSON, or as a text of JSON. Each is read by the importer of its shape.

use serde_json::{Map, json};

use super::super::openai_chat::{self, Dialect};
use super::super::openai_responses;
use super::super::prelude::*;
use super::super::{conversations::Conversation, langchain};

/// A call as a trace records it.
#[derive(Default)]
pub(in super::super) struct Exchange {
    pub(in super::super) id: Value,
    /// The model that was asked, and the one that answered where that is known.
    pub(in super::super) model: Value,
    pub(in super::super) answered_by: Value,
    pub(in super::super) tools: Value,
    /// When the answer was there.
    pub(in super::super) end: Option<Timestamp>,
    pub(in super::super) usage: Option<Usage>,
    pub(in super::super) asked: Vec<Value>,
    pub(in super::super) answers: Vec<Value>,
}

/// Keys under which an input or an output holds its messages.
const MESSAGES: &str = "generations choices messages message input output prompts prompt response \
    completion text";

/// Keys beside a message that repeat it, or say how it ended.
const BESIDE: &str = "text generation_info finish_reason index logprobs type";

impl Exchange {
    /// Takes the input of the call: a request, its messages, or a text.
    pub(in super::super) fn ask(&mut self, input: Value, source: &mut Source) {
        let mut request = parsed(input.clone());
        if let Some(request) = request.as_object_mut() {
            for key in ["tools", "functions"] {
                self.tools = request.shift_remove(key).unwrap_or(self.tools.take());
            }
            let model = request.shift_remove("model");
            if self.model.is_null() {
                self.model = model.unwrap_or_default();
            }
            for key in ["system", "instructions"] {
                let said = request.shift_remove(key).filter(|it| !it.is_null());
                let said = said.map(|said| json!({"role": "system", "content": said}));
                self.asked.extend(said);
            }
        }
        let messages = messages(request, "user", source);
        self.asked
            .extend(messages.unwrap_or_else(|| as_text(input, "user")));
    }

    /// Takes the output of the call.
    pub(in super::super) fn answer(&mut self, output: Value, source: &mut Source) {
        let messages = messages(parsed(output.clone()), "assistant", source);
        self.answers
            .extend(messages.unwrap_or_else(|| as_text(output, "assistant")));
    }

    /// Reads the request and its answer.
    pub(in super::super) fn read(self, assembler: &mut Assembler) {
        let all = || self.asked.iter().chain(&self.answers);
        if all().any(langchain::is_message) {
            self.read_langchain(assembler);
        } else {
            let is_items = all().any(is_item);
            self.read_openai(is_items, assembler);
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
            let asked = self.asked.into_iter().map(chat_message);
            let choices = self.answers.into_iter().map(chat_message);
            let choices = choices.map(|it| json!({"message": it}));
            (asked.collect(), "choices", choices.collect())
        };
        let request = json!({
            "model": self.model,
            "tools": self.tools,
            "timestamp": self.end,
            "messages": asked,
            "response": {
                "id": self.id,
                "model": self.answered_by,
                list: answers,
                "usage": usage,
            },
        });
        let text = request.to_string();
        let conversation = conversation_of(&text);
        if is_items {
            openai_responses::Reading::new(assembler).conversation(conversation);
        } else {
            openai_chat::read(conversation, Dialect::Api, assembler);
        }
    }

    fn read_langchain(self, assembler: &mut Assembler) {
        let usage = self.billed();
        let mut answers = self.answers;
        for answer in &mut answers {
            let is_constructor = answer["kwargs"].is_object();
            let fields = match (is_constructor, answer["data"].is_object()) {
                (true, _) => &mut answer["kwargs"],
                (false, true) => &mut answer["data"],
                (false, false) => answer,
            };
            if let Some(fields) = fields.as_object_mut() {
                let is_billed = fields.get("usage_metadata").is_some_and(Value::is_object);
                if !is_billed && !usage.is_null() {
                    fields.insert("usage_metadata".to_owned(), usage.clone());
                }
                fields.insert("timestamp".to_owned(), json!(self.end));
                fields.entry("id").or_insert_with(|| self.id.clone());
            }
        }
        let messages = self.asked.iter().chain(&answers).map(langchain_message);
        let messages = Value::Array(messages.collect()).to_string();
        let header = json!({"model": self.model, "tools": self.tools}).to_string();
        let messages: Vec<&RawValue> = serde_json::from_str(&messages).unwrap_or_default();
        let source = std::mem::take(&mut assembler.source);
        *assembler = langchain::read(messages);
        add_counts(&mut assembler.source, source);
        let mut header: Object<'_> = serde_json::from_str(&header).unwrap_or_default();
        header.header(assembler);
    }
}

/// The request in a text, with its messages apart.
fn conversation_of(text: &str) -> Conversation<'_> {
    let mut around: Object<'_> = serde_json::from_str(text).unwrap_or_default();
    let messages = around.items("messages");
    Conversation { around, messages }
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
        Value::Array(items) => {
            let items = items.into_iter().map(|item| {
                let text = item.clone();
                messages(item, role, source).unwrap_or_else(|| as_text(text, role))
            });
            return Some(items.collect::<Vec<_>>().concat());
        }
        Value::Object(object) => object,
        Value::String(_) | Value::Number(_) | Value::Bool(_) => return None,
    };
    let says = ["content", "tool_calls", "parts"].iter();
    let says = says.filter(|key| object.contains_key(**key)).count() > 0;
    let value = Value::Object(object.clone());
    if object.contains_key("role") || langchain::is_message(&value) || is_item(&value) {
        return Some(vec![value]);
    }
    if says {
        object.insert("role".to_owned(), json!(role));
        return Some(vec![object.into()]);
    }
    if object.get("type").is_some_and(Value::is_string) {
        return Some(vec![json!({"role": role, "content": [object]})]);
    }
    let mut keys = MESSAGES.split_whitespace();
    let inner = keys.find_map(|key| object.shift_remove(key).filter(|it| !it.is_null()))?;
    for key in object.keys().filter(|key| !is_one_of(BESIDE, key)) {
        source.skip(&format!("key `{key}`"));
    }
    let text = inner.clone();
    Some(messages(inner, role, source).unwrap_or_else(|| as_text(text, role)))
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
        || parts.any(|it| matches!(it["type"].as_str(), Some("input_text" | "output_text")))
}

/// A message as OpenAI's chat API has it.
pub(in super::super) fn chat_message(message: Value) -> Value {
    let Value::Object(mut message) = message else {
        return message;
    };
    let role = match message.get("role").and_then(Value::as_str) {
        Some("model" | "ai") => Some("assistant"),
        Some("human") => Some("user"),
        _ => None,
    };
    if let Some(role) = role {
        message.insert("role".to_owned(), json!(role));
    }
    // The call is billed where the trace says so.
    for known in ["finish_reason", "stop_reason", "stop_sequence", "usage"] {
        message.shift_remove(known);
    }
    if message.get("role").is_some_and(|role| role == "tool") {
        let id = message.shift_remove("id");
        if let Some(id) = id.filter(|_| !message.contains_key("tool_call_id")) {
            message.insert("tool_call_id".to_owned(), id);
        }
        let told = message.get_mut("content");
        let told = told.filter(|it| it.is_object() || is_list_of_others(it));
        if let Some(told) = told {
            *told = json!(told.to_string());
        }
    }
    let calls = message.get("tool_calls").is_some_and(Value::is_array);
    let beside = message
        .get("additional_kwargs")
        .map(|it| it["tool_calls"].clone());
    if let Some(beside) = beside.filter(|it| !calls && it.is_array()) {
        message.insert("tool_calls".to_owned(), beside);
    }
    let said = message.get("content").and_then(Value::as_array);
    let said = said.into_iter().flatten().map(|part| &part["id"]);
    let said: BTreeSet<String> = said
        .filter_map(|id| Some(id.as_str()?.to_owned()))
        .collect();
    if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
        // A call that stands in the content too is the same.
        calls.retain(|call| call["id"].as_str().is_none_or(|id| !said.contains(id)));
        calls.iter_mut().for_each(as_function);
    }
    message.into()
}

fn is_list_of_others(value: &Value) -> bool {
    let mut items = value.as_array().into_iter().flatten();
    items.any(|it| !it.is_string() && !it["type"].is_string())
}

/// A call with its name and its arguments as a text in `function`.
fn as_function(call: &mut Value) {
    let flat = call["name"].is_string();
    let arguments = ["args", "arguments"].iter().find_map(|key| call.get(*key));
    let arguments = if flat {
        arguments
    } else {
        call["function"].get("arguments")
    };
    let arguments = match arguments {
        Some(Value::String(_)) if !flat => return,
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => return,
    };
    if flat {
        *call = json!({"id": call["id"], "function": {"name": call["name"]}});
    }
    call["function"]["arguments"] = json!(arguments);
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
