//! Laws about prompts: their validity, their order, what is in them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::edits::{BEGIN, Originals, result_text};
use super::times::LARGE;
use super::{Judged, StrategyFacts};
use crate::check::play::{Asked, Played, Plays, SentPrompt};
use crate::check::world::Matter;
use crate::context::validity::{Level as ValidityLevel, Rule};
use crate::context::{Entry, Origin};
use crate::record::{CellRecord, End, Violation};
use crate::session::{ContentBlock, Message, Role, Session, Tag};
use crate::units::Tokens;

/// An edit in more than one of so many calls is one at every call.
const FEW: usize = 3;

/// Fewer edits say nothing about how often it edits.
const FEWEST_EDITS: usize = 4;

/// Messages that come back, of which one may be a file that was read again.
const COME_BACK: usize = 2;

/// The text of a message.
pub(super) fn text_of(message: &Message) -> String {
    message.model_text().iter().map(|text| &**text).collect::<Vec<_>>().join("\n")
}

impl SentPrompt {
    /// All of its texts.
    pub(in crate::check) fn text(&self) -> String {
        self.entries.iter().map(|entry| text_of(&entry.message)).collect::<Vec<_>>().join("\n")
    }

    /// The session's message that each entry is, whole or changed; `None` of what was written in place of others.
    pub(in crate::check) fn messages<'p>(
        &'p self,
        session: &'p Session,
    ) -> impl Iterator<Item = Option<usize>> + 'p {
        let history = &session.messages()[..self.before.min(session.messages().len())];
        self.entries.iter().map(move |entry| {
            let own = entry.origin.message();
            // A program that sends a message again writes it anew.
            let mut known = history.iter();
            own.or_else(|| known.rposition(|old| are_same(old, &entry.message)))
        })
    }

    /// The session's messages that are in it, whole or changed.
    pub(in crate::check) fn present(&self, session: &Session) -> BTreeSet<usize> {
        self.messages(session).flatten().collect()
    }

    /// The entries that were written in place of others.
    pub(in crate::check) fn written(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.iter();
        entries.filter(|entry| matches!(entry.origin, Origin::Derived(_) | Origin::Authored))
    }

    /// Their texts.
    pub(super) fn written_texts(&self) -> impl Iterator<Item = String> {
        self.written().map(|entry| text_of(&entry.message))
    }
}

/// Whether two messages say the same, however the arguments of their calls are written.
fn are_same(one: &Message, other: &Message) -> bool {
    let texts = one.model_text().iter().zip(other.model_text());
    let mut blocks = one.content().iter().zip(other.content()).zip(texts);
    one.role() == other.role()
        && one.content().len() == other.content().len()
        && blocks.all(|((one, other), (text, same))| match (one.as_use(), other.as_use()) {
            (Some(tool), Some(same)) => tool.id == same.id,
            (None, None) => {
                let [id, other] =
                    [one, other].map(|block| block.as_result().map(|result| &result.tool_use_id));
                id == other && text == same
            }
            _ => false,
        })
}

/// The first entry in which a prompt differs from the one before it; `None` where it only goes on.
fn first_change(before: &SentPrompt, now: &SentPrompt) -> Option<usize> {
    let mut pairs = before.entries.iter().zip(&now.entries);
    let other = pairs.position(|(one, other)| {
        !Arc::ptr_eq(&one.message, &other.message) && one.message != other.message
    });
    other.or((now.entries.len() < before.entries.len()).then_some(now.entries.len()))
}

impl Played {
    /// The prompts that are not the one before with messages behind it, each with the one before.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&SentPrompt, &SentPrompt, usize)> {
        let pairs = self.prompts.iter().zip(self.prompts.iter().skip(1));
        pairs.filter_map(|(before, now)| Some((before, now, first_change(before, now)?)))
    }

    pub(in crate::check) fn has_fired(&self) -> bool {
        !self.record.compactions.is_empty()
    }
}

/// The first violation of these rules that a provider refuses.
fn violation(record: &CellRecord, is_meant: impl Fn(&str) -> bool) -> Option<&Violation> {
    record.violations.iter().find(|one| one.level == ValidityLevel::Rejected && is_meant(&one.rule))
}

fn is_of_thinking(rule: &str) -> bool {
    let of_thinking = [Rule::ThinkingEdited, Rule::ThinkingDropped, Rule::ThinkingLast];
    of_thinking.iter().any(|known| known.name() == rule)
}

/// `call 5: orphan_result: tool use c3, at message 7 of the prompt`.
fn in_words(played: &Played, found: &Violation) -> String {
    let prompt = played.prompts.iter().find(|prompt| prompt.call == found.call);
    let id = found.subject.rsplit(' ').next().unwrap_or_default();
    let at = prompt.and_then(|prompt| {
        prompt.entries.iter().position(|entry| {
            entry.message.tool_results().any(|(_, result)| &*result.tool_use_id == id)
                || entry.message.tool_uses().any(|(_, tool)| &*tool.id == id)
        })
    });
    let place = at.map_or_else(String::new, |at| format!(", at message {at} of the prompt"));
    format!("call {}: {}: {}{place}", found.call, found.rule, found.subject)
}

pub(super) fn valid(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let refused = violation(&played.record, |rule| !is_of_thinking(rule));
    let in_prompt = refused.map(|found| in_words(played, found));
    let found = in_prompt.or_else(|| played.asked.iter().find_map(unpaired));
    Judged::by(played.has_fired(), found)
}

/// A call without its result, or a result without its call, in a request to a model.
fn unpaired(asked: &Asked) -> Option<String> {
    let messages = asked.request.messages.iter();
    let uses = messages.clone().flat_map(|message| message.tool_uses());
    let uses: BTreeSet<&str> = uses.map(|(_, tool)| &*tool.id).collect();
    let results = messages.flat_map(|message| message.tool_results());
    let results: BTreeSet<&str> = results.map(|(_, result)| &*result.tool_use_id).collect();
    let id = uses.symmetric_difference(&results).next()?;
    let (there, missing) = if uses.contains(id) { ("call", "result") } else { ("result", "call") };
    Some(format!(
        "call {}: a request to a model has the {there} `{id}` without its {missing}",
        asked.call
    ))
}

pub(super) fn thinking(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let found = violation(&played.record, is_of_thinking);
    let subjects = [Matter::Work, Matter::Loaded, Matter::Refused];
    let had_chance = played.has_fired() && subjects.contains(&plays.scene.subject);
    Judged::by(had_chance, found.map(|found| in_words(played, found)))
}

pub(super) fn bytes(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    if plays.scene.subject != Matter::Pictures {
        return Judged::NoChance;
    }
    let found = match &plays.usual().record.end {
        End::Died { call, .. } => Some(format!(
            "call {call}: pictures of over 32 MB together are refused, and the context did not get smaller"
        )),
        _ => None,
    };
    Judged::by(true, found)
}

/// The text that a user typed while tools ran.
fn typed_beside(message: &Message) -> Option<&str> {
    message.tool_results().next()?;
    message.content().iter().find_map(ContentBlock::as_text).map(|text| &**text)
}

pub(super) fn newest_request(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let found = played.prompts.iter().find_map(|prompt| {
        let history = &session.messages()[..prompt.before];
        let at = history.iter().rposition(|message| message.has_tag(Tag::TypedUser))?;
        let newest = &history[at];
        let text = text_of(newest).trim().to_owned();
        // Words beside results that came since are a request, too.
        let beside = history[at + 1..].iter().filter_map(|one| typed_beside(one));
        let requests: Vec<&str> = beside.chain([text.as_str()]).collect();
        if !prompt.entries.iter().any(|entry| {
            let said = text_of(&entry.message);
            entry.message.role() == Role::User && requests.iter().any(|text| said.contains(text))
        }) {
            return Some(format!(
                "call {}: `{text}` is not in the prompt as it was typed",
                prompt.call
            ));
        }
        if requests.len() > 1 {
            return None;
        }
        let pictures = newest.content().iter().filter(|block| block.images() > 0);
        let mut missing = pictures.filter(|block| {
            let mut entries = prompt.entries.iter();
            !entries.any(|entry| entry.message.content().contains(block))
        });
        missing.next()?;
        Some(format!("call {}: the picture of `{text}` is not in the prompt", prompt.call))
    });
    Judged::by(played.has_fired(), found)
}

pub(super) fn newest_results(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let window = plays.scene.window;
    let mut had_chance = false;
    let originals = Originals::of(&plays.scene.session);
    let found = played.changes().find_map(|(before, now, _)| {
        let newest = now.before.checked_sub(1)?;
        let message = plays.scene.session.messages().get(newest)?;
        message.tool_results().next()?;
        // The messages since the call before may be too large by themselves.
        let arrived = message_tokens(&plays.scene.session, before.before..now.before);
        if before.tokens + arrived > window || played.record.overflows.contains(&now.call) {
            return None;
        }
        had_chance = true;
        let lost = message.tool_results().find(|(_, result)| {
            let text = result_text(result);
            let begin = &text[..text.floor_char_boundary(BEGIN)];
            // In its place, or in that of an equal one.
            !now.results().any(|other| {
                (other.tool_use_id == result.tool_use_id
                    || originals.text(&other.tool_use_id) == Some(&*text))
                    && result_text(other).starts_with(begin)
            })
        });
        let result = lost.map(|(_, result)| {
            format!(
                "the newest result, of `{}`, is not in the prompt as it was",
                result.tool_use_id
            )
        });
        let calls = plays.scene.session.message(newest.checked_sub(1)?);
        let found = result.or_else(|| changed_call(now, calls))?;
        Some(format!("call {}: {found}", now.call))
    });
    Judged::by(had_chance, found)
}

/// Finds a call of this message that is in the prompt with other arguments.
fn changed_call(prompt: &SentPrompt, message: &Message) -> Option<String> {
    let sent = prompt.entries.iter().flat_map(|entry| entry.message.tool_uses());
    let mut pairs = sent.filter_map(|(_, now)| {
        let (_, was) = message.tool_uses().find(|(_, was)| was.id == now.id)?;
        Some((&now.id, now.input.value(), was.input.value()))
    });
    let (id, ..) = pairs.find(|(_, now, was)| !keeps_arguments(now, was))?;
    Some(format!("the arguments of `{id}`, a newest call, are not in the prompt as they were"))
}

/// Whether all arguments are as they were, but for long texts.
fn keeps_arguments(now: &Value, was: &Value) -> bool {
    match (now, was) {
        (Value::Object(now), Value::Object(was)) => {
            was.iter().all(|(key, was)| now.get(key).is_some_and(|now| keeps_arguments(now, was)))
        }
        (_, Value::String(text)) if text.len() > BEGIN => true,
        _ => now == was,
    }
}

/// Tokens of some messages, four characters each.
fn message_tokens(session: &Session, range: std::ops::Range<usize>) -> Tokens {
    let messages = session.messages().get(range).unwrap_or_default();
    let texts = messages.iter().flat_map(|message| message.model_text());
    Tokens(texts.map(|text| text.chars().count() as u64 / 4).sum())
}

pub(super) fn ends(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let prompt = played.prompts.iter().find(|prompt| {
        let last = prompt.entries.last();
        let own = plays.scene.session.messages().get(prompt.before.saturating_sub(1));
        last.is_some_and(|entry| entry.message.role() == Role::Assistant)
            && own.is_some_and(|message| message.role() == Role::User)
    });
    let found = prompt.map(|prompt| {
        format!("call {}: the prompt ends with a message of the assistant", prompt.call)
    });
    Judged::by(played.has_fired(), found)
}

pub(super) fn order(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let found = played.prompts.iter().find_map(|prompt| {
        let entries = prompt.messages(session).zip(&prompt.entries);
        // A restored message is not where it was.
        let messages: Vec<Option<usize>> = entries.filter(|(_, entry)| !matches!(entry.origin, Origin::Restored(_))).map(|(at, _)| at).collect();
        let present: BTreeSet<usize> = messages.iter().copied().flatten().collect();
        let mut last: Option<usize> = None;
        for (place, message) in messages.iter().enumerate() {
            if let Some(message) = message {
                match last {
                    Some(other) if other == *message => {
                        return Some(format!("call {}: message {message} is in the prompt twice", prompt.call));
                    }
                    Some(other) if other > *message => {
                        return Some(format!("call {}: message {message} comes behind message {other}", prompt.call));
                    }
                    _ => last = Some(*message),
                }
                continue;
            }
            // A summary of earlier messages, behind one that follows them.
            let next = messages[place..].iter().copied().flatten().next();
            let from = last.map_or(0, |last| last + 1);
            let replaced = (from..next.unwrap_or(prompt.before)).any(|at| !present.contains(&at));
            if let Some(last) = last.filter(|_| !replaced) {
                return Some(format!(
                    "call {}: a text of the strategy stands behind message {last}, of which nothing there was replaced",
                    prompt.call
                ));
            }
        }
        None
    });
    Judged::by(played.has_fired(), found)
}

pub(super) fn undone(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let session = &plays.scene.session;
    let pairs = played.prompts.iter().zip(played.prompts.iter().skip(1));
    let found = pairs.clone().find_map(|(before, now)| {
        let present = before.present(session);
        let written = played.written.iter().filter(|written| written.call == now.call);
        let back: BTreeSet<usize> = written
            .filter_map(|written| {
                let history = &session.messages()[..before.before];
                let at = history.iter().position(|known| are_same(known, &written.message))?;
                (!present.contains(&at) && !history[at].has_tag(Tag::TypedUser)).then_some(at)
            })
            .collect();
        (back.len() >= COME_BACK).then(|| {
            format!("call {}: messages {back:?}, which were compacted, are put back", now.call)
        })
    });
    Judged::by(played.has_fired(), found)
}

pub(super) fn prefix(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    // Where a result is a large part of the window, whoever edits rarely does so in few calls, too.
    let small_results = match plays.scene.subject {
        Matter::Growth => plays.scene.window >= LARGE,
        subject => subject == Matter::Long,
    };
    if !small_results {
        return Judged::NoChance;
    }
    let changes: Vec<(&SentPrompt, &SentPrompt, usize)> = played.changes().collect();
    let Some((_, first, _)) = changes.first() else {
        return Judged::NoChance;
    };
    let calls = played.prompts.iter().skip_while(|prompt| prompt.call < first.call).count();
    let sent = changes.iter().flat_map(|(_, now, at)| &now.entries[*at..]);
    let again: Tokens = sent.map(|entry| entry.size().tokens).sum();
    let often = changes.len() >= FEWEST_EDITS && changes.len() * FEW > calls;
    let found = often.then(|| {
        format!(
            "call {}: from there on it changes the prefix in {} of {calls} calls, and {} tokens are written to the \
             cache again",
            first.call,
            changes.len(),
            again.in_short()
        )
    });
    Judged::by(calls > FEWEST_EDITS, found)
}

pub(super) fn never_larger(plays: &Plays<'_>, _: &StrategyFacts) -> Judged {
    let played = plays.usual();
    let asked: BTreeSet<usize> = played.asked.iter().map(|asked| asked.call).collect();
    let mut events = played.record.compactions.iter();
    let grown = events.find(|event| event.after > event.before && !asked.contains(&event.call));
    let found = grown.map(|event| {
        format!("call {}: from {} to {} tokens", event.call, event.before, event.after)
    });
    Judged::by(played.has_fired(), found)
}
