//! Laws about when a strategy acts.

use std::collections::BTreeSet;

use super::{Judged, Known};
use crate::check::play::Plays;
use crate::check::world::Matter;
use crate::record::End;
use crate::units::Tokens;

/// A context at rest is smaller than this share of the smallest one that it changed.
const AT_REST: f64 = 0.8;

/// Calls, in one of which a model may be asked.
const CALLS: usize = 3;

/// Fewer calls say nothing about how often it compacts.
const FEWEST_CALLS: usize = 6;

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

pub(super) fn idempotent(plays: &Plays<'_>, known: &Known) -> Judged {
    let window = plays.scene.window;
    let trigger = known
        .triggers
        .iter()
        .find(|(of, _)| *of == window)
        .map(|(_, size)| *size);
    let Some(trigger) = trigger else {
        return Judged::NoChance;
    };
    let at_rest = |size: Tokens| (size.0 as f64) < AT_REST * trigger.0 as f64;
    if !plays.scene.is_usual() {
        return Judged::NoChance;
    }
    let Some(played) = plays.twice() else {
        return Judged::OutOfTime;
    };
    let found = played.again.iter().find(|(_, size)| at_rest(*size));
    let found = found.map(|(call, size)| {
        format!(
            "call {call}: given its own context of {size} tokens again, it changed it once more"
        )
    });
    Judged::by(!played.record.compactions.is_empty(), found)
}

pub(super) fn progress(plays: &Plays<'_>, _: &Known) -> Judged {
    // In a small window what products keep in tokens is large.
    if plays.scene.window < LARGE {
        return Judged::NoChance;
    }
    let played = plays.usual();
    let calls: Vec<usize> = played
        .asked
        .iter()
        .map(|asked| asked.call)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let often = calls.windows(2).find(|pair| pair[1] - pair[0] < CALLS);
    let often = often.map(|pair| {
        format!(
            "calls {} and {}: a model is asked in both",
            pair[0], pair[1]
        )
    });
    let frees_nothing = || {
        calls.iter().find_map(|call| {
            let events = || {
                played
                    .record
                    .compactions
                    .iter()
                    .filter(|event| event.call == *call)
            };
            let (before, after) = (events().next()?.before, events().next_back()?.after);
            (after >= before).then(|| {
                format!("call {call}: a model is asked, and {before} tokens become {after}")
            })
        })
    };
    Judged::by(!calls.is_empty(), often.or_else(frees_nothing))
}

pub(super) fn bounded(plays: &Plays<'_>, _: &Known) -> Judged {
    let played = plays.usual();
    let fired = played.fired();
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

pub(super) fn in_time(plays: &Plays<'_>, known: &Known) -> Judged {
    let played = plays.usual();
    let window = plays.scene.window;
    match plays.scene.subject {
        Matter::Growth | Matter::Chinese => {}
        Matter::Work if window >= LARGE => {
            return Judged::by(
                !played.record.compactions.is_empty(),
                counts_pictures(plays, known),
            );
        }
        _ => return Judged::NoChance,
    }
    let found = if window <= Tokens(6_000) {
        let calls = played.prompts.len();
        let fired: BTreeSet<usize> = played
            .record
            .compactions
            .iter()
            .map(|event| event.call)
            .collect();
        let is_always = calls >= FEWEST_CALLS && fired.len() * 2 > calls;
        is_always.then(|| {
            format!(
                "in a window of {window} tokens it compacts before {} of {calls} calls",
                fired.len()
            )
        })
    } else if let End::Died { call, .. } = &played.record.end {
        Some(format!(
            "call {call}: the prompt is larger than the window of {window} tokens"
        ))
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
fn counts_pictures(plays: &Plays<'_>, known: &Known) -> Option<String> {
    let window = plays.scene.window;
    let of_text = known.fired_at.iter().find(|(of, _)| *of == window)?.1?;
    let fired = plays.usual().fired();
    let first = fired.first()?;
    (first.before.0 as f64 <= PICTURES * of_text.0 as f64).then(|| {
        format!(
            "call {}: after a picture was pasted it fires at {} tokens, otherwise at {of_text}",
            first.call, first.before
        )
    })
}

/// Finds a strategy that fires early here, and late in a smaller window: at a count of tokens, whatever the window.
fn ignores_window(window: Tokens, known: &Known) -> Option<String> {
    let at = |wanted: Tokens| {
        let mut known = known.fired_at.iter();
        known.find(|(of, _)| *of == wanted)?.1
    };
    let own = at(window)?;
    let share = own.0 as f64 / window.0 as f64;
    let smaller = known.fired_at.iter().filter(|(of, _)| *of < window);
    let mut later = smaller.filter_map(|(of, fired)| Some((*fired)?.0 as f64 / of.0 as f64));
    let is_later = later.any(|other| other > LATER * share);
    (is_later && share < EARLY).then(|| {
        format!(
            "it ignores the window it is told: at {} it fires at {:.0} %",
            window.in_short(),
            100.0 * share
        )
    })
}
