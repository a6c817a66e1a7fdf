//! A strategy's input before each call: the present, never the future.

use std::sync::Arc;

use crate::bill::Scale;
use crate::context::Context;
use crate::model::Purpose;
use crate::session::{RecordedCompaction, ToolSchema};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Timestamp, Tokens, Usage};
use crate::window::Window;

/// The present, as owned values: replay builds one for each call.
#[derive(Debug, Clone)]
pub struct Situation {
    /// Number of the call that comes next, from 0.
    pub call: usize,
    /// How many messages the user has typed so far.
    pub turn: usize,
    /// The user has typed something since the model last answered.
    pub has_typed: bool,
    /// A number that differs between sessions and is the same for all strategies: the seed of
    /// random draws in this session.
    pub lot: u64,
    /// The simulated time, where the session has times.
    pub now: Option<Timestamp>,
    /// The window of the agent's model.
    pub window: Window,
    /// The effective window that the recorded product is known to work in, where it is not that of
    /// `window`: its version's, or the one that its own automatic compactions before this call show.
    pub product_window: Option<Tokens>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools the agent was given.
    pub tools: Arc<[ToolSchema]>,
    /// Size of system prompt and tool definitions: part of every prompt.
    pub fixed: Size,
    /// How counted sizes become billed ones.
    pub scale: Scale,
    /// The cost of the last prompt that *this cell* sent, once there was one.
    pub last_usage: Option<Usage>,
    /// The messages of that prompt and its answer, as counted.
    pub last_messages: Size,
    /// Size of the messages that were appended since the last answer; of all of them before the first
    /// prompt.
    pub appended: Size,
    /// Reasoning tokens of the answers before the last message that a person typed, as far as they
    /// are still in the context.
    pub past_reasoning: Tokens,
    /// When the model last answered, where the session says so.
    pub last_answer: Option<Timestamp>,
    /// A phase of the work ended since the last call: a message tagged
    /// [`Tag::PhaseEnd`](crate::session::Tag::PhaseEnd) was appended.
    pub phase_ended: bool,
    /// A person asked for a compaction since the last call: the recorded product compacted here
    /// because a setting says so.
    pub was_asked: bool,
    /// The focus that a person gave with the request for a compaction:
    /// [`compact_hint`](crate::session::Details::compact_hint) of the newest message that has one.
    pub compact_hint: Option<Arc<str>>,
    /// Names of the tools the last response asked for.
    pub tool_requests: Vec<Arc<str>>,
    /// The provider has just refused the prompt as too long.
    pub overflow: Option<Overflow>,
    /// A compaction that the recorded product made at this very point.
    pub recorded: Option<Arc<RecordedCompaction>>,
    /// How many messages the session was resumed with.
    pub loaded: usize,
    /// The notes of the earlier session that this one goes on from.
    pub notes: Option<Arc<str>>,
    /// Sizes of all texts.
    pub counts: Arc<CountedTexts>,
}

/// A prompt that was refused as too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// The prompt's size.
    pub prompt: Tokens,
    /// How many recoveries this call has already had.
    pub attempt: u32,
}

impl Situation {
    /// The present before the first call, where nothing has happened and nothing is fixed: for whoever
    /// asks a stage or a strategy without replaying a session.
    pub fn first(window: Window, counts: Arc<CountedTexts>) -> Self {
        Self {
            call: 0,
            turn: 0,
            has_typed: false,
            lot: 0,
            now: None,
            window,
            product_window: None,
            system: None,
            tools: Arc::from([]),
            fixed: Size::default(),
            scale: Scale::COUNTED,
            last_usage: None,
            last_messages: Size::default(),
            appended: Size::default(),
            past_reasoning: Tokens::ZERO,
            last_answer: None,
            phase_ended: false,
            was_asked: false,
            compact_hint: None,
            tool_requests: Vec::new(),
            overflow: None,
            recorded: None,
            loaded: 0,
            notes: None,
            counts,
        }
    }

    /// Whose bill a summary goes on.
    pub(super) fn purpose(&self) -> Purpose {
        match self.overflow {
            Some(_) => Purpose::Recovery,
            None => Purpose::Compaction,
        }
    }

    /// Size of system prompt and tool definitions by another counter.
    pub fn fixed_by(&self, counts: &CountedTexts) -> Size {
        let tools = self.tools.iter().map(|tool| counts.schema(tool.text()));
        tools.chain(self.system.iter().map(|text| counts.size(text))).sum()
    }

    /// Tokens of the prompt that would be sent now, as billed.
    pub fn prompt(&self, context: &Context) -> Tokens {
        self.scale.prompt(self.fixed + context.size())
    }

    /// The number of counted tokens of messages that fit into `billed` billed ones, beside what
    /// every prompt begins with.
    pub fn room(&self, billed: Tokens) -> Tokens {
        let fixed = self.scale.prompt(self.fixed);
        self.scale.room(billed - fixed)
    }
}
