//! Sizes as they were billed: from a session's usage to what its prompts really took.
//!
//! A recording seldom holds everything that its prompts held (system prompt, tools, thinking), and no public
//! counter is the provider's. [`Bill::of`] takes every bill as an anchor: what the bill grows by between two calls is
//! the size of what came between them. So a prompt that no strategy has edited is its bill exactly, and what a
//! strategy removes is removed at the size it was billed with. What a strategy writes, and calls without usage, are
//! sized by a [`Factor`] from counted to billed tokens, one for each model.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::record::words::{
    Drop, Factor, Fit, HeldOut, HiddenThinking, Prediction, SessionSizes, Sizes,
};
use crate::session::{CompactedTo, Recorded, Session};
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;
pub(crate) use points::ABSURD;

mod anchors;
mod follow;
mod held_out;
mod points;
#[cfg(test)]
mod tests;

/// How the sizes of texts become the size of a prompt, at one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Billed tokens in front of every prompt that the session does not hold: system prompt and tools.
    pub head: Tokens,
    /// Billed tokens for each counted one, where no bill shows the size of a text.
    pub factor: Factor,
    /// What tokens that were billed earlier are billed as at this call: another model may count otherwise.
    pub ratio: Factor,
}

impl Scale {
    /// The bare counter: no head, and tokens as counted.
    pub const COUNTED: Self = Self { head: Tokens::ZERO, factor: Factor::ONE, ratio: Factor::ONE };

    /// Texts without the head.
    #[must_use]
    pub fn text(self, size: Size) -> Tokens {
        self.factor.bill(size.scaled) + self.ratio.share(size.billed)
    }

    /// A prompt: the head and the texts after it.
    #[must_use]
    pub fn prompt(self, size: Size) -> Tokens {
        self.head + self.text(size)
    }

    /// The count that a number of billed tokens of text comes from.
    #[must_use]
    pub fn counted(self, billed: Tokens) -> Tokens {
        Factor::of(billed, Tokens(self.factor.0)).map_or(billed, |counted| Tokens(counted.0))
    }

    /// How many counted tokens of text fit into a number of billed ones, the head left out.
    #[must_use]
    pub fn room(self, billed: Tokens) -> Tokens {
        self.factor.count(billed)
    }

    /// The same, for a prompt of this size that was billed so: the head has what texts do not explain. Where
    /// texts exceed the bill, all of them are less.
    #[must_use]
    pub fn billed(self, size: Size, billed: Tokens) -> Self {
        let text = self.text(size);
        // What the factor scales is rounded, up to half a token more.
        let less = Factor::within(billed - Tokens(1), text).filter(|_| text > billed);
        let [factor, ratio] = [self.factor, self.ratio]
            .map(|factor| less.map_or(factor, |less| Factor(less.share(Tokens(factor.0)).0)));
        let scale = Self { factor, ratio, ..self };
        let head = billed - scale.text(size);
        Self { head, ..scale }
    }
}

/// The sizes of one session's prompts.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    /// The scale of each call, by index; shorter where all later calls have the last one's.
    scales: Vec<Scale>,
    /// What was billed for the prompt of each call, as far as it is an anchor.
    billed: BTreeMap<usize, Tokens>,
    texts: TextSizes,
    /// The largest prompt that was billed; zero where none is known.
    largest: Tokens,
    sizes: SessionSizes,
}

/// The sizes of a session's texts, as far as bills show them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextSizes {
    /// By message, up to the last anchor.
    factors: Vec<Factor>,
    /// What is billed with a message and no text shows.
    hidden: BTreeMap<usize, Tokens>,
    /// By recorded compaction: what the product wrote in it.
    written: BTreeMap<usize, Factor>,
    /// By message that a user typed: what leaves the prompt when it comes.
    left_out: BTreeMap<usize, LeftOutParts>,
}

/// Hidden parts that the provider leaves out from now on.
#[derive(Debug, Clone)]
pub struct LeftOutParts {
    /// By message, ascending.
    pub parts: Vec<(usize, Tokens)>,
    /// The next bill reads the cache beyond them all the same.
    pub is_cache_kept: bool,
}

impl TextSizes {
    /// The size of a message that is counted so.
    fn size(&self, message: usize, counted: Size) -> Size {
        let factor = self.factors.get(message).copied();
        let hidden = self.hidden.get(&message).copied();
        counted.billed_by(factor) + Size::hidden(hidden.unwrap_or_default())
    }
}

impl Bill {
    /// The bare counter after a head of this size; `None` if the size is unknown.
    pub fn counted(head: Option<Tokens>) -> Self {
        let scale = Scale { head: head.unwrap_or_default(), ..Scale::COUNTED };
        Self {
            scales: vec![scale],
            sizes: SessionSizes { sizes: Sizes::Counted, head, ..SessionSizes::default() },
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
            Sizes::Billed => anchors::fit(session, counts, declared),
        }
    }

    /// How the prompt of a call is sized, as far as no strategy edited it.
    pub fn scale(&self, call: usize) -> Scale {
        self.scales.get(call).or(self.scales.last()).copied().unwrap_or(Scale::COUNTED)
    }

    /// How a prompt of this size is sized where it is the one that the product sent.
    pub fn as_sent(&self, call: usize, size: Size) -> Scale {
        let scale = self.scale(call);
        match self.billed.get(&call) {
            Some(billed) => scale.billed(size, *billed),
            None => scale,
        }
    }

    /// The session with the sizes of its texts as billed, or nothing if no bill shows any.
    pub(crate) fn sized(&self, session: &Session) -> Option<Session> {
        let texts = &self.texts;
        if texts.factors.is_empty() {
            return None;
        }
        let mut sized = session.clone();
        let parts = sized.parts_mut();
        for (message, factor) in parts.messages.iter_mut().zip(&texts.factors) {
            Arc::make_mut(message).details.factor = Some(*factor);
        }
        for (at, tokens) in &texts.hidden {
            Arc::make_mut(&mut parts.messages[*at]).details.hidden = *tokens;
        }
        for (at, factor) in &texts.written {
            let CompactedTo::Replaced(pieces) = &mut parts.compactions[*at].after else {
                continue;
            };
            for piece in pieces {
                if let Recorded::Written(message) = piece {
                    Arc::make_mut(message).details.factor = Some(*factor);
                }
            }
        }
        Some(sized)
    }

    /// The size of a message of the session that is counted so.
    pub(crate) fn size(&self, message: usize, counted: Size) -> Size {
        self.texts.size(message, counted)
    }

    /// What leaves the prompt when this message comes.
    pub fn left_out(&self, message: usize) -> Option<&LeftOutParts> {
        self.texts.left_out.get(&message)
    }

    /// All that leaves the prompt so before this message.
    pub fn left_out_before(&self, message: usize) -> Tokens {
        let events = self.texts.left_out.range(..message);
        events.flat_map(|(_, left_out)| &left_out.parts).map(|(_, tokens)| *tokens).sum()
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
