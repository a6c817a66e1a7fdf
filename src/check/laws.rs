//! The laws, one line each: what a strategy owes the provider, the model and the user.
//!
//! A law looks at what one scene showed. It says whether it had a chance to be broken there, and if it was, in which
//! call and by what.

use std::collections::{BTreeMap, BTreeSet};

use super::LawLevel;
use super::play::{Played, Plays, SummaryWriter};
use crate::model::fault::Fault;
use crate::record::{CellRecord, End};
use crate::units::Tokens;

mod edits;
mod facts;
mod prompts;
mod times;

pub(super) use facts::frames;

/// The result of one scene for a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judged {
    /// It could not have been broken here.
    NoChance,
    /// It was kept.
    Held,
    /// How it was broken.
    Broken(String),
    /// There was no time for a play that it needs.
    OutOfTime,
}

impl Judged {
    /// Broken by the first of these findings; held if there is none, where it had a chance.
    fn by(had_chance: bool, found: Option<String>) -> Self {
        match found {
            Some(found) => Self::Broken(found),
            None if had_chance => Self::Held,
            None => Self::NoChance,
        }
    }
}

/// Facts about a strategy that take several scenes.
#[derive(Debug, Default)]
pub(super) struct StrategyFacts {
    /// Whether there was time for the usual play of each scene.
    pub(super) is_whole: bool,
    /// Whether it asks a model anywhere.
    pub(super) asks: bool,
    /// Scenes in which it changed anything.
    pub(super) fired: usize,
    /// Lines that it wrote twice or more, with other numbers or in another scene; without their numbers.
    pub(super) frames: BTreeSet<String>,
    /// For each window: the smallest context that it changed.
    pub(super) triggers: BTreeMap<Tokens, Tokens>,
    /// For each window in which the context grows to its end: the prompt at which it first fired.
    pub(super) fired_at: Vec<(Tokens, Option<Tokens>)>,
}

impl StrategyFacts {
    /// The prompt at which it first fired in this window.
    fn first_fired(&self, window: Tokens) -> Option<Tokens> {
        self.fired_at.iter().find(|(of, _)| *of == window)?.1
    }
}

/// The subject of a law that is not judged in every scene or not of every strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// Summaries: it is not asked of strategies without any.
    Summaries,
    /// How often something happens, which a smaller session does not show.
    Rates,
    /// Requests as they are sent: it is judged in the scene of pictures, too.
    Bytes,
    /// All scenes together: it is judged where all were played.
    AllScenes,
}

/// A law that a strategy is checked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckLaw {
    pub(super) name: &'static str,
    pub(super) level: LawLevel,
    /// The behaviour that it asks for.
    pub(super) expected: &'static str,
    about: &'static [About],
    pub(super) judge: fn(&Plays<'_>, &StrategyFacts) -> Judged,
}

impl CheckLaw {
    pub(super) fn is_about(&self, subject: About) -> bool {
        self.about.contains(&subject)
    }
}

/// Name, level, what it is about, the behaviour that it asks for, and its judge.
macro_rules! laws {
    ($($name:tt $level:ident [$($about:ident),*] $expected:literal => $judge:path;)*) => {
        /// All of them: those that decide first.
        pub(super) const LAWS: &[CheckLaw] = &[$(CheckLaw {
            name: $name,
            level: LawLevel::$level,
            expected: $expected,
            about: &[$(About::$about),*],
            judge: $judge,
        }),*];
    };
}

/// The name of the law about answers: where it is broken, no other is tried.
pub(super) const ANSWERS: &str = "answers";

laws! {
    ANSWERS Must [Bytes] "every line is answered, in time and in the protocol's form" => answers;
    "goes_on" Must [] "no fault of a provider ends it" => goes_on;
    "deterministic" Must [] "the same session gives the same contexts" => deterministic;
    "valid_context" Must [Bytes] "the provider accepts every prompt, wherever it accepts the full history, and every request" => prompts::valid;
    "thinking_stays" Must [] "thinking and its signatures stay as they are while their calls are open" => prompts::thinking;
    "no_invention" Must [AllScenes] "no text in the user's voice that neither the session nor a model wrote" => facts::invention;
    "safe_failure" Must [Summaries] "a failed or empty answer removes nothing while the prompt fits" => facts::safe_failure;
    "bytes_fit" Should [Bytes] "a request that is too large in bytes or images becomes smaller" => prompts::bytes;
    "survives" Should [Rates] "a prompt that is refused as too long becomes smaller, and the session goes on" => times::survives;
    "newest_request_stays" Should [] "the newest request of the user stays word for word" => prompts::newest_request;
    "newest_results_stay" Should [] "of the newest tool results at least the beginning stays, and their calls keep their arguments, unless the prompt is too long" => prompts::newest_results;
    "ends_for_the_model" Should [] "the last message is not the assistant's" => prompts::ends;
    "order_stays" Should [] "messages keep their order, and none is there twice" => prompts::order;
    "edits_keep" Should [] "an edited message keeps the user's words, and its results are of their own calls and say which failed" => edits::keep;
    "cuts_are_true" Should [] "a cut result is not cut again, and points to nothing that is gone" => edits::cuts;
    "undone_on_resume" Should [] "messages that were compacted do not come back" => prompts::undone;
    "prefix_stays" Should [Rates] "the prefix changes in few calls, as each change breaks the prompt cache" => prompts::prefix;
    "never_larger" Should [] "without a model the context does not get larger" => prompts::never_larger;
    "idempotent_at_rest" Should [AllScenes] "a context that it has just returned is left alone" => times::idempotent;
    "whole_answers" Should [Summaries] "an answer that broke off, declines or calls a tool is not taken for a summary" => facts::whole;
    "nothing_vanishes_unseen" Should [Summaries] "a model was sent each message that a summary replaces" => facts::unseen;
    "values_stay" Should [Summaries] "values stay as the model wrote them" => facts::values;
    "rules_stay" Should [Summaries] "rules stay as the model wrote them" => facts::rules;
    "kept_stays_kept" Should [Summaries] "a summary keeps what the one before it held" => facts::kept;
    "done_stays_done" Should [Summaries] "a finished item of the plan is not open again" => facts::done;
    "one_summary_per_span" Should [Summaries] "no summary is there twice, or beside one that contains it" => facts::once;
    "same_language" Should [Summaries] "a summary stays in the language that the model wrote" => facts::language;
    "summary_bounded" Should [Summaries, Rates] "after five compactions its texts fill at most half of what makes it fire" => times::bounded;
    "in_time" Should [Summaries, Rates, AllScenes] "it fires before the window is full, at a share of the window, and not at every call" => times::in_time;
    "tries_again" Should [Summaries, Rates] "after calls without an answer a summary is made once there is one" => times::tries_again;
    "makes_progress" Should [Summaries, Rates] "it asks a model in one of three calls at most, none twice again, and each answer frees room" => times::progress;
}

fn answers(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    Judged::by(true, plays.usual().failure())
}

fn goes_on(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    if !plays.scene.is_first() {
        return Judged::NoChance;
    }
    let once = Fault::ALL.into_iter().map(|fault| (fault.name(), plays.under(fault)));
    let never =
        std::iter::once_with(|| ("summaries that all fail", plays.with(SummaryWriter::Fails)));
    for (what, played) in once.chain(never) {
        match played.map(|played| played.failure()) {
            None => return Judged::OutOfTime,
            Some(None) => {}
            Some(Some(failure)) => return Judged::Broken(format!("under {what}: {failure}")),
        }
    }
    Judged::Held
}

fn deterministic(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let first = plays.usual();
    let shuffled = plays.spec.in_another_order();
    let shuffled = Plays::of(&shuffled, plays.scene.clone(), plays.stop);
    let second = match &plays.scene {
        scene if scene.shows_order() => &shuffled,
        scene if scene.is_usual() => plays,
        _ => return Judged::NoChance,
    };
    let Some(second) = second.with(SummaryWriter::Faithful) else {
        return Judged::OutOfTime;
    };
    Judged::by(first.has_fired(), difference(first, &second))
}

/// Where two replays of the same part ways. How either failed is another law's matter, and its words name the number of
/// a line.
fn difference(one: &Played, other: &Played) -> Option<String> {
    let (first, second) = (&one.record, &other.record);
    let both = CellRecord { end: first.end.clone(), ..second.clone() };
    let fails = [first, second].map(|record| matches!(record.end, End::Failed { .. }));
    let same_texts = *first == both && one.written == other.written;
    if (first.end == second.end || fails == [true; 2]) && same_texts {
        return None;
    }
    let pairs = first.prompt_tokens.iter().zip(&second.prompt_tokens);
    let sizes =
        pairs.enumerate().find(|(_, (one, other))| one != other).map(|(call, (one, other))| {
            format!("call {call} has a prompt of {one} tokens, and of {other}")
        });
    let found = sizes.or_else(|| {
        let mut pairs = one.written.iter().zip(&other.written);
        let (written, _) = pairs.find(|(one, other)| one != other)?;
        Some(format!("the text that call {} is sent", written.call))
    });
    let found = found.or_else(|| {
        let mut pairs = one.asked.iter().zip(&other.asked);
        let (asked, _) =
            pairs.find(|(one, other)| one.request.messages != other.request.messages)?;
        Some(format!("the request to a model in call {}", asked.call))
    });
    let what = found.map_or_else(String::new, |found| format!(": {found}"));
    Some(format!("two replays differ{what}"))
}
