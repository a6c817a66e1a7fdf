//! The blocks of messages: texts, tool uses and their results, and JSON as it was written.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{embedded, picture};
use crate::tokens::{Block, BlockKind, Picture};
use crate::tool_names::class_of;
use crate::wire::json_bytes::{Mark, marks};

/// One part of a message. All but the simplest are boxed: most are texts, and a session may have millions.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentBlock {
    /// Plain text.
    Text(Arc<str>),
    /// The model's visible reasoning.
    Thinking(Box<Thinking>),
    /// The model asks for a tool.
    ToolUse(Box<ToolUse>),
    /// The answer to a tool use.
    ToolResult(Box<ToolResult>),
    /// A picture.
    Image(Image),
    /// A block of a kind Proctor does not know, kept as recorded.
    Opaque(Box<Opaque>),
}

impl ContentBlock {
    /// A call of the tool `name`, of the [class](class_of) that its name has.
    pub fn tool_use(id: Arc<str>, name: Arc<str>, input: JsonText) -> Self {
        Self::ToolUse(Box::new(ToolUse { id, class: class_of(&name), name, input }))
    }

    /// The answer to the tool use of that id.
    pub fn tool_result(tool_use_id: Arc<str>, content: Vec<Self>, is_error: bool) -> Self {
        Self::ToolResult(Box::new(ToolResult { tool_use_id, content, is_error }))
    }

    /// What the model thought, with its signature where the provider signs it.
    pub fn thinking(text: impl Into<Arc<str>>, signature: Option<Arc<str>>) -> Self {
        Self::Thinking(Box::new(Thinking { text: text.into(), signature }))
    }

    /// Whether it is a tool use.
    pub fn is_use(&self) -> bool {
        self.as_use().is_some()
    }

    /// Whether it is thinking.
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking(_))
    }

    /// Whether it is a tool result.
    pub fn is_result(&self) -> bool {
        self.as_result().is_some()
    }

    /// The text that the model reads, if the block holds it as it is. An opaque block does unless files are
    /// [`embedded`] in it.
    pub(super) fn own_text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Thinking(thinking) => Some(&thinking.text),
            Self::Opaque(opaque) => Some(&opaque.json.0),
            Self::ToolResult(result) => match &result.content[..] {
                [Self::Text(text)] => Some(text),
                _ => None,
            },
            Self::ToolUse(_) | Self::Image(_) => None,
        }
    }

    /// The text of a block that is plain text.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The tool use that the block is.
    pub fn as_use(&self) -> Option<&ToolUse> {
        match self {
            Self::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        }
    }

    /// The id of the call that the block makes or answers.
    pub fn call_id(&self) -> Option<&Arc<str>> {
        match self {
            Self::ToolUse(tool_use) => Some(&tool_use.id),
            Self::ToolResult(result) => Some(&result.tool_use_id),
            _ => None,
        }
    }

    /// The result that the block is.
    pub fn as_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(result) => Some(result),
            _ => None,
        }
    }

    pub(super) fn render(&self) -> Arc<str> {
        if let Self::Opaque(opaque) = self
            && let Some(text) = embedded::without_data(opaque.json.as_str())
        {
            return text;
        }
        if let Some(text) = self.own_text() {
            return text.clone();
        }
        match self {
            Self::ToolUse(tool_use) => {
                format!("{} {}", tool_use.name, tool_use.input.as_str()).into()
            }
            Self::ToolResult(result) => {
                let parts: Vec<Arc<str>> = result.content.iter().map(Self::render).collect();
                parts.join("\n").into()
            }
            Self::Image(_) | Self::Text(_) | Self::Thinking(_) | Self::Opaque(_) => Arc::default(),
        }
    }

    /// The block as counters see it; `text` is its rendering, `images` are those in it.
    pub(super) fn counted_with<'a>(
        &'a self,
        text: &'a Arc<str>,
        images: &'a [Picture],
    ) -> Block<'a> {
        let kind = match self {
            Self::Text(_) => BlockKind::Text,
            Self::Thinking(_) => BlockKind::Thinking,
            Self::ToolUse(tool_use) => {
                BlockKind::ToolUse { name: &tool_use.name, input: tool_use.input.as_str() }
            }
            Self::ToolResult(_) => BlockKind::ToolResult,
            Self::Image(_) => BlockKind::Image,
            Self::Opaque(opaque) if &*opaque.kind == "document" => BlockKind::Document,
            Self::Opaque(_) => BlockKind::Opaque,
        };
        Block { kind, text, images }
    }

    /// The images in the block, with their sizes, and the pages of embedded files.
    pub(super) fn pictures(&self) -> Vec<Picture> {
        match self {
            Self::Image(image) => vec![picture::of(image)],
            Self::ToolResult(result) => result.content.iter().flat_map(Self::pictures).collect(),
            Self::Opaque(opaque) => embedded::pictures(opaque.json.as_str()),
            Self::Text(_) | Self::Thinking(_) | Self::ToolUse(_) => Vec::new(),
        }
    }

    /// The number of images in the block, those inside a tool result included.
    pub fn images(&self) -> u64 {
        match self {
            Self::Image(_) => 1,
            Self::ToolResult(result) => result.content.iter().map(Self::images).sum(),
            Self::Text(_) | Self::Thinking(_) | Self::ToolUse(_) | Self::Opaque(_) => 0,
        }
    }
}

/// The model's visible reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thinking {
    /// The words; empty where the provider redacted them.
    pub text: Arc<str>,
    /// The provider's proof that the words are its own. Never counted, never shown.
    pub signature: Option<Arc<str>>,
}

/// The model asks for a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// Pairs the use with its result.
    pub id: Arc<str>,
    /// The tool's name, as the product calls it.
    pub name: Arc<str>,
    /// The class of the tool, so that a preset for one product works on another's recordings.
    pub class: ToolClass,
    /// The arguments, as recorded.
    pub input: JsonText,
}

/// The answer to a tool use.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The id of the tool use that is answered.
    pub tool_use_id: Arc<str>,
    /// Text, images and opaque blocks; may be empty.
    pub content: Vec<ContentBlock>,
    /// Whether the tool reported a failure.
    pub is_error: bool,
}

/// A picture, kept as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The source as recorded: base64 data with its media type, or an address.
    pub source: JsonText,
}

/// A block of a kind Proctor does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// The block's own type name.
    pub kind: Arc<str>,
    /// The whole block as recorded.
    pub json: JsonText,
}

/// JSON kept as it was written: a parsed value drops duplicate keys and their order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonText(pub(crate) Arc<str>);

impl JsonText {
    /// Keeps `text`, which must be one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &serde_json::value::RawValue = serde_json::from_str(text)?;
        Ok(Self(raw.get().into()))
    }

    /// Writes `value` as compact JSON.
    pub fn of(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// `text` as a JSON string.
    pub fn string(text: &str) -> Self {
        Self::of(&serde_json::Value::String(text.to_owned()))
    }

    /// The JSON, as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parsed value; of duplicate keys, the last one.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

/// A part of a file as it was written, without what is the file's and no part of the value: layout over lines, and
/// escapes that JSON does not ask for. So a value has one size in all files.
impl From<&serde_json::value::RawValue> for JsonText {
    fn from(raw: &serde_json::value::RawValue) -> Self {
        let json = raw.get();
        let has_layout = json.contains('\n');
        if !has_layout && !may_be_shortened(json) {
            return Self(json.into());
        }
        let mut text = String::with_capacity(json.len());
        let mut from = 0;
        for (at, mark) in marks(json.as_bytes()) {
            if let Mark::Text(Some(end)) = mark {
                push_between(&mut text, &json[from..at], has_layout);
                text.push_str(&plainly_escaped(&json[at..end]));
                from = end;
            }
        }
        push_between(&mut text, &json[from..], has_layout);
        Self(text.into())
    }
}

/// Adds what stands between two strings, without its layout.
fn push_between(text: &mut String, json: &str, has_layout: bool) {
    if has_layout {
        text.extend(json.split_ascii_whitespace());
    } else {
        text.push_str(json);
    }
}

/// Whether JSON holds an escape that it may not need: of a letter, or of a slash.
fn may_be_shortened(json: &str) -> bool {
    ["\\u", "\\/"].iter().any(|escape| json.contains(escape))
}

/// A string of JSON with the escapes alone that it needs; as it is where it holds half a surrogate pair.
fn plainly_escaped(string: &str) -> Cow<'_, str> {
    let has_more = may_be_shortened(string);
    let text = has_more.then(|| serde_json::from_str::<String>(string).ok()).flatten();
    text.and_then(|text| serde_json::to_string(&text).ok()).map_or(string.into(), Cow::Owned)
}

/// The class of a tool. Importers map every tool of their product to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Reads a file.
    Read,
    /// Runs a command.
    Shell,
    /// Searches in files.
    Grep,
    /// Lists files.
    Glob,
    /// Searches the web.
    WebSearch,
    /// Fetches a web page.
    WebFetch,
    /// Changes a file.
    Edit,
    /// Creates or replaces a file.
    Write,
    /// Keeps the task list.
    Todo,
    /// Starts another agent.
    Agent,
    /// A tool of an MCP server.
    Mcp,
    /// Anything else.
    Other,
}

impl ToolClass {
    /// All classes with their names, in the order of the documentation.
    const NAMES: [(Self, &'static str); 12] = [
        (Self::Read, "read"),
        (Self::Shell, "shell"),
        (Self::Grep, "grep"),
        (Self::Glob, "glob"),
        (Self::WebSearch, "web_search"),
        (Self::WebFetch, "web_fetch"),
        (Self::Edit, "edit"),
        (Self::Write, "write"),
        (Self::Todo, "todo"),
        (Self::Agent, "agent"),
        (Self::Mcp, "mcp"),
        (Self::Other, "other"),
    ];

    /// All classes, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(class, _)| class)
    }

    /// The name used in presets, as in `class:web_fetch`.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    /// A string as writers escape it that keep to ASCII, and more than they must.
    fn escaped(text: &str) -> String {
        let units = text.encode_utf16().map(|unit| match u8::try_from(unit) {
            Ok(b'/') => "\\/".to_owned(),
            Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04X}"),
        });
        format!("\"{}\"", units.collect::<String>())
    }

    fn read(json: &str) -> JsonText {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        JsonText::from(raw)
    }

    proptest! {
        #[test]
        fn a_value_has_one_text_in_all_files(key: String, text: String, number: i64) {
            let value = json!({ &*key: [text, number, true, {}], "n": null });
            let expected = JsonText::of(&value);
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let (key, text) = (escaped(&key), escaped(&text));
            let ascii = format!("{{{key}:[{text},{number},true,{{}}],\"n\":null}}");
            // Of two equal keys, the value has the last one.
            prop_assume!(value.as_object().map(serde_json::Map::len) == Some(2));
            prop_assert_eq!(&read(&ascii), &expected);
            prop_assert_eq!(&read(&pretty), &expected);
            prop_assert_eq!(&read(expected.as_str()), &expected);
        }
    }

    #[test]
    fn what_no_text_can_hold_stays_as_it_was_escaped() {
        for json in [r#"{"a":"\ud800 \/"}"#, r#"{"a":1.0e5,"a":-0}"#, r#"{ "a" : "\\u0041" }"#] {
            assert_eq!(read(json).as_str(), json);
        }
    }
}
