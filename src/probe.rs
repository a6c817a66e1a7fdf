//! Probes: questions about the past whose answer is known, and how answers are graded.
//!
//! A [`Probe`] is asked at fixed points of a session ([`ask_points`]), the same for every
//! strategy; one probe at one point is an [`Item`]. Two evaluators look at an item and are never
//! mixed: *survival* searches the prompt for the planted value, and a *reader* is asked the
//! question and its answer graded.

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::AnswerFormat;
use crate::session::Session;
use crate::session::ground_truth::{ArtifactVerb, Fact, GroundTruth, Importance, Revision};
use crate::step::Step;

pub mod grade;
pub mod judge;
pub mod survival;

/// A question about the past whose answer is known.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Something that was never said.
    Decoy,
}

impl ProbeKind {
    /// All kinds, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::Recall,
        Self::Constraint,
        Self::Artifact,
        Self::Decision,
        Self::Update,
        Self::Numeric,
        Self::RejectedPath,
        Self::Continuation,
        Self::Decoy,
    ];

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
            Self::Decoy => "decoy",
        }
    }
}

/// The answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gold {
    /// This value, said beside words of this key.
    Value {
        /// Words that stand beside the value.
        key: String,
        /// The value.
        value: String,
    },
    /// This rule.
    Statement {
        /// What it is about.
        topic: String,
        /// The rule as the user said it.
        statement: String,
    },
    /// These files, each with the message that first touched it so.
    Files {
        /// What was done to them.
        verb: ArtifactVerb,
        /// Path and message, ascending by message.
        files: Vec<(String, usize)>,
    },
    /// This option, for this reason.
    Choice {
        /// What was to be decided.
        key: String,
        /// The option that was taken.
        choice: String,
        /// Why, as it was said.
        reason: String,
        /// The other options.
        rejected: Vec<String>,
    },
    /// The newest of these values that was said before the question.
    Versions {
        /// Words that stand beside each value.
        key: String,
        /// What the value counts; nothing where it is no count.
        unit: Option<String>,
        /// Each value with the message that says it, oldest first.
        values: Vec<(String, usize)>,
    },
    /// Yes, this was tried, and this is why it failed.
    Tried {
        /// What was tried.
        approach: String,
        /// The unguessable part of the reason.
        reason: String,
    },
    /// Those of these items that were not ticked off before the question.
    Plan {
        /// Name of the plan.
        plan: String,
        /// Each item with the message that ticked it off.
        items: Vec<(String, Option<usize>)>,
    },
    /// Nothing: it was never said.
    Absent {
        /// A key like the planted ones.
        key: String,
        /// A value like the planted ones, which stands nowhere.
        value: String,
    },
}

impl Gold {
    /// The files that were touched before the message of this index: the gold of an item that is
    /// asked there. Empty for other kinds.
    pub fn files_before(&self, message: usize) -> Vec<&str> {
        let Self::Files { files, .. } = self else {
            return Vec::new();
        };
        let touched = files.iter().filter(|(_, touched)| *touched < message);
        touched.map(|(path, _)| path.as_str()).collect()
    }

    /// The values that were said before the message of this index, oldest first: the last is the
    /// gold of an item that is asked there, the others are stale. Empty for other kinds.
    pub fn versions_before(&self, message: usize) -> Vec<&str> {
        let Self::Versions { values, .. } = self else {
            return Vec::new();
        };
        let said = values.iter().filter(|(_, said)| *said < message);
        said.map(|(value, _)| value.as_str()).collect()
    }

    /// The newest value before the message of this index.
    pub fn newest_before(&self, message: usize) -> Option<&str> {
        self.versions_before(message).pop()
    }

    /// The items that were not ticked off before the message of this index. Empty for other kinds.
    pub fn pending_before(&self, message: usize) -> Vec<&str> {
        let Self::Plan { items, .. } = self else {
            return Vec::new();
        };
        let open = items
            .iter()
            .filter(|(_, done)| done.is_none_or(|done| done >= message));
        open.map(|(item, _)| item.as_str()).collect()
    }
}

impl Probe {
    /// The probes of a synthetic session, in the order of its facts.
    pub fn planted(truth: &GroundTruth) -> Vec<Self> {
        truth
            .facts
            .iter()
            .map(|fact| {
                let (kind, gold) = asked(&fact.fact);
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

    /// The form in which the answer is wanted.
    pub fn answer_format(&self) -> AnswerFormat {
        match self.kind {
            ProbeKind::Recall | ProbeKind::Update | ProbeKind::Decoy => AnswerFormat::Value,
            ProbeKind::Constraint => AnswerFormat::Sentence,
            ProbeKind::Artifact => AnswerFormat::Paths,
            ProbeKind::Decision => AnswerFormat::Choice,
            ProbeKind::Numeric => AnswerFormat::Number,
            ProbeKind::RejectedPath => AnswerFormat::YesNo,
            ProbeKind::Continuation => AnswerFormat::Items,
        }
    }

    /// The messages that hold the answer as it was before the message of this index. Of a key that
    /// was revised only the newest value answers.
    pub fn evidence_before(&self, message: usize) -> Vec<usize> {
        let is_before = |at: &usize| *at < message;
        match &self.gold {
            Gold::Versions { values, .. } => {
                let said = values.iter().rev().map(|(_, said)| *said);
                said.filter(is_before).take(1).collect()
            }
            // Every version of a plan holds all of it.
            Gold::Plan { .. } => {
                let written = self.evidence.iter().rev().copied();
                written.filter(is_before).take(1).collect()
            }
            Gold::Value { .. }
            | Gold::Statement { .. }
            | Gold::Files { .. }
            | Gold::Choice { .. }
            | Gold::Tried { .. }
            | Gold::Absent { .. } => self.evidence.iter().copied().filter(is_before).collect(),
        }
    }

    /// Whether the full history before the message of this index holds the answer.
    ///
    /// A decoy can always be asked; a list of files as soon as there is one; a plan while some of
    /// it is left.
    fn is_answerable(&self, message: usize) -> bool {
        let is_said = self.evidence.first().is_some_and(|first| *first < message);
        match self.kind {
            ProbeKind::Decoy => true,
            ProbeKind::Continuation => is_said && !self.gold.pending_before(message).is_empty(),
            ProbeKind::Recall
            | ProbeKind::Constraint
            | ProbeKind::Artifact
            | ProbeKind::Decision
            | ProbeKind::Update
            | ProbeKind::Numeric
            | ProbeKind::RejectedPath => is_said,
        }
    }
}

/// What is asked about a planted fact, and the answer.
fn asked(fact: &Fact) -> (ProbeKind, Gold) {
    let versions = |key: &String, unit: Option<&String>, values: &[Revision]| Gold::Versions {
        key: key.clone(),
        unit: unit.cloned(),
        values: values
            .iter()
            .map(|revision| (revision.value.clone(), revision.message))
            .collect(),
    };
    match fact {
        Fact::Recall { key, value } => (
            ProbeKind::Recall,
            Gold::Value {
                key: key.clone(),
                value: value.clone(),
            },
        ),
        Fact::Constraint { topic, statement } => (
            ProbeKind::Constraint,
            Gold::Statement {
                topic: topic.clone(),
                statement: statement.clone(),
            },
        ),
        Fact::Artifact { verb, files } => (
            ProbeKind::Artifact,
            Gold::Files {
                verb: *verb,
                files: files.iter().map(|f| (f.path.clone(), f.message)).collect(),
            },
        ),
        Fact::Decision {
            key,
            choice,
            reason,
            rejected,
        } => (
            ProbeKind::Decision,
            Gold::Choice {
                key: key.clone(),
                choice: choice.clone(),
                reason: reason.clone(),
                rejected: rejected.clone(),
            },
        ),
        Fact::Update { key, values } => (ProbeKind::Update, versions(key, None, values)),
        Fact::Numeric { key, unit, values } => {
            (ProbeKind::Numeric, versions(key, Some(unit), values))
        }
        Fact::RejectedPath { approach, reason } => (
            ProbeKind::RejectedPath,
            Gold::Tried {
                approach: approach.clone(),
                reason: reason.clone(),
            },
        ),
        Fact::Continuation { plan, items } => (
            ProbeKind::Continuation,
            Gold::Plan {
                plan: plan.clone(),
                items: items.iter().map(|i| (i.item.clone(), i.done)).collect(),
            },
        ),
        Fact::Decoy { key, value } => (
            ProbeKind::Decoy,
            Gold::Absent {
                key: key.clone(),
                value: value.clone(),
            },
        ),
    }
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
    let mut points: Vec<(u8, usize)> = Vec::new();
    for percent in [25_u8, 50, 75, 100] {
        let Some(call) = (calls * usize::from(percent)).div_ceil(100).checked_sub(1) else {
            continue;
        };
        match points.last_mut() {
            Some(last) if last.1 == call => last.0 = percent,
            _ => points.push((percent, call)),
        }
    }
    points
}

/// All items of a session, by call, then by probe: a probe is asked wherever the full history
/// holds its answer.
pub fn items(session: &Session, probes: &[Probe]) -> Vec<Item> {
    let calls = session.calls();
    let mut items = Vec::new();
    for (percent, call) in ask_points(calls.len()) {
        for (index, probe) in probes.iter().enumerate() {
            if probe.is_answerable(calls[call]) {
                items.push(Item {
                    probe: index,
                    percent,
                    call,
                });
            }
        }
    }
    items
}

/// Grades an answer, asking a model where rules do not suffice.
pub trait Grader: Debug + Send + Sync {
    /// The grader's name in records.
    fn name(&self) -> &'static str;

    /// Grades `answer` to `probe` as asked before the message of index `before`.
    fn grade<'a>(&'a self, probe: &'a Probe, before: usize, answer: &'a str) -> Step<'a, Verdict>;
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
    /// A part of a list, or with something added.
    Partial,
    /// Another value.
    Wrong,
    /// A value that was true earlier.
    Stale,
    /// The value of another key.
    Misbound,
    /// The reader said that it is not in the context.
    Abstained,
    /// A concrete answer to a question about something never said.
    Invented,
}

/// Why an answer was not graded.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Unscored {
    /// Rules do not suffice for this kind, and there is no judge.
    NeedsJudge,
    /// The reader brought no answer.
    NoAnswer,
    /// The judge brought no verdict.
    JudgeFailed,
    /// The judge's reply could not be read.
    Unparsable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_asked_at_fixed_shares_of_the_session() {
        assert_eq!(ask_points(100), [(25, 24), (50, 49), (75, 74), (100, 99)]);
        assert_eq!(ask_points(6), [(25, 1), (50, 2), (75, 4), (100, 5)]);
        assert_eq!(ask_points(2), [(50, 0), (100, 1)]);
        assert_eq!(ask_points(1), [(100, 0)]);
        assert_eq!(ask_points(0), []);
    }
}
