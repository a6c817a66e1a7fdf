//! Comparisons, baselines and the gate, by the real program on real replays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use proctor::files::checked;
use tempfile::TempDir;

/// Ten sessions with some forty facts in all, each asked several times.
fn scenario(keep_last: u32, seed: u32, sessions: u32) -> String {
    format!(
        "name = 'ci'\ncounter = 'chars/4'\n[window]\ntokens = 60_000\n\
         [[sessions]]\nsynthetic = {{ family = 'code-review', seed = {seed}, rounds = 24 }}\ncount = {sessions}\n\
         [[strategies]]\npreset = 'observation-masking'\nname = 'ours'\n\
         set = {{ clear_results.keep_last = {keep_last} }}\n"
    )
}

struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.with(arguments, &[])
    }

    fn with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
        for name in ["GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "COLUMNS"] {
            command.env_remove(name);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        let compares = arguments[0] == "compare" || arguments.contains(&"--gate");
        if compares && !arguments.contains(&"--json") {
            // A screen leaves out what these tests look at; it has a test of its own.
            command.arg(arguments[0]).arg("--tables=all").args(&arguments[1..]);
        } else {
            command.args(arguments);
        }
        command
            .current_dir(self.path())
            // No line of what is printed is folded.
            .env("COLUMNS", "1000")
            .output()
            .unwrap()
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32, says: &[&str]) -> String {
        let output = self.run(arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
        for part in says {
            assert!(said.contains(part), "{said}\n\ndoes not say\n\n{part}");
        }
        said
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn baselined(keep_last: u32) -> Bench {
    baselined_on(keep_last, 8)
}

/// A copy of a folder with the run `old` of `ci.toml` and its baseline `main`; each is run once.
fn baselined_on(keep_last: u32, sessions: u32) -> Bench {
    static MADE: Mutex<BTreeMap<(u32, u32), Bench>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let first = made.entry((keep_last, sessions)).or_insert_with(|| {
        let bench = Bench::new();
        bench.write("ci.toml", &scenario(keep_last, 1, sessions));
        bench.check(
            &["run", "ci.toml", "--save-baseline", "main", "--out", "old"],
            0,
            &["saved baseline"],
        );
        bench
    });
    let bench = Bench::new();
    copy(first.path(), bench.path());
    bench
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// Gates the run `new` by the rules of `ci.toml`.
const BY_RULES: [&str; 7] =
    ["compare", "--gate", "new", "--baseline", "main", "--rules", "ci.toml"];

#[test]
fn a_change_of_nothing_passes_and_a_change_for_the_worse_fails_with_the_probe_named() {
    let bench = baselined(10);
    bench.check(
        &["run", "ci.toml", "--gate", "--baseline", "main", "--out", "same"],
        0,
        &["no change in any metric", "the gate passed", "exact"],
    );
    bench.write("ci.toml", &scenario(1, 1, 8));
    let said = bench.check(
        &[
            "run",
            "ci.toml",
            "--gate",
            "--baseline",
            "main",
            "--out",
            "worse",
            "--comparison-output",
            "c.md",
            "--comparison-output",
            "c.json",
            "--comparison-output",
            "c.junit.xml",
            "--comparison-output",
            "c.svg",
        ],
        100,
        &["hard break: lost", "by clear_results", "verdict: regressed", "the gate failed"],
    );
    // The fact that was lost is one of the record, and it was lost where the record says.
    let json: serde_json::Value = serde_json::from_str(&bench.read("c.json")).unwrap();
    let lost = &json["comparisons"][0]["gated"]["lost"][0];
    let (id, percent) = lost["probe"].as_str().unwrap().split_once('@').unwrap();
    let place = lost["lost_at"].as_str().unwrap();
    let call = place.strip_prefix("call ").unwrap().split(' ').next().unwrap();
    let question = lost["text"]["question"].as_str().unwrap();
    assert!(said.contains(question), "{question}: {said}");
    let records = bench.read("worse/cells.jsonl");
    assert!(records.lines().any(|record| {
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        record["strategy"] == "ours[clear_results.keep_last=1]"
            && record["probes"].as_array().unwrap().iter().any(|item| {
                item["probe"] == id
                    && item["percent"].as_u64() == percent.parse().ok()
                    && item["weight"] == 3
                    && item["survival"]["lost_at"]["call"].as_u64() == call.parse().ok()
            })
    }));
    let comment = bench.read("c.md");
    let first = comment.lines().next().unwrap();
    assert!(
        first.contains("Proctor: regressed") && first.contains(question.trim_end_matches('?')),
        "{first}"
    );
    assert!(comment.len() <= 60_000);
    assert_eq!(json["ending"], "failed");
    let schema: serde_json::Value =
        serde_json::from_str(&text(&bench.run(&["schema", "comparison"]))).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&json));
    let forest = bench.read("c.svg");
    assert!(forest.contains("facts in points") && forest.contains("regressed"), "{forest}");
    let junit = bench.read("c.junit.xml");
    assert!(junit.contains("name=\"hard breaks\">"), "{junit}");
    assert!(junit.contains("<failure message=\"lost "), "{junit}");
}

#[test]
fn a_comparison_that_is_not_made_leaves_no_earlier_one_in_its_place() {
    let bench = baselined(10);
    bench.write("bad.toml", "no scenario");
    let fails: [(&[&str], &str, i32); 5] = [
        (&["run", "bad.toml", "--gate"], "--comparison-output", 3),
        (&["run", "ci.toml", "--gate", "--baseline", "none"], "--comparison-output", 106),
        (&["compare", "--gate", "old", "--baseline", "none"], "-o", 106),
        (&["compare", "--gate", "none", "--baseline", "main"], "-o", 3),
        (&["compare", "old", "none"], "-o", 106),
    ];
    for (command, flag, code) in fails {
        let files = ["c.md", "c.json", "linked.md"];
        for name in ["mine", "c.md", "c.json"] {
            bench.write(name, "# ✅ of another gate");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("mine", bench.path().join("linked.md")).unwrap();
        let flags = files.iter().flat_map(|name| [flag, name]);
        let command: Vec<&str> = command.iter().copied().chain(flags).collect();
        bench.check(&command, code, &[]);
        for name in files {
            let path = bench.path().join(name);
            assert!(path.symlink_metadata().is_err(), "{command:?}: {name}");
        }
        assert_eq!(bench.read("mine"), "# ✅ of another gate");
    }
    // A mistake in one file removes none, and a baseline is no comparison; nor does a run without a comparison.
    bench.write("c.md", "kept");
    bench.check(&["run", "ci.toml", "--comparison-output", "c.md"], 2, &[]);
    assert_eq!(bench.read("c.md"), "kept");
    let baseline = bench.read("baselines/main.json");
    for other in ["c.pdf", "no-folder/c.md", "baselines/main.json"] {
        let command = ["compare", "--gate", "old", "--baseline", "main", "-o", "c.md", "-o", other];
        let output = bench.run(&command);
        assert!(!output.status.success(), "{other}");
        assert_eq!(bench.read("c.md"), "kept", "{other}");
    }
    assert_eq!(bench.read("baselines/main.json"), baseline);
}

#[test]
fn one_probe_of_high_importance_in_four_hundred_fails_the_gate_though_the_mean_would_pass() {
    let bench = baselined_on(9, 10);
    bench.write("ci.toml", &scenario(8, 1, 10));
    let said = bench.check(
        &["run", "ci.toml", "--gate", "--baseline", "main", "--out", "new"],
        100,
        &["5 pts   non-inferior", "hard break: lost \"", " at call ", "verdict: regressed"],
    );
    let paired = said.split(" probes paired").next().unwrap().rsplit(' ').next().unwrap();
    assert!(paired.parse::<u32>().unwrap() > 350, "{said}");
    assert!((1..=2).contains(&said.matches("hard break").count()), "{said}");
    // Who accepts the loss says so, and the mean decides.
    bench.write("ci.toml", &(scenario(8, 1, 10) + "[gate]\nhard_break = false\n"));
    bench.check(&BY_RULES, 0, &["the gate passed"]);
}

#[test]
fn an_underpowered_change_is_inconclusive_and_says_how_many_sessions_it_needs() {
    let bench = baselined(20);
    bench.write(
        "ci.toml",
        &(scenario(19, 1, 8)
            + "[gate]\ntarget = 'population'\nhard_break = false\nonly = true\n\
            margins = { facts = 0.005 }\nbaseline = 'main'\n"),
    );
    let said = bench.check(
        &["run", "ci.toml", "--gate", "--out", "new", "--set", "gate.fail_on=inconclusive"],
        103,
        &["verdict: inconclusive", "8 sessions are too few: about", "t(7), clustered by session"],
    );
    assert!(said.contains(" are needed"), "{said}");
    // Without `--fail-on`, what is unclear passes.
    bench.check(&BY_RULES, 0, &["inconclusive"]);
}

#[test]
fn answers_of_two_readers_are_never_one_difference() {
    let bench = Bench::new();
    bench.write(
        "a.toml",
        "format = 'proctor-script'\nversion = 1\n[[answer]]\npurpose = 'probe'\ntext = 'not in context'\n",
    );
    let scenario = |reader: &str| {
        let models = format!("[models]\nreader = {reader}\n[window]");
        scenario(10, 1, 2).replace("[window]", &models)
    };
    let scripted =
        |name: &str| format!("{{ kind = 'scripted', model = '{name}', script = 'a.toml' }}");
    for (name, reader) in
        [("nobody", "'none'".to_owned()), ("one", scripted("one")), ("two", scripted("two"))]
    {
        bench.write("s.toml", &scenario(&reader));
        bench.check(&["run", "s.toml", "--out", name], 0, &[]);
    }
    let refused = |left: &str, right: &str| {
        bench.check(&["compare", left, right], 106, &["reader:", "cannot be compared"]);
        bench.check(&["compare", left, right, "--allow-different"], 0, &["facts"])
    };
    let is_compared = |said: &str| {
        let mut lines = said.lines().map(str::trim_start);
        lines.any(|line| line.starts_with("answers"))
    };
    let said = refused("one", "two");
    assert!(said.contains("`one` and `two` are two readers"), "{said}");
    assert!(!is_compared(&said), "{said}");
    assert!(!is_compared(&refused("nobody", "one")));
    let said = bench.check(&["compare", "one", "one"], 0, &[]);
    assert!(is_compared(&said), "{said}");
}

#[test]
fn a_control_that_the_run_added_is_compared_where_it_is_named() {
    let bench = baselined(10);
    let said = bench.check(&["compare", "old::ours", "old::tail@ours"], 0, &["facts"]);
    assert!(said.contains("tail@ours"), "{said}");
    // Nobody meant it who did not name it.
    let said = bench.check(&["compare", "old", "old"], 0, &["facts"]);
    assert!(!said.contains("tail@"), "{said}");
}

#[test]
fn another_word_for_a_metric_is_an_error_that_says_its_name() {
    let bench = baselined(10);
    let check = |arguments: &str, says: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        bench.check(&arguments, 2, &[says]);
    };
    let gate = "compare --gate old --baseline main --margin";
    check(&format!("{gate} survival=0.05"), "`survival` is called `facts`");
    check(&format!("{gate} cost=0.05"), "`cost` is called `bill`");
    check(&format!("{gate} cost_savings=0.05"), "`cost_savings` is called `bill`");
    let sweep = "sweep ci.toml -P clear_results.keep_last=1,2";
    check(&format!("{sweep} --saves cost_savings"), "`cost_savings` is called `bill`");
    check(&format!("{sweep} --keeps accuracy"), "`accuracy` is called `answers`");
    check(&format!("{sweep} --keeps fcats"), "did you mean `facts`");
    check("report old --sort latency", "`latency` is called `waiting`");
    check("report old --sort cost", "`cost` is called `bill`");
    let cell = "--cell code-review-s1-r24/empty";
    check(
        &format!("inspect old {cell} --metric token_savings"),
        "`token_savings` is called `tokens`",
    );
    let gate = scenario(1, 1, 2) + "[gate]\nmargins = { action_support = 0.1 }\n";
    bench.write("bad.toml", &gate);
    let says = "line 13: `gate.margins`: `action_support` is called `actions`";
    bench.check(&["doctor", "bad.toml"], 3, &[says]);
}

#[test]
fn what_was_measured_by_something_else_is_refused_with_what_differs() {
    let bench = baselined(10);
    bench.check(&["run", "ci.toml", "--set", "counter=bytes/4", "--out", "other"], 0, &[]);
    bench.check(
        &["compare", "old", "other"],
        106,
        &["counter: chars/4 in the baseline, bytes/4 in the candidate", "--allow-different"],
    );
    bench.check(
        &["compare", "old", "other", "--allow-different"],
        0,
        &["differs: counter: chars/4 in the baseline, bytes/4 in the candidate", "facts"],
    );
    bench.check(
        &["compare", "--gate", "old", "--baseline", "nobody"],
        106,
        &["no run in a folder `nobody`, and no baseline `baselines/nobody.json`"],
    );
    bench.check(&["run", "ci.toml", "--gate", "--out", "x"], 2, &["has no baseline"]);
    bench.check(
        &["compare", "--gate", "old", "--baseline", "main", "--margin", "fcats=0.1"],
        2,
        &["no metric `fcats`"],
    );
    bench.check(&["compare", "old::nothing", "old"], 106, &["has no strategy `nothing`"]);
    bench.write("bad.toml", &(scenario(1, 1, 2) + "[gate]\nmargins = { fcats = 0.1 }\n"));
    bench.check(&["doctor", "bad.toml"], 3, &["line 13", "did you mean `facts`"]);
}

#[test]
fn settings_and_questions_that_decide_results_are_compared_too() {
    let bench = baselined_on(10, 6);
    let base = scenario(10, 1, 6);
    let refused = |name: &str, text: &str, says: &str| {
        bench.write("other.toml", text);
        bench.check(&["run", "other.toml", "--out", name], 0, &[]);
        bench.check(
            &["compare", "--gate", name, "--baseline", "main"],
            106,
            &[says, "--allow-different"],
        );
    };
    refused(
        "reserve",
        &base.replace("tokens = 60_000", "tokens = 60_000\noverflow_reserve = 2000"),
        "setting window reserves: max_output 0, overflow_reserve 0 in the baseline, max_output 0, \
         overflow_reserve 2000 in the candidate",
    );
    refused(
        "provider",
        &base.replace("name = 'ci'", "name = 'ci'\nprovider = 'openai'"),
        "setting provider: anthropic in the baseline, openai in the candidate",
    );
    // Another importance of one fact, under the same id: another question.
    bench.check(
        &["sessions", "generate", "code-review", "--seed", "1", "--rounds", "12", "--output", "g"],
        0,
        &[],
    );
    let truth = fs::read_dir(bench.path().join("g"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".truth.json"))
        .unwrap();
    let session = truth.to_string_lossy().replace(".truth.json", ".session.jsonl");
    let run = |out: &str| {
        bench.check(
            &[
                "run",
                "--session",
                &session,
                "--strategy",
                "tail@20000",
                "--set",
                "counter=chars/4",
                "--out",
                out,
            ],
            0,
            &[],
        );
    };
    run("before");
    let text = fs::read_to_string(&truth).unwrap();
    let edited = text.replacen("\"importance\": \"normal\"", "\"importance\": \"high\"", 1);
    let edited = edited.replacen("\"importance\":\"normal\"", "\"importance\":\"high\"", 1);
    assert_ne!(text, edited, "{text}");
    fs::write(&truth, edited).unwrap();
    run("after");
    bench.check(&["compare", "before", "after"], 106, &["probes of "]);
}

#[test]
fn what_did_not_pass_or_is_not_whole_becomes_no_baseline() {
    let bench = baselined_on(10, 4);
    let first = bench.read("baselines/main.json");
    bench.write("ci.toml", &scenario(1, 1, 4));
    bench.check(
        &[
            "run",
            "ci.toml",
            "--gate",
            "--baseline",
            "main",
            "--save-baseline",
            "main",
            "--out",
            "worse",
        ],
        100,
        &["baseline `main` is not saved: it did not pass the gate"],
    );
    assert_eq!(first, bench.read("baselines/main.json"));
    // A run that lacks a cell.
    let cells = bench.read("worse/cells.jsonl");
    let kept: Vec<&str> = cells.lines().collect();
    let last = kept.iter().rposition(|line| line.contains("\"strategy\":\"ours")).unwrap();
    let less = kept.iter().enumerate().filter(|(at, _)| *at != last);
    let less: Vec<&str> = less.map(|(_, line)| *line).collect();
    let less = less.join("\n") + "\n";
    bench.write("worse/cells.jsonl", &less);
    bench.check(
        &["baseline", "save", "worse", "main"],
        5,
        &["`worse` is not saved: 1 of its 8 cells are missing", "--force"],
    );
    bench.check(&["baseline", "save", "worse", "part", "--force"], 0, &["saved baseline"]);
    // A test file without tests would read as a success.
    bench.check(
        &["compare", "old", "bytes", "--allow-different", "-o", "x.junit.xml"],
        2,
        &["would have no test case"],
    );
}

#[test]
fn a_baseline_is_the_same_bytes_each_time_and_a_changed_probe_is_one_line() {
    let bench = baselined(10);
    let first = bench.read("baselines/main.json");
    bench.check(
        &["run", "ci.toml", "--save-baseline", "again", "--out", "again", "-j", "3"],
        0,
        &[],
    );
    assert_eq!(first, bench.read("baselines/again.json"));
    let schema: serde_json::Value =
        serde_json::from_str(&text(&bench.run(&["schema", "baseline"]))).unwrap();
    let value: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value));
    // One probe is lost by hand: one line of the file changes, and the gate names it.
    let line = first
        .lines()
        .find(|line| line.contains("\"survival\": [1]") && line.contains("\"weight\": 3"))
        .unwrap();
    let probe = line.trim_start().split('"').nth(1).unwrap();
    let lost = line.replace("\"survival\": [1]", "\"survival\": [0]");
    let damaged = first.replacen(line, &lost, 1);
    bench.write("damaged.json", &damaged);
    bench.check(
        &["compare", "main", "damaged.json"],
        106,
        &["`damaged.json`: it is damaged: its checksum does not match", "baseline save"],
    );
    let (content, _) = damaged.rsplit_once(',').unwrap();
    bench.write("changed.json", &signed(&format!("{content}}}")));
    let changed = bench.read("changed.json");
    assert_eq!(
        first.lines().zip(changed.lines()).filter(|(old, new)| old != new).count(),
        2,
        "the probe and the checksum"
    );
    let said = bench.check(&["compare", "main", "changed.json"], 0, &[probe, "1.00  0.00"]);
    assert!(said.contains("wins/ties/losses 0/"), "{said}");
    bench.check(&["baseline", "list"], 0, &["again: scenario ci, 8 sessions", "main: scenario ci"]);
    bench.check(
        &["baseline", "show", "main"],
        0,
        &["ours[clear_results.keep_last=10]: ", " probe items, "],
    );
    bench.check(&["baseline", "rm", "again"], 0, &["deleted"]);
    bench.check(&["baseline", "rm", "ci.toml"], 106, &[]);
    assert!(bench.path().join("ci.toml").exists());
}

#[test]
fn a_comparison_and_a_gate_are_one_screen_at_every_width() {
    let bench = baselined_on(10, 6);
    bench.write("ci.toml", &scenario(1, 1, 6));
    bench.check(&["run", "ci.toml", "--out", "new"], 0, &[]);
    for (arguments, exit, says) in [
        (&["compare", "old", "new"][..], 0, "is a trade: "),
        (&["compare", "old", "old", "new"], 0, ": No difference:"),
        (&["compare", "--gate", "new", "--baseline", "main"], 100, "Regressed: "),
    ] {
        for width in [60, 80, 120, 200] {
            let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
                .current_dir(bench.path())
                .env("COLUMNS", width.to_string())
                .args(arguments)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(exit));
            let screen = String::from_utf8(output.stdout).unwrap();
            assert!(screen.lines().count() <= 40, "{screen}");
            for line in screen.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            for part in [says, "facts", "Sure?", "More"] {
                assert!(screen.contains(part), "no {part} at {width}:\n{screen}");
            }
        }
    }
}

#[test]
fn several_candidates_and_single_strategies_are_compared() {
    let bench = baselined(10);
    bench.write(
        "two.toml",
        &scenario(3, 1, 8)
            .replace("[[strategies]]", "[[strategies]]\npreset = 'tail@6000'\n[[strategies]]"),
    );
    bench.check(&["run", "two.toml", "--out", "two"], 0, &[]);
    bench.check(
        &["compare", "two::tail@6000", "two::ours", "main", "--target", "population"],
        0,
        &[
            "ours[clear_results.keep_last=3] against tail@6000\n",
            "two::tail@6000 → two::ours, about the population",
            "sign flip p",
        ],
    );
    bench.check(
        &["compare", "old", "two", "main", "-o", "all.txt"],
        0,
        &["old → two", "old → main"],
    );
    assert!(bench.read("all.txt").contains("old → two"));
    bench.check(
        &["compare", "old", "two", "-o", "x.pdf"],
        2,
        &["a comparison cannot be written to"],
    );
}

#[test]
fn one_strategy_of_a_suite_is_held_against_its_own_place_and_not_against_controls() {
    let bench = Bench::new();
    let suite = scenario(10, 1, 6) + "[[strategies]]\npreset = 'tail@6000'\n";
    bench.write("ci.toml", &suite);
    bench.check(&["run", "ci.toml", "--save-baseline", "main", "--out", "old"], 0, &[]);
    bench.write("ci.toml", &scenario(10, 1, 6));
    let said = bench.check(
        &["run", "ci.toml", "--gate", "--baseline", "main", "--out", "one"],
        0,
        &["note: `main` has `tail@6000`, which has no counterpart in `one`", "the gate passed"],
    );
    assert!(!said.contains("against tail@6000"), "{said}");
    // The other way round as well.
    bench.check(
        &["compare", "one", "old"],
        0,
        &["note: `old` has `tail@6000`, which has no counterpart in `one`"],
    );
    // What nothing holds is refused, not passed in silence.
    bench.write("ci.toml", &(suite + "[[strategies]]\npreset = 'tail@9000'\n"));
    bench.check(
        &["run", "ci.toml", "--gate", "--baseline", "main", "--out", "more"],
        106,
        &["strategy `tail@9000` of `more` has no counterpart in `main`", "save the baseline again"],
    );
}

#[test]
fn an_anchor_holds_where_small_steps_would_drift_away() {
    let bench = baselined(10);
    bench.check(&["baseline", "save", "old", "v1"], 0, &[]);
    bench.write("ci.toml", &scenario(1, 1, 8));
    bench.check(&["run", "ci.toml", "--save-baseline", "main", "--out", "step"], 0, &[]);
    bench.check(&["compare", "--gate", "step", "--baseline", "main"], 0, &["the gate passed"]);
    bench.check(
        &["compare", "--gate", "step", "--baseline", "main", "--anchor", "v1"],
        100,
        &["main → step", "v1 → step", "regressed"],
    );
}

#[test]
fn a_workflow_is_told_in_its_own_words() {
    let bench = baselined(10);
    bench.write("ci.toml", &scenario(1, 1, 8));
    bench.check(&["run", "ci.toml", "--out", "worse"], 0, &[]);
    let (summary, outputs) = (bench.path().join("summary"), bench.path().join("outputs"));
    let output = bench.with(
        &["compare", "--gate", "worse", "--baseline", "main"],
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
            ("GITHUB_OUTPUT", outputs.to_str().unwrap()),
        ],
    );
    assert_eq!(output.status.code(), Some(100));
    assert!(bench.read("summary").starts_with("# ❌ Proctor: regressed"));
    let outputs = bench.read("outputs");
    assert!(outputs.starts_with("verdict=regressed\nmetric="), "{outputs}");
    assert!(outputs.contains("\ndelta=-") && outputs.contains("\nci_low=-"), "{outputs}");
    let said = text(&output);
    assert!(
        said.lines()
            .any(|line| line.starts_with("::error title=ours[clear_results.keep_last=1] against ")),
        "{said}"
    );
}

/// Eighteen sessions of which nine are chosen on.
fn swept() -> Bench {
    let bench = Bench::new();
    bench.write("ci.toml", &scenario(10, 1, 18).replace("rounds = 24", "rounds = 16"));
    bench
}

#[test]
fn a_sweep_writes_a_preset_that_runs_and_says_whether_it_holds() {
    let bench = swept();
    let said = bench.check(
        &[
            "sweep",
            "ci.toml",
            "-P",
            "clear_results.keep_last=1,4,12",
            "-P",
            "clear_results.min_chars=100,400",
            "--margin",
            "facts=0.15",
            "--saves",
            "tokens",
            "--out",
            "s",
            "-o",
            "s.json",
            "-o",
            "s.html",
            "-o",
            "sweep.svg",
        ],
        0,
        &[
            "7 settings; chosen on 9 sessions, tried on 9",
            "Sure?",
            "rows: clear_results.keep_last; columns: clear_results.min_chars",
            "clear_results.every=1,5,20",
        ],
    );
    let sweep: serde_json::Value = serde_json::from_str(&bench.read("s.json")).unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(&text(&bench.run(&["schema", "sweep"]))).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&sweep));
    let points = sweep["points"].as_array().unwrap();
    assert_eq!(points.len(), 7);
    let cells = sweep["pairs"][0]["cells"].as_array().unwrap();
    assert_eq!((cells.len(), cells[0].as_array().unwrap().len()), (3, 2));
    let page = bench.read("s.html");
    // The heat map, for wide and for narrow pages.
    assert_eq!(page.matches("<svg").count(), 2);
    for point in points {
        for value in point["values"].as_array().unwrap() {
            let spelled = format!("{}={}", value[0].as_str().unwrap(), value[1].as_str().unwrap());
            assert!(page.contains(&spelled), "{spelled}");
        }
    }
    assert!(bench.read("sweep.svg").contains("clear_results.keep_last"));
    let choice = &sweep["choice"];
    let chosen: Vec<_> = points.iter().filter(|it| !it["standing"].is_null()).collect();
    assert_eq!(chosen.len(), 1, "{said}");
    assert_eq!(choice["values"], chosen[0]["values"]);
    assert_eq!(choice["standing"], chosen[0]["standing"]);
    assert!(chosen[0]["cost"]["point_estimate"].as_f64().unwrap() > 0.0);
    // It is recommended if other sessions confirm it, and only then.
    let is_confirmed = choice["confirmation"]["is_confirmed"] == true;
    assert_eq!(choice["standing"] == "recommended", is_confirmed, "{choice}");
    let tune: Vec<_> = sweep["tune"].as_array().unwrap().iter().collect();
    let confirm = sweep["confirm"].as_array().unwrap();
    assert!(tune.iter().all(|id| !confirm.contains(id)));
    // The same command finds everything done.
    bench.check(
        &[
            "sweep",
            "ci.toml",
            "-P",
            "clear_results.keep_last=1,4,12",
            "-P",
            "clear_results.min_chars=100,400",
            "--margin",
            "facts=0.15",
            "--saves",
            "tokens",
            "--out",
            "s",
            "-o",
            "again.json",
        ],
        0,
        &[],
    );
    assert_eq!(bench.read("s.json"), bench.read("again.json"));
}

#[test]
fn a_sweep_asks_the_models_that_it_needs() {
    let bench = Bench::new();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/graded.toml");
    let scenario = scenario.to_str().unwrap();
    for (keeps, replay) in [("answers", "off"), ("facts", "off")] {
        bench.check(
            &[
                "sweep",
                scenario,
                "--strategy",
                "observation-masking",
                "-P",
                "clear_results.keep_last=1,3",
                "--keeps",
                keeps,
                "--saves",
                "tokens",
                "--replay",
                replay,
                "--out",
                keeps,
            ],
            0,
            &["3 settings", "Sure?", "1 independent session is too few to choose on one half"],
        );
    }
    // What is to be recorded and is not there is told, as in a run.
    bench.check(
        &[
            "sweep",
            scenario,
            "--strategy",
            "observation-masking",
            "-P",
            "clear_results.keep_last=1,3",
            "--keeps",
            "answers",
            "--out",
            "missed",
        ],
        105,
        &["--replay auto"],
    );
}

#[test]
fn a_sweep_that_recommends_nothing_says_why_and_writes_every_file() {
    let bench = swept();
    let old = "# Recommended by another sweep\n";
    let check = |more: &[&str], says: &[&str]| {
        let files = ["s.json", "s.html", "s.txt", "sweep.svg"];
        for file in files {
            bench.write(file, old);
        }
        let sweep = ["sweep", "ci.toml", "-P", "clear_results.keep_last=9,11"];
        let outputs = files.map(|file| ["-o", file]);
        let applied = ["--apply", "mine.toml"];
        let typed = [&sweep[..], &outputs.concat(), &applied, more].concat();
        let said = bench.check(&typed, 4, says);
        for file in files {
            assert_ne!(bench.read(file), old, "{file}: {said}");
        }
        assert!(!bench.path().join("mine.toml").exists(), "{said}");
        said
    };
    // Masking at every call breaks the cache at every call.
    let dear = ["--out", "dear"];
    check(&dear, &["`mine.toml` is not written: no recommendation: no setting that keeps facts"]);
    let small = ["--window", "9000", "--out", "small"];
    let broken = ["all 3 settings are broken", "out of window in 9 of 9", "first at call"];
    let said = check(&small, &broken);
    assert!(!said.contains("above 0"), "{said}");
    let unasked = ["--keeps", "answers", "--out", "unasked"];
    let hint = "write `--keeps facts`";
    check(&unasked, &["`--keeps answers` was not measured", hint]);
}

#[test]
fn a_sweep_of_recordings_keeps_what_was_measured_and_takes_folders() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("many")).unwrap();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/recorded");
    let recordings = fs::read_dir(scenarios).unwrap();
    for path in recordings.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|it| it == "jsonl") {
            fs::copy(&path, bench.path().join("many").join(path.file_name().unwrap())).unwrap();
        }
    }
    let said = bench.check(
        &[
            "sweep",
            "--session",
            "many",
            "--strategy",
            "observation-masking",
            "-P",
            "clear_results.keep_last=1..40:1",
            "--out",
            "s",
        ],
        0,
        &[
            "kept is actions (not measured: answers, facts)",
            "more settings: -o sweep.html / --json has them",
        ],
    );
    let printed = said.split("Sweep of 40 settings").nth(1).unwrap();
    let printed: Vec<&str> = printed.lines().collect();
    let end = printed.iter().position(|line| line.starts_with("Next")).unwrap();
    assert!(end < 40, "{said}");
    assert!(!said.contains("by 0.0 pts"), "{said}");
}

#[test]
fn a_trigger_is_swept_though_the_preset_has_another_condition() {
    let bench = Bench::new();
    let text = scenario(10, 1, 4).replace("rounds = 24", "rounds = 16");
    bench.write("ci.toml", &text);
    let said = bench.check(
        &[
            "sweep",
            "ci.toml",
            "--strategy",
            "learn-claude-code-s06",
            "-P",
            "clear_results.keep_last=2,8",
            "-P",
            "summarize.when.window_fraction=0.1,0.9",
            "--out",
            "s",
            "-o",
            "s.json",
        ],
        0,
        &[
            "5 settings; chosen on 4 sessions, tried on 0",
            "columns: summarize.when.window_fraction",
        ],
    );
    assert!(
        said.contains("12 independent sessions are the least")
            || said.contains("no recommendation"),
        "{said}"
    );
    let sweep: serde_json::Value = serde_json::from_str(&bench.read("s.json")).unwrap();
    // An early summary saves more than a late one: the condition is in force.
    let knob = sweep["sensitivity"]
        .as_array()
        .unwrap()
        .iter()
        .find(|knob| knob["knob"] == "summarize.when.window_fraction");
    assert!(knob.unwrap()["cost_range"].as_f64().unwrap() > 0.0, "{said}");
    // Guards and the answer to a refused prompt are knobs as well.
    let guards = [
        "sweep",
        "ci.toml",
        "--strategy",
        "codex",
        "-P",
        "guards.max_consecutive_failures=1,3",
        "-P",
        "overflow.max_retries=1,2",
        "--out",
        "g",
    ];
    bench.check(
        &guards,
        0,
        &["5 settings", "rows: guards.max_consecutive_failures; columns: overflow.max_retries"],
    );
}

#[test]
fn drawing_tries_less_and_mistakes_are_told() {
    let bench = swept();
    bench.check(
        &[
            "sweep",
            "ci.toml",
            "-P",
            "clear_results.keep_last=1..8:1",
            "--random",
            "2",
            "--out",
            "d",
        ],
        0,
        &["3 settings"],
    );
    bench.check(
        &["sweep", "ci.toml", "-P", "clear_results.keep_lost=1", "--out", "x"],
        3,
        &["did you mean `keep_last`"],
    );
    bench.check(
        &["sweep", "ci.toml", "-P", "clear_results.keep_last", "--out", "x"],
        2,
        &["no values"],
    );
    bench.check(
        &["sweep", "ci.toml", "-P", "clear_results.keep_last=1", "-o", "s.svg"],
        2,
        &["`.txt`, `.sweep.svg`"],
    );
    bench.check(
        &["sweep", "-P", "clear_results.keep_last=1", "--out", "x"],
        2,
        &["turns the knobs of one strategy"],
    );
    bench.check(
        &["run", "ci.toml", "--strategy", "nowhere.toml"],
        3,
        &["cannot read preset `nowhere.toml`"],
    );
}

#[test]
fn a_run_alone_is_written_for_build_servers_too() {
    let bench = baselined(10);
    bench.check(&["report", "old", "-o", "r.junit.xml", "-o", "r.json"], 0, &[]);
    let junit = bench.read("r.junit.xml");
    assert!(
        junit.contains("tests=\"2\" failures=\"0\"") && junit.contains("name=\"controls\"/>"),
        "{junit}"
    );
    assert!(bench.read("r.json").contains("proctor-report"));
    // Under GitHub the summary of a step is the report, where nothing is compared.
    let summary = bench.path().join("summary");
    let told = [("GITHUB_ACTIONS", "true"), ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
    assert!(bench.with(&["run", "ci.toml", "--out", "old"], &told).status.success());
    assert!(bench.read("summary").starts_with("# Compaction report: ci"));
    // A strategy that lets sessions die fails.
    bench.write("none.toml", &scenario(10, 1, 2).replace("60_000", "9_000"));
    bench.check(
        &["run", "none.toml", "--strategy", "none", "--out", "dead", "-o", "d.junit.xml"],
        0,
        &[],
    );
    assert!(bench.read("d.junit.xml").contains("<failure message=\"broken (died "));
}

/// A document with the checksum of what it says.
fn signed(json: &str) -> String {
    let mut json = json.to_owned();
    checked::sign(&mut json, checked::DOCUMENT);
    json
}

/// The baseline `main` of a bench, altered and signed again.
fn age(bench: &Bench, alter: impl Fn(&mut serde_json::Value)) {
    let mut file: serde_json::Value =
        serde_json::from_str(&bench.read("baselines/main.json")).unwrap();
    alter(&mut file);
    file.as_object_mut().unwrap().remove("check");
    bench.write("baselines/main.json", &signed(&file.to_string()));
}

#[test]
fn a_baseline_is_refreshed_by_a_run_of_the_same_and_by_no_other() {
    let bench = baselined(10);
    let first = bench.read("baselines/main.json");
    age(&bench, |file| {
        file["conditions"]["proctor"] = "0.0.1".into();
        let (_, strategy) = file["strategies"].as_object_mut().unwrap().iter_mut().next().unwrap();
        let (_, session) = strategy["sessions"].as_object_mut().unwrap().iter_mut().next().unwrap();
        session["metrics"]["bill"] = serde_json::json!([1.0]);
    });
    let refresh = ["baseline", "refresh", "main", "--run"];
    let with = |run| [&refresh[..], &[run]].concat();
    bench.check(&with("old"), 0, &["refreshed `baselines/main.json`", ": bill +"]);
    assert_eq!(bench.read("baselines/main.json"), first);
    bench.check(&with("old"), 0, &["no score moved"]);
    bench.write("ci.toml", &scenario(3, 1, 8));
    bench.check(&["run", "ci.toml", "--out", "other"], 0, &[]);
    bench.check(
        &with("other"),
        106,
        &["is not a run of what `main` was saved from: strategy ours"],
    );
    assert_eq!(bench.read("baselines/main.json"), first);
}

/// A price file of the agent's model and of the small one that writes its summaries.
fn price_file(date: &str, input: u32, read: f64, small: f64) -> String {
    format!(
        "format = 'proctor-prices'\nversion = 1\nprovider = 'anthropic'\ndate = '{date}'\n\
         document = 'a letter'\nfast = 'our-small'\n\
         [[models]]\nnames = ['our-model']\ninput = {input}\ncache_write = {input}\ncache_read = {read}\n\
         output = 12\n\
         [[models]]\nnames = ['our-small']\ninput = {small}\noutput = 5\n"
    )
}

/// A bench with a baseline at old prices, and runs of the same and of a dearer strategy at new ones.
fn repriced() -> Bench {
    let bench = Bench::new();
    bench.write("old.toml", &price_file("2026-01-02", 3, 0.3, 1.0));
    bench.write("new.toml", &price_file("2026-11-01", 2, 0.7, 1.9));
    let own = "[[strategies]]\npreset = 'compact-directly'\nname = 'summarised'\n\
               set = { summarize.mode = 'fresh', summarize.model = 'fast' }\n";
    bench.write("ci.toml", &(scenario(1, 1, 4) + own));
    bench.write("worse.toml", &(scenario(3, 1, 4) + own));
    let run = |suite, prices, out, more: &[&str]| {
        let model = ["--set", "cache.model=our-model"];
        let prices = format!("cache.prices={prices}");
        let fixed = ["run", suite, "--set", &prices, "--out", out];
        bench.check(&[&fixed[..], &model, more].concat(), 0, &[]);
    };
    run("ci.toml", "old.toml", "old", &["--save-baseline", "main"]);
    run("ci.toml", "new.toml", "new", &[]);
    run("worse.toml", "new.toml", "worse", &[]);
    bench
}

#[test]
fn the_model_that_small_calls_are_billed_as_is_named_wherever_trust_is_printed() {
    let bench = Bench::new();
    bench.write("prices.toml", &price_file("2026-01-02", 3, 0.3, 1.0));
    let run = |model: &str| {
        let own = format!(
            "[[strategies]]\npreset = 'compact-directly'\nname = 'summarised'\n\
             set = {{ summarize.mode = 'fresh', summarize.model = '{model}' }}\n"
        );
        bench.write("ci.toml", &(scenario(1, 1, 1) + &own));
        let priced = ["--set", "cache.prices=prices.toml", "--set", "cache.model=our-model"];
        let files = ["--out", model, "-o", "page.html", "-o", "report.md"];
        let said = bench.check(&[&["run", "ci.toml"][..], &priced, &files].concat(), 0, &[]);
        let json = bench.check(&["report", model, "--json"], 0, &[]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let trust = json["trust"].as_str().unwrap().to_owned();
        [said, bench.read("page.html"), bench.read("report.md"), trust]
            .map(|text| text.replace('\\', "").replace("<code>", "`").replace("</code>", "`"))
    };
    let words = "alls to `fast` are billed as our-small (prices of 2026-01-02)";
    for text in run("fast") {
        assert!(text.contains(words), "{text}");
    }
    for text in run("our-small") {
        assert!(!text.contains("are billed as"), "{text}");
    }
    let retired = price_file("2026-01-02", 3, 0.3, 1.0) + "retired = '2026-01-01'\n";
    bench.write("prices.toml", &retired);
    let problem =
        "prices.toml`: line 6: the model of `fast`, `our-small`, was retired on 2026-01-01";
    bench.check(&["run", "ci.toml", "--set", "cache.prices=prices.toml"], 3, &[problem]);
}

#[test]
fn new_prices_between_a_baseline_and_a_run_break_no_build() {
    let bench = repriced();
    let words =
        "osts of 4 sessions: both sides priced with the candidate's prices (our-model, 2026-11-01)";
    let margins = ["--margin", "bill=0"];
    let gate = |run: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        let fixed = ["compare", "--gate", run, "--baseline", "main", "--fail-on", "inconclusive"];
        [&fixed[..], &margins, more].concat()
    };
    let baseline = bench.read("baselines/main.json");
    let files = ["-o", "gate.junit.xml", "-o", "gate.md"];
    let said = bench.check(&gate("new", &files), 0, &[words, "the gate passed"]);
    assert_eq!(said.matches("priced with").count(), 1, "{said}");
    assert!(!said.contains("not compared"), "{said}");
    assert_eq!(bench.read("gate.md").matches("priced with").count(), 1);
    let suites = bench.read("gate.junit.xml");
    let case = suites.split("name=\"bill\">").nth(1).unwrap();
    assert!(case.split("</testcase>").next().unwrap().contains("priced with"), "{suites}");
    // Two runs are no different, and neither side is changed by it.
    bench.check(&["compare", "old", "new"], 0, &[words]);
    assert_eq!(bench.read("baselines/main.json"), baseline);
    let output = bench.run(&gate("new", &["--json"]));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for one in json["comparisons"].as_array().unwrap() {
        let comparison = &one["comparison"];
        assert_eq!(comparison["repriced"]["sessions"], 4);
        let metrics = comparison["metrics"].as_array().unwrap().iter();
        let priced = metrics.filter(|it| it["metric"] == "bill");
        let priced: Vec<_> = priced.collect();
        assert_eq!(priced.len(), 1, "{comparison}");
        for metric in priced {
            assert_eq!(metric["baseline"], metric["candidate"]);
        }
    }
    // At the prices of then the costs were others.
    let before: serde_json::Value = serde_json::from_str(&baseline).unwrap();
    let first = &json["comparisons"][0]["comparison"];
    let cost =
        first["metrics"].as_array().unwrap().iter().find(|it| it["metric"] == "bill").unwrap();
    let mut sum = 0.0;
    for (_, session) in
        before["strategies"][first["baseline"].as_str().unwrap()]["sessions"].as_object().unwrap()
    {
        sum += session["metrics"]["dollars"][0].as_f64().unwrap();
    }
    let now = cost["baseline"].as_f64().unwrap();
    assert!((now / sum - 1.0).abs() > 0.05, "{now} {sum}");
    // What costs more at the same prices still fails.
    bench.check(&gate("worse", &[]), 100, &[words, "bill"]);
}

#[test]
fn the_screen_says_whose_prices_both_sides_have() {
    let bench = repriced();
    for arguments in
        [&["compare", "--gate", "new", "--baseline", "main"][..], &["compare", "main", "new"]]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
            .args(arguments)
            .current_dir(bench.path())
            .env("COLUMNS", "1000")
            .env_remove("GITHUB_ACTIONS")
            .output()
            .unwrap();
        let said = text(&output);
        let words = " Costs of 4 sessions: both sides priced with the candidate's prices (our-model, 2026-11-01) [W23].";
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
}

#[test]
fn costs_of_unknown_prices_are_not_compared_at_other_prices_and_never_pass_in_silence() {
    let bench = baselined(10);
    age(&bench, |file| {
        let session = file["sessions"].as_object().unwrap().keys().next().unwrap().clone();
        file["conditions"]["prices"] = serde_json::json!({ session: "yesterday's" });
        file.as_object_mut().unwrap().remove("rates").unwrap();
    });
    let gate = ["compare", "--gate", "old", "--baseline", "main"];
    let note = "the prices of 1 session are not the same";
    bench.check(&gate, 0, &[note, "baseline refresh", "the gate passed"]);
    let costs = [&gate[..], &["--margin", "bill=0.05", "--fail-on", "inconclusive"]].concat();
    bench.check(
        &costs,
        103,
        &[note, "inconclusive: the prices of 1 session are not those of the baseline"],
    );
}
