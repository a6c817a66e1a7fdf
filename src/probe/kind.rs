//! The kinds of probes: the form of their answers, and what of a fact answers when.

use std::fmt::Write as _;

use super::{LEAST_EVENTS, Probe, ProbeKind};
use crate::model::AnswerFormat;
use crate::session::ground_truth::{AllowedCall, Fact, GroundTruth, Revision, RuleForm};

/// Every kind, in the order of [`ProbeKind`] and of tables: its name, and the form of its answer.
const KINDS: [(ProbeKind, &str, AnswerFormat); 20] = [
    (ProbeKind::Recall, "recall", AnswerFormat::Value),
    (ProbeKind::Constraint, "constraint", AnswerFormat::Sentence),
    (ProbeKind::Artifact, "artifact", AnswerFormat::Paths),
    (ProbeKind::Decision, "decision", AnswerFormat::Choice),
    (ProbeKind::Update, "update", AnswerFormat::Value),
    (ProbeKind::Numeric, "numeric", AnswerFormat::Number),
    (
        ProbeKind::RejectedPath,
        "rejected-path",
        AnswerFormat::YesNo,
    ),
    (ProbeKind::Continuation, "continuation", AnswerFormat::Items),
    (ProbeKind::Error, "error", AnswerFormat::Fault),
    (ProbeKind::Binding, "binding", AnswerFormat::Value),
    (ProbeKind::Order, "order", AnswerFormat::Sequence),
    (ProbeKind::LastRequest, "last-request", AnswerFormat::Quote),
    (ProbeKind::OpenHandle, "open-handle", AnswerFormat::Items),
    (ProbeKind::Obsolete, "obsolete", AnswerFormat::YesOrNo),
    (ProbeKind::Indirect, "indirect", AnswerFormat::Value),
    (ProbeKind::TwoStep, "two-step", AnswerFormat::Value),
    (ProbeKind::Act, "act", AnswerFormat::Call),
    (ProbeKind::Open, "open", AnswerFormat::Sentence),
    (ProbeKind::Decoy, "decoy", AnswerFormat::Value),
    (
        ProbeKind::Unanswerable,
        "unanswerable",
        AnswerFormat::Sentence,
    ),
];

/// The answer in words where nothing was ever said.
pub const NEVER_SAID: &str =
    "The conversation does not say. Only an answer that says so is correct.";

/// One thing that answers, and may be in a prompt or not: a value, a rule, one path of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) text: &'a str,
    /// Words beside the text that bind it; of a rule its topic.
    pub(crate) key: &'a str,
    pub(crate) search: Search,
    /// The message that says it, where it names one of its own.
    pub(crate) since: Option<usize>,
    /// The message from which on it does not answer any more.
    pub(crate) until: Option<usize>,
    /// It only ends the value before it, see [`Revision::unasked`].
    pub(crate) unasked: bool,
}

/// How a part is searched for, and whether it matters where it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// A word bound by its key.
    Value,
    /// The same; the whole order of events matters.
    Event,
    /// The same; of several versions the last one counts.
    Version,
    /// A version that is a number, which may be written with commas.
    Count,
    /// A sentence of the user's; their order matters.
    Request,
    /// A path.
    Path,
    /// A sentence that may be paraphrased.
    Rule,
    /// An item of a plan, open or done.
    Item,
}

impl Part<'_> {
    /// Whether it answers before the message of this index.
    pub(crate) fn is_current(&self, before: usize) -> bool {
        self.since.is_none_or(|since| since < before)
            && self.until.is_none_or(|until| until >= before)
    }
}

impl ProbeKind {
    /// All kinds, in the order of tables.
    pub const ALL: [Self; 20] = {
        let mut all = [Self::Recall; 20];
        let mut at = 0;
        while at < all.len() {
            all[at] = KINDS[at].0;
            at += 1;
        }
        all
    };

    /// Whether an answer is right that says that the conversation does not tell: nothing that answers
    /// was ever said.
    pub fn is_never_said(self) -> bool {
        matches!(self, Self::Decoy | Self::Unanswerable)
    }

    /// The name in tables and files.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }
}

impl Fact {
    /// The kind of probe that asks for it.
    pub fn kind(&self) -> ProbeKind {
        match self {
            Self::Recall { .. } => ProbeKind::Recall,
            Self::Constraint { .. } => ProbeKind::Constraint,
            Self::Artifact { .. } => ProbeKind::Artifact,
            Self::Decision { .. } => ProbeKind::Decision,
            Self::Update { .. } => ProbeKind::Update,
            Self::Numeric { .. } => ProbeKind::Numeric,
            Self::RejectedPath { .. } => ProbeKind::RejectedPath,
            Self::Continuation { .. } => ProbeKind::Continuation,
            Self::Error { .. } => ProbeKind::Error,
            Self::Binding { .. } => ProbeKind::Binding,
            Self::Order { .. } => ProbeKind::Order,
            Self::LastRequest { .. } => ProbeKind::LastRequest,
            Self::OpenHandle { .. } => ProbeKind::OpenHandle,
            Self::Obsolete { .. } => ProbeKind::Obsolete,
            Self::Indirect { .. } => ProbeKind::Indirect,
            Self::TwoStep { .. } => ProbeKind::TwoStep,
            Self::Act { .. } => ProbeKind::Act,
            Self::Open { .. } => ProbeKind::Open,
            Self::Unanswerable => ProbeKind::Unanswerable,
            Self::Decoy { .. } => ProbeKind::Decoy,
        }
    }

    /// All that answers, or once did, in the order of the slots in which survival searches it.
    pub(crate) fn parts(&self) -> Vec<Part<'_>> {
        match self {
            Self::Recall { key, value }
            | Self::Indirect { key, value }
            | Self::Binding { key, value, .. }
            | Self::Decoy { key, value } => vec![part(Search::Value, key, value)],
            Self::RejectedPath { approach, reason } => {
                vec![part(Search::Value, approach, reason)]
            }
            Self::Error {
                attempt,
                code,
                place,
            } => [code, place]
                .map(|text| part(Search::Value, attempt, text))
                .into(),
            Self::TwoStep { steps: pairs } | Self::Act { arguments: pairs } => pairs
                .iter()
                .map(|pair| part(Search::Value, &pair.key, &pair.value))
                .collect(),
            Self::Obsolete {
                withdrawn,
                withdrawal,
                standing,
                ..
            } => vec![
                part(Search::Value, &standing.key, &standing.value),
                part(Search::Rule, &withdrawn.key, withdrawal),
            ],
            Self::Decision {
                key,
                choice,
                reason,
                ..
            } => vec![
                part(Search::Value, key, choice),
                part(Search::Rule, "", reason),
            ],
            Self::Constraint {
                topic, statement, ..
            } => vec![part(Search::Rule, topic, statement)],
            Self::OpenHandle { owner, handles } => handles
                .iter()
                .map(|handle| Part {
                    since: Some(handle.started),
                    until: handle.ended,
                    ..part(Search::Value, owner, &handle.name)
                })
                .collect(),
            Self::Artifact { files, .. } => files
                .iter()
                .map(|file| Part {
                    since: Some(file.message),
                    until: file.until,
                    ..part(Search::Path, "", &file.path)
                })
                .collect(),
            Self::Continuation { items, .. } => items
                .iter()
                .map(|item| Part {
                    until: item.done,
                    ..part(Search::Item, "", &item.item)
                })
                .collect(),
            Self::Update { key, values } => said(Search::Version, key, values),
            Self::Numeric { key, values, .. } => said(Search::Count, key, values),
            Self::Order { sequence, events } => said(Search::Event, sequence, events),
            Self::LastRequest { requests } => said(Search::Request, "", requests),
            Self::Open { .. } | Self::Unanswerable => Vec::new(),
        }
    }

    /// The texts that answer before the message of this index: of a list what is on it then, of a
    /// revised value all versions so far, oldest first.
    pub fn current(&self, before: usize) -> Vec<&str> {
        let parts = self.parts().into_iter();
        let current = parts.filter(|part| part.is_current(before));
        current.map(|part| part.text).collect()
    }

    /// Whether the newest of several values answers.
    pub(crate) fn is_revised(&self) -> bool {
        matches!(
            self,
            Self::Update { .. } | Self::Numeric { .. } | Self::LastRequest { .. }
        )
    }

    /// The files that an answer may list or leave out before the message of this index. Empty for
    /// other kinds.
    pub fn optional_before(&self, message: usize) -> Vec<&str> {
        let Self::Artifact { optional, .. } = self else {
            return Vec::new();
        };
        let listed = optional.iter().filter(|file| file.is_listed(message));
        listed.map(|file| file.path.as_str()).collect()
    }

    /// The sentences that answer before the message of this index, as they were said: what a reader
    /// quotes from them are not its own words. Empty where the answer is no sentence.
    pub(crate) fn words_before(&self, message: usize) -> Vec<&str> {
        match self {
            Self::Constraint { .. }
            | Self::Decision { .. }
            | Self::LastRequest { .. }
            | Self::Continuation { .. } => self.current(message),
            Self::Open { answer } => vec![answer],
            _ => Vec::new(),
        }
    }

    /// The values that answer, or once did: an answer that is one of them belongs to this item. Left out
    /// are counts that can be guessed, answers that are lists or letters, and the arguments of calls,
    /// for which other probes ask one by one.
    pub fn values(&self) -> Vec<String> {
        match self {
            Self::Error { code, place, .. } => vec![code.clone(), format!("{code} at {place}")],
            Self::Decision { choice, .. } => vec![choice.clone()],
            Self::Recall { .. }
            | Self::Indirect { .. }
            | Self::Binding { .. }
            | Self::RejectedPath { .. }
            | Self::TwoStep { .. }
            | Self::Update { .. }
            | Self::Numeric { .. }
            | Self::LastRequest { .. }
            | Self::Constraint {
                form: RuleForm::Open,
                ..
            } => {
                let asked = self.parts().into_iter().filter(|part| !part.unasked);
                asked.map(|part| part.text.to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The answer as it is before the message of this index, in words for a judge or a reader of
    /// reports.
    pub fn in_words(&self, before: usize) -> String {
        let mut current = self.current(before);
        match self {
            Self::Error { code, place, .. } => format!("{code} at {place}"),
            Self::Decision { choice, reason, .. } => format!("{choice}: {reason}"),
            Self::RejectedPath { reason, .. } => format!("Yes; it failed: {reason}"),
            Self::Obsolete { .. } => "First no, because it was taken back; then yes.".to_owned(),
            Self::Update { .. } | Self::LastRequest { .. } | Self::TwoStep { .. } => {
                current.pop().unwrap_or_default().to_owned()
            }
            Self::Numeric { unit, .. } => format!("{} {unit}", current.pop().unwrap_or_default()),
            Self::Constraint {
                statement,
                form: RuleForm::Choice { .. },
                ..
            } => format!("A, and B in the other order: {statement}"),
            Self::Constraint {
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
            Self::Artifact { .. } => {
                let mut files = current.join("\n");
                let optional = self.optional_before(before).join(", ");
                if !optional.is_empty() {
                    let _ = write!(files, "\n(These may be listed or left out: {optional})");
                }
                files
            }
            Self::Act { arguments } => {
                let mut lines = vec!["One call with all of these values:".to_owned()];
                lines.extend(
                    arguments
                        .iter()
                        .map(|pair| format!("{}: {}", pair.key, pair.value)),
                );
                lines.join("\n")
            }
            Self::Open { answer } => answer.clone(),
            Self::Decoy { .. } | Self::Unanswerable => NEVER_SAID.to_owned(),
            _ => current.join("\n"),
        }
    }
}

fn part<'a>(search: Search, key: &'a str, text: &'a str) -> Part<'a> {
    Part {
        text,
        key,
        search,
        since: None,
        until: None,
        unasked: false,
    }
}

fn said<'a>(search: Search, key: &'a str, values: &'a [Revision]) -> Vec<Part<'a>> {
    let part = |said: &'a Revision| Part {
        since: Some(said.message),
        unasked: said.unasked,
        ..part(search, key, &said.value)
    };
    values.iter().map(part).collect()
}

impl Probe {
    /// The probes of a session: its facts.
    pub fn planted(truth: &GroundTruth) -> Vec<Self> {
        truth.facts.clone()
    }

    /// The kind of the fact that is asked for.
    pub fn kind(&self) -> ProbeKind {
        self.fact.kind()
    }

    /// The questions that are put to a reader, each in a prompt of its own: one, or two. Two ask the
    /// same in both orders, or of a protected and a free object, or of an instruction taken back and
    /// one in force. Their answers are kept with [`OTHER_ORDER`](super::OTHER_ORDER) between them, and
    /// count as right only if both are.
    pub fn questions(&self) -> Vec<String> {
        let question = self.question.trim();
        let other = match &self.fact {
            Fact::Constraint {
                statement,
                form: RuleForm::Choice { foil },
                ..
            } => {
                let orders = [(statement, foil), (foil, statement)];
                return orders
                    .map(|(a, b)| format!("{question}\nA: {a}\nB: {b}"))
                    .into();
            }
            Fact::Constraint {
                form: RuleForm::Call { task, allowed, .. },
                ..
            } => {
                let allowed = allowed.iter().map(|allowed| allowed.task.clone());
                return [task.clone()].into_iter().chain(allowed).collect();
            }
            Fact::Obsolete {
                standing_question, ..
            } => Some(standing_question.clone()),
            Fact::RejectedPath { approach, .. } => Some(format!(
                "Is the {approach} still untried? If it is not, say how it ended."
            )),
            _ => None,
        };
        [question.to_owned()].into_iter().chain(other).collect()
    }

    /// The form in which the answer is wanted.
    pub fn answer_format(&self) -> AnswerFormat {
        match &self.fact {
            Fact::Constraint { form, .. } => match form {
                RuleForm::Open => AnswerFormat::Sentence,
                RuleForm::Choice { .. } => AnswerFormat::Letter,
                RuleForm::Call { .. } => AnswerFormat::Call,
            },
            fact => KINDS[fact.kind() as usize].2,
        }
    }

    /// The messages that hold the answer as it was before the message of this index. Of a key that
    /// was revised only the newest value answers.
    pub fn evidence_before(&self, message: usize) -> Vec<usize> {
        let mut said = self.evidence.clone();
        said.retain(|at| *at < message);
        match &self.fact {
            fact if fact.is_revised() => {
                let versions = fact.parts().into_iter().filter_map(|part| part.since);
                let newest = versions.rev().find(|at| *at < message);
                newest.into_iter().collect()
            }
            // Every version of a plan holds all of it.
            Fact::Continuation { .. } => said.split_off(said.len().saturating_sub(1)),
            // What a file is not listed for any more says nothing.
            Fact::Artifact { files, .. } => {
                said.retain(|at| {
                    let mut of_it = files.iter().filter(|file| file.message == *at).peekable();
                    of_it.peek().is_none() || of_it.any(|file| file.is_listed(message))
                });
                said
            }
            // A handle that was ended is not asked for any more.
            fact @ Fact::OpenHandle { .. } => {
                let open = fact.parts().into_iter().filter(|it| it.is_current(message));
                let mut started: Vec<usize> = open.filter_map(|part| part.since).collect();
                started.sort_unstable();
                started.dedup();
                started
            }
            _ => said,
        }
    }

    /// Whether the full history before the message of this index holds the answer.
    ///
    /// What was never said can always be asked; what is put together of several messages once all of
    /// them were said; a list of files or of open handles while there is one on it; a plan while some
    /// of it is left; an order from [`LEAST_EVENTS`] events on, and never before an event that the
    /// question names; a revised value unless its newest version only ends the one before it.
    pub(super) fn is_answerable(&self, message: usize) -> bool {
        let is_said = |at: Option<&usize>| at.is_some_and(|at| *at < message);
        let parts = self.fact.parts();
        let (current, others): (Vec<&Part<'_>>, Vec<&Part<'_>>) =
            parts.iter().partition(|part| part.is_current(message));
        match self.kind() {
            ProbeKind::Decoy | ProbeKind::Unanswerable => true,
            ProbeKind::Open | ProbeKind::Obsolete | ProbeKind::TwoStep | ProbeKind::Act => {
                is_said(self.evidence.last())
            }
            ProbeKind::OpenHandle => !current.is_empty(),
            ProbeKind::Order => {
                let is_named = |event: &&Part<'_>| self.question.contains(event.text);
                current.len() >= LEAST_EVENTS && !others.iter().any(is_named)
            }
            ProbeKind::LastRequest | ProbeKind::Update | ProbeKind::Numeric => {
                current.last().is_some_and(|newest| !newest.unasked)
            }
            _ => is_said(self.evidence.first()) && !current.is_empty(),
        }
    }
}
