//! What a recording leaves out of every prompt: many products write down neither the system prompt
//! nor the tools that their model was given.

use crate::session::{Message, Missing, Role, Session, SessionParts, Tag, ToolSchema};
use crate::units::Tokens;

/// What is missing, of a session of these parts; nothing where all is there.
///
/// Its size is what the provider billed for the prompt of the first call that has a bill, less a
/// quarter of the characters that were recorded of that prompt. A compaction before that call
/// leaves nothing to compare with.
pub(super) fn missing(parts: &SessionParts) -> Option<Missing> {
    let mut missing = bare(parts)?;
    missing.tokens = size(parts, parts.messages.iter().map(|message| chars(message)));
    Some(missing)
}

/// The same, where the messages are cut and `whole` has the characters of each.
pub(super) fn sized(session: &mut Session, whole: impl Iterator<Item = u64>) {
    if let Some(mut missing) = session.parts.source.missing {
        missing.tokens = size(&session.parts, whole);
        session.parts.source.missing = Some(missing);
    }
}

fn bare(parts: &SessionParts) -> Option<Missing> {
    let has_uses = || {
        parts
            .messages
            .iter()
            .any(|message| message.tool_uses().next().is_some())
    };
    let missing = Missing {
        system_prompt: parts.system.is_none(),
        // An agent that never used a tool may have had none.
        tools: parts.tools.is_empty() && has_uses(),
        tokens: None,
    };
    (missing.system_prompt || missing.tools).then_some(missing)
}

/// The first message of the model's that has a bill.
pub(super) fn first_bill(parts: &SessionParts) -> Option<usize> {
    parts.messages.iter().position(|message| {
        message.role() == Role::Assistant
            && !message.has_tag(Tag::Synthetic)
            && message
                .usage
                .is_some_and(|usage| usage.prompt() > Tokens::ZERO)
    })
}

fn size(parts: &SessionParts, chars: impl Iterator<Item = u64>) -> Option<Tokens> {
    let at = first_bill(parts)?;
    if parts
        .compactions
        .first()
        .is_some_and(|first| first.at <= at)
    {
        return None;
    }
    let fixed = parts.system.iter().map(|text| text.chars().count());
    let tools = parts.tools.iter().map(ToolSchema::text);
    let fixed: usize = fixed.chain(tools.map(|text| text.chars().count())).sum();
    let said: u64 = chars.take(at).sum();
    let billed = parts.messages[at].usage.map(|usage| usage.prompt())?;
    Some(billed - Tokens((said + fixed as u64) / 4))
}

/// The characters a model reads of a message.
pub(super) fn chars(message: &Message) -> u64 {
    let texts = message.model_text().iter();
    texts.map(|text| text.chars().count() as u64).sum()
}
