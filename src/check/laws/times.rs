//! Laws about when a strategy acts.

use std::collections::BTreeSet;

use super::{Judged, StrategyFacts};
use crate::check::play::{Asked, Played, Plays};
use crate::check::world::{Matter, OUTAGE};
use crate::record::End;
use crate::units::Tokens;

/// A context at rest is smaller than this share of the smallest one that it changed.
const AT_REST: f64 = 0.8;

/// Calls, in one of which a model may be asked.
const CALLS: usize = 3;

/// Fewer calls say nothing about how often it compacts.
const FEWEST_CALLS: usize = 6;

/// A request may be sent so many times in a call.
const TIMES_SENT: usize = 2;

/// Calls with more of them show a habit.
const INSISTS: usize = 5;

/// The window in which even a few messages are a large part.
const SMALL: Tokens = Tokens(6_000);

/// The window from which on sizes that are fixed numbers of tokens are small.
pub(super) const LARGE: Tokens = Tokens(200_000);

/// With a picture in the context it fires no earlier than at this share of where it fires else.
const PICTURES: f64 = 0.6;

/// It fires at another share of a smaller window where that is so many times as large.
const LATER: f64 = 2.0;

/// Below this share of the window it fires too early to know the window.
const EARLY: f64 = 0.4;

/// The share of a trigger that summaries may fill after so many of them.
const BOUND: f64 = 0.5;
const GENERATIONS: usize = 5;

pub(super) fn idempotent(plays: &Plays<'_>, known: &StrategyFacts) -> Judged {
    let window = plays.scene.window;
    let trigger = known.triggers.get(&window);
    let Some(trigger) = trigger.filter(|_| plays.scene.is_usual()) else {
        return Judged::NoChance;
    };
    let most = AT_REST * trigger.0 as f64;
    let Some(played) = plays.twice() else {
        return Judged::OutOfTime;
    };
    let found = played.again.iter().find(|(_, size)| (size.0 as f64) < most).map(|(call, size)| {
        format!(
            "call {call}: given its own context of {size} tokens again, it changed it once more"
        )
    });
    Judged::by(played.has_fired(), found)
}

/// Finds a strategy that never asks again once a model did not answer for a while.
pub(super) fn tries_again(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let all = played.asked.iter().filter(|asked| asked.answer.is_none());
    let mut failed = all.filter(|asked| asked.call < OUTAGE);
    let (Matter::Outage, Some(first)) = (plays.scene.subject, failed.next()) else {
        return Judged::NoChance;
    };
    let answered = played.asked.iter().any(|asked| asked.answer.is_some());
    let mut later = played.prompts.iter().skip_while(|prompt| prompt.call < first.call);
    let sent = later.next().map(|prompt| prompt.tokens);
    // A strategy that clears something in place of the summary needs none for a while.
    let event = played.record.compactions.iter().find(|event| event.call == first.call);
    let begin = event.map(|event| event.before).max(sent);
    let grown = later.last().map(|prompt| prompt.tokens) > begin;
    let died = matches!(played.record.end, End::Died { .. });
    let found = (!answered && (died || grown)).then(|| {
        format!(
            "call {}: a model does not answer, nor until call {OUTAGE}; then it is not asked again",
            first.call
        )
    });
    Judged::by(true, found)
}

/// Finds a strategy that sends a request that failed again and again, call after call.
fn insists(played: &Played) -> Judged {
    let failed = played.asked.iter().filter(|asked| asked.answer.is_none());
    let all = failed.clone();
    let often = all.filter(|asked| times_sent(played, asked) > TIMES_SENT);
    let calls: BTreeSet<usize> = often.map(|asked| asked.call).collect();
    let first = calls.first().filter(|_| calls.len() >= INSISTS);
    let found = first.map(|first| {
        format!(
            "call {first}: a request that failed is sent more than twice, and so in {} calls",
            calls.len()
        )
    });
    Judged::by(failed.count() > 0, found)
}

/// The number of equal requests in a call.
fn times_sent(played: &Played, asked: &Asked) -> usize {
    let others = played.asked.iter().filter(|other| {
        other.call == asked.call && other.request.messages == asked.request.messages
    });
    others.count()
}

pub(super) fn progress(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    if plays.scene.subject == Matter::Outage {
        return insists(plays.usual());
    }
    // In a small window what products keep in tokens is large.
    if plays.scene.window < LARGE {
        return Judged::NoChance;
    }
    let played = plays.usual();
    let mut calls: Vec<usize> = played.asked.iter().map(|asked| asked.call).collect();
    calls.dedup();
    let often = calls.windows(2).find(|pair| pair[1] - pair[0] < CALLS);
    let often =
        often.map(|pair| format!("calls {} and {}: a model is asked in both", pair[0], pair[1]));
    let found = often.or_else(|| {
        calls.iter().find_map(|call| {
            let mut own = played.record.compactions.iter().filter(|event| event.call == *call);
            let first = own.next()?;
            let (before, after) = (first.before, own.next_back().unwrap_or(first).after);
            (after >= before).then(|| {
                format!("call {call}: a model is asked, and {before} tokens become {after}")
            })
        })
    });
    Judged::by(!calls.is_empty(), found)
}

pub(super) fn bounded(plays: &Plays<'_>, known: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let fired = played.fired(known.asks);
    let answered = fired.len();
    if plays.scene.subject != Matter::Generations || answered < GENERATIONS {
        return Judged::NoChance;
    }
    let Some(trigger) = fired.iter().map(|event| event.before).min() else {
        return Judged::NoChance;
    };
    let found = played.prompts.last().and_then(|prompt| {
        let written: Tokens = prompt.written().map(|entry| entry.size().tokens).sum();
        (written.0 as f64 > BOUND * trigger.0 as f64).then(|| {
            format!(
                "call {}: after {answered} compactions the texts of the strategy have {written} tokens, and it fires at {trigger}",
                prompt.call
            )
        })
    });
    Judged::by(true, found)
}

/// Finds a session that ends at a prompt which the strategy did not make smaller.
pub(super) fn survives(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let subjects = [
        Matter::Growth,
        Matter::Chinese,
        Matter::Work,
        Matter::Loaded,
        Matter::Refused,
        Matter::Overfull,
    ];
    // In a small window what products keep in tokens is too large.
    if !subjects.contains(&plays.scene.subject) || plays.scene.window <= SMALL {
        return Judged::NoChance;
    }
    let window = plays.scene.window;
    let found = match &plays.usual().record.end {
        // A prompt that is small already may have nothing left that could go.
        End::Died { call, prompt, .. } if prompt.0 * 2 > window.0 => Some(format!(
            "call {call}: a prompt of {prompt} tokens is refused, it does not become smaller, and the session ends"
        )),
        _ => None,
    };
    Judged::by(true, found)
}

pub(super) fn in_time(plays: &Plays<'_>, known: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let window = plays.scene.window;
    match plays.scene.subject {
        Matter::Growth | Matter::Chinese | Matter::Overfull => {}
        Matter::Work if window >= LARGE => {
            return Judged::by(played.has_fired(), counts_pictures(plays, known));
        }
        _ => return Judged::NoChance,
    }
    let found = if window <= SMALL {
        let calls = played.prompts.len();
        let fired = played.fired(known.asks);
        let always = calls >= FEWEST_CALLS && fired.len() * 2 > calls;
        always.then(|| {
            format!(
                "in a window of {window} tokens it compacts before {} of {calls} calls",
                fired.len()
            )
        })
    } else if let Some(refused) = played.record.overflows.first() {
        Some(format!(
            "call {refused}: the prompt was refused before it acted, in a window of {window} tokens"
        ))
    } else {
        ignores_window(window, known)
    };
    Judged::by(true, found)
}

/// Finds a strategy that fires much earlier with a picture than with text.
fn counts_pictures(plays: &Plays<'_>, known: &StrategyFacts) -> Option<String> {
    let window = plays.scene.window;
    let of_text = known.first_fired(window)?;
    let fired = plays.usual().fired(known.asks);
    let first = fired.first()?;
    (first.before.0 as f64 <= PICTURES * of_text.0 as f64).then(|| {
        format!(
            "call {}: after a picture was pasted it fires at {} tokens, otherwise at {of_text}",
            first.call, first.before
        )
    })
}

/// Finds a strategy that fires early here, and late in a smaller window: at a count of tokens, whatever the window.
fn ignores_window(window: Tokens, known: &StrategyFacts) -> Option<String> {
    let own = known.first_fired(window)?;
    let share = own.0 as f64 / window.0 as f64;
    let smaller = known.fired_at.iter().filter(|(of, _)| *of < window);
    let mut later = smaller.filter_map(|(of, fired)| Some((*fired)?.0 as f64 / of.0 as f64));
    (later.any(|other| other > LATER * share) && share < EARLY).then(|| {
        format!(
            "it ignores the window it is told: at {} it fires at {:.0} %",
            window.in_short(),
            100.0 * share
        )
    })
}
