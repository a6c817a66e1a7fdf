//! What Anthropic's API did to the context before it answered: summed it up, or cleared results.
//!
//! The client goes on sending the whole history. A `compaction` block in a message of the model's
//! stands for everything before it (beta `compact-2026-01-12`); `context_management` of a
//! response says how many of the oldest tool results the model did not see (beta
//! `context-management-2025-06-27`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::session::import::assemble::Assembler;
use crate::session::import::conversations::Object;
use crate::session::import::pieces::{self, Edits};
use crate::session::{CompactedTo, ContentBlock, Message, Recorded, RecordedCompaction, Role, Tag};
use crate::units::{Tokens, Usage};

/// What stands in the place of a result that was cleared. The API does not say what it shows the
/// model: this is the text of its vendor's own product.
const CLEARED: &str = "[Old tool result content cleared]";

/// What a request asks the API to do to its context.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Tools whose results are never cleared.
    excluded: BTreeSet<Arc<str>>,
}

impl Asked {
    /// Reads the key `context_management` of a request.
    pub(super) fn of(around: &mut Object<'_>) -> Self {
        let edits = around.take_object("context_management");
        let edits = edits.and_then(|mut asked| asked.take_list("edits"));
        let excluded = edits.into_iter().flatten().filter_map(Object::read);
        Self {
            excluded: excluded
                .filter_map(|mut edit| edit.take_list("exclude_tools"))
                .flatten()
                .filter_map(|name| serde_json::from_str(name.get()).ok())
                .collect(),
        }
    }
}

/// Takes the compaction blocks out of a message that the model is about to add, and keeps the
/// last one as an event. Returns whether one was there.
pub(super) fn summed_up(
    blocks: &mut Vec<ContentBlock>,
    usage: Option<&RawValue>,
    assembler: &mut Assembler,
) -> bool {
    let mut found = None;
    blocks.retain(|block| {
        let ContentBlock::Opaque(opaque) = block else {
            return true;
        };
        if &*opaque.kind != "compaction" {
            return true;
        }
        found = Some(opaque.json.value());
        false
    });
    let Some(block) = found else {
        return false;
    };
    let Some(after) = left(&block) else {
        assembler.skip("compaction that failed");
        return true;
    };
    let usage = usage.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let compaction = RecordedCompaction {
        at: assembler.flush(),
        trigger: Some("compaction".into()),
        pre_tokens: usage.as_ref().and_then(summed_tokens),
        after,
    };
    assembler.compaction(compaction);
    true
}

/// What a compaction block stands for; nothing where the compaction failed.
fn left(block: &Value) -> Option<CompactedTo> {
    let texts: Vec<&str> = match &block["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => Vec::new(),
    };
    let text = texts.join("\n");
    if text.is_empty() {
        let is_encrypted = block["encrypted_content"].is_string();
        return is_encrypted.then_some(CompactedTo::Encrypted);
    }
    let summary = Message::text(Role::User, text).with_tags([Tag::CompactSummary]);
    Some(CompactedTo::Replaced(vec![Recorded::Written(Arc::new(
        summary,
    ))]))
}

/// The prompt of the call that wrote the summary: the counters of a response leave it out, and
/// its `iterations` tell it.
fn summed_tokens(usage: &Value) -> Option<Tokens> {
    let iterations = usage["iterations"].as_array()?.iter();
    let mut own = iterations.filter(|it| it["type"] == "compaction");
    let one = super::blocks::usage(own.next_back()?, &mut |_| {});
    Some(Tokens(one.prompt().0))
}

/// What a response says of edits that were applied to its own request.
pub(super) fn applied(
    response: &mut Object<'_>,
    asked: &Asked,
    usage: Option<&Usage>,
    assembler: &mut Assembler,
) {
    let applied = response.take_object("context_management");
    let applied = applied.and_then(|mut applied| applied.take_list("applied_edits"));
    for edit in applied.into_iter().flatten() {
        let edit: Value = serde_json::from_str(edit.get()).unwrap_or_default();
        let kind = edit["type"].as_str().unwrap_or("untyped");
        match edit["cleared_tool_uses"].as_u64() {
            Some(0) => {}
            Some(results) if kind.starts_with("clear_tool_uses") => {
                let freed = edit["cleared_input_tokens"].as_u64().unwrap_or_default();
                let before = usage.map(|usage| Tokens(usage.prompt().0.saturating_add(freed)));
                clear(kind, results, before, asked, assembler);
            }
            _ => assembler.skip(&format!("edit {kind}")),
        }
    }
}

/// The oldest results of this number were cleared before the call that comes next.
fn clear(
    kind: &str,
    results: u64,
    before: Option<Tokens>,
    asked: &Asked,
    assembler: &mut Assembler,
) {
    let at = assembler.flush();
    let results = usize::try_from(results).unwrap_or(usize::MAX);
    let mut edits = Edits::new();
    let oldest = assembler
        .answered()
        .filter(|(name, _)| !asked.excluded.contains(*name));
    let mut cleared = 0;
    for (_, (message, block)) in oldest.take(results) {
        edits
            .entry(message)
            .or_default()
            .insert(block, CLEARED.into());
        cleared += 1;
    }
    let context = pieces::context(assembler.compactions(), at);
    let after = match context {
        Some(context) if cleared == results => {
            let edited = pieces::joined(pieces::edited(context.clone(), &edits));
            // The history is sent whole each time, and cleared again each time.
            if edited == pieces::joined(context) {
                return;
            }
            CompactedTo::Replaced(edited)
        }
        _ => CompactedTo::Missing,
    };
    assembler.compaction(RecordedCompaction {
        at,
        trigger: Some(kind.into()),
        pre_tokens: before,
        after,
    });
}
