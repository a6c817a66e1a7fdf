//! What benchmarks of long conversations share: sittings on different days, and questions about
//! them with their answers.
//!
//! Such a file becomes a session without tools, and its questions become facts of the session's
//! ground truth. What one message answers in the answer's own words can be searched for. What has to
//! be put together, reckoned or counted is an open question, which only a judge can grade; what the
//! conversation does not tell is one that right is to refuse. A question without an answer, or
//! without the messages that answer it, is counted and left out.

use std::sync::Arc;

use super::assemble::{Assembler, AssistantRecord, UserRecord};
use crate::session::ground_truth::{Fact, GroundTruth, Importance, PlantedFact};
use crate::session::{ContentBlock, Role, Session, Tag};
use crate::units::Timestamp;

/// One question of a benchmark.
pub(super) struct Question {
    /// Its name there.
    pub(super) id: String,
    pub(super) words: String,
    /// When it is asked, where that is told: what has to be reckoned may be reckoned from then.
    pub(super) asked: Option<String>,
    /// What is right to say; nothing where it is that the conversation does not tell.
    pub(super) answer: Option<String>,
    /// The records that answer it.
    pub(super) evidence: Vec<Arc<str>>,
}

/// One conversation, growing turn by turn.
pub(super) struct Chat {
    pub(super) assembler: Assembler,
    pub(super) questions: Vec<Question>,
    /// How many questions cannot be asked.
    pub(super) left_out: usize,
    time: Option<Timestamp>,
}

impl Chat {
    /// A conversation of that format.
    pub(super) fn new(format: &str) -> Self {
        let mut assembler = Assembler::new([]);
        format.clone_into(&mut assembler.source.format);
        Self {
            assembler,
            questions: Vec::new(),
            left_out: 0,
            time: None,
        }
    }

    /// A sitting begins; its date is told, for questions are about it.
    pub(super) fn sitting(&mut self, date: &str, format: &str) {
        let time = jiff::civil::DateTime::strptime(format, date).ok();
        let time = time.and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok());
        self.time = time.map(|time| Timestamp(time.timestamp().as_millisecond()));
        if self.time.is_none() {
            self.assembler.warn("a timestamp cannot be read");
        }
        let record = UserRecord {
            blocks: vec![ContentBlock::Text(format!("Date: {date}").into())],
            timestamp: self.time,
            tags: vec![Tag::Meta],
        };
        self.assembler.user(None, record);
    }

    /// Somebody says something.
    pub(super) fn turn(&mut self, name: &Arc<str>, role: Role, text: Arc<str>) {
        let blocks = vec![ContentBlock::Text(text)];
        let timestamp = self.time;
        match role {
            Role::User => {
                let tags = vec![Tag::TypedUser];
                let record = UserRecord {
                    blocks,
                    timestamp,
                    tags,
                };
                self.assembler.user(Some(name), record);
            }
            Role::Assistant => {
                let record = AssistantRecord::of(blocks, timestamp);
                self.assembler.assistant(Some(name), record);
            }
        }
    }

    /// The places of the messages that answer each question.
    pub(super) fn places(&mut self) -> Vec<(Question, Vec<usize>)> {
        self.assembler.flush();
        let questions = std::mem::take(&mut self.questions);
        let mut found = Vec::new();
        for question in questions {
            let names = question.evidence.iter();
            let messages = names.filter_map(|name| self.assembler.message_of(name));
            let mut messages: Vec<usize> = messages.collect();
            let is_placed = messages.len() == question.evidence.len() && !messages.is_empty();
            // What several people say in a row is one message.
            messages.sort_unstable();
            messages.dedup();
            if question.answer.is_none() {
                found.push((question, Vec::new()));
            } else if is_placed {
                found.push((question, messages));
            } else {
                self.left_out += 1;
            }
        }
        found
    }
}

/// The facts of a session that its questions ask for, and how many were left out.
pub(super) fn truth(session: &Session, placed: &[(Question, Vec<usize>)]) -> (GroundTruth, usize) {
    let mut facts = Vec::new();
    for (question, places) in placed {
        let fact = match (&question.answer, &places[..]) {
            (None, _) => Some(Fact::Unanswerable),
            (Some(answer), [message]) => {
                let said = recall(session, &question.words, answer, *message);
                said.or_else(|| open(answer))
            }
            (Some(answer), _) => open(answer),
        };
        facts.extend(fact.map(|fact| PlantedFact {
            id: question.id.clone(),
            question: match (&fact, &question.asked) {
                (Fact::Open { .. } | Fact::Unanswerable, Some(date)) => {
                    format!("(The date is {date}.) {}", question.words)
                }
                _ => question.words.clone(),
            },
            fact,
            evidence: places.clone(),
            importance: Importance::Normal,
        }));
    }
    let left_out = placed.len() - facts.len();
    (GroundTruth::new(session.id(), facts), left_out)
}

/// How much around a value may bind it, in bytes to either side.
const AROUND: usize = 160;

/// The shortest answer that is a value and not a word like any other.
const SHORTEST: usize = 4;

fn open(answer: &str) -> Option<Fact> {
    let answer = answer.trim().to_owned();
    (!answer.is_empty()).then_some(Fact::Open { answer })
}

/// What the message says in answer, with the question's words that stand beside it.
fn recall(session: &Session, question: &str, answer: &str, message: usize) -> Option<Fact> {
    let answer = answer.trim().trim_end_matches('.');
    if answer.len() < SHORTEST || contains(question, answer).is_some() {
        return None;
    }
    session
        .message(message)
        .model_text()
        .iter()
        .find_map(|text| {
            let at = contains(text, answer)?;
            let value = text.get(at..at + answer.len())?;
            let start = text.floor_char_boundary(at.saturating_sub(AROUND));
            let end = text.ceil_char_boundary((at + answer.len() + AROUND).min(text.len()));
            let beside = [&text[start..at], &text[at + answer.len()..end]].concat();
            let is_beside = |word: &&str| word.len() >= 4 && contains(&beside, word).is_some();
            let words = question.split(|c: char| !c.is_alphanumeric());
            let key: Vec<&str> = words.filter(is_beside).collect();
            (!key.is_empty()).then(|| Fact::Recall {
                key: key.join(" "),
                value: value.to_owned(),
            })
        })
}

/// Where a text holds these words whole, in whatever case.
fn contains(text: &str, words: &str) -> Option<usize> {
    let (lower, words) = (text.to_ascii_lowercase(), words.to_ascii_lowercase());
    let is_word = |c: char| c.is_alphanumeric();
    lower.match_indices(&words).map(|(at, _)| at).find(|at| {
        let end = at + words.len();
        !lower[..*at].ends_with(is_word) && !lower[end..].starts_with(is_word)
    })
}
