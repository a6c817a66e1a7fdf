//! An `.eval` archive: a zip file of the evaluation's header and its samples.
//!
//! An archive may unpack to far more than it is. Read at once, all its samples together may be as
//! large as a file that is read whole, whatever its directory says. Read sample by sample, each is
//! unpacked into a file that is put aside, and together they may be so many times the archive.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::{Inspect, Log, ZIP};
use crate::session::import::assemble::{add_counts, count};
use crate::session::import::documents::{Documents, MAX_FILE};
use crate::session::import::each::{OneByOne, Part};
use crate::session::import::lines::session_id;
use crate::session::import::outline::{self, AllThere, Cut, Cutter, Format, Marks, Rests};
use crate::session::import::{ImportError, Recording};

/// Files that say which model ran, by name.
const HEADERS: &[&str] = &["header.json", "_journal/start.json"];

/// How many times its size an archive may unpack to, if that is more than a file may have that is
/// read whole. Logs that say the same again at each call shrink to a hundredth.
const MAX_RATIO: u64 = 256;

/// Reads all samples of an archive, and returns the id of its first session.
pub(super) fn read(
    path: &Path,
    input: &mut dyn BufRead,
    log: &mut Log,
) -> Result<String, ImportError> {
    let mut bytes = Vec::new();
    let read = input.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|source| ImportError::Io {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(ImportError::TooLarge {
            path: path.to_owned(),
            limit: MAX_FILE,
        });
    }
    let mut hasher = Sha256::new();
    hasher.update(&bytes);
    let id = session_id(path, hasher);
    let mut archive = Archive::open(path, Cursor::new(bytes), MAX_FILE, log)?;
    for name in archive.wanted() {
        archive.member(&name, &mut |inside, left, input| {
            let documents = Documents::read_up_to(left, inside, input)?;
            log.documents(&documents, &mut AllThere)?;
            Ok(documents.length)
        })?;
    }
    Ok(id)
}

/// An archive of which some files are read.
struct Archive<R> {
    path: PathBuf,
    zip: ZipArchive<R>,
    header: Option<&'static str>,
    samples: Vec<String>,
    /// How many bytes may still be unpacked.
    left: u64,
}

/// Reads a file of an archive, which may have so many bytes; returns how many there were.
type ReadMember<'r> = dyn FnMut(&Path, u64, &mut dyn BufRead) -> Result<u64, ImportError> + 'r;

impl<R: Read + Seek> Archive<R> {
    fn open(path: &Path, input: R, left: u64, log: &mut Log) -> Result<Self, ImportError> {
        let zip = ZipArchive::new(input).map_err(|error| damaged(path, &error))?;
        let mut names: Vec<String> = Vec::new();
        for name in zip.file_names() {
            match name {
                Ok(name) => names.push(name.into_owned()),
                Err(_) => count(&mut log.source.unknown, "name in the archive"),
            }
        }
        // A log that was not finished has only the beginning of its header.
        let is_there = |name: &&&str| names.iter().any(|it| it == *name);
        let header = HEADERS.iter().find(is_there).copied();
        if header.is_none() {
            count(&mut log.source.warnings, "the archive has no header");
        }
        names.retain(|name| name.starts_with("samples/") && is_json(name));
        Ok(Self {
            path: path.to_owned(),
            zip,
            header,
            samples: names,
            left,
        })
    }

    /// The files that are read, the header first.
    fn wanted(&self) -> Vec<String> {
        let header = self.header.map(str::to_owned);
        let samples = self.samples.iter().cloned();
        header.into_iter().chain(samples).collect()
    }

    fn member(&mut self, name: &str, read: &mut ReadMember<'_>) -> Result<(), ImportError> {
        let path = &self.path;
        let inside = PathBuf::from(format!("{}: {name}", path.display()));
        let damaged = |error: &dyn std::fmt::Display| damaged(path, error);
        let archive = &mut self.zip;
        let at = archive.index_for_name(name);
        let at = at.ok_or_else(|| damaged(&ZipError::FileNotFound))?;
        let method = archive
            .by_index_raw(at)
            .map_err(|error| damaged(&error))?
            .compression();
        let length = if method == CompressionMethod::ZSTD {
            let raw = archive.by_index_raw(at).map_err(|error| damaged(&error))?;
            let unpacked = ruzstd::decoding::StreamingDecoder::new(raw);
            let unpacked = unpacked.map_err(|error| damaged(&error))?;
            read(&inside, self.left, &mut BufReader::new(unpacked))
        } else {
            let file = archive.by_index(at).map_err(|error| damaged(&error))?;
            read(&inside, self.left, &mut BufReader::new(file))
        };
        let length = match length {
            Err(ImportError::Io { source, .. }) => return Err(damaged(&source)),
            length => length?,
        };
        self.left = self.left.saturating_sub(length);
        Ok(())
    }
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> ImportError {
    ImportError::Archive {
        path: path.to_owned(),
        problem: error.to_string(),
    }
}

/// The samples of an archive, one after the other.
pub(in crate::session::import) struct Samples {
    archive: Archive<BufReader<File>>,
    names: std::vec::IntoIter<String>,
    log: Log,
    id: String,
    cut: Cut,
    /// The folder in which samples are put aside while they are read.
    aside: PathBuf,
}

/// Opens an archive that unpacks to so many bytes or more; none if it is none.
pub(in crate::session::import) fn samples(
    path: &Path,
    above: u64,
    cut: Cut,
    aside: &Path,
) -> Result<Option<Samples>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    let mut input = BufReader::new(File::open(path).map_err(io)?);
    if !input.fill_buf().map_err(io)?.starts_with(ZIP) {
        return Ok(None);
    }
    let size = input.get_ref().metadata().map_err(io)?.len();
    let left = MAX_FILE.max(size.saturating_mul(MAX_RATIO));
    let mut log = Log::default();
    let mut archive = Archive::open(path, input, left, &mut log)?;
    let unpacked = archive.zip.decompressed_size().unwrap_or(u128::MAX);
    if unpacked < u128::from(above) {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    let mut whole = File::open(path).map_err(io)?;
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = whole.read(&mut chunk).map_err(io)?;
        if count == 0 {
            break;
        }
        hasher.update(&chunk[..count]);
    }
    if let Some(header) = archive.header {
        archive.member(header, &mut |inside, left, input| {
            let documents = Documents::read_up_to(left.min(MAX_FILE), inside, input)?;
            log.documents(&documents, &mut AllThere)?;
            Ok(documents.length)
        })?;
    }
    Ok(Some(Samples {
        names: std::mem::take(&mut archive.samples).into_iter(),
        archive,
        // What a header that is a sample itself holds is read below with the others.
        log,
        id: session_id(path, hasher),
        cut,
        aside: aside.to_owned(),
    }))
}

impl OneByOne for Samples {
    fn next(&mut self) -> Result<Option<Vec<Part>>, ImportError> {
        let first = std::mem::take(&mut self.log.sessions);
        if !first.is_empty() {
            return Ok(Some(first.into_iter().map(Part::whole).collect()));
        }
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        let Self {
            archive,
            log,
            aside,
            cut,
            ..
        } = self;
        let put_aside = |source| ImportError::Io {
            path: aside.clone(),
            source,
        };
        let mut file = tempfile::tempfile_in(&*aside).map_err(put_aside)?;
        let mut written = Ok(());
        archive.member(&name, &mut |inside, left, input| {
            let mut length = 0;
            while let bytes = input.fill_buf().map_err(|source| ImportError::Io {
                path: inside.to_owned(),
                source,
            })? && !bytes.is_empty()
                && written.is_ok()
            {
                written = file.write_all(bytes);
                let count = bytes.len();
                input.consume(count);
                length += count as u64;
                if length > left {
                    return Err(ImportError::TooLarge {
                        path: inside.to_owned(),
                        limit: left,
                    });
                }
            }
            Ok(length)
        })?;
        written.map_err(put_aside)?;
        let inside = PathBuf::from(format!("{}: {name}", archive.path.display()));
        sample(&inside, file, *cut, log).map(Some)
    }

    fn id(&self) -> Option<String> {
        Some(self.id.clone())
    }

    fn told(&mut self) -> crate::session::Source {
        std::mem::take(&mut self.log.source)
    }
}

/// The sessions of a sample that was unpacked into a file; what it says of the log is added to it.
fn sample(
    inside: &Path,
    mut file: File,
    cut: Cut,
    log: &mut Log,
) -> Result<Vec<Part>, ImportError> {
    let io = |source| ImportError::Io {
        path: inside.to_owned(),
        source,
    };
    let alone = |model: &Option<String>| Log {
        model: model.clone(),
        ..Log::default()
    };
    let mut own = alone(&log.model);
    let mut outlined = None;
    if let Some(format) = Format::of(&Inspect) {
        let open = |at| {
            let (file, at) = (&file, at);
            Ok(Box::new(At { file, at }) as Box<dyn Read>)
        };
        let mut cutter = Cutter::new(&open, format, cut, Marks::default()).map_err(io)?;
        let documents = Documents::read(inside, &mut cutter);
        let read = documents.and_then(|documents| own.documents(&documents, &mut cutter));
        // What is wrong is told where the sample is read at once, if it can be.
        if read.is_ok() && !cutter.is_odd().map_err(io)? {
            outlined = Some(cutter.into_marks());
        }
    }
    if let Some(marks) = outlined {
        let recordings = own.sessions.drain(..).map(Recording::from).collect();
        let again = file.try_clone().map_err(io)?;
        let read = outline::finished(recordings, Rests::of(again, marks), &Inspect);
        if let Some(mut read) = read.map_err(io)?
            && read.recordings.len() < 2
        {
            add_counts(&mut log.source, own.source);
            log.model = own.model;
            let recording = read.recordings.pop();
            let session = recording.map(|it| Part::cut(it, read.rests));
            return Ok(session.into_iter().collect());
        }
    }
    let mut own = alone(&log.model);
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let documents = Documents::read(inside, &mut BufReader::new(file))?;
    own.documents(&documents, &mut AllThere)?;
    add_counts(&mut log.source, own.source);
    log.model = own.model;
    Ok(own.sessions.into_iter().map(Part::whole).collect())
}

/// A reader of a file at a place of its own.
struct At<'f> {
    file: &'f File,
    at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.read(out)?;
        self.at += count as u64;
        Ok(count)
    }
}

fn is_json(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "json")
}
