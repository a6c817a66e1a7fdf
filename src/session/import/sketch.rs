//! Tells from a file's first bytes whether it is a log of API calls, and of whose API.
//!
//! The bytes may be cut anywhere, and the layout may be anything: what is there is closed where it
//! was cut and looked at as JSON. Other products keep messages in similar shapes; the keys that
//! only they have are listed here, so that their files are left to their own importers.

use serde_json::{Map, Value};

use super::bodies;
use super::head::Head;

/// Whose API a conversation was held with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// Anthropic's messages API.
    Anthropic,
    /// OpenAI's chat completions API, or one that speaks its language. Also where nothing tells:
    /// plain texts have the same shape in both.
    OpenAiChat,
}

/// The API of the file's conversations, or none if it holds something else.
pub(super) fn api_of(head: &Head) -> Option<Api> {
    let mut signs = Signs::default();
    for value in head.values.iter().take(SEEN) {
        signs.value(value, true)?;
    }
    if signs.messages == 0 && signs.anthropic == 0 && signs.openai == 0 {
        return None;
    }
    Some(if signs.anthropic > signs.openai {
        Api::Anthropic
    } else {
        Api::OpenAiChat
    })
}

/// How many values, conversations and messages are looked at.
const SEEN: usize = 50;

/// Keys beside messages that tell another product's format. Where the messages are plain ones, with
/// a role and a content, only the first few do: a program may have such keys for itself, and the
/// product's importer was asked before.
const FOREIGN: &[&str] = &[
    "parentUuid",
    "projectHash",
    "samples",
    "simulations",
    "trajectory_format",
    "eval",
    "history",
    "info",
    "sessionId",
    "traj",
    "trajectory",
];

/// How many of [`FOREIGN`] are no keys that a program may have for itself.
const FOREIGN_BESIDE: usize = 5;

/// Keys of messages that tell another product's format; where there is more to see than messages,
/// only the first few do.
const FOREIGN_IN_MESSAGE: &[&str] = &[
    "lc",
    "modelInfo",
    "parts",
    "turn_idx",
    "action",
    "agent",
    "extra",
    "metrics",
    "observation",
    "parentUuid",
    "ts",
    "uuid",
];

/// How many of [`FOREIGN_IN_MESSAGE`] are no keys that a program may add to its messages.
const FOREIGN_ANYWHERE: usize = 4;

/// What was found so far. A method returns none where the file is surely something else.
#[derive(Default)]
struct Signs {
    messages: usize,
    anthropic: usize,
    openai: usize,
    /// Whether the messages stand in something that is surely a log.
    is_log: bool,
}

impl Signs {
    fn value(&mut self, value: &Value, may_be_list: bool) -> Option<()> {
        match value {
            Value::Array(items) if may_be_list => {
                let in_lists = items.first().is_some_and(Value::is_array);
                for item in items.iter().take(SEEN) {
                    match item {
                        Value::Array(messages) if in_lists => self.messages(messages)?,
                        item => self.value(item, false)?,
                    }
                }
                Some(())
            }
            Value::Object(object) if is_message(object) => self.message(object),
            Value::Object(object) => self.around(object),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => None,
        }
    }

    fn messages(&mut self, messages: &[Value]) -> Option<()> {
        for message in messages.iter().take(SEEN) {
            self.message(message.as_object()?)?;
        }
        Some(())
    }

    /// A conversation with what stands beside it.
    fn around(&mut self, object: &Map<String, Value>) -> Option<()> {
        let logged = ["request", "response", "request_body", "response_body"];
        if logged.iter().any(|key| object.contains_key(*key))
            && let Some(Value::Object(laid_out)) = bodies::seen(&Value::from(object.clone()))
        {
            return self.around(&laid_out);
        }
        let is_plain = |message: &Value| {
            message.get("role").is_some_and(Value::is_string) && message.get("content").is_some()
        };
        let messages = object.get("messages").and_then(Value::as_array);
        let is_log = messages.and_then(|it| it.first()).is_some_and(is_plain);
        let foreign = if is_log {
            &FOREIGN[..FOREIGN_BESIDE]
        } else {
            FOREIGN
        };
        if foreign.iter().any(|key| object.contains_key(*key)) {
            return None;
        }
        let was_log = self.is_log;
        self.is_log |= is_log;
        let read = self.beside(object);
        self.is_log = was_log;
        read
    }

    /// What stands in a conversation, and beside it.
    fn beside(&mut self, object: &Map<String, Value>) -> Option<()> {
        let has = |key: &str| object.contains_key(key);
        if !has("messages") {
            let request = object.get("request").and_then(Value::as_object);
            if let Some(response) = object.get("response").and_then(Value::as_object) {
                let is_message = response.get("type").is_some_and(|kind| kind == "message");
                self.anthropic += usize::from(is_message);
                self.openai += usize::from(response.contains_key("choices"));
            }
            if let Some(request) = request {
                let body = request.get("body").and_then(Value::as_object);
                return self.around(body.unwrap_or(request));
            }
            // One request of a batch.
            let mut batched = ["body", "params"].into_iter().filter(|_| has("custom_id"));
            let batched = batched.find_map(|key| object.get(key)?.as_object());
            if let Some(request) = batched {
                return self.around(request);
            }
            // The responses API.
            if has("input") || has("output") {
                return None;
            }
        }
        let is_request = has("model") || has("messages") || has("max_tokens");
        if !is_request && !has("tools") {
            return None;
        }
        if let Some(messages) = object.get("messages") {
            self.messages(messages.as_array()?)?;
        }
        self.anthropic += usize::from(has("system") && is_request);
        self.anthropic += usize::from(has("anthropic_version"));
        for tool in object
            .get("tools")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.anthropic += usize::from(tool.get("input_schema").is_some());
            self.openai += usize::from(tool.get("function").is_some());
        }
        self.openai += usize::from(has("functions"));
        for usage in [
            object.get("usage"),
            object.get("response").and_then(|it| it.get("usage")),
        ] {
            let counts = |key| usage.and_then(|usage| usage.get(key)).is_some();
            self.anthropic += usize::from(counts("input_tokens"));
            self.openai += usize::from(counts("prompt_tokens"));
        }
        Some(())
    }

    fn message(&mut self, message: &Map<String, Value>) -> Option<()> {
        let foreign = if self.is_log {
            &FOREIGN_IN_MESSAGE[..FOREIGN_ANYWHERE]
        } else {
            FOREIGN_IN_MESSAGE
        };
        if foreign.iter().any(|key| message.contains_key(*key)) {
            return None;
        }
        match message.get("role").map(Value::as_str) {
            // The message was cut before its role.
            None if message.contains_key("content") => {}
            None if message.is_empty() => return Some(()),
            Some(Some("user" | "assistant")) => {}
            Some(Some("system" | "developer" | "tool" | "function")) => self.openai += 1,
            None | Some(_) => return None,
        }
        self.messages += 1;
        for key in [
            "tool_call_id",
            "function_call",
            "refusal",
            "reasoning_content",
        ] {
            self.openai += usize::from(message.contains_key(key));
        }
        self.anthropic += usize::from(message.contains_key("stop_reason"));
        let is_message = message.get("type").is_some_and(|kind| kind == "message");
        self.anthropic += usize::from(is_message);
        let counts = |key| {
            message
                .get("usage")
                .and_then(|usage| usage.get(key))
                .is_some()
        };
        self.anthropic += usize::from(counts("input_tokens"));
        self.openai += usize::from(counts("prompt_tokens"));
        for call in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            // Other products have the calls flat.
            if call.get("name").is_some() || call.get("args").is_some() {
                return None;
            }
            self.openai += 1;
        }
        match message.get("content") {
            Some(Value::Array(parts)) => {
                for part in parts.iter().take(SEEN) {
                    self.part(part)?;
                }
            }
            Some(Value::Null) => self.openai += 1,
            Some(Value::String(_)) | None => {}
            Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => return None,
        }
        Some(())
    }

    fn part(&mut self, part: &Value) -> Option<()> {
        match part.get("type").and_then(Value::as_str) {
            // Items of the responses API, and of the AI SDK.
            Some("input_text" | "output_text" | "tool-call" | "tool-result") => return None,
            Some(
                "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "document"
                | "image" | "server_tool_use" | "search_result",
            ) => self.anthropic += 1,
            Some("image_url" | "input_audio" | "refusal" | "file") => self.openai += 1,
            Some(_) | None => {}
        }
        Some(())
    }
}

/// Whether an object is a message rather than something that holds messages.
fn is_message(object: &Map<String, Value>) -> bool {
    !object.contains_key("messages") && object.contains_key("role")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Api>) {
        assert_eq!(api_of(&Head::of(text.as_bytes())), expected, "{text}");
    }

    #[test]
    fn each_api_is_told_by_what_only_it_has() {
        let anthropic = Some(Api::Anthropic);
        let openai = Some(Api::OpenAiChat);
        check(
            r#"{"system":"s","messages":[{"role":"user","content":"a"}]}"#,
            anthropic,
        );
        check(
            r#"[{"role":"user","content":[{"type":"tool_result"}]}]"#,
            anthropic,
        );
        check(
            r#"{"tools":[{"name":"a","input_schema":{}}],"messages":[]}"#,
            anthropic,
        );
        check(
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1}}"#,
            anthropic,
        );
        check(
            r#"{"custom_id":"a","params":{"model":"m","max_tokens":1,"system":"s","messages":[{"role":"user","content":"a"}]}}"#,
            anthropic,
        );
        check(
            r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"a"}]}}"#,
            openai,
        );
        check(
            r#"{"sessionId":"s","info":{},"messages":[{"role":"user","content":"a","uuid":"1"}]}"#,
            openai,
        );
        check(r#"[{"role":"user","content":"a"}]"#, openai);
        check(r#"[{"role":"system","content":"a"}]"#, openai);
        check(r#"[[{"role":"user","content":"a"}],[]]"#, openai);
        check(
            "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"tool\"}",
            openai,
        );
        check(
            r#"{"messages":[{"role":"assistant","content":null}]}"#,
            openai,
        );
        for other in [
            "",
            "{}",
            "[]",
            "7",
            "[7]",
            "[[[[",
            r#"{"type":"user","message":{"role":"user"}}"#,
            r#"{"sessionId":"s","messages":[{"id":"a","type":"user","content":"a"}]}"#,
            r#"{"info":{},"messages":[{"info":{"role":"user"},"parts":[]}]}"#,
            r#"[{"role":"user","content":"a","ts":1}]"#,
            r#"{"messages":[{"role":"assistant","tool_calls":[{"name":"a","args":{}}]}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"input_text"}]}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"output_text"}]}"#,
            r#"[{"role":"model","parts":[]}]"#,
        ] {
            check(other, None);
        }
        check(&"[".repeat(60_000), None);
    }

    #[test]
    fn a_file_is_told_wherever_its_head_is_cut() {
        let long = "é\\n\\u00e9".repeat(20);
        for (text, api, from) in [
            (
                format!(r#"{{"model":"m","system":"{long}","messages":[{{"role":"user"}}]}}"#),
                Api::Anthropic,
                64,
            ),
            (
                format!(
                    r#"{{"messages":[{{"content":[{{"type":"text","text":"{long}"}}],"role":"user"}}]}}"#
                ),
                Api::OpenAiChat,
                40,
            ),
            (
                format!(r#"{{"tools":[{{"type":"function","function":{{"name":"{long}"}}}}]}}"#),
                Api::OpenAiChat,
                50,
            ),
        ] {
            for cut in from..text.len() {
                assert_eq!(
                    api_of(&Head::of(&text.as_bytes()[..cut])),
                    Some(api),
                    "{}",
                    &text[..text.floor_char_boundary(cut)]
                );
            }
        }
    }
}
