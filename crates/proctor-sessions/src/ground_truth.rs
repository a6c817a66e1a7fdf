//! The planted facts of a synthetic session: kept apart from it, so that no input of a strategy, a
//! summariser or a reader can hold an answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod files;
mod shell;

pub use files::FileLog;
pub use shell::commands;

/// Everything that was planted in one session.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroundTruth {
    /// Always `proctor-ground-truth`.
    pub format: String,
    /// Version of this format.
    pub version: u32,
    /// Id of the session.
    pub session: String,
    /// The facts, in the order of their ids.
    pub facts: Vec<PlantedFact>,
}

impl GroundTruth {
    /// The value of `format`.
    pub const FORMAT: &'static str = "proctor-ground-truth";
    /// The version this build writes.
    pub const VERSION: u32 = 1;

    /// The truth about `session`.
    pub fn new(session: impl Into<String>, facts: Vec<PlantedFact>) -> Self {
        Self {
            format: Self::FORMAT.to_owned(),
            version: Self::VERSION,
            session: session.into(),
            facts,
        }
    }
}

/// One fact, with where it was said and how it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlantedFact {
    /// Unique in its session; never part of the session's text.
    pub id: String,
    /// The planted fact.
    pub fact: Fact,
    /// The question, which never contains the answer.
    pub question: String,
    /// Indices of the messages that hold the answer, ascending; empty where nothing does.
    pub evidence: Vec<usize>,
    /// Index of the message that used it first: from behind it on it is not asked, since its use says the
    /// answer again. Nothing where it is asked to the end of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<usize>,
    /// How much its loss matters.
    pub importance: Importance,
}

impl PlantedFact {
    /// All messages that a fact names.
    pub fn messages(&self) -> Vec<usize> {
        let mut named = self.evidence.clone();
        named.extend(self.until);
        match &self.fact {
            Fact::Artifact { files, optional, .. } => {
                named.extend(files.iter().chain(optional).map(|file| file.message));
            }
            Fact::Update { values, .. }
            | Fact::Numeric { values, .. }
            | Fact::Order { events: values, .. }
            | Fact::LastRequest { requests: values } => {
                named.extend(values.iter().map(|value| value.message));
            }
            Fact::OpenHandle { handles, .. } => {
                named.extend(handles.iter().map(|handle| handle.started));
                named.extend(handles.iter().filter_map(|handle| handle.ended));
            }
            Fact::Continuation { items, .. } => {
                named.extend(items.iter().filter_map(|item| item.done));
            }
            Fact::Recall { .. }
            | Fact::Constraint { .. }
            | Fact::Decision { .. }
            | Fact::RejectedPath { .. }
            | Fact::Error { .. }
            | Fact::Binding { .. }
            | Fact::Obsolete { .. }
            | Fact::Indirect { .. }
            | Fact::TwoStep { .. }
            | Fact::Act { .. }
            | Fact::Open { .. }
            | Fact::Unanswerable
            | Fact::Decoy { .. } => {}
        }
        named
    }
}

/// A planted fact.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[serde(expecting = "an object with a `kind`")]
pub enum Fact {
    /// A key with an unguessable value, said once.
    Recall {
        /// Words beside the value wherever it is said: they bind it.
        key: String,
        /// At least 20 bits that cannot be guessed.
        value: String,
    },
    /// A rule the user set, such as "never touch the migrations folder".
    Constraint {
        /// The topic of the rule, in words that are also in the statement.
        topic: String,
        /// The rule as the user said it.
        statement: String,
        /// How it is asked for.
        #[serde(default, skip_serializing_if = "crate::units::is_default")]
        form: RuleForm,
    },
    /// Files the agent touched in one way.
    Artifact {
        /// The change to them.
        verb: ArtifactVerb,
        /// Each path with the message that first did it, ascending by message; with an end where
        /// something was done to it later that puts it into another list.
        files: Vec<TouchedFile>,
        /// Files that may be listed or left out: a shell command showed them, which some call
        /// reading and some do not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        optional: Vec<TouchedFile>,
    },
    /// A choice between options, with its reason.
    Decision {
        /// The matter to decide, in words that are beside the choice.
        key: String,
        /// The option that was taken.
        choice: String,
        /// Why, as it was said.
        reason: String,
        /// The other options.
        rejected: Vec<String>,
    },
    /// A key whose value was revised: the newest is right, an older one is stale.
    Update {
        /// Words beside each value.
        key: String,
        /// All values, oldest first.
        values: Vec<Revision>,
    },
    /// A count that changes: the newest is right, an older one is stale.
    Numeric {
        /// The thing and place of the count, in words that are beside each count.
        key: String,
        /// The unit of the number.
        unit: String,
        /// All counts, oldest first, as digits.
        values: Vec<Revision>,
    },
    /// Something that was tried and failed.
    RejectedPath {
        /// The attempt, in words that are beside the reason.
        approach: String,
        /// The unguessable part of the reason, such as an error code.
        reason: String,
    },
    /// A plan of which a part is done.
    Continuation {
        /// The name of the plan.
        plan: String,
        /// Its items in order.
        items: Vec<PlanItem>,
    },
    /// A failure with a code and a place, both of them unguessable.
    Error {
        /// The attempt that failed, in words that are beside code and place.
        attempt: String,
        /// The error code.
        code: String,
        /// File and line: `src/a.rs:12`.
        place: String,
    },
    /// The value of one key, said among others of its type.
    Binding {
        /// Words beside the value.
        key: String,
        /// The value.
        value: String,
        /// The other keys and values: at least three.
        others: Vec<KeyValue>,
    },
    /// Events that came one after the other.
    Order {
        /// Their owner, in words that are beside each.
        sequence: String,
        /// The events in their order, each said in a message of its own.
        events: Vec<Revision>,
    },
    /// The user's last request, word for word.
    LastRequest {
        /// All requests, oldest first.
        requests: Vec<Revision>,
    },
    /// Things that were started, and of which only some were ended.
    OpenHandle {
        /// Their owner, in words that are beside each.
        owner: String,
        /// Each with the messages that start and end it, ascending by the start.
        handles: Vec<Handle>,
    },
    /// Two instructions of one kind, of which the user took one back later.
    Obsolete {
        /// The instruction that must not be followed any more.
        withdrawn: KeyValue,
        /// The sentence that takes it back.
        withdrawal: String,
        /// The instruction that is still in force.
        standing: KeyValue,
        /// The question about the instruction in force; the fact's own is about the other one.
        standing_question: String,
    },
    /// A value that is asked for in other words than it was said in.
    Indirect {
        /// Words beside the value, none of which is in the question.
        key: String,
        /// At least 20 bits that cannot be guessed.
        value: String,
    },
    /// A value behind another: the question names the first key alone.
    TwoStep {
        /// Keys and values in the order in which they lead to the answer: each value but the last
        /// is part of the next key.
        steps: Vec<KeyValue>,
    },
    /// Values that were said at different places, and have to arrive in one tool call.
    Act {
        /// Each with the words beside it.
        arguments: Vec<KeyValue>,
    },
    /// A person's question about a conversation, with an answer that others gave: it may have to be
    /// put together, counted or calculated. Only a judge can grade it; whether its evidence is
    /// still there can be seen without one.
    Open {
        /// The known answer, in words of its own.
        answer: String,
    },
    /// A person's question that the conversation does not answer: the right answer says so.
    Unanswerable,
    /// Never planted: any concrete answer is a hallucination.
    Decoy {
        /// A key of the same class as the planted ones.
        key: String,
        /// A value of the same class, which the session does not hold.
        value: String,
    },
}

/// How a rule is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RuleForm {
    /// What did the user say about it?
    #[default]
    Open,
    /// Which of the two did the user say? Asked in both orders.
    Choice {
        /// A rule that the user did not set, like the one that was.
        foil: String,
    },
    /// What would you do now? A call that names the forbidden thing breaks the rule; so, in a pair,
    /// does asking about the thing that may be touched.
    Call {
        /// The work that would break the rule, if it were done.
        task: String,
        /// The text that is in every call that breaks it.
        forbidden: String,
        /// The same work on something that the rule leaves free. Asked beside the forbidden work, so
        /// that neither always asking nor always acting is right. Older files have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed: Option<AllowedCall>,
    },
}

/// Work that a rule leaves free.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedCall {
    /// The work.
    pub task: String,
    /// The text that is in every call that does it.
    pub target: String,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyValue {
    /// Words beside the value.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Something that was started, and may have been ended.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handle {
    /// Its name, which cannot be guessed.
    pub name: String,
    /// Index of the message that says that it was started.
    pub started: usize,
    /// Index of the message that says that it was ended; nothing while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<usize>,
}

/// A file and when it was first touched.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TouchedFile {
    /// The path as the agent wrote it.
    pub path: String,
    /// Index of the message with the tool use.
    pub message: usize,
    /// Index of the message that did something else to it, from which on it is in another list:
    /// a file that was read and is changed is no longer only read. Nothing while it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<usize>,
}

impl TouchedFile {
    /// Whether it is in the list before the message of this index.
    pub fn is_listed(&self, before: usize) -> bool {
        self.message < before && self.until.is_none_or(|until| until >= before)
    }
}

/// A value and when it was said.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The value.
    pub value: String,
    /// Index of the message that says it.
    pub message: usize,
    /// Whether it only ends the value before it. It can be guessed, or is elsewhere too, or is
    /// unknown: it is neither asked for nor searched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

impl Revision {
    /// A value that can be asked for, and the message that says it.
    pub fn new(value: impl Into<String>, message: usize) -> Self {
        Self { value: value.into(), message, unasked: false }
    }
}

/// One item of a plan.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanItem {
    /// The task, as it is written in every version of the plan.
    pub item: String,
    /// Index of the message that ticked it off; nothing while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<usize>,
}

/// An agent's change to a file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactVerb {
    /// Only looked at.
    Read,
    /// Written where nothing was.
    Created,
    /// Changed.
    Modified,
    /// Removed.
    Deleted,
}

/// How much the loss of a fact matters: a gate breaks on a lost fact of high importance.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    /// The work goes on without it.
    Normal,
    /// The work goes wrong without it.
    High,
}
