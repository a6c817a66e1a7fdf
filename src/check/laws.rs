//! The laws, one line each: what a strategy owes the provider, the model and the user.
//!
//! A law looks at what one scene showed. It says whether it had a chance to be broken there, and if it was, in which
//! call and by what.

use std::collections::BTreeSet;

use super::Level;
use super::play::{Plays, Writer};
use crate::model::fault::Fault;
use crate::record::CellRecord;
use crate::units::Tokens;

mod facts;
mod prompts;
mod times;

pub(super) use facts::frames;

/// What one scene says of a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judged {
    /// It could not have been broken here.
    NoChance,
    /// It was kept.
    Held,
    /// How it was broken.
    Broken(String),
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

/// What all scenes together show of a strategy.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Scenes in which it changed anything.
    pub(super) fired: usize,
    /// Lines that it wrote twice or more, with other numbers or in another scene; without their numbers.
    pub(super) frames: BTreeSet<String>,
    /// For each window: the smallest context that it changed.
    pub(super) triggers: Vec<(Tokens, Tokens)>,
    /// For each window in which the context grows to its end: the prompt at which it first fired.
    pub(super) fired_at: Vec<(Tokens, Option<Tokens>)>,
}

/// A law that a strategy is checked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckLaw {
    pub(super) name: &'static str,
    pub(super) level: Level,
    /// The behaviour that it asks for.
    pub(super) expected: &'static str,
    /// Whether it is about summaries, and so not asked of strategies without any.
    pub(super) is_of_summaries: bool,
    /// Whether it is about how often something happens, which a smaller session does not show.
    pub(super) is_of_rates: bool,
    /// Whether it is judged in the scene of pictures, too.
    pub(super) is_of_bytes: bool,
    pub(super) judge: fn(&Plays<'_>, &Known) -> Judged,
}

const fn must(
    name: &'static str,
    expected: &'static str,
    judge: fn(&Plays<'_>, &Known) -> Judged,
) -> CheckLaw {
    CheckLaw {
        name,
        level: Level::Must,
        expected,
        is_of_summaries: false,
        is_of_bytes: false,
        is_of_rates: false,
        judge,
    }
}

const fn should(
    name: &'static str,
    expected: &'static str,
    judge: fn(&Plays<'_>, &Known) -> Judged,
) -> CheckLaw {
    CheckLaw {
        level: Level::Should,
        ..must(name, expected, judge)
    }
}

impl CheckLaw {
    const fn of_rates(self) -> Self {
        Self {
            is_of_rates: true,
            ..self
        }
    }

    const fn of_bytes(self) -> Self {
        Self {
            is_of_bytes: true,
            ..self
        }
    }

    const fn of_summaries(self) -> Self {
        Self {
            is_of_summaries: true,
            ..self
        }
    }
}

/// The name of the law about answers: where it is broken, no other is tried.
pub(super) const ANSWERS: &str = "answers";

/// All of them: those that decide first.
pub(super) const LAWS: [CheckLaw; 27] = [
    must(
        ANSWERS,
        "every line is answered, in time and in the protocol's form",
        answers,
    )
    .of_bytes(),
    must("goes_on", "no fault of a provider ends it", goes_on),
    must(
        "deterministic",
        "the same session gives the same contexts",
        deterministic,
    ),
    must(
        "valid_context",
        "the provider accepts every prompt, wherever it accepts the full history",
        prompts::valid,
    )
    .of_bytes(),
    must(
        "thinking_stays",
        "thinking and its signatures stay as they are while their calls are open",
        prompts::thinking,
    ),
    must(
        "no_invention",
        "no text in the user's voice that neither the session nor a model wrote",
        facts::invention,
    ),
    must(
        "safe_failure",
        "a failed or empty answer removes nothing while the prompt fits",
        facts::safe_failure,
    )
    .of_summaries(),
    should(
        "bytes_fit",
        "a request that is too large in bytes or images becomes smaller",
        prompts::bytes,
    )
    .of_bytes(),
    should(
        "newest_request_stays",
        "the newest request of the user stays word for word",
        prompts::newest_request,
    ),
    should(
        "newest_results_stay",
        "the newest tool results stay, unless the prompt is too long",
        prompts::newest_results,
    ),
    should(
        "ends_for_the_model",
        "the last message is not the assistant's",
        prompts::ends,
    ),
    should(
        "order_stays",
        "messages keep their order, and none is there twice",
        prompts::order,
    ),
    should(
        "undone_on_resume",
        "messages that were compacted do not come back",
        prompts::undone,
    ),
    should(
        "prefix_stays",
        "the prefix changes in few calls, as each change breaks the prompt cache",
        prompts::prefix,
    )
    .of_rates(),
    should(
        "never_larger",
        "without a model the context does not get larger",
        prompts::never_larger,
    ),
    should(
        "idempotent_at_rest",
        "a context that it has just returned is left alone",
        times::idempotent,
    ),
    should(
        "whole_answers",
        "an answer that broke off is not taken for a summary",
        facts::whole,
    )
    .of_summaries(),
    should(
        "nothing_vanishes_unseen",
        "a model was sent each message that a summary replaces",
        facts::unseen,
    )
    .of_summaries(),
    should(
        "values_stay",
        "values stay as the model wrote them",
        facts::values,
    )
    .of_summaries(),
    should(
        "rules_stay",
        "rules stay as the model wrote them",
        facts::rules,
    )
    .of_summaries(),
    should(
        "kept_stays_kept",
        "a summary keeps what the one before it held",
        facts::kept,
    )
    .of_summaries(),
    should(
        "done_stays_done",
        "a finished item of the plan is not open again",
        facts::done,
    )
    .of_summaries(),
    should(
        "one_summary_per_span",
        "no summary is there twice, or beside one that contains it",
        facts::once,
    )
    .of_summaries(),
    should(
        "same_language",
        "a summary stays in the language that the model wrote",
        facts::language,
    )
    .of_summaries(),
    should(
        "summary_bounded",
        "after five compactions its texts fill at most half of what makes it fire",
        times::bounded,
    )
    .of_summaries()
    .of_rates(),
    should(
        "in_time",
        "it fires before the window is full, at a share of the window, and not at every call",
        times::in_time,
    )
    .of_summaries()
    .of_rates(),
    should(
        "makes_progress",
        "it asks a model in one of three calls at most, and each answer frees room",
        times::progress,
    )
    .of_summaries()
    .of_rates(),
];

fn answers(plays: &Plays<'_>, _: &Known) -> Judged {
    Judged::by(true, plays.usual().failure())
}

fn goes_on(plays: &Plays<'_>, _: &Known) -> Judged {
    if !plays.scene.is_first() {
        return Judged::NoChance;
    }
    let found = Fault::ALL.into_iter().find_map(|fault| {
        let failure = plays.under(fault).failure()?;
        Some(format!("under {}: {failure}", fault.name()))
    });
    Judged::by(true, found)
}

fn deterministic(plays: &Plays<'_>, _: &Known) -> Judged {
    if !plays.scene.is_usual() {
        return Judged::NoChance;
    }
    let first = plays.usual();
    let second = plays.with(Writer::Faithful);
    Judged::by(
        !first.record.compactions.is_empty(),
        difference(&first.record, &second.record),
    )
}

/// Where two replays of the same part ways.
fn difference(first: &CellRecord, second: &CellRecord) -> Option<String> {
    if first == second {
        return None;
    }
    let pairs = first.prompt_tokens.iter().zip(&second.prompt_tokens);
    let sizes = pairs.enumerate().find(|(_, (one, other))| one != other);
    let sizes = sizes.map(|(call, (one, other))| {
        format!("call {call} has a prompt of {one} tokens, and of {other}")
    });
    let texts = || {
        let mut changes = 0..first.changes.len();
        let at = changes.find(|at| first.changes.get(*at) != second.changes.get(*at))?;
        let call = first.compactions.get(at).map_or(0, |event| event.call);
        Some(format!("the text that call {call} is sent"))
    };
    let what = sizes
        .or_else(texts)
        .map_or_else(String::new, |what| format!(": {what}"));
    Some(format!("two replays differ{what}"))
}
