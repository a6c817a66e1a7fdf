//! Importers against files of our own and against real recordings.
#![expect(
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests find the shared data through the environment, say what they skipped, and fail loudly"
)]

use std::sync::Arc;

use proctor_formats as import;
use proctor_sessions::units::{ApiCallId, Timestamp};
use proctor_sessions::{Session, Tag};

use outline::{
    fixture, line, model, outline, read, read_use, result, round_trip, text, user, written,
};

mod agents;
mod api_logs;
mod bodies;
mod chat;
mod chats;
mod claude_code;
mod codex;
mod confusion;
mod copies;
#[cfg(feature = "sqlite")]
mod databases;
mod dialects;
mod editors;
mod exported;
mod folders;
mod foreign;
mod hostile;
mod inspect;
mod libraries;
mod native;
mod openhands;
mod outline;
mod paid;
mod products;
mod qwen_code;
mod recorded;
mod records;
mod schema;
#[path = "../../../../tests/it/goldens.rs"]
mod goldens;
#[path = "../../../../tests/it/shared.rs"]
mod shared;
mod traces;
mod unknown;

/// Where the small files of every format are.
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// The sessions of a fixture, whose outlines are these, and which come back from the native format as they were.
#[track_caller]
fn check_fixture(name: &str, format: &str, expected: &[&str]) -> Vec<Session> {
    let sessions = import::load(&fixture(name)).expect("a good file");
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got, expected);
    for session in &sessions {
        assert_eq!(session.source().format, format);
        round_trip(session);
    }
    sessions
}

/// What the Claude Code importer makes of these lines: the outlines of all sessions.
#[track_caller]
fn check(lines: &[&str], expected: &[&str]) {
    let sessions = match read("claude-code", (lines.join("\n") + "\n").as_bytes()) {
        Ok(sessions) => sessions,
        Err(error) => panic!("{error}"),
    };
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got.join("--\n").trim_end(), expected.join("\n"));
    for session in &sessions {
        round_trip(session);
    }
}

/// The error the Claude Code importer gives for these bytes.
#[track_caller]
fn refuses(bytes: &[u8], expected: &str) {
    match read("claude-code", bytes) {
        Ok(sessions) => panic!("read {} sessions", sessions.len()),
        Err(error) => assert_eq!(error.to_string(), format!("`some/File One.jsonl`{expected}")),
    }
}

#[test]
fn says_where_a_recording_is_broken() {
    let good = user("u", "", "a");
    refuses(b"", " holds no conversation");
    refuses(b"{\"type\":\"mode\"}\n", " holds no conversation");
    refuses(
        format!("{{\"type\":\n{good}\n{{\"type\":\n").as_bytes(),
        ": line 1, column 8: EOF while parsing a value",
    );
    refuses(b"\0\0\0\0\n", ": line 1, column 1: expected value");
    refuses(b"[1]\n", " holds no conversation");
    refuses(b"{\"type\":\"user\"}\n", " holds no conversation");
    let bomb = format!(
        "{{\"type\":\"user\",\"toolUseResult\":{}}}\n",
        "[".repeat(100_000) + &"]".repeat(100_000)
    );
    refuses(bomb.as_bytes(), ": line 1: JSON nested deeper than 127 levels");
}

#[test]
fn says_what_a_file_is_if_it_is_no_session() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let check = |name: &str, bytes: Option<&[u8]>, expected: &str| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).expect("the folder can be written to");
        }
        let error = import::load(&path).expect_err("no session");
        let shown = error.to_string().replace(&path.display().to_string(), "F");
        assert_eq!(shown, expected);
        assert!(error.hint().is_some(), "{shown}");
    };
    check("missing.jsonl", None, "there is no file `F`");
    check("", None, "`F` is a folder, not a session");
    check("empty.jsonl", Some(b""), "`F` is empty");
    check("blank.jsonl", Some(b"\xef\xbb\xbf \n\n"), "`F` is empty");
    check("a.txt", Some(b"hello"), "`F` is not JSON");
    check("zeros", Some(&[0; 100]), "`F` is not JSON");
    check("utf16.json", Some(b"\xff\xfeh\0"), "`F` is not JSON");
    check(
        "other.json",
        Some(b"{\"a\":1}"),
        "cannot tell the format of `F`: it is JSON with the keys `a`",
    );
    check("list.json", Some(b"[]"), "cannot tell the format of `F`: it is an empty list");
}

/// One row of the catalogue of recordings: file, tool calls, compactions.
fn catalogue(product: &str, text: &str) -> Vec<(String, usize, usize)> {
    text.lines()
        .filter_map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let file = cells.get(1)?.strip_prefix(product)?.strip_prefix('/')?;
            Some((file.to_owned(), cells.get(4)?.parse().ok()?, cells.get(7)?.parse().ok()?))
        })
        .collect()
}

#[test]
fn shared_claude_code_recordings_are_read_whole() {
    let Some(folder) = shared::folder("sessions/claude-code") else {
        return;
    };
    let catalogue = std::fs::read_to_string(folder.join("../CATALOG.md")).expect("the catalogue");
    let rows = self::catalogue("claude-code", &catalogue);
    assert!(!rows.is_empty());
    for (file, calls, compactions) in rows {
        let sessions = import::load(&folder.join(&file)).expect("a good file");
        let mut count = (0, 0, 0, 0, 0);
        for session in &sessions {
            for message in session.messages() {
                count.0 += 1;
                count.1 += message.tool_uses().count();
                count.2 += message.tool_results().count();
                count.3 += usize::from(message.has_tag(Tag::Orphan));
            }
            count.4 += session.compactions().len();
            assert!(session.source().unknown.is_empty(), "{file}: {:?}", session.source().unknown);
            round_trip(session);
        }
        println!(
            "{file}: {} messages, {} API calls, {} tool calls, {} results, {} orphans, {} side chains, {} compactions, {:?}",
            count.0,
            sessions.iter().map(|session| session.calls().len()).sum::<usize>(),
            count.1,
            count.2,
            count.3,
            sessions.len() - 1,
            count.4,
            sessions.iter().map(|session| &session.source().warnings).collect::<Vec<_>>(),
        );
        assert_eq!(count.1, calls, "{file}: tool calls");
        assert!(count.1 - count.2 <= 1, "{file}: results");
        assert_eq!(count.3, 0, "{file}: orphans");
        assert_eq!(count.4, compactions, "{file}: compactions");
    }
}

#[test]
fn what_says_next_to_nothing_in_a_format_is_refused_unless_the_format_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("chat.jsonl");
    let refused = |text: &str, expected: &str| {
        std::fs::write(&path, text).expect("the folder can be written to");
        let error = import::load(&path).expect_err(expected).to_string();
        assert!(error.ends_with(expected), "{error}");
        let importer = import::importer("claude-code");
        import::load_as(&path, importer.expect("a format")).expect("named");
    };
    let asked = user("u", "", "Anybody?");
    refused(&asked, "looks like claude-code, and holds no answer of a model");
    let answer = model("v", "u", "1", r#"{"type":"text","text":"I."}"#);
    let strange = r#"{"type":"oracle","words":"the mill stands still"}"#;
    refused(
        &[&asked, &answer, strange, strange, strange, strange, strange]
            .map(|it| format!("{it}\n"))
            .concat(),
        "looks like claude-code, but most of it is not understood: record oracle × 5",
    );
}

#[test]
fn tells_a_format_by_the_start_of_a_line_that_is_longer_than_it_looks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = "x".repeat(100_000);
    let claude = format!(
        r#"{{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{{"content":"{long}"}},"uuid":"u"}}"#
    );
    // A picture is longer than what is read for this.
    let picture = format!(
        r#"{{"parentUuid":null,"isSidechain":false,"type":"user","message":{{"content":"{}"}},"uuid":"u","sessionId":"s"}}"#,
        "x".repeat(2 << 20)
    );
    let native = format!(
        r#"{{"format": "proctor-session","version":1,"id":"a","system":"{long}"}}
{{"role":"user","content":[{{"type":"text","text":"a"}}]}}
"#
    );
    let answer = model("v", "u", "1", r#"{"type":"text","text":"Yes."}"#);
    for (text, format) in [
        (format!("{claude}\n{answer}\n"), "claude-code"),
        (format!("{picture}\n{answer}\n"), "claude-code"),
        (native, "native"),
    ] {
        let path = folder.path().join(format);
        std::fs::write(&path, text).expect("the folder can be written to");
        let sessions = import::load(&path).expect(format);
        assert_eq!(sessions[0].source().format, format);
    }
}
