//! Which sessions a command line means, and which of them count as one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(crate::FIXTURES).join(name)
}

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .env_remove("PROCTOR_WINDOW")
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs the inputs in a folder; the ids of the sessions, each with the cluster that is named.
#[track_caller]
fn check(folder: &Path, inputs: &[&str], sessions: &Value, says: &str) {
    let run = folder.join("run");
    drop(fs::remove_dir_all(&run));
    let options = ["--strategy", "none", "--out", "run"];
    let output = proctor(folder, &[&["run"], inputs, &options].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(says), "{said}");
    let manifest = fs::read(run.join("run.json")).unwrap_or_else(|_| panic!("{said}"));
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let entries = manifest["sessions"].as_array().unwrap().iter();
    let found: Value = entries.map(|it| json!([it["id"], it["cluster"]])).collect();
    assert_eq!(&found, sessions);
}

/// The inputs are refused.
#[track_caller]
fn refused(folder: &Path, inputs: &[&str], says: &str) {
    let output = proctor(folder, &[&["run"], inputs].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(says), "{said}");
}

#[test]
fn side_chains_belong_to_their_main_session_and_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::copy(fixture("claude-code/side-chains.jsonl"), folder.join("s.jsonl")).unwrap();
    let (main, first, second) = ("s-d94208", "s-d94208-side-1", "s-d94208-side-2");
    let all = json!([[main, null], [first, main], [second, main]]);
    check(folder, &["s.jsonl"], &all, "complete");
    check(
        folder,
        &["s.jsonl", "--set", "side_chains=false"],
        &json!([[main, null]]),
        "left out: 2 sessions: they are side chains",
    );
    // Written into files of their own, they are the same sessions.
    let imported = proctor(folder, &["sessions", "import", "s.jsonl", "-o", "own"]);
    assert!(imported.status.success());
    let [main_entry, first_entry, second_entry] = [&all[0], &all[1], &all[2]];
    let in_files = json!([first_entry, second_entry, main_entry]);
    check(folder, &["own"], &in_files, "complete");
}

#[test]
fn a_file_that_is_given_twice_leaves_no_empty_session() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["a.jsonl", "b.jsonl"] {
        fs::copy(fixture("claude-code/side-chains.jsonl"), folder.join(name)).unwrap();
    }
    let (main, first, second) = ("a-d94208", "a-d94208-side-1", "a-d94208-side-2");
    check(
        folder,
        &["a.jsonl", "b.jsonl"],
        &json!([[main, null], [first, main], [second, main]]),
        "left out: 3 sessions: all their calls stand in other sessions of the run",
    );
}

#[test]
fn a_recording_beside_the_sessions_that_were_written_from_it_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let recorded = folder.join("rec");
    fs::create_dir(&recorded).unwrap();
    let log = fixture("openai-chat/conversations.jsonl");
    fs::copy(log, recorded.join("conversations.jsonl")).unwrap();
    assert!(proctor(folder, &["sessions", "import", "rec", "-o", "rec"]).status.success());
    check(
        folder,
        &["rec"],
        &json!([["conversations-3d974d-1", null], ["conversations-3d974d-2", null]]),
        "conversations.jsonl`: its sessions were written beside it",
    );
}

#[test]
fn a_share_of_a_short_recording_is_no_window() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::copy(fixture("claude-code/split-calls.jsonl"), folder.join("s.jsonl")).unwrap();
    let share = ["s.jsonl", "--window", "fit:0.6"];
    refused(folder, &share, "no session is left: left out 1: their windows (fit:0.6)");
    let sessions = json!([["s-05e8fc", null]]);
    let no_floor = [&share[..], &["--set", "window.floor=0"]].concat();
    check(folder, &no_floor, &sessions, "complete");
    check(folder, &["s.jsonl", "--window", "300"], &sessions, "complete");
    // A sample is drawn from those that are not left out; a generated session has the length that was asked for.
    let made = proctor(folder, &["sessions", "generate", "code-review", "--rounds", "8"]);
    assert!(made.status.success());
    let made = String::from_utf8(made.stdout).unwrap();
    let made = made.split("  ").next().unwrap();
    for seed in 1..=4 {
        let seed = format!("seed={seed}");
        let line = [&share[..], &["--session", made, "--sample", "1", "--set", &seed]].concat();
        let drawn = json!([["code-review-s1-r8", null]]);
        check(folder, &line, &drawn, "left out: 1 session: their windows (fit:0.6)");
    }
}

#[test]
fn inputs_that_mean_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("odd.jsonl"), "{\"x\": 1}\n").unwrap();
    fs::write(folder.join("empty.jsonl"), "\n").unwrap();
    refused(
        folder,
        &["odd.jsonl"],
        "cannot tell the format of `odd.jsonl`: it is JSON with the keys `x`",
    );
    refused(folder, &["empty.jsonl"], "empty.jsonl` is empty");
    refused(folder, &["a.toml", "b.toml"], "`a.toml` and `b.toml` are both taken for scenarios");
    refused(folder, &["-j", "0"], "it must be a whole number of at least 1");
    refused(
        folder,
        &["--offline", "--replay", "record"],
        "`record` asks models for all answers again, and `--offline` asks none",
    );
}

/// A recording of Claude Code with its last line cut.
fn cut(name: &str) -> String {
    let text = fs::read_to_string(fixture(name)).unwrap();
    let end = text.trim_end().len();
    text[..end - 9].to_owned()
}

/// A folder with one good recording, and files that are none or cannot be read.
fn mixed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("all").join(name);
    fs::create_dir_all(at("closed")).unwrap();
    fs::write(at("good.jsonl"), cut("claude-code/compaction.jsonl")).unwrap();
    fs::write(at("empty.jsonl"), "").unwrap();
    fs::write(at("notes.txt"), "not a recording").unwrap();
    fs::write(at("torn.json"), "[{\"role\":\"user\",\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("self.jsonl", at("self.jsonl")).unwrap();
    folder
}

#[cfg(unix)]
#[test]
fn what_cannot_be_read_in_a_folder_is_named_and_counted_and_the_rest_runs() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = mixed();
    let folder = folder.path();
    let all = json!([["good-502c15", null]]);
    check(folder, &["all"], &all, "all/self.jsonl`: Too many levels of symbolic links");
    for says in [
        "all/empty.jsonl` is empty",
        "all/notes.txt` is not JSON",
        "all/torn.json`: line 2: the file ends within this line; the file was cut",
        "left out: 2 sessions: their files cannot be read (`--set strict=true` makes that an error)",
    ] {
        check(folder, &["all"], &all, says);
    }
    // A strict run takes what is no recording for what it is.
    let knob = ["-P", "clear_results.keep_last=1,2"];
    for (command, more) in
        [("run", &[][..]), ("run", &["--dry-run"]), ("doctor", &[]), ("sweep", &knob)]
    {
        let arguments =
            [command, "all", "--set", "strict=true", "--strategy", "observation-masking"];
        let output = proctor(folder, &[&arguments[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command}: {said}");
        assert!(said.contains("all/self.jsonl`"), "{command}: {said}");
    }
    fs::remove_file(folder.join("all/self.jsonl")).unwrap();
    refused(folder, &["all", "--set", "strict=true"], "all/torn.json`: line 2: the file ends");
    refused(folder, &["all/torn.json"], "all/torn.json`: line 2: the file ends");
    fs::remove_file(folder.join("all/torn.json")).unwrap();
    check(folder, &["all", "--set", "strict=true"], &all, "complete");

    let closed = ["all/closed", "all/good.jsonl"].map(|name| folder.join(name));
    fs::copy(fixture("claude-code/compaction.jsonl"), folder.join("all/open.jsonl")).unwrap();
    for path in &closed {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    if fs::read(&closed[1]).is_ok() {
        println!("skipped: this user reads files without permission");
        return;
    }
    let all = json!([["open-fc4d41", null]]);
    check(folder, &["all"], &all, "all/good.jsonl`: Permission denied");
    check(folder, &["all"], &all, "all/closed`: Permission denied");
    refused(folder, &["all/good.jsonl"], "all/good.jsonl`");
    refused(folder, &["all/closed"], "all/closed");
}

#[test]
fn a_cut_recording_is_part_of_trust_wherever_it_is_printed() {
    let folder = mixed();
    let folder = folder.path();
    let says = "the last line was cut and is left out";
    let run = ["run", "all/good.jsonl", "--strategy", "none", "--strategy", "tail@2000"];
    let outputs = ["--out", "one", "-o", "page.html", "-o", "report.md"];
    let first = proctor(folder, &[&run[..], &outputs].concat());
    let second = proctor(folder, &[&run[..], &["--out", "two"]].concat());
    assert!(first.status.success() && second.status.success(), "{first:?}");
    let words = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    };
    assert!(words(&first.stdout).contains(says), "{first:?}");
    for file in ["page.html", "report.md"] {
        let text = words(&fs::read(folder.join(file)).unwrap());
        assert!(text.contains(says), "{file}");
    }
    for again in [&["report", "one"][..], &["compare", "one", "two"]] {
        let output = proctor(folder, again);
        assert!(words(&output.stdout).contains(says), "{again:?}: {output:?}");
    }
}
