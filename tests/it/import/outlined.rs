//! Long files are read without holding their long texts, and say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proctor::session::import::glance::glance;
use proctor::session::import::outline::{Cut, FORMATS, outline};
use proctor::session::import::{self, Importer};
use proctor::session::native;

use super::{fixture, written};
use crate::shared;

/// Expects what is written of a file's outline to be what is written of the file read at once.
/// Says whether the file was read so.
#[track_caller]
fn check(path: &Path, importer: &dyn Importer, cut: Cut) -> bool {
    let whole = import::load_as(path, importer);
    let read = match (outline(path, Some(importer), cut), &whole) {
        (Ok(None), _) => return false,
        (Err(error), Err(whole)) => {
            assert_eq!(error.to_string(), whole.to_string());
            return false;
        }
        (Ok(Some(read)), Ok(_)) => read,
        (Ok(Some(_)), Err(error)) => panic!("{}: an outline, and {error}", path.display()),
        (Err(error), Ok(_)) => panic!("{}: sessions, and {error}", path.display()),
    };
    let whole = whole.unwrap();
    let mut rests = read.rests;
    assert_eq!(whole.len(), read.recordings.len(), "{}", path.display());
    for (session, recording) in whole.iter().zip(&read.recordings) {
        let mut bytes = Vec::new();
        native::write_whole(&recording.session, &mut rests, &mut bytes).unwrap();
        let (expected, got) = (written(session), bytes);
        let differs = expected.iter().zip(&got).position(|(one, two)| one != two);
        let shown = |bytes: &[u8]| {
            let from = differs.unwrap_or(0).saturating_sub(120);
            let part = &bytes[from..bytes.len().min(from + 300)];
            String::from_utf8_lossy(part).into_owned()
        };
        assert!(
            expected == got,
            "{} with {cut:?}:\n{}\n{}",
            path.display(),
            shown(&expected),
            shown(&got)
        );
    }
    true
}

/// The file with odd escapes in every text that is long enough to be cut.
fn with_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut changed = Vec::new();
    let mut left = bytes;
    while let Some(start) = left.iter().position(|byte| *byte == b'"') {
        let inside = &left[start + 1..];
        let mut end = 0;
        while inside[end] != b'"' {
            end += if inside[end] == b'\\' { 2 } else { 1 };
        }
        changed.extend_from_slice(&left[..=start]);
        changed.extend_from_slice(&inside[..end]);
        // What is JSON itself stays so.
        if end > 80 && !inside.starts_with(b"{") {
            changed.extend_from_slice(br#" \u00e9\/\u0009\"\\ \ud83d\ude00"#);
        }
        changed.push(b'"');
        left = &inside[end + 1..];
    }
    changed.extend_from_slice(left);
    changed
}

#[test]
fn the_outline_of_a_file_says_what_the_file_says() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let importer = import::importer(format.name).unwrap();
        let mut read = 0;
        for path in shared::files(&fixture(format.name)) {
            let escaped = folder.path().join(path.file_name().unwrap());
            std::fs::write(&escaped, with_escapes(&std::fs::read(&path).unwrap())).unwrap();
            // As short as what importers look at: the words that a text begins with.
            for (above, keep) in [(60, 60), (80, 61), (1_024, 256)] {
                let cut = Cut { above, keep };
                read += usize::from(check(&path, importer, cut));
                check(&escaped, importer, cut);
            }
        }
        assert!(read > 0, "no outline of {}", format.name);
    }
}

#[test]
fn an_error_stands_where_the_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let cut = Cut {
        above: 60,
        keep: 60,
    };
    let mut told = BTreeSet::new();
    for format in FORMATS {
        let importer = import::importer(format.name).unwrap();
        for path in shared::files(&fixture(format.name)) {
            let bytes = std::fs::read(&path).unwrap();
            let damaged = folder.path().join(path.file_name().unwrap());
            // The last of something becomes something that is no JSON, or no UTF-8.
            for (old, new) in [(b':', b"#"), (b'{', b"["), (b'"', b"\xff"), (b',', b"\n")] {
                let Some(at) = bytes.iter().rposition(|byte| *byte == old) else {
                    continue;
                };
                let text = [&bytes[..at], &new[..], &bytes[at + 1..]].concat();
                std::fs::write(&damaged, text).unwrap();
                if import::load_as(&damaged, importer).is_err() {
                    told.insert(format.name);
                }
                check(&damaged, importer, cut);
            }
        }
    }
    assert!(told.len() > 10, "{told:?}");
}

#[test]
fn a_file_that_holds_a_mark_itself_and_one_of_another_format_are_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marked.jsonl");
    for mark in ["\u{10fffd}0\u{10fffd}", r"\uDBFF\uDFFD"] {
        let line = format!(
            r#"{{"type":"user","uuid":"u","sessionId":"s","message":{{"content":"{mark}"}}}}"#
        );
        std::fs::write(&path, line).unwrap();
        assert!(
            outline(&path, None, Cut::default()).unwrap().is_none(),
            "{mark}"
        );
    }
    let other = fixture("swe-agent/masked.traj");
    assert!(outline(&other, None, Cut::default()).unwrap().is_none());
    assert!(
        outline(folder.path(), None, Cut::default())
            .unwrap()
            .is_none()
    );
}

#[test]
fn shared_outlines_of_recordings_say_what_the_recordings_say() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let mut read = BTreeMap::new();
    for path in shared::files(&folder) {
        if let Some(importer) = glance(&path)
            .ok()
            .and_then(|it| import::importer(it.format))
        {
            let is_read = check(&path, importer, Cut::default());
            *read.entry(importer.format()).or_insert(0) += usize::from(is_read);
        }
    }
    for format in [
        "claude-code",
        "gemini-cli",
        "inspect",
        "openai-chat",
        "tau-bench",
    ] {
        assert!(read[format] > 0, "no outline of {format}");
    }
}
