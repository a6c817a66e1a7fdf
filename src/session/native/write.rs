//! Sessions to lines.

use std::io::{self, Write};
use std::ops::Range;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{FORMAT, VERSION, write_line};
use crate::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session,
    Source, Tag, ToolClass,
};
use crate::units::{Timestamp, Usage};

/// Writes `session` line by line.
pub fn write(session: &Session, out: &mut dyn Write) -> io::Result<()> {
    let header = HeaderOut {
        format: FORMAT,
        version: VERSION,
        id: session.id(),
        system: session.system().map(AsRef::as_ref),
        tools: session
            .tools()
            .iter()
            .map(|tool| {
                let (definition, definition_text) = embed(&tool.definition)?;
                Ok(ToolOut {
                    name: &tool.name,
                    definition,
                    definition_text,
                })
            })
            .collect::<io::Result<_>>()?,
        model: session.model(),
        context_window: session.context_window().map(|tokens| tokens.0),
        source: session.source(),
        resumed: session.resumed().map(|resumed| ResumedOut {
            at: resumed.at,
            notes: resumed.notes.as_deref(),
        }),
    };
    write_line(out, &header)?;
    let mut compactions = session.compactions().iter().peekable();
    for (at, message) in session.messages().iter().enumerate() {
        while let Some(compaction) = compactions.next_if(|compaction| compaction.at <= at) {
            write_compaction(out, compaction)?;
        }
        write_line(out, &message_out(message)?)?;
    }
    for compaction in compactions {
        write_compaction(out, compaction)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct HeaderOut<'a> {
    format: &'a str,
    version: u64,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    source: &'a Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<ResumedOut<'a>>,
}

#[derive(Serialize)]
struct ResumedOut<'a> {
    at: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<&'a str>,
}

#[derive(Serialize)]
struct ToolOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_text: Option<&'a str>,
}

#[derive(Serialize)]
struct MessageOut<'a> {
    role: Role,
    content: Vec<BlockOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<TimeOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_call: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "<[Tag]>::is_empty")]
    tags: &'a [Tag],
    #[serde(skip_serializing_if = "<[usize]>::is_empty")]
    injected: &'a [usize],
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockOut<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        class: ToolClass,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input_text: Option<&'a str>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<BlockOut<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Image {
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        source_text: Option<&'a str>,
    },
    Opaque {
        kind: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        json: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        json_text: Option<&'a str>,
    },
}

/// RFC 3339 where the calendar reaches, else the milliseconds themselves.
enum TimeOut {
    Calendar(String),
    Milliseconds(i64),
}

impl Serialize for TimeOut {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Calendar(text) => serializer.serialize_str(text),
            Self::Milliseconds(milliseconds) => serializer.serialize_i64(*milliseconds),
        }
    }
}

#[derive(Serialize)]
struct CompactionLine<'a> {
    compaction: CompactionOut<'a>,
}

#[derive(Serialize)]
struct CompactionOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_tokens: Option<u64>,
    after: AfterOut<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum AfterOut<'a> {
    Replaced(Vec<PieceOut<'a>>),
    Encrypted,
    Missing,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum PieceOut<'a> {
    Kept(&'a Range<usize>),
    Edited {
        message: usize,
        block: usize,
        text: &'a str,
    },
    Written(MessageOut<'a>),
}

fn write_compaction(out: &mut dyn Write, compaction: &RecordedCompaction) -> io::Result<()> {
    let after = match &compaction.after {
        CompactedTo::Encrypted => AfterOut::Encrypted,
        CompactedTo::Missing => AfterOut::Missing,
        CompactedTo::Replaced(pieces) => AfterOut::Replaced(
            pieces
                .iter()
                .map(|piece| {
                    Ok(match piece {
                        Recorded::Kept(range) => PieceOut::Kept(range),
                        Recorded::Edited {
                            message,
                            block,
                            text,
                        } => PieceOut::Edited {
                            message: *message,
                            block: *block,
                            text,
                        },
                        Recorded::Written(message) => PieceOut::Written(message_out(message)?),
                    })
                })
                .collect::<io::Result<_>>()?,
        ),
    };
    let compaction = CompactionOut {
        trigger: compaction.trigger.as_deref(),
        pre_tokens: compaction.pre_tokens.map(|tokens| tokens.0),
        after,
    };
    write_line(out, &CompactionLine { compaction })
}

fn message_out(message: &Message) -> io::Result<MessageOut<'_>> {
    Ok(MessageOut {
        role: message.role(),
        content: blocks_out(message.content())?,
        timestamp: message.timestamp.map(time_out),
        api_call: message.api_call.as_ref().map(|call| call.0.as_ref()),
        usage: message.usage,
        tags: &message.tags,
        injected: &message.injected,
        compact_hint: message.compact_hint.as_deref(),
        model: message.model.as_deref(),
    })
}

fn blocks_out(blocks: &[ContentBlock]) -> io::Result<Vec<BlockOut<'_>>> {
    blocks
        .iter()
        .map(|block| {
            Ok(match block {
                ContentBlock::Text(text) => BlockOut::Text { text },
                ContentBlock::Thinking(thinking) => BlockOut::Thinking {
                    text: &thinking.text,
                    signature: thinking.signature.as_deref(),
                },
                ContentBlock::ToolUse(tool_use) => {
                    let (input, input_text) = embed(&tool_use.input)?;
                    BlockOut::ToolUse {
                        id: &tool_use.id,
                        name: &tool_use.name,
                        class: tool_use.class,
                        input,
                        input_text,
                    }
                }
                ContentBlock::ToolResult(result) => BlockOut::ToolResult {
                    tool_use_id: &result.tool_use_id,
                    content: blocks_out(&result.content)?,
                    is_error: result.is_error,
                },
                ContentBlock::Image(image) => {
                    let (source, source_text) = embed(&image.source)?;
                    BlockOut::Image {
                        source,
                        source_text,
                    }
                }
                ContentBlock::Opaque(opaque) => {
                    let (json, json_text) = embed(&opaque.json)?;
                    BlockOut::Opaque {
                        kind: &opaque.kind,
                        json,
                        json_text,
                    }
                }
            })
        })
        .collect()
}

/// JSON as JSON where it fits on a line, else as a string.
fn embed(json: &JsonText) -> io::Result<(Option<&RawValue>, Option<&str>)> {
    let text = json.as_str();
    if text.contains(['\n', '\r']) {
        return Ok((None, Some(text)));
    }
    Ok((Some(serde_json::from_str(text)?), None))
}

fn time_out(time: Timestamp) -> TimeOut {
    jiff::Timestamp::from_millisecond(time.0).map_or(TimeOut::Milliseconds(time.0), |time| {
        TimeOut::Calendar(format!("{time:.3}"))
    })
}
