//! `[probes]`: files of facts, which take the place of what is known about a session.

use std::path::{Path, PathBuf};

use crate::settings::{Place, Reader, SettingError};

/// A file of facts, with what named it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeFile {
    /// Where it is.
    pub path: PathBuf,
    /// What named it.
    pub place: Place,
}

/// Reads `[probes]`; `folder` is where relative paths start.
pub(super) fn read(
    reader: Option<Reader<'_>>,
    folder: &Path,
) -> Result<Vec<ProbeFile>, SettingError> {
    let Some(mut reader) = reader else {
        return Ok(Vec::new());
    };
    let place = reader.place().clone();
    let place = reader
        .setting("files")
        .map_or(place, |setting| setting.place.clone());
    let files = reader.texts("files")?.unwrap_or_default();
    reader.finish()?;
    let file = |path: &&str| ProbeFile {
        path: folder.join(path),
        place: place.clone(),
    };
    Ok(files.iter().map(file).collect())
}
