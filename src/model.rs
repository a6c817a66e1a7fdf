//! Models that are asked: to summarise, to answer probes, to judge.
//!
//! A [`Model`] answers one request at a time and keeps nothing. It is called by the meter only.

use std::fmt::Debug;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::record::words::{ModelKind, Purpose};
use crate::session::{Message, Role, ToolSchema};
use crate::tokens::{CharsPer4, CountedTexts};
use crate::units::{ContentHash, Tokens, Usage};

pub mod api;
pub mod bill;
pub mod cassette;
pub mod cut;
pub mod fault;
#[cfg(feature = "http")]
pub mod http;
pub mod offline;
pub mod overflow;
pub mod price;
pub mod scripted;
pub mod spending;
pub mod timing;

/// Number of the second answer to the same request in a repeat; the third is twice this. A run has no more
/// repeats, so that further answers never take another repeat's number.
pub const AGAIN: u32 = 1_000;

/// Answers requests.
pub trait Model: Debug + Send + Sync {
    /// The name printed in reports: `offline`, `scripted`, a provider's model id.
    fn name(&self) -> &str;

    /// The use to which its answers may be put.
    fn kind(&self) -> ModelKind;

    /// Answers one request for the repeat of this number, and says under which name the answer is kept, if it is.
    /// Deterministic unless the kind is [`ModelKind::Live`]. Usage that a provider does not report is counted by
    /// `counts`.
    fn answer(&self, request: &Request, repeat: u32, counts: &CountedTexts) -> Reply;

    /// Answers one request, counted by its characters.
    fn respond(&self, request: &Request) -> CallResult {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        self.answer(request, 0, &counts).answer
    }

    /// The most it may write for this request, thinking included.
    fn longest(&self, request: &Request) -> Tokens {
        request.max_output
    }

    /// How many requests it takes at once. A model that answers at once takes one after the other.
    fn at_once(&self) -> usize {
        1
    }

    /// How many prompts its server keeps at once, where that matters.
    fn slots(&self) -> Option<usize> {
        None
    }

    /// Does `work`, which asks it of one prompt only, once its server has a slot for that.
    fn in_slot(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// The address of the server that is asked, if one is.
    fn address(&self) -> Option<String> {
        None
    }

    /// Whether the run was stopped, so that no answer is waited for any more.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether requests without a recorded answer are only collected, to be asked in a batch.
    fn defers(&self) -> bool {
        false
    }

    /// Whether the answer to this request is kept: it is given without asking anybody.
    fn is_kept(&self, _: &Request, _: u32) -> bool {
        false
    }
}

/// The result of a request. A failure is a value: the code that asked decides what it means.
pub type CallResult = Result<Response, CallFailure>;

/// An answer, and the name under which it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The response or the failure.
    pub answer: CallResult,
    /// The name, where answers are kept.
    pub key: Option<ContentHash>,
    /// The failures of the attempts before the last one.
    pub failed: Vec<CallFailure>,
    /// The billed tokens, paid now or when the answer was recorded: for an answer without a key, the next one
    /// who asks pays them again.
    pub paid: Option<Usage>,
}

impl Reply {
    /// The outcome of a request that was made once, and is kept nowhere.
    pub fn once(answer: CallResult) -> Self {
        Self { answer, key: None, failed: Vec::new(), paid: None }
    }
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whose bill it goes on.
    pub purpose: Purpose,
    /// The kind of answer that is wanted, as plain data: it steers offline models and is never sent.
    pub task: Task,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The agent's tools, where they are offered. A request that goes on with the agent's prompt
    /// reads the agent's cache only with them: they are in front of everything else.
    pub tools: Option<Arc<[ToolSchema]>>,
    /// The conversation; its last message is the user's.
    pub messages: Vec<Arc<Message>>,
    /// The answer is cut off after this many tokens.
    pub max_output: Tokens,
    /// The model that is meant, where it is another than the agent's: a name that price files
    /// know, or [`FAST`](price::FAST). An offline model answers for all.
    pub model: Option<Arc<str>>,
}

impl Request {
    /// A request of one message of the user's, without a system prompt and tools.
    pub fn of_text(
        purpose: Purpose,
        task: Task,
        text: impl Into<Arc<str>>,
        max_output: Tokens,
    ) -> Self {
        Self {
            purpose,
            task,
            system: None,
            tools: None,
            messages: vec![Arc::new(Message::text(Role::User, text))],
            max_output,
            model: None,
        }
    }

    /// The tools that are offered.
    pub fn tools(&self) -> &[ToolSchema] {
        self.tools.as_deref().unwrap_or_default()
    }
}

/// The kind of answer that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Go on with the agent's work.
    Agent,
    /// Write a summary with these sections; none means free text.
    Summarise {
        /// Headings, in order.
        sections: Vec<String>,
    },
    /// Answer one question about the conversation.
    Answer,
    /// Name the numbers of the listed pieces that should stay, the most important first. Each stands on a line of its
    /// own that begins with `[NUMBER]`.
    Select,
    /// Say whether an answer is right.
    Judge,
    /// Write the recorded answer: the call was made then, and no model is asked.
    Recorded {
        /// The recorded answer.
        answer: Arc<str>,
    },
}

/// A model's answer, as cassettes keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// The model that answered, as the provider names it.
    pub model: Arc<str>,
    /// Why it stopped.
    pub stop: Stop,
    /// The text of the answer.
    pub text: Arc<str>,
    /// The billed tokens.
    pub usage: Usage,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    End,
    /// It reached `max_output`.
    Length,
    /// It called a tool instead of answering.
    ToolUse,
    /// It declined.
    Refusal,
    /// The provider held the answer back.
    ContentFilter,
}

/// Why a call brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallFailure {
    /// The provider refused the prompt as too long.
    #[error("the prompt is too long for the model")]
    Overflow,
    /// The provider asked to be called less often.
    #[error("rate limited")]
    RateLimited,
    /// The provider failed; what it said, where it said something.
    #[error("server error{}", in_brackets(.0))]
    Server(String),
    /// No answer came in time.
    #[error("timed out")]
    Timeout,
    /// The run was stopped before an answer began. A request that was sent may be billed.
    #[error("the run was stopped before an answer began")]
    Stopped {
        /// Whether the request was sent.
        was_sent: bool,
    },
    /// The model cannot do this kind of task.
    #[error("this model does not do that")]
    Unsupported,
    /// The provider refuses every request sent this way: the key, the address or the name of the
    /// model is wrong, or the account is empty.
    #[error("these requests cannot succeed ({0})")]
    Denied(String),
    /// Its answer could not be kept, or it was not asked because none can be kept any more.
    #[error("its answers cannot be kept in {0}")]
    NotKept(String),
    /// The server reads only a part of large prompts, and answers all the same.
    #[error(
        "{proof}, and answered without the rest: start the server with a larger context window (`num_ctx` of \
         Ollama, `-c` of llama.cpp, `--max-model-len` of vLLM)"
    )]
    CutPrompt {
        /// The server, and the sizes that it reported.
        proof: String,
        /// The largest prompt that it read.
        window: Tokens,
    },
    /// The provider refuses the request for good; what it says of it.
    #[error("the provider refused the request ({0})")]
    Rejected(String),
    /// The provider cannot be reached, or the connection broke before an answer began: its address, and why.
    #[error("no connection to the provider{}", in_brackets(.0))]
    Network(String),
    /// The answer began and broke off.
    #[error("the answer broke off")]
    Cut,
    /// The answer is not what the API's documentation says.
    #[error("the answer cannot be read")]
    Unreadable,
    /// A recorded answer was wanted, and there is none.
    #[error("no answer to this request is recorded")]
    NotRecorded,
    /// A scripted model has no answer left.
    #[error("no answer was written for this request")]
    NoAnswer,
}

/// ` (words)`, or nothing.
fn in_brackets(words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    format!(" ({words})")
}

impl CallFailure {
    /// The provider failed and said nothing of it.
    pub const SERVER: Self = Self::Server(String::new());

    /// Whether the failure says something about the way to the provider and nothing about what was
    /// asked: the same request may be answered tomorrow.
    pub fn is_of_the_way(&self) -> bool {
        !matches!(
            self,
            Self::Overflow
                | Self::Unsupported
                | Self::Rejected(_)
                | Self::NotRecorded
                | Self::NoAnswer
        )
    }
}
