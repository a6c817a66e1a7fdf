//! Databases of opencode, goose, Crush and OpenClaw.
//!
//! `.ci/run optional` runs these with the feature `sqlite`.

use std::path::Path;

use proctor_formats as import;
use proctor_sessions::{Session, Tag};
use rusqlite::Connection;

fn make(path: &Path, statements: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(statements).unwrap();
}

/// The sessions of a database made by these statements, as one line per message.
#[track_caller]
fn check(statements: &str, expected: Result<&[&str], &str>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("50% of it?#.db");
    make(&path, statements);
    let before = std::fs::read(&path).unwrap();
    let shown = import::load(&path).map(|sessions| {
        let lines = sessions.iter().flat_map(|session| {
            let messages = session.messages().iter();
            let said = messages.map(|message| {
                let side = if message.has_tag(Tag::Sidechain) { " side" } else { "" };
                let usage =
                    message.details.usage.map(|it| format!(" {}+{}", it.prompt(), it.output));
                let usage = usage.unwrap_or_default();
                format!("{}{side}{usage}", message.model_text().join("|"))
            });
            let main = session.source().main.as_ref();
            let main = main.map(|main| format!(" of {main}")).unwrap_or_default();
            let id = session.id().rsplit_once('-').unwrap().0.to_owned() + &main;
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

const CRUSH: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, created_at INTEGER,
        summary_message_id TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts BLOB, model TEXT,
        created_at INTEGER, is_summary_message INTEGER);";

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
        Ok(&["ses_a 1 1", "Look.", "read {} 12+2", "dry", "ses_b of ses_a 0 1", "Sub. side"]),
    );
    check(OPENCODE, Err("holds no conversation"));
}

/// Columns that the database computes: those that nobody asks for cost nothing, and a text that is too long is refused.
#[test]
fn columns_that_are_computed_are_read_as_others_are() {
    let rows = r#"
        INSERT INTO session VALUES ('ses_A', NULL, 1);
        INSERT INTO message (id, session_id, time_created, data) VALUES
            ('m1', 'ses_A', 1, '{"role":"user"}'), ('m2', 'ses_A', 2, '{"role":"assistant","modelID":"m"}');"#;
    let text = |size: u32| {
        format!(
            "CREATE TABLE session (id TEXT, parent_id TEXT, time_created INTEGER);
            CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT,
                big TEXT GENERATED ALWAYS AS (hex(zeroblob(20000000))) VIRTUAL);
            CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INTEGER, length INTEGER,
                data TEXT GENERATED ALWAYS AS ('{{\"type\":\"text\",\"text\":\"' || hex(zeroblob(length)) || '\"}}') VIRTUAL);
            {rows}
            INSERT INTO part (id, message_id, session_id, time_created, length)
                VALUES ('p1', 'm1', 'ses_A', 1, {size}), ('p2', 'm2', 'ses_A', 2, 1);"
        )
    };
    check(&text(2), Ok(&["ses_a 0 0", "0000", "00"]));
    check(&text(140_000_000), Err("a text is longer than 268435456 bytes"));
}

#[test]
fn rows_of_opencode_2_are_read_and_those_of_unknown_tables_are_named() {
    let tables = format!(
        "{OPENCODE} CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, seq INTEGER, data TEXT);"
    );
    let rows = r#"
        INSERT INTO session VALUES ('ses_A', NULL, 1), ('ses_B', 'ses_Gone', 2);
        INSERT INTO message VALUES ('o1', 'ses_B', 1, '{"role":"user"}');
        INSERT INTO part VALUES ('o2', 'o1', 'ses_B', 1, '{"type":"text","text":"Old."}');
        INSERT INTO session_message VALUES
            ('m1', 'ses_A', 'user', 1, '{"text":"Count the hinges.","files":[{"mime":"text/x","uri":"file:///a"},7]}'),
            ('m0', 'ses_A', 'model-switched', 0, '{"model":{"id":"m"}}'),
            ('m2', 'ses_A', 'assistant', 2, '{"model":{"id":"m"},"content":[{"type":"reasoning","text":"Hm."},{"type":"tool","id":"k1","name":"bash","state":{"status":"completed","input":{"command":"ls"},"content":[{"type":"text","text":"a b"}]},"time":{"ran":1767258001000,"pruned":1767258009000}},{"type":"tool","id":"k2","name":"bash","state":{"status":"error","input":{},"error":{"type":"x","message":"no hinge"}}}],"tokens":{"input":7,"output":2,"cache":{"read":5,"write":0}}}'),
            ('m3', 'ses_A', 'shell', 3, '{"command":"pwd","output":{"output":"/w"}}'),
            ('m4', 'ses_A', 'compaction', 4, '{"status":"failed","reason":"auto"}'),
            ('m5', 'ses_A', 'compaction', 5, '{"status":"completed","reason":"auto","summary":"Two.","recent":"[User]: Count."}'),
            ('m6', 'ses_A', 'assistant', 6, '{"content":[{"type":"text","text":"Two."}]}'),
            ('m7', 'ses_A', 'mystery', 7, '{"text":"what is this"}'),
            ('m8', 'ses_A', 'user', 8, 'null'),
            ('m9', 'ses_A', 'assistant', 9, '{"content":7,"model":[],"tokens":"x","time":{"created":{}}}'),
            ('n0', 'ses_A', 'assistant', 10, '{'),
            ('n1', 'ses_B', 'user', 1, '{"text":"Old."}');"#;
    check(
        &format!("{tables}{rows}"),
        Ok(&[
            "ses_a 2 3",
            r#"Count the hinges.|{"mime":"text/x","uri":"file:///a"}|7"#,
            r#"Hm.|bash {"command":"ls"}|bash {} 12+2"#,
            "a b|no hinge|The following shell command was executed by the user:\n\nCommand:\npwd\n\nOutput:\n/w",
            "Two.",
            r#"{"text":"what is this"}|null"#,
            "ses_b of ses_gone 0 0",
            "Old. side",
        ]),
    );
    let event = r#"CREATE TABLE "ev""ent" (id, data); CREATE TABLE todo (a); INSERT INTO todo VALUES ('b');
        INSERT INTO "ev""ent" VALUES (1, '{"text":"Hello."}'), (2, '{}');"#;
    check(
        &format!("{tables}{event}"),
        Err("holds no conversation in a table that is read, but rows in others: `ev\"ent` × 2"),
    );
}

#[test]
fn crushs_sessions_are_read_from_their_parts() {
    let rows = r#"
        INSERT INTO sessions VALUES ('s1', NULL, 'Oars', 1767258000, 'm6'), ('m2$$c1', 's1', 'Sub', 1767258002, NULL),
            ('title-s1', 's1', 'Oars', 1767258001, NULL);
        INSERT INTO messages VALUES
            ('m1', 's1', 'user', '[{"type":"text","data":{"text":"Which oar?"}},{"type":"finish","data":{"reason":"stop","time":0}}]', NULL, 1767258000, 0),
            ('m2', 's1', 'assistant', '[{"type":"reasoning","data":{"thinking":"Both.","signature":""}},{"type":"text","data":{"text":""}},{"type":"tool_call","data":{"id":"c1","name":"agent","input":"{\"prompt\":\"Look.\"}","finished":true}},{"type":"tool_call","data":{"id":"c2","name":"view","input":"{","finished":true}}]', 'm', 1767258000, 0),
            ('m3', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"c1","name":"agent","content":"left","is_error":false}},{"type":"tool_result","data":{"tool_call_id":"c2","name":"view","content":"no file","is_error":true}}]', NULL, 1767258000, 0),
            ('m4', 's1', 'assistant', '[{"type":"text","data":{"text":"So far left."}}]', 'm', 1767258003, 1),
            ('m5', 's1', 'user', '[{"type":"text","data":{"text":"Go on.","hidden":true}},{"type":"mystery","data":{}}]', NULL, 1767258004, 0),
            ('m6', 's1', 'assistant', '[{"type":"text","data":{"text":"All said."}}]', 'm', 1767258005, 0),
            ('m7', 's1', 'assistant', '[{"type":"text","data":{"text":"Left."}}]', 'm', 1767258006, 0),
            ('m8', 's1', 'assistant', 'x', 'm', 1767258007, 0),
            ('n1', 'm2$$c1', 'user', '[{"type":"text","data":{"text":"Look."}}]', NULL, 1767258002, 0),
            ('n2', 'm2$$c1', 'assistant', '[{"type":"text","data":{"text":"Left."}}]', 'm', 1767258002, 0);"#;
    check(
        &format!("{CRUSH}{rows}"),
        Ok(&[
            "s1 2 2",
            "Which oar?",
            r#"Both.|agent {"prompt":"Look."}|view "{""#,
            "left|no file",
            r#"Go on.|{"type":"mystery","data":{}}"#,
            "Left.",
            "m2--c1 of s1 0 0",
            "Look. side",
            "Left. side",
        ]),
    );
    check(CRUSH, Err("holds no conversation"));
}

/// A text as Zstandard packs it where nothing is repeated, in hexadecimal digits.
fn packed(text: &str) -> String {
    let length = u8::try_from(text.len()).unwrap();
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    let head = [&b"\x28\xb5\x2f\xfd\x20"[..], &[length], &block[..3]].concat();
    let bytes = head.iter().chain(text.as_bytes());
    bytes.fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

#[test]
fn openclaws_rows_are_read_as_pis_entries() {
    let last = packed(
        r#"{"type":"message","id":"d","parentId":"b","message":{"role":"assistant","content":[{"type":"text","text":"Left."}],"usage":{"input":7,"output":2,"cacheRead":5}}}"#,
    );
    let table = "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, event_zstd BLOB);";
    let rows = format!(
        r#"
        INSERT INTO transcript_events VALUES
            ('s1', 3, '{{"type":"message","id":"c","parentId":"b","message":{{"role":"user","content":"No."}}}}', 4, NULL),
            ('s1', 4, NULL, 5, x'{last}'),
            ('s1', 0, '{{"type":"session","version":4,"id":"s1","cwd":"/w"}}', 1, NULL),
            ('s1', 1, '{{"type":"message","id":"a","parentId":null,"message":{{"role":"user","content":"Which oar?"}}}}', 2, x'00'),
            ('s1', 2, '{{"type":"message","id":"b","parentId":"a","message":{{"role":"assistant","content":[{{"type":"text","text":"Both."}}]}}}}', 3, NULL),
            ('s1', 5, NULL, 6, x'28b52ffd00'),
            ('s1', 6, NULL, 6, NULL),
            ('s0', 0, '{{"type":"session","version":4,"id":"s0","cwd":"/w"}}', 9, NULL);"#
    );
    check(&format!("{table}{rows}"), Ok(&["s1 0 1", "Which oar?", "Both.", "Left. 12+2"]));
    check(table, Err("holds no conversation"));
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
    assert!(error.contains("cannot be read as an SQLite database"), "{error}");
}

/// A database of opencode as it stands while the product runs: the copy's path, and its log's.
fn running(folder: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (live, path) = (folder.join("live.db"), folder.join("copy/kept.db"));
    std::fs::create_dir(folder.join("copy")).unwrap();
    let connection = Connection::open(&live).unwrap();
    let message = |at: u32| {
        format!(
            r#"INSERT INTO message VALUES ('m{at}', 'ses_A', {at}, '{{"role":"user","time":{{"created":1767258000000}}}}');
            INSERT INTO part VALUES ('p{at}', 'm{at}', 'ses_A', {at}, '{{"type":"text","text":"Look {at}."}}');"#
        )
    };
    let begin = format!("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {OPENCODE}");
    let first =
        format!("BEGIN; INSERT INTO session VALUES ('ses_A', NULL, 1); {} COMMIT;", message(1));
    for statements in [begin, first, format!("BEGIN; {} COMMIT;", message(2))] {
        connection.execute_batch(&statements).unwrap();
    }
    let log = folder.join("copy/kept.db-wal");
    std::fs::copy(&live, &path).unwrap();
    std::fs::copy(folder.join("live.db-wal"), &log).unwrap();
    (path, log)
}

#[test]
fn what_the_product_has_not_moved_from_its_log_is_read_as_far_as_the_log_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = running(folder.path());
    let said = || -> Result<Vec<String>, String> {
        let sessions = import::load(&path).map_err(|error| error.to_string())?;
        let texts = sessions.iter().flat_map(Session::texts);
        Ok(texts.map(ToString::to_string).collect())
    };
    assert_eq!(said().unwrap(), ["Look 1.", "Look 2."]);
    let whole = std::fs::read(&log).unwrap();
    // The last transaction is cut: what ended before it stands.
    std::fs::write(&log, &whole[..whole.len() - 100]).unwrap();
    assert_eq!(said().unwrap(), ["Look 1."]);
    // A page that does not fit its checksum ends the log.
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    assert_ne!(said().ok(), Some(vec!["Look 1.".to_owned(), "Look 2.".to_owned()]));
    // What is no log leaves the database as it is: empty, here.
    std::fs::write(&log, b"no log at all").unwrap();
    assert!(said().unwrap_err().contains("cannot tell the format"));
    assert_eq!(std::fs::read_dir(folder.path().join("copy")).unwrap().count(), 2);
}
