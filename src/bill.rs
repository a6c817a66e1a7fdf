//! Sizes as they were billed: from a session's usage to what its prompts really took.
//!
//! A recording seldom holds everything that its prompts held (system prompt, tools), and no public
//! counter is the provider's. [`Bill::of`] learns both from the recorded usage: a [`Factor`] from
//! counted to billed tokens for each model, and the head that no message holds. Replay keeps
//! counted sums and applies a [`Scale`] once per prompt, so that a prompt costs O(1) and its size
//! depends on no order.

use std::collections::BTreeMap;

use crate::record::words::quotient;
pub use crate::record::words::{
    Drop, Factor, Fit, HiddenThinking, SessionSizes, SizeComparison, Sizes,
};
use crate::session::Session;
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;

mod fit;
#[cfg(test)]
mod tests;

/// How counted sizes become billed ones for the prompts of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Billed tokens in front of every prompt that the session does not hold: system prompt and tools.
    pub head: Tokens,
    /// Billed tokens for each counted one.
    pub factor: Factor,
}

impl Scale {
    /// The bare counter: no head, and tokens as counted.
    pub const COUNTED: Self = Self {
        head: Tokens::ZERO,
        factor: Factor::ONE,
    };

    /// Texts without the head. What is exact already stays as it is.
    #[must_use]
    pub fn text(self, counted: Size) -> Tokens {
        self.factor.bill(counted.tokens - counted.exact) + counted.exact
    }

    /// A prompt: the head and the texts after it.
    #[must_use]
    pub fn prompt(self, counted: Size) -> Tokens {
        self.head + self.text(counted)
    }

    /// The count that a number of billed tokens of text comes from.
    #[must_use]
    pub fn counted(self, billed: Tokens) -> Tokens {
        let parts = u128::from(billed.0) * 1_000_000 + u128::from(self.factor.0 / 2);
        quotient(parts, self.factor.0)
    }

    /// How many counted tokens of text fit into a number of billed ones, the head left out.
    #[must_use]
    pub fn room(self, billed: Tokens) -> Tokens {
        self.factor.count(billed)
    }
}

/// The sizes of one session's prompts.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    scales: Vec<Scale>,
    /// The scale of each call, by index; shorter where all later calls have the last one's.
    by_call: Vec<u32>,
    /// Hidden thinking by message, in billed tokens.
    hidden: BTreeMap<usize, Tokens>,
    /// The largest prompt that was billed; zero where none is known.
    largest: Tokens,
    sizes: SessionSizes,
}

impl Bill {
    /// The bare counter after a head of this size; `None` if the size is unknown.
    pub fn counted(head: Option<Tokens>) -> Self {
        let scale = Scale {
            head: head.unwrap_or_default(),
            ..Scale::COUNTED
        };
        Self {
            scales: vec![scale],
            sizes: SessionSizes {
                sizes: Sizes::Counted,
                head,
                ..SessionSizes::default()
            },
            ..Self::default()
        }
    }

    /// The sizes of a session: as billed where `sizes` says so and the session's usage shows them,
    /// else as counted. `head` is assumed where the session does not show its own.
    pub fn of(
        session: &Session,
        counts: &CountedTexts,
        sizes: Sizes,
        head: Option<Tokens>,
    ) -> Self {
        let declared = session.source().declared_head().or(head);
        match sizes {
            Sizes::Counted => Self::counted(None),
            Sizes::Billed => fit::fit(session, counts, declared),
        }
    }

    /// How the prompt of a call is sized.
    pub fn scale(&self, call: usize) -> Scale {
        let at = self.by_call.get(call).or(self.by_call.last());
        let at = at.map_or(0, |at| *at as usize);
        self.scales.get(at).copied().unwrap_or(Scale::COUNTED)
    }

    /// Tokens billed for thinking whose words the session leaves out, by message.
    pub fn hidden(&self) -> &BTreeMap<usize, Tokens> {
        &self.hidden
    }

    /// The largest prompt that the provider billed; zero where none is known.
    pub fn largest(&self) -> Tokens {
        self.largest
    }

    /// The sizes for a run's manifest.
    pub fn sizes(&self) -> &SessionSizes {
        &self.sizes
    }
}
