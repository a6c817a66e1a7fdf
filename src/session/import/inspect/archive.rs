//! An `.eval` archive: a zip file of the evaluation's header and its samples.
//!
//! An archive may unpack to far more than it is. All its samples together may be as large as a
//! file that is read whole, whatever its directory says.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::Log;
use crate::session::import::ImportError;
use crate::session::import::assemble::count;
use crate::session::import::documents::{Documents, MAX_FILE};
use crate::session::import::lines::session_id;

/// Files that say which model ran, by name.
const HEADERS: &[&str] = &["header.json", "_journal/start.json"];

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
    let damaged = |error: &dyn std::fmt::Display| ImportError::Archive {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let mut names: Vec<String> = Vec::new();
    for name in archive.file_names() {
        match name {
            Ok(name) => names.push(name.into_owned()),
            Err(_) => count(&mut log.source.unknown, "name in the archive"),
        }
    }
    // A log that was not finished has only the beginning of its header.
    let header = HEADERS
        .iter()
        .find(|name| names.iter().any(|it| it == *name));
    let is_sample = |name: &&String| name.starts_with("samples/") && is_json(name);
    let samples = names.iter().filter(is_sample).map(String::as_str);
    let wanted: Vec<&str> = header.copied().into_iter().chain(samples).collect();
    let mut left = MAX_FILE;
    for name in wanted {
        let inside = PathBuf::from(format!("{}: {name}", path.display()));
        let at = archive.index_for_name(name);
        let at = at.ok_or_else(|| damaged(&ZipError::FileNotFound))?;
        let method = archive
            .by_index_raw(at)
            .map_err(|error| damaged(&error))?
            .compression();
        let documents = if method == CompressionMethod::ZSTD {
            let raw = archive.by_index_raw(at).map_err(|error| damaged(&error))?;
            let unpacked = ruzstd::decoding::StreamingDecoder::new(raw);
            let unpacked = unpacked.map_err(|error| damaged(&error))?;
            Documents::read_up_to(left, &inside, &mut BufReader::new(unpacked))
        } else {
            let file = archive.by_index(at).map_err(|error| damaged(&error))?;
            Documents::read_up_to(left, &inside, &mut BufReader::new(file))
        };
        let documents = match documents {
            Err(ImportError::Io { source, .. }) => return Err(damaged(&source)),
            documents => documents?,
        };
        left = left.saturating_sub(documents.length);
        log.documents(&documents)?;
    }
    if header.is_none() {
        count(&mut log.source.warnings, "the archive has no header");
    }
    Ok(id)
}

fn is_json(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "json")
}
