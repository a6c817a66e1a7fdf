//! Benchmarks of long conversations: sittings on different days, and questions about them with
//! their answers.
//!
//! Such a file becomes a session without tools, and its questions become facts of the session's
//! ground truth. An answer that one message gives in the same words can be searched for. One that
//! has to be put together, calculated or counted is an open question, which only a judge can
//! grade. A question that the conversation does not answer is right to refuse. A question without
//! an answer, or without the messages that answer it, is counted and left out.

use super::conversations::NO_CONVERSATION;
use super::prelude::*;
use proctor_sessions::ground_truth::{Fact, GroundTruth, Importance, PlantedFact};

/// One question of a benchmark.
#[derive(Default)]
pub(super) struct Question {
    /// Its name there.
    pub(super) id: String,
    pub(super) words: String,
    /// The date it is asked on, if known: the answer may have to be calculated from then.
    pub(super) asked: Option<String>,
    /// The right answer; none if the conversation does not say.
    pub(super) answer: Option<String>,
    /// The records that answer it.
    pub(super) evidence: Vec<Arc<str>>,
}

/// One conversation, growing turn by turn.
#[derive(Default)]
pub(super) struct Chat {
    pub(super) assembler: Assembler,
    questions: Vec<Question>,
    /// How many questions cannot be asked.
    left_out: usize,
    time: When,
}

/// The conversations of a file as `chats` reads each value, with their ground truth; `what` describes
/// one.
pub(super) fn recordings<C: IntoIterator<Item = Chat>>(
    file: SourceFile,
    what: &str,
    chats: fn(Object<'_>) -> C,
) -> Result<Vec<Recording>> {
    let (file, mut source) = (&file.text(), Source::default());
    let mut recordings: Vec<Recording> = Vec::new();
    let mut problem = None;
    for value in &file.values(&mut source)? {
        let raw: &RawValue = value.parse()?;
        for raw in items(raw).unwrap_or_else(|| vec![raw]) {
            let mut found = Object::read(raw).into_iter().flat_map(chats).peekable();
            if found.peek().is_none() {
                problem.get_or_insert_with(|| value.error(what));
                source.not_understood(NO_CONVERSATION);
            }
            for chat in found {
                recordings.extend(chat.recording(file)?);
            }
        }
    }
    let Some(first) = recordings.first_mut() else {
        return Err(problem.unwrap_or_else(|| ImportError::NoConversation(file.path.clone())));
    };
    add_counts(&mut first.session.parts_mut().source, source);
    if recordings.len() > 1 {
        for (at, recording) in recordings.iter_mut().enumerate() {
            recording.rename(format!("{}-{}", file.id, at + 1));
        }
    }
    Ok(recordings)
}

/// A text, or a number in its place.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Chat {
    /// Begins a sitting. The user names its date, for questions are about it.
    pub(super) fn sitting(&mut self, date: &str, format: &str) {
        let local = jiff::civil::DateTime::strptime(format, date).ok();
        self.time = time_or_warn(local.and_then(in_utc), &mut self.assembler.source);
        let date = vec![ContentBlock::Text(format!("Date: {date}").into())];
        self.assembler.hear(None, date, self.time, [Tag::Meta]);
    }

    /// Adds what one of the two says.
    pub(super) fn turn(&mut self, name: &Arc<str>, role: Role, text: Arc<str>) {
        let blocks = vec![ContentBlock::Text(text)];
        let (name, time) = (Some(name), self.time);
        match role {
            Role::User => self.assembler.hear(name, blocks, time, [Tag::TypedUser]),
            Role::Assistant => self.assembler.assistant(name, ModelRecord::of(blocks, time)),
        }
    }

    /// Adds a question, if it has words and an answer, or is one that nothing answers.
    pub(super) fn ask(&mut self, words: Option<String>, is_refused: bool, question: Question) {
        let answer = question.answer.filter(|_| !is_refused);
        match words.filter(|_| is_refused || answer.is_some()) {
            Some(words) => self.questions.push(Question { words, answer, ..question }),
            None => self.left_out += 1,
        }
    }

    /// How many questions can be asked so far.
    pub(super) fn asked(&self) -> usize {
        self.questions.len()
    }

    /// The number of the next question, from 1; those that cannot be asked count.
    pub(super) fn next(&self) -> usize {
        self.questions.len() + self.left_out + 1
    }

    /// The session with the facts that its questions ask for; none if nothing was said.
    fn recording(mut self, file: &SourceText) -> Result<Option<Recording>> {
        self.assembler.flush();
        let count = self.questions.len();
        let mut asked = Vec::new();
        for question in self.questions {
            let found = question.evidence.iter().map(|name| self.assembler.message_of(name));
            // Texts of several people in a row make one message.
            let messages: Option<BTreeSet<usize>> = found.collect();
            asked.push((question, Vec::from_iter(messages.unwrap_or_default())));
        }
        let session = self.assembler.finish(file.id.clone(), &file.path)?;
        Ok(session.map(|session| {
            let pairs = asked.into_iter();
            let facts: Vec<PlantedFact> =
                pairs.filter_map(|(question, found)| planted(&session, question, found)).collect();
            Recording {
                left_out: self.left_out + count - facts.len(),
                truth: Some(GroundTruth::new(session.id(), facts)),
                session,
            }
        }))
    }
}

/// The fact that a question asks for, with the messages that say it; none if these are not known.
fn planted(session: &Session, question: Question, mut evidence: Vec<usize>) -> Option<PlantedFact> {
    let fact = match question.answer.as_deref().map(str::trim) {
        None => {
            evidence.clear();
            Fact::Unanswerable
        }
        Some(answer) if answer.is_empty() || evidence.is_empty() => return None,
        Some(answer) => recall(session, &question.words, answer, &evidence)
            .unwrap_or_else(|| Fact::Open { answer: answer.to_owned() }),
    };
    Some(PlantedFact {
        id: question.id,
        question: match (&fact, question.asked) {
            (Fact::Open { .. } | Fact::Unanswerable, Some(date)) => {
                format!("(The date is {date}.) {}", question.words)
            }
            _ => question.words,
        },
        fact,
        evidence,
        until: None,
        importance: Importance::Normal,
    })
}

/// How much around a value may bind it, in bytes to either side.
const AROUND: usize = 160;

/// The shortest answer that is a value and not a word like any other.
const SHORTEST: usize = 4;

/// The answer in the words of the one message that has it, with the question's words near it.
fn recall(session: &Session, question: &str, answer: &str, evidence: &[usize]) -> Option<Fact> {
    let [message] = evidence else { return None };
    let searched = answer.trim_end_matches('.');
    if searched.len() < SHORTEST || contains(question, searched).is_some() {
        return None;
    }
    session.message(*message).model_text().iter().find_map(|text| {
        let at = contains(text, searched)?;
        let value = text.get(at..at + searched.len())?;
        let start = text.floor_char_boundary(at.saturating_sub(AROUND));
        let end = text.ceil_char_boundary((at + searched.len() + AROUND).min(text.len()));
        let near = [&text[start..at], &text[at + searched.len()..end]].concat();
        let words = question.split(|c: char| !c.is_alphanumeric());
        let key: Vec<&str> =
            words.filter(|word| word.len() >= 4 && contains(&near, word).is_some()).collect();
        (!key.is_empty()).then(|| Fact::Recall { key: key.join(" "), value: value.to_owned() })
    })
}

/// Where a text holds these words whole, in any case.
fn contains(text: &str, words: &str) -> Option<usize> {
    let (lower, words) = (text.to_ascii_lowercase(), words.to_ascii_lowercase());
    lower.match_indices(&words).map(|(at, _)| at).find(|at| {
        let end = at + words.len();
        !lower[..*at].ends_with(char::is_alphanumeric)
            && !lower[end..].starts_with(char::is_alphanumeric)
    })
}
