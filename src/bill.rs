//! Sizes as they were billed: from a session's usage to what its prompts really took.
//!
//! A recording seldom holds everything that its prompts held (system prompt, tools), and no public
//! counter is the provider's. [`Bill::of`] learns both from the recorded usage: a [`Factor`] from
//! counted to billed tokens for each model, and the head that no message holds. Replay keeps
//! counted sums and applies a [`Scale`] once per prompt, so that a prompt costs O(1) and its size
//! depends on no order.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::Session;
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;

mod fit;
#[cfg(test)]
mod tests;

/// Billed tokens for each counted token, in parts per million.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Factor(u64);

impl Factor {
    /// Every counted token is billed as one.
    pub const ONE: Self = Self(1_000_000);

    /// `billed / counted`, rounded half up; `None` where nothing was counted.
    pub fn of(billed: Tokens, counted: Tokens) -> Option<Self> {
        let parts = u128::from(billed.0) * 1_000_000 + u128::from(counted.0) / 2;
        let parts = parts.checked_div(u128::from(counted.0))?;
        u64::try_from(parts).ok().map(Self)
    }

    /// Counted tokens as billed, rounded half up.
    #[must_use]
    pub fn bill(self, counted: Tokens) -> Tokens {
        if self == Self::ONE {
            return counted;
        }
        quotient(
            u128::from(counted.0) * u128::from(self.0) + 500_000,
            1_000_000,
        )
    }

    /// The largest count whose bill is at most `billed`, to a rounding.
    #[must_use]
    pub fn count(self, billed: Tokens) -> Tokens {
        if self == Self::ONE {
            return billed;
        }
        quotient(u128::from(billed.0) * 1_000_000, self.0)
    }

    /// The ratio, for display.
    pub fn ratio(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

fn quotient(parts: u128, of: u64) -> Tokens {
    let whole = parts.checked_div(u128::from(of)).unwrap_or(parts);
    Tokens(u64::try_from(whole).unwrap_or(u64::MAX))
}

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

/// Which sizes a run uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// As billed, where the session carries usage.
    #[default]
    Billed,
    /// By the counter alone.
    Counted,
}

impl Sizes {
    /// The words that settings use.
    pub const NAMES: [&'static str; 2] = ["billed", "counted"];

    /// The word that settings use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Billed => Self::NAMES[0],
            Self::Counted => Self::NAMES[1],
        }
    }
}

/// How long a provider keeps thinking in the prompt whose words the recording leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenThinking {
    /// It leaves the prompt at once.
    Dropped,
    /// It leaves the prompt when the user types the next message.
    KeptForTurn,
    /// It stays.
    Kept,
}

impl HiddenThinking {
    /// The words that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::KeptForTurn => "kept for its turn",
            Self::Kept => "kept",
        }
    }
}

/// The sizes of a session's prompts, in the manifest of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSizes {
    /// As billed, or by the counter alone.
    pub sizes: Sizes,
    /// Billed tokens in front of every prompt that the session does not hold; `None` where that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Tokens>,
    /// Billed tokens for each counted one, in parts per million, by model. Empty where sizes are
    /// counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, Factor>,
    /// How hidden thinking was billed, where the session has any and its bill shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<HiddenThinking>,
    /// The fit compared with the bill; `None` where sizes are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// Calls at which the bill fell by more than a fifth, and no recorded compaction explains it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Why sizes, or parts of them, are not as billed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How prompts of the full history compare with the bill, up to the first compaction or unexplained
/// drop.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Calls compared.
    pub calls: usize,
    /// The first of them, billed and replayed.
    pub first: SizeComparison,
    /// The median, each by itself.
    pub median: SizeComparison,
    /// The last.
    pub last: SizeComparison,
    /// Counted over billed tokens of all of them, in parts per million.
    pub counted: Factor,
    /// Replayed over billed prompts of the second half, with head and factor learnt from the first:
    /// the median, in parts per million. `None` where the first half does not determine them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Factor>,
}

/// One size, billed and replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Compared")]
pub struct SizeComparison {
    /// By the provider.
    pub billed: Tokens,
    /// In replay.
    pub replayed: Tokens,
}

/// A fall of the bill that nothing in the recording explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// The call with the smaller prompt.
    pub call: usize,
    /// The prompt billed before it.
    pub before: Tokens,
    /// Its own.
    pub after: Tokens,
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
