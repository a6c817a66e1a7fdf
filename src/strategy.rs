//! Strategies: what the model would have been sent.
//!
//! A [`Strategy`] owns the context for the length of one cell. Most are a [`Pipeline`]: stages in
//! order, each with a trigger and guards, read from a preset. A [`Stage`] is the extension point:
//! it plans a [`Patch`] and never touches the context itself. The pipeline checks the patch,
//! applies it, and logs it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::context::{Applied, Context, Entry, Patch, PatchError};
use crate::model::CallFailure;
use crate::settings::SettingError;
use crate::step::Step;
use crate::units::Tokens;
use crate::window::Window;

pub(crate) mod bm25;
pub mod control;
pub mod cut;
pub mod external;
mod history;
mod pending_edits;
mod position_notes;
pub(crate) mod files;
mod truncate;
pub mod guard;
pub mod knob;
pub mod law;
pub mod pipeline;
pub mod preset;
pub mod situation;
pub mod stage;
mod own_prompt;
mod template;
mod tools;
pub mod trigger;
mod model_text;

pub use pipeline::Pipeline;
pub use preset::StrategySpec;
pub use situation::Situation;

use cut::Cut;
use external::{Hello, LoadedFiles, ProgramError};
use knob::Knobs;
use pending_edits::PendingEdits;
use position_notes::PositionNotes;
use tools::ToolList;
use trigger::Trigger;

/// One transformation of a context.
///
/// A stage plans; it never changes the context. It may keep notes between calls, and must not
/// depend on anything but what it is given.
pub trait Stage: Debug + Send {
    /// Plans the changes before the next call. No edits: nothing to do.
    ///
    /// The context is only lent: a continuation that needs entries clones them.
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a>;

    /// Takes note of a message that is about to be appended, whatever the stage's trigger and whether
    /// or not it may still fire.
    fn take_note_of(&mut self, _: &Entry) {}

    /// Takes note of the messages that a resumed session was loaded with, before anything else.
    fn on_load(&mut self, loaded: &[Entry]) {
        for entry in loaded {
            self.take_note_of(entry);
        }
    }

    /// Plans the changes in an entry that is about to be appended, where it has index 0. Called after
    /// [`Self::take_note_of`]; not at all while the circuit breaker is open or if the stage's only
    /// trigger is `overflow`.
    fn on_append(&mut self, _: &Entry, _: &Situation) -> Result<Patch, StageError> {
        Ok(Patch::default())
    }

    /// Takes note that the agent rewrote its history: it consists of these messages now, in this order.
    fn on_rewrite(&mut self, _messages: &[usize]) {}

    /// Plans the changes after the response was appended.
    fn after_call<'a>(&'a mut self, _: &Context, _: &'a Situation) -> PlannedPatch<'a> {
        Step::Done(Ok(Patch::default()))
    }

    /// Whether it does what the recorded product did: the prompts are those that were sent, and were accepted,
    /// whatever the window is taken to be.
    fn replays_recording(&self) -> bool {
        false
    }

    /// The lowest entry of the context that it still means to change, if it knows: a client puts a
    /// cache breakpoint in front of it. Asked when a prompt is sent, of every stage.
    fn edge(&self, _: &Context) -> Option<usize> {
        None
    }

    /// Tokens of the newest messages that it leaves as they are when it fires in this window, at least.
    fn least_kept(&self, _: Window) -> Tokens {
        Tokens::ZERO
    }

    /// The share of the effective window from which on it starts no sub-agent, if it has such a line.
    fn blocks_agents_at(&self) -> Option<f64> {
        None
    }

    /// Processor time that a program of its own has used in this cell so far.
    fn program_cpu(&self) -> Duration {
        Duration::ZERO
    }

    /// The files that a program of its own consists of now, each with a hash.
    fn loaded_files(&self) -> LoadedFiles {
        LoadedFiles::new()
    }

    /// Its kind and the laws that it breaks on purpose, as a program of its own says.
    fn declared(&self) -> Option<Result<Hello, ProgramError>> {
        None
    }

    /// The session is over: fails where a program of its own did not keep to its turns.
    fn end(&mut self) -> Result<(), StageError> {
        Ok(())
    }
}

/// A stage, or what is wrong with its settings.
pub type StageResult = Result<Box<dyn Stage>, SettingError>;

/// The patch that a stage plans, once its requests are answered.
pub type PlannedPatch<'a> = Step<'a, Result<Patch, StageError>>;

/// The part between an agent and its model: one value per cell.
pub trait Strategy: Debug + Send {
    /// Takes note of messages that come into the context without [`on_append`](Self::on_append): those that a resumed
    /// session was loaded with, before anything else, and those of a call at which it is not asked.
    fn on_load(&mut self, _: &[Entry]) {}

    /// Takes in a message that is about to be appended, alone in a context, and may change it.
    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction;

    /// Takes note that the agent rewrote its history: it consists of these messages now, in this order.
    fn on_rewrite(&mut self, _messages: &[usize]) {}

    /// Takes the context before a call and gives it back.
    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction>;

    /// Takes the context after the provider refused it as too long. If the prompt does not get
    /// smaller, there is nothing more to try: the session dies here.
    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction>;

    /// Takes the context after the response was appended and gives it back.
    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction>;

    /// Whether its prompts are those that the recorded product sent: they were accepted, whatever
    /// the window is taken to be.
    fn replays_recording(&self) -> bool {
        false
    }

    /// The lowest entry of the context that it still means to change, if it knows: a client puts a
    /// cache breakpoint in front of it. Asked when a prompt is sent.
    fn edge(&self, _: &Context) -> Option<usize> {
        None
    }

    /// The share of the effective window from which on it starts no sub-agent, if it has such a line.
    fn blocks_agents_at(&self) -> Option<f64> {
        None
    }

    /// Processor time that a program of its own has used in this cell so far.
    fn program_cpu(&self) -> Duration {
        Duration::ZERO
    }

    /// The session is over: fails where a program of its own did not keep to its turns.
    fn end(&mut self) -> Result<(), StrategyError> {
        Ok(())
    }
}

/// A context, given back, with what was done to it.
#[derive(Debug)]
pub struct Compaction {
    /// The context: unchanged where nothing was applied.
    pub context: Context,
    /// The patches, in order.
    pub applied: Vec<Applied>,
    /// Stages that failed; the context is as it was before them.
    pub failures: Vec<StageFailure>,
    /// Offloaded texts: the path the prompt names, and the content.
    pub saved: Vec<(String, Arc<str>)>,
    /// Whether the strategy can go on.
    pub outcome: Result<(), StrategyError>,
}

impl Compaction {
    /// A context to which nothing was done.
    pub fn unchanged(context: Context) -> Self {
        Self {
            context,
            applied: Vec::new(),
            failures: Vec::new(),
            saved: Vec::new(),
            outcome: Ok(()),
        }
    }
}

/// A stage that failed at a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageFailure {
    /// The stage's name in its strategy.
    pub stage: Arc<str>,
    /// Why.
    pub error: StageError,
}

/// Why a stage could not do its work. Guards see it; the context is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// The model brought no answer.
    #[error("the model call failed")]
    Call(#[from] CallFailure),
    /// The model wrote nothing.
    #[error("the summary is empty")]
    EmptySummary,
    /// The model called a tool instead of writing.
    #[error("the summary is a tool call")]
    ToolCall,
    /// The model went on with the conversation, or asked a question.
    #[error("the summary is none: it is a question, or names nothing of what it was to summarise")]
    NotASummary,
    /// The model declined.
    #[error("the model refused to write a summary")]
    Refused,
    /// The recording does not say what happened. The cell ends: everything after it would be made
    /// up.
    #[error("not measurable: {why}")]
    NotMeasurable {
        /// Why, in words.
        why: &'static str,
    },
    /// The program of an external strategy cannot go on.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The result frees less than the guard asks for.
    #[error("the context would shrink from {before} to {after} tokens only")]
    NoGain {
        /// Tokens of the messages before.
        before: Tokens,
        /// Tokens of the messages after.
        after: Tokens,
    },
    /// The result is larger than its input.
    #[error("the context would grow from {before} to {after} tokens")]
    Inflation {
        /// Tokens of the messages before.
        before: Tokens,
        /// Tokens of the messages after.
        after: Tokens,
    },
}

/// Why a strategy cannot go on: the cell ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// A stage would have to do something that the recording does not show, or its program cannot go on.
    #[error("stage `{stage}`")]
    Stage {
        /// The stage's name in its strategy.
        stage: Arc<str>,
        /// The stage's error.
        #[source]
        source: StageError,
    },
    /// A stage planned a patch that does not fit its context.
    #[error("stage `{stage}` planned an impossible patch")]
    ImpossiblePatch {
        /// The stage's name in its strategy.
        stage: Arc<str>,
        /// The patch's error.
        #[source]
        source: PatchError,
    },
}

/// A share as people write it: `85 %`, `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = (share * 1_000.0).round() / 10.0;
    format!("{percent} %")
}
