//! Reads a long file of many conversations one conversation at a time: memory follows the largest.
//!
//! Benchmarks and evaluations write a list of runs that have nothing to do with each other. A first
//! pass finds where each stands; then each is read alone, as a file that has all that stands around
//! the list and only this one in it. What the file says as a whole is told with its first session,
//! and so the first comes last.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::assemble::add_counts;
use super::conversations::Object;
use super::documents::mended;
use super::lines::{MAX_NESTING, nesting, session_id};
use super::{ImportError, Importer, Recording};
use crate::session::Source;
use scan::Found;
pub(super) use scan::Scan;

mod scan;

/// A format whose conversations can be read so.
#[derive(Debug)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// The key of the list, where it does not stand alone.
    list: Option<&'static str>,
    /// What is a conversation in a list.
    listed: Of,
    /// What is one where each is a value of its own.
    alone: Of,
    /// Keys of requests and answers, which are joined to sessions and so are no conversations alone.
    joined: &'static [&'static str],
}

/// What a conversation is.
#[derive(Debug, Clone, Copy)]
enum Of {
    Nothing,
    Anything,
    /// An object with this key.
    Object(&'static str),
    /// A list of messages.
    List,
    /// Either.
    ObjectOrList(&'static str),
}

impl Format {
    const fn new(name: &'static str, listed: Of, alone: Of) -> Self {
        Self {
            name,
            list: None,
            listed,
            alone,
            joined: &[],
        }
    }

    const fn in_list(name: &'static str, list: &'static str) -> Self {
        Self {
            list: Some(list),
            ..Self::new(name, Of::Anything, Of::Nothing)
        }
    }

    const fn of_api(name: &'static str) -> Self {
        const JOINED: &[&str] = &[
            "custom_id",
            "request",
            "request_body",
            "response",
            "response_body",
        ];
        let key = "messages";
        Self {
            joined: JOINED,
            ..Self::new(name, Of::ObjectOrList(key), Of::Object(key))
        }
    }

    /// Whether this is valid JSON, and a conversation by itself.
    fn is_conversation(&self, bytes: Vec<u8>, is_listed: bool) -> bool {
        let text = mended(bytes, &mut |_| {});
        // What stands around it is a few levels more.
        let is_flat = nesting(text.as_bytes()) + 2 <= MAX_NESTING;
        let Ok(raw) = serde_json::from_str::<&RawValue>(&text) else {
            return false;
        };
        let of = if is_listed { self.listed } else { self.alone };
        let object = Object::read(raw);
        let has = |key: &str| object.as_ref().is_some_and(|it| it.has(key));
        let is_list = raw.get().starts_with('[');
        let is_one = match of {
            Of::Nothing => false,
            Of::Anything => !is_list,
            Of::Object(key) => has(key),
            Of::List => is_list,
            Of::ObjectOrList(key) => is_list || has(key),
        };
        is_one && is_flat && !self.joined.iter().any(|key| has(key))
    }
}

/// The formats whose conversations can be read so.
pub static FORMATS: &[Format] = &[
    Format::new(
        "locomo",
        Of::Object("conversation"),
        Of::Object("conversation"),
    ),
    Format::new(
        "longmemeval",
        Of::Object("haystack_sessions"),
        Of::Object("haystack_sessions"),
    ),
    Format::new("tau-bench", Of::Object("traj"), Of::Object("traj")),
    Format::in_list("tau2", "simulations"),
    Format::in_list("inspect", "samples"),
    Format::new("openhands", Of::Nothing, Of::Object("history")),
    Format::new("langchain", Of::List, Of::Object("messages")),
    Format::of_api("anthropic"),
    Format::of_api("openai-chat"),
];

/// The conversations of a file.
pub struct Rows {
    path: PathBuf,
    importer: &'static dyn Importer,
    file: File,
    found: Found,
    id: String,
    /// The next conversation, by its place in what was found.
    next: usize,
    /// How many sessions were given or are held.
    sessions: usize,
    first: Option<First>,
    /// The second, which tells that there are several.
    second: Option<Recording>,
    /// Conversations that hold no session alone; they are read with the first.
    barren: Vec<usize>,
    mended: Source,
}

/// The first session, and where it was found.
struct First {
    at: usize,
    recording: Recording,
}

/// Finds the conversations of a file of one of the [`FORMATS`]; none if it is of another, or holds
/// less than two, or anything else.
pub fn rows(
    path: &Path,
    importer: Option<&'static dyn Importer>,
) -> Result<Option<Rows>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    if path.is_dir() {
        return Ok(None);
    }
    let (head, _) = super::open(path)?;
    let Some(importer) = importer.or_else(|| super::claimant(&head)) else {
        return Ok(None);
    };
    let Some(format) = FORMATS.iter().find(|it| it.name == importer.format()) else {
        return Ok(None);
    };
    let mut file = File::open(path).map_err(io)?;
    let mut input = File::open(path).map_err(io)?;
    let found = Scan::new(format.list).read(&mut input, &mut |place, is_listed| {
        let mut bytes = Vec::new();
        read_into(&mut bytes, &mut file, place)?;
        Ok(format.is_conversation(bytes, is_listed))
    });
    let Some(found) = found.map_err(io)? else {
        return Ok(None);
    };
    Ok(Some(Rows {
        path: path.to_owned(),
        importer,
        file,
        id: session_id(path, found.hasher.clone()),
        found,
        next: 0,
        sessions: 0,
        first: None,
        second: None,
        barren: Vec::new(),
        mended: Source::default(),
    }))
}

impl Rows {
    /// The first session, which may be changed; what the file says as a whole is told with it when
    /// all others were read. None if there is none.
    pub fn first(&mut self) -> Option<&mut Recording> {
        if self.first.is_none() {
            self.first = self.find();
            let second = self.find();
            if let (Some(first), Some(mut second)) = (&mut self.first, second) {
                first.recording.rename(format!("{}-1", self.id));
                second.recording.rename(format!("{}-2", self.id));
                self.second = Some(second.recording);
            } else if let Some(first) = &mut self.first {
                first.recording.rename(self.id.clone());
            }
        }
        self.first.as_mut().map(|first| &mut first.recording)
    }

    /// The next session with what is known about it, but for the first.
    pub fn next_session(&mut self) -> Option<Recording> {
        self.first()?;
        self.second.take().or_else(|| {
            let mut recording = self.find()?.recording;
            recording.rename(format!("{}-{}", self.id, self.sessions));
            Some(recording)
        })
    }

    /// The next conversation that holds a session.
    fn find(&mut self) -> Option<First> {
        while self.next < self.found.places.len() {
            let at = self.next;
            self.next += 1;
            // What holds none, or cannot be read alone, is told with the first.
            let recordings = self.read(&[at], None).unwrap_or_default();
            match <[Recording; 1]>::try_from(recordings) {
                Ok([recording]) => {
                    self.sessions += 1;
                    return Some(First { at, recording });
                }
                Err(_) => self.barren.push(at),
            }
        }
        None
    }

    /// The first session, with what the file says as a whole.
    pub fn finish(mut self) -> Result<Recording, ImportError> {
        let first = self.first().is_some();
        let mut together = std::mem::take(&mut self.barren);
        let tail = self.found.tail.take();
        let told = if first && together.is_empty() && tail.is_none() {
            None
        } else {
            together.extend(self.first.as_ref().map(|first| first.at));
            together.sort_unstable();
            Some(self.together(&together, tail)?)
        };
        let none = ImportError::NoConversation {
            path: self.path.clone(),
        };
        let mut recording = self.first.take().ok_or(none)?.recording;
        let source = &mut recording.session.parts.source;
        if let Some(told) = told {
            let mut told = told.session.parts.source;
            for (what, count) in std::mem::take(&mut source.warnings) {
                told.warnings.entry(what).or_insert(count);
            }
            *source = told;
        }
        add_counts(source, self.mended);
        Ok(recording)
    }

    /// The first session, read with all that holds none.
    fn together(
        &mut self,
        places: &[usize],
        tail: Option<Range<u64>>,
    ) -> Result<Recording, ImportError> {
        let none = ImportError::NoConversation {
            path: self.path.clone(),
        };
        let read = match self.read(places, tail) {
            Ok(recordings) => recordings.into_iter().next().ok_or(none),
            Err(problem) => Err(problem),
        };
        read.map_err(|problem| {
            // The file read at once says where.
            let path = &self.path;
            let file = File::open(path).map(BufReader::new);
            let read = file.map(|mut file| self.importer.import_with_truth(path, &mut file));
            match read {
                Ok(Err(told)) => told,
                Ok(Ok(_)) | Err(_) => problem,
            }
        })
    }

    /// Reads a file in which only these conversations stand, and perhaps a last one that was cut.
    fn read(
        &mut self,
        places: &[usize],
        tail: Option<Range<u64>>,
    ) -> Result<Vec<Recording>, ImportError> {
        let io = |source| ImportError::Io {
            path: self.path.clone(),
            source,
        };
        let mut bytes = self.found.before.clone();
        for (number, at) in places.iter().enumerate() {
            if number > 0 {
                bytes.push(self.found.between);
            }
            let place = self.found.places[*at].clone();
            read_into(&mut bytes, &mut self.file, place).map_err(io)?;
        }
        if let Some(tail) = tail {
            bytes.push(b'\n');
            read_into(&mut bytes, &mut self.file, tail).map_err(io)?;
        }
        bytes.extend_from_slice(&self.found.after);
        let warnings = &mut self.mended.warnings;
        let text = mended(bytes, &mut |what| {
            warnings.insert(what.to_owned(), 1);
        });
        let mut input = text.as_bytes();
        self.importer.import_with_truth(&self.path, &mut input)
    }
}

/// Adds what stands at a place of the file.
pub(super) fn read_into(bytes: &mut Vec<u8>, file: &mut File, place: Range<u64>) -> io::Result<()> {
    file.seek(SeekFrom::Start(place.start))?;
    file.take(place.end - place.start).read_to_end(bytes)?;
    Ok(())
}
