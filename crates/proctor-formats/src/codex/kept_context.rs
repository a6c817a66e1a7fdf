//! Reads the context that a compaction of Codex left, and the authors of its parts.

use crate::openai_responses::items::{self, ResponsesItem, item};
use crate::prelude::*;

/// The beginnings of user messages that the product wrote, one a line.
const INJECTED: &str = include_str!("injected.txt");

/// How many tokens of what the user typed a compaction keeps, at four bytes a token.
const TYPED_TOKENS: usize = 20_000;

/// The user's typed texts, the newest first up to the limit, in the order of typing. The message
/// that does not fit is cut in its middle.
pub(super) fn of_late(typed: &[Blocks]) -> Vec<Recorded> {
    let mut left = TYPED_TOKENS * 4;
    let mut pieces = Vec::new();
    for blocks in typed.iter().rev() {
        if left == 0 {
            break;
        }
        let text = joined_texts(blocks);
        let kept = if text.len() <= left {
            text.clone()
        } else {
            let head = text.floor_char_boundary(left / 2);
            let tail = text.ceil_char_boundary(text.len() - left / 2);
            format!("{}…{}", &text[..head], &text[tail..])
        };
        left = left.saturating_sub(text.len());
        if !kept.is_empty() {
            let blocks = vec![ContentBlock::Text(kept.into())];
            pieces.push(Recorded::written(Role::User, blocks, &[Tag::TypedUser]));
        }
    }
    pieces.reverse();
    pieces
}

/// The new context. If it holds an encrypted item, that is the summary, and only the provider can
/// read it.
pub(super) fn replacement(
    history: &[&RawValue],
    summary: Option<&str>,
    assembler: &mut Assembler,
) -> CompactedTo {
    let mut pieces = Vec::new();
    for raw in history {
        let (role, blocks, tag) = match item(raw, assembler) {
            ResponsesItem::Nothing => continue,
            ResponsesItem::Model(blocks) => (Role::Assistant, blocks, None),
            ResponsesItem::Product(blocks) => (Role::User, blocks, Some(Tag::Meta)),
            ResponsesItem::Other(blocks) => {
                // The summary is in the history too, after the words that introduce it.
                let tag = summary
                    .is_some_and(|summary| texts(&blocks).any(|text| text.ends_with(summary)))
                    .then_some(Tag::CompactSummary)
                    .or_else(|| tag_of(&blocks));
                (Role::User, blocks, tag)
            }
        };
        if blocks.iter().any(|block: &ContentBlock| matches!(block, ContentBlock::Opaque(opaque) if items::is_encrypted(&opaque.kind))) {
            return CompactedTo::Encrypted;
        }
        pieces.push(Recorded::written(role, blocks, tag.as_slice()));
    }
    CompactedTo::Replaced(pieces)
}

/// Who wrote a message of the user's role.
pub(super) fn tag_of(blocks: &[ContentBlock]) -> Option<Tag> {
    speaker(blocks, |text| INJECTED.lines().any(|start| text.trim_start().starts_with(start)))
}
