//! The known answers of probes, and what of them is known before a question is asked.

use super::ProbeKind;
use crate::session::ground_truth::{
    AllowedCall, ArtifactVerb, Fact, Handle, KeyValue, Revision, RuleForm, TouchedFile,
};
use serde::Serialize;

/// The answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        /// How a reader is asked for it.
        form: RuleForm,
    },
    /// These files, each with the message that first touched it so.
    Files {
        /// What was done to them.
        verb: ArtifactVerb,
        /// Each with its messages, ascending by the first.
        files: Vec<TouchedFile>,
        /// Files that are neither right nor wrong in an answer.
        optional: Vec<TouchedFile>,
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
        values: Vec<Revision>,
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
    /// This code, at this place.
    Fault {
        /// What failed.
        attempt: String,
        /// The error code.
        code: String,
        /// File and line.
        place: String,
    },
    /// This value, and not that of another key beside it.
    Among {
        /// Words that stand beside the value.
        key: String,
        /// The value.
        value: String,
        /// The values of the other keys.
        others: Vec<String>,
    },
    /// Those of these events that happened before the question, in this order.
    Sequence {
        /// What they belong to.
        name: String,
        /// Each event with the message that says it.
        events: Vec<Revision>,
    },
    /// The newest of these requests that was made before the question.
    Requests {
        /// Each request with the message that makes it, oldest first.
        requests: Vec<Revision>,
    },
    /// Those of these handles that were started and not ended before the question.
    Handles {
        /// What they belong to.
        owner: String,
        /// Each with the messages that start and end it.
        handles: Vec<Handle>,
    },
    /// That the one instruction is taken back, and that the other is in force.
    Obsolete {
        /// The instruction that must not be followed any more.
        withdrawn: KeyValue,
        /// The sentence that takes it back.
        withdrawal: String,
        /// The instruction in force.
        standing: KeyValue,
        /// The question about it.
        standing_question: String,
    },
    /// The value of the last of these, to which the others lead.
    Steps {
        /// Keys and values in order.
        steps: Vec<KeyValue>,
    },
    /// One call that holds all of these values.
    Arguments {
        /// Each with the words that stand beside it.
        arguments: Vec<KeyValue>,
    },
    /// This, in any words that say the same.
    Answer {
        /// The known answer.
        answer: String,
    },
    /// Nothing: a person asked what the conversation does not tell.
    Untold,
    /// Nothing: it was never said.
    Absent {
        /// A key like the planted ones.
        key: String,
        /// A value like the planted ones, which stands nowhere.
        value: String,
    },
}

impl Gold {
    /// The files that are in the list before the message of this index: the gold of an item that is
    /// asked there. Empty for other kinds.
    pub fn files_before(&self, message: usize) -> Vec<&str> {
        let Self::Files { files, .. } = self else {
            return Vec::new();
        };
        let listed = files.iter().filter(|file| file.is_listed(message));
        listed.map(|file| file.path.as_str()).collect()
    }

    /// The files that an answer may list or leave out before the message of this index. Empty for
    /// other kinds.
    pub fn optional_before(&self, message: usize) -> Vec<&str> {
        let Self::Files { optional, .. } = self else {
            return Vec::new();
        };
        let listed = optional.iter().filter(|file| file.is_listed(message));
        listed.map(|file| file.path.as_str()).collect()
    }

    /// The names of the handles that are open before the message of this index. Empty for other
    /// kinds.
    pub fn open_before(&self, message: usize) -> Vec<&str> {
        let Self::Handles { handles, .. } = self else {
            return Vec::new();
        };
        let open = handles.iter().filter(|handle| handle.is_open(message));
        open.map(|handle| handle.name.as_str()).collect()
    }

    /// The values (or requests) that were said before the message of this index, oldest first: the
    /// last is the gold of an item that is asked there, the others are stale. Empty for other kinds.
    pub fn revisions_before(&self, message: usize) -> Vec<&Revision> {
        let (Self::Versions { values, .. } | Self::Requests { requests: values }) = self else {
            return Vec::new();
        };
        let said = values.iter().filter(|said| said.message < message);
        said.collect()
    }

    /// The same, as text alone.
    pub fn versions_before(&self, message: usize) -> Vec<&str> {
        let said = self.revisions_before(message).into_iter();
        said.map(|said| said.value.as_str()).collect()
    }

    /// The newest value before the message of this index.
    pub fn newest_before(&self, message: usize) -> Option<&str> {
        self.versions_before(message).pop()
    }

    /// The sentences that answer before the message of this index, as they were said: what a reader
    /// quotes from them are not its own words. Empty where the answer is no sentence.
    pub fn words_before(&self, message: usize) -> Vec<&str> {
        match self {
            Self::Statement { statement, .. } => vec![statement],
            Self::Choice { choice, reason, .. } => vec![choice, reason],
            Self::Answer { answer } => vec![answer],
            Self::Requests { .. } => self.versions_before(message),
            Self::Plan { .. } => self.pending_before(message),
            Self::Value { .. }
            | Self::Files { .. }
            | Self::Versions { .. }
            | Self::Tried { .. }
            | Self::Fault { .. }
            | Self::Among { .. }
            | Self::Sequence { .. }
            | Self::Handles { .. }
            | Self::Obsolete { .. }
            | Self::Steps { .. }
            | Self::Arguments { .. }
            | Self::Untold
            | Self::Absent { .. } => Vec::new(),
        }
    }

    /// The values that answer, or once did: an answer that is one of them belongs to this item. Left out
    /// are counts that can be guessed, and answers that are lists or letters.
    pub fn values(&self) -> Vec<String> {
        let asked = |said: &[Revision]| -> Vec<String> {
            let asked = said.iter().filter(|said| !said.unasked);
            asked.map(|said| said.value.clone()).collect()
        };
        match self {
            Self::Value { value, .. } | Self::Among { value, .. } => vec![value.clone()],
            Self::Versions { values, .. } | Self::Requests { requests: values } => asked(values),
            Self::Tried { reason, .. } => vec![reason.clone()],
            Self::Fault { code, place, .. } => vec![code.clone(), format!("{code} at {place}")],
            Self::Choice { choice, .. } => vec![choice.clone()],
            Self::Statement {
                statement,
                form: RuleForm::Open,
                ..
            } => vec![statement.clone()],
            Self::Steps { steps } => steps.iter().map(|step| step.value.clone()).collect(),
            // Other probes ask for arguments one by one.
            Self::Arguments { .. }
            | Self::Handles { .. }
            | Self::Obsolete { .. }
            | Self::Statement { .. }
            | Self::Files { .. }
            | Self::Plan { .. }
            | Self::Sequence { .. }
            | Self::Answer { .. }
            | Self::Untold
            | Self::Absent { .. } => Vec::new(),
        }
    }

    /// The events that happened before the message of this index, in their order. Empty for other
    /// kinds.
    pub fn events_before(&self, message: usize) -> Vec<&str> {
        let Self::Sequence { events, .. } = self else {
            return Vec::new();
        };
        let happened = events.iter().filter(|event| event.message < message);
        happened.map(|event| event.value.as_str()).collect()
    }

    /// Whether the question names an event that has not happened before the message of this index:
    /// it would be told something then.
    pub fn is_ahead(&self, question: &str, message: usize) -> bool {
        let Self::Sequence { events, .. } = self else {
            return false;
        };
        let mut ahead = events.iter().filter(|event| event.message >= message);
        ahead.any(|event| question.contains(event.value.as_str()))
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

/// The answer in words where nothing was ever said.
pub const NEVER_SAID: &str =
    "The conversation does not say. Only an answer that says so is correct.";

/// The answer as it is before the message of this index, in words for a judge or a reader of
/// reports.
pub fn in_words(gold: &Gold, before: usize) -> String {
    match gold {
        Gold::Value { value, .. } | Gold::Among { value, .. } => value.clone(),
        Gold::Fault { code, place, .. } => format!("{code} at {place}"),
        Gold::Sequence { .. } => gold.events_before(before).join("\n"),
        Gold::Requests { .. } => gold.newest_before(before).unwrap_or_default().to_owned(),
        Gold::Statement {
            statement,
            form: RuleForm::Choice { .. },
            ..
        } => format!("A, and B in the other order: {statement}"),
        Gold::Statement {
            statement,
            form: RuleForm::Call {
                forbidden, allowed, ..
            },
            ..
        } => match allowed {
            Some(AllowedCall { target, .. }) => format!(
                "{statement} Right is first to ask, and then a call on {target} without asking."
            ),
            None => format!("{statement} Right is to ask, or any call but one on {forbidden}."),
        },
        Gold::Statement { statement, .. } => statement.clone(),
        Gold::Files { .. } => {
            let files = gold.files_before(before).join("\n");
            match gold.optional_before(before).as_slice() {
                [] => files,
                optional => format!(
                    "{files}\n(These may be listed or left out: {})",
                    optional.join(", ")
                ),
            }
        }
        Gold::Handles { .. } => gold.open_before(before).join("\n"),
        Gold::Obsolete { .. } => "First no, because it was taken back; then yes.".to_owned(),
        Gold::Steps { steps } => {
            let last = steps.last();
            last.map_or_else(String::new, |step| step.value.clone())
        }
        Gold::Arguments { arguments } => {
            let said = arguments
                .iter()
                .map(|pair| format!("{}: {}", pair.key, pair.value));
            let said: Vec<String> = said.collect();
            format!("One call with all of these values:\n{}", said.join("\n"))
        }
        Gold::Choice { choice, reason, .. } => format!("{choice}: {reason}"),
        Gold::Versions { unit, .. } => {
            let newest = gold.newest_before(before).unwrap_or_default();
            match unit {
                Some(unit) => format!("{newest} {unit}"),
                None => newest.to_owned(),
            }
        }
        Gold::Tried { reason, .. } => format!("Yes; it failed: {reason}"),
        Gold::Plan { .. } => gold.pending_before(before).join("\n"),
        Gold::Answer { answer } => answer.clone(),
        Gold::Absent { .. } | Gold::Untold => NEVER_SAID.to_owned(),
    }
}

/// What is asked about a planted fact, and the answer.
pub(super) fn asked(fact: &Fact) -> (ProbeKind, Gold) {
    let versions = |key: &String, unit: Option<&String>, values: &[Revision]| Gold::Versions {
        key: key.clone(),
        unit: unit.cloned(),
        values: values.to_vec(),
    };
    let one = |key: &String, value: &String| Gold::Value {
        key: key.clone(),
        value: value.clone(),
    };
    match fact {
        Fact::Recall { key, value } => (ProbeKind::Recall, one(key, value)),
        Fact::Indirect { key, value } => (ProbeKind::Indirect, one(key, value)),
        Fact::Constraint {
            topic,
            statement,
            form,
        } => (
            ProbeKind::Constraint,
            Gold::Statement {
                topic: topic.clone(),
                statement: statement.clone(),
                form: form.clone(),
            },
        ),
        Fact::Artifact {
            verb,
            files,
            optional,
        } => (
            ProbeKind::Artifact,
            Gold::Files {
                verb: *verb,
                files: files.clone(),
                optional: optional.clone(),
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
        Fact::Error {
            attempt,
            code,
            place,
        } => (
            ProbeKind::Error,
            Gold::Fault {
                attempt: attempt.clone(),
                code: code.clone(),
                place: place.clone(),
            },
        ),
        Fact::Binding { key, value, others } => (
            ProbeKind::Binding,
            Gold::Among {
                key: key.clone(),
                value: value.clone(),
                others: others.iter().map(|other| other.value.clone()).collect(),
            },
        ),
        Fact::Order { sequence, events } => (
            ProbeKind::Order,
            Gold::Sequence {
                name: sequence.clone(),
                events: events.clone(),
            },
        ),
        Fact::LastRequest { requests } => (
            ProbeKind::LastRequest,
            Gold::Requests {
                requests: requests.clone(),
            },
        ),
        Fact::OpenHandle { owner, handles } => (
            ProbeKind::OpenHandle,
            Gold::Handles {
                owner: owner.clone(),
                handles: handles.clone(),
            },
        ),
        Fact::Obsolete {
            withdrawn,
            withdrawal,
            standing,
            standing_question,
        } => (
            ProbeKind::Obsolete,
            Gold::Obsolete {
                withdrawn: withdrawn.clone(),
                withdrawal: withdrawal.clone(),
                standing: standing.clone(),
                standing_question: standing_question.clone(),
            },
        ),
        Fact::TwoStep { steps } => (
            ProbeKind::TwoStep,
            Gold::Steps {
                steps: steps.clone(),
            },
        ),
        Fact::Act { arguments } => (
            ProbeKind::Act,
            Gold::Arguments {
                arguments: arguments.clone(),
            },
        ),
        Fact::Open { answer } => (
            ProbeKind::Open,
            Gold::Answer {
                answer: answer.clone(),
            },
        ),
        Fact::Unanswerable => (ProbeKind::Unanswerable, Gold::Untold),
        Fact::Decoy { key, value } => (
            ProbeKind::Decoy,
            Gold::Absent {
                key: key.clone(),
                value: value.clone(),
            },
        ),
    }
}
