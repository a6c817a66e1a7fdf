//! Folders that are one session: some products keep a session in many files.
//!
//! A [`Folder`] is told by the names of what stands in it. Its files are read by those names only,
//! never by a path that a recording holds, and links to other folders are not followed.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::ImportError;
use super::documents::{Documents, MAX_FILE};
use super::lines::session_id;
use super::outline::{Cut, Cutter, Format, Marks};

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

/// Reads the files of one session, which together may be as large as a file that is read whole.
#[derive(Debug)]
pub struct SessionFiles {
    hasher: Sha256,
    left: u64,
    /// What was read, in bytes as the files have them.
    size: u64,
    cutting: Option<Cutting>,
}

/// Files whose long texts are cut.
#[derive(Debug)]
struct Cutting {
    format: &'static Format,
    cut: Cut,
    marks: Marks,
    paths: Vec<PathBuf>,
}

impl SessionFiles {
    /// Files that are read whole, and none is yet.
    pub(super) fn whole() -> Self {
        Self {
            hasher: Sha256::new(),
            left: MAX_FILE,
            size: 0,
            cutting: None,
        }
    }

    /// Files that are read without their long texts.
    pub(super) fn cut(format: &'static Format, cut: Cut) -> Self {
        Self {
            cutting: Some(Cutting {
                format,
                cut,
                marks: Marks::default(),
                paths: Vec::new(),
            }),
            ..Self::whole()
        }
    }

    /// Reads one file.
    pub(super) fn read<'p>(&mut self, path: &'p Path) -> Result<Documents<'p>, ImportError> {
        let io = |source| ImportError::Io {
            path: path.to_owned(),
            source,
        };
        let documents = if let Some(cutting) = &mut self.cutting {
            let open = |at| {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(at))?;
                Ok(Box::new(file) as Box<dyn Read>)
            };
            let marks = std::mem::take(&mut cutting.marks);
            let mut cutter = Cutter::new(&open, cutting.format, cutting.cut, marks).map_err(io)?;
            let read = Documents::read_up_to(self.left, path, &mut cutter);
            let id = session_id(path, cutter.whole.clone());
            self.size += cutter.scanned();
            cutting.marks = cutter.into_marks();
            cutting.paths.push(path.to_owned());
            cutting.marks.file = cutting.paths.len();
            let mut documents = read?;
            documents.id = id;
            documents
        } else {
            let file = File::open(path).map_err(io)?;
            Documents::read_up_to(self.left, path, &mut BufReader::new(file))?
        };
        self.left = self.left.saturating_sub(documents.length);
        self.hasher.update(documents.id.as_bytes());
        Ok(documents)
    }

    /// What was read of a file is no longer held.
    pub(super) fn let_go(&mut self, documents: &Documents<'_>) {
        self.left = self.left.saturating_add(documents.length);
    }

    /// A name that the product gave, and 6 hex digits of all that was read for it: the id of the
    /// session. What is read then is another one's.
    pub(super) fn named(&mut self, name: &str) -> String {
        self.left = MAX_FILE;
        session_id(Path::new(name), std::mem::take(&mut self.hasher))
    }

    /// The folder's name and 6 hex digits of all that was read: the id of the session.
    pub(super) fn session_id(&self, folder: &Folder) -> String {
        session_id(&folder.path, self.hasher.clone())
    }

    /// The files that were read, the rests of their long texts, and their size together.
    pub(super) fn into_marks(self) -> (Vec<PathBuf>, Marks, u64) {
        let (paths, marks) = match self.cutting {
            Some(cutting) => (cutting.paths, cutting.marks),
            None => (Vec::new(), Marks::default()),
        };
        (paths, marks, self.size)
    }
}
