//! Probes: questions about the past whose answer is known, and how answers are graded.
//!
//! A [`Probe`] is asked at fixed points of a session ([`ask_points`]), the same for every
//! strategy; one probe at one point is an [`Item`]. Two evaluators look at an item and are never
//! mixed: *survival* searches the prompt for the planted value, and a *reader* is asked the
//! question and its answer graded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::AnswerFormat;
use crate::session::Session;
use crate::session::ground_truth::{GroundTruth, Importance, RuleForm};
use crate::units::Tokens;

pub mod check;
pub mod derive;
mod gold;
pub mod grade;
pub mod judge;
pub mod recovery;
mod selection;
pub mod survival;

pub use gold::Gold;
pub use selection::Selection;

/// A question about the past whose answer is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// Unique in its session. Never sent to anyone.
    pub id: String,
    /// What is asked about.
    pub kind: ProbeKind,
    /// The question; it does not hold the answer.
    pub question: String,
    /// The answer.
    pub gold: Gold,
    /// Indices of the messages that hold the answer, ascending; empty for a decoy.
    pub evidence: Vec<usize>,
    /// How much a lost answer matters.
    pub importance: Importance,
}

/// What a probe asks about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProbeKind {
    /// A value that was said once.
    Recall,
    /// A rule the user set.
    Constraint,
    /// Which files were read, created, modified or deleted.
    Artifact,
    /// A choice between options, and its reason.
    Decision,
    /// The newest value of a key that was revised.
    Update,
    /// The newest of counts that change.
    Numeric,
    /// Something that was tried and failed, and why.
    RejectedPath,
    /// What is left of a plan.
    Continuation,
    /// The code and the place of a failure.
    Error,
    /// One value among others of its type.
    Binding,
    /// In which order things happened.
    Order,
    /// What the user asked for last.
    LastRequest,
    /// What was started and not ended.
    OpenHandle,
    /// An instruction that was taken back, beside one that is in force.
    Obsolete,
    /// A value that is asked for in other words than it was said in.
    Indirect,
    /// A value that is found by way of another.
    TwoStep,
    /// A tool call that needs values said at different places.
    Act,
    /// A question whose answer has to be put together, in words that only a judge can grade.
    Open,
    /// Something that was never said.
    Decoy,
    /// A person's question that the conversation does not answer.
    Unanswerable,
}

impl ProbeKind {
    /// All kinds, in the order of tables.
    pub const ALL: [Self; 20] = [
        Self::Recall,
        Self::Constraint,
        Self::Artifact,
        Self::Decision,
        Self::Update,
        Self::Numeric,
        Self::RejectedPath,
        Self::Continuation,
        Self::Error,
        Self::Binding,
        Self::Order,
        Self::LastRequest,
        Self::OpenHandle,
        Self::Obsolete,
        Self::Indirect,
        Self::TwoStep,
        Self::Act,
        Self::Open,
        Self::Decoy,
        Self::Unanswerable,
    ];

    /// Whether right is to say that the conversation does not tell: nothing that answers was ever
    /// said.
    pub fn is_never_said(self) -> bool {
        matches!(self, Self::Decoy | Self::Unanswerable)
    }

    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::Constraint => "constraint",
            Self::Artifact => "artifact",
            Self::Decision => "decision",
            Self::Update => "update",
            Self::Numeric => "numeric",
            Self::RejectedPath => "rejected-path",
            Self::Continuation => "continuation",
            Self::Error => "error",
            Self::Binding => "binding",
            Self::Order => "order",
            Self::LastRequest => "last-request",
            Self::OpenHandle => "open-handle",
            Self::Obsolete => "obsolete",
            Self::Indirect => "indirect",
            Self::TwoStep => "two-step",
            Self::Act => "act",
            Self::Open => "open",
            Self::Decoy => "decoy",
            Self::Unanswerable => "unanswerable",
        }
    }
}

impl Probe {
    /// The probes of a synthetic session, in the order of its facts.
    pub fn planted(truth: &GroundTruth) -> Vec<Self> {
        truth
            .facts
            .iter()
            .map(|fact| {
                let (kind, gold) = gold::asked(&fact.fact);
                Self {
                    id: fact.id.clone(),
                    kind,
                    question: fact.question.clone(),
                    gold,
                    evidence: fact.evidence.clone(),
                    importance: fact.importance,
                }
            })
            .collect()
    }

    /// The questions that are put to a reader, each in a prompt of its own: one, or two. Two ask the
    /// same in both orders, or of a protected and a free object, or of an instruction taken back and
    /// one in force. Their answers are kept with [`OTHER_ORDER`] between them, and count as right
    /// only if both are.
    pub fn questions(&self) -> Vec<String> {
        let question = self.question.trim();
        match &self.gold {
            Gold::Statement {
                statement,
                form: RuleForm::Choice { foil },
                ..
            } => [(statement, foil), (foil, statement)]
                .map(|(a, b)| format!("{question}\nA: {a}\nB: {b}"))
                .into(),
            Gold::Statement {
                form: RuleForm::Call { task, allowed, .. },
                ..
            } => {
                let allowed = allowed.iter().map(|allowed| allowed.task.clone());
                [task.clone()].into_iter().chain(allowed).collect()
            }
            Gold::Obsolete {
                standing_question, ..
            } => vec![question.to_owned(), standing_question.clone()],
            Gold::Tried { approach, .. } => vec![
                question.to_owned(),
                format!("Is the {approach} still untried? If it is not, say how it ended."),
            ],
            Gold::Value { .. }
            | Gold::Statement { .. }
            | Gold::Files { .. }
            | Gold::Choice { .. }
            | Gold::Versions { .. }
            | Gold::Plan { .. }
            | Gold::Fault { .. }
            | Gold::Among { .. }
            | Gold::Sequence { .. }
            | Gold::Requests { .. }
            | Gold::Handles { .. }
            | Gold::Steps { .. }
            | Gold::Arguments { .. }
            | Gold::Answer { .. }
            | Gold::Absent { .. }
            | Gold::Untold => vec![question.to_owned()],
        }
    }

    /// The form in which the answer is wanted.
    pub fn answer_format(&self) -> AnswerFormat {
        match self.kind {
            ProbeKind::Recall
            | ProbeKind::Update
            | ProbeKind::Binding
            | ProbeKind::Indirect
            | ProbeKind::TwoStep
            | ProbeKind::Decoy => AnswerFormat::Value,
            ProbeKind::Constraint => match &self.gold {
                Gold::Statement {
                    form: RuleForm::Choice { .. },
                    ..
                } => AnswerFormat::Letter,
                Gold::Statement {
                    form: RuleForm::Call { .. },
                    ..
                } => AnswerFormat::Call,
                _ => AnswerFormat::Sentence,
            },
            ProbeKind::Open | ProbeKind::Unanswerable => AnswerFormat::Sentence,
            ProbeKind::Artifact => AnswerFormat::Paths,
            ProbeKind::Decision => AnswerFormat::Choice,
            ProbeKind::Numeric => AnswerFormat::Number,
            ProbeKind::RejectedPath => AnswerFormat::YesNo,
            ProbeKind::Obsolete => AnswerFormat::YesOrNo,
            ProbeKind::Continuation | ProbeKind::OpenHandle => AnswerFormat::Items,
            ProbeKind::Act => AnswerFormat::Call,
            ProbeKind::Error => AnswerFormat::Fault,
            ProbeKind::Order => AnswerFormat::Sequence,
            ProbeKind::LastRequest => AnswerFormat::Quote,
        }
    }

    /// The messages that hold the answer as it was before the message of this index. Of a key that
    /// was revised only the newest value answers.
    pub fn evidence_before(&self, message: usize) -> Vec<usize> {
        let is_before = |at: &usize| *at < message;
        match &self.gold {
            Gold::Versions { values, .. } | Gold::Requests { requests: values } => {
                let said = values.iter().rev().map(|said| said.message);
                said.filter(is_before).take(1).collect()
            }
            // Every version of a plan holds all of it.
            Gold::Plan { .. } => {
                let written = self.evidence.iter().rev().copied();
                written.filter(is_before).take(1).collect()
            }
            // What a file is not listed for any more says nothing.
            Gold::Files { files, .. } => {
                let is_over = |at: usize| {
                    let mut of_it = files.iter().filter(|file| file.message == at).peekable();
                    of_it.peek().is_some() && of_it.all(|file| !file.is_listed(message))
                };
                let evidence = self.evidence.iter().copied().filter(is_before);
                evidence.filter(|at| !is_over(*at)).collect()
            }
            // A handle that was ended is not asked for any more.
            Gold::Handles { handles, .. } => {
                let open = handles.iter().filter(|handle| handle.is_open(message));
                let mut started: Vec<usize> = open.map(|handle| handle.started).collect();
                started.sort_unstable();
                started.dedup();
                started
            }
            Gold::Value { .. }
            | Gold::Statement { .. }
            | Gold::Choice { .. }
            | Gold::Tried { .. }
            | Gold::Fault { .. }
            | Gold::Among { .. }
            | Gold::Sequence { .. }
            | Gold::Obsolete { .. }
            | Gold::Steps { .. }
            | Gold::Arguments { .. }
            | Gold::Answer { .. }
            | Gold::Absent { .. }
            | Gold::Untold => self.evidence.iter().copied().filter(is_before).collect(),
        }
    }

    /// Whether the full history before the message of this index holds the answer.
    ///
    /// What was never said can always be asked; what is put together of several messages once all of
    /// them were said; a list of files or of open handles while there is one on it; a plan while some
    /// of it is left; an order from [`LEAST_EVENTS`] events on, and never before an event that the
    /// question names; a revised value unless its newest version only ends the one before it.
    fn is_answerable(&self, message: usize) -> bool {
        let is_said = self.evidence.first().is_some_and(|first| *first < message);
        match self.kind {
            ProbeKind::Decoy | ProbeKind::Unanswerable => true,
            ProbeKind::Open | ProbeKind::Obsolete | ProbeKind::TwoStep | ProbeKind::Act => {
                self.evidence.last().is_some_and(|last| *last < message)
            }
            ProbeKind::OpenHandle => !self.gold.open_before(message).is_empty(),
            ProbeKind::Continuation => is_said && !self.gold.pending_before(message).is_empty(),
            ProbeKind::Order => {
                self.gold.events_before(message).len() >= LEAST_EVENTS
                    && !self.gold.is_ahead(&self.question, message)
            }
            ProbeKind::Artifact => is_said && !self.gold.files_before(message).is_empty(),
            ProbeKind::LastRequest | ProbeKind::Update | ProbeKind::Numeric => {
                let newest = self.gold.revisions_before(message).pop();
                newest.is_some_and(|newest| !newest.unasked)
            }
            ProbeKind::Recall
            | ProbeKind::Indirect
            | ProbeKind::Constraint
            | ProbeKind::Error
            | ProbeKind::Binding
            | ProbeKind::Decision
            | ProbeKind::RejectedPath => is_said,
        }
    }
}

/// What stands between the answers to the two questions of a probe.
pub const OTHER_ORDER: &str = "\n--- in the other order ---\n";

/// Fewer events than this have no order worth asking for: two are right in every other guess.
pub const LEAST_EVENTS: usize = 3;

/// What a reader that is a model is asked beside the scored question of each prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Asking {
    /// Once more under full history and under an empty context, to see whether the question can be
    /// answered, and only with the context. These answers are never scored.
    pub qualifies: bool,
    /// Once more of the summaries in the prompt alone, where the evidence went into one.
    pub summaries: bool,
    /// The reader's context window, prompt and answer together; where full history does not fit it,
    /// the evidence is the ceiling. Nothing where it is not known.
    pub window: Option<Tokens>,
}

/// One probe at one point of the session: the unit that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Index of the probe.
    pub probe: usize,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// The call at which it is asked.
    pub call: usize,
}

/// The calls at which probes are asked, with how far the session is: 25, 50, 75 and 100 %.
///
/// 100 % is the last call. In sessions of fewer than four calls points that fall on the same call
/// are asked once, as the later point.
pub fn ask_points(calls: usize) -> Vec<(u8, usize)> {
    Selection::default().ask_points(calls)
}

/// All items of a session, by call, then by probe: a probe is asked wherever the full history
/// holds its answer.
pub fn items(session: &Session, probes: &[Probe]) -> Vec<Item> {
    Selection::default().items(session, probes)
}

/// What a grader says.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// The answer was graded.
    Scored {
        /// From 0 to 1.
        score: f64,
        /// In what way it is right or wrong.
        outcome: Outcome,
    },
    /// The answer was not graded. Never counted as zero.
    Unscored {
        /// Why.
        reason: Unscored,
    },
}

/// In what way an answer is right or wrong.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The known answer; for a decoy, that nothing is known.
    Right,
    /// Incomplete: a part of what was asked for, or with something added. A list that rules read keeps its
    /// share; what a judge calls incomplete scores 0.
    Partial,
    /// Not right where the set of answers is closed: the foil's letter, the forbidden call, another copied
    /// value. Older records have it for every other value, and judges that say no more than `incorrect`.
    Wrong,
    /// A value that was true earlier.
    Stale,
    /// The value of another key.
    Misbound,
    /// The reader said that it is not in the context.
    Abstained,
    /// Something that was never said.
    Invented,
}

/// Why an answer was not graded.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Unscored {
    /// Rules cannot confirm the answer, and there is no judge. It may be right.
    NeedsJudge,
    /// The reader brought no answer.
    NoAnswer,
    /// The reader declined, or its provider held the answer back.
    Refused,
    /// The judge brought no verdict.
    JudgeFailed,
    /// The judge's reply could not be read.
    Unparsable,
    /// As many judges of a panel said the one as the other.
    Split,
    /// Every judge that was asked misses too many answers whose verdict is known.
    JudgeUnfit,
    /// The prompt does not fit the reader's window, and of the reference not even the evidence does.
    TooLong,
}
