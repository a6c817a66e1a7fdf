//! An `.eval` archive: a zip file of the evaluation's header and its samples.
//!
//! An archive may unpack to far more than it is: what is read of it may be as large as a file that
//! is read whole, whatever its directory says.

use std::io::Cursor;

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::MAX_FILE;
use crate::prelude::*;

/// Files that say which model ran, by name.
const HEADERS: &[&str] = &["header.json", "_journal/start.json"];

/// Reads the header and all samples of an archive; `read` reads one file.
pub(crate) fn read(
    file: &SourceFile,
    source: &mut Source,
    mut read: impl FnMut(&SourceText, &mut Source) -> Result<()>,
) -> Result<()> {
    let path = &*file.path;
    let mut archive =
        ZipArchive::new(Cursor::new(&file.bytes[..])).map_err(|error| damaged(path, &error))?;
    let mut names: Vec<String> = Vec::new();
    for name in archive.file_names() {
        match name {
            Ok(name) => names.push(name.into_owned()),
            Err(_) => source.not_understood("name in the archive"),
        }
    }
    // A log that was not finished has only the beginning of its header.
    let header = HEADERS.iter().find(|header: &&&str| names.iter().any(|name| name == **header));
    if header.is_none() {
        source.warn("the archive has no header");
    }
    names.retain(|name| name.starts_with("samples/") && is_json(name));
    let mut left = MAX_FILE;
    let (mut whole, mut first) = (0, None);
    for name in header.map(|one| (*one).to_owned()).into_iter().chain(names) {
        let inside = PathBuf::from(format!("{}: {name}", path.display()));
        let documents = match member(path, &mut archive, &name, &inside, left) {
            Err(ImportError::Io(_, source)) => return Err(damaged(path, &source)),
            documents => documents?,
        };
        left = left.saturating_sub(documents.length);
        match read(&documents.text(), source) {
            // One sample is no reason to refuse the others.
            Err(
                problem @ (ImportError::Json(..)
                | ImportError::TornLine(..)
                | ImportError::Empty(..)
                | ImportError::Nesting(..)),
            ) => {
                source.warn(&format!("`{name}` cannot be read and is left out"));
                first.get_or_insert(problem);
            }
            done => {
                done?;
                whole += usize::from(name.starts_with("samples/"));
            }
        }
    }
    first.filter(|_| whole == 0).map_or(Ok(()), Err)
}

/// Reads a file of an archive, which may have at most `left` bytes.
fn member(
    path: &Path,
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
    inside: &Path,
    left: u64,
) -> Result<SourceFile> {
    let at = archive.index_for_name(name).ok_or_else(|| damaged(path, &ZipError::FileNotFound))?;
    let raw = archive.by_index_raw(at).map_err(|error| damaged(path, &error))?;
    if raw.size() > left {
        return Err(ImportError::TooLarge(inside.to_owned(), left));
    }
    if raw.compression() == CompressionMethod::ZSTD {
        let mut unpacked =
            ruzstd::decoding::StreamingDecoder::new(raw).map_err(|error| damaged(path, &error))?;
        return SourceFile::read(inside, &mut unpacked, left);
    }
    drop(raw);
    let mut file = archive.by_index(at).map_err(|error| damaged(path, &error))?;
    SourceFile::read(inside, &mut file, left)
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> ImportError {
    ImportError::Archive(path.to_owned(), error.to_string())
}

fn is_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|one| one == "json")
}
