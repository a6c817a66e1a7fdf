//! Attachments: what Claude Code slips into the next user message, and what it only notes.
//!
//! An `attachment` record holds one object with a `type`. Some types carry text that the model
//! read; the product wraps it in words of its own, which are not recorded, so that the imported
//! text is a little shorter than what was sent. One table says which field is read.

use super::super::prelude::*;
use crate::session::Image;

/// Where the text of a type of attachment stands: the strings at these JSON pointers, one under the
/// other, if the last one says anything. A list gives one line per item; an object is given as JSON.
const TEXTS: &[(&str, &[&str])] = &[
    ("agent_listing_delta", &["/addedLines"]),
    ("agent_mention", &["/agentType"]),
    (
        "async_hook_response",
        &["/response/hookSpecificOutput/additionalContext"],
    ),
    ("compact_file_reference", &["/filename"]),
    ("critical_system_reminder", &["/content"]),
    ("current_session_memory", &["/path", "/content"]),
    ("date_change", &["/newDate"]),
    ("deferred_tools_delta", &["/addedLines"]),
    ("diagnostics", &["/files"]),
    ("directory", &["/path", "/content"]),
    ("edited_text_file", &["/filename", "/snippet"]),
    ("edited_image_file", &["/filename"]),
    ("hook_additional_context", &["/content"]),
    ("hook_blocking_error", &["/blockingError/blockingError"]),
    ("invoked_skills", &["/skills"]),
    ("mcp_instructions_delta", &["/addedBlocks"]),
    ("mcp_resource", &["/uri", "/content"]),
    ("nested_memory", &["/path", "/content/content"]),
    ("opened_file_in_ide", &["/filename"]),
    ("output_style", &["/style"]),
    ("pdf_reference", &["/filename"]),
    ("plan_file_reference", &["/planFilePath", "/planContent"]),
    ("plan_mode", &["/planFilePath"]),
    ("plan_mode_exit", &["/planFilePath"]),
    ("plan_mode_reentry", &["/content", "/planFilePath"]),
    ("relevant_memories", &["/memories"]),
    ("selected_lines_in_ide", &["/filename", "/content"]),
    ("skill_listing", &["/content"]),
    ("skill_discovery", &["/skills"]),
    ("task_reminder", &["/content"]),
    ("task_status", &["/description", "/status"]),
    ("teammate_mailbox", &["/messages"]),
    ("todo", &["/content"]),
    ("todo_reminder", &["/content"]),
];

/// Types of which the model sees nothing.
const HIDDEN: &[&str] = &[
    "already_read_file",
    "auto_mode",
    "auto_mode_exit",
    "budget_usd",
    "command_permissions",
    "dynamic_skill",
    "hook_cancelled",
    "hook_error_during_execution",
    "hook_non_blocking_error",
    "hook_permission_decision",
    "hook_stopped_continuation",
    "hook_system_message",
    "max_turns_reached",
    "output_token_usage",
    "structured_output",
    "team_context",
    "token_usage",
    "ultrathink_effort",
];

/// What became of an attachment.
#[derive(Debug)]
pub(super) enum Attached {
    /// The model read these.
    Seen(Vec<ContentBlock>, Tag),
    /// The model read nothing of it.
    Hidden,
    /// The type is not in the table.
    Unknown,
}

/// What the model saw of an attachment of type `kind`.
pub(super) fn attached(kind: &str, attachment: &Value) -> Attached {
    let known = TEXTS.iter().find(|(name, _)| *name == kind);
    match (kind, known) {
        (_, Some((_, pointers))) => seen(text(attachment, pointers)),
        // A hook's output is sent to the model where these hooks ran.
        ("hook_success", _) => match attachment["hookEvent"].as_str() {
            Some("SessionStart" | "UserPromptSubmit" | "SubagentStart") => {
                seen(text(attachment, &["/content"]))
            }
            _ => Attached::Hidden,
        },
        ("file", _) => match picture(attachment) {
            Some(block) => Attached::Seen(vec![block], Tag::Meta),
            None => seen(text(attachment, &["/filename", "/content/file/content"])),
        },
        ("queued_command", _) => queued(attachment),
        _ if HIDDEN.contains(&kind) => Attached::Hidden,
        _ => Attached::Unknown,
    }
}

fn seen(text: Option<String>) -> Attached {
    match text {
        Some(text) => Attached::Seen(vec![ContentBlock::Text(text.into())], Tag::Meta),
        None => Attached::Hidden,
    }
}

/// The strings at the pointers, or none where the last of them is empty.
fn text(attachment: &Value, pointers: &[&str]) -> Option<String> {
    let at = |pointer: &&str| attachment.pointer(pointer).map(plain).unwrap_or_default();
    let parts: Vec<String> = pointers.iter().map(at).collect();
    let says = parts.last().is_some_and(|body| !body.is_empty());
    says.then(|| parts.join("\n").trim_start_matches('\n').to_owned())
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
    let data = file.get("base64")?;
    let media = file.get("type").or_else(|| file.get("mediaType"))?;
    let source = serde_json::json!({"type": "base64", "media_type": media, "data": data});
    Some(image(&source))
}

fn image(source: &Value) -> ContentBlock {
    let source = JsonText::of(source);
    ContentBlock::Image(Image { source })
}

/// A prompt that waited in the queue: typed by a person, unless another origin is recorded.
fn queued(attachment: &Value) -> Attached {
    let at = |pointer: &str| attachment.pointer(pointer).and_then(Value::as_str);
    let typed = at("/commandMode").is_none_or(|mode| mode == "prompt")
        && at("/origin/kind").is_none_or(|origin| origin == "human")
        && attachment["isMeta"] != true;
    let tag = if typed { Tag::TypedUser } else { Tag::Meta };
    let blocks: Vec<ContentBlock> = match attachment.get("prompt") {
        Some(Value::String(text)) if !text.is_empty() => {
            vec![ContentBlock::Text(text.as_str().into())]
        }
        Some(Value::Array(items)) => items.iter().filter_map(prompted).collect(),
        _ => Vec::new(),
    };
    if blocks.is_empty() {
        return Attached::Hidden;
    }
    Attached::Seen(blocks, tag)
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
        let kind = value["type"]
            .as_str()
            .expect("test attachments have a type");
        let got = match attached(kind, &value) {
            Attached::Hidden => "-".to_owned(),
            Attached::Unknown => "?".to_owned(),
            Attached::Seen(blocks, got) => {
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
        check(
            r#"{"type":"hook_additional_context","content":["one","two"]}"#,
            "one\ntwo",
            meta,
        );
        check(
            r#"{"type":"hook_success","hookEvent":"SessionStart","content":"hi"}"#,
            "hi",
            meta,
        );
        check(
            r#"{"type":"hook_success","hookEvent":"PostToolUse","content":"hi"}"#,
            "-",
            meta,
        );
        check(
            r#"{"type":"hook_success","hookEvent":"SessionStart","content":""}"#,
            "-",
            meta,
        );
        check(
            r#"{"type":"task_reminder","content":[],"itemCount":0}"#,
            "-",
            meta,
        );
        check(
            r#"{"type":"task_reminder","content":[{"id":"1"}]}"#,
            r#"{"id":"1"}"#,
            meta,
        );
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
        check(
            r#"{"type":"command_permissions","allowedTools":[]}"#,
            "-",
            meta,
        );
        check(r#"{"type":"brand_new","content":"x"}"#, "?", meta);
    }
}
