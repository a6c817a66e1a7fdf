//! A size in half the memory.

use super::Size;
use crate::units::Tokens;

/// The [`Size`] of one message in half the memory. A number of four thousand millions or more is kept as the largest
/// that fits: no message is of so many bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedSize {
    tokens: u32,
    scaled: u32,
    billed: u32,
    chars: u32,
    bytes: u32,
}

impl From<Size> for PackedSize {
    fn from(size: Size) -> Self {
        Self {
            tokens: packed(size.tokens.0),
            scaled: packed(size.scaled.0),
            billed: packed(size.billed.0),
            chars: packed(size.chars),
            bytes: packed(size.bytes),
        }
    }
}

fn packed(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl PackedSize {
    /// The size.
    pub fn get(&self) -> Size {
        Size {
            tokens: Tokens(self.tokens.into()),
            scaled: Tokens(self.scaled.into()),
            billed: Tokens(self.billed.into()),
            chars: self.chars.into(),
            bytes: self.bytes.into(),
        }
    }
}
