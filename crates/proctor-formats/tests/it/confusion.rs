//! Which importer takes which file of ours: `docs/reference/confusion.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use proctor_formats as import;
use proctor_formats::IMPORTERS;
use proctor_formats::file_info::format_of;
use proctor_sessions::Session;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::fixture;
use super::hostile::{Sample, samples};

const PAGE: &str = "\
# Which importer takes which file

The files in `tests/fixtures/` of `proctor-formats` before all importers, in their order: each file alone, plain and compressed (gzip,
Zstandard); folders in which files belong together, such as Kimi Code's sessions, BEAM's chats with their questions or Codex's rollouts
that go on from one another; and the databases in `fuzz/seeds/`. All are taken for their own format. The last column names importers that
find an answer of a model in a file where `--format` forces them: formats that have the same messages inside.

| files of | files | folders | databases | taken for it | taken for another | by force also read as |
|---|---:|---:|---:|---:|---:|---|
";

/// Databases, and the format of the sessions in them.
const DATABASES: &[(&str, &str)] = &[
    ("crush", "crush.db"),
    ("goose", "goose.db"),
    ("opencode", "opencode.db"),
    ("opencode", "opencode-2.db"),
    ("opencode", "opencode-listed.db"),
    ("pi", "openclaw.sqlite"),
];

/// What a file or folder is taken for, and all that is in a folder that is no session.
fn taken_for(path: &Path, found: &mut BTreeSet<String>) {
    if path.is_dir() && !import::is_session_folder(path) {
        for entry in std::fs::read_dir(path).unwrap() {
            taken_for(&entry.unwrap().path(), found);
        }
        return;
    }
    match import::load(path) {
        Ok(sessions) => found.extend(sessions.iter().map(|it| it.source().format.clone())),
        // Files beside a session.
        Err(error) if error.is_no_recording() => {}
        Err(error) => drop(found.insert(error.to_string())),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// The importers, other than its own, that find an answer in a file.
fn by_force(sample: &Sample) -> impl Iterator<Item = &'static str> {
    let calls = |session: &Session| session.calls().len();
    let others = IMPORTERS.iter().filter(|it| it.format() != sample.importer.format());
    let reads = others.filter(move |other| {
        let read = other.import(Path::new("some file"), &mut &sample.bytes[..]);
        read.is_ok_and(|sessions| sessions.iter().map(calls).sum::<usize>() > 0)
    });
    reads.map(import::Importer::format)
}

#[test]
fn every_file_is_taken_for_its_own_format_and_no_other() {
    let packed = tempfile::tempdir().unwrap();
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    let mut forced: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for sample in samples() {
        let own = sample.importer.format();
        *files.entry(own).or_default() += 1;
        let taken = IMPORTERS.iter().find(|it| it.detect(&sample.bytes));
        if taken.map(import::Importer::format) != Some(own) {
            wrong.push(format!("{} is taken for {taken:?}", sample.name()));
        }
        for (ending, bytes) in [("gz", gzip(&sample.bytes)), ("zst", zstd(&sample.bytes))] {
            let name = sample.path.file_name().unwrap().to_string_lossy();
            let path = packed.path().join(format!("{name}.{ending}"));
            std::fs::write(&path, bytes).unwrap();
            let taken = format_of(&path);
            if !matches!(taken, Ok(format) if format == own) {
                wrong.push(format!("{}.{ending} is taken for {taken:?}", sample.name()));
            }
        }
        forced.entry(own).or_default().extend(by_force(&sample));
    }
    let facts = include_str!("../../../../docs/reference/formats.md");
    let mut page = PAGE.to_owned();
    let mut formats: Vec<&str> = IMPORTERS.iter().map(import::Importer::format).collect();
    formats.sort_unstable();
    for own in formats {
        if !facts.contains(&format!("`{own}`")) {
            wrong.push(format!("`docs/reference/formats.md` says nothing of {own}"));
        }
        let mut folders = 0;
        for entry in std::fs::read_dir(fixture(own)).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                continue;
            }
            folders += 1;
            let mut found = BTreeSet::new();
            taken_for(&path, &mut found);
            let is_own = |it: &String| it == own || own == "request-log";
            if found.is_empty() || !found.iter().all(is_own) {
                wrong.push(format!("{} is taken for {found:?}", path.display()));
            }
        }
        let databases = DATABASES.iter().filter(|(format, _)| *format == own);
        for (_, name) in databases.clone() {
            let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
            let mut found = BTreeSet::new();
            taken_for(&seeds.join(name), &mut found);
            if cfg!(feature = "sqlite") && found != BTreeSet::from([own.to_owned()]) {
                wrong.push(format!("{name} is taken for {found:?}"));
            }
        }
        let (files, databases) = (files.remove(own).unwrap_or_default(), databases.count());
        let others = forced.remove(own).unwrap_or_default();
        let others: Vec<String> = others.iter().map(|it| format!("`{it}`")).collect();
        let (others, all) = (others.join(", "), files + folders + databases);
        writeln!(page, "| `{own}` | {files} | {folders} | {databases} | {all} | 0 | {others} |")
            .unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    crate::goldens::golden("../../docs/reference/confusion.md", &page);
}
