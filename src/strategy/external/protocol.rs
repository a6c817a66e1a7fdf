//! The lines of the protocol, as data.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::LoadedFiles;

/// The version that this build speaks.
///
/// 2: each answer repeats the `id` of the line that it answers; `hello` has `kind` and `breaks`. 1: the first.
pub const PROTOCOL: u32 = 2;

/// A line that wants an answer.
#[derive(Debug, Serialize)]
pub(crate) struct Numbered<'a> {
    /// The number of such lines that the process was sent before.
    pub(crate) id: u64,
    /// The line.
    #[serde(flatten)]
    pub(crate) line: &'a ToProgram,
}

/// A line that Proctor writes.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToProgram {
    /// The first line of a process.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// Version of Proctor.
        proctor: &'static str,
    },
    /// A session begins. No answer is wanted.
    Session {
        /// The agent's system prompt.
        system: Option<String>,
        /// Definitions of the agent's tools, as recorded.
        #[schemars(with = "Vec<Value>")]
        tools: Vec<Box<RawValue>>,
        /// The window of the agent's model.
        window: WindowLine,
        /// The same for all strategies: the seed of random draws.
        seed: u64,
    },
    /// A call of the agent comes next.
    BeforeCall(Turn),
    /// The provider refused the prompt as too long.
    Overflow(Turn),
    /// The response of the call was appended.
    AfterCall(Turn),
    /// A message enters the conversation.
    Append {
        /// The agent's call that comes next.
        call: usize,
        /// The message, with its size in `tokens`.
        #[schemars(with = "Value")]
        message: Box<RawValue>,
    },
    /// The answer to an `ask`: a text and why it stopped, or an error.
    Answer {
        /// The model's text.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// `end`, `max_tokens`, `tool_use` or `refusal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<&'static str>,
        /// `too_long`, `timeout`, `rate_limited`, `server` or `failed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'static str>,
    },
}

/// The window of the agent's model.
#[derive(Debug, JsonSchema, Serialize)]
pub struct WindowLine {
    /// Its size.
    pub tokens: u64,
    /// The same less what is reserved for the answer.
    pub effective_tokens: u64,
}

/// The conversation at a moment.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Turn {
    /// The agent's call that comes next, from 0; after a call, the one that was answered.
    pub call: usize,
    /// The conversation: messages in the form of Anthropic's API with their `tokens`, and with
    /// `"context":"changes"` ranges `[from,to]` of the list that was sent last.
    #[schemars(with = "Vec<Value>")]
    pub messages: Vec<Box<RawValue>>,
    /// Size of the prompt as it would be sent.
    pub prompt_tokens: u64,
    /// The part of it that is system prompt and tools.
    pub fixed_tokens: u64,
    /// Tokens of messages that fit into the effective window.
    pub budget_tokens: u64,
    /// Simulated time since 1970, where the session has times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// How often this call was already recovered; only after a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// A line that a program writes.
#[derive(Debug, JsonSchema, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[serde(expecting = "an object with a `type`")]
pub enum FromProgram {
    /// The answer to `hello`.
    Hello(Hello),
    /// Nothing is to be done.
    Unchanged {
        /// Why, for the log.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The new context: ranges `[from,to]` of the old one, and messages.
    Messages {
        /// Its pieces, in order.
        messages: Vec<Value>,
        /// Why, for the log.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Ranges that make way for messages.
    Edits {
        /// Ascending and disjoint.
        edits: Vec<EditLine>,
        /// Why, for the log.
        #[serde(default)]
        reason: Option<String>,
    },
    /// One message of the user in place of a range.
    Summary {
        /// Where the range begins.
        from: usize,
        /// Where it ends, exclusive.
        to: usize,
        /// The text.
        text: String,
        /// Why, for the log.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The message that is appended, changed; only in answer to `append`.
    Message {
        /// The message.
        message: Value,
        /// Why, for the log.
        #[serde(default)]
        reason: Option<String>,
    },
    /// A request to a model; the answer is a line of Proctor's.
    Ask(AskLine),
    /// The program cannot go on.
    Error {
        /// Why.
        message: String,
    },
}

/// A program says what it wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version that it speaks.
    pub protocol: u32,
    /// Its name, for error messages.
    #[serde(default)]
    pub name: Option<String>,
    /// Which history it gets.
    #[serde(default)]
    pub history: History,
    /// How a context is written.
    #[serde(default)]
    pub context: Wording,
    /// The lines that it wants.
    #[serde(default = "usual_moments")]
    pub moments: Vec<Moment>,
    /// Its kind: laws that do not apply to it are not asked.
    #[serde(default)]
    pub kind: ProgramKind,
    /// The laws that it breaks on purpose.
    #[serde(default)]
    pub breaks: Vec<DeclaredBreak>,
    /// The files that it loaded, by name, each with a hash of its content: a run goes on only with the same ones. Without
    /// them, all files below the folder of its script are meant.
    #[serde(default)]
    pub files: LoadedFiles,
}

/// How a program makes a context smaller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// It drops the oldest messages.
    Window,
    /// It clears or shortens tool results and other blocks.
    Clear,
    /// It replaces messages by a summary.
    Summarise,
    /// It does something else, or does not say.
    #[default]
    Other,
}

impl ProgramKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Clear => "clear",
            Self::Summarise => "summarise",
            Self::Other => "other",
        }
    }
}

/// A law that a program breaks on purpose. The protocol takes any name.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredBreak {
    /// The name of the law.
    pub law: String,
    /// Why it is broken.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Which history a program gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The context that it left at the call before, with the messages that came since.
    #[default]
    Kept,
    /// The whole original history at every call.
    Full,
}

/// How a context is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wording {
    /// All messages, each time.
    #[default]
    Whole,
    /// Ranges of the list that was sent last, and new messages.
    Changes,
}

/// A line that wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// As a message enters.
    Append,
    /// Before a call.
    BeforeCall,
    /// After a refusal.
    Overflow,
    /// After a response.
    AfterCall,
}

fn usual_moments() -> Vec<Moment> {
    vec![Moment::BeforeCall, Moment::Overflow]
}

/// A range that makes way for messages.
#[derive(Debug, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditLine {
    /// Where the range begins.
    pub from: usize,
    /// Where it ends, exclusive.
    pub to: usize,
    /// The pieces in its place, as in `messages`.
    #[serde(default)]
    pub with: Vec<Value>,
}

/// A request to a model.
#[derive(Debug, JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskLine {
    /// The system prompt.
    #[serde(default)]
    pub system: Option<String>,
    /// Pieces as in `messages`; the last is the user's.
    pub messages: Vec<Value>,
    /// The answer is cut off after this many tokens.
    #[serde(default = "usual_output")]
    pub max_tokens: u64,
    /// Another model than the agent's.
    #[serde(default)]
    pub model: Option<String>,
    /// Whether the agent's system prompt and tools come first, so that its cache is read.
    #[serde(default)]
    pub with_prefix: bool,
}

fn usual_output() -> u64 {
    2_000
}

/// A JSON Schema (draft 2020-12) of a line in either direction.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let program = generator.subschema_for::<FromProgram>();
    let proctor = generator.subschema_for::<ToProgram>();
    let mut definitions = generator.take_definitions(true);
    for side in ["FromProgram", "ToProgram"] {
        let lines = definitions.get_mut(side).and_then(|side| side["oneOf"].as_array_mut());
        lines.into_iter().flatten().for_each(number);
    }
    serde_json::json!({
        "$schema": generator.settings().meta_schema,
        "title": "A line between Proctor and an external strategy",
        "oneOf": [proctor, program],
        "$defs": definitions,
    })
}

/// Adds the `id` to the schema of a line, but to that of `session`, which wants no answer.
fn number(line: &mut Value) {
    if line["properties"]["type"]["const"] != "session" {
        line["properties"]["id"] = serde_json::json!({ "type": "integer", "minimum": 0 });
        if let Some(required) = line["required"].as_array_mut() {
            required.push("id".into());
        }
    }
}
