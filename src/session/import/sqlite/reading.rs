//! Opens a database, and reads rows whatever stands in them.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use sha2::{Digest, Sha256};

use crate::session::import::documents::MAX_FILE;
use crate::session::import::each::{OneByOne, Part};
use crate::session::import::goose::{self, Goose};
use crate::session::import::opencode::{self, Opencode};
use crate::session::import::outline::{self, Cut, Cutter, Format, Marks, Rests};
use crate::session::import::{ImportError, Importer, Recording};
use crate::session::{Session, Source};
use crate::units::to_valid_id;

/// Reads all sessions of the database at `path`.
pub(super) fn load(path: &Path) -> Result<Vec<Session>, ImportError> {
    let mut rows = Rows::open(path)?;
    let mut sessions = Vec::new();
    while let Some(one) = rows.listed.next() {
        sessions.extend(rows.read(&one, &mut Texts::Whole)?);
    }
    if sessions.is_empty() {
        return Err(rows.none());
    }
    Ok(sessions)
}

/// Reads the sessions of the database at `path` one after the other; none if it is smaller.
pub(super) fn each(
    path: &Path,
    above: u64,
    cut: Cut,
    aside: &Path,
) -> Result<Option<Box<dyn OneByOne>>, ImportError> {
    if path.metadata().is_ok_and(|it| it.len() < above) {
        return Ok(None);
    }
    Ok(Some(Box::new(Each {
        rows: Rows::open(path)?,
        cut,
        aside: aside.to_owned(),
        is_read: false,
    })))
}

/// The sessions of a database, one after the other.
struct Each {
    rows: Rows,
    cut: Cut,
    aside: PathBuf,
    is_read: bool,
}

impl OneByOne for Each {
    fn next(&mut self) -> Result<Option<Vec<Part>>, ImportError> {
        let Some(one) = self.rows.listed.next() else {
            return if self.is_read {
                Ok(None)
            } else {
                Err(self.rows.none())
            };
        };
        let io = |source| ImportError::Io {
            path: self.aside.clone(),
            source,
        };
        let importer = self.rows.product.importer();
        if let Some(format) = Format::of(importer) {
            let marks = Marks::aside(tempfile::tempfile_in(&self.aside).map_err(io)?);
            let cut = self.cut;
            let mut texts = Texts::Cut { format, cut, marks };
            let session = self.rows.read(&one, &mut texts)?;
            if let Texts::Cut { marks, .. } = texts
                && !marks.is_odd
            {
                let recordings = session.map(Recording::from).into_iter().collect();
                let rests = Rests::new(Vec::new(), marks);
                let read = outline::finished(recordings, rests, importer);
                if let Some(mut read) = read.map_err(io)? {
                    let recording = read.recordings.pop();
                    let part = recording.map(|it| Part::cut(it, read.rests));
                    self.is_read |= part.is_some();
                    return Ok(Some(part.into_iter().collect()));
                }
            }
        }
        let session = self.rows.read(&one, &mut Texts::Whole)?;
        self.is_read |= session.is_some();
        Ok(Some(session.map(Part::whole).into_iter().collect()))
    }

    fn id(&self) -> Option<String> {
        None
    }

    fn told(&mut self) -> Source {
        Source::default()
    }
}

/// The sessions that a database lists, not read yet.
struct Rows {
    database: Database,
    product: Product,
    listed: std::vec::IntoIter<Listed>,
}

/// Whose database it is.
#[derive(Debug, Clone, Copy)]
enum Product {
    Opencode,
    Goose,
}

impl Product {
    fn importer(self) -> &'static dyn Importer {
        match self {
            Self::Opencode => &Opencode,
            Self::Goose => &Goose,
        }
    }
}

/// A session as a database lists it.
pub(in crate::session::import) struct Listed {
    /// The product's name for it.
    pub(in crate::session::import) id: Arc<str>,
    /// Whether a tool started it.
    pub(in crate::session::import) is_child: bool,
    /// The model it was given, where that is listed.
    pub(in crate::session::import) model: Option<String>,
}

impl Rows {
    fn open(path: &Path) -> Result<Self, ImportError> {
        let database = Database::open(path)?;
        let (product, listed) = if database.has(&["session", "message", "part"]) {
            (Product::Opencode, opencode::database::list(&database)?)
        } else if database.has(&["sessions", "messages"]) {
            (Product::Goose, goose::database::list(&database)?)
        } else {
            return Err(ImportError::UnknownFormat {
                path: path.to_owned(),
            });
        };
        let listed = listed.into_iter();
        Ok(Self {
            database,
            product,
            listed,
        })
    }

    fn read(&self, one: &Listed, texts: &mut Texts) -> Result<Option<Session>, ImportError> {
        match self.product {
            Product::Opencode => opencode::database::read(&self.database, one, texts),
            Product::Goose => goose::database::read(&self.database, one, texts),
        }
    }

    fn none(&self) -> ImportError {
        ImportError::NoConversation {
            path: self.database.path.clone(),
        }
    }
}

/// How the texts in rows of JSON are read.
pub(in crate::session::import) enum Texts {
    /// As they are.
    Whole,
    /// Without the rests of long ones.
    Cut {
        format: &'static Format,
        cut: Cut,
        marks: Marks,
    },
}

impl Texts {
    /// The JSON of a row; a row that cannot be cut is as it is.
    pub(in crate::session::import) fn of(&mut self, row: Arc<str>) -> Arc<str> {
        let Self::Cut { format, cut, marks } = self else {
            return row;
        };
        let open = |_| Ok(Box::new(row.as_bytes()) as Box<dyn Read>);
        let mut text = String::new();
        let done =
            Cutter::new(&open, format, *cut, std::mem::take(marks)).and_then(|mut cutter| {
                let read = cutter.read_to_string(&mut text);
                *marks = cutter.into_marks();
                read
            });
        marks.is_odd |= done.is_err();
        text.into()
    }
}

/// A database, open for reading.
pub(in crate::session::import) struct Database {
    path: PathBuf,
    connection: Connection,
    tables: BTreeSet<String>,
    /// Whether there is a log beside the database that cannot be read with it.
    pub(in crate::session::import) has_log: bool,
}

impl Database {
    fn open(path: &Path) -> Result<Self, ImportError> {
        let failed = |error| damaged(path, &error);
        let mut beside = path.as_os_str().to_owned();
        beside.push("-wal");
        let has_log = std::fs::metadata(&beside).is_ok_and(|log| log.len() > 0);
        let whole = has_log
            .then(|| with_log(path, Path::new(&beside)))
            .flatten();
        let has_log = has_log && whole.is_none();
        let connection = if let Some(bytes) = whole {
            let mut connection = Connection::open_in_memory().map_err(failed)?;
            let read = connection.deserialize_read_exact("main", &bytes[..], bytes.len(), true);
            read.map_err(failed)?;
            connection
        } else {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(address(path), flags).map_err(failed)?
        };
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;")
            .map_err(failed)?;
        let mut database = Self {
            path: path.to_owned(),
            connection,
            tables: BTreeSet::new(),
            has_log,
        };
        // Views and virtual tables could run anything.
        let plain = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
        let mut tables = BTreeSet::new();
        database.rows(plain, &[], |row| {
            tables.extend(text(row, 0).map(|name| name.to_string()));
        })?;
        database.tables = tables;
        Ok(database)
    }

    /// The file's path.
    pub(in crate::session::import) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are tables of all these names.
    pub(in crate::session::import) fn has(&self, tables: &[&str]) -> bool {
        tables.iter().all(|name| self.tables.contains(*name))
    }

    /// The name of a column, or `NULL` where the table has none: columns came with versions.
    pub(in crate::session::import) fn column<'a>(
        &self,
        table: &str,
        column: &'a str,
    ) -> Result<&'a str, ImportError> {
        let mut found = false;
        let query = "SELECT name FROM pragma_table_info(?1)";
        self.rows(query, &[table], |row| {
            found |= text(row, 0).as_deref() == Some(column);
        })?;
        Ok(if found { column } else { "NULL" })
    }

    /// Calls `read` for each row of the query's answer.
    pub(in crate::session::import) fn rows(
        &self,
        query: &str,
        parameters: &[&str],
        mut read: impl FnMut(&Row<'_>),
    ) -> Result<(), ImportError> {
        let failed = |error| damaged(&self.path, &error);
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let parameters = rusqlite::params_from_iter(parameters);
        let mut rows = statement.query(parameters).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            read(row);
        }
        Ok(())
    }
}

/// The database with its log, where both are of a size that is held in memory and the log is whole.
fn with_log(path: &Path, log: &Path) -> Option<Vec<u8>> {
    let is_small = |path: &Path| path.metadata().is_ok_and(|it| it.len() <= MAX_FILE);
    if !is_small(path) || !is_small(log) {
        return None;
    }
    let read = |path: &Path| std::fs::read(path).ok();
    super::log::merged(read(path)?, &read(log)?)
}

fn damaged(path: &Path, error: &rusqlite::Error) -> ImportError {
    ImportError::DamagedDatabase {
        path: path.to_owned(),
        problem: error.to_string(),
    }
}

/// The file as an address that says how it is opened.
fn address(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for character in path.to_string_lossy().chars() {
        match character {
            '%' => address.push_str("%25"),
            '?' => address.push_str("%3f"),
            '#' => address.push_str("%23"),
            _ => address.push(character),
        }
    }
    address + "?mode=ro&immutable=1"
}

/// The text of a column, whatever type it has; bytes that are no UTF-8 are replaced.
pub(in crate::session::import) fn text(row: &Row<'_>, column: usize) -> Option<Arc<str>> {
    match row.get_ref(column).ok()? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(number.to_string().into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into())
        }
    }
}

/// The number in a column; none if it is negative or no number.
pub(in crate::session::import) fn number(row: &Row<'_>, column: usize) -> Option<u64> {
    text(row, column)?.parse().ok()
}

/// A session's name: the product's, and 6 hex digits of what was read.
pub(in crate::session::import) fn session_id(id: &str, hasher: Sha256) -> String {
    let hash = hasher.finalize();
    let [a, b, c] = [hash[0], hash[1], hash[2]];
    format!("{}-{a:02x}{b:02x}{c:02x}", to_valid_id(id, 60))
}
