//! Finds the parts of every prompt that a recording leaves out: many products write down neither
//! the system prompt nor the tools that their model got.

use crate::prelude::*;
use proctor_sessions::Missing;

/// The missing parts of a session's prompts; `None` if nothing is missing.
///
/// Its size is what the provider billed for the prompt of the first call that has a bill, less a
/// quarter of the characters that were recorded of that prompt. A compaction before that call
/// leaves nothing to compare with.
pub(super) fn missing(parts: &SessionParts) -> Option<Missing> {
    // An agent that never used a tool may have had none.
    let acts = parts.messages.iter().any(|message| message.tool_uses().next().is_some());
    let missing = Missing {
        system_prompt: parts.system.is_none(),
        tools: parts.tools.is_empty() && acts,
        tokens: size(parts),
    };
    (missing.system_prompt || missing.tools).then_some(missing)
}

fn size(parts: &SessionParts) -> Option<Tokens> {
    // The first message of the model's that has a bill.
    let mut messages = parts.messages.iter().enumerate();
    let (at, billed) = messages.find_map(|(at, message)| {
        let answer = message.role() == Role::Assistant && !message.has_tag(Tag::Synthetic);
        let billed = message.details.usage.filter(|_| answer)?.prompt();
        (billed > Tokens::ZERO).then_some((at, billed))
    })?;
    if parts.compactions.first().is_some_and(|item| item.at <= at) {
        return None;
    }
    let said = parts.messages[..at].iter().flat_map(|message| message.model_text());
    let texts = parts.system.iter().chain(parts.tools.iter().map(ToolSchema::text));
    let chars = texts.chain(said).map(|text| text.chars().count() as u64);
    Some(billed - Tokens(chars.sum::<u64>() / 4))
}
