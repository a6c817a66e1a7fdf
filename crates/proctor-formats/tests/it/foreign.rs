//! Lines that cannot be read, or are another program's: each costs itself alone, in every format of lines.

use std::path::Path;

use proctor_formats::load;
use proctor_sessions::{ContentBlock, Session};
use serde_json::Value;

use super::hostile::samples;

/// The lines, each with the words by which a session says that it was left out; none where formats say it in their own.
fn odd_lines() -> Vec<(String, Option<&'static str>)> {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(130), "]".repeat(130));
    vec![
        (deep, Some("is nested deeper than 127 levels and is left out")),
        ("{\"type\":\"user\",\"message\":{\"ro".to_owned(), Some("is no JSON and is left out")),
        ("Killed".to_owned(), Some("is no JSON and is left out")),
        ("{\"foo\":1,\"bar\":[{\"baz\":2}]}".to_owned(), None),
        ("7".to_owned(), None),
    ]
}

fn length(session: &Session) -> usize {
    let messages = session.messages().iter();
    let blocks = messages.flat_map(|message| message.content());
    let read = blocks.filter(|block| !matches!(block, ContentBlock::Opaque(_)));
    read.count()
}

/// The lengths of the sessions of a file with these lines, and their warnings. A foreign record may be kept, unread.
fn read(path: &Path, lines: &[&str]) -> Result<(Vec<usize>, String), String> {
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
    let sessions = load(path).map_err(|error| error.to_string())?;
    let warnings = sessions.iter().flat_map(|it| it.source().warnings.keys());
    let warnings = warnings.cloned().collect::<Vec<String>>().join("\n");
    Ok((sessions.iter().map(length).collect(), warnings))
}

#[test]
fn a_line_that_cannot_be_read_costs_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut formats, mut wrong) = (Vec::new(), Vec::new());
    for sample in samples() {
        let text = String::from_utf8_lossy(&sample.bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let is_json = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
        // Files of Proctor's own are refused whole: whoever damaged one may have changed more of it.
        let is_own = sample.importer.format() == "native";
        if lines.len() < 4 || is_own || !lines.iter().all(is_json) {
            continue;
        }
        let path = folder.path().join(sample.path.file_name().unwrap());
        let (whole, _) = read(&path, &lines).unwrap();
        formats.push(sample.importer.format());
        for (odd, warning) in odd_lines() {
            // The format is told by records behind the second line too, if that is no JSON.
            let second = warning.filter(|words| words.contains("no JSON")).map(|_| 1);
            for at in [0, lines.len() / 2, lines.len()].into_iter().chain(second) {
                let mut with = lines.clone();
                with.insert(at, &odd);
                let expected = warning.map_or(String::new(), |it| format!("line {} {it}", at + 1));
                let found = read(&path, &with);
                let is_right = found.as_ref().is_ok_and(|(lengths, warnings)| {
                    let is_said = warnings.contains(&expected)
                        || at == lines.len() && warnings.contains("the last line was cut");
                    *lengths == whole && is_said
                });
                if !is_right {
                    let name = sample.path.display();
                    wrong.push(format!(
                        "{name}, line {}: {odd:.40}: {found:?}, not {whole:?}",
                        at + 1
                    ));
                }
            }
        }
    }
    formats.dedup();
    assert!(formats.len() > 8, "{formats:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
