//! Sessions that are folders: read again from the native format as they were, and whatever may have
//! happened to their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proctor_formats::{self as import, ImportError};
use proctor_sessions::Session;
use serde_json::{Value, json};

use super::hostile::{again, file_of, odd_values, places, samples, without};
use super::{fixture, outline, read, round_trip, written};
use crate::shared;

/// The folders of ours that are a session, with their format.
const FOLDERS: &[(&str, &str)] = &[
    ("cline", "cline/task"),
    ("kimi-cli", "kimi-cli/session"),
    ("kimi-code", "kimi-code/session"),
    ("opencode", "opencode/first"),
    ("opencode", "opencode/storage"),
    ("openhands", "openhands/conversation"),
    ("request-log", "request-log/folder"),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    shared::files(folder)
}

/// A copy that may be damaged.
fn copy(folder: &Path) -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let target = temporary.path().join("a-task");
    for file in files(folder) {
        let to = target.join(file.strip_prefix(folder).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&file, to).unwrap();
    }
    (temporary, target)
}

/// Reads a folder: sessions that can be written and read again, or an error that names it.
#[track_caller]
fn load(name: &str, what: &str, folder: &Path) -> Result<Vec<Session>, ImportError> {
    let read = import::load(folder);
    match &read {
        Ok(sessions) => {
            assert!(!sessions.is_empty(), "{name}: {what}: no session");
            for session in sessions {
                again(name, what, session);
            }
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.contains("a-task"), "{name}: {what}: {shown}");
        }
    }
    read
}

fn outlines(sessions: &[Session]) -> Vec<String> {
    sessions.iter().map(outline).collect()
}

#[test]
fn every_fixture_is_read_again_from_native_as_it_was() {
    let mut formats = BTreeSet::new();
    for sample in samples() {
        let format = sample.importer.format();
        for session in read(format, &sample.bytes).expect("a good file") {
            round_trip(&session);
            // A session of Claude Code in the cloud is one of Claude Code.
            formats.extend([session.source().format.clone(), format.to_owned()]);
        }
    }
    for (format, folder) in FOLDERS {
        for session in import::load(&fixture(folder)).expect("a good folder") {
            round_trip(&session);
            formats.insert((*format).to_owned());
        }
    }
    let all: BTreeSet<String> = import::IMPORTERS.iter().map(|it| it.format().to_owned()).collect();
    assert_eq!(formats, all);
}

/// A second reading of what was written is the same in every byte.
#[test]
fn shared_every_recording_is_read_again_from_native_as_it_was() {
    let folders = ["sessions", "oracles/peers/sessions"].map(shared::folder);
    let paths = folders.into_iter().flatten().flat_map(|it| files(&it));
    let mut sessions = 0;
    for path in paths {
        for session in import::load(&path).unwrap_or_default() {
            let first = written(&session);
            let again = read("native", &first).expect("what was written can be read");
            assert!(written(&again[0]) == first, "{}", path.display());
            sessions += 1;
        }
    }
    assert!(sessions > 150 || shared::folder("sessions").is_none(), "{sessions} sessions");
}

#[test]
fn a_folder_whose_files_are_damaged_is_read_or_refused() {
    type Change = fn(&[u8]) -> Vec<u8>;
    let table: &[(&str, bool, Change)] = &[
        ("a byte-order mark", true, |it| [b"\xef\xbb\xbf", it].concat()),
        ("line ends of another system", true, |it| {
            String::from_utf8_lossy(it).replace('\n', "\r\n").into_bytes()
        }),
        ("nothing", false, |_| Vec::new()),
        ("half of it", false, |it| it[..it.len() / 2].to_vec()),
        ("zeros", false, |_| vec![0; 4096]),
        ("zeros behind the end", false, |it| [it, &[0; 512]].concat()),
        ("bad bytes", false, |it| {
            let mut bytes = it.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] = 0xff;
            bytes
        }),
        ("a number", false, |_| b"7".to_vec()),
        ("an empty list", false, |_| b"[]".to_vec()),
        ("an empty object", false, |_| b"{}".to_vec()),
        ("brackets", false, |_| ["[".repeat(100_000), "]".repeat(100_000)].concat().into_bytes()),
    ];
    for (format, name) in FOLDERS {
        let folder = fixture(name);
        let good = outlines(&import::load(&folder).expect("a good folder"));
        for file in files(&folder) {
            let (_temporary, copied) = copy(&folder);
            let target = copied.join(file.strip_prefix(&folder).unwrap());
            let bytes = std::fs::read(&file).unwrap();
            for (what, is_same, change) in table {
                std::fs::write(&target, change(&bytes)).unwrap();
                let what = format!("{}: {what}", target.display());
                let read = load(name, &what, &copied);
                if *is_same {
                    let read = read.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(read[0].source().format, *format_of(format, &read[0]));
                    assert_eq!(shapes(&outlines(&read)), shapes(&good), "{what}");
                }
            }
            std::fs::remove_file(&target).unwrap();
            let what = format!("without {}", target.display());
            let _ = load(name, &what, &copied);
            std::fs::create_dir(&target).unwrap();
            let what = format!("{} is a folder", target.display());
            let _ = load(name, &what, &copied);
        }
    }
}

/// Logs keep the name of the API they are read as.
fn format_of<'a>(format: &'a &str, session: &'a Session) -> &'a str {
    if *format == "request-log" { &session.source().format } else { format }
}

/// The messages; what was mended is counted, and may differ.
fn shapes(outlines: &[String]) -> Vec<String> {
    let told = |outline: &String| {
        let lines = outline.lines().filter(|it| !it.starts_with("warning"));
        lines.collect::<Vec<_>>().join("\n")
    };
    outlines.iter().map(told).collect()
}

#[test]
fn a_key_that_is_missing_or_odd_in_a_folder_is_no_panic() {
    for (_, name) in FOLDERS {
        let folder = fixture(name);
        let (_temporary, copied) = copy(&folder);
        let mut seen = BTreeSet::new();
        for file in files(&folder) {
            let target = copied.join(file.strip_prefix(&folder).unwrap());
            let bytes = std::fs::read(&file).unwrap();
            let values = serde_json::Deserializer::from_slice(&bytes).into_iter();
            let values: Vec<Value> = values.map(Result::unwrap).collect();
            let (mut read, mut tried) = (0, 0);
            for (turn, (place, pointer)) in places(&values).into_iter().enumerate() {
                // What one event shows, others need not show again.
                if !seen.insert(place.join("/")) {
                    continue;
                }
                let what = format!("{} without {}", target.display(), place.join("/"));
                std::fs::write(&target, file_of(&without(&values, &pointer))).unwrap();
                read += usize::from(load(name, &what, &copied).is_ok());
                tried += 1;
                for odd in odd_values(turn).into_iter().skip(2) {
                    let mut all = json!(values);
                    *all.pointer_mut(&pointer).unwrap() = odd.clone();
                    let what = format!("{} with {} = {odd}", target.display(), place.join("/"));
                    let all: Vec<Value> = serde_json::from_value(all).unwrap();
                    std::fs::write(&target, file_of(&all)).unwrap();
                    read += usize::from(load(name, &what, &copied).is_ok());
                    tried += 1;
                }
            }
            std::fs::write(&target, &bytes).unwrap();
            // Only what stands for a file as a whole may be refused.
            assert!(read * 10 >= tried * 8, "{}: {read} of {tried}", target.display());
        }
    }
}
