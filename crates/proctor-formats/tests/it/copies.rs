//! Records that a file holds twice, which happened once.

use super::{fixture, read};

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
