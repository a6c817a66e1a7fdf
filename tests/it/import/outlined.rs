//! Long files are read without holding their long texts, and say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proctor::session::Session;
use proctor::session::import::each::{Each, Part, each};
use proctor::session::import::glance::glance;
use proctor::session::import::outline::{Cut, FORMATS, outline};
use proctor::session::import::{self, Importer};
use proctor::session::native;

use super::libraries::archive;
use super::{fixture, written};
use crate::shared;
use zip::CompressionMethod;

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
fn the_outline_of_a_folder_says_what_the_folder_says() {
    for (format, name) in [
        ("cline", "cline/task"),
        ("opencode", "opencode/first"),
        ("opencode", "opencode/storage"),
        ("openhands", "openhands/conversation"),
    ] {
        let importer = import::importer(format).unwrap();
        let (folder, mut read) = (tempfile::tempdir().unwrap(), 0);
        let copied = folder.path().join("a-session");
        for path in shared::files(&fixture(name)) {
            let target = copied.join(path.strip_prefix(fixture(name)).unwrap());
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::write(target, with_escapes(&std::fs::read(&path).unwrap())).unwrap();
        }
        for (above, keep) in [(60, 60), (80, 61), (1_024, 256)] {
            let cut = Cut { above, keep };
            read += usize::from(check(&fixture(name), importer, cut));
            check(&copied, importer, cut);
        }
        assert_eq!(read, 3, "outlines of {name}");
        // Whatever is wrong with one of the files is said as if all were read at once.
        for path in shared::files(&copied) {
            let bytes = std::fs::read(&path).unwrap();
            for damaged in [&bytes[..bytes.len() / 2], b"", b"[\"\xff\"]", b"7"] {
                std::fs::write(&path, damaged).unwrap();
                check(&copied, importer, Cut::default());
            }
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn the_views_of_steps_may_be_damaged_though_they_stand_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.traj");
    let run = std::fs::read_to_string(fixture("swe-agent/masked.traj")).unwrap();
    let importer = import::importer("swe-agent").unwrap();
    let cut = Cut {
        above: 60,
        keep: 60,
    };
    let views: Vec<usize> = run.match_indices("\"query\"").map(|(at, _)| at).collect();
    assert!(views.len() > 1, "the fixture has views");
    for at in views {
        for (from, to) in [
            (": [", ": ["),
            ("{", "["),
            ("\"", "\"\\ud83d"),
            (":", ": \"x\" :"),
        ] {
            let (before, after) = run.split_at(at + "\"query\"".len());
            let changed = format!("{before}{}", after.replacen(from, to, 2));
            std::fs::write(&path, changed).unwrap();
            check(&path, importer, cut);
        }
    }
}

/// Expects the sessions of an archive or a database read one after the other to be those that are
/// read at once; says how many were read without their long texts.
#[track_caller]
pub(crate) fn check_each(path: &Path, cut: Cut) -> usize {
    let aside = tempfile::tempdir().unwrap();
    let read = |each: Option<Each>| {
        let mut each = each.expect("it is read so");
        let (mut written, mut is_cut) = (BTreeMap::new(), 0);
        while let Some(Part { recording, rests }) = each.next_session()? {
            let session = &recording.session;
            let mut bytes = Vec::new();
            is_cut += usize::from(rests.is_some());
            match rests {
                Some(mut rests) => native::write_whole(session, &mut rests, &mut bytes).unwrap(),
                None => native::write(session, &mut bytes).unwrap(),
            }
            written.insert(session.id().to_owned(), String::from_utf8(bytes).unwrap());
            let left = std::fs::read_dir(aside.path()).unwrap().count();
            assert_eq!(left, 0, "what is put aside is seen by nobody");
        }
        Ok((written, is_cut))
    };
    let got = each(path, None, 0, cut, aside.path()).and_then(read);
    let whole = import::load(path);
    match (got, whole) {
        (Ok((got, is_cut)), Ok(whole)) => {
            let of = |session: &Session| {
                let bytes = String::from_utf8(written(session)).unwrap();
                (session.id().to_owned(), bytes)
            };
            let expected: BTreeMap<String, String> = whole.iter().map(of).collect();
            assert_eq!(got, expected, "{}", path.display());
            is_cut
        }
        (Err(got), Err(expected)) => {
            assert_eq!(got.to_string(), expected.to_string());
            0
        }
        (got, whole) => panic!("{}: {got:?} and {whole:?}", path.display()),
    }
}

#[test]
fn the_samples_of_an_archive_say_the_same_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.eval");
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let whole = archive(method);
        std::fs::write(&path, &whole).unwrap();
        for (above, keep) in [(60, 60), (80, 61), (1_024, 256)] {
            assert!(check_each(&path, Cut { above, keep }) > 0);
        }
        for at in (0..whole.len()).step_by(211) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&path, &bytes).unwrap();
            check_damaged(&path);
        }
    }
}

/// Reads a damaged archive, in which the directory may say what is not so.
fn check_damaged(path: &Path) {
    let aside = tempfile::tempdir().unwrap();
    let Ok(Some(mut each)) = each(path, None, 0, Cut::default(), aside.path()) else {
        return;
    };
    while let Ok(Some(Part { recording, rests })) = each.next_session() {
        let out = &mut Vec::new();
        match rests {
            Some(mut rests) => native::write_whole(&recording.session, &mut rests, out).unwrap(),
            None => native::write(&recording.session, out).unwrap(),
        }
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
    let other = fixture("locomo/talk.json");
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
        "cline",
        "gemini-cli",
        "inspect",
        "mini-swe-agent",
        "openai-chat",
        "swe-agent",
        "tau-bench",
    ] {
        assert!(read[format] > 0, "no outline of {format}");
    }
}
