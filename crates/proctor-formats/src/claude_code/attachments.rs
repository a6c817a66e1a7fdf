//! Attachments: what Claude Code slips into the next user message, and what it only notes.
//!
//! An `attachment` record holds one object with a `type`. Some types carry text that the model
//! read; the product wraps it in words of its own, which older versions do not record, so that the imported
//! text is a little shorter than what was sent. One table says which field is read. Newer versions record what
//! was sent (`rendered`).

use crate::prelude::*;
use proctor_sessions::wire::images::{embedded, image};

/// Types of attachments with the JSON pointers to their texts, one type per line.
const TYPES: &str = include_str!("attachments.txt");

/// The JSON pointers to the text of a type; an empty list where the model sees nothing of it.
fn pointers(kind: &str) -> Option<Vec<&'static str>> {
    TYPES.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(kind)).then(|| words.collect())
    })
}

/// The use of an attachment.
pub(super) enum AttachmentUse {
    /// The model read these blocks.
    Seen(Blocks, Tag),
    /// The model read nothing of it.
    Hidden,
    /// The type is not in the table.
    Unknown,
}

/// Reads the part of an attachment of type `kind` that the model saw, where a record says what was sent.
pub(super) fn rendered(kind: &str, sent: &Value) -> Option<AttachmentUse> {
    if matches!(kind, "queued_command" | "file") {
        return None;
    }
    let messages = sent.as_array()?.iter();
    let texts = messages.map(|one| one["content"].as_str().filter(|text| !text.is_empty()));
    let blocks: Option<Blocks> = texts.map(|text| Some(ContentBlock::Text(text?.into()))).collect();
    Some(seen(blocks.filter(|blocks| !blocks.is_empty())?, Tag::Meta))
}

/// Reads the part of an attachment of type `kind` that the model saw.
pub(super) fn attached(kind: &str, attachment: &Value) -> AttachmentUse {
    let block = match kind {
        "queued_command" => return queued(attachment),
        "file" => picture(attachment)
            .or_else(|| text(attachment, &["/filename", "/content/file/content"])),
        // The output of these hooks is sent to the model.
        "hook_success" => match attachment["hookEvent"].as_str() {
            Some("SessionStart" | "UserPromptSubmit" | "SubagentStart") => {
                text(attachment, &["/content"])
            }
            _ => None,
        },
        _ => match pointers(kind) {
            Some(pointers) => text(attachment, &pointers),
            None => return AttachmentUse::Unknown,
        },
    };
    seen(Vec::from_iter(block), Tag::Meta)
}

fn seen(blocks: Blocks, tag: Tag) -> AttachmentUse {
    if blocks.is_empty() {
        return AttachmentUse::Hidden;
    }
    AttachmentUse::Seen(blocks, tag)
}

/// The strings at the pointers, or none where the last of them is empty.
fn text(attachment: &Value, pointers: &[&str]) -> Option<ContentBlock> {
    let values = pointers.iter().map(|pointer| attachment.pointer(pointer));
    let parts: Vec<String> = values.map(|value| value.map(plain).unwrap_or_default()).collect();
    parts.last().filter(|body| !body.is_empty())?;
    Some(ContentBlock::Text(parts.join("\n").trim_start_matches('\n').into()))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn picture(attachment: &Value) -> Option<ContentBlock> {
    let file = attachment.pointer("/content/file")?;
    let media = file.get("type").or_else(|| file.get("mediaType"))?;
    Some(image(&embedded(media, file.get("base64")?)))
}

/// A prompt that waited in the queue: typed by a person, unless another origin is recorded.
fn queued(attachment: &Value) -> AttachmentUse {
    let typed = attachment["commandMode"].as_str().is_none_or(|mode| mode == "prompt")
        && attachment["origin"]["kind"].as_str().is_none_or(|origin| origin == "human")
        && attachment["isMeta"] != true;
    let blocks = match attachment.get("prompt") {
        Some(Value::String(text)) if !text.is_empty() => {
            vec![ContentBlock::Text(text.as_str().into())]
        }
        Some(Value::Array(items)) => items.iter().filter_map(prompted).collect(),
        _ => Vec::new(),
    };
    seen(blocks, if typed { Tag::TypedUser } else { Tag::Meta })
}

/// A part of a prompt.
fn prompted(item: &Value) -> Option<ContentBlock> {
    match (item["type"].as_str(), item["text"].as_str()) {
        (Some("image"), _) => item.get("source").map(image),
        (_, Some(text)) => Some(ContentBlock::Text(text.into())),
        (_, None) => Some(ContentBlock::Text(plain(item).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the attachment's first block; `-` if hidden, `?` if unknown.
    fn check(attachment: &str, expected: &str, tag: Tag) {
        let value: Value = serde_json::from_str(attachment).expect("test attachments are JSON");
        let kind = value["type"].as_str().expect("test attachments have a type");
        let got = match attached(kind, &value) {
            AttachmentUse::Hidden => "-".to_owned(),
            AttachmentUse::Unknown => "?".to_owned(),
            AttachmentUse::Seen(blocks, got) => {
                assert_eq!(got, tag, "{attachment}");
                match &blocks[0] {
                    ContentBlock::Text(text) => text.to_string(),
                    ContentBlock::Image(image) => image.source.as_str().to_owned(),
                    block => format!("{block:?}"),
                }
            }
        };
        assert_eq!(got, expected, "{attachment}");
    }

    #[test]
    fn shows_what_the_model_read_and_nothing_else() {
        let meta = Tag::Meta;
        check(
            r#"{"type":"nested_memory","path":"a.md","content":{"content":"Be brief."}}"#,
            "a.md\nBe brief.",
            meta,
        );
        check(
            r#"{"type":"file","filename":"a.rs","content":{"type":"text","file":{"content":"fn a() {}"}}}"#,
            "a.rs\nfn a() {}",
            meta,
        );
        check(
            r#"{"type":"file","filename":"a.png","content":{"type":"image","file":{"base64":"AAAA","type":"image/png"}}}"#,
            r#"{"type":"base64","media_type":"image/png","data":"AAAA"}"#,
            meta,
        );
        check(
            r#"{"type":"edited_text_file","filename":"a.rs","snippet":"1 x"}"#,
            "a.rs\n1 x",
            meta,
        );
        check(r#"{"type":"hook_additional_context","content":["one","two"]}"#, "one\ntwo", meta);
        check(r#"{"type":"hook_success","hookEvent":"SessionStart","content":"hi"}"#, "hi", meta);
        check(r#"{"type":"hook_success","hookEvent":"PostToolUse","content":"hi"}"#, "-", meta);
        check(r#"{"type":"hook_success","hookEvent":"SessionStart","content":""}"#, "-", meta);
        check(r#"{"type":"task_reminder","content":[],"itemCount":0}"#, "-", meta);
        check(r#"{"type":"task_reminder","content":[{"id":"1"}]}"#, r#"{"id":"1"}"#, meta);
        check(
            r#"{"type":"queued_command","prompt":"stop","commandMode":"prompt","origin":{"kind":"human"}}"#,
            "stop",
            Tag::TypedUser,
        );
        check(
            r#"{"type":"queued_command","prompt":"done","commandMode":"task-notification"}"#,
            "done",
            meta,
        );
        check(
            r#"{"type":"queued_command","prompt":[{"type":"text","text":"see"}]}"#,
            "see",
            Tag::TypedUser,
        );
        check(r#"{"type":"queued_command"}"#, "-", meta);
        check(r#"{"type":"command_permissions","allowedTools":[]}"#, "-", meta);
        check(r#"{"type":"brand_new","content":"x"}"#, "?", meta);
    }
}
