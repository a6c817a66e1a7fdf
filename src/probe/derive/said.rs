//! What the user said: rules, and requests.

use super::{Proposal, Texts, key_words};
use crate::script::word_count;
use crate::session::ground_truth::{Fact, Importance, Revision, RuleForm};
use crate::session::{ContentBlock, Session, Tag};

/// Sentences that begin with one of these, or hold one of them after a comma, set a rule.
const DEMANDS: &[&str] = &[
    "always ",
    "avoid ",
    "do not ",
    "don't ",
    "don’t ",
    "ensure ",
    "keep ",
    "make sure ",
    "never ",
    "only ",
    "you must ",
    "you should not ",
    "please avoid ",
    "please do not ",
    "please don't ",
    "please never ",
];

/// A rule has at least and at most so many words.
const RULE_WORDS: std::ops::RangeInclusive<usize> = 4..=40;

/// A topic has so many words.
const TOPIC_WORDS: usize = 3;

/// A request of fewer words is a nod: "yes, commit it".
const REQUEST_WORDS: usize = 4;

/// A request is quoted up to so many characters, in whole lines.
const REQUEST_CHARS: usize = 600;

/// The texts that the user typed, with their messages.
fn typed(session: &Session) -> impl Iterator<Item = (usize, &str)> {
    let messages = session.messages().iter().enumerate();
    messages.flat_map(|(at, message)| {
        let is_typed = message.has_tag(Tag::TypedUser);
        let blocks = message.content().iter().filter(move |_| is_typed);
        blocks.filter_map(move |block| match block {
            ContentBlock::Text(text) => Some((at, &**text)),
            _ => None,
        })
    })
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.len() < 600);
    lines
        .flat_map(|line| line.split_inclusive(". "))
        .map(|sentence| sentence.trim().trim_start_matches(['-', '*', ' ']))
}

/// Sentences in which the user demands something.
pub(super) fn rules(session: &Session, texts: &Texts) -> Vec<Proposal> {
    let mut proposals: Vec<Proposal> = Vec::new();
    for (at, text) in typed(session) {
        for sentence in sentences(text) {
            let lower = sentence.to_lowercase();
            let demands = DEMANDS.iter().any(|cue| lower.starts_with(cue));
            if !demands || !RULE_WORDS.contains(&sentence.split_whitespace().count()) {
                continue;
            }
            let topic = texts.rarest(&key_words(sentence, "\u{0}"), TOPIC_WORDS);
            // One that is said twice would be no single piece of evidence.
            let holding = session.messages().iter().filter(|message| {
                message
                    .model_text()
                    .iter()
                    .any(|text| text.contains(sentence))
            });
            if topic.len() < 2 || holding.count() > 1 {
                continue;
            }
            let topic = topic.join(" ");
            proposals.push(Proposal {
                kind: "constraint",
                question: format!("What did the user demand about: {topic}?"),
                evidence: vec![at],
                importance: Importance::High,
                fact: Fact::Constraint {
                    topic,
                    statement: sentence.to_owned(),
                    form: RuleForm::Open,
                },
            });
        }
    }
    proposals
}

/// The text as it is quoted: whole lines up to [`REQUEST_CHARS`], or as much of the first one.
fn quoted(text: &str) -> String {
    let mut request = String::new();
    for line in text.trim().lines() {
        if request.len() + line.len() > REQUEST_CHARS {
            break;
        }
        if !request.is_empty() {
            request.push('\n');
        }
        request.push_str(line);
    }
    if request.is_empty() {
        let first = text.trim().lines().next().unwrap_or_default();
        request = first.chars().take(REQUEST_CHARS).collect();
    }
    request.trim().to_owned()
}

/// What the user asked for, each time: one request a message.
///
/// Every message ends the request before it. One that is too short to be told from other text, that
/// stands in an earlier one as well, or whose lines are too long to be quoted, does nothing more.
pub(super) fn requests(session: &Session, _: &Texts) -> Vec<Proposal> {
    let is_short = |text: &str| word_count(text) < REQUEST_WORDS;
    let mut messages: Vec<(usize, &str)> = Vec::new();
    for (message, text) in typed(session).filter(|(_, text)| !text.trim().is_empty()) {
        match messages.last_mut() {
            // Of several blocks, the first that says enough.
            Some((last, said)) if *last == message => {
                if is_short(said) {
                    *said = text;
                }
            }
            _ => messages.push((message, text)),
        }
    }
    let mut requests: Vec<Revision> = Vec::new();
    for (message, text) in messages {
        let value = quoted(text);
        let is_known = requests.iter().any(|other| other.value.contains(&value));
        let is_cut_short = text.trim().lines().next().map_or(0, str::len) > REQUEST_CHARS;
        requests.push(Revision {
            unasked: is_known || is_cut_short || is_short(&value),
            value,
            message,
        });
    }
    if requests.iter().all(|request| request.unasked) {
        return Vec::new();
    }
    vec![Proposal {
        kind: "last-request",
        question: "What did the user ask for last? Quote it word for word.".to_owned(),
        evidence: requests.iter().map(|request| request.message).collect(),
        importance: Importance::High,
        fact: Fact::LastRequest { requests },
    }]
}
