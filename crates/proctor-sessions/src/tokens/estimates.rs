//! Estimates that agents use where they have no tokeniser: a number of characters per token.

use std::sync::Arc;

use super::{Block, BlockKind, TokenCounter};
use crate::units::Tokens;

/// A number of characters (Unicode scalar values) or bytes to a token, rounded up per text.
#[derive(Debug, Clone, Copy)]
pub enum TokenEstimate {
    /// Characters divided by four.
    CharsPer4,
    /// Characters divided by three.
    CharsPer3,
    /// Bytes of UTF-8 divided by four.
    BytesPer4,
}

pub use TokenEstimate::{BytesPer4, CharsPer3, CharsPer4};

/// Four thirds of characters/4 and of 2,000 tokens per image or document, rounded up per text.
///
/// Claude Code pads its rough count by a third, so as to compact too early rather than too late:
/// `ceil(4/3 × (chars/4 + 2,000 per image or document))`. That is a third of the characters, and
/// 2,667 tokens per image or document. A document counts so where it is a block of its own;
/// inside a tool result it counts as the text it is.
#[derive(Debug, Clone, Copy)]
pub struct Padded;

impl Padded {
    /// Tokens per image or document: four thirds of 2,000, rounded up.
    pub const ATTACHMENT: Tokens = Tokens(2_667);
}

impl TokenCounter for TokenEstimate {
    fn name(&self) -> &'static str {
        match self {
            CharsPer4 => "chars/4",
            CharsPer3 => "chars/3",
            BytesPer4 => "bytes/4",
        }
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(match self {
            CharsPer4 => chars(text).div_ceil(4),
            CharsPer3 => chars(text).div_ceil(3),
            BytesPer4 => (text.len() as u64).div_ceil(4),
        })
    }
}

impl TokenCounter for Padded {
    fn name(&self) -> &'static str {
        "padded"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(chars(text).div_ceil(3))
    }

    fn count_block(
        &self,
        block: &Block<'_>,
        count: &dyn Fn(&Arc<str>) -> Tokens,
        _: Tokens,
    ) -> Tokens {
        match block.kind {
            BlockKind::Document => Self::ATTACHMENT,
            BlockKind::Text
            | BlockKind::Thinking
            | BlockKind::ToolUse { .. }
            | BlockKind::ToolResult
            | BlockKind::Image
            | BlockKind::Opaque => {
                count(block.text) + Tokens(block.images.len() as u64 * Self::ATTACHMENT.0)
            }
        }
    }
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Picture;

    #[test]
    fn round_up_and_count_characters_or_bytes() {
        for (text, chars4, chars3, bytes4) in [
            ("", 0, 0, 0),
            ("a", 1, 1, 1),
            ("abcd", 1, 2, 1),
            ("abcde", 2, 2, 2),
            ("abcdefg", 2, 3, 2),
            ("äöüß", 1, 2, 2),
        ] {
            assert_eq!(CharsPer4.count(text), Tokens(chars4), "{text}");
            assert_eq!(CharsPer3.count(text), Tokens(chars3), "{text}");
            assert_eq!(BytesPer4.count(text), Tokens(bytes4), "{text}");
            assert_eq!(Padded.count(text), Tokens(chars3), "{text}");
        }
    }

    #[test]
    fn padded_counts_an_image_and_a_document_and_not_their_data() {
        let (data, nothing) = (Arc::from("x".repeat(9_000)), Arc::from(""));
        let count = |kind, images, text| {
            let images = &[Picture::default(); 2][..images];
            let block = Block { kind, text, images };
            let count = |text: &Arc<str>| Padded.count(text);
            Padded.count_block(&block, &count, Tokens(9)).0
        };
        assert_eq!(count(BlockKind::Document, 0, &data), 2_667);
        assert_eq!(count(BlockKind::Image, 1, &nothing), 2_667);
        assert_eq!(count(BlockKind::ToolResult, 2, &data), 3_000 + 2 * 2_667);
        assert_eq!(count(BlockKind::Opaque, 0, &data), 3_000);
    }
}
