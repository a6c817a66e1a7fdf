//! Lines to sessions.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FORMAT, VERSION};
use crate::session::import::ImportError;
use crate::session::import::lines::Line;
use crate::session::import::tool_names::class_of;
use crate::session::{
    CompactedTo, ContentBlock, Image, JsonText, Message, Opaque, Recorded, RecordedCompaction,
    Resumed, Role, SessionParts, Source, Tag, Thinking, ToolClass, ToolResult, ToolSchema, ToolUse,
};
use crate::units::{ApiCallId, Timestamp, Tokens, Usage};

/// What every version of the header has.
#[derive(Deserialize)]
struct VersionIn<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderIn<'a> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    id: String,
    system: Option<Arc<str>>,
    #[serde(borrow, default)]
    tools: Vec<ToolIn<'a>>,
    model: Option<String>,
    context_window: Option<u64>,
    source: Option<Source>,
    resumed: Option<ResumedIn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResumedIn {
    at: usize,
    notes: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolIn<'a> {
    name: Arc<str>,
    #[serde(borrow, default, deserialize_with = "raw")]
    definition: Option<&'a RawValue>,
    definition_text: Option<String>,
}

/// A message or a compaction; which of the two is told by the key `compaction`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryIn<'a> {
    role: Option<Role>,
    #[serde(borrow)]
    content: Option<Vec<BlockIn<'a>>>,
    timestamp: Option<TimeIn>,
    api_call: Option<ApiCallId>,
    usage: Option<Usage>,
    #[serde(default)]
    tags: Vec<Tag>,
    #[serde(default)]
    injected: Vec<usize>,
    compact_hint: Option<Arc<str>>,
    model: Option<Arc<str>>,
    #[serde(borrow)]
    compaction: Option<CompactionIn<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageIn<'a> {
    role: Role,
    #[serde(borrow)]
    content: Vec<BlockIn<'a>>,
    timestamp: Option<TimeIn>,
    api_call: Option<ApiCallId>,
    usage: Option<Usage>,
    #[serde(default)]
    tags: Vec<Tag>,
    #[serde(default)]
    injected: Vec<usize>,
    compact_hint: Option<Arc<str>>,
    model: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompactionIn<'a> {
    trigger: Option<Arc<str>>,
    pre_tokens: Option<u64>,
    #[serde(borrow)]
    after: AfterIn<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum AfterIn<'a> {
    #[serde(borrow)]
    Replaced(Vec<PieceIn<'a>>),
    Encrypted,
    Missing,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum PieceIn<'a> {
    Kept(Range<usize>),
    Edited {
        message: usize,
        block: usize,
        text: Arc<str>,
    },
    #[serde(borrow)]
    Written(MessageIn<'a>),
}

/// All keys of all blocks: an enum tagged by `type` could not hold raw JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockIn<'a> {
    r#type: BlockType,
    text: Option<Arc<str>>,
    signature: Option<Arc<str>>,
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    class: Option<ToolClass>,
    #[serde(borrow, default, deserialize_with = "raw")]
    input: Option<&'a RawValue>,
    input_text: Option<String>,
    tool_use_id: Option<Arc<str>>,
    #[serde(borrow)]
    content: Option<Vec<BlockIn<'a>>>,
    is_error: Option<bool>,
    #[serde(borrow, default, deserialize_with = "raw")]
    source: Option<&'a RawValue>,
    source_text: Option<String>,
    kind: Option<Arc<str>>,
    #[serde(borrow, default, deserialize_with = "raw")]
    json: Option<&'a RawValue>,
    json_text: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockType {
    Text,
    Thinking,
    ToolUse,
    ToolResult,
    Image,
    Opaque,
}

impl fmt::Display for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::ToolUse => "tool_use",
            Self::ToolResult => "tool_result",
            Self::Image => "image",
            Self::Opaque => "opaque",
        })
    }
}

/// An RFC 3339 time, or milliseconds since 1970.
struct TimeIn(Timestamp);

impl<'de> Deserialize<'de> for TimeIn {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = TimeIn;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as `2026-01-31T12:00:00.000Z`")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TimeIn, E> {
                text.parse::<jiff::Timestamp>()
                    .map(|time| TimeIn(Timestamp(time.as_millisecond())))
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<TimeIn, E> {
                Ok(TimeIn(Timestamp(value)))
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<TimeIn, E> {
                i64::try_from(value)
                    .map(|value| TimeIn(Timestamp(value)))
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(value), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Reads the first line.
pub(super) fn header(line: &Line<'_>) -> Result<SessionParts, ImportError> {
    let start: VersionIn<'_> = line.parse()?;
    if start.format != FORMAT {
        return Err(line.error(format!(
            "the first line must have `\"format\":\"{FORMAT}\"`"
        )));
    }
    if start.version > VERSION {
        return Err(line.too_new(start.version, VERSION));
    }
    let header: HeaderIn<'_> = line.parse()?;
    let tools = header.tools.into_iter().map(|tool| {
        Ok(ToolSchema {
            definition: json("definition", tool.definition, tool.definition_text)
                .map_err(|problem| line.error(format!("tool `{}`: {problem}", tool.name)))?,
            name: tool.name,
        })
    });
    Ok(SessionParts {
        id: header.id,
        system: header.system,
        tools: tools.collect::<Result<_, ImportError>>()?,
        model: header.model,
        context_window: header.context_window.map(Tokens),
        // Written by hand, most likely.
        source: header.source.unwrap_or_else(|| Source {
            format: "native".to_owned(),
            ..Source::default()
        }),
        resumed: header.resumed.map(|resumed| Resumed {
            at: resumed.at,
            notes: resumed.notes,
        }),
        ..SessionParts::default()
    })
}

/// Reads any other line.
pub(super) fn entry(line: &Line<'_>, parts: &mut SessionParts) -> Result<(), ImportError> {
    let entry: EntryIn<'_> = line.parse()?;
    match entry {
        EntryIn {
            role: None,
            content: None,
            timestamp: None,
            api_call: None,
            usage: None,
            compact_hint: None,
            model: None,
            compaction: Some(compaction),
            ..
        } if entry.tags.is_empty() && entry.injected.is_empty() => {
            let compaction = compaction_of(compaction, parts.messages.len())
                .map_err(|problem| line.error(problem))?;
            parts.compactions.push(compaction);
        }
        EntryIn {
            role: Some(role),
            content: Some(content),
            timestamp,
            api_call,
            usage,
            tags,
            injected,
            compact_hint,
            model,
            compaction: None,
        } => {
            let message = message_of(MessageIn {
                role,
                content,
                timestamp,
                api_call,
                usage,
                tags,
                injected,
                compact_hint,
                model,
            })
            .map_err(|problem| line.error(problem))?;
            parts.messages.push(Arc::new(message));
        }
        EntryIn {
            compaction: Some(_),
            ..
        } => return Err(line.error("a line with `compaction` has no other key")),
        EntryIn { role: None, .. } => return Err(line.error("missing key `role`")),
        EntryIn { content: None, .. } => return Err(line.error("missing key `content`")),
    }
    Ok(())
}

fn compaction_of(compaction: CompactionIn<'_>, at: usize) -> Result<RecordedCompaction, String> {
    let after = match compaction.after {
        AfterIn::Encrypted => CompactedTo::Encrypted,
        AfterIn::Missing => CompactedTo::Missing,
        AfterIn::Replaced(pieces) => {
            let pieces = pieces.into_iter().map(|piece| {
                Ok(match piece {
                    PieceIn::Kept(range) => Recorded::Kept(range),
                    PieceIn::Edited {
                        message,
                        block,
                        text,
                    } => Recorded::Edited {
                        message,
                        block,
                        text,
                    },
                    PieceIn::Written(message) => Recorded::Written(Arc::new(message_of(message)?)),
                })
            });
            CompactedTo::Replaced(pieces.collect::<Result<_, String>>()?)
        }
    };
    Ok(RecordedCompaction {
        at,
        trigger: compaction.trigger,
        pre_tokens: compaction.pre_tokens.map(Tokens),
        after,
    })
}

fn message_of(message: MessageIn<'_>) -> Result<Message, String> {
    let content = blocks_of(message.content)?;
    let mut read = Message::new(message.role, content).with_tags(message.tags);
    read.timestamp = message.timestamp.map(|time| time.0);
    read.api_call = message.api_call;
    read.usage = message.usage;
    if let Some(outside) = message
        .injected
        .iter()
        .find(|at| **at >= read.content().len())
    {
        return Err(format!(
            "`injected` names block {outside}, and the message has {} (counted from 0)",
            read.content().len()
        ));
    }
    read.injected = message.injected;
    read.injected.sort_unstable();
    read.injected.dedup();
    read.compact_hint = message.compact_hint;
    read.model = message.model;
    Ok(read)
}

fn blocks_of(blocks: Vec<BlockIn<'_>>) -> Result<Vec<ContentBlock>, String> {
    blocks
        .into_iter()
        .enumerate()
        .map(|(at, block)| block_of(block).map_err(|problem| format!("block {at}: {problem}")))
        .collect()
}

fn block_of(mut block: BlockIn<'_>) -> Result<ContentBlock, String> {
    fn need<T>(key: &str, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| format!("missing key `{key}`"))
    }
    let read = match block.r#type {
        BlockType::Text => ContentBlock::Text(need("text", block.text.take())?),
        BlockType::Thinking => ContentBlock::Thinking(Thinking {
            text: need("text", block.text.take())?,
            signature: block.signature.take(),
        }),
        BlockType::ToolUse => {
            let name = need("name", block.name.take())?;
            ContentBlock::ToolUse(ToolUse {
                id: need("id", block.id.take())?,
                class: block.class.take().unwrap_or_else(|| class_of(&name)),
                name,
                input: json("input", block.input.take(), block.input_text.take())?,
            })
        }
        BlockType::ToolResult => ContentBlock::ToolResult(ToolResult {
            tool_use_id: need("tool_use_id", block.tool_use_id.take())?,
            content: blocks_of(need("content", block.content.take())?)?,
            is_error: block.is_error.take().unwrap_or_default(),
        }),
        BlockType::Image => ContentBlock::Image(Image {
            source: json("source", block.source.take(), block.source_text.take())?,
        }),
        BlockType::Opaque => ContentBlock::Opaque(Opaque {
            kind: need("kind", block.kind.take())?,
            json: json("json", block.json.take(), block.json_text.take())?,
        }),
    };
    // What is left belongs to another type of block.
    let left = [
        ("text", block.text.is_some()),
        ("signature", block.signature.is_some()),
        ("id", block.id.is_some()),
        ("name", block.name.is_some()),
        ("class", block.class.is_some()),
        ("input", block.input.is_some()),
        ("input_text", block.input_text.is_some()),
        ("tool_use_id", block.tool_use_id.is_some()),
        ("content", block.content.is_some()),
        ("is_error", block.is_error.is_some()),
        ("source", block.source.is_some()),
        ("source_text", block.source_text.is_some()),
        ("kind", block.kind.is_some()),
        ("json", block.json.is_some()),
        ("json_text", block.json_text.is_some()),
    ];
    match left.iter().find(|(_, is_some)| *is_some) {
        Some((key, _)) => Err(format!("unknown key `{key}` in a `{}` block", block.r#type)),
        None => Ok(read),
    }
}

/// Any JSON that is there: `null` is a value, not an absence.
fn raw<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The JSON under `key`, or in the string under `key` with `_text`.
fn json(key: &str, raw: Option<&RawValue>, text: Option<String>) -> Result<JsonText, String> {
    match (raw, text) {
        (Some(raw), None) => Ok(JsonText::from(raw)),
        (None, Some(text)) => {
            JsonText::parse(&text).map_err(|error| format!("`{key}_text` is not JSON: {error}"))
        }
        (None, None) => Err(format!("missing key `{key}`")),
        (Some(_), Some(_)) => Err(format!("both `{key}` and `{key}_text`")),
    }
}
