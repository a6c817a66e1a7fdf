//! Opens a database, and reads rows of any content.

use crate::prelude::*;
use proctor_sessions::files;
use std::cell::Cell;

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use crate::{crush, goose, openclaw, opencode};

/// Reads all sessions of the database at `path`.
pub(crate) fn load(path: &Path) -> Imported {
    let database = Database::open(path)?;
    let messages = database.has(&["sessions", "messages"]);
    let (format, list, read): (_, List, Read) = if database.has(&["session", "message", "part"])
        || database.has(&["session", "session_message"])
    {
        use opencode::database::{list, read};
        ("opencode", list, read)
    } else if database.has(&["transcript_events"]) {
        ("pi", openclaw::list, openclaw::read)
    } else if messages && database.columns("messages", ["parts"])? == ["parts"] {
        ("crush", crush::list, crush::read)
    } else if messages {
        ("goose", goose::database::list, goose::database::read)
    } else {
        let what = "a database without the tables of a known product".to_owned();
        return Err(ImportError::UnknownFormat(path.to_owned(), what));
    };
    let mut sessions = Vec::new();
    for one in list(&database)? {
        sessions.extend(read(&database, &one)?);
    }
    for session in &mut sessions {
        format.clone_into(&mut session.parts_mut().source.format);
    }
    let unread = database.unread();
    let Some(first) = sessions.first_mut() else {
        if unread.is_empty() {
            return Err(ImportError::NoConversation(path.to_owned()));
        }
        let counts = unread.iter().map(|(table, rows)| format!("`{table}` × {rows}"));
        let tables = counts.collect::<Vec<_>>().join(", ");
        return Err(ImportError::UnreadTables(path.to_owned(), tables));
    };
    for (table, rows) in unread {
        let what = format!("row of the table `{table}`, which is not read");
        first.parts_mut().source.skipped.insert(what, rows);
    }
    Ok(sessions)
}

/// The longest row that is read: room for a hundred large images.
const MAX_ROW: usize = 256 << 20;

/// The tables that are read, of any product.
const READ: &str =
    "session sessions message messages part session_message transcript_events usage_ledger";

/// Lists the sessions of a product's database.
type List = fn(&Database) -> Result<Vec<Listed>>;

/// Reads one of them.
type Read = fn(&Database, &Listed) -> Result<Option<Session>>;

/// A session as a database lists it.
pub(crate) struct Listed {
    /// The product's name for it.
    pub(crate) id: Arc<str>,
    /// Whether a tool started it.
    pub(crate) is_child: bool,
    /// The session that started it, where that is listed.
    pub(crate) main: Text,
    /// The model it was given, where that is listed.
    pub(crate) model: Text,
}

/// A database, open for reading.
pub(crate) struct Database {
    path: PathBuf,
    connection: Connection,
    tables: BTreeSet<Arc<str>>,
    /// Whether there is a log beside the database that cannot be read with it.
    has_log: bool,
    /// Bytes that may still be read: a damaged database may hold the same page in many rows.
    left: Cell<u64>,
}

impl Database {
    fn open(path: &Path) -> Result<Self> {
        let failed = |error| damaged(path, &error);
        let mut log_path = path.as_os_str().to_owned();
        log_path.push("-wal");
        let logged = std::fs::metadata(&log_path).is_ok_and(|log| log.len() > 0);
        let whole = logged.then(|| with_log(path, Path::new(&log_path))).flatten();
        let unmerged = logged && whole.is_none();
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
        let protected =
            connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;");
        protected.map_err(failed)?;
        let longest = i32::try_from(MAX_ROW).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest).map_err(failed)?;
        let mut database = Self {
            path: path.to_owned(),
            connection,
            tables: BTreeSet::new(),
            has_log: unmerged,
            left: Cell::new(MAX_FILE),
        };
        // Views and virtual tables could run anything.
        let plain = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
        let tables = database.rows::<1>(plain, &[])?.into_iter();
        database.tables = tables.flatten().flatten().collect();
        Ok(database)
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are tables of all these names.
    pub(crate) fn has(&self, tables: &[&str]) -> bool {
        tables.iter().all(|name| self.tables.contains(*name))
    }

    /// The sessions that a query lists: the name, the session that started it, whether one did, and the model.
    pub(crate) fn listed(&self, query: &str) -> Result<Vec<Listed>> {
        let rows = self.rows(query, &[])?.into_iter();
        let sessions = rows.filter_map(|[id, main, is_child, model]| {
            Some(Listed { id: id?, is_child: is_child.as_deref() == Some("1"), main, model })
        });
        Ok(sessions.collect())
    }

    /// The beginning of a session. A log beside the database that cannot be read with it is counted.
    pub(crate) fn assembler(&self, one: &Listed) -> Assembler {
        let mut assembler = Assembler::default();
        assembler.is_side = one.is_child;
        assembler.header.model.clone_from(&one.model);
        assembler.source.main = one.main.as_deref().map(session_name);
        if self.has_log {
            let what =
                "what the product has not yet moved from its log into the database is left out";
            assembler.warn(what);
        }
        assembler
    }

    /// The names of columns, or `NULL` for those that the table has not: columns came with versions.
    pub(crate) fn columns<'a, const N: usize>(
        &self,
        table: &str,
        columns: [&'a str; N],
    ) -> Result<[&'a str; N]> {
        let names = self.rows("SELECT name FROM pragma_table_info(?1)", &[table])?;
        Ok(columns.map(|column| {
            let known = names.iter().any(|[name]| name.as_deref() == Some(column));
            if known { column } else { "NULL" }
        }))
    }

    /// The tables that nothing reads and whose rows hold JSON, with the number of their rows.
    fn unread(&self) -> Vec<(Arc<str>, u64)> {
        let rows = self.tables.iter().filter(|table| !is_one_of(READ, table)).filter_map(|table| {
            let name = table.replace('"', "\"\"");
            let row = self.rows::<32>(&format!("SELECT * FROM \"{name}\" LIMIT 1"), &[]);
            let mut texts = row.ok()?.into_iter().next()?.into_iter().flatten();
            if !texts.any(|text| text.starts_with('{') && text.contains('"')) {
                return None;
            }
            let all_rows = self.rows(&format!("SELECT COUNT(*) FROM \"{name}\""), &[]);
            let [[count]]: [[_; 1]; 1] = all_rows.ok()?.try_into().ok()?;
            Some((table.clone(), count?.parse().ok()?))
        });
        rows.collect()
    }

    /// How many bytes may still be read of it.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Counts bytes that were read of it.
    pub(crate) fn charge(&self, bytes: u64) -> Result<()> {
        let left = self.left().checked_sub(bytes);
        self.left.set(left.ok_or_else(|| ImportError::TooLarge(self.path.clone(), MAX_FILE))?);
        Ok(())
    }

    /// The query's answer: the columns of each row.
    pub(crate) fn rows<const N: usize>(&self, sql: &str, with: &[&str]) -> Result<Vec<[Text; N]>> {
        let failed = |error| damaged(&self.path, &error);
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let mut rows = statement.query(rusqlite::params_from_iter(with)).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let texts: [_; N] = std::array::from_fn(|column| text(row, column));
            let length: usize = texts.iter().flatten().map(|text| text.len()).sum();
            self.charge(length as u64)?;
            found.push(texts);
        }
        Ok(found)
    }
}

/// The database with its log, where both are of a size that is held in memory and the log is whole.
fn with_log(path: &Path, log: &Path) -> Option<Vec<u8>> {
    let mut sizes = [path, log].into_iter().map(|file| file.metadata().map(|data| data.len()));
    if !sizes.all(|size| size.is_ok_and(|size| size <= MAX_FILE)) {
        return None;
    }
    super::log::merged(files::read(path).ok()?, &files::read(log).ok()?)
}

fn damaged(path: &Path, error: &rusqlite::Error) -> ImportError {
    if error.sqlite_error_code() == Some(ErrorCode::TooBig) {
        return ImportError::LongText(path.to_owned(), MAX_ROW);
    }
    ImportError::DamagedDatabase(path.to_owned(), error.to_string())
}

/// The file as an address that says how it is opened.
fn address(path: &Path) -> String {
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{name}?mode=ro&immutable=1")
}

/// The text of a column, whatever type it has; bytes that are not UTF-8 are replaced.
fn text(row: &Row<'_>, column: usize) -> Text {
    match row.get_ref(column).ok()? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(number.to_string().into()),
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(String::from_utf8_lossy(text).into()),
    }
}
