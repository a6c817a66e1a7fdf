//! Compares a file of facts with its session, and names the line of each mistake.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ProbeKind;
use super::kind::{AnswerSet, SearchBy, Spec};
use crate::probe::Specified as _;
use crate::session::Session;
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::units::is_valid_id;

/// A mistake in a file of facts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// The facts that can be read.
    pub truth: GroundTruth,
    lines: Vec<usize>,
    /// The mistakes of facts that cannot be read.
    pub unread: Vec<Mistake>,
}

/// The keys of a file of facts, each fact as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile<'a> {
    format: String,
    version: u32,
    session: String,
    #[serde(borrow)]
    facts: Vec<&'a RawValue>,
}

impl Mistake {
    fn of_file(line: usize, problem: String) -> Self {
        Self { line, fact: String::new(), problem }
    }

    /// The problem of a fact, written on this line, that is not what a fact can be.
    fn of_written(line: usize, raw: &str, error: &serde_json::Error) -> Self {
        let value: Value = serde_json::from_str(raw).unwrap_or_default();
        let fact = value["id"].as_str().unwrap_or_default().to_owned();
        // Of a value the parser says what was expected; of a text it says where.
        let in_words = serde_json::from_value::<PlantedFact>(value).err();
        let problem = in_words.as_ref().unwrap_or(error).to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
        Self { line: line + error.line().max(1) - 1, fact, problem }
    }
}

impl TruthFile {
    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Self, Mistake> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let written: WrittenFile<'_> = serde_json::from_str(text).map_err(|error| {
            let problem = if text.contains(GroundTruth::FORMAT) {
                error.to_string()
            } else {
                "it is not a file of facts, which `proctor sessions facts RECORDING` writes"
                    .to_owned()
            };
            Mistake::of_file(error.line().max(1), problem)
        })?;
        let (mut facts, mut lines, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        for fact in written.facts.into_iter().map(RawValue::get) {
            let begin = fact.as_ptr().addr() - text.as_ptr().addr();
            let line = 1 + text[..begin].matches('\n').count();
            match serde_json::from_str::<PlantedFact>(fact) {
                Ok(read) => {
                    let quoted = Value::from(&*read.id).to_string();
                    let before = fact.split(&quoted).next().unwrap_or_default();
                    lines.push(line + before.matches('\n').count());
                    facts.push(read);
                }
                Err(error) => unread.push(Mistake::of_written(line, fact, &error)),
            }
        }
        let WrittenFile { format, version, session, .. } = written;
        let truth = GroundTruth { format, version, session, facts };
        Ok(Self { truth, lines, unread })
    }

    /// The line of the fact of this id; 1 where there is none.
    pub fn line_of(&self, id: &str) -> usize {
        let at = self.truth.facts.iter().position(|fact| fact.id == id);
        at.and_then(|at| self.lines.get(at)).copied().unwrap_or(1)
    }

    /// All mistakes that can be seen without a replay, by line.
    pub fn mistakes(&self, session: &Session) -> Vec<Mistake> {
        let truth = &self.truth;
        let mut mistakes = self.unread.clone();
        if truth.format != GroundTruth::FORMAT {
            let problem = format!("`format` must be `{}`", GroundTruth::FORMAT);
            mistakes.push(Mistake::of_file(1, problem));
        }
        if truth.version > GroundTruth::VERSION {
            let (version, newest) = (truth.version, GroundTruth::VERSION);
            let problem =
                format!("version {version} is newer than this build, which reads up to {newest}");
            mistakes.push(Mistake::of_file(1, problem));
        }
        if truth.session != session.id() {
            let (named, own) = (&truth.session, session.id());
            let problem = format!("it is about session `{named}`, and this one is `{own}`");
            mistakes.push(Mistake::of_file(1, problem));
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
    let never_said = spec.kind.is_never_said();
    let mut found = Vec::new();
    if !is_valid_id(&fact.id) {
        found.push("an id is made of `[a-z0-9][a-z0-9._@-]*`");
    }
    if is_blank(&fact.question) {
        found.push("the question is empty");
    }
    if !fact.evidence.is_sorted_by(|a, b| a < b) {
        found.push("`evidence` is not in ascending order");
    }
    if spec.reference.as_deref().is_some_and(is_blank) {
        found.push("the answer is empty");
    }
    match (never_said, fact.evidence.is_empty()) {
        (true, false) => found.push("a decoy has no evidence: it was never said"),
        (false, true) => found.push("`evidence` names no message"),
        (true, true) | (false, false) => {}
    }
    let mut problems: Vec<String> = found.into_iter().map(str::to_owned).collect();
    let messages = session.messages().len();
    let answers = said(&spec);
    let asked = fact.evidence.iter().copied().chain(fact.until);
    let mut named = asked.chain(answers.iter().filter_map(|(_, at)| *at));
    if let Some(outside) = named.find(|at| *at >= messages) {
        problems.push(format!(
            "message {outside} is named, and the session has {messages} (counted from 0)"
        ));
        return problems;
    }
    // Events and instructions are named by their question: what is asked is their order, or
    // whether they hold.
    let may_name = matches!(spec.kind, ProbeKind::Order | ProbeKind::Obsolete);
    for (value, at) in answers {
        if is_blank(value) {
            problems.push("a value is empty".to_owned());
            continue;
        }
        if !may_name && fact.question.contains(value) {
            problems.push(format!("the question gives away `{value}`"));
        }
        let mut evidence = fact.evidence.iter();
        match at {
            _ if never_said => {
                if (0..messages).any(|at| holds(session, at, value)) {
                    problems.push(format!("`{value}` stands in the session: no decoy"));
                }
            }
            Some(at) if !holds(session, at, value) => {
                problems.push(format!("message {at} does not hold `{value}`"));
            }
            None if !evidence.any(|at| holds(session, *at, value)) => {
                problems.push(format!("no message of `evidence` holds `{value}`"));
            }
            Some(_) | None => {}
        }
    }
    problems
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn holds(session: &Session, at: usize, value: &str) -> bool {
    session.message(at).model_text().iter().any(|text| text.contains(value))
}

/// The texts that answer, each with the message that says it, if it names one of its own. Tools
/// write paths in ways of their own, a reason may be paraphrased, and a value that only ends the one
/// before it need not be anywhere: they are left out.
fn said<'a>(spec: &Spec<'a>) -> Vec<(&'a str, Option<usize>)> {
    let mut said = Vec::new();
    for part in &spec.parts {
        if part.search == SearchBy::Path || part.unasked {
            continue;
        }
        said.push((part.text, part.since));
        if spec.answers == AnswerSet::Open && part.until.is_some() {
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
    let holding = spec.holding(fact.until.unwrap_or(usize::MAX));
    let mut known = Vec::new();
    for (at, part) in spec.parts.iter().enumerate() {
        if !part.unasked {
            known.push((part.text.to_owned(), holding.contains(&at)));
        }
    }
    match spec.kind {
        ProbeKind::Artifact | ProbeKind::OpenHandle => known.retain(|(_, holds)| *holds),
        ProbeKind::Decision => known.truncate(1),
        _ => {}
    }
    known
}

#[cfg(test)]
mod tests;
