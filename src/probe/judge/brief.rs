//! The brief that a judge gets of an item, beside the answer.

use std::fmt::Write as _;

use serde::Serialize;

use super::{NEVER_SAID, neutralised};
use crate::probe::kind::{AnswerSet, Spec};
use crate::probe::{OTHER_ORDER, Probe};
use crate::probe::{ProbeExt as _, Specified as _};

/// The most values of other items that are shown.
const OTHERS: usize = 8;

/// The most older values that are shown: the newest of them.
const OLDER: usize = 8;

/// A value of another item that is longer than this says little by itself.
const OTHER_CHARS: usize = 120;

/// The brief of an item: it never says who answered, nor from which prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Brief {
    /// The question; of one that is asked in both orders, both with [`OTHER_ORDER`] between them.
    pub question: String,
    /// How the answer was asked for.
    pub form: Option<String>,
    /// The answer, in words.
    pub reference: String,
    /// Answers that were right earlier, oldest first.
    pub older: Vec<String>,
    /// Some values that answer other items of the session.
    pub others: Vec<String>,
}

impl Brief {
    /// A question and its answer, and nothing else.
    pub fn new(question: &str, reference: &str) -> Self {
        Self { question: question.to_owned(), reference: reference.to_owned(), ..Self::default() }
    }

    /// Of a probe as it is asked before the message of this index, in a session with these probes.
    pub fn of(probe: &Probe, probes: &[Probe], before: usize) -> Self {
        let spec = probe.fact.spec();
        let mut earlier = older(&spec, before);
        earlier.drain(..earlier.len().saturating_sub(OLDER));
        Self {
            question: probe.questions().join(OTHER_ORDER),
            form: Some(spec.format.in_words().to_owned()),
            reference: spec.in_words(before),
            older: earlier,
            others: others(probe, probes),
        }
    }

    /// Whether nothing was ever said that answers.
    pub fn is_never_said(&self) -> bool {
        self.reference == NEVER_SAID
    }

    /// As the judge is shown it, the answer to follow.
    pub(super) fn shown(&self) -> String {
        let mut out = String::new();
        for (tag, text) in [
            ("question", &self.question),
            ("form", self.form.as_ref().unwrap_or(&String::new())),
            ("earlier", &self.older.join("\n")),
            ("elsewhere", &self.others.join("\n")),
            ("reference", &self.reference),
        ] {
            if !text.is_empty() {
                let _ = write!(out, "<{tag}>\n{}\n</{tag}>\n\n", neutralised(text));
            }
        }
        out
    }
}

/// Answers that were right earlier and are not any more.
fn older(spec: &Spec<'_>, before: usize) -> Vec<String> {
    let said: Vec<&str> = match spec.answers {
        AnswerSet::Planned | AnswerSet::Open => {
            let parts = spec.parts.iter();
            let said = parts.filter(|part| part.since.is_none_or(|since| since < before));
            let over = said.filter(|part| part.until.is_some_and(|until| until < before));
            over.map(|part| part.text).collect()
        }
        AnswerSet::Newest => {
            let mut versions = spec.current(before);
            let newest = versions.pop();
            versions.retain(|older| Some(*older) != newest);
            versions
        }
        AnswerSet::Current | AnswerSet::Together | AnswerSet::Ordered | AnswerSet::Nothing => {
            Vec::new()
        }
    };
    said.into_iter().map(str::to_owned).collect()
}

/// Values of other items: those said beside this one, those of the same kind, those of the same form.
fn others(probe: &Probe, probes: &[Probe]) -> Vec<String> {
    let spec = probe.fact.spec();
    let mut found: Vec<String> = spec.others.iter().map(|&other| other.to_owned()).collect();
    let all = probes.iter().map(|other| other.fact.spec());
    let same = all.clone().filter(|other| other.kind == spec.kind);
    let alike = all.filter(|other| other.kind != spec.kind && other.format == spec.format);
    for value in same.chain(alike).flat_map(|other| other.values) {
        if found.len() >= OTHERS {
            break;
        }
        if value.chars().count() <= OTHER_CHARS && !found.iter().any(|known| *known == value) {
            found.push(value.into_owned());
        }
    }
    found.retain(|value| {
        !spec.values.iter().any(|own| own == value) && !probe.question.contains(value.as_str())
    });
    found.truncate(OTHERS);
    found
}
