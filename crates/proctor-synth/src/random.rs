//! Seeded draws: the same numbers on every platform, from ChaCha8 and integers alone.
//!
//! Nothing here calls a logarithm or a power: C libraries differ in their last bit, and one bit
//! changes a whole session. Heavy tails come from quantile tables.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::workspace::Intent;

/// A number as one of things in memory.
pub(crate) fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A stream of draws for one purpose. A clone draws from the same stream.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    draws: Rc<RefCell<ChaCha8Rng>>,
    /// Usual sizes, in percent of those of a table.
    usual_percent: u64,
}

impl Random {
    /// The stream of `seed` for `purpose` (its first 24 bytes): two purposes never share draws, so
    /// that a change in one part of a generator leaves the others as they are.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        for (slot, byte) in key[8..].iter_mut().zip(purpose.bytes()) {
            *slot = byte;
        }
        Self { draws: Rc::new(RefCell::new(ChaCha8Rng::from_seed(key))), usual_percent: 100 }
    }

    /// The same stream, in which [`Random::size`] scales what is usual.
    pub(crate) fn with_usual(mut self, percent: u64) -> Self {
        self.usual_percent = percent;
        self
    }

    /// The scale of usual sizes, in percent.
    pub(crate) fn usual_percent(&self) -> u64 {
        self.usual_percent
    }

    /// A number below `bound`, all equally likely; 0 if `bound` is 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let fair = u64::MAX - u64::MAX % bound;
        loop {
            let draw = self.draws.borrow_mut().next_u64();
            if draw < fair {
                return draw % bound;
            }
        }
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// The same in milliseconds.
    pub(crate) fn milliseconds(&self, low: u64, high: u64) -> i64 {
        i64::try_from(self.between(low, high)).unwrap_or(i64::MAX)
    }

    /// An index into something of that length; 0 if it is empty.
    pub(crate) fn index(&self, length: usize) -> usize {
        whole(self.below(length as u64))
    }

    /// A small count from `low` to `high`, both included.
    pub(crate) fn count(&self, low: usize, high: usize) -> usize {
        low + self.index(high.saturating_sub(low) + 1)
    }

    /// True in `share` of 100 draws.
    pub(crate) fn percent(&self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of `items`, which must not be empty.
    pub(crate) fn pick<T: Copy>(&self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// The index of a weight, drawn in proportion to it.
    pub(crate) fn weighted(&self, weights: &[u64]) -> usize {
        let mut draw = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if draw < *weight {
                return at;
            }
            draw -= weight;
        }
        0
    }

    /// A kind of work, drawn in proportion to its weight.
    pub(crate) fn weighted_key(&self, weights: &BTreeMap<Intent, u64>) -> Intent {
        let at = self.weighted(&weights.values().copied().collect::<Vec<_>>());
        weights.keys().nth(at).copied().unwrap_or(Intent::Read)
    }

    /// A draw from a distribution given by its quantiles: `(thousandths of a percent, value)`, both
    /// ascending, from 0 to 100,000, and linear between two rows.
    pub(crate) fn quantile(&self, table: &[(u64, u64)]) -> u64 {
        let draw = self.below(100_000);
        quantile(table, draw)
    }

    /// A size: three quarters of the draws are scaled in full, the largest twentieth not at all, so
    /// that the middle moves and the tail stays.
    pub(crate) fn size(&self, table: &[(u64, u64)]) -> usize {
        const SCALED: u64 = 75_000;
        const TAIL: u64 = 95_000;
        let draw = self.below(100_000);
        let value = quantile(table, draw);
        let of_tail = draw.clamp(SCALED, TAIL) - SCALED;
        let percent =
            (self.usual_percent * (TAIL - SCALED - of_tail) + 100 * of_tail) / (TAIL - SCALED);
        whole((value * percent / 100).max(1))
    }

    /// Puts `items` in random order.
    pub(crate) fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }

    /// `length` characters of `alphabet`.
    fn characters(&self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(self.pick(alphabet))).collect()
    }

    /// That many lower-case hexadecimal digits.
    pub(crate) fn hex(&self, length: usize) -> String {
        self.characters(b"0123456789abcdef", length)
    }

    /// That many characters of an id: those that are hard to confuse.
    pub(crate) fn id(&self, length: usize) -> String {
        self.characters(b"23456789abcdefghjkmnpqrstuvwxyz", length)
    }

    /// That many decimal digits, the first of which is not 0.
    pub(crate) fn digits(&self, length: usize) -> String {
        let first = self.characters(b"123456789", 1);
        first + &self.characters(b"0123456789", length.saturating_sub(1))
    }
}

/// Texts that were drawn: none is drawn twice.
#[derive(Debug, Default)]
pub(crate) struct Unique(BTreeSet<String>);

impl Unique {
    /// A template of a rule without slots, filled with draws; two of them where single ones run out.
    pub(crate) fn draw(&mut self, random: &Random, rule: &str) -> String {
        const TRIES: usize = 50;
        let mut text = random.draw(rule);
        for attempt in 1.. {
            if self.0.insert(text.clone()) {
                break;
            }
            text = random.draw(rule);
            if attempt >= TRIES {
                text = format!("{text} {}", random.draw(rule));
            }
        }
        text
    }
}

/// The value of a distribution at a draw.
fn quantile(table: &[(u64, u64)], draw: u64) -> u64 {
    let above = table.partition_point(|(share, _)| *share <= draw);
    match (table.get(above.wrapping_sub(1)), table.get(above)) {
        (Some((from, low)), Some((to, high))) => low + (high - low) * (draw - from) / (to - from),
        (Some((_, value)), None) | (None, Some((_, value))) => *value,
        (None, None) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_the_same_for_ever() {
        let random = Random::new(7, "test");
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1_000)).collect();
        assert_eq!(drawn, DRAWN);
        assert_ne!(Random::new(7, "other").hex(16), Random::new(7, "test").hex(16));
    }

    const DRAWN: [u64; 4] = [319, 251, 398, 765];

    #[test]
    fn quantiles_stay_within_the_table_and_meet_its_median() {
        let table = [(0, 200), (50_000, 2_600), (99_900, 50_000), (100_000, 500_000)];
        let random = Random::new(1, "quantiles");
        let mut drawn: Vec<u64> = (0..20_000).map(|_| random.quantile(&table)).collect();
        drawn.sort_unstable();
        assert!(drawn[0] >= 200 && drawn[19_999] < 500_000);
        assert!((2_300..3_400).contains(&drawn[10_000]), "{}", drawn[10_000]);
    }

    #[test]
    fn a_bound_of_nothing_is_no_panic() {
        let random = Random::new(1, "edge");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.weighted(&[0, 3, 0]), 1);
    }
}
