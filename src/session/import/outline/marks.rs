//! The names of the rests of long texts, while what they are cut from is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::units::ContentHash;

/// The rests so far, of one file or of several that are one session.
#[derive(Debug, Default)]
pub(in crate::session::import) struct Marks {
    known: BTreeMap<ContentHash, usize>,
    /// Where each rest stands.
    pub(super) places: Vec<Place>,
    /// The file that is read, by its place among those of the session.
    pub(in crate::session::import) file: usize,
    /// Where the rests are put where what is read cannot be read again from any place.
    pub(super) aside: Option<Aside>,
    /// Whether what is read has to be read at once after all.
    pub(in crate::session::import) is_odd: bool,
}

/// Where a rest stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) file: usize,
    /// Where it begins, and how long it is, in bytes.
    pub(super) offset: u64,
    pub(super) length: usize,
}

/// A file that rests are put into, which nobody else sees.
#[derive(Debug)]
pub(super) struct Aside {
    file: File,
    length: u64,
}

impl Aside {
    /// The file, with all that was put into it.
    pub(super) fn into_file(self) -> File {
        self.file
    }

    fn put(&mut self, rest: &[u8]) -> io::Result<u64> {
        let offset = self.length;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(rest)?;
        self.length += rest.len() as u64;
        Ok(offset)
    }
}

impl Marks {
    /// Marks whose rests are put into this file, which is empty.
    #[cfg(feature = "sqlite")]
    pub(in crate::session::import) fn aside(file: File) -> Self {
        Self {
            aside: Some(Aside { file, length: 0 }),
            ..Self::default()
        }
    }

    /// The name of the rest of a text of that hash, which begins at `start` in what is read.
    pub(super) fn name(
        &mut self,
        hash: ContentHash,
        start: u64,
        literal: &[u8],
        rest: Range<usize>,
    ) -> io::Result<usize> {
        if let Some(name) = self.known.get(&hash) {
            return Ok(*name);
        }
        let offset = match &mut self.aside {
            Some(aside) => aside.put(&literal[rest.clone()])?,
            None => start + rest.start as u64,
        };
        let name = self.places.len();
        self.places.push(Place {
            file: self.file,
            offset,
            length: rest.len(),
        });
        self.known.insert(hash, name);
        Ok(name)
    }
}
