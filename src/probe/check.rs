//! Compares a file of facts with its session, and names the line of each mistake.

use std::collections::BTreeSet;

use super::ProbeKind;
use super::kind::{Answers, Part, Search, Spec};
use crate::probe::Specified as _;
use crate::session::Session;
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::units::is_valid_id;

/// A mistake in a file of facts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The fact's id; empty where the whole file is meant.
    pub fact: String,
    /// The problem, in words.
    pub problem: String,
}

/// A file of facts as it was read, with the line of each fact.
#[derive(Debug)]
pub struct TruthFile {
    /// The facts.
    pub truth: GroundTruth,
    lines: Vec<usize>,
}

impl TruthFile {
    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Self, Mistake> {
        let truth: GroundTruth = serde_json::from_str(text).map_err(|error| Mistake {
            line: error.line().max(1),
            fact: String::new(),
            problem: error.to_string(),
        })?;
        // Ids are searched for in the order of the facts.
        let mut lines = Vec::with_capacity(truth.facts.len());
        let mut from = 0;
        for fact in &truth.facts {
            let quoted = serde_json::Value::String(fact.id.clone()).to_string();
            let at = text[from..].find(&quoted).map_or(from, |at| from + at);
            lines.push(1 + text[..at].matches('\n').count());
            from = (at + quoted.len()).min(text.len());
            from = text.floor_char_boundary(from);
        }
        Ok(Self { truth, lines })
    }

    /// The line of the fact of this id; 1 where there is none.
    pub fn line_of(&self, id: &str) -> usize {
        let at = self.truth.facts.iter().position(|fact| fact.id == id);
        at.and_then(|at| self.lines.get(at)).copied().unwrap_or(1)
    }

    /// All mistakes that can be seen without a replay, by line.
    pub fn mistakes(&self, session: &Session) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut whole = |problem: String| {
            mistakes.push(Mistake {
                line: 1,
                fact: String::new(),
                problem,
            });
        };
        if self.truth.format != GroundTruth::FORMAT {
            whole(format!("`format` must be `{}`", GroundTruth::FORMAT));
        }
        if self.truth.version > GroundTruth::VERSION {
            whole(format!(
                "version {} is newer than this build, which reads up to {}",
                self.truth.version,
                GroundTruth::VERSION
            ));
        }
        if self.truth.session != session.id() {
            whole(format!(
                "it is about session `{}`, and this one is `{}`",
                self.truth.session,
                session.id()
            ));
            return mistakes;
        }
        let mut ids = BTreeSet::new();
        for (fact, line) in self.truth.facts.iter().zip(&self.lines) {
            let mut problems = of_fact(fact, session);
            if !ids.insert(&fact.id) {
                problems.push("another fact has the same id".to_owned());
            }
            mistakes.extend(problems.into_iter().map(|problem| Mistake {
                line: *line,
                fact: fact.id.clone(),
                problem,
            }));
        }
        mistakes.sort();
        mistakes
    }
}

fn of_fact(fact: &PlantedFact, session: &Session) -> Vec<String> {
    let spec = fact.fact.spec();
    let is_empty = |answer: &str| answer.trim().is_empty();
    let found = [
        (
            !is_valid_id(&fact.id),
            "an id is made of `[a-z0-9][a-z0-9._@-]*`",
        ),
        (is_empty(&fact.question), "the question is empty"),
        (
            !fact.evidence.is_sorted_by(|a, b| a < b),
            "`evidence` is not in ascending order",
        ),
        (
            spec.reference.as_deref().is_some_and(is_empty),
            "the answer is empty",
        ),
    ];
    let found = found.into_iter().filter(|(is_wrong, _)| *is_wrong);
    let mut problems: Vec<String> = found.map(|(_, problem)| problem.to_owned()).collect();
    let messages = session.messages().len();
    let said = said(&spec);
    let evidence = fact.evidence.iter().copied();
    let mut named = evidence
        .chain(fact.until)
        .chain(said.iter().filter_map(|(_, at)| *at));
    if let Some(outside) = named.find(|at| *at >= messages) {
        problems.push(format!(
            "message {outside} is named, and the session has {messages} (counted from 0)"
        ));
        return problems;
    }
    let is_decoy = spec.kind.is_never_said();
    match (is_decoy, fact.evidence.is_empty()) {
        (true, false) => problems.push("a decoy has no evidence: it was never said".to_owned()),
        (false, true) => problems.push("`evidence` names no message".to_owned()),
        (true, true) | (false, false) => {}
    }
    let holds = |at: usize, value: &str| {
        let texts = session.message(at).model_text();
        texts.iter().any(|text| text.contains(value))
    };
    // Events and instructions are named by their question: what is asked is their order, or
    // whether they hold.
    let is_named = matches!(spec.kind, ProbeKind::Order | ProbeKind::Obsolete);
    for (value, at) in said {
        if value.trim().is_empty() {
            problems.push("a value is empty".to_owned());
            continue;
        }
        if !is_named && fact.question.contains(value) {
            problems.push(format!("the question gives away `{value}`"));
        }
        problems.extend(match at {
            _ if is_decoy => (0..messages)
                .any(|at| holds(at, value))
                .then(|| format!("`{value}` stands in the session: no decoy")),
            Some(at) => {
                (!holds(at, value)).then(|| format!("message {at} does not hold `{value}`"))
            }
            None => {
                let is_there = fact.evidence.iter().any(|at| holds(*at, value));
                (!is_there).then(|| format!("no message of `evidence` holds `{value}`"))
            }
        });
    }
    problems
}

/// The texts that answer, each with the message that says it, if it names one of its own. Tools
/// write paths in ways of their own, a reason may be paraphrased, and a value that only ends the one
/// before it need not be anywhere: they are left out.
fn said<'a>(spec: &Spec<'a>) -> Vec<(&'a str, Option<usize>)> {
    let mut said = Vec::new();
    let searched = |part: &&Part<'_>| part.search != Search::Path && !part.unasked;
    for part in spec.parts.iter().filter(searched) {
        said.push((part.text, part.since));
        if spec.answers == Answers::Open && part.until.is_some() {
            said.push((part.text, part.until));
        }
    }
    if spec.kind == ProbeKind::Decision {
        said.truncate(1);
    }
    said
}

/// The known answers of a fact, values or paths of files, and whether each holds at the end of its asking; none where nothing was
/// ever said.
pub fn known(fact: &PlantedFact) -> Vec<(String, bool)> {
    let spec = fact.fact.spec();
    if spec.kind.is_never_said() {
        return Vec::new();
    }
    if let (Some(answer), true) = (&spec.reference, spec.parts.is_empty()) {
        return vec![(answer.clone().into_owned(), true)];
    }
    let end = fact.until.unwrap_or(usize::MAX);
    let is_revised = spec.answers == Answers::Newest;
    let last = spec.parts.len().saturating_sub(1);
    let parts = spec
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| !part.unasked);
    let known = parts.map(|(at, part)| {
        let holds = part.until.is_none_or(|until| until >= end) && (!is_revised || at == last);
        (part.text.to_owned(), holds)
    });
    let mut known: Vec<(String, bool)> = known.collect();
    match spec.kind {
        ProbeKind::Artifact | ProbeKind::OpenHandle => known.retain(|(_, holds)| *holds),
        ProbeKind::Decision => known.truncate(1),
        _ => {}
    }
    known
}

#[cfg(test)]
mod tests;
