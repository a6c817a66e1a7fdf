//! Answers of models, kept: what was paid for once is never asked again.
//!
//! A cassette is a file of JSON lines. An answer is found by a hash of the exact request, the model
//! and which repeat it is; what is kept of the request itself is its shape, enough to say what is
//! different about one that is not found. Failures, refusals and verdicts that cannot be read are
//! never kept: they are asked again.
//!
//! Each answer is written at once, in one piece, so that a process that is killed loses nothing that
//! was answered. Closing sorts the file: the same answers are the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::api::Dialect;
use super::spending::Spending;
use super::{Answered, CallFailure, Model, ModelKind, Purpose, Request, Response, Stop};
use crate::units::{ContentHash, Usage};

mod shape;

use shape::Shape;

/// The value of `format` in a cassette's first line.
pub const FORMAT: &str = "proctor-cassette";

/// Version of the file.
///
/// 1: the first.
pub const VERSION: u32 = 1;

/// What recorded answers are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayMode {
    /// A recorded answer where there is one; else the model is asked, and its answer kept.
    #[default]
    Auto,
    /// Recorded answers only: a request that has none stops the run.
    Strict,
    /// Every request is asked anew, and its answer takes the place of an older one.
    Record,
    /// Nothing is read and nothing kept.
    Off,
}

impl ReplayMode {
    /// All modes, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Strict, Self::Record, Self::Off];

    /// The name used in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Strict => "strict",
            Self::Record => "record",
            Self::Off => "off",
        }
    }
}

/// One recorded answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Hash of the exact request, the model and the repeat: 64 hexadecimal digits.
    pub key: String,
    /// What its answers may be taken for.
    pub kind: ModelKind,
    /// The model that was asked, by the name it was asked under.
    pub model: String,
    /// Whose API the request was written for.
    pub provider: String,
    /// Whose bill it went on.
    pub purpose: Purpose,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The shape of the request.
    pub request: Shape,
    /// What was answered.
    pub answer: KeptAnswer,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptAnswer {
    /// The model that answered, as the provider names it.
    pub model: String,
    /// Why it stopped.
    pub stop: Stop,
    /// What it wrote.
    pub text: String,
    /// What it cost.
    pub usage: Usage,
}

impl Entry {
    fn response(&self) -> Response {
        Response {
            text: self.answer.text.as_str().into(),
            stop: self.answer.stop,
            usage: self.answer.usage,
            model: self.answer.model.as_str().into(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// A cassette, open for a run.
pub struct Cassette {
    path: PathBuf,
    mode: ReplayMode,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    /// Keys that were answered in this run.
    fresh: BTreeSet<String>,
    /// Keys that are being asked: nobody else asks them meanwhile.
    under_way: BTreeSet<String>,
    /// Opened at the first answer that is kept.
    file: Option<File>,
    /// Why nothing can be kept any more.
    failure: Option<String>,
    /// The first request that was wanted and not recorded, in words.
    miss: Option<String>,
    misses: usize,
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassette")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Keeps only verdicts that can be read, and answers that are none of a refusal.
pub type Keeps = fn(&Request, &Response) -> bool;

impl Cassette {
    /// Reads a cassette; one that is not there yet is empty.
    pub fn open(path: &Path, mode: ReplayMode) -> Result<Arc<Self>, CassetteError> {
        let entries = match mode {
            ReplayMode::Off => Vec::new(),
            ReplayMode::Strict if !path.exists() => {
                return Err(CassetteError::Missing {
                    path: path.to_owned(),
                });
            }
            ReplayMode::Auto | ReplayMode::Record | ReplayMode::Strict => read(path)?.entries,
        };
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry));
        Ok(Arc::new(Self {
            path: path.to_owned(),
            mode,
            state: Mutex::new(State {
                entries: entries.collect(),
                ..State::default()
            }),
            answered: Condvar::new(),
        }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is for.
    pub fn mode(&self) -> ReplayMode {
        self.mode
    }

    /// The kind of the answers recorded of a model; nothing where there are none.
    pub fn kind_of(&self, model: &str) -> Option<ModelKind> {
        let state = self.state();
        let mut kinds = state.entries.values().filter(|entry| entry.model == model);
        kinds.next().map(|entry| entry.kind)
    }

    /// How many requests were wanted and not recorded, and the first of them in words.
    pub fn missed(&self) -> Option<(usize, String)> {
        let state = self.state();
        Some((state.misses, state.miss.clone()?))
    }

    /// Why answers could not be kept, if they could not.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Puts the file into its canonical form, if anything was kept in it.
    pub fn close(&self) -> Result<(), CassetteError> {
        let mut state = self.state();
        if state.file.take().is_none() {
            return Ok(());
        }
        write_sorted(&self.path, state.entries.values())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an answer may stand for a second request of the same. The same answer gets the same
    /// verdict, whatever the mode.
    fn is_shared(&self, purpose: Purpose) -> bool {
        self.mode != ReplayMode::Off || purpose == Purpose::Judge
    }

    /// The recorded answer; or the right to ask, which must be given back.
    fn find(&self, key: &str, purpose: Purpose) -> Option<Response> {
        if !self.is_shared(purpose) {
            return None;
        }
        let mut state = self.state();
        loop {
            // What was answered in this very run is not asked again, whatever the mode.
            let counts = self.mode != ReplayMode::Record || state.fresh.contains(key);
            if let Some(entry) = state.entries.get(key).filter(|_| counts) {
                return Some(entry.response());
            }
            if state.under_way.insert(key.to_owned()) {
                return None;
            }
            state = self
                .answered
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives the right to ask back, with what was answered if it is to be kept.
    fn settle(&self, key: &str, entry: Option<Entry>) {
        let mut state = self.state();
        state.under_way.remove(key);
        if let Some(entry) = entry.filter(|entry| self.is_shared(entry.purpose)) {
            if self.mode != ReplayMode::Off
                && let Err(error) = append(&self.path, &mut state, &entry)
            {
                state.failure.get_or_insert(error.to_string());
            }
            state.fresh.insert(entry.key.clone());
            state.entries.insert(entry.key.clone(), entry);
        }
        drop(state);
        self.answered.notify_all();
    }

    fn note_miss(&self, model: &str, repeat: u32, purpose: Purpose, shape: &Shape) {
        let mut state = self.state();
        state.misses += 1;
        if state.miss.is_some() {
            return;
        }
        let same = |entry: &&Entry| entry.model == model && entry.purpose == purpose;
        let nearest = state
            .entries
            .values()
            .filter(same)
            .max_by_key(|entry| (entry.request.likeness(shape), entry.repeat == repeat));
        let path = self.path.display();
        let asked = format!(
            "`{path}` holds no answer of {model} to {}",
            shape.in_words()
        );
        state.miss = Some(match nearest {
            None => format!("{asked}; it holds none of {model} for this purpose"),
            Some(entry) => format!(
                "{asked}\nthe nearest that it holds: {}",
                shape.difference(&entry.request, repeat, entry.repeat)
            ),
        });
    }
}

/// Writes one answer at once. A first line says what the file is.
fn append(path: &Path, state: &mut State, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(&serde_json::to_value(entry)?)?;
    line.push(b'\n');
    if state.file.is_none() {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            file.write_all(head().as_bytes())?;
        } else if !ends_whole(path)? {
            // A line that a crash cut off stays by itself, and is dropped when it is read.
            file.write_all(b"\n")?;
        }
        state.file = Some(file);
    }
    match &mut state.file {
        Some(file) => file.write_all(&line),
        None => Ok(()),
    }
}

fn ends_whole(path: &Path) -> io::Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn head() -> String {
    format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}\n")
}

/// A cassette, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The answers, in the order of the file; of a key that is there twice, the last.
    pub entries: Vec<Entry>,
    /// Lines that are no entry: cut off by a crash.
    pub torn: usize,
}

/// Reads a cassette; one that is not there is empty.
pub fn read(path: &Path) -> Result<Contents, CassetteError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => {
            return Err(CassetteError::Io {
                path: path.to_owned(),
                source,
            });
        }
    };
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut torn = 0;
    for (at, line) in text.lines().enumerate() {
        if at == 0 {
            let head: Option<Head> = serde_json::from_str(line).ok();
            match head {
                Some(head) if head.format == FORMAT && head.version <= VERSION => continue,
                _ => {
                    return Err(CassetteError::NoCassette {
                        path: path.to_owned(),
                    });
                }
            }
        }
        match serde_json::from_str::<Entry>(line) {
            Ok(entry) => {
                entries.insert(entry.key.clone(), entry);
            }
            // Half a line is no JSON; a whole one that is no entry is a mistake.
            Err(error) if error.is_eof() || line.is_empty() => torn += 1,
            Err(source) => {
                return Err(CassetteError::BadLine {
                    path: path.to_owned(),
                    line: at + 1,
                    source,
                });
            }
        }
    }
    Ok(Contents {
        entries: entries.into_values().collect(),
        torn,
    })
}

/// Writes entries in the canonical form.
pub fn write_sorted<'a>(
    path: &Path,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<(), CassetteError> {
    let at = |source| CassetteError::Io {
        path: path.to_owned(),
        source,
    };
    let text = canonical(entries).map_err(|error| at(error.into()))?;
    let beside = path.with_extension("jsonl.new");
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside).map_err(at)?;
    file.write_all(text.as_bytes()).map_err(at)?;
    file.sync_data().map_err(at)?;
    std::fs::rename(&beside, path).map_err(at)
}

/// The canonical form: sorted by model, purpose and key, keys of objects sorted.
pub fn canonical<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<String, serde_json::Error> {
    let mut sorted: Vec<&Entry> = entries.into_iter().collect();
    sorted.sort_by(|a, b| {
        let of = |entry: &Entry| (entry.model.clone(), entry.purpose, entry.key.clone());
        of(a).cmp(&of(b))
    });
    let mut text = head();
    for entry in sorted {
        text.push_str(&sorted_keys(serde_json::to_value(entry)?).to_string());
        text.push('\n');
    }
    Ok(text)
}

fn sorted_keys(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<String, Value> = fields
                .into_iter()
                .map(|(key, value)| (key, sorted_keys(value)))
                .collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted_keys).collect()),
        plain => plain,
    }
}

/// A model whose answers are kept in a cassette.
#[derive(Debug)]
pub struct Taped {
    cassette: Arc<Cassette>,
    dialect: Dialect,
    kind: ModelKind,
    /// Asked where nothing is recorded; without one, recorded answers are all there is.
    model: Option<Arc<dyn Model>>,
    spending: Arc<Spending>,
    keeps: Keeps,
}

impl Taped {
    /// The answers of `model`, which is asked for what the cassette does not hold.
    pub fn new(
        cassette: Arc<Cassette>,
        dialect: Dialect,
        kind: ModelKind,
        model: Option<Arc<dyn Model>>,
        spending: Arc<Spending>,
        keeps: Keeps,
    ) -> Self {
        Self {
            cassette,
            dialect,
            kind,
            model,
            spending,
            keeps,
        }
    }

    /// The key of a request: a hash of its exact bytes, the model, and the repeat.
    pub fn key(dialect: &Dialect, request: &Request, repeat: u32) -> ContentHash {
        let body = dialect.body(request);
        let repeat = repeat.to_le_bytes();
        ContentHash::of_parts([
            dialect.provider.name().as_bytes(),
            dialect.model.as_bytes(),
            body.as_bytes(),
            &repeat[..],
        ])
    }

    fn ask(&self, request: &Request, repeat: u32, key: &str) -> Result<Response, CallFailure> {
        if let Some(recorded) = self.cassette.find(key, request.purpose) {
            return Ok(recorded);
        }
        let is_strict = self.cassette.mode() == ReplayMode::Strict;
        let Some(model) = self.model.as_ref().filter(|_| !is_strict) else {
            let shape = Shape::of(request);
            self.cassette
                .note_miss(&self.dialect.model, repeat, request.purpose, &shape);
            self.cassette.settle(key, None);
            return Err(CallFailure::NotRecorded);
        };
        let answer = model.respond(request);
        let kept = match &answer {
            Ok(response) => {
                self.spending.paid(&self.dialect.model, &response.usage);
                (self.keeps)(request, response).then(|| Entry {
                    key: key.to_owned(),
                    kind: self.kind,
                    model: self.dialect.model.clone(),
                    provider: self.dialect.provider.name().to_owned(),
                    purpose: request.purpose,
                    repeat,
                    request: Shape::of(request),
                    answer: KeptAnswer {
                        model: response.model.to_string(),
                        stop: response.stop,
                        text: response.text.to_string(),
                        usage: response.usage,
                    },
                })
            }
            Err(_) => None,
        };
        self.cassette.settle(key, kept);
        answer
    }
}

impl Model for Taped {
    fn name(&self) -> &str {
        &self.dialect.model
    }

    fn kind(&self) -> ModelKind {
        self.kind
    }

    fn respond(&self, request: &Request) -> Result<Response, CallFailure> {
        self.answer(request, 0).answer
    }

    fn answer(&self, request: &Request, repeat: u32) -> Answered {
        let key = Self::key(&self.dialect, request, repeat);
        Answered {
            answer: self.ask(request, repeat, &key.to_string()),
            key: Some(key),
        }
    }

    fn is_kept(&self, request: &Request, repeat: u32) -> bool {
        let key = Self::key(&self.dialect, request, repeat).to_string();
        let is_auto = self.cassette.mode() == ReplayMode::Auto;
        let is_strict = self.cassette.mode() == ReplayMode::Strict;
        is_strict || (is_auto && self.cassette.state().entries.contains_key(&key))
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// It cannot be read or written.
    #[error("cannot use cassette `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Only recorded answers are wanted, and there are none.
    #[error("there is no cassette `{path}`, and only recorded answers are wanted")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("`{path}` is no cassette of this or an earlier version")]
    NoCassette {
        /// The file.
        path: PathBuf,
    },
    /// A line is no entry.
    #[error("line {line} of cassette `{path}` is no recorded answer")]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

#[cfg(test)]
mod tests;
