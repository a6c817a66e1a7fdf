//! The format as a JSON Schema, for those who write session files with tools of their own.
//!
//! It is written by hand: most of what it has to say is about JSON that is kept as it was written,
//! of which a derived schema would know nothing. A test holds it equal to what is written and read.

use serde_json::{Map, Value, json};

use super::{FORMAT, VERSION};
use crate::session::{Role, Tag, ToolClass};

/// A JSON Schema (draft 2020-12) of one line of a session file.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "session.schema.json",
        "title": "One line of a Proctor session file",
        "description": "The first line of a `*.session.jsonl` file is the header. Every other line \
            is a message, oldest first, or a compaction that the recorded product made before the \
            message that follows.",
        "oneOf": [
            {"$ref": "#/$defs/header"},
            {"$ref": "#/$defs/message"},
            {"$ref": "#/$defs/compaction"},
        ],
        "$defs": {
            "header": header(),
            "source": source(),
            "tool": tool(),
            "message": message(),
            "usage": usage(),
            "part": {
                "description": "What a tool result may hold.",
                "oneOf": [text_block(), image_block(), opaque_block()],
            },
            "block": {
                "description": "A part of a message.",
                "oneOf": [
                    text_block(),
                    thinking_block(),
                    tool_use_block(),
                    tool_result_block(),
                    image_block(),
                    opaque_block(),
                ],
            },
            "compaction": compaction(),
            "piece": piece(),
        },
    })
}

/// An object of these properties and no others.
fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut schema = json!({
        "description": description,
        "type": "object",
        "required": required,
        "properties": null,
        "additionalProperties": false,
    });
    schema["properties"] = properties;
    schema
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn any(description: &str) -> Value {
    json!({"description": description})
}

fn names<T: serde::Serialize>(description: &str, names: &[T]) -> Value {
    json!({"enum": names, "description": description})
}

fn header() -> Value {
    object(
        "The first line.",
        &["format", "version", "id"],
        json!({
            "format": {"const": FORMAT},
            "version": {"type": "integer", "minimum": 0, "maximum": VERSION},
            "id": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9._@-]*$",
                "maxLength": 80,
                "description": "Names the session in tables and files.",
            },
            "system": text("The system prompt."),
            "tools": {
                "type": "array",
                "items": {"$ref": "#/$defs/tool"},
                "description": "The tools the agent was given.",
            },
            "model": text("The agent's model."),
            "context_window": count("The model's context window in tokens."),
            "source": {"$ref": "#/$defs/source"},
            "resumed": object(
                "Set where the session goes on from an earlier one, whose calls are not made again.",
                &["at"],
                json!({
                    "at": count("So many messages were loaded before the first call."),
                    "notes": text("The notes that the earlier session left behind."),
                }),
            ),
        }),
    )
}

fn source() -> Value {
    let counts = |description: &str| {
        json!({
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
            "description": description,
        })
    };
    object(
        "Where the session came from.",
        &[],
        json!({
            "format": text("Name of the format it was read from."),
            "skipped": counts("Records that are no part of the conversation, by type."),
            "unknown": counts("Records and blocks that were not understood, by type."),
            "warnings": counts("What was mended or cannot be trusted, in words."),
            "missing": object(
                "What every prompt held and the recording does not.",
                &[],
                json!({
                    "system_prompt": {"type": "boolean", "description": "The system prompt."},
                    "tools": {"type": "boolean", "description": "The definitions of tools that were used."},
                    "tokens": {"type": "integer", "minimum": 0, "description": "About so many tokens, by the provider's first bill."},
                }),
            ),
        }),
    )
}

/// JSON that is kept as it was written stands under `key`, or, where it holds a line break, as a
/// string under `key` with `_text` added. This adds both, of which one must be there.
fn with_json(mut object: Value, key: &str, description: &str) -> Value {
    let key_text = format!("{key}_text");
    if let Some(properties) = object["properties"].as_object_mut() {
        properties.insert(key.to_owned(), any(description));
        let instead =
            format!("The same as a string: JSON that holds a line break. Instead of `{key}`.");
        properties.insert(key_text.clone(), text(&instead));
    }
    object["oneOf"] = json!([{"required": [key]}, {"required": [key_text]}]);
    object
}

fn tool() -> Value {
    let tool = object("A tool.", &["name"], json!({"name": text("Its name.")}));
    with_json(
        tool,
        "definition",
        "Its whole definition, as the provider was given it.",
    )
}

fn message() -> Value {
    object(
        "A message. Tool uses and thinking stand in messages of the assistant, tool results in \
         those of the user.",
        &["role", "content"],
        json!({
            "role": names("Who speaks.", &[Role::User, Role::Assistant]),
            "content": {"type": "array", "items": {"$ref": "#/$defs/block"}},
            "timestamp": {
                "type": ["string", "integer"],
                "description": "RFC 3339, or milliseconds since 1970.",
            },
            "api_call": text("The provider's name for the call whose response this is. One call, one message."),
            "usage": {"$ref": "#/$defs/usage"},
            "tags": {
                "type": "array",
                "items": names("What is known about the message.", &TAGS),
            },
            "injected": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "description": "Blocks, counted from 0, that the product added to a message that a person typed.",
            },
            "compact_hint": text("What a compaction is to keep that a person asks for here, on a message tagged `phase_end`: the words behind `/compact`. The model does not read it."),
            "model": text("The model that wrote it, where that is another than the session's: messages of the assistant only."),
        }),
    )
}

const TAGS: [Tag; 10] = [
    Tag::TypedUser,
    Tag::Synthetic,
    Tag::CompactSummary,
    Tag::CompactBoundary,
    Tag::Sidechain,
    Tag::Meta,
    Tag::PhaseEnd,
    Tag::Snip,
    Tag::Orphan,
    Tag::Protected,
];

fn usage() -> Value {
    object(
        "Tokens billed for the call. The five kinds are disjoint; what is missing is zero.",
        &[],
        json!({
            "input_uncached": count("Prompt tokens neither read from nor written to the cache."),
            "cache_write_5m": count("Prompt tokens written to the five-minute cache."),
            "cache_write_1h": count("Prompt tokens written to the one-hour cache."),
            "cache_read": count("Prompt tokens read from the cache."),
            "output": count("Tokens the model wrote, thinking included."),
        }),
    )
}

/// A block: its `type` comes first.
fn block(kind: &str, description: &str, required: &[&str], properties: Value) -> Value {
    let mut all = Map::new();
    all.insert("type".to_owned(), json!({"const": kind}));
    if let Value::Object(properties) = properties {
        all.extend(properties);
    }
    let required = [&["type"], required].concat();
    object(description, &required, Value::Object(all))
}

fn text_block() -> Value {
    block(
        "text",
        "Plain text.",
        &["text"],
        json!({"text": text("The text.")}),
    )
}

fn thinking_block() -> Value {
    block(
        "thinking",
        "The model's visible reasoning.",
        &["text"],
        json!({
            "text": text("The words; empty where the provider redacted them."),
            "signature": text("The provider's proof that the words are its own."),
        }),
    )
}

fn tool_use_block() -> Value {
    let tool_use = block(
        "tool_use",
        "The model asks for a tool.",
        &["id", "name"],
        json!({
            "id": text("Pairs the use with its result."),
            "name": text("The tool's name."),
            "class": names("What kind of tool it is; told from the name if missing.", &ToolClass::ALL),
        }),
    );
    with_json(tool_use, "input", "The arguments.")
}

fn tool_result_block() -> Value {
    block(
        "tool_result",
        "The answer to a tool use.",
        &["tool_use_id", "content"],
        json!({
            "tool_use_id": text("The id of the tool use that is answered."),
            "content": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            "is_error": {"type": "boolean", "description": "Whether the tool failed."},
        }),
    )
}

fn image_block() -> Value {
    let image = block("image", "A picture.", &[], json!({}));
    with_json(
        image,
        "source",
        "Where it is: base64 data with its media type, or an address.",
    )
}

fn opaque_block() -> Value {
    let kind = json!({"kind": text("The block's own type name.")});
    let opaque = block(
        "opaque",
        "A block of a kind Proctor does not know.",
        &["kind"],
        kind,
    );
    with_json(opaque, "json", "The whole block, as recorded.")
}

fn compaction() -> Value {
    let inner = object(
        "What happened.",
        &["after"],
        json!({
            "trigger": text("What caused it, in the product's word."),
            "pre_tokens": count("The size of the context before it, as the product counts."),
            "after": {
                "description": "What stood in the context afterwards: pieces, something only the \
                    provider can read, or nobody knows.",
                "oneOf": [
                    {"enum": ["encrypted", "missing"]},
                    object("Pieces, in order.", &["replaced"], json!({
                        "replaced": {"type": "array", "items": {"$ref": "#/$defs/piece"}},
                    })),
                ],
            },
        }),
    );
    object(
        "A compaction that the recorded product made before the message that follows.",
        &["compaction"],
        json!({"compaction": inner}),
    )
}

fn piece() -> Value {
    let range = object(
        "Messages from `start` up to, but not including, `end`; the first message is 0.",
        &["start", "end"],
        json!({"start": count("The first message."), "end": count("The message after the last.")}),
    );
    let edited = object(
        "One block of a message says something else now.",
        &["message", "block", "text"],
        json!({
            "message": count("Index of the message."),
            "block": count("Index of the block in it."),
            "text": text("What the block now says."),
        }),
    );
    json!({
        "description": "A piece of a context after a compaction.",
        "oneOf": [
            object("These messages stayed.", &["kept"], json!({"kept": range})),
            object("This message stayed, changed.", &["edited"], json!({"edited": edited})),
            object(
                "The product wrote this.",
                &["written"],
                json!({"written": {"$ref": "#/$defs/message"}}),
            ),
        ],
    })
}
