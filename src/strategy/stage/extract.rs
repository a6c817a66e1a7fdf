//! Keeps a part of the context chosen by rule: baselines that any model must beat.

use std::collections::BTreeMap;
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::session::Tag;
use crate::step::Step;
use crate::strategy::knob::KnobKind::{Choice, Fraction, Whole};
use crate::strategy::{Built, Knob, KnobReader, Planned, Situation, Stage, StageKind, cut};
use crate::tokens::Size;
use crate::units::Tokens;

mod rank;

pub use rank::Ranking;

/// `kind = "extract"`.
pub const KIND: StageKind = StageKind {
    name: "extract",
    description: "whole API rounds are kept up to a budget, chosen by rule",
    page: include_str!("../../../docs/stages/extract.md"),
    knobs: KNOBS,
    breaks: &[],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new("method", Choice(Method::WORDS, "tail")),
    Knob::new("budget_tokens", Whole(0, 0)),
    Knob::new("budget_fraction", Fraction(0.0)),
    Knob::new("seed", Whole(0, 1)),
];

/// Stands for what was cut. The rounds that are kept begin with the assistant, and a conversation
/// must begin with the user.
const PLACEHOLDER: &str = "[Earlier messages were cut.]";

/// Which rounds are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The newest.
    Tail,
    /// The newest one, and the oldest.
    Lead,
    /// The newest one, and others by lot.
    Random {
        /// What the lot is drawn from, together with the session and the number of the call.
        seed: u64,
    },
    /// The newest one, and those that score highest.
    Ranked(Ranking),
}

impl Method {
    /// The words that settings use.
    pub const WORDS: &'static [&'static str] = &[
        "tail",
        "random",
        "lead",
        "textrank",
        "tfidf",
        "bm25_last_user",
        "atoms",
    ];

    /// The method of that word; `seed` is for those that need one.
    pub fn named(word: &str, seed: u64) -> Self {
        match word {
            "random" => Self::Random { seed },
            "lead" => Self::Lead,
            "textrank" => Self::Ranked(Ranking::TextRank),
            "tfidf" => Self::Ranked(Ranking::TfIdf),
            "bm25_last_user" => Self::Ranked(Ranking::Bm25LastUser),
            "atoms" => Self::Ranked(Ranking::Atoms),
            _ => Self::Tail,
        }
    }
}

/// How much is kept at a call.
#[derive(Debug)]
enum Budget {
    Fixed(Tokens),
    /// A share of the effective window.
    Share(f64),
    /// By call, as measured on another strategy; where there is no entry, nothing is cut.
    At(BTreeMap<usize, Tokens>),
}

fn build(knobs: &mut KnobReader<'_>) -> Built {
    let method = Method::named(knobs.choice("method")?, knobs.whole("seed")?);
    let tokens = knobs.tokens("budget_tokens")?;
    let share = knobs.number("budget_fraction")?;
    let is_set = |name| knobs.setting(name).is_some();
    let budget = match ["budget_tokens", "budget_fraction"].map(is_set) {
        [true, false] => Budget::Fixed(tokens),
        [false, true] => Budget::Share(share),
        [false, false] => return Err(knobs.wrong("budget_tokens", "must be set")),
        [true, true] => {
            return Err(knobs.wrong("budget_tokens", "and `budget_fraction` are set: set one"));
        }
    };
    Ok(Box::new(Extract { method, budget }))
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
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        let budget = match &self.budget {
            Budget::Fixed(budget) => *budget,
            Budget::Share(share) => cx.scale.room(cx.window.effective().fraction(*share)),
            Budget::At(sizes) => match sizes.get(&cx.call) {
                Some(budget) => cx.scale.counted(*budget),
                None => return Step::Done(Ok(Patch::default())),
            },
        };
        if context.size().tokens <= budget {
            return Step::Done(Ok(Patch::default()));
        }
        let entries = context.entries();
        let (head, rounds) = cut::rounds(entries);
        let counts = &cx.counts;
        let mut placeholder = Entry::written(Origin::Authored, PLACEHOLDER, Tag::Meta, counts);
        let room = budget - placeholder.size.tokens;
        let sizes: Vec<Tokens> = rounds
            .iter()
            .map(|round| entries[round.clone()].iter().map(|entry| entry.size).sum())
            .map(|size: Size| size.tokens)
            .collect();
        let others = sizes.len().saturating_sub(1);
        let (order, until) = match self.method {
            Method::Tail => ((0..others).rev().collect(), Until::OneIsTooLarge),
            Method::Lead => ((0..others).collect(), Until::OneIsTooLarge),
            Method::Random { seed } => {
                let order = lot(others, [seed, cx.lot, cx.call as u64]);
                (order, Until::NoneIsLeft)
            }
            Method::Ranked(ranking) => (ranking.order(entries, &rounds), Until::NoneIsLeft),
        };
        let kept = kept(&sizes, room, order, until);
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
            Method::Lead => "the oldest rounds and the newest",
            Method::Random { .. } => "rounds chosen by lot",
            Method::Ranked(_) => "rounds chosen by score",
        };
        let reason = format!("{what} within {budget} tokens are kept");
        Step::Done(Ok(Patch::new(reason, edits)))
    }
}

/// How long rounds are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    OneIsTooLarge,
    NoneIsLeft,
}

/// The newest round, and of the others, in this order, those that fit beside it.
fn kept(sizes: &[Tokens], room: Tokens, order: Vec<usize>, until: Until) -> Vec<bool> {
    let mut kept = vec![false; sizes.len()];
    let Some((newest, others)) = sizes.split_last() else {
        return kept;
    };
    kept[others.len()] = true;
    let mut total = *newest;
    for at in order.into_iter().filter(|at| *at < others.len()) {
        if total + others[at] <= room {
            total += others[at];
            kept[at] = true;
        } else if until == Until::OneIsTooLarge {
            break;
        }
    }
    kept
}

/// All rounds but the newest, in random order.
fn lot(others: usize, from: [u64; 3]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..others).collect();
    let mut key = [0; 32];
    for (part, number) in key.chunks_exact_mut(8).zip(from) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    let mut draws = ChaCha8Rng::from_seed(key);
    // Fisher–Yates; the bias of the remainder is far below anything an order could matter.
    for last in (1..order.len()).rev() {
        let at = draws.random::<u64>() % (last as u64 + 1);
        order.swap(last, usize::try_from(at).unwrap_or(last));
    }
    order
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::stage::trial::{Trial, build, said, typed};
    use crate::units::ApiCallId;

    /// Which rounds stay: each of a hundred tokens, six of them, in a window of a thousand.
    #[track_caller]
    fn check(knobs: &str, left: &str) {
        let mut trial = Trial::new(&KIND, knobs).within(1_000);
        trial.append([typed("begin")]);
        for (at, words) in [
            "the quick fox",
            "the path src/a.rs and code 48213",
            "parser parser parser",
            "a fox and a hen",
            "zebra yak xerus",
            "the end",
        ]
        .iter()
        .enumerate()
        {
            let text = format!("{at} {words} {}", ". ".repeat(200));
            let mut message = said(&text[..400]);
            message.api_call = Some(ApiCallId(at.to_string().into()));
            trial.append([message]);
            if at == 4 {
                trial.append([typed("is the parser done?")]);
            }
        }
        trial.fire().unwrap();
        let kept = trial.texts();
        let kept = kept.iter().filter_map(|text| text.chars().next());
        let kept: String = kept.filter(char::is_ascii_digit).collect();
        assert_eq!(kept, left, "{knobs}");
        assert_eq!(trial.fire().unwrap(), None, "{knobs}");
    }

    #[test]
    fn each_method_keeps_what_it_says_within_the_budget() {
        check("budget_tokens = 330", "345");
        check("method = 'lead'\nbudget_tokens = 330", "015");
        check("method = 'lead'\nbudget_fraction = 0.33", "015");
        check("method = 'bm25_last_user'\nbudget_tokens = 220", "25");
        check("method = 'atoms'\nbudget_tokens = 220", "15");
        check("method = 'tfidf'\nbudget_tokens = 220", "45");
        check("method = 'textrank'\nbudget_tokens = 330", "145");
        check("method = 'textrank'\nbudget_tokens = 50", "5");
    }

    #[test]
    fn each_session_draws_lots_of_its_own() {
        let drawn = |session, call| lot(20, [1, session, call]);
        assert_eq!(drawn(3, 7), drawn(3, 7));
        assert_ne!(drawn(3, 7), drawn(4, 7));
        assert_ne!(drawn(3, 7), drawn(3, 8));
    }

    #[test]
    fn one_budget_is_set() {
        for (knobs, problem) in [
            ("", "must be set"),
            (
                "budget_tokens = 9\nbudget_fraction = 0.5",
                "and `budget_fraction` are set: set one",
            ),
        ] {
            let error = build(&KIND, knobs).unwrap_err().to_string();
            assert!(
                error.contains(&format!("`extract.budget_tokens` {problem}")),
                "{error}"
            );
        }
    }
}
