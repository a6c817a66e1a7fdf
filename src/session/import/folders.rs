//! Folders that are one session: some products keep a session in many files.
//!
//! A [`Folder`] is told by the names of what stands in it. Its files are read by those names only,
//! never by a path that a recording holds, and links to other folders are not followed.

use std::path::{Path, PathBuf};

use super::ImportError;

/// What stands in a folder.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    names: Vec<String>,
}

impl Folder {
    /// Lists the folder at `path`.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let entries = std::fs::read_dir(path)
            .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
            .map_err(|source| ImportError::Io {
                path: path.to_owned(),
                source,
            })?;
        let names = entries.iter().map(std::fs::DirEntry::file_name);
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort_unstable();
        Ok(Self {
            path: path.to_owned(),
            names,
        })
    }

    /// The names in it, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether something of that name stands in it.
    pub fn has(&self, name: &str) -> bool {
        self.names
            .binary_search_by(|own| own.as_str().cmp(name))
            .is_ok()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in it.
    pub fn child(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A folder in it; none if there is no such folder, or only a link to one.
    pub fn folder(&self, name: &str) -> Option<Self> {
        let path = self.child(name);
        let is_folder = self.has(name) && path.symlink_metadata().is_ok_and(|it| it.is_dir());
        is_folder.then(|| Self::open(&path).ok())?
    }
}
