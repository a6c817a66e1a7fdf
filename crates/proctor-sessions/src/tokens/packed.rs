//! A size in half the memory.

use super::Size;
use crate::units::Tokens;

/// A [`Size`] in half the memory: one that is scaled or billed as a whole, and of small numbers, as nearly all are.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedSize(Packed);

#[derive(Debug, Clone, PartialEq)]
enum Packed {
    Scaled(PackedNumbers),
    Billed(PackedNumbers),
    Large(Box<Size>),
}

/// Four numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PackedNumbers([u8; 15]);

/// Bits of each of them.
const BITS: u32 = 30;

impl PackedNumbers {
    /// `None` if one of them is too large.
    fn of(numbers: [u64; 4]) -> Option<Self> {
        let small = numbers.iter().all(|number| number >> BITS == 0);
        let all = numbers.iter().rev().fold(0_u128, |all, one| all << BITS | u128::from(*one));
        let mut bytes = [0; 15];
        bytes.copy_from_slice(&all.to_le_bytes()[..15]);
        small.then_some(Self(bytes))
    }

    fn get(self) -> [u64; 4] {
        let mut bytes = [0; 16];
        bytes[..15].copy_from_slice(&self.0);
        let mut all = u128::from_le_bytes(bytes);
        std::array::from_fn(|_| {
            let number = all & ((1 << BITS) - 1);
            all >>= BITS;
            u64::try_from(number).unwrap_or_default()
        })
    }
}

impl From<Size> for PackedSize {
    fn from(size: Size) -> Self {
        let numbers = PackedNumbers::of([size.tokens.0, size.chars, size.bytes, size.billed.0]);
        Self(match numbers {
            Some(numbers) if size.scaled == size.tokens && size.billed == Tokens::ZERO => {
                Packed::Scaled(numbers)
            }
            Some(numbers) if size.scaled == Tokens::ZERO => Packed::Billed(numbers),
            _ => Packed::Large(Box::new(size)),
        })
    }
}

impl PackedSize {
    /// The size.
    pub fn get(&self) -> Size {
        let (numbers, is_scaled) = match &self.0 {
            Packed::Scaled(numbers) => (numbers, true),
            Packed::Billed(numbers) => (numbers, false),
            Packed::Large(size) => return **size,
        };
        let [tokens, chars, bytes, billed] = numbers.get();
        Size {
            tokens: Tokens(tokens),
            scaled: Tokens(if is_scaled { tokens } else { 0 }),
            billed: Tokens(billed),
            chars,
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_unpacked_as_it_was_packed() {
        let numbers = [0, 7, (1 << BITS) - 1, 1 << BITS, u64::MAX];
        for [tokens, scaled, billed, chars, bytes] in numbers.iter().flat_map(|one| {
            let of = |at: usize| std::array::from_fn(|it| if it == at { *one } else { 3 });
            (0..5).map(of).chain([[*one; 5]])
        }) {
            let size = Size {
                tokens: Tokens(tokens),
                scaled: Tokens(scaled),
                billed: Tokens(billed),
                chars,
                bytes,
            };
            assert_eq!(PackedSize::from(size).get(), size);
        }
        assert_eq!(size_of::<PackedSize>(), 16);
    }
}
