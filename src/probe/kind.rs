//! The kinds of probes. Each kind is one file: from its fact it makes a [`Spec`], which says what
//! answers and when, how it is asked for, and how an answer is graded.
//!
//! Everything else follows from that: what survival searches, where a probe can be asked, what a
//! judge is shown, and which mistakes a file of facts may hold. A new kind is a variant of
//! [`Fact`], a file beside its `mod`, and a line in `kinds!` of `record/words.rs`.

use super::grade::{GradeScore, GradedAnswer};
use super::{AnswerFormat, LEAST_EVENTS, OTHER_ORDER, Probe};
use crate::record::words::{ProbeKind, kinds};
use crate::session::ground_truth::{Fact, KeyValue, Revision, TouchedFile};
use crate::units::ContentHash;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

mod act;
mod artifact;
mod binding;
mod constraint;
mod continuation;
mod decision;
mod decoy;
mod error;
mod indirect;
mod last_request;
mod numeric;
mod obsolete;
mod open;
mod open_handle;
mod order;
mod prelude;
mod recall;
mod rejected_path;
mod two_step;
mod unanswerable;
mod update;

/// A fact as its kind sees it.
pub trait Specified {
    /// The question of a probe of its kind, and how it is graded.
    fn spec(&self) -> Spec<'_>;
}

/// Makes [`Specified::spec`] of the list of kinds.
macro_rules! specified {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $file:ident($($field:ident),*);)*) => {
        impl Specified for Fact {
            fn spec(&self) -> Spec<'_> {
                match self {
                    $(Self::$kind { $($field,)* .. } => $file::spec($($field),*),)*
                }
            }
        }
    };
}

kinds!(specified);

/// The reference answer where nothing was ever said.
pub const NEVER_SAID: &str =
    "The conversation does not say. Only an answer that says so is correct.";

/// Grades an answer; `None` if only a judge can decide.
type Grade<'a> = Box<dyn Fn(&GradedAnswer<'_>) -> Option<GradeScore> + 'a>;

/// One fact as its probes see it: parts, questions, answers and grader.
pub struct Spec<'a> {
    pub(crate) kind: ProbeKind,
    pub(crate) format: AnswerFormat,
    /// Everything that answers, or once did, in the order in which survival searches it.
    pub(crate) parts: Vec<SpecPart<'a>>,
    /// Files that an answer may list or leave out.
    pub(super) optional: &'a [TouchedFile],
    pub(crate) answers: AnswerSet,
    /// The reference answer that a judge is shown; without one it is what holds, a part on each line.
    pub(crate) reference: Option<Cow<'a, str>>,
    /// The unit of a count.
    unit: &'a str,
    /// None stands for the fact's own question alone.
    asked: Vec<ProbeQuestion>,
    /// The values by which an answer is recognised as this item's.
    pub(super) values: Vec<Cow<'a, str>>,
    /// Values that were said beside this one and answer another question.
    pub(crate) others: Vec<&'a str>,
    /// Rules for an answer; without them every answer goes to a judge.
    pub(super) grade: Option<Grade<'a>>,
}

/// Which parts answer, and so from when on the probe can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerSet {
    /// The items that hold, after the first of them appeared.
    Current,
    /// The newest.
    Newest,
    /// All together, once all of the evidence was said.
    Together,
    /// Tool uses that were started and have not ended.
    Open,
    /// The items of a plan that are left; every version of the plan holds all of them.
    Planned,
    /// Those said so far, in their order.
    Ordered,
    /// Nothing that was ever said.
    Nothing,
}

/// A question, put to the reader in a prompt of its own.
pub(crate) enum ProbeQuestion {
    /// The fact's own, with this ending.
    Own(String),
    Other(String),
}

/// One thing that answers, and may be in a prompt or not: a value, a rule, one path of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpecPart<'a> {
    pub(crate) text: &'a str,
    /// Words beside the text that bind it; of a rule its topic.
    pub(crate) key: &'a str,
    pub(crate) search: SearchBy,
    /// The message that says it, where it names one of its own.
    pub(crate) since: Option<usize>,
    /// The message from which on it does not answer any more.
    pub(crate) until: Option<usize>,
    /// It only ends the value before it, see [`Revision::unasked`].
    pub(crate) unasked: bool,
}

/// How a part is searched for, and whether its position matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchBy {
    /// A word bound by its key.
    Value,
    /// The same; the whole order of events matters.
    Event,
    /// The same; of several versions the last one counts.
    Version,
    /// A sentence of the user's; their order matters.
    Request,
    /// A path.
    Path,
    /// A sentence that may be paraphrased.
    Rule,
    /// An item of a plan, open or done.
    Item,
}

impl<'a> SpecPart<'a> {
    fn new(search: SearchBy, key: &'a str, text: &'a str) -> Self {
        Self { text, key, search, since: None, until: None, unasked: false }
    }

    fn value(key: &'a str, text: &'a str) -> Self {
        Self::new(SearchBy::Value, key, text)
    }

    fn values(pairs: &'a [KeyValue]) -> Vec<Self> {
        pairs.iter().map(|pair| Self::value(&pair.key, &pair.value)).collect()
    }

    fn revisions(search: SearchBy, key: &'a str, revisions: &'a [Revision]) -> Vec<Self> {
        let parts = revisions.iter().map(|revision| Self {
            since: Some(revision.message),
            unasked: revision.unasked,
            ..Self::new(search, key, &revision.value)
        });
        parts.collect()
    }

    /// Whether it answers before the message of this index.
    pub(crate) fn is_current(&self, before: usize) -> bool {
        self.since.is_none_or(|since| since < before)
            && self.until.is_none_or(|until| until >= before)
    }
}

/// The fact's own question, and another.
fn own_and(other: &str) -> [ProbeQuestion; 2] {
    [ProbeQuestion::Own(String::new()), ProbeQuestion::Other(other.to_owned())]
}

/// These two in an order that is drawn by what they are about, so that no place says which is which.
fn drawn<T>(about: &str, mut two: [T; 2]) -> [T; 2] {
    let digit = ContentHash::of(about.as_bytes()).hex(1);
    if digit.as_str() < "8" {
        two.reverse();
    }
    two
}

/// The answers to two questions that were asked in a drawn order, the first one's first.
fn two_answers<'a>(about: &str, answer: &'a str) -> Option<(&'a str, &'a str)> {
    let (first, second) = answer.split_once(OTHER_ORDER)?;
    let [first, second] = drawn(about, [first, second]);
    Some((first, second))
}

impl<'a> Spec<'a> {
    /// A value that was said, graded as exactly that value: each kind changes what differs.
    fn new(kind: ProbeKind, format: AnswerFormat, parts: Vec<SpecPart<'a>>) -> Self {
        let asked = parts.iter().filter(|part| !part.unasked && format.is_told_apart());
        Self {
            kind,
            format,
            optional: &[],
            answers: AnswerSet::Current,
            reference: None,
            unit: "",
            asked: Vec::new(),
            values: asked.map(|part| part.text.into()).collect(),
            others: Vec::new(),
            grade: Some(Box::new(|answer| answer.one_of(&answer.current))),
            parts,
        }
    }

    /// The texts that answer before the message of this index: of a list what is on it then, of a
    /// revised value all versions so far, oldest first.
    pub fn current(&self, before: usize) -> Vec<&'a str> {
        self.parts.iter().filter(|part| part.is_current(before)).map(|part| part.text).collect()
    }

    /// Indices of the parts that hold before the message of this index: of a revised value the newest.
    pub(super) fn holding(&self, before: usize) -> Vec<usize> {
        let mut holding: Vec<usize> = (0..self.parts.len()).collect();
        holding.retain(|at| self.parts[*at].is_current(before));
        if self.answers == AnswerSet::Newest {
            holding.drain(..holding.len().saturating_sub(1));
        }
        holding
    }

    /// The files that an answer may list or leave out before the message of this index.
    pub fn optional(&self, before: usize) -> Vec<&'a str> {
        let listed = self.optional.iter().filter(|file| file.is_listed(before));
        listed.map(|file| file.path.as_str()).collect()
    }

    /// The answer as it is before the message of this index, in words for a judge or a reader of reports.
    pub fn in_words(&self, before: usize) -> String {
        let mut words = if let Some(text) = &self.reference {
            text.clone().into_owned()
        } else {
            let holding = self.holding(before).into_iter();
            let texts: Vec<&str> = holding.map(|at| self.parts[at].text).collect();
            texts.join("\n")
        };
        if !self.unit.is_empty() {
            let _ = write!(words, " {}", self.unit);
        }
        let optional = self.optional(before).join(", ");
        if !optional.is_empty() {
            let _ = write!(words, "\n(These may be listed or left out: {optional})");
        }
        words
    }

    fn questions(&self, question: &str) -> Vec<String> {
        let own = question.trim();
        if self.asked.is_empty() {
            return vec![own.to_owned()];
        }
        let asked = self.asked.iter().map(|question| match question {
            ProbeQuestion::Own(ending) => format!("{own}{ending}"),
            ProbeQuestion::Other(other) => other.clone(),
        });
        asked.collect()
    }

    /// See [`Probe::evidence_before`].
    fn evidence_before(&self, mut evidence: Vec<usize>, message: usize) -> Vec<usize> {
        evidence.retain(|at| *at < message);
        match self.answers {
            AnswerSet::Newest => {
                let said = self.parts.iter().filter_map(|part| part.since);
                said.rev().find(|at| *at < message).into_iter().collect()
            }
            AnswerSet::Planned => evidence.split_off(evidence.len().saturating_sub(1)),
            AnswerSet::Open => {
                let open = self.parts.iter().filter(|part| part.is_current(message));
                let started: BTreeSet<usize> = open.filter_map(|part| part.since).collect();
                started.into_iter().collect()
            }
            // A message says nothing any more if none of the parts that it names still answers.
            AnswerSet::Current | AnswerSet::Together | AnswerSet::Ordered | AnswerSet::Nothing => {
                evidence.retain(|at| {
                    let mut named = self.parts.iter().filter(|part| part.since == Some(*at));
                    named.clone().next().is_none() || named.any(|part| part.is_current(message))
                });
                evidence
            }
        }
    }

    /// See [`Probe::is_answerable`].
    fn is_answerable(&self, question: &str, evidence: &[usize], message: usize) -> bool {
        let (current, others): (Vec<&SpecPart<'_>>, Vec<&SpecPart<'_>>) =
            self.parts.iter().partition(|part| part.is_current(message));
        match self.answers {
            AnswerSet::Nothing => true,
            AnswerSet::Together => evidence.last().is_some_and(|at| *at < message),
            AnswerSet::Open => !current.is_empty(),
            AnswerSet::Ordered => {
                current.len() >= LEAST_EVENTS
                    && !others.iter().any(|event| question.contains(event.text))
            }
            AnswerSet::Newest => current.last().is_some_and(|newest| !newest.unasked),
            AnswerSet::Current | AnswerSet::Planned => {
                evidence.first().is_some_and(|at| *at < message) && !current.is_empty()
            }
        }
    }
}

impl ProbeKind {
    /// Whether nothing that answers was ever said: right is to say so.
    pub fn is_never_said(self) -> bool {
        matches!(self, Self::Decoy | Self::Unanswerable)
    }

    /// Whether the answer is searched for in prompts, so that it can survive. Of open questions only the
    /// evidence can be found; it is in no share of planted items.
    pub fn is_searched(self) -> bool {
        !self.is_never_said() && self != Self::Open
    }
}

/// A planted fact as the probe that asks for it.
pub trait ProbeExt {
    /// The kind of the fact that is asked for.
    fn kind(&self) -> ProbeKind;

    /// The questions that are put to a reader, each in a prompt of its own: one, or two. Two ask the
    /// same in both orders, or of a protected and a free object, or of an instruction taken back and
    /// one in force. Their answers are kept with [`OTHER_ORDER`](super::OTHER_ORDER) between them, and
    /// count as right only if both are.
    fn questions(&self) -> Vec<String>;

    /// The form in which the answer is wanted.
    fn answer_format(&self) -> AnswerFormat;

    /// The messages that hold the answer as it was before the message of this index. Of a key that
    /// was revised only the newest value answers.
    fn evidence_before(&self, message: usize) -> Vec<usize>;

    /// Whether the full history before the message of this index holds the answer.
    ///
    /// A fact that was used is asked before its first use. An order needs [`LEAST_EVENTS`] events, and no event that the question names may be still to
    /// come; a revised value needs a newest version that does more than end the one before it.
    fn is_answerable(&self, message: usize) -> bool;
}

impl ProbeExt for Probe {
    fn kind(&self) -> ProbeKind {
        self.fact.spec().kind
    }

    fn questions(&self) -> Vec<String> {
        self.fact.spec().questions(&self.question)
    }

    fn answer_format(&self) -> AnswerFormat {
        self.fact.spec().format
    }

    fn evidence_before(&self, message: usize) -> Vec<usize> {
        let evidence = self.evidence.clone();
        self.fact.spec().evidence_before(evidence, message)
    }

    fn is_answerable(&self, message: usize) -> bool {
        self.until.is_none_or(|until| until >= message)
            && (self.fact.spec()).is_answerable(&self.question, &self.evidence, message)
    }
}

#[cfg(test)]
mod tests {
    use super::prelude::*;
    use super::*;
    use crate::probe::grade::GradingRules;
    use crate::session::ground_truth::Importance;

    /// A kind that is in no table: the newest word of a chorus, asked for in either case.
    fn chorus(words: &[Revision]) -> Spec<'_> {
        Spec {
            answers: AnswerSet::Newest,
            unit: "!",
            asked: own_and("And aloud?").into(),
            grade: Some(Box::new(|answer| {
                let newest = answer.current.last()?;
                let is_right = answer.text.eq_ignore_ascii_case(newest);
                Some(if is_right { RIGHT } else { wrong(Outcome::Stale) })
            })),
            ..Spec::new(
                ProbeKind::Recall,
                AnswerFormat::Value,
                SpecPart::revisions(SearchBy::Version, "chorus", words),
            )
        }
    }

    #[test]
    fn a_kind_is_its_spec() {
        let words = [Revision::new("la", 1), Revision::new("di", 3)];
        let spec = chorus(&words);
        assert_eq!(spec.questions("Which? "), ["Which?", "And aloud?"]);
        assert_eq!(spec.in_words(2), "la !");
        assert_eq!(spec.values, ["la", "di"]);
        assert!(!spec.is_answerable("", &[1, 3], 1));
        assert!(spec.is_answerable("", &[1, 3], 2));
        assert_eq!(spec.evidence_before(vec![1, 3], 9), [3]);
        let probe = Probe {
            id: "chorus".to_owned(),
            fact: Fact::Unanswerable,
            question: "Which?".to_owned(),
            evidence: vec![1, 3],
            until: None,
            importance: Importance::Normal,
        };
        let rules = GradingRules::new(&[]);
        for (before, text, expected) in
            [(2, "LA", RIGHT), (9, "la", wrong(Outcome::Stale)), (9, "Di", RIGHT)]
        {
            let answer = GradedAnswer::new(&rules, &probe, &spec, before, text);
            assert_eq!(spec.grade.as_ref().unwrap()(&answer), Some(expected), "{text}");
        }
    }

    #[test]
    fn names_and_kinds_agree() {
        for (at, kind) in ProbeKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            let name = serde_json::to_value(kind).unwrap();
            assert_eq!(name, kind.name());
        }
    }
}
