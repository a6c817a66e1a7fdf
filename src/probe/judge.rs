//! Asking a reader, and asking a judge whether the reader is right.
//!
//! A reader is sent the context exactly as the strategy left it, with one question at its end. A
//! judge is sent the question, the known answer and the reader's answer, and nothing else: no
//! strategy, no context, no probe id.

use serde::Serialize;
use std::cmp::Ordering;
use std::sync::Arc;

use super::{Asking, Fact, GradeVerdict, LazyPattern, Outcome, Probe, Unscored};
use crate::model::{Purpose, Request, Task};
use crate::probe::{ProbeExt as _, Specified as _};
use crate::script::first_chars;
use crate::session::{ContentBlock, Message, Role};
use crate::step::Step;
use crate::units::{ContentHash, Tokens};

mod brief;
pub mod known_answer;
mod task;
mod word;

pub use brief::Brief;
pub use task::JudgeTask;
pub use word::Word;

pub use super::kind::NEVER_SAID;

/// The answer of a reader that finds none; the question prompt asks for it.
pub const NOT_IN_CONTEXT: &str = "not in context";

/// An answer to a probe is cut off after this many tokens: a list of many paths fits.
pub const MAX_ANSWER: Tokens = Tokens(1_024);

/// A verdict is a short sentence and a word.
pub const MAX_VERDICT: Tokens = Tokens(256);

/// Yes or no, and a few words that a weak judge adds.
const MAX_NARROW: Tokens = Tokens(32);

/// Characters of an answer that are shown to the judge.
const SHOWN_CHARS: usize = 4_000;

/// Which way of showing an answer to a judge this is: raised with whatever of it is not text, as which
/// replies are taken for verdicts.
const PROMPT_VERSION: u32 = 1;

/// The judge's instructions; part of what verdicts are memoised by.
pub const RUBRIC: &str = include_str!("judge/rubric.txt");

/// The instructions of the narrow task.
const NARROW: &str = include_str!("judge/narrow.txt");

/// Which answers a judge is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Judging {
    /// Those that rules cannot grade.
    #[default]
    Needed,
    /// All; both verdicts are kept, and the judge's counts.
    All,
}

/// Identifies the rubric in records: a verdict holds under the rubric it was given by.
pub fn rubric_hash() -> String {
    ContentHash::of(RUBRIC).hex(12)
}

/// Identifies everything that a judge is sent, and how its reply is read: rubric, layout, the changes to
/// an answer before it is shown, and the words of reference answers. Two verdicts with the same
/// rubric and another prompt are verdicts of two evaluators.
pub fn prompt_id() -> String {
    prompt_id_of(PROMPT_VERSION, &fact_words(), |brief, answer| {
        JudgeTask::Wide.request(brief, answer)
    })
}

/// The same of the narrow task.
pub fn narrow_prompt_id() -> String {
    let words = [fact_words(), vec![task::ABSTAINS.to_owned()]].concat();
    prompt_id_of(PROMPT_VERSION, &words, |brief, answer| JudgeTask::Narrow.request(brief, answer))
}

/// The words of reference answers.
fn fact_words() -> Vec<String> {
    let text = str::to_owned;
    let absent = Fact::Decoy { key: text("key"), value: text("value") };
    let tried = Fact::RejectedPath { approach: text("approach"), reason: text("reason") };
    [absent, tried].map(|fact| fact.spec().in_words(0)).into()
}

fn prompt_id_of(
    version: u32,
    words: &[String],
    request: impl Fn(&Brief, &str) -> Request,
) -> String {
    // All that is done to an answer is done to this one: it is too long, and speaks to the judge.
    let answer = format!("</answer> \n verdict \n{}", "x".repeat(2 * SHOWN_CHARS));
    let brief = Brief {
        form: Some("form".to_owned()),
        older: vec!["older".to_owned()],
        others: vec!["other".to_owned()],
        ..Brief::new("question", "reference")
    };
    let sent = request(&brief, &answer);
    let limit = sent.max_output.0.to_string();
    let mut parts: Vec<&[u8]> = sent.system.iter().map(|text| text.as_bytes()).collect();
    for message in &sent.messages {
        parts.extend(message.model_text().iter().map(|text| text.as_bytes()));
    }
    parts.push(limit.as_bytes());
    parts.extend(words.iter().map(String::as_bytes));
    format!("v{version} {}", ContentHash::of_parts(parts).hex(12))
}

/// Whether a judge's reply to this request is a verdict.
pub fn is_verdict(request: &Request, reply: &str) -> bool {
    JudgeTask::of(request).word(reply).is_some()
}

/// The verdict of a panel: that of most judges; those who said nothing have no vote.
pub fn vote(verdicts: &[GradeVerdict]) -> Option<GradeVerdict> {
    let scored = verdicts.iter().filter(|verdict| verdict.scored().is_some());
    let (right, wrong): (Vec<GradeVerdict>, Vec<GradeVerdict>) = scored
        .partition(|verdict| matches!(verdict, GradeVerdict::Scored { score, .. } if *score > 0.5));
    match right.len().cmp(&wrong.len()) {
        Ordering::Greater => right.first().copied(),
        Ordering::Less => wrong.first().copied(),
        // There is no judge, or no judge gave a verdict.
        Ordering::Equal if right.is_empty() => verdicts.first().copied(),
        Ordering::Equal => Some(GradeVerdict::unscored(Unscored::Split)),
    }
}

fn prompt(probe: &Probe, question: &str, asking: Asking) -> String {
    let form = probe.answer_format().in_words();
    let escape = if asking.omits_escape {
        String::new()
    } else {
        format!(" If it does not say, answer `{NOT_IN_CONTEXT}`.")
    };
    format!(
        "Question: {question}\n\nUse only what this conversation says so far. {form}{escape} \
         Call no tool."
    )
}

/// The conversation with a question at its end: the last text block of the last user message, or a
/// user message of its own behind an assistant's.
fn put(messages: &[Arc<Message>], question: String) -> Vec<Arc<Message>> {
    let question = ContentBlock::Text(question.into());
    let mut asked = messages.to_vec();
    match asked.last_mut() {
        Some(last) if last.role() == Role::User => {
            let mut content = last.content().to_vec();
            content.push(question);
            *last = Arc::new(last.with_content(content));
        }
        _ => asked.push(Arc::new(Message::new(Role::User, vec![question]))),
    }
    asked
}

/// All requests that put a probe to a reader: one for each of its questions.
pub fn questions(
    system: Option<&Arc<str>>,
    messages: &[Arc<Message>],
    probe: &Probe,
    asking: Asking,
) -> Vec<Request> {
    let requests = probe.questions().into_iter().map(|question| Request {
        purpose: Purpose::Probe,
        task: Task::Answer,
        system: system.cloned(),
        tools: None,
        messages: put(messages, prompt(probe, &question, asking)),
        max_output: asking.longest.unwrap_or(MAX_ANSWER),
        model: None,
    });
    requests.collect()
}

/// Asks a model whether an answer is right: one probe at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Judge<'p> {
    /// The probes of the session: the judge sees some of their values, to recognise another item's.
    pub probes: &'p [Probe],
    /// What it is asked.
    pub task: JudgeTask,
}

impl Judge<'_> {
    /// The request to the judge.
    pub fn request(&self, probe: &Probe, before: usize, answer: &str) -> Request {
        let brief = Brief::of(probe, self.probes, before);
        self.task.request(&brief, answer)
    }

    /// Grades `answer` to `probe` as asked before the message of index `before`.
    pub fn grade(&self, probe: &Probe, before: usize, answer: &str) -> Step<'static, GradeVerdict> {
        if answer.trim().is_empty() {
            return Step::Done(GradeVerdict::unscored(Unscored::NoAnswer));
        }
        let (task, never_said) = (self.task, probe.kind().is_never_said());
        Step::ask(self.request(probe, before, answer), move |reply| {
            Step::Done(verdict(task.read(&reply), never_said))
        })
    }
}

/// The verdict that follows from a judge's word, or from its lack. Of something that was never said, abstaining is right
/// and any value invented.
pub fn verdict(said: Result<Word, Unscored>, is_never_said: bool) -> GradeVerdict {
    let word = match said {
        Ok(word) => word,
        Err(reason) => return GradeVerdict::unscored(reason),
    };
    let outcome = match (word, is_never_said) {
        (Word::Right, _) | (Word::Abstained, true) => Outcome::Right,
        (Word::Incomplete, _) => Outcome::Partial,
        (Word::Stale, false) => Outcome::Stale,
        (Word::Anothers, false) => Outcome::Misbound,
        (Word::Abstained, false) => Outcome::Abstained,
        (Word::Incorrect, false) => Outcome::Wrong,
        (Word::Invented, _) | (Word::Stale | Word::Anothers | Word::Incorrect, true) => {
            Outcome::Invented
        }
    };
    GradeVerdict::Scored { score: if outcome == Outcome::Right { 1.0 } else { 0.0 }, outcome }
}

/// An answer as it is judged: blanks at the ends of lines and empty lines at both ends do not matter,
/// so that answers which differ in nothing else get the same verdict.
fn plain(answer: &str) -> String {
    let lines: Vec<&str> = answer.trim().lines().map(str::trim_end).collect();
    lines.join("\n")
}

static VERDICT: LazyPattern = LazyPattern::new("(?i-u)verdict");

/// `text` without anything that could end its place in the prompt or pass for a verdict.
fn neutralised(text: &str) -> String {
    let open = first_chars(text, SHOWN_CHARS).replace('<', "‹");
    let shown = open.replace('>', "›");
    VERDICT.replaced(&shown, "[verdict]").into_owned()
}

#[cfg(test)]
mod tests;
