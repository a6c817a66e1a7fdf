//! Anthropic's messages API: requests, logs of them, and bare lists of messages.
//!
//! Beside `messages` are `system` (a text or a list of texts), `tools` and `model` as in a request,
//! and in a log perhaps `response` or `usage`. Blocks of tools that the provider runs itself, and
//! documents, are kept as they are. What the provider compacts itself is an event.
//!
//! The client goes on sending the whole history. A `compaction` block in a message of the model's
//! represents everything before it (beta `compact-2026-01-12`); `context_management` of a response
//! says how many of the oldest tool results the model did not see (beta
//! `context-management-2025-06-27`).

use super::kept_context::{CLEARED, Edits};
use super::prelude::*;

const SHAPE: ConversationShape = ConversationShape::of_messages("messages").of_api(Api::Messages);

pub(super) const IMPORTER: Importer =
    Importer::new("anthropic", Detect::Api(Api::Messages), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, &read)
}

pub(super) fn read(conversation: Conversation<'_>, assembler: &mut Assembler) {
    let (mut around, messages) = (conversation.around, conversation.messages);
    around.header(assembler);
    let system = around.take_blocks("system", Speaker::User, assembler);
    assembler.add_system(&system);
    let edits = around.inner("context_management").objects("edits");
    let excluded = edits.flat_map(|mut edit| edit.items("exclude_tools"));
    let kept: Tools = excluded.filter_map(content::text).collect();
    let time = around.take_time("timestamp", assembler);
    let response = around.take_object("response");
    // Counters beside messages without a response are those of the last message.
    let mut usage = response.is_none().then(|| around.take("usage")).flatten();
    let last = messages.len().saturating_sub(1);
    for (at, raw) in messages.into_iter().enumerate() {
        let usage = if at == last { &mut usage } else { &mut None };
        message(raw, &kept, usage, assembler);
    }
    if usage.is_some() {
        assembler.skip("usage without a response");
    }
    if let Some(response) = response {
        assistant(response, time, &kept, None, assembler);
    }
    around.count_left("key", assembler);
}

fn message(raw: &RawValue, kept: &Tools, usage: &mut Option<&RawValue>, assembler: &mut Assembler) {
    let Some(mut object) = Object::read(raw) else {
        return keep_unread("malformed", raw, assembler);
    };
    let role = object.take_text("role");
    match role.as_deref() {
        Some("assistant") => assistant(object, None, kept, usage.take(), assembler),
        Some(role @ ("user" | "system")) => {
            let blocks = object.take_blocks("content", Speaker::User, assembler);
            if role == "system" {
                assembler.warn(LATE_SYSTEM);
            }
            let timestamp = object.take_time("timestamp", assembler);
            object.count_left("message key", assembler);
            assembler.hear_user(blocks, timestamp, role == "system");
        }
        role => keep_unread(role.unwrap_or("without role"), raw, assembler),
    }
}

/// A message of the model's: of a request, or a whole response.
fn assistant(
    mut object: Object<'_>,
    time: When,
    kept: &Tools,
    billed: Option<&RawValue>,
    assembler: &mut Assembler,
) {
    let mut blocks = object.take_blocks("content", Speaker::Assistant, assembler);
    let own = object.take("usage").or(billed);
    let compacted = summed_up(&mut blocks, own, assembler);
    let usage = assembler.usage(own, CachedTokens::Apart);
    applied(&mut object, kept, usage.as_ref(), assembler);
    let (id, model) = (object.take_text("id"), object.take_text("model"));
    let record = ModelRecord {
        iterations: own.and_then(|raw| Iterations::of(&value(raw))),
        ..ModelRecord::of(blocks, object.take_time("timestamp", assembler).or(time))
            .by(id, model, usage)
    };
    object.first(&["role"]);
    object.first(&["type"]);
    object.count_left("message key", assembler);
    // A response that paused there says nothing else.
    if !(compacted && record.blocks.is_empty()) {
        assembler.answers(record);
    }
}

/// The tools whose results a request asks the API never to clear.
type Tools = BTreeSet<Arc<str>>;

/// Takes the compaction blocks out of a message that the model is about to add, and keeps the
/// last one as an event. Returns whether one was there.
pub(super) fn summed_up(blocks: &mut Blocks, usage: Option<&RawValue>, to: &mut Assembler) -> bool {
    let compactions = blocks.extract_if(
        ..,
        |block| matches!(block, ContentBlock::Opaque(opaque) if &*opaque.kind == "compaction"),
    );
    let Some(ContentBlock::Opaque(found)) = compactions.last() else { return false };
    let Some(after) = left(&found.json.value()) else {
        to.skip("compaction that failed");
        return true;
    };
    to.summary_usage = usage.and_then(|raw| summary_usage(&value(raw)));
    let before = to.summary_usage.map(|usage| usage.prompt());
    to.compacts(Some("compaction".into()), before, after);
    true
}

/// The context that a compaction block leaves; `None` if the compaction failed.
fn left(block: &Value) -> Option<CompactedTo> {
    let texts: Vec<&str> = match &block["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    };
    let text = texts.join("\n");
    if !text.is_empty() {
        return Some(CompactedTo::Replaced(vec![Recorded::summary(text)]));
    }
    block["encrypted_content"].is_string().then_some(CompactedTo::Encrypted)
}

/// The bill of the call that wrote the summary: the counters of a response leave it out, and its
/// `iterations` show it.
fn summary_usage(usage: &Value) -> Option<Usage> {
    let mut iterations = usage["iterations"].as_array()?.iter();
    let own = iterations.rfind(|iteration| iteration["type"] == "compaction")?;
    Some(usage_in(own, CachedTokens::Apart, &mut Source::default()))
}

/// Reads the edits that the provider applied to the response's own request.
fn applied(said: &mut Object<'_>, kept: &Tools, usage: Option<&Usage>, assembler: &mut Assembler) {
    for edit in said.inner("context_management").items("applied_edits") {
        let edit = value(edit);
        let kind = edit["type"].as_str().unwrap_or("untyped");
        match edit["cleared_tool_uses"].as_u64() {
            Some(0) => {}
            Some(results) if kind.starts_with("clear_tool_uses") => {
                let freed = edit["cleared_input_tokens"].as_u64().unwrap_or_default();
                let before = usage.map(|usage| Tokens(usage.prompt().0.saturating_add(freed)));
                clear(kind, results, before, kept, assembler);
            }
            _ => assembler.skip(&format!("edit {kind}")),
        }
    }
}

/// The oldest results of this number were cleared before the call that comes next.
fn clear(kind: &str, count: u64, before: Option<Tokens>, kept: &Tools, assembler: &mut Assembler) {
    let at = assembler.flush();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut edits = Edits::new();
    let oldest = assembler.answered().filter(|(name, _)| !kept.contains(*name));
    let mut cleared = 0;
    for (_, (message, block)) in oldest.take(count) {
        edits.entry(message).or_default().insert(block, CLEARED.into());
        cleared += 1;
    }
    let after = match kept_context::context(assembler.compactions(), at) {
        Some(context) if cleared == count => {
            let edited = kept_context::joined(kept_context::edited(&context, &edits));
            // The history is sent whole each time, and cleared again each time.
            if edited == kept_context::joined(context) {
                return;
            }
            CompactedTo::Replaced(edited)
        }
        _ => CompactedTo::Missing,
    };
    assembler.compacts(Some(kind.into()), before, after);
}
