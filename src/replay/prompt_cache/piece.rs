//! The blocks of messages: what each says, as a hash, and how large it is.

use std::hash::BuildHasher;
use std::mem::discriminant;
use std::sync::Arc;

use derive_more::{Add, Sum};
use foldhash::fast::FixedState;

use crate::context::Entry;
use crate::session::{ContentBlock, Role, ToolSchema};
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;

/// One block of a prompt: what it says, as a hash, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptPiece {
    pub(super) content: u64,
    pub(super) size: CountedSize,
    pub(super) run: Option<ToolRun>,
}

/// The parts of a size that a [`Scale`] reads, kept small: a long session has millions of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, Sum)]
pub(super) struct CountedSize {
    scaled: Tokens,
    billed: Tokens,
}

impl CountedSize {
    pub(super) fn wrapping_add(self, other: Self) -> Self {
        Self {
            scaled: Tokens(self.scaled.0.wrapping_add(other.scaled.0)),
            billed: Tokens(self.billed.0.wrapping_add(other.billed.0)),
        }
    }

    pub(super) fn wrapping_sub(self, other: Self) -> Self {
        Self {
            scaled: Tokens(self.scaled.0.wrapping_sub(other.scaled.0)),
            billed: Tokens(self.billed.0.wrapping_sub(other.billed.0)),
        }
    }
}

impl From<Size> for CountedSize {
    fn from(Size { scaled, billed, .. }: Size) -> Self {
        Self { scaled, billed }
    }
}

impl From<CountedSize> for Size {
    fn from(CountedSize { scaled, billed }: CountedSize) -> Self {
        Self { scaled, billed, ..Self::default() }
    }
}

/// How a block counts towards the look-back: a run of tool uses takes one position, and so does a run
/// of tool results. Every other block takes a position of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolRun {
    ToolUses,
    ToolResults,
}

impl ToolRun {
    fn of(block: &ContentBlock) -> Option<Self> {
        match block {
            ContentBlock::ToolUse(_) => Some(Self::ToolUses),
            ContentBlock::ToolResult(_) => Some(Self::ToolResults),
            ContentBlock::Text(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::Image(_)
            | ContentBlock::Opaque(_) => None,
        }
    }
}

impl PromptPiece {
    /// A piece that says `text`.
    pub fn new(text: impl AsRef<[u8]>, tokens: Tokens) -> Self {
        // Hashes are compared with each other and never written down.
        let content = FixedState::default().hash_one(text.as_ref());
        let size = CountedSize { scaled: tokens, billed: Tokens::ZERO };
        Self { content, size, run: None }
    }
}

/// The blocks of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockList {
    pub(super) blocks: Vec<PromptPiece>,
    pub(super) is_user: bool,
}

impl BlockList {
    /// The blocks of a message whose sender is the user, or is not.
    pub fn new(blocks: Vec<PromptPiece>, role: Role) -> Self {
        Self { blocks, is_user: role == Role::User }
    }

    /// The blocks of an entry.
    pub fn of(entry: &Entry, counts: &CountedTexts) -> Self {
        let message = &entry.message;
        let texts = message.model_text();
        let content = message.content().iter();
        // One block has the size of its entry: most do not have to be looked up.
        let blocks = if let [_] = texts {
            vec![entry.size()]
        } else {
            let factor = message.details.factor;
            let mut sizes: Vec<Size> =
                message.blocks().map(|b| counts.block(&b).billed_by(factor)).collect();
            // What no text shows, thinking for one, comes first in its message.
            let behind: Size = sizes.iter().skip(1).copied().sum();
            if let Some(first) = sizes.first_mut() {
                *first = entry.size() - behind;
            }
            sizes
        };
        let user = message.role() == Role::User;
        // Of hidden thinking only the size is known: thoughts of different sizes are different.
        let hidden = message.details.hidden.0;
        let blocks = content.zip(texts).zip(blocks).map(|((block, text), size)| PromptPiece {
            content: FixedState::default().hash_one((discriminant(block), &**text, user, hidden)),
            size: size.into(),
            run: ToolRun::of(block),
        });
        Self::new(blocks.collect(), message.role())
    }

    /// The tools and the system prompt, a piece each, as far as they are there.
    pub fn head(
        tools: &[ToolSchema],
        system: Option<&Arc<str>>,
        counts: &CountedTexts,
    ) -> Vec<PromptPiece> {
        let texts: Vec<&str> = tools.iter().map(|tool| &**tool.text()).collect();
        let sizes = tools.iter().map(|tool| counts.schema(tool.text()));
        let tools = (!tools.is_empty()).then(|| PromptPiece {
            content: FixedState::default().hash_one(texts),
            size: sizes.sum::<Size>().into(),
            run: None,
        });
        let prompt = system.map(|text| PromptPiece::new(&**text, counts.size(text).tokens));
        tools.into_iter().chain(prompt).collect()
    }

    /// Tokens of all blocks, as counted.
    pub fn tokens(&self) -> Tokens {
        self.blocks.iter().map(|piece| piece.size.scaled).sum()
    }
}
