//! Opens a database, and reads rows whatever stands in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use sha2::{Digest, Sha256};

use crate::session::Session;
use crate::session::import::{ImportError, goose, opencode};
use crate::units::to_valid_id;

/// Reads all sessions of the database at `path`.
pub(super) fn load(path: &Path) -> Result<Vec<Session>, ImportError> {
    let database = Database::open(path)?;
    let sessions = if database.has(&["session", "message", "part"]) {
        opencode::database::read(&database)?
    } else if database.has(&["sessions", "messages"]) {
        goose::database::read(&database)?
    } else {
        return Err(ImportError::UnknownFormat {
            path: path.to_owned(),
        });
    };
    if sessions.is_empty() {
        return Err(ImportError::NoConversation {
            path: path.to_owned(),
        });
    }
    Ok(sessions)
}

/// A database, open for reading.
pub(in crate::session::import) struct Database {
    path: PathBuf,
    connection: Connection,
    tables: BTreeSet<String>,
    /// Whether there is a log beside the database that is not part of it yet.
    pub(in crate::session::import) has_log: bool,
}

impl Database {
    fn open(path: &Path) -> Result<Self, ImportError> {
        let failed = |error| damaged(path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(address(path), flags).map_err(failed)?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;")
            .map_err(failed)?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let has_log = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Tag;
    use crate::session::import;

    /// The sessions of a database made by these statements, as one line per message.
    #[track_caller]
    fn check(statements: &str, expected: Result<&[&str], &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("50% of it?#.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(statements).unwrap();
        drop(connection);
        let before = std::fs::read(&path).unwrap();
        let shown = import::load(&path).map(|sessions| {
            let lines = sessions.iter().flat_map(|session| {
                let messages = session.messages().iter();
                let said = messages.map(|message| {
                    let side = if message.has_tag(Tag::Sidechain) {
                        " side"
                    } else {
                        ""
                    };
                    let usage = message
                        .usage
                        .map(|it| format!(" {}+{}", it.prompt(), it.output));
                    let usage = usage.unwrap_or_default();
                    format!("{}{side}{usage}", message.model_text().join("|"))
                });
                let id = session.id().rsplit_once('-').unwrap().0.to_owned();
                let counts = session.compactions().len();
                let unknown = session.source().unknown.len();
                std::iter::once(format!("{id} {counts} {unknown}")).chain(said)
            });
            lines.collect::<Vec<String>>()
        });
        match (shown, expected) {
            (Ok(shown), Ok(expected)) => assert_eq!(shown, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (shown, expected) => panic!("got {shown:?}, expected {expected:?}"),
        }
        assert_eq!(std::fs::read(&path).unwrap(), before, "nothing is written");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    const OPENCODE: &str = "
        CREATE TABLE session (id TEXT, parent_id TEXT, time_created INTEGER);
        CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);";

    const GOOSE: &str = "
        CREATE TABLE sessions (id TEXT, created_at TEXT, session_type TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
            created_timestamp INTEGER, metadata_json TEXT);
        CREATE TABLE usage_ledger (session_id TEXT, created_timestamp INTEGER, input_tokens INTEGER,
            output_tokens INTEGER, cache_read_tokens INTEGER, is_compaction INTEGER);";

    #[test]
    fn opencodes_sessions_are_read_with_those_that_tools_started() {
        let rows = r#"
            INSERT INTO session VALUES ('ses_B', 'ses_A', 2), ('ses_A', NULL, 1), ('ses_C', NULL, 3);
            INSERT INTO message VALUES
                ('m2', 'ses_A', 2, '{"role":"assistant","modelID":"m","finish":"stop","time":{"created":1767258001000}}'),
                ('m1', 'ses_A', 1, '{"role":"user","time":{"created":1767258000000}}'),
                ('m3', 'ses_A', 3, 'not json'),
                ('m4', 'ses_B', 1, '{"role":"user"}');
            INSERT INTO part VALUES
                ('p3', 'm2', 'ses_A', 1, '{"type":"step-finish","tokens":{"input":7,"output":2,"cache":{"read":5,"write":0}}}'),
                ('p2', 'm2', 'ses_A', 2, '{"type":"tool","callID":"t","tool":"read","state":{"status":"completed","input":{},"output":"dry","time":{"compacted":1767258009000}}}'),
                ('p1', 'm1', 'ses_A', 1, '{"type":"text","text":"Look."}'),
                ('p4', 'm4', 'ses_B', 1, '{"type":"text","text":"Sub."}'),
                ('p5', 'm4', 'ses_B', 1, x'ff7b');"#;
        check(
            &format!("{OPENCODE}{rows}"),
            Ok(&[
                "ses_a 1 1",
                "Look.",
                "read {} 12+2",
                "dry",
                "ses_b 0 1",
                "Sub. side",
            ]),
        );
        check(OPENCODE, Err("holds no conversation"));
    }

    #[test]
    fn gooses_calls_are_billed_by_its_ledger() {
        let rows = r#"
            INSERT INTO sessions VALUES ('20260301_1', '2026', 'user'), ('20260301_2', '2027', 'sub_agent');
            INSERT INTO messages VALUES
                (1, '20260301_1', 'user', '[{"type":"text","text":"Look."}]', 10, '{"agentVisible":false}'),
                (2, '20260301_1', 'assistant', '[{"type":"text","text":"Dry."}]', 11, '{"agentVisible":false}'),
                (3, '20260301_1', 'user', '[{"type":"text","text":"It is dry."}]', 12, '{"userVisible":false}'),
                (4, '20260301_1', 'assistant', '[{"type":"text","text":"On."}]', 13, NULL),
                (5, '20260301_2', 'user', '[{"type":"text","text":"Sub."}]', 10, 'x'),
                (6, '20260301_2', 'assistant', '7', 10, NULL),
                (7, '20260301_2', 'assistant', '[', 10, NULL);
            INSERT INTO usage_ledger VALUES
                ('20260301_1', 12, 100, 5, 40, 0),
                ('20260301_1', 12, 900, 50, 0, 1),
                ('20260301_1', 14, 30, 2, 0, 0);"#;
        check(
            &format!("{GOOSE}{rows}"),
            Ok(&[
                "20260301_1 1 0",
                "Look.",
                "Dry. 100+5",
                "On. 30+2",
                "20260301_2 0 2",
                "Sub. side",
                "7 side",
            ]),
        );
    }

    #[test]
    fn what_is_no_database_of_theirs_is_refused() {
        check("CREATE TABLE a (b)", Err("cannot tell the format"));
        let views = "CREATE TABLE x (y); CREATE VIEW session AS SELECT 1 AS id;
            CREATE VIEW message AS SELECT 1; CREATE VIEW part AS SELECT 1;";
        check(views, Err("cannot tell the format"));
        let other = "CREATE TABLE sessions (a); CREATE TABLE messages (b);";
        check(other, Err("no such column"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        std::fs::write(&path, b"SQLite format 3\0 and no more").unwrap();
        let error = import::load(&path).unwrap_err().to_string();
        assert!(
            error.contains("cannot be read as an SQLite database"),
            "{error}"
        );
    }
}
