//! Seeded draws for resampling: the same numbers on every platform.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of draws for one purpose.
#[derive(Debug)]
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    /// The stream of `seed` for `purpose` (its first 24 bytes): two purposes share no draw.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        for (slot, byte) in key[8..].iter_mut().zip(purpose.bytes()) {
            *slot = byte;
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// 64 fair coins.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// An index below `length`, by the high half of a product; its bias is below `length / 2⁶⁴`.
    #[cfg(test)]
    pub(crate) fn index(&mut self, length: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * length as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }
}
