//! Reads recordings whose sessions are read one after the other: archives and databases.
//!
//! One session is held at a time, without its long texts, which stand in a file that is put aside
//! (see [`outline`](super::outline)); and the first, for what the recording says as a whole is told
//! with it.

use std::collections::VecDeque;
use std::path::Path;

use super::outline::{Cut, Rests};
use super::{ImportError, Importer, Recording, inspect, sqlite};
use crate::session::Source;
use crate::session::import::assemble::add_counts;

/// A session, and where the rests of its long texts stand if it was read without them.
#[derive(Debug)]
pub struct Part {
    /// The session with what is known about it.
    pub recording: Recording,
    /// The rests of its long texts.
    pub rests: Option<Rests>,
}

impl Part {
    pub(super) fn whole(session: crate::session::Session) -> Self {
        let recording = Recording::from(session);
        let rests = None;
        Self { recording, rests }
    }

    pub(super) fn cut(recording: Recording, rests: Rests) -> Self {
        let rests = Some(rests);
        Self { recording, rests }
    }
}

/// What reads a recording part by part.
pub(super) trait OneByOne {
    /// The sessions of the next part, which may be none; nothing at the end.
    fn next(&mut self) -> Result<Option<Vec<Part>>, ImportError>;

    /// The id of the recording, by which its sessions are named; none if they have names.
    fn id(&self) -> Option<String>;

    /// What the recording says as a whole, when all of it was read.
    fn told(&mut self) -> Source;
}

/// The sessions of a recording, one after the other; the first one comes last.
pub struct Each {
    parts: Box<dyn OneByOne>,
    ready: VecDeque<Part>,
    first: Option<Part>,
    /// How many sessions there were so far.
    count: usize,
    is_done: bool,
}

/// Reads an archive that unpacks to so many bytes or more, or a database of that size; none if the
/// file is neither. What is put aside is put into the folder `aside`, where nobody else sees it.
pub fn each(
    path: &Path,
    importer: Option<&dyn Importer>,
    above: u64,
    cut: Cut,
    aside: &Path,
) -> Result<Option<Each>, ImportError> {
    if path.is_dir() {
        return Ok(None);
    }
    let (head, _) = super::open(path)?;
    let told = || super::claimant(&head).map(|it| it as &dyn Importer);
    let parts: Option<Box<dyn OneByOne>> = if sqlite::is_database(&head) {
        sqlite::each(path, above, cut, aside)?
    } else if inspect::is_archive(&head) && importer.or_else(told).is_some_and(inspect::is_it) {
        let samples = inspect::samples(path, above, cut, aside)?;
        samples.map(|samples| Box::new(samples) as Box<dyn OneByOne>)
    } else {
        None
    };
    Ok(parts.map(|parts| Each {
        parts,
        ready: VecDeque::new(),
        first: None,
        count: 0,
        is_done: false,
    }))
}

impl Each {
    /// The next session, the first one last.
    pub fn next_session(&mut self) -> Result<Option<Part>, ImportError> {
        while !self.is_done {
            let Some(mut part) = self.ready.pop_front() else {
                match self.parts.next()? {
                    Some(parts) => self.ready.extend(parts),
                    None => self.is_done = true,
                }
                continue;
            };
            self.count += 1;
            let Some(id) = self.parts.id() else {
                return Ok(Some(part));
            };
            if self.first.is_none() {
                self.first = Some(part);
                continue;
            }
            part.recording.rename(format!("{id}-{}", self.count));
            return Ok(Some(part));
        }
        let Some(mut first) = self.first.take() else {
            return Ok(None);
        };
        if let Some(id) = self.parts.id() {
            let is_alone = self.count == 1;
            first
                .recording
                .rename(if is_alone { id } else { format!("{id}-1") });
        }
        add_counts(&mut first.recording.session.parts.source, self.parts.told());
        Ok(Some(first))
    }

    /// How many sessions were found, once all were read.
    pub fn count(&self) -> usize {
        self.count
    }
}
