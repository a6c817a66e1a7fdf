//! What a judge is asked to say of an answer: one word of six with its reason, or, of a judge that is
//! unfit for that, yes or no.

use std::sync::Arc;

use super::{Brief, MAX_NARROW, MAX_VERDICT, NARROW, RUBRIC, Word, neutralised, plain};
use crate::model::{CallFailure, Purpose, Request, Response, Stop, Task};
use crate::probe::Unscored;

/// Ends a narrow request.
const GIVES: &str =
    "Does the answer give the value of the reference, and no other value? Reply yes or no.";

/// Ends a narrow request about something that was never said.
pub(super) const ABSTAINS: &str =
    "Does the answer say that this is not known, and give no value? Reply yes or no.";

/// The task of a judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JudgeTask {
    /// In which way the answer is right or wrong: a reason and one word of six.
    #[default]
    Wide,
    /// Whether it gives the value of the reference and no other: yes or no.
    Narrow,
}

impl JudgeTask {
    /// The task of a request to a judge.
    pub fn of(request: &Request) -> Self {
        match request.system.as_deref() {
            Some(NARROW) => Self::Narrow,
            _ => Self::Wide,
        }
    }

    /// The request to the judge: the brief of an item, and the answer to grade.
    pub fn request(self, brief: &Brief, answer: &str) -> Request {
        let (rules, shown, question, max_output) = match self {
            Self::Wide => (RUBRIC, brief.shown(), String::new(), MAX_VERDICT),
            Self::Narrow => {
                let question = if brief.is_never_said() { ABSTAINS } else { GIVES };
                let shown = Brief::new(&brief.question, &brief.reference).shown();
                (NARROW, shown, format!("\n\n{question}"), MAX_NARROW)
            }
        };
        let answer = neutralised(&plain(answer));
        let text = format!("{shown}<answer>\n{answer}\n</answer>{question}");
        // Servers are sent the schema of verdicts with the wide task alone.
        let task = match self {
            Self::Wide => Task::Judge,
            Self::Narrow => Task::Answer,
        };
        Request {
            system: Some(Arc::from(rules)),
            ..Request::of_text(Purpose::Judge, task, text, max_output)
        }
    }

    /// The judge's word in a reply.
    pub fn word(self, reply: &str) -> Option<Word> {
        match self {
            Self::Wide => Word::in_reply(reply),
            Self::Narrow => Word::yes_or_no(reply),
        }
    }

    /// The judge's word for the answer, or why there is none.
    pub fn read(self, reply: &Result<Response, CallFailure>) -> Result<Word, Unscored> {
        let Ok(reply) = reply else {
            return Err(Unscored::JudgeFailed);
        };
        match reply.stop {
            Stop::Refusal | Stop::ContentFilter | Stop::ToolUse => Err(Unscored::JudgeFailed),
            // The last word of a reply that was cut is not its last one.
            Stop::Length if self == Self::Narrow => Err(Unscored::Unparsable),
            Stop::End | Stop::Length => self.word(&reply.text).ok_or(Unscored::Unparsable),
        }
    }
}
