//! The program, as its user meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tempfile::TempDir;

use crate::shared;

pub(crate) fn proctor() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["PROCTOR_COUNTER", "PROCTOR_SEED", "PROCTOR_WINDOW", "COLUMNS", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    proctor().current_dir(folder).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Files below a folder with their content, so that a test can say that nothing changed.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

const SMALL: &str = "name = 'small'\ncontrols = false\n[window]\ntokens = 12_000\n\
    [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, rounds = 14 }\ncount = 4\n\
    [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.keep_last = 2 }\n\
    [[strategies]]\npreset = 'learn-claude-code-s06'\n\
    [[strategies]]\npreset = 'tail@4000'\n";

fn small() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

/// Cells are written in the order in which threads finish them.
fn sorted_cells(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("cells.jsonl")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn the_quick_start_shows_a_table_and_a_second_run_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path(), &["run"]);
    assert!(first.status.success(), "{}", stderr(&first));
    let table = stdout(&first);
    for word in ["none", "observation-masking", "learn-claude-code-s06", "tail@"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
    let width = table.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(width <= 80, "{width} columns:\n{table}");
    let second = run(folder.path(), &["run"]);
    assert_eq!(stdout(&second), table);
    assert!(stderr(&second).contains("is complete: all 192 cells were done before"));

    // Every strategy but `none` fires on at least half of the sessions.
    let run_folder = fs::read_dir(folder.path().join("reports")).unwrap().next().unwrap();
    let cells = sorted_cells(&run_folder.unwrap().path());
    let mut fired = std::collections::BTreeMap::<String, usize>::new();
    for line in &cells {
        let cell: serde_json::Value = serde_json::from_str(line).unwrap();
        let events = cell["compactions"].as_array().map_or(0, Vec::len);
        *fired.entry(cell["strategy"].as_str().unwrap().to_owned()).or_default() +=
            usize::from(events > 0);
    }
    for (strategy, fired) in fired {
        let passive = matches!(&*strategy, "none" | "full" | "empty");
        assert!(passive == (fired == 0) && (passive || fired >= 6), "{strategy}: {fired} of 12");
    }
}

/// So many different whole numbers from 1 to `end`, `end` excluded.
fn by_lot(seed: u64, many: usize, end: usize) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut numbers: Vec<usize> = (1..end).collect();
    for at in 0..many {
        let left = (numbers.len() - at) as u64;
        let other = at + usize::try_from(random.next_u64() % left).unwrap();
        numbers.swap(at, other);
    }
    numbers.truncate(many);
    numbers
}

#[test]
fn a_run_that_is_killed_goes_on_where_it_was() {
    let folder = small();
    let whole = run(folder.path(), &["run", "small.toml", "--out", "whole", "-j", "1"]);
    assert!(whole.status.success(), "{}", stderr(&whole));
    let expected = sorted_cells(&folder.path().join("whole"));
    assert_eq!(expected.len(), 20);
    // Where it is killed: after so many cells, by lot. The seed is fixed, so that a failure can be
    // run again; another one moves all five.
    for kill_after in by_lot(0x6b69_6c6c, 5, expected.len()) {
        let name = format!("killed-{kill_after}");
        let mut child = start(folder.path(), &["run", "small.toml", "--out", &name, "-j", "1"]);
        let cells = folder.path().join(&name).join("cells.jsonl");
        let done =
            || fs::read(&cells).map_or(0, |text| text.split(|byte| *byte == b'\n').count() - 1);
        while done() < kill_after && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What a crash in the middle of a write would leave.
        let mut bytes = fs::read(&cells).unwrap();
        bytes.extend_from_slice(b"{\"session\":\"code-rev");
        fs::write(&cells, bytes).unwrap();
        let again = run(folder.path(), &["run", "small.toml", "--out", &name, "-j", "2"]);
        assert!(again.status.success(), "{}", stderr(&again));
        assert_eq!(sorted_cells(&folder.path().join(&name)), expected, "after {kill_after}");
        assert_eq!(stdout(&again), stdout(&whole));
    }
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    proctor()
        .current_dir(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn ctrl_c_keeps_what_is_done_and_says_how_to_go_on() {
    let folder = small();
    let arguments = ["run", "small.toml", "--out", "out", "-j", "1"];
    let child = proctor()
        .current_dir(folder.path())
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let cells = folder.path().join("out/cells.jsonl");
    while fs::metadata(&cells).map_or(0, |data| data.len()) == 0 {
        std::thread::yield_now();
    }
    crate::support::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    // On a fast machine the run may have been over before the signal came.
    if output.status.code() == Some(130) {
        assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));
    } else {
        assert!(output.status.success());
    }
    let again = run(folder.path(), &arguments);
    assert!(again.status.success());
    assert_eq!(sorted_cells(&folder.path().join("out")).len(), 20);
}

/// The strategy's program waits for a pipe into which nobody writes.
#[cfg(unix)]
#[test]
fn ctrl_c_has_an_answer_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let child = proctor()
        .current_dir(folder.path())
        .args(["run", "--strategy-cmd", &format!("cat {}", pipe.display())])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opening it ends once the strategy's program has opened the other end.
    let _writer = fs::File::options().write(true).open(&pipe).unwrap();
    crate::support::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "interrupted: nothing was run\n");
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn ctrl_c_ends_a_sweep_as_it_ends_a_run() {
    let folder = small();
    let sweep = |out| {
        let mut command = proctor();
        command.current_dir(folder.path());
        command.args(["sweep", "small.toml", "--strategy", "observation-masking"]);
        command.args(["-P", "clear_results.keep_last=1..40:1", "-j", "1"]);
        command.args(["--out", out]);
        command
    };
    let mut child = sweep("out").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let tune = folder.path().join("out/tune");
    let has_cells = || {
        let mut runs = fs::read_dir(&tune).into_iter().flatten().flatten();
        runs.any(|run| fs::metadata(run.path().join("cells.jsonl")).is_ok_and(|it| it.len() > 0))
    };
    while !has_cells() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::yield_now();
    }
    crate::support::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("the same command goes on"), "{said}");
    for out in ["out", "whole"] {
        let output = sweep(out).output().unwrap();
        // Four sessions are too few to choose a setting.
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    }
    let results = |out: &str| {
        let files = tree(&folder.path().join(out)).into_iter();
        let files = files.filter(|(path, _)| path.ends_with("cells.jsonl"));
        files.map(|(_, bytes)| bytes).collect::<Vec<_>>()
    };
    assert!(results("out") == results("whole"));
}

#[test]
fn a_default_strategy_that_does_not_fit_the_window_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["run", "--window", "12k", "--sample", "1"]);
    let said = stderr(&ran);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("which has 12000") && said.contains("is left out"), "{said}");
}

#[test]
fn help_exits_0_and_a_call_without_a_command_2() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code) in
        [(&["--help"][..], 0), (&["run", "--help"], 0), (&["--version"], 0), (&[], 2)]
    {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn an_old_name_is_an_error_that_says_the_line_of_today() {
    let folder = tempfile::tempdir().unwrap();
    for (typed, old, today) in [
        (
            "gate 'my run' --baseline main",
            "`proctor gate` is",
            "`proctor compare --gate 'my run' --baseline main`",
        ),
        (
            "run s.toml --seed 3 --counter=chars/4",
            "`proctor run` has no flag `--seed`",
            "write `--set seed=…`",
        ),
        ("view reports/run", "`proctor view` is", "`proctor report --serve reports/run`"),
    ] {
        let words = typed.replace("my run", "my\t").replace('\'', "");
        let words: Vec<String> = words.split(' ').map(|word| word.replace('\t', " run")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = run(folder.path(), &words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{typed}: {said}");
        assert!(said.contains(old) && said.contains(today), "{typed}: {said}");
    }
}

#[test]
fn a_setting_can_come_from_a_flag_the_environment_or_the_file() {
    let folder = small();
    let counter = |command: &mut Command| {
        let output = command.current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find_map(|line| line.split_once(" is valid: ")).unwrap().1.to_owned()
    };
    let validate = || {
        let mut command = proctor();
        command.args(["doctor", "small.toml"]);
        command
    };
    assert!(counter(&mut validate()).starts_with("counter o200k, window 12000 tokens"));
    assert!(counter(validate().env("PROCTOR_COUNTER", "chars/4")).starts_with("counter chars/4"));
    assert!(
        counter(validate().env("PROCTOR_COUNTER", "chars/4").args(["--set", "counter=o200k"]))
            .starts_with("counter o200k")
    );
    assert!(counter(validate().args(["--window", "fit:0.5"])).contains("window fit:0.5"));
}

#[test]
fn a_starter_scenario_is_written_once_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["init"]).status.success());
    let again = run(folder.path(), &["init"]);
    assert_eq!(again.status.code(), Some(110));
    assert!(stderr(&again).contains("is there already"));
    assert!(run(folder.path(), &["doctor", "proctor.toml"]).status.success());
    let ran = run(folder.path(), &["run", "proctor.toml", "-o", "out.md", "-o", "out.json"]);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let markdown = fs::read_to_string(folder.path().join("out.md")).unwrap();
    assert!(markdown.contains("mask-then-summarise"));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(json["format"], "proctor-report");
}

#[test]
fn a_scenarios_own_strategy_is_named_and_the_next_command_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = SMALL.replace(
        "preset = 'observation-masking'\n",
        "preset = 'observation-masking'\nname = 'ours'\n",
    );
    let scenario = scenario.replace("controls = false\n", "");
    fs::write(folder.path().join("small.toml"), scenario).unwrap();
    let typed = ["--strategy", "ours[keep_last=3]", "--window", "24k"];
    let ran = run(folder.path(), &[&["run", "small.toml"][..], &typed].concat());
    assert!(ran.status.success(), "{}", stderr(&ran));
    let screen = stdout(&ran);
    assert!(screen.contains("  ours[keep_last=3] "), "{screen}");
    let (_, next) = screen.split_once("Next ").unwrap();
    let next = next.replace("\\\n", " ");
    let next: Vec<&str> = next.split_whitespace().collect();
    let next = next.join(" ");
    let wanted =
        "proctor sweep small.toml --window 24k --strategy 'ours[clear_results.keep_last=3]'";
    assert!(next.starts_with(wanted), "{next}");
    // A shell takes it as it is printed.
    let words = next.replace('\'', "");
    let words: Vec<&str> = words.split(' ').skip(1).collect();
    let swept = run(folder.path(), &words);
    assert!(swept.status.success(), "{}", stderr(&swept));
}

#[test]
fn the_next_command_names_a_presets_file_and_keeps_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = SMALL.replace("controls = false\n", "");
    let preset = "[[stage]]\nkind = 'clear_results'\nkeep_last = 2\n";
    fs::write(folder.path().join("small.toml"), scenario).unwrap();
    fs::write(folder.path().join("mine.toml"), preset).unwrap();
    let typed = "run small.toml --window 24k --strategy mine.toml --set seed=3 --set repeats=2 --set sizes=counted";
    let typed: Vec<&str> = typed.split(' ').collect();
    let ran = run(folder.path(), &typed);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let screen = stdout(&ran);
    assert!(screen.contains("\nLost   "), "{screen}");
    let next = |screen: &str| -> Vec<String> {
        let (_, next) = screen.split_once("Next ").unwrap();
        let next = next.replace("\\\n", " ");
        next.split_whitespace().map(str::to_owned).collect()
    };
    let settings = "small.toml --window 24k --set seed=3 --set repeats=2 --set sizes=counted --strategy mine.toml";
    let mut words = next(&screen);
    let wanted = format!("proctor sweep {settings}");
    assert_eq!(words.join(" "), wanted);
    // The sweep asks for a run.
    {
        let typed: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let swept = run(folder.path(), &typed);
        assert!(swept.status.success(), "{}", stderr(&swept));
        words = next(&stdout(&swept));
    }
    let wanted = format!("proctor run {settings} -o report.html");
    assert_eq!(words.join(" "), wanted);
}

#[test]
fn an_address_without_a_scheme_is_no_name_of_a_model() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["localhost:8000/v1", "localhost", "host/v1"] {
        let model = format!("openai:m@{address}");
        let output = run(folder.path(), &["run", "--dry-run", "--graded", &model, "--usd", "1"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let hint = format!("write `openai:MODEL@http://{address}`");
        assert!(stderr(&output).contains(&hint), "{}", stderr(&output));
    }
}

#[test]
fn generated_sessions_are_read_back_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let made = run(
        folder.path(),
        &["sessions", "generate", "code-review", "--rounds", "8", "--seed", "5"],
    );
    assert!(made.status.success(), "{}", stderr(&made));
    let path = stdout(&made).split("  ").next().unwrap().to_owned();
    assert!(folder.path().join(&path).is_file());
    let ran = run(
        folder.path(),
        &[
            "run",
            "--session",
            &path,
            "--strategy",
            "observation-masking[clear_results.keep_last=1]",
        ],
    );
    assert!(ran.status.success(), "{}", stderr(&ran));
    let screen = stdout(&ran);
    // The model of the quick start is not that of other sessions.
    assert!(screen.contains("Sure?") && !screen.contains("Full history costs"), "{screen}");
}

#[test]
fn an_encrypted_compaction_is_no_failure_and_a_recorded_prompt_is_never_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = |name: &str| format!("{}/{name}", crate::FIXTURES);
    let (encrypted, readable) = (fixture("codex/rollout.jsonl"), fixture("pi/tree.jsonl"));
    // The report as JSON, and the marks of a row.
    let run = |sessions: &[&str], more: &[&str]| {
        let sessions = sessions.iter().flat_map(|path| ["--session", path]);
        let ran = proctor()
            .current_dir(folder.path())
            .arg("run")
            .args(sessions)
            .args(["--strategy", "recorded", "--max-error-rate", "0"])
            .args(["-o", "report.json"])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        let text = fs::read_to_string(folder.path().join("report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let marks = |report: &serde_json::Value, strategy: &str| {
        let rows = report["sections"][0]["table"]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == strategy).unwrap();
        let marks = row["marks"].as_array().unwrap().iter();
        let marks: Vec<&str> = marks.map(|it| it.as_str().unwrap()).collect();
        format!("{} {}", marks.join(", "), row["ranked"])
    };
    let both = [encrypted.as_str(), readable.as_str()];
    let report = run(&both, &["--strategy", "tail@recorded"]);
    let expected = "not measurable in 1 of 2 sessions false";
    assert_eq!(marks(&report, "recorded"), expected);
    assert_eq!(marks(&report, "tail@recorded"), expected);
    let trust = report["trust"].as_str().unwrap();
    assert!(trust.contains("Prices unknown (some-codex): "), "{trust}");
    let coverage = &report["coverage"];
    assert_eq!(coverage["not_measurable"], 2, "{coverage}");
    assert_eq!(coverage["failed"], 0, "{coverage}");
    let text = report.to_string();
    let why = "not measurable: the product's own compaction is encrypted";
    assert!(text.contains(why), "{text}");
    // Alone it leaves no number, and is no error either.
    assert_eq!(marks(&run(&both[..1], &[]), "recorded"), "not measurable false");
    // The window is a tenth of what the prompts need: they were sent all the same.
    let share = ["--window", "fit:0.1", "--set", "window.floor=0"];
    let report = run(&both[1..], &share);
    let expected = "in the product's own window: 1 of 3 prompts over this one false";
    assert_eq!(marks(&report, "recorded"), expected);
}

#[test]
fn every_strategy_is_listed_and_shows_its_knobs() {
    let folder = tempfile::tempdir().unwrap();
    let names = stdout(&run(folder.path(), &["strategies"]));
    for (preset, _) in proctor::strategy::preset::PRESETS {
        let is_name = |word: &str| word.trim_end_matches(['=', '~', '*', ',']) == *preset;
        assert!(names.split_whitespace().any(is_name), "{preset}\n{names}");
    }
    let listed = stdout(&run(folder.path(), &["strategies", "--all"]));
    for name in [
        "none",
        "observation-masking",
        "learn-claude-code-s06",
        "tail@N",
        "aloop-deletion                   outline  AgenticLoop's simplest",
    ] {
        assert!(listed.contains(name), "{name} is missing in\n{listed}");
    }
    let shown = stdout(&run(folder.path(), &["strategies", "show", "learn-claude-code-s06"]));
    for words in [
        "fidelity = \"close\"\nmissing = \"",
        "keep_last = 3",
        "input_first_chars = 80000",
        "placeholder (text",
    ] {
        assert!(shown.contains(words), "{words} is missing in\n{shown}");
    }
}

#[test]
fn a_name_without_a_preset_is_found_with_the_nearest_one() {
    let folder = tempfile::tempdir().unwrap();
    for (words, found) in [
        (&["inspect"][..], "inspect-edit"),
        (&["microsoft"], "agent-framework"),
        (&["autogen"], "autogen-buffered"),
        (&["crewai"], "crewai "),
        (&["zed"], "zed "),
        (&["llama-index"], "nearest is `langchain-trim`"),
        (&["Agents", "SDK"], "nearest is `openai-compact`"),
    ] {
        let said = stdout(&run(folder.path(), &[&["strategies", "find"], words].concat()));
        assert!(said.contains(found), "{words:?}:\n{said}");
    }
    let listed = stdout(&run(folder.path(), &["strategies", "--all"]));
    assert!(!listed.contains("nearest is"), "{listed}");
    for (words, said) in [
        (["strategies", "show", "zedd"], "error: unknown strategy `zedd`, did you mean `zed`?"),
        (
            ["run", "--strategy", "mine.py"],
            "hint: `--strategy-cmd 'python3 mine.py'` takes a program",
        ),
    ] {
        let output = run(folder.path(), &words);
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn shared_claude_code_recordings_run_through_the_program() {
    let Some(recordings) = shared::folder("sessions/claude-code") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(recordings).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10);
    for (at, file) in files.iter().enumerate() {
        let out = format!("run-{at}");
        let file = file.to_str().unwrap();
        let output = run(
            folder.path(),
            &[
                "run",
                "--session",
                file,
                "--out",
                &out,
                "--strategy",
                "none",
                "--strategy",
                "learn-claude-code-s06",
                "--strategy",
                "observation-masking",
            ],
        );
        assert!(output.status.success(), "{file}: {}", stderr(&output));
        let table = stdout(&output);
        let heads = table.lines().find(|line| line.contains("actions"));
        assert!(!heads.unwrap().contains("facts"), "{file}:\n{table}");
        for line in sorted_cells(&folder.path().join(&out)) {
            let cell: serde_json::Value = serde_json::from_str(&line).unwrap();
            let strategy = cell["strategy"].as_str().unwrap();
            if strategy == "empty" {
                continue;
            }
            let rejected = cell["violations"].as_array().is_some_and(|violations| {
                violations.iter().any(|violation| violation["level"] == "rejected")
            });
            assert!(!rejected, "{file}: {line}");
            let wanted: u64 = cell["action_support"]["wanted"]
                .as_array()
                .unwrap()
                .iter()
                .map(|wanted| wanted.as_u64().unwrap())
                .sum();
            assert!(wanted > 0, "{file}: no atom was wanted");
        }
    }
}

#[test]
fn a_preset_without_a_guard_is_broken_where_its_guarded_twin_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "name = 'twins'\ncontrols = false\n[window]\ntokens = 40_000\n\
        [[sessions]]\nsynthetic = { family = 'feature-phases', seed = 1, rounds = 80 }\n\
        [[strategies]]\npreset = 'learn-claude-code-s08'\n\
        [[strategies]]\npreset = 'learn-claude-code-s08-unguarded'\n";
    fs::write(folder.path().join("twins.toml"), scenario).unwrap();
    let output = run(folder.path(), &["run", "twins.toml", "--out", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).matches('✗').count(), 1);
    let mut rejected: Vec<(String, usize)> = Vec::new();
    for line in sorted_cells(&folder.path().join("out")) {
        let cell: serde_json::Value = serde_json::from_str(&line).unwrap();
        let violations = cell["violations"].as_array();
        let levels = violations.into_iter().flatten().map(|it| &it["level"]);
        let count = levels.filter(|level| **level == "rejected").count();
        let name = cell["strategy"].as_str().unwrap();
        if name.starts_with("learn") {
            rejected.push((name.to_owned(), count));
        }
    }
    rejected.sort();
    let [(_, guarded), (_, unguarded)] = &rejected[..] else {
        panic!("{rejected:?}");
    };
    assert_eq!(*guarded, 0);
    assert!(*unguarded > 0);
}

const CHAT: &str = r#"[{"role":"user","content":"What time is it?"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c","content":"noon"},
{"role":"assistant","content":"Noon."}]"#;

/// The names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let name =
        |(path, _): &(PathBuf, Vec<u8>)| path.file_name().unwrap().to_string_lossy().into_owned();
    tree(folder).iter().map(name).collect()
}

#[test]
fn recordings_are_imported_one_line_a_file_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let recordings = folder.path().join("recordings");
    fs::create_dir_all(recordings.join("deep/.hidden")).unwrap();
    for (name, text) in [
        ("chat.json", CHAT),
        ("broken.json", "[{\"role\":\"user\",\n"),
        ("notes.txt", "not a recording"),
        ("none.json", r#"{"sessionId":"s","projectHash":"p","startTime":"t","messages":[]}"#),
        ("deep/two.jsonl", &format!("[{}]", [CHAT, CHAT].join(",")).replace('\n', "")),
        ("deep/.hidden/chat.json", CHAT),
    ] {
        fs::write(recordings.join(name), text).unwrap();
    }
    let arguments =
        ["sessions", "import", "recordings", "absent.json", "-o", "out", "--counter", "chars/4"];
    let output = run(folder.path(), &arguments);
    let (lines, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(3), "{said}");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(
        lines,
        [
            "recordings/chat.json: openai-chat, 1 session, 4 messages, 2 calls, 1 tool use, \
             1 result, 0 orphans, 9 tokens, 0 compactions; not recorded: system prompt and tools",
            "recordings/deep/two.jsonl: openai-chat, 2 sessions, 8 messages, 4 calls, 2 tool uses, \
             2 results, 0 orphans, 18 tokens, 0 compactions; not recorded: system prompt and tools; \
             repeated: all of it stands in session `chat-c8f735`, all of it stands in session `chat-c8f735`",
        ],
        "{said}"
    );
    for words in [
        "`recordings/broken.json`: line 2: the file ends within this line",
        "passed over: `recordings/notes.txt` is not JSON",
        "passed over: `recordings/none.json` holds no conversation",
        "there is no file `absent.json`",
        " hint: check the path",
    ] {
        assert!(said.contains(words), "{said}\n\ndoes not say\n\n{words}");
    }
    let written = tree(&folder.path().join("out"));
    assert_eq!(written.len(), 3);
    let again = run(folder.path(), &["sessions", "import", "recordings/chat.json", "-o", "out"]);
    assert_eq!(again.status.code(), Some(110));
    assert!(stderr(&again).contains("is there already"), "{}", stderr(&again));
    let forced = ["sessions", "import", "recordings/chat.json", "-o", "out", "--force"];
    assert!(run(folder.path(), &forced).status.success());
    assert_eq!(tree(&folder.path().join("out")), written);
    let session = names(&folder.path().join("out")).remove(0);
    let onto_itself = ["sessions", "import", &format!("out/{session}"), "-o", "out", "--force"];
    let refused = run(folder.path(), &onto_itself);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("is the input"), "{}", stderr(&refused));
    let ran = ["run", "--session", &format!("out/{session}"), "--strategy", "none"];
    assert!(run(folder.path(), &ran).status.success());
}

#[test]
fn an_import_can_be_told_the_format_and_write_another() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("chat.json"), CHAT).unwrap();
    for (to, ending) in [("anthropic", ".anthropic.json"), ("openai", ".openai.json")] {
        let output = run(folder.path(), &["sessions", "import", "chat.json", "-o", to, "--to", to]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains("not carried: tag × 1"), "{}", stdout(&output));
        let [name] = &names(&folder.path().join(to))[..] else { panic!("one file") };
        assert!(name.ends_with(ending), "{name}");
        let back =
            run(folder.path(), &["sessions", "import", &format!("{to}/{name}"), "-o", "back"]);
        assert!(back.status.success(), "{}", stderr(&back));
        assert!(stdout(&back).contains("4 messages, 2 calls, 1 tool use, 1 result"));
    }
    let forced = run(folder.path(), &["sessions", "import", "chat.json", "--format", "codex"]);
    assert_eq!(forced.status.code(), Some(3));
    let unknown = run(folder.path(), &["sessions", "import", "chat.json", "--format", "oracle"]);
    assert_eq!(unknown.status.code(), Some(2));
    // What the hints say is there.
    let help = stdout(&run(folder.path(), &["sessions", "import", "--help"]));
    for format in ["native", "claude-code", "anthropic", "openai-chat", "--format", "--force"] {
        assert!(help.contains(format), "{help}");
    }
    fs::create_dir(folder.path().join("nothing")).unwrap();
    let nothing = run(folder.path(), &["sessions", "import", "nothing"]);
    assert_eq!(nothing.status.code(), Some(4));
    let counter = run(folder.path(), &["sessions", "import", "chat.json", "--counter", "fingers"]);
    assert_eq!(counter.status.code(), Some(2));
}

#[test]
fn prompts_are_checked_by_the_rules_of_the_scenarios_provider() {
    let folder = tempfile::tempdir().unwrap();
    let message =
        |role: &str, block: &str| format!("{{\"role\":\"{role}\",\"content\":[{block}]}}\n");
    let text = |text: &str| format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
    let mut session = "{\"format\":\"proctor-session\",\"version\":1,\"id\":\"talk\"}\n".to_owned();
    for turn in 0..30 {
        session += &message("user", &text(&format!("question {turn}")));
        session += &message("assistant", &text(&format!("answer {turn}")));
    }
    fs::write(folder.path().join("talk.session.jsonl"), session).unwrap();
    let scenario = "[window]\ntokens = 100\n[[sessions]]\npath = 'talk.session.jsonl'\n\
        [[strategies]]\nname = 'cut'\n[[strategies.stage]]\nkind = 'drop_oldest'\n\
        unit = 'message'\npin_first = 0\nfit_fraction = 0.5\nmax_steps = 1\nwhen = 'always'\n";
    for provider in ["anthropic", "openai"] {
        let file = format!("{provider}.toml");
        let text = format!("provider = '{provider}'\n{scenario}");
        fs::write(folder.path().join(&file), text).unwrap();
        let output = run(folder.path(), &["run", &file, "--out", provider]);
        assert!(output.status.success(), "{}", stderr(&output));
        let cells = sorted_cells(&folder.path().join(provider)).join("\n");
        assert_eq!(cells.contains("first_not_user"), provider == "anthropic");
    }
}

#[cfg(unix)]
#[test]
fn files_that_hold_text_of_sessions_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = small();
    for command in [
        "sessions generate code-review --rounds 30 -o made",
        "sessions facts made -o derived",
        "sessions import made -o imported",
        "run small.toml --out out -o shown.html",
        "baseline save out main",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = run(folder.path(), &arguments);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
    }
    // Scenarios and what is made to be shown.
    let public = ["small.toml", "shown.html", "baselines/main.json"];
    for (path, _) in tree(folder.path()) {
        let mode = path.metadata().unwrap().permissions().mode() & 0o77;
        let is_public = public.iter().any(|name| path.ends_with(name));
        assert_eq!(mode != 0, is_public, "{}: {mode:o}", path.display());
    }
}
