//! `proctor sessions import` of many files.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{fixture, model, read_use, result, text, user, written};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env_remove("PROCTOR_COUNTER")
        .args(arguments)
        .output()
        .unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Two recordings below the folder `many`, and something else in it.
fn many() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("many/deep");
    fs::create_dir_all(&deep).unwrap();
    fs::copy(fixture("claude-code/split-calls.jsonl"), deep.join("b.jsonl")).unwrap();
    fs::copy(fixture("goose/session.jsonl"), deep.join("c.jsonl")).unwrap();
    fs::write(folder.path().join("many/notes.txt"), "milk").unwrap();
    folder
}

#[test]
fn recordings_are_listed_without_being_read() {
    let folder = many();
    // A line in its middle is no JSON: nobody looks there.
    let head = user("u", "", "a").replacen('{', r#"{"timestamp":"2026-03-01T09:00:00Z","#, 1);
    let tail = user("v", "u", "b").replacen('{', r#"{"timestamp":"2026-03-02T10:00:00Z","#, 1);
    let middle = "{]\n".repeat(60_000);
    let long = format!("{head}\n{middle}{tail}\n");
    fs::write(folder.path().join("many/a.jsonl"), &long).unwrap();
    let task = folder.path().join("many/task");
    fs::create_dir(&task).unwrap();
    let history = "cline/task/api_conversation_history.json";
    fs::copy(fixture(history), task.join("api_conversation_history.json")).unwrap();

    let output = run(folder.path(), &["sessions", "import", "--list", "many"]);
    assert!(output.status.success(), "{output:?}");
    let size = |name: &str| fs::metadata(fixture(name)).unwrap().len();
    let expected = format!(
        "many/a.jsonl: claude-code, {} bytes, 2026-03-01T09:00:00Z to 2026-03-02T10:00:00Z\n\
         many/deep/b.jsonl: claude-code, {} bytes, 2026-03-01T09:00:01Z to 2026-03-01T09:00:16Z\n",
        long.len(),
        size("claude-code/split-calls.jsonl"),
    );
    let listed = said(&output.stdout);
    assert!(listed.starts_with(&expected), "{listed}\n{expected}");
    let rest: Vec<&str> = listed[expected.len()..].lines().collect();
    assert_eq!(rest.len(), 2, "{listed}");
    assert!(rest[0].starts_with("many/deep/c.jsonl: goose, "), "{listed}");
    assert!(rest[1].starts_with("many/task: cline, "), "{listed}");
    assert_eq!(said(&output.stderr), "passed over: 1 file of no known format\n");
    assert!(!folder.path().join("b.jsonl").exists());

    let missing =
        run(folder.path(), &["sessions", "import", "--list", "none.jsonl", "many/a.jsonl"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(said(&missing.stdout).starts_with("many/a.jsonl: "));
    assert!(said(&missing.stderr).contains("there is no file `none.jsonl`"));
}

#[test]
fn a_file_is_imported_as_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let big = "ab\\n\u{e9}\\u00e9".repeat(40);
    let mut lines = user("u0", "", "Look.");
    let mut parent = "u0".to_owned();
    for at in 0..40 {
        let (call, answer) = (format!("a{at}"), format!("r{at}"));
        let id = format!("t{at}");
        let blocks = [text(&format!("Reading {at}.")), read_use(&id)].join(",");
        let _ = write!(lines, "\n{}", model(&call, &parent, &at.to_string(), &blocks));
        let _ =
            write!(lines, "\n{}", result(&answer, &call, &id, &format!("{at}{big} /home/ada/x")));
        parent = answer;
    }
    let path = folder.path().join("long.jsonl");
    fs::write(&path, &lines).unwrap();

    let arguments = ["sessions", "import", "long.jsonl", "-o", "out", "--counter", "chars/4"];
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let sessions = proctor::session::import::load(&path).unwrap();
    let name = format!("{}.session.jsonl", sessions[0].id());
    let bytes = fs::read(folder.path().join("out").join(name)).unwrap();
    assert!(bytes == written(&sessions[0]), "written as another session");
    let line = said(&output.stdout);
    let chars: usize = sessions[0].texts().map(|text| text.chars().count().div_ceil(4)).sum();
    let shown =
        format!("81 messages, 40 calls, 40 tool uses, 40 results, 0 orphans, {chars} tokens");
    assert!(line.contains(&shown), "{line}\n{shown}");

    let redacted = ["sessions", "import", "long.jsonl", "-o", "shared", "--redact"];
    let output = run(folder.path(), &redacted);
    assert!(output.status.success(), "{output:?}");
    assert!(said(&output.stdout).ends_with("; redacted: home × 40\n"));
    let expected = proctor::session::redact::Redactor::new().session(&sessions[0]).unwrap();
    let name = format!("{}.session.jsonl", expected.id());
    let bytes = fs::read(folder.path().join("shared").join(name)).unwrap();
    assert!(bytes == written(&expected), "redacted in another way");

    let again = run(folder.path(), &arguments);
    assert_eq!(again.status.code(), Some(110), "{again:?}");
    assert!(said(&again.stderr).contains("is there already"));
}

#[test]
fn a_copy_of_a_recording_is_left_out() {
    let folder = many();
    let other = folder.path().join("many/other");
    fs::create_dir(&other).unwrap();
    fs::copy(fixture("goose/session.jsonl"), other.join("c.jsonl")).unwrap();
    let import = ["sessions", "import", "many", "-o", "out"];
    let output = run(folder.path(), &import);
    assert!(output.status.success(), "{output:?}");
    let err = said(&output.stderr);
    assert!(
        err.contains("left out: `many/other/c.jsonl` is a copy of `many/deep/c.jsonl`\n")
            && err.contains("wrote 2 sessions of 2 recordings to `out`; passed over: 2 files"),
        "{err}"
    );
    let strict = run(folder.path(), &[&import[..], &["--strict", "-f"]].concat());
    assert_eq!(strict.status.code(), Some(3), "{strict:?}");
}

#[test]
fn hidden_places_of_products_in_a_project_are_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    for (fixed, place) in [
        ("specstory/history.md", ".specstory/history/a.md"),
        ("aider/history.md", "sub/.aider.chat.history.md"),
        ("goose/session.jsonl", ".other/b.jsonl"),
    ] {
        fs::create_dir_all(project.join(place).parent().unwrap()).unwrap();
        fs::copy(fixture(fixed), project.join(place)).unwrap();
    }
    let list = ["sessions", "import", "--list", "project"];
    let listed = said(&run(folder.path(), &list).stdout);
    let files: Vec<_> = listed.lines().map(|line| line.split(',').next()).collect();
    let expected =
        ["project/.specstory/history/a.md: specstory", "project/sub/.aider.chat.history.md: aider"];
    assert_eq!(files, expected.map(Some));
    fs::remove_dir_all(project.join(".specstory")).unwrap();
    fs::remove_dir_all(project.join("sub")).unwrap();
    for arguments in [&list[..], &["run", "project"]] {
        let output = run(folder.path(), arguments);
        assert!(!output.status.success(), "{output:?}");
        let err = said(&output.stderr);
        assert!(err.contains("hidden folders in "), "{err}");
    }
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_database_that_this_build_cannot_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join(".local/share/opencode");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("opencode.db"), b"SQLite format 3\0").unwrap();
    let output = run(folder.path(), &["sessions", "--home", "."]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let err = said(&output.stderr);
    assert!(
        err.contains("opencode.db` is an SQLite database") && err.contains("--features sqlite"),
        "{err}"
    );
}

#[test]
fn a_folder_stands_for_all_recordings_in_it() {
    let folder = many();
    let deep = folder.path().join("many/deep");
    fs::write(deep.join("c.truth.json"), "{}").unwrap();
    // Claude Code leaves such a file where nothing was said.
    let titled = "{\"type\":\"summary\",\"summary\":\"A talk\",\"leafUuid\":\"u\"}\n";
    fs::write(folder.path().join("many/a.jsonl"), titled).unwrap();
    let scenario = "[[sessions]]\npath = \"many\"\n[[strategies]]\npreset = \"none\"\n";
    fs::write(folder.path().join("s.toml"), scenario).unwrap();
    let validated = run(folder.path(), &["doctor", "s.toml"]);
    let shown = said(&validated.stdout);
    assert!(validated.status.success(), "{}", said(&validated.stderr));
    assert!(shown.contains("many/deep/b.jsonl, many/deep/c.jsonl\n"), "{shown}");
    let by_file = run(folder.path(), &["run", "s.toml", "--out", "file"]);
    let by_flag = ["run", "--session", "many", "--strategy", "none"];
    let by_flag = run(folder.path(), &[&by_flag[..], &["--out", "flag"]].concat());
    for output in [by_file, by_flag] {
        let (out, err) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "{err}");
        assert!(out.starts_with("2 recorded sessions\n"), "{out}");
        // Neither what is no recording goes in silence, nor one in which nothing was said.
        assert!(err.contains("passed over: `") && err.contains("notes.txt` is not JSON"), "{err}");
        assert!(err.contains("a.jsonl` holds no conversation"), "{err}");
    }
    let sweep = ["sweep", "s.toml", "--strategy", "observation-masking"];
    let knob = ["-P", "clear_results.keep_last=1,3", "--out", "sweep"];
    let swept = run(folder.path(), &[&sweep[..], &knob].concat());
    let err = said(&swept.stderr);
    // So little can decide nothing; the folder was found all the same.
    assert!(err.contains("chosen on 2 sessions, tried on 0"), "{err}");
    fs::remove_dir_all(&deep).unwrap();
    let silent = run(folder.path(), &["run", "s.toml", "--out", "none"]);
    assert_eq!(silent.status.code(), Some(3), "{}", said(&silent.stdout));
    fs::remove_file(folder.path().join("many/a.jsonl")).unwrap();
    let empty = run(folder.path(), &["doctor", "s.toml"]);
    assert_eq!(empty.status.code(), Some(3));
    let err = said(&empty.stderr);
    assert!(
        err.contains("`s.toml`: line 2") && err.contains("there is no recording in the folder"),
        "{err}"
    );
    fs::remove_dir_all(folder.path().join("many")).unwrap();
    let gone = run(folder.path(), &["run", "s.toml"]);
    assert_eq!(gone.status.code(), Some(3));
    let err = said(&gone.stderr);
    assert!(err.contains("`s.toml`: line 2: there is no session `many`"), "{err}");
}

#[test]
fn the_sessions_of_agents_are_found_where_they_keep_them() {
    let home = tempfile::tempdir().unwrap();
    let put = |place: &str, from: &str, seconds: u64| {
        let path = home.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(fixture(from), &path).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    put(".claude/projects/p/a.jsonl", "claude-code/compaction.jsonl", 1_700_000_000);
    put(".qwen/projects/q/chats/b.jsonl", "qwen-code/chat.jsonl", 1_700_086_400);
    put(".qwen/projects/q/c.jsonl", "gemini-cli/older.json", 1_600_000_000);
    put(
        ".config/Code/User/workspaceStorage/w/chatSessions/d.json",
        "copilot-chat/chat.json",
        1_500_000_000,
    );
    fs::write(home.path().join(".qwen/projects/q/notes.md"), "# Notes").unwrap();
    // A list of projects names folders, which are not followed.
    put("elsewhere/p/a.jsonl", "claude-code/cleared.jsonl", 1);
    let projects = home.path().join(".local/share/crush/projects.json");
    fs::create_dir_all(projects.parent().unwrap()).unwrap();
    let elsewhere = home.path().join("elsewhere");
    fs::write(projects, format!(r#"{{"projects":[{{"path":{elsewhere:?}}}]}}"#)).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(".codex", home.path().join(".codex")).unwrap();
    let at = home.path().display().to_string();
    let shown = |words: &[&str]| {
        let output = run(home.path(), &[&["sessions", "--home", &at], words].concat());
        assert!(output.status.success(), "{}", said(&output.stderr));
        (said(&output.stdout), said(&output.stderr))
    };
    let (out, err) = shown(&["-n", "2"]);
    let starts: Vec<&str> = out.lines().map(|line| line.split(" bytes").next().unwrap()).collect();
    assert_eq!(starts.len(), 2, "{out}");
    assert!(
        starts[0].starts_with("2023-11-15 22:13  qwen-code       5 calls, 2 compactions, up to"),
        "{out}"
    );
    assert!(starts[1].starts_with("2023-11-14 22:13  claude-code"), "{out}");
    assert!(
        err.contains("2 older files not looked at") && err.contains("passed over: 1 file"),
        "{err}"
    );
    assert!(
        !cfg!(unix) || err.contains(".codex/sessions`: Too many levels of symbolic links"),
        "{err}"
    );
    let (json, _) = shown(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["recordings"].as_array().unwrap().len(), 4);
    assert_eq!(json["recordings"][0]["largest_prompt"], 1100);
    let none = run(home.path(), &["sessions", "--home", "nowhere"]);
    assert_eq!(none.status.code(), Some(4), "{}", said(&none.stderr));
}
