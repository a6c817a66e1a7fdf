//! The lines of a session file: what each holds, read and written.

use crate::prelude::*;
use std::io::{self, Write};

use serde::de::{Error as _, Unexpected};
use serde::{Deserializer, Serialize, Serializer};

use super::{FORMAT, VERSION};
use proctor_sessions::{Details, Image, InnerRequest, MessageDetails, Opaque, ResumePoint};

/// The keys that every version of the header has.
#[derive(Deserialize)]
struct Version<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine<'a> {
    format: String,
    version: u64,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Text,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<Tokens>,
    source: Option<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<ResumePoint>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool<'a> {
    name: Arc<str>,
    #[serde(borrow, default, deserialize_with = "raw")]
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_text: Text,
}

/// A message or a compaction; the key that distinguishes the two is `compaction`.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    content: Option<Vec<BlockKeys<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<LineTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_call: Option<ApiCallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inner_requests: Vec<InnerRequest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    injected: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_hint: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<CompactionLine>,
}

/// All keys of all blocks: an enum tagged by `type` could not hold raw JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockKeys<'a> {
    r#type: BlockType,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<ToolClass>,
    #[serde(borrow, default, deserialize_with = "raw")]
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_text: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Text,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    content: Option<Vec<BlockKeys<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(borrow, default, deserialize_with = "raw")]
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_text: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Text,
    #[serde(borrow, default, deserialize_with = "raw")]
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_text: Text,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockType {
    #[default]
    Text,
    Thinking,
    ToolUse,
    ToolResult,
    Image,
    Opaque,
}

/// The seconds from 2001 to 2286; as milliseconds, a few months of 1970.
const SECONDS: std::ops::Range<i64> = 1_000_000_000..10_000_000_000;

/// An RFC 3339 time, or milliseconds since 1970.
struct LineTime(Timestamp);

impl Serialize for LineTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match jiff::Timestamp::from_millisecond(self.0.0) {
            Ok(time) => serializer.collect_str(&format_args!("{time:.3}")),
            Err(_) => serializer.serialize_i64(self.0.0),
        }
    }
}

impl<'de> Deserialize<'de> for LineTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a time such as `2026-01-31T12:00:00.000Z`";
        let value = Value::deserialize(deserializer)?;
        let Some(text) = value.as_str() else {
            let number = value
                .as_i64()
                .ok_or_else(|| D::Error::custom(format_args!("`{value}` is not {EXPECTED}")))?;
            if SECONDS.contains(&number) {
                let problem = "a number is milliseconds since 1970, and this one is seconds";
                return Err(D::Error::custom(format_args!("`{number}`: {problem}")));
            }
            return Ok(Self(Timestamp(number)));
        };
        let parsed = text.parse::<jiff::Timestamp>();
        let time = parsed.map_err(|_| D::Error::invalid_value(Unexpected::Str(text), &EXPECTED))?;
        Ok(Self(Timestamp(time.as_millisecond())))
    }
}

/// A compaction, whose place is that of its line.
#[derive(Serialize, Deserialize)]
#[serde(remote = "RecordedCompaction", deny_unknown_fields)]
struct CompactionKeys {
    #[serde(skip)]
    at: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_tokens: Option<Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(with = "After")]
    after: CompactedTo,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CompactedTo", rename_all = "snake_case")]
enum After {
    Replaced(#[serde(serialize_with = "write_pieces", deserialize_with = "pieces")] Vec<Recorded>),
    Encrypted,
    Missing,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Recorded", rename_all = "snake_case", deny_unknown_fields)]
enum PieceKeys {
    Kept(Range<usize>),
    Edited { message: usize, block: usize, text: Arc<str> },
    Written(#[serde(serialize_with = "write_message", deserialize_with = "message")] Arc<Message>),
}

/// A compaction in its line.
#[derive(Serialize, Deserialize)]
struct CompactionLine(#[serde(with = "CompactionKeys")] RecordedCompaction);

/// A piece in a list.
#[derive(Serialize, Deserialize)]
struct PieceItem(#[serde(with = "PieceKeys")] Recorded);

fn write_pieces<S: Serializer>(pieces: &[Recorded], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pieces.iter().cloned().map(PieceItem))
}

fn pieces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Recorded>, D::Error> {
    Ok(Vec::<PieceItem>::deserialize(deserializer)?.into_iter().map(|piece| piece.0).collect())
}

fn write_message<S: Serializer>(message: &Message, serializer: S) -> Result<S::Ok, S::Error> {
    EntryLine::of(message).serialize(serializer)
}

fn message<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Message>, D::Error> {
    EntryLine::deserialize(deserializer)?.message().map(Arc::new).map_err(D::Error::custom)
}

/// Writes `session` line by line.
pub fn write(session: &Session, out: &mut dyn Write) -> io::Result<()> {
    let tools = session.tools().iter().map(|tool| {
        let (definition, definition_text) = embed(&tool.definition);
        Tool { name: tool.name.clone(), definition, definition_text }
    });
    let header = HeaderLine {
        format: FORMAT.to_owned(),
        version: VERSION,
        id: session.id().to_owned(),
        system: session.system().cloned(),
        tools: tools.collect(),
        model: session.model().map(str::to_owned),
        context_window: session.context_window(),
        source: Some(session.source().clone()),
        resumed: session.resumed().cloned(),
    };
    write_line(out, &header)?;
    let mut compactions = session.compactions().iter().peekable();
    for (at, message) in session.messages().iter().enumerate() {
        while let Some(compaction) = compactions.next_if(|compaction| compaction.at <= at) {
            write_compaction(compaction, out)?;
        }
        write_line(out, &EntryLine::of(message))?;
    }
    compactions.try_for_each(|compaction| write_compaction(compaction, out))
}

fn write_compaction(compaction: &RecordedCompaction, out: &mut dyn Write) -> io::Result<()> {
    let entry =
        EntryLine { compaction: Some(CompactionLine(compaction.clone())), ..EntryLine::default() };
    write_line(out, &entry)
}

/// Serialises `value` as one line.
fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// JSON as JSON where it fits on a line and has no more escapes than it needs, else as a string.
fn embed(json: &JsonText) -> (Option<&RawValue>, Text) {
    let single_line = !json.as_str().contains(['\n', '\r']);
    let raw: Option<&RawValue> =
        single_line.then(|| serde_json::from_str(json.as_str()).ok()).flatten();
    let raw = raw.filter(|raw| JsonText::from(*raw) == *json);
    (raw, raw.is_none().then(|| json.as_str().into()))
}

/// Reads the first line.
pub(super) fn header(line: &RecordLine<'_>) -> Result<SessionParts> {
    let start: Version<'_> = line.parse()?;
    if start.format != FORMAT {
        return Err(line.error(format!("the first line must have `\"format\":\"{FORMAT}\"`")));
    }
    if start.version > VERSION {
        return Err(ImportError::Version(line.path.to_owned(), start.version, VERSION));
    }
    let header: HeaderLine<'_> = line.parse()?;
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
        tools: tools.collect::<Result<_>>()?,
        model: header.model,
        context_window: header.context_window,
        // Written by hand, most likely.
        source: header
            .source
            .unwrap_or_else(|| Source { format: "native".to_owned(), ..Source::default() }),
        resumed: header.resumed,
        ..SessionParts::default()
    })
}

/// Reads any other line.
pub(super) fn entry(line: &RecordLine<'_>, parts: &mut SessionParts) -> Result<()> {
    let mut entry: EntryLine<'_> = line.parse()?;
    let Some(mut compaction) = entry.compaction.take() else {
        let message = entry.message().map_err(|problem| line.error(problem))?;
        parts.messages.push(Arc::new(message));
        return Ok(());
    };
    if serde_json::to_value(entry).ok() != Some(serde_json::json!({})) {
        return Err(line.error("a line with `compaction` has no other key"));
    }
    compaction.0.at = parts.messages.len();
    parts.compactions.push(compaction.0);
    Ok(())
}

impl<'a> EntryLine<'a> {
    fn of(message: &'a Message) -> Self {
        Self {
            role: Some(message.role()),
            content: Some(message.content().iter().map(BlockKeys::of).collect()),
            timestamp: message.details.timestamp.map(LineTime),
            api_call: message.details.api_call.clone(),
            usage: message.details.usage,
            inner_requests: message.details.inner_requests.clone(),
            reasoning: Some(message.details.reasoning).filter(|value| *value > Tokens::ZERO),
            tags: message.tags.iter().collect(),
            injected: message.details.injected.clone(),
            compact_hint: message.details.compact_hint.clone(),
            model: message.details.model.clone(),
            compaction: None,
        }
    }

    fn message(self) -> Result<Message, String> {
        let role = need("role", self.role)?;
        let content = blocks_of(need("content", self.content)?)?;
        if self.compaction.is_some() {
            return Err("unknown key `compaction` in a message".to_owned());
        }
        let mut read = Message::new(role, content).with_tags(self.tags);
        let blocks = read.content().len();
        let mut injected = self.injected;
        if let Some(outside) = injected.iter().find(|at| **at >= blocks) {
            return Err(format!(
                "`injected` names block {outside}, and the message has {blocks} (counted from 0)"
            ));
        }
        injected.sort_unstable();
        injected.dedup();
        read.details = MessageDetails::from(Details {
            timestamp: self.timestamp.map(|time| time.0),
            api_call: self.api_call,
            usage: self.usage,
            inner_requests: self.inner_requests,
            reasoning: self.reasoning.unwrap_or_default(),
            injected,
            compact_hint: self.compact_hint,
            model: self.model,
            hidden: Tokens::ZERO,
            factor: None,
        });
        Ok(read)
    }
}

fn need<T>(key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("missing key `{key}`"))
}

fn blocks_of(blocks: Vec<BlockKeys<'_>>) -> Result<Blocks, String> {
    let read = blocks
        .into_iter()
        .enumerate()
        .map(|(at, block)| block.read().map_err(|problem| format!("block {at}: {problem}")));
    read.collect()
}

impl<'a> BlockKeys<'a> {
    fn of(block: &'a ContentBlock) -> Self {
        let mut line = Self::default();
        match block {
            ContentBlock::Text(text) => line.text = Some(text.clone()),
            ContentBlock::Thinking(thinking) => {
                line.r#type = BlockType::Thinking;
                line.text = Some(thinking.text.clone());
                line.signature.clone_from(&thinking.signature);
            }
            ContentBlock::ToolUse(tool_use) => {
                line.r#type = BlockType::ToolUse;
                line.id = Some(tool_use.id.clone());
                line.name = Some(tool_use.name.clone());
                line.class = Some(tool_use.class);
                (line.input, line.input_text) = embed(&tool_use.input);
            }
            ContentBlock::ToolResult(result) => {
                line.r#type = BlockType::ToolResult;
                line.tool_use_id = Some(result.tool_use_id.clone());
                line.content = Some(result.content.iter().map(Self::of).collect());
                line.is_error = result.is_error.then_some(true);
            }
            ContentBlock::Image(image) => {
                line.r#type = BlockType::Image;
                (line.source, line.source_text) = embed(&image.source);
            }
            ContentBlock::Opaque(opaque) => {
                line.r#type = BlockType::Opaque;
                line.kind = Some(opaque.kind.clone());
                (line.json, line.json_text) = embed(&opaque.json);
            }
        }
        line
    }

    fn read(mut self) -> Result<ContentBlock, String> {
        let read = match self.r#type {
            BlockType::Text => ContentBlock::Text(need("text", self.text.take())?),
            BlockType::Thinking => {
                ContentBlock::thinking(need("text", self.text.take())?, self.signature.take())
            }
            BlockType::ToolUse => {
                let name = need("name", self.name.take())?;
                ContentBlock::ToolUse(Box::new(ToolUse {
                    id: need("id", self.id.take())?,
                    class: self.class.take().unwrap_or_else(|| class_of(&name)),
                    name,
                    input: json("input", self.input.take(), self.input_text.take())?,
                }))
            }
            BlockType::ToolResult => {
                let id = need("tool_use_id", self.tool_use_id.take())?;
                let content = blocks_of(need("content", self.content.take())?)?;
                ContentBlock::tool_result(id, content, self.is_error.take() == Some(true))
            }
            BlockType::Image => ContentBlock::Image(Image {
                source: json("source", self.source.take(), self.source_text.take())?,
            }),
            BlockType::Opaque => ContentBlock::Opaque(Box::new(Opaque {
                kind: need("kind", self.kind.take())?,
                json: json("json", self.json.take(), self.json_text.take())?,
            })),
        };
        // A key that is left belongs to another type of block.
        let left = serde_json::to_value(self).map_err(|error| error.to_string())?;
        match left.as_object().and_then(|keys| keys.keys().nth(1)) {
            Some(key) => Err(format!(
                "unknown key `{key}` in a `{}` block",
                left["type"].as_str().unwrap_or_default()
            )),
            None => Ok(read),
        }
    }
}

/// Any JSON that is there: `null` is a value, not an absence.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The JSON under `key`, or in the string under `key` with `_text`.
fn json(key: &str, raw: Option<&RawValue>, text: Text) -> Result<JsonText, String> {
    match (raw, text) {
        (Some(raw), None) => Ok(JsonText::from(raw)),
        (None, Some(text)) => {
            JsonText::parse(&text).map_err(|error| format!("`{key}_text` is not JSON: {error}"))
        }
        (None, None) => Err(format!("missing key `{key}`")),
        (Some(_), Some(_)) => Err(format!("both `{key}` and `{key}_text`")),
    }
}
