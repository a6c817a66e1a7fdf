//! Attachments: what Claude Code slips into the next user message, and what it only notes.
//!
//! An `attachment` record holds one object with a `type`. Some types carry text that the model
//! read; the product wraps it in words of its own, which are not recorded, so that the imported
//! text is a little shorter than what was sent. One table says which field is read.

use serde_json::Value;

use crate::session::{ContentBlock, Image, JsonText, Tag};

/// What the model sees of a type of attachment.
enum Rule {
    /// The strings at these JSON pointers, one under the other, if the last one says anything.
    ///
    /// A list gives one line per item; an object is given as JSON.
    Text(&'static [&'static str]),
    /// A hook's output: `/content`, if the hook ran where its output is sent to the model.
    Hook,
    /// A file: its text at these pointers, or its picture at `/content/file/base64`.
    File,
    /// A prompt that was typed while the agent worked.
    Queued,
    /// Nothing.
    Hidden,
}

const RULES: &[(&str, Rule)] = &[
    ("agent_listing_delta", Rule::Text(&["/addedLines"])),
    ("agent_mention", Rule::Text(&["/agentType"])),
    (
        "async_hook_response",
        Rule::Text(&["/response/hookSpecificOutput/additionalContext"]),
    ),
    ("auto_mode", Rule::Hidden),
    ("auto_mode_exit", Rule::Hidden),
    ("budget_usd", Rule::Hidden),
    ("command_permissions", Rule::Hidden),
    ("compact_file_reference", Rule::Text(&["/filename"])),
    ("critical_system_reminder", Rule::Text(&["/content"])),
    ("current_session_memory", Rule::Text(&["/path", "/content"])),
    ("date_change", Rule::Text(&["/newDate"])),
    ("deferred_tools_delta", Rule::Text(&["/addedLines"])),
    ("diagnostics", Rule::Text(&["/files"])),
    ("directory", Rule::Text(&["/path", "/content"])),
    ("dynamic_skill", Rule::Hidden),
    ("edited_text_file", Rule::Text(&["/filename", "/snippet"])),
    ("edited_image_file", Rule::Text(&["/filename"])),
    ("file", Rule::File),
    ("already_read_file", Rule::Hidden),
    ("hook_additional_context", Rule::Text(&["/content"])),
    (
        "hook_blocking_error",
        Rule::Text(&["/blockingError/blockingError"]),
    ),
    ("hook_cancelled", Rule::Hidden),
    ("hook_error_during_execution", Rule::Hidden),
    ("hook_non_blocking_error", Rule::Hidden),
    ("hook_permission_decision", Rule::Hidden),
    ("hook_stopped_continuation", Rule::Hidden),
    ("hook_success", Rule::Hook),
    ("hook_system_message", Rule::Hidden),
    ("invoked_skills", Rule::Text(&["/skills"])),
    ("max_turns_reached", Rule::Hidden),
    ("mcp_instructions_delta", Rule::Text(&["/addedBlocks"])),
    ("mcp_resource", Rule::Text(&["/uri", "/content"])),
    ("nested_memory", Rule::Text(&["/path", "/content/content"])),
    ("opened_file_in_ide", Rule::Text(&["/filename"])),
    ("output_style", Rule::Text(&["/style"])),
    ("output_token_usage", Rule::Hidden),
    ("pdf_reference", Rule::Text(&["/filename"])),
    (
        "plan_file_reference",
        Rule::Text(&["/planFilePath", "/planContent"]),
    ),
    ("plan_mode", Rule::Text(&["/planFilePath"])),
    ("plan_mode_exit", Rule::Text(&["/planFilePath"])),
    (
        "plan_mode_reentry",
        Rule::Text(&["/content", "/planFilePath"]),
    ),
    ("queued_command", Rule::Queued),
    ("relevant_memories", Rule::Text(&["/memories"])),
    (
        "selected_lines_in_ide",
        Rule::Text(&["/filename", "/content"]),
    ),
    ("skill_listing", Rule::Text(&["/content"])),
    ("skill_discovery", Rule::Text(&["/skills"])),
    ("structured_output", Rule::Hidden),
    ("task_reminder", Rule::Text(&["/content"])),
    ("task_status", Rule::Text(&["/description", "/status"])),
    ("team_context", Rule::Hidden),
    ("teammate_mailbox", Rule::Text(&["/messages"])),
    ("todo", Rule::Text(&["/content"])),
    ("todo_reminder", Rule::Text(&["/content"])),
    ("token_usage", Rule::Hidden),
    ("ultrathink_effort", Rule::Hidden),
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
    let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == kind) else {
        return Attached::Unknown;
    };
    match rule {
        Rule::Hidden => Attached::Hidden,
        Rule::Text(pointers) => seen(text(attachment, pointers)),
        Rule::Hook => match attachment.get("hookEvent").and_then(Value::as_str) {
            Some("SessionStart" | "UserPromptSubmit" | "SubagentStart") => {
                seen(text(attachment, &["/content"]))
            }
            _ => Attached::Hidden,
        },
        Rule::File => match picture(attachment) {
            Some(block) => Attached::Seen(vec![block], Tag::Meta),
            None => seen(text(attachment, &["/filename", "/content/file/content"])),
        },
        Rule::Queued => queued(attachment),
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
    let parts: Vec<String> = pointers
        .iter()
        .map(|pointer| attachment.pointer(pointer).map(plain).unwrap_or_default())
        .collect();
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
    Some(ContentBlock::Image(Image {
        source: JsonText::of(&source),
    }))
}

/// A prompt that waited in the queue: typed by a person, unless another origin is recorded.
fn queued(attachment: &Value) -> Attached {
    let at = |pointer: &str| attachment.pointer(pointer).and_then(Value::as_str);
    let typed = at("/commandMode").is_none_or(|mode| mode == "prompt")
        && at("/origin/kind").is_none_or(|origin| origin == "human")
        && attachment.get("isMeta").and_then(Value::as_bool) != Some(true);
    let tag = if typed { Tag::TypedUser } else { Tag::Meta };
    let blocks: Vec<ContentBlock> = match attachment.get("prompt") {
        Some(Value::String(text)) if !text.is_empty() => {
            vec![ContentBlock::Text(text.as_str().into())]
        }
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| match item.get("type").and_then(Value::as_str) {
                Some("image") => item.get("source").map(|source| {
                    ContentBlock::Image(Image {
                        source: JsonText::of(source),
                    })
                }),
                _ => match item.get("text").and_then(Value::as_str) {
                    Some(text) => Some(ContentBlock::Text(text.into())),
                    None => Some(ContentBlock::Text(plain(item).into())),
                },
            })
            .collect(),
        _ => Vec::new(),
    };
    if blocks.is_empty() {
        return Attached::Hidden;
    }
    Attached::Seen(blocks, tag)
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
