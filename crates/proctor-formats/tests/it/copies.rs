//! Records that a file holds twice, which happened once, and records in another layout, which are the same.

use super::{fixture, outline, read};

/// Files of one record a line. The names of formats are those of the folders.
const TIMED: &str = "claude-code/compaction codex/rollout copilot-cli/events factory-droid/session \
    goose/session iflow/session kimi-cli/wire kimi-code/wire pi/tree qwen-code/chat";

/// The same, of formats whose records tell no time.
const UNTIMED: &str = "cursor/transcript grok-build/chat_history codex-exec/run";

const COPIED: &str = "a record stands in the file twice";

/// Expects that a copy of the file is read as it is, copied records aside.
#[track_caller]
fn check(name: &str, lines: &[&str], copied: &[&str]) {
    let (format, _) = name.split_once('/').expect("a folder");
    let [own, of_copy] = [lines, copied].map(|lines| {
        let text = lines.join("\n") + "\n";
        read(format, text.as_bytes()).expect("a good file")
    });
    assert_eq!(own.len(), of_copy.len(), "{name}");
    for (own, of_copy) in own.iter().zip(&of_copy) {
        assert_eq!(own.messages(), of_copy.messages(), "{name}");
        assert_eq!(own.compactions(), of_copy.compactions(), "{name}");
    }
    let mut warnings = of_copy.iter().flat_map(|one| one.source().warnings.keys());
    // A header may say again who it is.
    let one_more = copied.len() == lines.len() + 1;
    assert!(one_more || warnings.any(|what| what == COPIED), "{name}");
}

#[test]
fn a_record_that_stands_in_a_file_twice_happened_once() {
    for name in [TIMED, UNTIMED].iter().flat_map(|names| names.split_whitespace()) {
        let text = std::fs::read_to_string(fixture(&format!("{name}.jsonl"))).expect("a fixture");
        let lines: Vec<&str> = text.lines().collect();
        check(name, &lines, &[&lines[..], &lines].concat());
        // Records that tell their times, one by one too.
        if !TIMED.contains(name) {
            continue;
        }
        let pairs: Vec<&str> = lines.iter().flat_map(|line| [*line; 2]).collect();
        check(name, &lines, &pairs);
        for at in 0..lines.len() {
            let again = [&lines[..=at], &lines[at..]].concat();
            check(name, &lines, &again);
        }
    }
}

#[test]
fn a_compaction_that_was_copied_under_another_name_happened_once() {
    let name = "claude-code/compaction";
    let text = std::fs::read_to_string(fixture(&format!("{name}.jsonl"))).expect("a fixture");
    let lines: Vec<&str> = text.lines().collect();
    let boundaries = (0..lines.len()).filter(|at| lines[*at].contains("compact_boundary"));
    for at in boundaries {
        let renamed = lines[at].replace("\"uuid\":\"", "\"uuid\":\"copy-");
        check(name, &lines, &[&lines[..=at], &[&renamed], &lines[at + 1..]].concat());
    }
}

#[test]
fn each_recording_of_a_file_that_was_joined_is_a_session() {
    for (name, id) in [
        ("pi/tree", "5b1c"),
        ("qwen-code/chat", "5c1d"),
        ("codex/rollout", "\"id\":\"a1"),
        ("gemini-cli/chat", "9f1e"),
        ("copilot-cli/events", "\"sessionId\":\"s"),
    ] {
        let (format, _) = name.split_once('/').expect("a folder");
        let text = std::fs::read_to_string(fixture(&format!("{name}.jsonl"))).expect("a fixture");
        let other = text.replace(id, &format!("{id}2")).replace("2026-", "2027-");
        let [own, joined] = [text.clone(), text.clone() + &other].map(|bytes| {
            let sessions = read(format, bytes.as_bytes()).expect("a good file");
            sessions.iter().map(outline).collect::<Vec<String>>()
        });
        assert_eq!(joined, [&own[..], &own].concat(), "{name}");
        if format == "gemini-cli" {
            continue;
        }
        // The first may go on behind the other.
        let lines: Vec<&str> = text.lines().collect();
        let begun = lines[..lines.len() / 2].join("\n") + "\n";
        let messages = [text.clone() + &other, begun + &other + &text].map(|bytes| {
            let sessions = read(format, bytes.as_bytes()).expect("a good file");
            sessions.iter().map(|one| one.messages().to_vec()).collect::<Vec<_>>()
        });
        assert_eq!(messages[0], messages[1], "{name}");
    }
}

/// JSON without the white space between its parts, and this behind each comma and opening bracket.
fn laid_out(json: &str, gap: &str) -> String {
    let (mut out, mut in_text, mut is_escaped) = (String::new(), false, false);
    for c in json.chars() {
        if in_text || !c.is_ascii_whitespace() {
            out.push(c);
        }
        in_text ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        if !in_text && matches!(c, '{' | '[' | ',') {
            out.push_str(gap);
        }
    }
    out
}

#[test]
fn records_on_several_lines_or_in_a_list_are_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let load = |text: &str| {
        std::fs::write(&path, text).expect("a file");
        proctor_formats::load(&path)
    };
    let mut lists = Vec::new();
    let names = [TIMED, UNTIMED, "gemini-cli/chat"];
    for name in names.iter().flat_map(|names| names.split_whitespace()) {
        let text = std::fs::read_to_string(fixture(&format!("{name}.jsonl"))).expect("a fixture");
        let [lines, on_several] = ["", "\n"]
            .map(|gap| text.lines().map(|line| laid_out(line, gap)).collect::<Vec<String>>());
        let own = load(&lines.join("\n")).expect("a good file");
        let listed = [&lines, &on_several].map(|lines| format!("[{}]", lines.join(",\n")));
        for other in [on_several.join("\n")].iter().chain(&listed) {
            let sessions = match load(other) {
                Ok(sessions) => sessions,
                Err(error) => {
                    assert!(other.starts_with('['), "{name}: {error}");
                    continue;
                }
            };
            assert_eq!(sessions.len(), own.len(), "{name}");
            for (own, session) in own.iter().zip(&sessions) {
                assert_eq!(own.source().format, session.source().format);
                // A tool's input keeps the layout in which it was written.
                let [own, other] = [own, session].map(|session| {
                    let all = (session.messages(), session.compactions());
                    format!("{all:?}").replace("\\n", "")
                });
                assert_eq!(own, other, "{name}");
            }
            lists.push(name);
        }
    }
    for name in ["claude-code/compaction", "codex/rollout", "gemini-cli/chat", "iflow/session"] {
        assert_eq!(lists.iter().filter(|read| **read == name).count(), 3, "{name}");
    }
}
