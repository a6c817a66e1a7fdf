//! What commands print: for people as wide as their terminal, for programs as JSON.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn run(folder: &Path, columns: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["PROCTOR_COUNTER", "PROCTOR_SEED", "PROCTOR_WINDOW", "COLUMNS"] {
        command.env_remove(name);
    }
    command.envs(columns.map(|columns| ("COLUMNS", columns)));
    command.current_dir(folder).args(arguments).output().unwrap()
}

const SMALL: &str = "name = 'small'\n[window]\ntokens = 12_000\n\
    [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, rounds = 12, head_tokens = 0 }\ncount = 2\n\
    [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.keep_last = 2 }\n\
    [[strategies]]\npreset = 'tail@4000'\n";

const CHAT: &str = r#"{"model": "m", "messages": [
    {"role": "user", "content": "list the files in /home/someone/work"},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
        "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "x"},
    {"role": "assistant", "content": "one"}]}"#;

/// A folder with a scenario, two runs of it, a baseline, a session and what was planted in it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("small.toml"), SMALL).unwrap();
    fs::write(
        path.join("labels.jsonl"),
        "{\"question\":\"q\",\"reference\":\"r\",\"answer\":\"r\",\"label\":\"correct\",\"verdict\":\"correct\"}\n\
         {\"question\":\"q\",\"reference\":\"r\",\"answer\":\"s\",\"label\":\"incorrect\",\"verdict\":\"incorrect\"}\n",
    )
    .unwrap();
    fs::create_dir(path.join("recorded")).unwrap();
    fs::write(path.join("recorded/chat.json"), CHAT).unwrap();
    fs::write(path.join("recorded/notes.txt"), "no JSON\n").unwrap();
    let cassette = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/graded/cassette.jsonl");
    fs::copy(cassette, path.join("cassette.jsonl")).unwrap();
    for arguments in [
        &["run", "small.toml", "--out", "one"][..],
        &[
            "run",
            "small.toml",
            "--out",
            "two",
            "--set",
            "observation-masking.clear_results.keep_last=1",
        ],
        &["baseline", "save", "one", "main"],
        &["sessions", "generate", "code-review", "--rounds", "6"],
    ] {
        let output = run(path, None, arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    folder
}

/// The name that `generate` gave.
const TRUTH: &str = "code-review-s1-r6.truth.json";

#[test]
fn facts_are_printed_for_programs_as_well() {
    let folder = folder();
    for (arguments, key) in [
        ("strategies", "strategies"),
        ("strategies show codex", "toml"),
        ("strategies stages", "stages"),
        ("doctor small.toml", "settings"),
        ("run --dry-run small.toml", "strategies"),
        ("budget --preset codex", "stages"),
        ("sessions generate list", "families"),
        ("sessions generate ci-agent --rounds 5", "sessions"),
        ("sessions generate ci-agent --describe --rounds 5 --count 1", "rows"),
        ("inspect --synthetic code-review:1:6 --strategy none --at 3", "prompt_tokens"),
        ("report one", "format"),
        ("cache list cassette.jsonl", "cassettes"),
        ("cache verify cassette.jsonl", "cassettes"),
        ("compare one two --allow-different", "comparisons"),
        ("compare --gate two --baseline main --allow-different", "ending"),
        ("baseline list", "baselines"),
        ("baseline show main", "sessions"),
        (&format!("sessions facts --show {TRUTH}"), "probes"),
        (&format!("sessions facts --check {TRUTH}"), "mistakes"),
        ("judge test labels.jsonl", "all"),
        ("sessions import recorded -o in", "recordings"),
        ("sessions import recorded --list", "recordings"),
        ("baseline save one again", "file"),
        (
            "sweep small.toml --strategy observation-masking -P clear_results.keep_last=1,3",
            "points",
        ),
    ] {
        let mut typed: Vec<&str> = arguments.split(' ').collect();
        typed.push("--json");
        let output = run(folder.path(), None, &typed);
        let printed: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments}: {error}: {output:?}"));
        assert!(!printed[key].is_null(), "{arguments}: no `{key}` in {printed:#}");
    }
    let output = run(folder.path(), None, &["run", "small.toml", "--out", "one", "--json"]);
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        assert!(message["type"].is_string(), "{line}");
    }
}

#[test]
fn an_import_as_json_says_what_its_lines_say_and_fits_its_schema() {
    let folder = folder();
    let path = folder.path();
    let lines = run(path, None, &["sessions", "import", "recorded", "-o", "a", "--redact"]);
    let line = String::from_utf8(lines.stdout).unwrap();
    let counted = "recorded/chat.json: openai-chat, 1 session, 4 messages, 2 calls, 1 tool use, \
                   1 result, 0 orphans, ";
    let left_out = "not recorded: system prompt and tools; redacted: home × 1\n";
    assert!(line.starts_with(counted) && line.ends_with(left_out), "{line}");
    let said = String::from_utf8(lines.stderr).unwrap();
    assert!(said.contains("wrote 1 session of 1 recording to `a`"), "{said}");
    let typed = ["sessions", "import", "recorded", "absent.json", "-o", "b", "--redact", "--json"];
    let json = run(path, None, &typed);
    assert_eq!(json.status.code(), Some(3), "{json:?}");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let one = &json["recordings"][0];
    for (key, value) in [("messages", 4), ("calls", 2), ("tool_uses", 1), ("results", 1)] {
        assert_eq!(one[key], value, "{key}: {one:#}");
    }
    assert_eq!(one["redacted"]["home"], 1);
    assert_eq!(one["not_recorded"]["tools"], true);
    let written = one["sessions"][0]["file"].as_str().unwrap();
    assert!(path.join(written).is_file(), "{written}");
    assert_eq!(json["passed_over"].as_array().unwrap().len(), 1);
    assert!(json["errors"][0].as_str().unwrap().contains("absent.json"));
    let schema = run(path, None, &["schema", "import"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    if let Err(error) = validator.validate(&json) {
        panic!("{error}: {json:#}");
    }
}

#[test]
fn what_does_nothing_is_said() {
    let folder = folder();
    let path = folder.path();
    fs::write(
        path.join("twice.toml"),
        SMALL.to_owned() + "[[strategies]]\npreset = 'observation-masking'\n",
    )
    .unwrap();
    for (arguments, note) in [
        (
            &["doctor", "twice.toml", "--set", "observation-masking.clear_results.keep_last=4"][..],
            "makes two strategies alike; they are run once",
        ),
        (
            &["doctor", "small.toml", "--strategy", "tail@0"][..],
            "note: `tail@0` has a budget of 0 tokens",
        ),
        (&["sessions", "facts", "made/session.jsonl", "-o", "facts.json"], "wrote `facts.json`"),
    ] {
        if arguments[0] == "sessions" {
            fs::create_dir_all(path.join("made")).unwrap();
            let made = path.join(TRUTH.replace("truth.json", "session.jsonl"));
            fs::copy(made, path.join("made/session.jsonl")).unwrap();
        }
        let output = run(path, None, arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert!(said.contains(note), "{arguments:?}: {said}");
    }
}

/// Commands that have nothing to say for programs: what they print is for programs already, or nothing.
const WITHOUT_JSON: &[&str] = &["completions", "init", "man", "record", "schema"];

#[test]
fn options_are_called_the_same_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let help = |typed: &str| {
        let mut typed: Vec<&str> = typed.split(' ').filter(|word| !word.is_empty()).collect();
        typed.push("--help");
        let output = run(folder.path(), None, &typed);
        String::from_utf8(output.stdout).unwrap()
    };
    let below = |typed: &str| -> Vec<String> {
        let help = help(typed);
        let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let commands = commands.take_while(|line| line.starts_with("  "));
        let names = commands.filter(|line| !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        let names = names.filter(|name| *name != "help");
        names.map(|name| format!("{typed} {name}").trim().to_owned()).collect()
    };
    let mut commands = Vec::new();
    for command in below("") {
        let inner = below(&command);
        if inner.is_empty() {
            commands.push(command);
        } else {
            commands.extend(inner);
        }
    }
    assert!(commands.len() > 18, "{commands:?}");
    for command in commands {
        let help = help(&command);
        let has = |long: &str| {
            let long = format!("{long} ");
            help.lines().any(|line| format!("{line} ").contains(&long))
        };
        assert_eq!(has(" --json"), !WITHOUT_JSON.contains(&command.as_str()), "{command}");
        for (short, long) in
            [("-o, ", "--output"), ("-y, ", "--yes"), ("-f, ", "--force"), ("-j, ", "--jobs")]
        {
            let lines = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
            for line in lines.filter(|line| line.split_whitespace().any(|word| word == long)) {
                assert!(line.starts_with(short), "{command}: {line}");
            }
        }
    }
}

#[test]
fn what_people_read_is_as_wide_as_their_terminal() {
    let folder = folder();
    let sentences = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for arguments in [
        "strategies",
        "strategies --all",
        "strategies stages",
        "doctor small.toml",
        "run --dry-run small.toml",
        "run --dry-run small.toml --tables",
        "sessions generate list",
        "baseline show main",
        "inspect --synthetic code-review:1:8 --strategy observation-masking",
        "inspect --synthetic code-review:1:8 --strategy observation-masking --all",
        "compare one two --allow-different",
        "compare --gate two --baseline main --allow-different",
        &format!("sessions facts --show {TRUTH}"),
    ] {
        let typed: Vec<&str> = arguments.split(' ').collect();
        let narrow = run(folder.path(), Some("80"), &typed);
        let narrow = String::from_utf8(narrow.stdout).unwrap();
        let too_wide = narrow.lines().find(|line| {
            // A word that is wider than its column stays whole.
            let longest = line.split_whitespace().map(|word| word.chars().count()).max();
            line.chars().count() > 80 && longest.is_some_and(|longest| longest <= 28)
        });
        assert_eq!(too_wide, None, "{arguments}");
        // Nothing is lost. Tables, and what tells the width, look different.
        if !arguments.contains("--dry-run") && !arguments.starts_with("doctor") {
            let wide = run(folder.path(), None, &typed);
            let wide = String::from_utf8(wide.stdout).unwrap();
            assert_eq!(sentences(&narrow), sentences(&wide), "{arguments}");
        }
    }
    // A preset that is shown can be kept as a file, however narrow the terminal was.
    let shown = run(folder.path(), Some("60"), &["strategies", "show", "codex"]);
    fs::write(folder.path().join("own.toml"), &shown.stdout).unwrap();
    let read = run(folder.path(), None, &["doctor", "--strategy", "own.toml"]);
    assert!(read.status.success(), "{read:?}");
}

/// All that a word may become where it is broken at its signs: `a-b_c` gives `a-`, `a-b_`, `b_c` and so on.
fn parts(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut joints = vec![0];
    for at in 1..letters.len() {
        let (before, after) = (letters[at - 1], letters[at]);
        let sign = match before {
            '-' | '_' | '/' | ':' | '@' | '=' | '–' => true,
            '.' | ',' => !after.is_ascii_digit(),
            _ => false,
        };
        if sign || after == '[' {
            joints.push(at);
        }
    }
    joints.push(letters.len());
    let mut found = Vec::new();
    for (at, from) in joints.iter().enumerate() {
        for to in &joints[at + 1..] {
            found.push(letters[*from..*to].iter().collect());
        }
    }
    found
}

#[test]
fn no_table_breaks_a_number_or_a_word_whatever_the_width() {
    let folder = folder();
    let scenario = SMALL.replace("count = 2", "count = 3").replace("rounds = 12", "rounds = 30")
        + "[[strategies]]\npreset = 'learn-claude-code-s08'\n[[strategies]]\npreset = 'none'\n\
           [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.every = 3, clear_results.keep_last = 4 }\n";
    fs::write(folder.path().join("wide.toml"), scenario).unwrap();
    let output = run(folder.path(), None, &["run", "wide.toml", "--out", "wide"]);
    assert!(output.status.success(), "{output:?}");
    let at = |width: &str| {
        let output = run(folder.path(), Some(width), &["report", "wide", "--tables"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = at("1000");
    for section in ["Retention by age", "Broken rules of the provider", "Cells that ended early"] {
        assert!(whole.lines().any(|line| line == section), "{section}: {whole}");
    }
    let words = |text: &str| -> Vec<String> {
        let signs = ['(', ')', ',', ';'];
        let words = text.split_whitespace().map(|word| word.trim_matches(signs));
        words.map(str::to_owned).collect()
    };
    let mut known: BTreeSet<String> = words(&whole).iter().flat_map(|word| parts(word)).collect();
    // Columns that did not fit are named, with what all their cells hold.
    known.extend(words("not shown at this width: in every row"));
    // The longest name takes several lines at any width.
    known.extend(parts("[clear_results.every=3,clear_results.keep_last=4]"));
    for width in ["60", "80", "100", "120"] {
        for line in at(width).lines().filter(|line| !line.starts_with('─')) {
            let broken = words(line).into_iter().find(|word| !known.contains(word));
            assert_eq!(broken, None, "at {width}: {line}");
        }
    }
}

#[test]
fn a_gate_says_first_why_it_ends_as_it_does() {
    let folder = folder();
    let output = run(
        folder.path(),
        Some("1000"),
        &[
            "compare",
            "--gate",
            "two",
            "--baseline",
            "main",
            "--allow-different",
            "--margin",
            "tokens=0",
            "--tables",
        ],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let last = said.lines().last().unwrap();
    let (_, first) = first.split_once("Proctor: ").unwrap();
    let (verdict, why) = first.split_once(": ").unwrap();
    assert!(text.contains(&format!("verdict: {verdict}")), "{text}");
    if output.status.code() == Some(100) {
        assert_eq!(last, format!("the gate failed: {why}"));
    } else {
        assert_eq!(last, "the gate passed");
    }
}

#[test]
fn runs_of_a_folder_are_listed_where_it_is_none() {
    let folder = folder();
    let output = run(folder.path(), None, &["report", "."]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3));
    for name in ["one", "two"] {
        assert!(said.lines().any(|line| line.trim() == format!("./{name}")), "{said}");
    }
}
