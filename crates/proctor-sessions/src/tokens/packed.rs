//! A size in half the memory.

use super::Size;
use crate::units::Tokens;

/// A [`Size`] in half the memory: what has no exact part and fits 32 bits, as nearly all sizes do.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedSize(Packed);

#[derive(Debug, Clone, PartialEq)]
enum Packed {
    Small { tokens: u32, chars: u32, bytes: u32 },
    Large(Box<Size>),
}

impl From<Size> for PackedSize {
    fn from(size: Size) -> Self {
        let parts = [size.tokens.0, size.chars, size.bytes].map(u32::try_from);
        match parts {
            [Ok(tokens), Ok(chars), Ok(bytes)] if size.exact == Tokens::ZERO => {
                Self(Packed::Small {
                    tokens,
                    chars,
                    bytes,
                })
            }
            _ => Self(Packed::Large(Box::new(size))),
        }
    }
}

impl PackedSize {
    /// The size.
    pub fn get(&self) -> Size {
        match &self.0 {
            Packed::Small {
                tokens,
                chars,
                bytes,
            } => Size {
                tokens: Tokens(u64::from(*tokens)),
                exact: Tokens::ZERO,
                chars: u64::from(*chars),
                bytes: u64::from(*bytes),
            },
            Packed::Large(size) => **size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_unpacked_as_it_was_packed() {
        let numbers = [0, 7, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX];
        for [tokens, exact, chars, bytes] in numbers.iter().flat_map(|one| {
            let of = |at: usize| std::array::from_fn(|it| if it == at { *one } else { 3 });
            (0..4).map(of).chain([[*one; 4]])
        }) {
            let size = Size {
                tokens: Tokens(tokens),
                exact: Tokens(exact),
                chars,
                bytes,
            };
            assert_eq!(PackedSize::from(size).get(), size);
        }
        assert_eq!(size_of::<PackedSize>(), 16);
    }
}
