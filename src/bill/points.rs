//! The billed calls of a session, and what came between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use derive_more::Sub;

use super::{Factor, HiddenThinking};
use crate::session::{ContentBlock, Message, Role, Session, Tag, ToolSchema};
use crate::tokens::{CountedTexts, PackedSize, Size};
use crate::units::Tokens;

/// Bills above this are no bills: ten times the largest window that any provider offers.
pub(crate) const ABSURD: Tokens = Tokens(100_000_000);

/// Formats that show a summary in place of the thinking.
const SUMMARISE_THINKING: [&str; 2] = ["codex", "openai-responses"];

/// A billed call.
#[derive(Debug, Clone, Copy)]
pub(super) struct BillPoint {
    pub(super) call: usize,
    /// Its response: its prompt is everything in front of it.
    pub(super) message: usize,
    /// What was billed for its prompt.
    pub(super) billed: i64,
    /// What of it was read from the cache.
    pub(super) read: i64,
    pub(super) model: usize,
    /// How many recorded compactions are in front of it.
    pub(super) segment: usize,
}

/// The part of a prompt that some messages make up.
#[derive(Debug, Clone, Copy, Default, Sub)]
pub(super) struct Added {
    /// Tokens of text, as counted.
    pub(super) text: i64,
    /// Tokens of images.
    pub(super) images: i64,
    /// Of messages that hide their thinking: what was billed as written, and the text that shows, as counted.
    pub(super) written: i64,
    pub(super) shown: i64,
    /// Messages that a user typed.
    pub(super) typed: i64,
}

/// The billed calls of a session.
#[derive(Debug)]
pub(super) struct Points {
    pub(super) all: Vec<BillPoint>,
    pub(super) models: Vec<Arc<str>>,
    /// The model of each call.
    pub(super) by_call: Vec<usize>,
    /// System prompt and tools.
    pub(super) fixed: Size,
    /// The size of each message, as counted.
    pub(super) sizes: Vec<PackedSize>,
    /// What the messages in front of each add together.
    sums: Vec<Added>,
    /// For each message the newest one before it that a user typed.
    pub(super) turns: Vec<usize>,
    /// Counters were written before the answers were whole: what they say of thinking is nothing.
    pub(super) is_output_partial: bool,
    pub(super) warnings: Vec<String>,
}

/// Tokens of a number that may have become negative.
pub(super) fn tokens(number: i64) -> Tokens {
    Tokens(u64::try_from(number).unwrap_or_default())
}

pub(super) fn signed(tokens: Tokens) -> i64 {
    i64::try_from(tokens.0).unwrap_or(i64::MAX)
}

/// Counted tokens as billed.
pub(super) fn bill(factor: Factor, counted: i64) -> i64 {
    signed(factor.bill(tokens(counted)))
}

/// The size of a message, as counted.
pub(super) fn counted(message: &Message, counts: &CountedTexts) -> Size {
    message.blocks().map(|block| counts.block(&block)).sum()
}

/// Whether the message holds thinking whose words are not recorded, but for a signature.
pub(super) fn hides_thinking(message: &Message, format: &str) -> bool {
    let may_show = SUMMARISE_THINKING.contains(&format);
    message.content().iter().any(|block| match block {
        ContentBlock::Thinking(thinking) => {
            thinking.signature.is_some() && (may_show || thinking.text.is_empty())
        }
        _ => false,
    })
}

impl Points {
    pub(super) fn of(session: &Session, counts: &CountedTexts) -> Self {
        let tools = session.tools().iter().map(ToolSchema::text).map(|tool| counts.schema(tool));
        let system = session.system().map(|text| counts.size(text));
        let mut points = Self {
            all: Vec::new(),
            models: Vec::new(),
            by_call: Vec::with_capacity(session.calls().len()),
            fixed: tools.chain(system).sum(),
            sizes: Vec::with_capacity(session.messages().len()),
            sums: vec![Added::default()],
            turns: Vec::new(),
            is_output_partial: false,
            warnings: Vec::new(),
        };
        let own: Arc<str> = session.model().map_or_else(|| Arc::from(""), Arc::from);
        let mut known: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut calls = session.calls().iter().peekable();
        let mut compactions = session.compactions().iter().peekable();
        let (mut segment, mut turn, mut absurd) = (0, 0, 0_u64);
        let (mut shown, mut written) = (Tokens::ZERO, Tokens::ZERO);
        for (at, message) in session.messages().iter().enumerate() {
            while compactions.next_if(|event| event.at <= at).is_some() {
                segment += 1;
            }
            let usage = message.details.usage.filter(|usage| usage.total() <= ABSURD);
            if calls.next_if(|call| **call == at).is_some() {
                let name = message.details.model.clone().unwrap_or_else(|| own.clone());
                let new = points.models.len();
                let model = *known.entry(name.clone()).or_insert(new);
                if model == new {
                    points.models.push(name);
                }
                let call = points.by_call.len();
                points.by_call.push(model);
                absurd += u64::from(usage.is_none() && message.details.usage.is_some());
                let billed = usage.map_or(0, |usage| signed(usage.prompt()));
                let read = usage.map_or(0, |usage| signed(usage.cache_read));
                points.all.extend((billed > 0).then_some(BillPoint {
                    call,
                    message: at,
                    billed,
                    read,
                    model,
                    segment,
                }));
            }
            let size = counted(message, counts);
            let output = usage.map_or(Tokens::ZERO, |usage| usage.output);
            if output > Tokens::ZERO && message.role() == Role::Assistant {
                shown += size.tokens;
                written += output;
            }
            let typed = message.has_tag(Tag::TypedUser);
            if typed {
                turn = at;
            }
            points.turns.push(turn);
            points.sizes.push(size.into());
            let hides = hides_thinking(message, &session.source().format);
            let mut sum = points.sums[at];
            sum.text += signed(size.scaled);
            sum.images += signed(size.billed);
            sum.typed += i64::from(typed);
            if hides {
                sum.written += signed(output);
                sum.shown += signed(size.scaled);
            }
            points.sums.push(sum);
        }
        if absurd > 0 {
            points.warnings.push(format!(
                "calls with a bill of more than {ABSURD} tokens, which is not believed: {absurd}"
            ));
        }
        points.is_output_partial = shown > written;
        points
    }

    /// What these messages add to a prompt.
    pub(super) fn added(&self, messages: Range<usize>) -> Added {
        self.sums[messages.end] - self.sums[messages.start]
    }

    /// The texts added between two billed calls.
    pub(super) fn between(&self, (one, two): &(BillPoint, BillPoint)) -> Added {
        self.added(one.message..two.message)
    }

    /// The first of these messages that a user typed.
    pub(super) fn typed(&self, messages: Range<usize>) -> Option<usize> {
        let before = self.sums[messages.start].typed;
        let count =
            self.sums[messages.start..=messages.end].partition_point(|sum| sum.typed == before);
        (count <= messages.len()).then(|| messages.start + count - 1)
    }

    /// What these messages are expected to add to the bill of the next call. Of calls that wrote more than shows,
    /// the rest stays as long as `thinking` says.
    pub(super) fn expected(
        &self,
        messages: Range<usize>,
        factor: Factor,
        thinking: HiddenThinking,
    ) -> i64 {
        let added = self.added(messages.clone());
        bill(factor, added.text) + added.images + self.thought(messages, factor, thinking)
    }

    /// The part of it that was billed as written and does not show.
    pub(super) fn thought(
        &self,
        messages: Range<usize>,
        factor: Factor,
        thinking: HiddenThinking,
    ) -> i64 {
        let start = match thinking {
            HiddenThinking::Dropped => messages.end,
            HiddenThinking::KeptForTurn => {
                let last = messages.end.checked_sub(1);
                last.map_or(0, |last| self.turns[last]).clamp(messages.start, messages.end)
            }
            HiddenThinking::Kept => messages.start,
        };
        self.hidden(start..messages.end, factor)
    }

    /// The part of the answers among these messages that was billed as written and does not show.
    fn hidden(&self, messages: Range<usize>, factor: Factor) -> i64 {
        let thought = self.added(messages);
        (thought.written - bill(factor, thought.shown)).max(0)
    }

    /// Hidden thinking of the turn of `one`, which may leave before the prompt of `two` where another turn begins.
    pub(super) fn may_leave(&self, one: &BillPoint, two: &BillPoint, factor: Factor) -> i64 {
        let typed = self.typed(one.message..two.message);
        typed.map_or(0, |typed| self.hidden(self.turns[one.message]..typed, factor))
    }

    /// What was billed for the prompt in front of this response.
    pub(super) fn billed(&self, message: usize) -> Option<i64> {
        let at = self.all.binary_search_by_key(&message, |point| point.message);
        at.ok().map(|at| self.all[at].billed)
    }
}

/// The largest prompt that was billed.
pub(super) fn largest(points: impl Iterator<Item = BillPoint>) -> Tokens {
    tokens(points.map(|point| point.billed).max().unwrap_or_default())
}
