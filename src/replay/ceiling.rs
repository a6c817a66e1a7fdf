//! The ceiling where full history does not fit the reader's window: the evidence, and what is newest.
//!
//! The messages that hold an item's answer are quoted in one message of the user's, and behind it
//! is as much of the newest history as there is room for, unchanged and cut between two API rounds.
//! Text that the quotation already holds is not repeated.

use std::sync::Arc;

use super::observe::CallView;
use crate::context::Entry;
use crate::probe::{Asking, Probe, ProbeExt as _, judge};
use crate::session::{ContentBlock, Message, Role};
use crate::strategy::cut::Cut;
use crate::tokens::CountedTexts;
use crate::units::Tokens;

/// The text in front of the quoted evidence.
const EXCEPT: &str = "The beginning of this conversation is left out, except for:";

/// The text in that place if nothing is quoted.
const LEFT_OUT: &str = "The beginning of this conversation is left out.";

/// The messages that a probe is asked of: the prompt as it was sent, unless that does not fit the reader's `window`.
/// Then it is the evidence and the newest history that fits, as the flag says; `None` if not even the evidence
/// fits.
pub(crate) fn shown(
    view: &CallView<'_>,
    probe: &Probe,
    window: Option<Tokens>,
    counts: &CountedTexts,
) -> Option<(Vec<Arc<Message>>, bool)> {
    let entries = view.context.entries();
    let room = window
        .map(|window| window - (view.fixed.tokens + judge::MAX_ANSWER + question(probe, counts)));
    match room.filter(|room| view.context.size().tokens > *room) {
        None => {
            let messages = entries.iter().map(|entry| entry.message.clone());
            Some((messages.collect(), false))
        }
        Some(room) => {
            let evidence = probe.evidence_before(view.before);
            Some((of_evidence(entries, &evidence, room, counts)?, true))
        }
    }
}

/// Tokens of the longest form of a question.
fn question(probe: &Probe, counts: &CountedTexts) -> Tokens {
    let asked = judge::questions(None, &[], probe, Asking::default());
    let sizes = asked.iter().map(|request| {
        let texts = request.messages.iter().flat_map(|one| one.model_text());
        texts.map(|text| counts.size(text).tokens).sum()
    });
    sizes.max().unwrap_or(Tokens::ZERO)
}

/// The messages that a reader gets in place of the full history `entries`, in at most `room`
/// tokens; `evidence` are indices of entries, ascending. `None` if the evidence alone is too long.
fn of_evidence(
    entries: &[Entry],
    evidence: &[usize],
    room: Tokens,
    counts: &CountedTexts,
) -> Option<Vec<Arc<Message>>> {
    let quoted: Vec<(usize, Arc<str>)> = evidence
        .iter()
        .filter_map(|at| Some((*at, quotation(&entries.get(*at)?.message))))
        .collect();
    let head: Arc<str> = Arc::from(EXCEPT);
    let texts = quoted.iter().map(|(_, text)| text).chain([&head]);
    let mut front: Tokens = texts.map(|text| counts.size(text).tokens).sum();
    if front > room {
        return None;
    }
    let (mut from, mut behind) = (entries.len(), Tokens::ZERO);
    for at in (0..entries.len()).rev() {
        behind += entries[at].size().tokens;
        let own = quoted.iter().find(|(index, _)| *index == at);
        front = Tokens(front.0 - own.map_or(0, |(_, text)| counts.size(text).tokens.0));
        if front + behind > room {
            break;
        }
        if Cut::Round.allows(entries, at) {
            from = at;
        }
    }
    let newest = entries[from..].iter().map(|entry| entry.message.clone());
    let mut messages: Vec<Arc<Message>> = newest.collect();
    let texts = quoted.into_iter().filter(|(at, _)| *at < from);
    let mut blocks: Vec<ContentBlock> = texts.map(|(_, text)| ContentBlock::Text(text)).collect();
    let head = if blocks.is_empty() { Arc::from(LEFT_OUT) } else { head };
    blocks.insert(0, ContentBlock::Text(head));
    match messages.first_mut() {
        Some(first) if first.role() == Role::User => {
            blocks.extend(first.content().iter().cloned());
            *first = Arc::new(first.with_content(blocks));
        }
        _ => messages.insert(0, Arc::new(Message::new(Role::User, blocks))),
    }
    Some(messages)
}

/// All that a message says, with who says it.
fn quotation(message: &Message) -> Arc<str> {
    let who = match message.role() {
        Role::User if message.tool_results().next().is_some() => "tool",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let texts: Vec<&str> = message.model_text().iter().map(|text| &**text).collect();
    Arc::from(format!("[{who}]\n{}", texts.join("\n\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Origin;
    use crate::tokens::counter;

    /// Five rounds of an agent, one of which read a port long ago.
    fn entries(counts: &CountedTexts) -> Vec<Entry> {
        let mut messages = Vec::new();
        for round in 0..5 {
            let asked = format!("please look at part {round} of it");
            messages.push(Message::text(Role::User, asked));
            let answer = format!("part {round} is fine, and the rest of it as well");
            messages.push(Message::text(Role::Assistant, answer));
        }
        messages.insert(2, Message::text(Role::User, "the port is 58213"));
        messages.insert(3, Message::text(Role::Assistant, "noted"));
        let all = messages.into_iter().enumerate();
        all.map(|(at, message)| Entry::new(Origin::Verbatim(at), Arc::new(message), counts))
            .collect()
    }

    fn words(messages: &[Arc<Message>]) -> String {
        let texts = messages.iter().flat_map(|one| one.model_text());
        texts.map(|text| &**text).collect::<Vec<_>>().join("|")
    }

    /// The messages that fit into this room, as text; `None` if the evidence does not fit.
    fn check(evidence: &[usize], room: u64) -> Option<String> {
        let counts = CountedTexts::new(counter("chars/4").unwrap());
        let entries = entries(&counts);
        let shown = of_evidence(&entries, evidence, Tokens(room), &counts)?;
        let size: Tokens = shown
            .iter()
            .map(|message| Entry::new(Origin::Authored, message.clone(), &counts).size().tokens)
            .sum();
        assert!(size <= Tokens(room), "{size} in {room}");
        let roles: Vec<Role> = shown.iter().map(|message| message.role()).collect();
        assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
        Some(words(&shown))
    }

    #[test]
    fn the_evidence_stands_before_as_much_of_the_newest_as_fits() {
        let shown = check(&[2], 60).unwrap();
        assert!(shown.starts_with(EXCEPT), "{shown}");
        assert!(shown.contains("[user]\nthe port is 58213|"), "{shown}");
        assert!(shown.ends_with("part 4 is fine, and the rest of it as well"));
        assert!(!shown.contains("part 0"), "{shown}");
        // With more room there is more of the newest, and the evidence once.
        let more = check(&[2], 80).unwrap();
        assert!(more.len() > shown.len());
        assert_eq!(more.matches("58213").count(), 1);
    }

    #[test]
    fn what_stands_in_the_newest_is_not_quoted() {
        let shown = check(&[2, 11], 60).unwrap();
        assert_eq!(shown.matches("part 4 is fine").count(), 1, "{shown}");
        assert!(!shown.contains("[assistant]"), "{shown}");
    }

    #[test]
    fn of_what_was_never_said_the_newest_is_all_there_is() {
        let shown = check(&[], 60).unwrap();
        assert!(shown.starts_with(LEFT_OUT), "{shown}");
        assert!(shown.ends_with("part 4 is fine, and the rest of it as well"));
    }

    #[test]
    fn evidence_that_does_not_fit_is_shown_to_nobody() {
        assert_eq!(check(&[2], 15), None);
        let alone = check(&[2], 30).unwrap();
        assert!(alone.ends_with("58213"), "{alone}");
    }
}
