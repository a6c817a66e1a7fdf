//! How tasks ended, as the harnesses that ran them say.
//!
//! A harness is one file here and one line in `HARNESSES`. Keys that say nothing of the outcome are ignored. A task
//! without a score is missing, which is not a score of 0. All names and sizes are a stranger's: names become ids, and
//! are escaped in errors.

use std::fmt;

use super::error::ImportError;
use super::prelude::*;

mod harbor;
mod inspect;
mod lines;
mod prompts;
mod swe_bench;

pub use prompts::prompts;

/// So deep may result files be in a folder.
const MOST_FOLDERS: usize = 8;

/// The last trial.
const LAST_TRIAL: u32 = 9_999;

/// The longest id of a task.
const LONGEST_TASK: usize = 80;

/// The outcome of one trial of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The harness's name of the task, as an id.
    pub task: String,
    /// The name or the number of the strategy; without one the outcome is that of every strategy.
    pub strategy: Option<String>,
    /// The trial, from 0.
    pub trial: u32,
    /// From 0, not solved, to 1, solved.
    pub score: f64,
    /// Where it is written: the file, and the place in it.
    pub place: String,
}

impl Outcome {
    /// An outcome of any strategy; the file is added where it is read.
    fn new(task: &str, trial: u32, score: f64, place: impl Into<String>) -> Self {
        Self {
            task: task_id(task),
            strategy: None,
            trial,
            score,
            place: place.into(),
        }
    }
}

/// The id of a task that a harness calls so.
pub fn task_id(name: &str) -> String {
    to_valid_id(name, LONGEST_TASK)
}

/// Why outcomes cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutcomeError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] ImportError),
    /// A folder cannot be read.
    #[error("cannot read `{}`", .0.display())]
    Folder(PathBuf, #[source] std::io::Error),
    /// A file has the form of a harness, and a value in it does not.
    #[error("{0}: {1}")]
    Value(String, String),
    /// No harness writes such a file, or it has no outcome yet.
    #[error("`{}` has no outcome of a task", .0.display())]
    None(PathBuf),
    /// A trial has two scores.
    #[error("task `{task}` has two scores for one trial: {first}, and {second}")]
    Twice {
        /// The task.
        task: String,
        /// The first score, with its place.
        first: String,
        /// The second score, with its place.
        second: String,
    },
}

/// A problem with one value: the place in the file, and the reason.
type Problem = (String, String);

/// Reads a JSON document; `None` where it is not of the harness.
type ReadDocument = fn(Object<'_>) -> Option<Result<Vec<Outcome>, Problem>>;

/// The harnesses that write a JSON document.
static HARNESSES: [ReadDocument; 3] = [harbor::read, swe_bench::read, inspect::read];

/// Reads the outcomes in a file, or in all result files below a folder.
pub fn read(path: &Path) -> Result<Vec<Outcome>, OutcomeError> {
    let mut outcomes = Vec::new();
    if path.is_dir() {
        for file in files(path, is_result)? {
            match read_file(&file) {
                Ok(found) => outcomes.extend(found),
                Err(OutcomeError::None(_)) => {}
                Err(error) => return Err(error),
            }
        }
    } else {
        outcomes = read_file(path)?;
    }
    if outcomes.is_empty() {
        return Err(OutcomeError::None(path.to_owned()));
    }
    Ok(outcomes)
}

/// Refuses a second score for a trial. An outcome of every strategy is one of each.
pub fn check_unique(outcomes: &[Outcome]) -> Result<(), OutcomeError> {
    let mut trials: BTreeMap<(&str, u32), BTreeMap<Option<&str>, &Outcome>> = BTreeMap::new();
    for second in outcomes {
        let strategy = second.strategy.as_deref();
        let trials = trials.entry((&second.task, second.trial)).or_default();
        let first = match strategy {
            Some(_) => trials.get(&strategy).or_else(|| trials.get(&None)),
            None => trials.values().next(),
        };
        if let Some(first) = first {
            return Err(OutcomeError::Twice {
                task: second.task.clone(),
                first: first.to_string(),
                second: second.to_string(),
            });
        }
        trials.insert(strategy, second);
    }
    Ok(())
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.score, self.place)
    }
}

/// The files below a folder whose name and depth are picked, in order of their paths. Links are not followed.
fn files(folder: &Path, is_picked: fn(&str, usize) -> bool) -> Result<Vec<PathBuf>, OutcomeError> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).and_then(Iterator::collect);
        let mut entries: Vec<std::fs::DirEntry> =
            entries.map_err(|source| OutcomeError::Folder(folder.clone(), source))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type();
            let kind = kind.map_err(|source| OutcomeError::Folder(folder.clone(), source))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() && depth < MOST_FOLDERS {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && is_picked(&name, depth) {
                files.push(entry.path());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Whether a harness gives such a name to its results, so deep in the folder.
fn is_result(name: &str, depth: usize) -> bool {
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    match (name, ending) {
        ("result.json" | "report.json" | "outcomes.jsonl", _) | (_, Some("eval")) => true,
        (_, Some("json")) => depth == 0,
        _ => false,
    }
}

/// Reads the outcomes of one file.
fn read_file(path: &Path) -> Result<Vec<Outcome>, OutcomeError> {
    let file = SourceFile::open(path, MAX_FILE)?;
    let read = if file.bytes.starts_with(b"PK") {
        inspect::read_archive(&file)?
    } else {
        let text = file.text();
        let whole = &*text.text;
        let document = serde_json::from_str(whole).ok().and_then(Object::read);
        let document = document.filter(|object| !lines::is_line(object));
        match document {
            Some(object) => read_document(&object),
            None => lines::read(whole),
        }
    };
    let name = format!("`{}`", path.display().to_string().escape_debug());
    let mut outcomes =
        read.map_err(|(place, why)| OutcomeError::Value(format!("{name}{place}"), why))?;
    for outcome in &mut outcomes {
        outcome.place.insert_str(0, &name);
        if outcome.trial > LAST_TRIAL {
            let why = format!("a trial is a number from 0 to {LAST_TRIAL}");
            return Err(OutcomeError::Value(outcome.place.clone(), why));
        }
    }
    if outcomes.is_empty() {
        return Err(OutcomeError::None(path.to_owned()));
    }
    Ok(outcomes)
}

/// Reads a document of the first harness that it is of.
fn read_document(object: &Object<'_>) -> Result<Vec<Outcome>, Problem> {
    let found = HARNESSES.iter().find_map(|read| read(object.clone()));
    found.unwrap_or_else(|| Ok(Vec::new()))
}

/// A score; one outside of 0 to 1 is none.
fn score(value: f64, place: &str) -> Result<f64, Problem> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        let why = format!("a score is from 0 to 1, not {value}");
        Err((place.to_owned(), why))
    }
}

/// The only score of a trial that has several by name.
fn only(scores: &[(String, f64)], place: &str) -> Result<Option<f64>, Problem> {
    let mut scores = scores.iter();
    let Some((name, first)) = scores.next() else {
        return Ok(None);
    };
    match scores.find(|(_, other)| other.to_bits() != first.to_bits()) {
        Some((other, second)) => {
            let names = format!("{name:?} is {first}, and {other:?} {second}");
            Err((
                place.to_owned(),
                format!("two scores for one trial: {names}"),
            ))
        }
        None => score(*first, place).map(Some),
    }
}

#[cfg(test)]
mod tests;
