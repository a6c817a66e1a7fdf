//! What a recording holds, session by session: a long one is read piece by piece where it can be.

use std::collections::VecDeque;
use std::path::Path;

use crate::session::Session;
use crate::session::import::each::{Each, each};
use crate::session::import::glance::size;
use crate::session::import::listed::listed;
use crate::session::import::outline::{Cut, Outline, Rests, outline};
use crate::session::import::rows::{Rows, rows};
use crate::session::import::{self, ImportError, Importer, Recording};

/// A file of so many bytes is long.
const LONG: u64 = 16 << 20;

/// A recording that is being read.
pub(super) enum Read {
    /// All its sessions, of which the long texts may be elsewhere.
    AtOnce(VecDeque<Recording>, Option<Rests>),
    /// One session after the other.
    Rows(Option<Box<Rows>>),
    /// The same, each with its long texts elsewhere.
    Each(Box<Each>, Option<Rests>),
}

impl Read {
    /// Opens a recording of that format, or of the one that its first bytes tell. What does not fit
    /// into memory is put into the folder `aside`.
    pub(super) fn open(
        path: &Path,
        format: Option<&'static dyn Importer>,
        aside: &Path,
    ) -> Result<Self, ImportError> {
        let named = format.map(|it| it as &dyn Importer);
        if let Some(each) = each(path, named, LONG, Cut::default(), aside)? {
            return Ok(Self::Each(Box::new(each), None));
        }
        if size(path) >= LONG {
            if let Some(rows) = rows(path, format)? {
                return Ok(Self::Rows(Some(Box::new(rows))));
            }
            if let Some(recordings) = listed(path, named)? {
                return Ok(Self::AtOnce(recordings.into(), None));
            }
            if let Some(Outline { recordings, rests }) = outline(path, named, Cut::default())? {
                return Ok(Self::AtOnce(recordings.into(), Some(rests)));
            }
        }
        let recordings = import::load_with_truth(path, named)?;
        Ok(Self::AtOnce(recordings.into(), None))
    }

    /// The sessions that are known already.
    pub(super) fn known(&self) -> impl Iterator<Item = &Session> {
        let known = match self {
            Self::AtOnce(recordings, _) => Some(recordings),
            Self::Rows(_) | Self::Each(..) => None,
        };
        known.into_iter().flatten().map(|it| &it.session)
    }

    /// The next session with what is known about it.
    pub(super) fn next(&mut self) -> Result<Option<Recording>, ImportError> {
        let rows = match self {
            Self::AtOnce(recordings, _) => return Ok(recordings.pop_front()),
            Self::Rows(rows) => rows,
            Self::Each(each, rests) => {
                let part = each.next_session()?;
                return Ok(part.map(|part| {
                    *rests = part.rests;
                    part.recording
                }));
            }
        };
        match rows.as_mut().and_then(|rows| rows.next_session()) {
            Some(recording) => Ok(Some(recording)),
            None => rows.take().map(|rows| rows.finish()).transpose(),
        }
    }

    /// Where the long texts are, if the sessions do not hold them.
    pub(super) fn rests(&mut self) -> Option<&mut Rests> {
        match self {
            Self::AtOnce(_, rests) | Self::Each(_, rests) => rests.as_mut(),
            Self::Rows(_) => None,
        }
    }
}
