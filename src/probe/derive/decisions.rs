//! Decisions of a recorded session: proposed by a model, kept only where the recording bears them out.
//!
//! Rules cannot find a decision and its reason. A model reads the conversation part by part and makes
//! proposals. A proposal is kept only if its quotation appears verbatim in one message, and the quotation
//! holds choice and reason. Whether a reader can answer it from there, and not without, the
//! caller finds out by asking.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::proposal;
use crate::model::{Purpose, Request, Task};
use crate::probe::survival::content_word_recall;
use crate::script::word_count;
use crate::session::ground_truth::{Fact, PlantedFact};
use crate::session::{Message, Role, Session};
use crate::units::Tokens;

/// Characters of a session that are shown at once: some 6,000 tokens.
const SHOWN_CHARS: usize = 24_000;

/// Room for as many proposals as are read.
const MAX_PROPOSALS: Tokens = Tokens(2_048);

/// The most proposals that are read of one reply: each costs further questions.
pub const MOST_PROPOSALS: u32 = 12;

/// Characters of one of so many: the share of it that a field may be.
const PROPOSAL_CHARS: usize = 4 * 2_048 / 12;

/// A quotation of fewer words says nothing.
const LEAST_WORDS: usize = 5;

/// The share of the key's words that must be beside the choice: as survival binds a value.
const BOUND: f64 = 0.5;

/// The instructions to the model.
pub const INSTRUCTIONS: &str = include_str!("decisions.txt");

/// Why a proposal was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The reply was not a list of proposals.
    Unreadable,
    /// No message holds the quotation, or several do.
    QuoteNotFound,
    /// Choice, reason or key are not in the quotation.
    NotInQuote,
    /// The question holds the choice.
    ToldInQuestion,
    /// Another proposal quotes the same.
    Twice,
    /// There are [`MOST_PROPOSALS`] before it in the reply.
    TooMany,
}

impl DropReason {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Unreadable => "in replies that are no list",
            Self::QuoteNotFound => "whose quotation stands nowhere, or twice",
            Self::NotInQuote => "whose choice, reason or key is not in the quotation",
            Self::ToldInQuestion => "whose question holds the choice",
            Self::Twice => "proposed twice",
            Self::TooMany => "too far down in a reply",
        }
    }
}

/// The requests to the model, one for each part of the session.
pub fn requests(session: &Session) -> Vec<Request> {
    let mut parts: Vec<String> = Vec::new();
    for (at, message) in session.messages().iter().enumerate() {
        for text in said(message) {
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(SHOWN_CHARS) {
                let piece: String = piece.iter().collect();
                let shown = format!("[{at}, {}]\n{piece}\n\n", who(message.role()));
                match parts.last_mut() {
                    Some(part) if part.len() + shown.len() <= SHOWN_CHARS => part.push_str(&shown),
                    _ => parts.push(shown),
                }
            }
        }
    }
    let requests = parts.iter().map(|part| {
        let text = format!("<part>\n{}\n</part>", part.trim_end());
        Request {
            system: Some(Arc::from(INSTRUCTIONS)),
            ..Request::of_text(Purpose::Probe, Task::Answer, text, MAX_PROPOSALS)
        }
    });
    requests.collect()
}

fn who(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "agent",
    }
}

/// The texts of a message by user or agent, without tool output and thinking.
fn said(message: &Message) -> impl Iterator<Item = &str> {
    message.texts().map(|(_, text)| &**text).filter(|text| !text.trim().is_empty())
}

#[derive(Debug, Deserialize)]
struct ProposedDecision {
    question: String,
    key: String,
    choice: String,
    reason: String,
    #[serde(default)]
    rejected: Vec<String>,
    quote: String,
}

/// The proposals of these replies that the session bears out, and how many of the others were dropped
/// for what.
pub fn kept(
    session: &Session,
    replies: &[&str],
) -> (Vec<PlantedFact>, BTreeMap<DropReason, usize>) {
    let mut facts: Vec<PlantedFact> = Vec::new();
    let mut quotes: Vec<String> = Vec::new();
    let mut dropped: BTreeMap<DropReason, usize> = BTreeMap::new();
    for reply in replies {
        let Some(proposals) = read(reply) else {
            *dropped.entry(DropReason::Unreadable).or_default() += 1;
            continue;
        };
        for (at, proposed) in (0..).zip(proposals) {
            match borne_out(session, &proposed) {
                Ok(_) if at >= MOST_PROPOSALS => {
                    *dropped.entry(DropReason::TooMany).or_default() += 1;
                }
                Ok(_) if quotes.contains(&proposed.quote) => {
                    *dropped.entry(DropReason::Twice).or_default() += 1;
                }
                Ok(at) => {
                    quotes.push(proposed.quote.clone());
                    facts.push(fact(proposed, at, facts.len()));
                }
                Err(why) => *dropped.entry(why).or_default() += 1,
            }
        }
    }
    (facts, dropped)
}

/// The list in a reply, fenced or not.
fn read(reply: &str) -> Option<Vec<ProposedDecision>> {
    let list = reply.trim();
    let fenced = list.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let list = fenced.map_or(list, |inside| inside.trim_start_matches("json").trim());
    serde_json::from_str(list).ok()
}

/// The message that bears a proposal out.
fn borne_out(session: &Session, proposed: &ProposedDecision) -> Result<usize, DropReason> {
    let quote = proposed.quote.trim();
    if word_count(quote) < LEAST_WORDS {
        return Err(DropReason::QuoteNotFound);
    }
    let messages = session.messages().iter();
    let mut holding = messages.map(|message| said(message).any(|text| text.contains(quote)));
    let Some(at) = holding.position(|holds| holds).filter(|_| !holding.any(|holds| holds)) else {
        return Err(DropReason::QuoteNotFound);
    };
    let [quoted, question, choice, reason] =
        [quote, &proposed.question, &proposed.choice, &proposed.reason]
            .map(|text| text.trim().to_lowercase());
    if [&choice, &reason].iter().any(|part| part.is_empty() || !quoted.contains(part.as_str()))
        || content_word_recall(&proposed.key, quote) < BOUND
    {
        return Err(DropReason::NotInQuote);
    }
    if question.is_empty() || question.contains(&choice) {
        return Err(DropReason::ToldInQuestion);
    }
    Ok(at)
}

fn fact(proposed: ProposedDecision, message: usize, at: usize) -> PlantedFact {
    let decision = Fact::Decision {
        key: proposed.key.trim().to_owned(),
        choice: proposed.choice.trim().to_owned(),
        reason: proposed.reason.trim().to_owned(),
        rejected: proposed.rejected,
    };
    PlantedFact {
        id: format!("decision-{:02}", at + 1),
        ..proposal(proposed.question.trim(), vec![message], decision)
    }
}

/// A decision about which no question is shorter than one about a proposal, to forecast the cost of those.
pub fn longest(session: &Session) -> PlantedFact {
    let messages = session.messages().iter().enumerate();
    let longest = messages.max_by_key(|(_, message)| said(message).map(str::len).sum::<usize>());
    let text = "word ".repeat(PROPOSAL_CHARS / 5);
    let proposed = ProposedDecision {
        question: text.clone(),
        key: text.clone(),
        choice: text.clone(),
        reason: text.clone(),
        rejected: vec![text],
        quote: String::new(),
    };
    fact(proposed, longest.map_or(0, |(at, _)| at), 0)
}

/// The message of the evidence alone, and nothing: what a reader is shown to see whether the question
/// can be answered from the one, and not from the other.
pub fn arms(session: &Session, fact: &PlantedFact) -> [Vec<Arc<Message>>; 2] {
    let texts: Vec<&str> = fact.evidence.iter().flat_map(|at| said(session.message(*at))).collect();
    [vec![Arc::new(Message::text(Role::User, texts.join("\n\n")))], Vec::new()]
}
