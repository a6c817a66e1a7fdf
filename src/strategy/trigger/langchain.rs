//! LangChain's own estimate of a prompt.

use crate::context::Entry;
use crate::session::{ContentBlock, Message, Role};

/// Tokens for the frame of a message: `extra_tokens_per_message`.
const FRAME: u64 = 3;

/// Tokens for an image: `tokens_per_image`.
const IMAGE: u64 = 85;

/// Characters of Python's `repr` of a tool call beside its name, arguments and id.
const CALL: u64 = 53;

/// `count_tokens_approximately` of messages as OpenAI's chat API has them (langchain-core 1.7.2,
/// `langchain_core/messages/utils.py`): characters / 4, rounded up per message, and three tokens for its frame. A message
/// with tool results is one of theirs per result. Thinking is not part of them. Arguments count as JSON, where LangChain
/// counts Python's `repr` of them: the same but for quotes and separators.
///
/// Looks at every message.
pub(super) fn tokens(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| of_message(&entry.message)).sum()
}

fn of_message(message: &Message) -> u64 {
    let (mut tokens, mut rest, mut calls, mut images) = (0, 0, 0, 0);
    let mut has_rest = false;
    for (block, text) in message.content().iter().zip(message.model_text()) {
        let chars = length(text);
        match block {
            ContentBlock::ToolResult(result) => {
                let role = "tool".len() as u64 + length(&result.tool_use_id);
                tokens += FRAME + (chars + role).div_ceil(4);
                let pictures = result.content.iter();
                images += pictures.filter(|part| matches!(part, ContentBlock::Image(_))).count();
                continue;
            }
            ContentBlock::Thinking(_) => continue,
            ContentBlock::ToolUse(call) => {
                calls += 1;
                rest += CALL + length(&call.name) + length(&call.id) + length(call.input.as_str());
            }
            ContentBlock::Image(_) => images += 1,
            ContentBlock::Text(_) | ContentBlock::Opaque(_) => rest += chars,
        }
        has_rest = true;
    }
    if has_rest || tokens == 0 {
        let role = match message.role() {
            Role::Assistant => "assistant".len() as u64,
            Role::User => "user".len() as u64,
        };
        // The calls stand in a list.
        tokens += FRAME + (rest + role + 2 * calls).div_ceil(4);
    }
    tokens + IMAGE * images as u64
}

/// In characters.
fn length(text: &str) -> u64 {
    text.chars().count() as u64
}
