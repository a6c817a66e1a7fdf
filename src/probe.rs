//! Probes: questions about the past whose answer is known, and how answers are graded.
//!
//! A [`Probe`] is asked at fixed points of a session ([`Selection`]), the same for every
//! strategy; one probe at one point is an [`Item`]. Two evaluators look at an item and are never
//! mixed: *survival* searches the prompt for the planted value, and a *reader* is asked the
//! question and its answer graded.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Regex, Replacer};
use serde::Serialize;

pub use crate::record::words::{GradeVerdict, LOWEST_CEILING, Outcome, ProbeKind, Unscored};
use crate::units::Tokens;

mod answer_format;
pub mod check;
pub mod derive;
pub mod faithful;
pub mod grade;
pub mod judge;
mod kind;
pub mod recovery;
mod selection;
pub mod survival;
pub mod weight;

pub use crate::session::ground_truth::{Fact, PlantedFact as Probe};
pub use answer_format::AnswerFormat;
pub(crate) use kind::AnswerSet;
pub use kind::{ProbeExt, Specified};
pub use selection::Selection;

/// A regular expression, compiled when it is first used.
#[derive(Debug)]
pub(crate) struct LazyPattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl LazyPattern {
    pub(crate) const fn new(text: &'static str) -> Self {
        let compiled = OnceLock::new();
        Self { text, compiled }
    }

    fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| Regex::new(self.text).ok());
        compiled.as_ref()
    }

    pub(crate) fn matches<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        let regex = self.regex().into_iter();
        regex.flat_map(move |regex| regex.captures_iter(text))
    }

    /// The first match from a byte on.
    fn at<'t>(&self, text: &'t str, from: usize) -> Option<Captures<'t>> {
        self.regex()?.captures_at(text, from)
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub(crate) fn replaced<'t>(&self, text: &'t str, by: impl Replacer) -> Cow<'t, str> {
        let regex = self.regex();
        regex.map_or(Cow::Borrowed(text), |regex| regex.replace_all(text, by))
    }
}

/// Kendall's balance of these, which should ascend: concordant pairs less discordant ones, `C − D`; and
/// the score `max(0, (C − D) / (n(n − 1)/2))` where `n` were to be named.
pub(crate) fn kendall<T: Ord>(named: &[T], n: usize) -> (i64, f64) {
    let mut balance = 0;
    for (at, earlier) in named.iter().enumerate() {
        for later in &named[at + 1..] {
            balance += i64::from(earlier < later) - i64::from(earlier > later);
        }
    }
    let pairs = n * n.saturating_sub(1) / 2;
    (balance, balance.max(0) as f64 / pairs.max(1) as f64)
}

/// Separates the answers to the two questions of a probe.
pub const OTHER_ORDER: &str = "\n--- in the other order ---\n";

/// Fewer events than this have no order worth asking for: two are right in every other guess.
pub const LEAST_EVENTS: usize = 3;

/// How a reader that is a model is asked, and what beside the scored question of each prompt.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own in a scenario")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Asking {
    /// Once more under full history and under an empty context, to see whether the question can be
    /// answered, and only with the context. These answers are never scored.
    pub qualifies: bool,
    /// Once more of the summaries in the prompt alone, where the evidence went into one.
    pub summaries: bool,
    /// Without the tools of the session, which the prompt had.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omits_tools: bool,
    /// Without the words that name an answer for what the conversation does not say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub omits_escape: bool,
    /// Where answers are cut off; [`judge::MAX_ANSWER`] without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Tokens>,
    /// The reader's context window, prompt and answer together; where full history does not fit it,
    /// the evidence is the ceiling. `None` if it is not known.
    pub window: Option<Tokens>,
}

/// One probe at one point of the session: the unit that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Index of the probe.
    pub probe: usize,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// The call at which it is asked.
    pub call: usize,
}
