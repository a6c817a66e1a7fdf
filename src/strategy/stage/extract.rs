//! Keeps a part of the context chosen by rule: baselines that any model must beat.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::session::{Message, Role, Tag};
use crate::settings::SettingError;
use crate::step::Step;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::{Situation, Stage, StageError, StageKind, cut};
use crate::tokens::Size;
use crate::units::Tokens;

/// `kind = "extract"`.
pub const KIND: StageKind = StageKind {
    name: "extract",
    description: "whole API rounds are kept up to a budget, chosen by rule",
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "method",
        kind: KnobKind::Choice(Method::WORDS),
        default: Default::Text("tail"),
        doc: "which rounds are kept: `tail` keeps the newest, `random` the newest one and others \
              by lot, in their order",
    },
    Knob {
        name: "budget_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Required,
        doc: "so many tokens of messages are kept; the newest round always is",
    },
    Knob {
        name: "seed",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(1),
        doc: "with `random`: the lot is drawn from this and the number of the call",
    },
];

/// Stands for what was cut. The rounds that are kept begin with the assistant, and a conversation
/// must begin with the user.
const PLACEHOLDER: &str = "[Earlier messages were cut.]";

/// Which rounds are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The newest.
    Tail,
    /// The newest one, and others by lot.
    Random {
        /// What the lot is drawn from, together with the number of the call.
        seed: u64,
    },
}

impl Method {
    /// The words that settings use.
    pub const WORDS: &'static [&'static str] = &["tail", "random"];

    /// The method of that word; `seed` is for those that need one.
    pub fn named(word: &str, seed: u64) -> Self {
        match word {
            "random" => Self::Random { seed },
            _ => Self::Tail,
        }
    }
}

/// How much is kept at a call.
#[derive(Debug)]
enum Budget {
    Fixed(Tokens),
    /// By call, as measured on another strategy; where there is no entry, nothing is cut.
    At(BTreeMap<usize, Tokens>),
}

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    Ok(Box::new(Extract {
        method: Method::named(knobs.choice("method")?, knobs.whole("seed")?),
        budget: Budget::Fixed(knobs.tokens("budget_tokens")?),
    }))
}

/// The stage that cuts to these sizes of all messages, each at its call.
pub fn to_sizes(method: Method, sizes: BTreeMap<usize, Tokens>) -> Box<dyn Stage> {
    let budget = Budget::At(sizes);
    Box::new(Extract { method, budget })
}

#[derive(Debug)]
struct Extract {
    method: Method,
    budget: Budget,
}

impl Stage for Extract {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        let budget = match &self.budget {
            Budget::Fixed(budget) => *budget,
            Budget::At(sizes) => match sizes.get(&cx.call) {
                Some(budget) => *budget,
                None => return Step::Done(Ok(Patch::default())),
            },
        };
        if context.size().tokens <= budget {
            return Step::Done(Ok(Patch::default()));
        }
        let entries = context.entries();
        let (head, rounds) = cut::rounds(entries);
        let message = Message::text(Role::User, PLACEHOLDER).with_tags([Tag::Meta]);
        let mut placeholder = Entry::new(Origin::Authored, Arc::new(message), &cx.counts);
        let room = budget - placeholder.size.tokens;
        let sizes: Vec<Tokens> = rounds
            .iter()
            .map(|round| entries[round.clone()].iter().map(|entry| entry.size).sum())
            .map(|size: Size| size.tokens)
            .collect();
        let kept = match self.method {
            Method::Tail => newest(&sizes, room),
            Method::Random { seed } => by_lot(&sizes, room, seed, cx.call),
        };
        let gaps = gaps(&head, &rounds, &kept);
        let cut = || gaps.iter().flat_map(|gap| &entries[gap.clone()]);
        // Nothing to cut, or nothing but the placeholder of the last time.
        if rounds.is_empty() || cut().count() <= 1 {
            return Step::Done(Ok(Patch::default()));
        }
        placeholder.origin = Origin::derived_from(cut());
        let mut with = Some(placeholder);
        let edits = gaps
            .into_iter()
            .map(|entries| Edit::Replace {
                entries,
                with: with.take().into_iter().collect(),
            })
            .collect();
        let what = match self.method {
            Method::Tail => "the newest rounds",
            Method::Random { .. } => "rounds chosen by lot",
        };
        Step::Done(Ok(Patch {
            edits,
            reason: format!("{what} within {budget} tokens are kept"),
            saved: Vec::new(),
        }))
    }
}

/// The newest rounds that fit, without a gap; the newest one always.
fn newest(sizes: &[Tokens], room: Tokens) -> Vec<bool> {
    let mut kept = vec![false; sizes.len()];
    let mut total = Tokens::ZERO;
    for (at, size) in sizes.iter().enumerate().rev() {
        total += *size;
        if total > room && at + 1 < sizes.len() {
            break;
        }
        kept[at] = true;
    }
    kept
}

/// The newest round, and of the others, in random order, each that still fits.
fn by_lot(sizes: &[Tokens], room: Tokens, seed: u64, call: usize) -> Vec<bool> {
    let mut kept = vec![false; sizes.len()];
    let Some((newest, others)) = sizes.split_last() else {
        return kept;
    };
    kept[others.len()] = true;
    let mut total = *newest;
    let mut order: Vec<usize> = (0..others.len()).collect();
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(call as u64).to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    // Fisher–Yates; the bias of the remainder is far below anything an order could matter.
    for last in (1..order.len()).rev() {
        let at = random.next_u64() % (last as u64 + 1);
        order.swap(last, usize::try_from(at).unwrap_or(last));
    }
    for at in order {
        if total + others[at] <= room {
            total += others[at];
            kept[at] = true;
        }
    }
    kept
}

/// What is cut, in order: the head with all rounds up to the first that is kept, then each run
/// between two that are.
fn gaps(head: &Range<usize>, rounds: &[Range<usize>], kept: &[bool]) -> Vec<Range<usize>> {
    let mut gaps = vec![head.clone()];
    let mut open = true;
    for (round, kept) in rounds.iter().zip(kept) {
        if *kept {
            open = false;
        } else if open && let Some(gap) = gaps.last_mut() {
            gap.end = round.end;
        } else {
            gaps.push(round.clone());
            open = true;
        }
    }
    gaps
}
