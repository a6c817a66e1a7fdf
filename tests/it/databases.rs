//! Databases of products through the program.
//!
//! `.ci/run optional` runs these with the feature `sqlite`.

use std::path::PathBuf;
use std::process::Command;

use proctor::session::import;

fn seeds() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds"))
}

/// What `proctor sessions import` says of a database of the seeds of fuzzing, and the bytes of what it wrote.
fn imported(seed: &str) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(seeds().join(seed), folder.path().join("kept.db")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .args(["sessions", "import", "kept.db", "-o", "out", "--counter", "chars/4"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut names: Vec<String> = std::fs::read_dir(folder.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // What was written is a session that any command takes.
    for name in &names {
        import::load(&folder.path().join("out").join(name)).unwrap();
    }
    (String::from_utf8(output.stdout).unwrap(), names)
}

#[test]
fn the_program_imports_databases() {
    let (line, names) = imported("opencode.db");
    assert!(line.starts_with("kept.db: opencode, 2 sessions,"), "{line}");
    assert_eq!(names.len(), 2, "{names:?}");
    let (line, names) = imported("goose.db");
    assert!(line.starts_with("kept.db: goose, 2 sessions,"), "{line}");
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn each_session_of_a_database_is_listed_the_newest_first() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join(".local/share/opencode");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(seeds().join("opencode-listed.db"), place.join("opencode.db")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["sessions", "--json", "--home"])
        .arg(home.path())
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let listed = json["recordings"].as_array().unwrap().iter();
    let listed: Vec<String> = listed
        .map(|one| format!("{} {} {}", one["written"], one["session"], one["sessions"]))
        .collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].starts_with("\"2026-01-02T09:00:00Z\" \"ses_b-"), "{listed:?}");
    assert!(listed[1].starts_with("\"2026-01-01T09:00:00Z\" \"ses_a-"), "{listed:?}");
}
