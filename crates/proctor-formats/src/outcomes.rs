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
pub struct TrialOutcome {
    /// The harness's name of the task, as an id.
    pub task: String,
    /// The name or the number of the strategy; without one the outcome is that of the only strategy.
    pub strategy: Option<String>,
    /// The trial, from 0.
    pub trial: u32,
    /// From 0, not solved, to 1, solved; or why there is none: the trial did not run, or no score can be read.
    pub score: Result<f64, String>,
    /// A value beside the score that is none.
    pub unread: Option<String>,
    /// The harness's name of the trial, where it runs several at one base URL.
    pub attempt: Option<String>,
    /// Where it is written: the file, and the place in it.
    pub place: String,
}

impl TrialOutcome {
    /// An outcome of no strategy by name; the file is added where it is read.
    fn new(task: &str, trial: u32, score: Result<f64, String>, place: impl Into<String>) -> Self {
        Self {
            task: task_id(task),
            strategy: None,
            trial,
            score,
            unread: None,
            attempt: None,
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
    /// A file or folder cannot be read.
    #[error(transparent)]
    File(#[from] ImportError),
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
type ReadDocument = fn(Object<'_>) -> Option<Result<Vec<TrialOutcome>, Problem>>;

/// The harnesses that write a JSON document.
static HARNESSES: [ReadDocument; 3] = [harbor::read, swe_bench::read, inspect::read];

/// Reads the outcomes in a file, or in all result files below a folder.
pub fn read(path: &Path) -> Result<Vec<TrialOutcome>, OutcomeError> {
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

/// Refuses a second score for a trial. The scores of a harness's attempts at one base URL become their mean, and the
/// attempts without a score stay as they are; returns how many trials have several attempts.
pub fn merge(outcomes: Vec<TrialOutcome>) -> Result<(Vec<TrialOutcome>, usize), OutcomeError> {
    let mut trials: BTreeMap<(String, Option<String>, u32), Vec<TrialOutcome>> = BTreeMap::new();
    for outcome in outcomes {
        let key = (outcome.task.clone(), outcome.strategy.clone(), outcome.trial);
        trials.entry(key).or_default().push(outcome);
    }
    let mut merged = Vec::new();
    let mut several = 0;
    for mut all in trials.into_values() {
        let attempts: BTreeSet<&String> = all.iter().flat_map(|one| &one.attempt).collect();
        several += usize::from(attempts.len() > 1);
        all.sort_by(|one, other| one.attempt.cmp(&other.attempt));
        let (scored, mut missing): (Vec<TrialOutcome>, Vec<TrialOutcome>) =
            all.into_iter().partition(|one| one.score.is_ok());
        let mut pairs = scored.array_windows();
        let twice = pairs
            .find(|[first, second]| first.attempt.is_none() || first.attempt == second.attempt);
        if let Some([first, second]) = twice {
            return Err(OutcomeError::Twice {
                task: second.task.clone(),
                first: first.to_string(),
                second: second.to_string(),
            });
        }
        missing.dedup_by(|one, other| one.attempt == other.attempt);
        if !scored.is_empty() {
            // A trial that was run again has the score of that time.
            missing.retain(|one| {
                one.attempt.is_some() && scored.iter().all(|other| other.attempt != one.attempt)
            });
        }
        let scores: Vec<f64> = scored.iter().flat_map(|one| one.score.clone()).collect();
        if let Some(first) = scored.into_iter().next() {
            merged.push(TrialOutcome {
                score: Ok(scores.iter().sum::<f64>() / scores.len() as f64),
                ..first
            });
        }
        merged.extend(missing);
    }
    Ok((merged, several))
}

impl fmt::Display for TrialOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.score {
            Ok(score) => write!(f, "{score} in {}", self.place),
            Err(why) => write!(f, "{}: {why}", self.place),
        }
    }
}

/// The files below a folder whose name and depth are picked, in order of their paths. Links are not followed.
fn files(folder: &Path, is_picked: fn(&str, usize) -> bool) -> Result<Vec<PathBuf>, OutcomeError> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((path, depth)) = folders.pop() {
        let folder = Folder::open(&path)?;
        for name in folder.names() {
            let path = folder.child(name);
            let read = path.symlink_metadata();
            let kind = read.map_err(|source| ImportError::Io(path.clone(), source))?;
            if kind.is_dir() && depth < MOST_FOLDERS {
                folders.push((path, depth + 1));
            } else if kind.is_file() && is_picked(name, depth) {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Whether a harness gives such a name to its results, so deep in the folder.
fn is_result(name: &str, depth: usize) -> bool {
    match (name, Path::new(name).extension().and_then(|ending| ending.to_str())) {
        ("result.json" | "report.json" | "outcomes.jsonl", _) | (_, Some("eval")) => true,
        (_, Some("json")) => depth == 0,
        _ => false,
    }
}

/// Reads the outcomes of one file.
fn read_file(path: &Path) -> Result<Vec<TrialOutcome>, OutcomeError> {
    let file = SourceFile::open(path, MAX_FILE)?;
    let read = if file.bytes.starts_with(b"PK") {
        inspect::read_archive(&file)?
    } else {
        let whole = &*file.text().text;
        let document = serde_json::from_str(whole).ok().and_then(Object::read);
        match document.filter(|object| !lines::is_line(object)) {
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
fn read_document(object: &Object<'_>) -> Result<Vec<TrialOutcome>, Problem> {
    HARNESSES.iter().find_map(|read| read(object.clone())).unwrap_or_else(|| Ok(Vec::new()))
}

/// A value as a score: a number, a flag, or `C`orrect, `P`artial, `I`ncorrect or `N`o answer.
fn number(value: &RawValue) -> Option<f64> {
    match value.get() {
        r#""C""# | "true" => Some(1.0),
        r#""P""# => Some(0.5),
        r#""I""# | r#""N""# | "false" => Some(0.0),
        other => other.parse().ok(),
    }
}

/// The longest value that is shown.
const SHOWN: usize = 60;

/// Why a value is no score.
fn no_score(name: &str, value: &RawValue) -> String {
    let shown: String = value.get().chars().take(SHOWN).collect();
    format!("{name:?} is `{}`, which is no score", shown.escape_debug())
}

/// A score; one outside of 0 to 1 is none.
fn score(value: f64) -> Result<f64, String> {
    let inside = (0.0..=1.0).contains(&value);
    inside.then_some(value).ok_or_else(|| format!("a score is from 0 to 1, not {value}"))
}

/// The score that all values of a trial agree on, where there are any, and a value that is none.
type Agreed = (Option<Result<f64, String>>, Option<String>);

/// The only score of a trial that has several by name.
fn only(values: &[(String, &RawValue)], place: &str) -> Result<Agreed, Problem> {
    let scores = values.iter().map(|(name, value)| (name, value, number(value)));
    let mut unread = None;
    let mut found: Option<(&String, f64)> = None;
    for (name, value, score) in scores {
        match (score, found) {
            (None, _) => unread = unread.or_else(|| Some(no_score(name, value))),
            (Some(score), None) => found = Some((name, score)),
            (Some(second), Some((first, score))) if second.to_bits() != score.to_bits() => {
                let names = format!("{first:?} is {score}, and {name:?} {second}");
                return Err((place.to_owned(), format!("two scores for one trial: {names}")));
            }
            (Some(_), Some(_)) => {}
        }
    }
    let Some((_, value)) = found else {
        return Ok((unread.map(Err), None));
    };
    let score = score(value).map_err(|why| (place.to_owned(), why))?;
    Ok((Some(Ok(score)), unread))
}

#[cfg(test)]
mod tests;
