//! Long files are read without holding their long texts, and say the same.

use std::path::Path;

use proctor::session::import::outline::{Cut, FORMATS, outline};
use proctor::session::import::{self, Importer};
use proctor::session::native;

use super::{fixture, written};
use crate::shared;

/// Expects what is written of a file's outline to be what is written of the file read at once.
#[track_caller]
fn check(path: &Path, importer: &dyn Importer, cut: Cut) {
    let whole = import::load_as(path, importer);
    let whole = whole.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read = outline(path, Some(importer), cut).unwrap().unwrap();
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
}

#[test]
fn the_outline_of_a_file_says_what_the_file_says() {
    for format in FORMATS {
        let importer = import::importer(format).unwrap();
        for path in shared::files(&fixture(format)) {
            // As short as what importers look at: the words that a text begins with.
            for (above, keep) in [(60, 60), (80, 61), (1_024, 256)] {
                check(&path, importer, Cut { above, keep });
            }
        }
    }
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
    let other = fixture("anthropic/request.json");
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
    for format in FORMATS {
        let importer = import::importer(format).unwrap();
        let folder = folder.join(format);
        if folder.is_dir() {
            for path in shared::files(&folder) {
                check(&path, importer, Cut::default());
            }
        }
    }
}
