//! Folders that are one session: some products keep a session in many files.
//!
//! A [`Folder`] is recognised by the names of its files and folders. Its files are read by those
//! names only, never by a path that a recording holds, and links to other folders are not followed.

use crate::prelude::*;

/// The files of a folder.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    names: Vec<String>,
}

impl Folder {
    /// Lists the folder at `path`.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let all_entries =
            std::fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let entries = all_entries.map_err(|source| ImportError::Io(path.to_owned(), source))?;
        let names = entries.iter().map(std::fs::DirEntry::file_name);
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort_unstable();
        Ok(Self { path: path.to_owned(), names })
    }

    /// The names in it, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it holds something of that name.
    pub fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|own| own.as_str().cmp(name)).is_ok()
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
        let found = self.has(name) && path.symlink_metadata().is_ok_and(|value| value.is_dir());
        found.then(|| Self::open(&path).ok())?
    }
}

/// Reads the files of one session, which together may be as large as a file that is read whole.
#[derive(Debug)]
pub struct SessionFiles {
    hasher: Sha256,
    left: u64,
}

impl SessionFiles {
    /// No file is read yet.
    pub(super) fn new() -> Self {
        Self { hasher: Sha256::new(), left: MAX_FILE }
    }

    /// Reads one file.
    pub(super) fn read(&mut self, path: &Path) -> Result<SourceText> {
        let file = SourceFile::open(path, self.left)?;
        self.left = self.left.saturating_sub(file.length);
        self.hasher.update(file.id.as_bytes());
        Ok(file.text())
    }

    /// The value of one file of many, unless it is empty or cut: a product that is stopped while it writes leaves such
    /// a file, and no other needs it.
    pub(super) fn value(&mut self, path: &Path, source: &mut Source) -> Result<Text> {
        let read = self.read(path).and_then(|file| {
            let value = file.values(source)?.into_iter().next();
            let value: Option<&RawValue> = value.map(|value| value.parse()).transpose()?;
            Ok(value.map(|raw| raw.get().into()))
        });
        match read {
            Err(
                ImportError::Empty(_)
                | ImportError::TornLine(..)
                | ImportError::Json(..)
                | ImportError::Nesting(..),
            ) => {
                source.warn("a file is empty or cut and is left out");
                Ok(None)
            }
            read => read,
        }
    }

    /// A name that the product gave, and 6 hex digits of all that was read for it: the id of the
    /// session. What is read then is another one's.
    pub(super) fn named(&mut self, name: &str) -> String {
        self.left = MAX_FILE;
        session_id(name, std::mem::take(&mut self.hasher))
    }

    /// The folder's name and 6 hex digits of all that was read: the id of the session.
    pub(super) fn session_id(&self, folder: &Folder) -> String {
        let name = folder.path.file_stem().unwrap_or_default();
        session_id(&name.to_string_lossy(), self.hasher.clone())
    }
}
