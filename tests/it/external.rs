//! External strategies: programs that keep the protocol, and programs that do not.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proctor::check;
use proctor::model::Request;
use proctor::model::scripted::{Scripted, response};
use proctor::record::journal::RecordedRun;
use proctor::record::{CellRecord, End};
use proctor::replay::{NoClock, PreparedSession, Replayed, plumbing, replay};
use proctor::session::synthetic::{self, Length, Recipe};
use proctor::session::{Session, import};
use proctor::settings::{Place, Setting, SettingTable, SettingValue};
use proctor::strategy::StrategySpec;
use proctor::strategy::external::Host;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

use crate::goldens::sampled;
use crate::shared;
use crate::support::{cell, interrupt, models, prepared, reading_session, refusal, strategy};
use crate::walk::{Walk, said_in};

/// In a program of the shell: reads a line and says `answer`, a JSON object, to the last one that wants it.
const SHELL: &str = r#"
next() { read -r line || exit 0; case $line in '{"id":'*) id=${line#*:}; id=${id%%,*} ;; esac; }
say() { printf '%s,"id":%s}\n' "${1%\}}" $id; }
next; say '{"type":"hello","protocol":2}'
"#;

/// A program of the shell, which every machine has: `$line` is each line that it is sent after `hello`, and `say`
/// answers it.
fn shell(body: &str) -> Vec<String> {
    let script = format!(
        "{SHELL}while next; do case $line in *'\"type\":\"session\"'*) ;; *) {body} ;; esac; done"
    );
    vec!["sh".to_owned(), "-c".to_owned(), script]
}

fn host() -> Host {
    Host {
        environment: [("PATH".into(), std::env::var_os("PATH").unwrap())].into(),
        folder: std::env::temp_dir(),
        ..Host::default()
    }
}

fn spec(command: &[String], knobs: &[(&str, i64)]) -> StrategySpec {
    let mut table = SettingTable::parse("own", "").unwrap();
    let place = table.place().clone();
    let words = command.iter().map(|word| Setting::new(word.as_str(), &place));
    table.put("command", words.collect::<Vec<_>>(), &place);
    for (knob, value) in knobs {
        table.put(knob, SettingValue::Integer(*value), &place);
    }
    let spec = StrategySpec::of("own", table, &Trigger::default()).unwrap();
    spec.with_programs(host()).unwrap()
}

fn play(spec: &StrategySpec, session: &PreparedSession, window: u64) -> CellRecord {
    let strategy = Box::new(spec.build().unwrap());
    let replayed = Replayed::Strategy(strategy, Window::new(Tokens(window)));
    let answers = Scripted::new().reply(|_| Ok(response("THE SUMMARY")));
    replay(session, cell("own"), replayed, &models(answers), &NoClock).record
}

fn reading() -> PreparedSession {
    prepared(reading_session(6, 400))
}

/// What the cell says of itself where a program of this body plays it.
fn error_of(body: &str, knobs: &[(&str, i64)]) -> String {
    match play(&spec(&shell(body), knobs), &reading(), 100_000).end {
        End::Failed { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_program_does_wrong_is_the_reason_of_a_failed_cell() {
    for (body, expected) in [
        (
            "echo nonsense >&2; exit 3",
            "exited with status 3 where an answer was due; standard error: nonsense",
        ),
        ("exec >&-; sleep 5", "closed its output"),
        ("echo garbage", "a line that is not JSON: `garbage`"),
        ("printf '{\"type\":'; exit 0", "exited with status 0"),
        ("say '{\"type\":\"unchanged\",\"resaon\":\"x\"}'", "unknown field `resaon`"),
        ("say '{\"type\":\"hello\",\"protocol\":2}'", "this is no answer"),
        ("say '{\"type\":\"messages\",\"messages\":[[0,99]]}'", "there is no range [0,99]"),
        ("say '{\"type\":\"messages\",\"messages\":[]}'", "a context of no messages"),
        (
            "say '{\"type\":\"messages\",\"messages\":[{\"role\":\"system\",\"content\":\"x\"}]}'",
            "`user` or `assistant`",
        ),
        (
            "say '{\"type\":\"messages\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"telepathy\"}]}]}'",
            "unknown block telepathy",
        ),
        (
            "say '{\"type\":\"messages\",\"messages\":[{\"role\":\"user\",\"content\":[\"[image]\"]}]}'",
            "not the text `[image]`",
        ),
        (
            "say '{\"type\":\"edits\",\"edits\":[{\"from\":1,\"to\":1},{\"from\":0,\"to\":1}]}'",
            "out of order",
        ),
        (
            "say '{\"type\":\"ask\",\"messages\":[{\"role\":\"assistant\",\"content\":\"x\"}]}'",
            "the last message of a request is the user's",
        ),
        (
            "while true; do say '{\"type\":\"ask\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}'; next; done",
            "a model was asked 100 times for one answer",
        ),
        ("say '{\"type\":\"error\",\"message\":\"no key\"}'", "gave up: no key"),
    ] {
        let error = error_of(body, &[]);
        assert!(error.contains(expected), "{body}: {error}");
    }
}

/// Answers out of turn, and answers that stand for more than they may.
#[test]
fn an_answer_answers_one_line_and_stands_for_each_message_once() {
    let unasked = "it sent a line that nothing asked for: `{\"type\":\"unchanged\"";
    let unchanged = "say '{\"type\":\"unchanged\"}'";
    let ranges = "yes '[0,1],' | head -n 20000 | tr -d '\\n'";
    for (body, expected) in [
        (format!("{unchanged}; {unchanged}"), unasked),
        (format!("both=$({unchanged}; {unchanged}); echo \"$both\""), unasked),
        // Behind the last call of the session no line follows that would find it.
        (
            format!(
                "case $line in *'\"call\":6,'*) both=$({unchanged}; {unchanged}); echo \"$both\" ;; *) {unchanged} ;; esac"
            ),
            unasked,
        ),
        (format!("id=$((id+1)); {unchanged}"), unasked),
        (format!("id=0; {unchanged}"), unasked),
        (format!("id=null; {unchanged}"), unasked),
        (format!("while :; do {unchanged}; done"), unasked),
        (
            "echo '{\"type\":\"unchanged\"}'".to_owned(),
            "repeats the `id` of the line it answers; this one has none",
        ),
        (
            format!(
                "printf '{{\"type\":\"messages\",\"messages\":['; {ranges}; echo '[0,1]],\"id\":'$id'}}'"
            ),
            "message 0 stands in two ranges",
        ),
        (
            format!(
                "printf '{{\"type\":\"ask\",\"messages\":['; {ranges}; echo '[0,1]],\"id\":'$id'}}'"
            ),
            "message 0 stands in two ranges",
        ),
        (
            "say '{\"type\":\"edits\",\"edits\":[{\"from\":0,\"to\":0,\"with\":[[0,1]]}]}'"
                .to_owned(),
            "message 0 stands in two ranges",
        ),
    ] {
        let error = error_of(&body, &[]);
        assert!(error.contains(expected), "{body}: {error}");
    }
    let script = format!("{SHELL}while next; do {unchanged}; done");
    let command = ["sh", "-c", &script].map(str::to_owned);
    let End::Failed { call, error } = play(&spec(&command, &[]), &reading(), 100_000).end else {
        panic!("it answers `session`, too");
    };
    assert!(call == 0 && error.contains(unasked), "{call}: {error}");
}

/// A message that says the same as one in a range is no second range.
#[test]
fn a_range_and_a_new_message_may_say_the_same() {
    let same = "{\"type\":\"messages\",\"messages\":[{\"role\":\"user\",\"content\":\"Go on.\"},{\"role\":\"user\",\"content\":\"Go on.\"},[0,1]]}";
    let body = format!(
        "case $line in *'\"call\":0,'*) say '{same}' ;; *) say '{{\"type\":\"unchanged\"}}' ;; esac"
    );
    let record = play(&spec(&shell(&body), &[]), &reading(), 100_000);
    assert_eq!(record.end, End::Completed);
}

#[test]
fn a_program_is_held_to_its_limits() {
    let endless = "yes | tr -d '\\n'";
    for (body, knobs, expected) in [
        (
            "sleep 2; say '{\"type\":\"unchanged\"}'",
            &[("timeout_seconds", 1)][..],
            "no answer within 1 s (`timeout_seconds`)",
        ),
        (endless, &[("line_mb", 1)], "a line of more than 1 MB"),
    ] {
        let error = error_of(body, knobs);
        assert!(error.contains(expected), "{body}: {error}");
    }
    let slow = spec(&["sleep".to_owned(), "60".to_owned()], &[("start_seconds", 1)]);
    let End::Failed { error, .. } = play(&slow, &reading(), 100_000).end else {
        panic!("it said nothing");
    };
    assert!(error.contains("no answer within 1 s (`start_seconds`)"), "{error}");
    let missing = spec(&["proctor-has-no-such-program".to_owned()], &[]);
    let End::Failed { error, .. } = play(&missing, &reading(), 100_000).end else {
        panic!("it was started");
    };
    assert!(error.contains("`proctor-has-no-such-program` does not start"), "{error}");
}

#[test]
fn another_version_is_refused() {
    for (version, expected) in [
        ("1", "version 1 of the protocol, and this build 2; update its client"),
        ("3", "version 3 of the protocol, and this build 2, in"),
    ] {
        let script =
            format!("read -r line; echo '{{\"type\":\"hello\",\"protocol\":{version}}}'; cat");
        let command = ["sh", "-c", &script].map(str::to_owned);
        let End::Failed { error, .. } = play(&spec(&command, &[]), &reading(), 100_000).end else {
            panic!("it was accepted");
        };
        assert!(error.contains(expected), "{error}");
    }
}

/// Nothing outlives a program: neither its children nor its folder.
#[test]
#[cfg(target_os = "linux")]
fn a_program_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let body = "sleep 977 & setsid sleep 977 & (setsid sleep 977 &); say '{\"type\":\"error\",\"message\":\"'$PWD'\"}'";
    let plain = spec(&shell(body), &[]);
    let spec = plain.with_programs(Host { folder: folder.path().to_owned(), ..host() }).unwrap();
    let End::Failed { error, .. } = play(&spec, &reading(), 100_000).end else {
        panic!("it went on");
    };
    assert!(error.contains(&folder.path().display().to_string()), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(has_ended("977"));
    // One that goes on at the end of its input, and one that ended itself.
    let deaf = SHELL.replace("exit 0", "setsid sleep 979")
        + "while next; do case $line in '{\"id\"'*) say '{\"type\":\"unchanged\"}' ;; esac; done";
    let gone = format!("{SHELL}(setsid sleep 979 >/dev/null 2>&1 &); exit 1");
    for script in [deaf, gone] {
        let command = ["sh", "-c", &script].map(str::to_owned);
        play(&self::spec(&command, &[]), &reading(), 100_000);
        assert!(has_ended("979"), "{script}");
    }
}

#[test]
fn the_line_of_standard_error_that_says_most_comes_first() {
    for (printed, expected) in [
        (
            "Traceback (most recent call last):\n  File \"mine.py\", line 1\nKeyError: 'content'\n",
            "; standard error ends with: KeyError: 'content'",
        ),
        (
            "Error [ERR]: Cannot find module '/x/proctor_strategy.js' imported from /x/mine.mjs\n    at load (node:internal)\n  code: 'ERR'\n}\n\nNode.js v22.1.0\n",
            "; standard error ends with: Error [ERR]: Cannot find module '/x/proctor_strategy.js' imported from /x/mine.mjs; copy `clients/typescript",
        ),
    ] {
        let error =
            error_of(&format!("printf '%s' \"{}\" >&2; exit 1", printed.replace('"', "\\\"")), &[]);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_script_as_a_preset_says_how_it_is_meant() {
    let place = Place::Flag("--strategy my.py".into());
    let error = StrategySpec::parse("my.py", &Trigger::default(), &place).unwrap_err();
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("`--strategy-cmd 'python3 my.py'`"), "{hint}");
}

/// Whether no `sleep` of this many seconds is left after ten of them.
fn has_ended(seconds: &str) -> bool {
    let wanted = format!("sleep\0{seconds}\0").into_bytes();
    let is_sleeping = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.unwrap().path().join("cmdline"));
        line.unwrap_or_default() == wanted
    };
    // A process that was killed is there until its end is noticed.
    (0..1_000).any(|_| {
        let is_there = std::fs::read_dir("/proc").unwrap().any(is_sleeping);
        if is_there {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        !is_there
    })
}

/// At the first Ctrl-C where the costs of a run are estimated, at the second where a cell waits.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_hangs_ends_with_an_interrupted_one_and_so_does_what_it_started() {
    let folder = folder_with("sleep 978 & touch \"${0%/*}/hanging\"; wait");
    let mut proctor = std::process::Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["run", "own.toml", "--out", "run"])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    let hanging = folder.path().join("hanging");
    while !hanging.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    while proctor.try_wait().unwrap().is_none() {
        interrupt(&proctor);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(proctor.wait().unwrap().code(), Some(130));
    assert!(has_ended("978"));
}

#[test]
fn an_environment_holds_what_was_let_in_and_no_more() {
    let error = error_of(
        "say \"{\\\"type\\\":\\\"error\\\",\\\"message\\\":\\\"$(env | cut -d= -f1 | sort | tr '\\n' ' ')\\\"}\"",
        &[],
    );
    let names: Vec<&str> = error.split("gave up: ").nth(1).unwrap().split_whitespace().collect();
    let known = [
        "LANG",
        "PATH",
        "PWD",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONPATH",
        "TMPDIR",
        "TZ",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
}

/// The four forms of one answer make the same context.
#[test]
fn a_context_is_the_same_in_whatever_form_it_is_answered() {
    let once = |answer: &str| {
        format!(
            "case $line in *'\"call\":3,'*) say '{answer}' ;; *) say '{{\"type\":\"unchanged\"}}' ;; esac"
        )
    };
    let played = |answer: &str| play(&spec(&shell(&once(answer)), &[]), &reading(), 100_000);
    let new = "{\"role\":\"user\",\"content\":\"SHORT\"}";
    let by_list = played(&format!("{{\"type\":\"messages\",\"messages\":[{new},[4,7]]}}"));
    assert_eq!(by_list.end, End::Completed);
    assert_eq!(by_list.compactions.len(), 1, "{:?}", by_list.compactions);
    assert!(by_list.compactions[0].after < by_list.compactions[0].before);
    for other in [
        format!("{{\"type\":\"edits\",\"edits\":[{{\"from\":0,\"to\":4,\"with\":[{new}]}}]}}"),
        "{\"type\":\"summary\",\"from\":0,\"to\":4,\"text\":\"SHORT\"}".to_owned(),
        format!("{{\"type\":\"messages\",\"messages\":[{new},[4,5],[5,6],[6,7]]}}"),
    ] {
        assert_eq!(played(&other), by_list, "{other}");
    }
}

/// A program that wants the whole history gets it at every call, whatever it answered before; and the same answer again
/// changes nothing.
#[test]
fn the_whole_history_is_sent_at_every_call_and_the_same_answer_changes_nothing() {
    let greeting = SHELL.replace("\"protocol\":2", "\"protocol\":2,\"history\":\"full\"");
    let script = "while next; do case $line in *'\"type\":\"session\"'*) continue ;; esac; \
        case $line in *'\"call\":0,'*|*'\"call\":1,'*) say '{\"type\":\"unchanged\"}'; continue ;; esac; \
        n=$(echo \"$line\" | grep -o '\"role\"' | wc -l); \
        say '{\"type\":\"messages\",\"messages\":[{\"role\":\"user\",\"content\":\"SHORT\"},[4,'$n']],\"reason\":\"'$n'\"}'; done";
    let command = ["sh", "-c", &(greeting + script)].map(str::to_owned);
    let record = play(&spec(&command, &[]), &reading(), 100_000);
    assert_eq!(record.end, End::Completed);
    // One compaction makes it short; the answers after that make what stands already.
    let [once] = &record.compactions[..] else {
        panic!("{:?}", record.compactions);
    };
    assert_eq!((once.call, &*once.reason), (2, "5"));
}

/// A request of a program is asked, metered, and answered on its line.
#[test]
fn what_a_program_asks_is_metered() {
    let body = "case $line in \
        *'\"call\":3,'*) say '{\"type\":\"ask\",\"system\":\"You summarise.\",\"messages\":[[0,4],{\"role\":\"user\",\"content\":\"Sum up.\"}]}'; \
            next; text=${line#*text\\\":\\\"}; \
            say \"{\\\"type\\\":\\\"summary\\\",\\\"from\\\":0,\\\"to\\\":4,\\\"text\\\":\\\"${text%%\\\"*}\\\"}\" ;; \
        *) say '{\"type\":\"unchanged\"}' ;; esac";
    let record = play(&spec(&shell(body), &[]), &reading(), 100_000);
    assert_eq!(record.end, End::Completed);
    let [asked] = &record.model_calls[..] else {
        panic!("{:?}", record.model_calls);
    };
    assert!(asked.usage.prompt().0 > 100 && asked.failure.is_none(), "{asked:?}");
    let after = record.changes[0].after.as_ref().unwrap();
    assert_eq!(after.text, "THE SUMMARY");
}

/// A summariser is a model whose text comes into the context, whole or in place of a result; one that is asked for a
/// title is none.
#[test]
fn an_answer_that_comes_into_no_prompt_is_no_summary() {
    let result = |text: &str| {
        let content =
            format!(r#"[{{"type":"tool_result","tool_use_id":"t0","content":"{text}"}}]"#);
        format!(
            r#"{{"type":"messages","messages":[[0,2],{{"role":"user","content":{content}}},[3,7]]}}"#
        )
    };
    for (then, unread) in [
        (r#"{"type":"unchanged"}"#.to_owned(), 1),
        (result("[cleared]"), 1),
        (result("$text"), 0),
        (r#"{"type":"summary","from":0,"to":4,"text":"Note: $text"}"#.to_owned(), 0),
    ] {
        let ask = r#"{"type":"ask","messages":[[0,4],{"role":"user","content":"Sum up."}]}"#;
        let then = then.replace('"', "\\\"");
        let body = format!(
            r#"case $line in *'"call":3,'*) say '{ask}'; next; text=${{line#*text\":\"}}; text=${{text%%\"*}}; say "{then}" ;;
            *) say '{{"type":"unchanged"}}' ;; esac"#
        );
        let record = play(&spec(&shell(&body), &[]), &reading(), 100_000);
        assert_eq!(record.end, End::Completed, "{then}");
        assert_eq!((record.model_calls.len(), record.summary_health.unread), (1, unread), "{then}");
    }
}

/// One process serves cell after cell.
#[test]
fn a_process_is_used_again() {
    let spec =
        spec(&shell("say \"{\\\"type\\\":\\\"unchanged\\\",\\\"reason\\\":\\\"$$\\\"}\""), &[]);
    for _ in 0..3 {
        assert_eq!(play(&spec, &reading(), 100_000).end, End::Completed);
    }
    let counted = "n=$((n+1)); if [ $n -gt 7 ]; then say '{\"type\":\"error\",\"message\":\"the eighth\"}'; else say '{\"type\":\"unchanged\"}'; fi";
    let counting = self::spec(&shell(counted), &[]);
    let ends: Vec<bool> =
        (0..3).map(|_| play(&counting, &reading(), 100_000).end == End::Completed).collect();
    assert_eq!(
        ends,
        [true, false, true],
        "the second cell goes on with the first one's process, the third has its own"
    );
}

/// The folder of a scenario that runs `own.sh` of this body.
fn folder_with(body: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let [_, _, script] = &shell(body)[..] else {
        unreachable!("three words");
    };
    std::fs::write(folder.path().join("own.sh"), script).unwrap();
    let scenario = "name = 'own'\ncontrols = false\nwindow = { mode = 'native', tokens = 30_000 }\n\
        [[sessions]]\nsynthetic = { family = 'debugging', seed = 1, rounds = 8 }\n\
        [[strategies]]\nname = 'own'\ncommand = ['sh', 'own.sh']\n";
    std::fs::write(folder.path().join("own.toml"), scenario).unwrap();
    folder
}

/// The manifest of a run of that scenario, as text.
fn manifest_of(folder: &Path) -> String {
    let mut command = assert_cmd::Command::cargo_bin("proctor").unwrap();
    // Paths start at the scenario, wherever the command is given.
    let done = command
        .args(["run", "own.toml", "--reports", "runs"])
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let run = std::fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let newest = run.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    std::fs::read_to_string(newest.unwrap_or_else(|| panic!("{said}")).join("run.json")).unwrap()
}

#[test]
fn a_scenario_names_a_program_and_holds_no_path_of_this_machine() {
    let folder = folder_with("say '{\"type\":\"unchanged\"}'");
    let first = manifest_of(folder.path());
    assert!(
        first.contains("own.sh") && !first.contains(&folder.path().display().to_string()),
        "{first}"
    );
    assert!(!first.contains("is_random"), "{first}");
    let script = folder.path().join("own.sh");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, format!("{text}\n# changed")).unwrap();
    assert_ne!(manifest_of(folder.path()), first, "another program is another run");
}

/// Runs the scenario of [`folder_with`] with the controls of its strategies, in the same folder each time: the cell
/// of each strategy, and what was said.
fn rerun(folder: &Path, arguments: &[&str]) -> (BTreeMap<String, CellRecord>, String) {
    let mut command = assert_cmd::Command::cargo_bin("proctor").unwrap();
    let given = ["run", "own.toml", "--out", "run", "--set", "controls=true"];
    command.args(given).args(arguments).current_dir(folder);
    let said = command.output().unwrap().stderr;
    let cells = RecordedRun::read(&folder.join("run")).unwrap().cells;
    let lines = std::fs::read_to_string(folder.join("run/cells.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), cells.len(), "each cell has one line");
    let by_name = cells.into_iter().map(|cell| (cell.strategy.clone(), cell));
    (by_name.collect(), String::from_utf8(said).unwrap())
}

/// The fingerprint holds the script that is named: what else it reads may change between two runs.
#[test]
fn a_finished_run_replays_its_programs_and_tries_failed_cells_again() {
    let folder = folder_with("say \"$(cat \"${0%/*}/answer\")\"");
    let answer = |text: &str| std::fs::write(folder.path().join("answer"), format!("{text}\n"));
    answer("no message of the protocol").unwrap();
    let (failed, _) = rerun(folder.path(), &[]);
    assert!(matches!(failed["own"].end, End::Failed { .. }));
    answer(r#"{"type":"summary","from":0,"to":1,"text":"one"}"#).unwrap();
    let (first, said) = rerun(folder.path(), &[]);
    assert_eq!(first["own"].end, End::Completed);
    assert!(
        said.contains("computed again, because a cell failed, a program may have changed"),
        "{said}"
    );
    answer(r#"{"type":"summary","from":0,"to":1,"text":"a text of several words"}"#).unwrap();
    let (second, said) = rerun(folder.path(), &[]);
    assert_ne!(second["own"].prompt_tokens, first["own"].prompt_tokens);
    // With its control, which has its sizes.
    assert!(said.starts_with("2 finished cells are"), "{said}");
    let (third, said) = rerun(folder.path(), &["--fresh"]);
    assert!(third == second);
    assert!(said.starts_with("4 finished cells are"), "{said}");
}

/// What an editor is told of a scenario takes a program, and no word that there is none.
#[test]
fn the_schema_of_scenarios_knows_a_command() {
    let mut command = assert_cmd::Command::cargo_bin("proctor").unwrap();
    let printed = command.args(["schema", "scenario"]).output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    let scenario = |key: &str| {
        serde_json::json!({
            "sessions": [{ "path": "a.jsonl" }],
            "strategies": [{ "name": "own", "command": ["python3", "own.py"], key: 5 }],
        })
    };
    assert_eq!(refusal(&schema, &scenario("timeout_seconds")), None);
    assert!(refusal(&schema, &scenario("timeout")).is_some());
}

#[test]
fn a_program_that_answers_differently_is_marked() {
    let folder = folder_with(
        "n=$((n+1)); say \"{\\\"type\\\":\\\"summary\\\",\\\"from\\\":0,\\\"to\\\":1,\\\"text\\\":\\\"$n\\\"}\"",
    );
    assert!(manifest_of(folder.path()).contains("\"is_random\": true"));
}

/// A program of the repository, in Python, with its arguments; `None` (with a line that says `skipped`) where there is no Python.
fn in_python(path: &str, seconds: i64) -> Option<StrategySpec> {
    let is_there = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !is_there {
        assert!(std::env::var_os("PROCTOR_SHARED_REQUIRED").is_none(), "python3 is missing");
        println!("skipped: there is no python3");
        return None;
    }
    let mut words = path.split(' ').map(str::to_owned);
    let file = words.next().map(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    let file = file.iter().map(|file| file.display().to_string());
    let command: Vec<String> =
        ["python3".to_owned()].into_iter().chain(file).chain(words).collect();
    Some(spec(&command, &[("timeout_seconds", seconds)]))
}

#[test]
fn a_check_finds_what_is_planted_in_each_broken_program() {
    for (program, law, seconds) in sampled([
        ("crashes", "answers", 20),
        ("garbage", "answers", 20),
        ("hangs", "answers", 1),
        ("other_version", "answers", 20),
        ("out_of_range", "answers", 20),
        ("breaks_utf8", "answers", 20),
        ("random_answer", "deterministic", 20),
        ("orphans_results", "valid_context", 20),
        ("drops_last_user", "newest_request_stays", 20),
        ("grows", "never_larger", 20),
        ("loses_on_failure", "safe_failure", 20),
    ]) {
        let Some(program_of) = in_python(&format!("tests/programs/{program}.py"), seconds) else {
            return;
        };
        let outcome = match check::check(&program_of, &settings_for(&[law])) {
            Err(_) if law == "answers" => continue,
            outcome => outcome.unwrap(),
        };
        let mut laws = outcome.laws.iter();
        let found = laws.find_map(|checked| checked.finding().filter(|_| checked.law == law));
        let finding = found.unwrap_or_else(|| panic!("{program}: {law} was kept"));
        let messages = finding.session.messages().len();
        assert!(messages <= 8, "{program}: {messages} messages: {}", finding.got);
    }
}

#[test]
fn laws_that_a_slow_program_leaves_no_time_for_are_not_kept() {
    let Some(program) = in_python("tests/programs/loses_on_failure.py", 20) else {
        return;
    };
    let settings = settings_for(&[]);
    settings.stop.request();
    let outcome = check::check(&program, &settings).unwrap();
    let mut laws = outcome.laws.iter();
    let judged = laws.find(|checked| !matches!(checked.state, check::LawState::OutOfTime));
    assert!(judged.is_none(), "{judged:?}");
    assert_eq!(outcome.changed.0, 0);
}

/// Each has its fault in one play alone: under refused prompts, beside a system prompt, with a model that declines or
/// never answers, or where sets have another order.
#[test]
fn a_check_plays_what_shows_a_fault() {
    for (program, law, shown) in sampled([
        (
            "forgets_system_prompt",
            "in_time",
            "the prompt was refused before it acted, in a window of 32000 tokens",
        ),
        ("gives_up", "goes_on", "under summaries that all fail"),
        ("drops_on_refusal", "newest_request_stays", "call 6: "),
        ("accepts_refusals", "whole_answers", "the answer declined"),
        ("lists_tools", "deterministic", "two replays differ"),
    ]) {
        let Some(scene) = scene_found(&format!("{program}.py"), law, shown) else {
            return;
        };
        assert_eq!(scene == "refused-32k", program == "drops_on_refusal", "{scene}");
    }
}

#[test]
fn a_check_finds_what_is_said_otherwise_than_it_was() {
    for (fault, law, shown) in sampled([
        ("exchanged", "edits_keep", " is that of `call-"),
        ("success", "edits_keep", " failed, and the prompt does not say so"),
        ("half", "edits_keep", " is cut within a character"),
        ("arguments", "newest_results_stay", "the arguments of `call-"),
    ]) {
        if scene_found(&format!("misstates.py {fault}"), law, shown).is_none() {
            return;
        }
    }
}

/// The scene in which a program is found to break a law, in these words; `None` without Python.
fn scene_found(program: &str, law: &str, shown: &str) -> Option<String> {
    let spec = in_python(&format!("tests/programs/{program}"), 20)?;
    let outcome = check::check(&spec, &settings_for(&[law])).unwrap();
    let finding = outcome.laws[0].finding();
    let found = finding.unwrap_or_else(|| panic!("{program}: {law} was kept"));
    assert!(found.got.contains(shown), "{program}: {}", found.got);
    Some(found.scene.clone())
}

fn settings_for(laws: &[&str]) -> check::Settings {
    check::Settings {
        seed: 1,
        only: laws.iter().map(|law| (*law).to_owned()).collect(),
        ..check::Settings::default()
    }
}

/// A check whose time ends when the program writes the file `late` into this folder, which is then told by `stopped`.
fn checked_until_late(folder: &Path, spec: &StrategySpec, laws: &[&str]) -> check::CheckOutcome {
    let settings = settings_for(laws);
    let stop = settings.stop.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut waits = 0..6_000;
            while !folder.join("late").exists() && waits.next().is_some() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            stop.request();
            std::fs::write(folder.join("stopped"), "").unwrap();
        });
        check::check(spec, &settings).unwrap()
    })
}

#[test]
fn a_program_that_hangs_does_not_lack_time() {
    let folder = tempfile::tempdir().unwrap();
    let hangs = format!("touch '{}/late'; sleep 60", folder.path().display());
    let spec = spec(&shell(&hangs), &[("timeout_seconds", 1)]);
    let outcome = checked_until_late(folder.path(), &spec, &[]);
    let finding = outcome.laws[0].finding();
    let got = finding.map(|finding| &*finding.got).unwrap_or_default();
    assert!(got.contains("no answer within 1 s"), "{:?}", outcome.laws[0].state);
}

/// The time ends in the second scene, and when thirteen are judged and one is made smaller.
#[test]
fn a_finding_stays_where_the_time_ends_after_it() {
    let mut sizes = Vec::new();
    for (last, is_late) in [("2", true), ("18", false)] {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("loses_time.py");
        std::fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/loses_time.py"),
            &program,
        )
        .unwrap();
        std::fs::write(folder.path().join("last"), last).unwrap();
        let Some(spec) = in_python(&program.display().to_string(), 20) else {
            return;
        };
        let laws = ["valid_context", "order_stays", "one_summary_per_span"];
        let outcome = checked_until_late(folder.path(), &spec, &laws);
        let states = outcome.laws.iter().map(|checked| &checked.state);
        let [check::LawState::Broken(finding), others @ ..] = &states.collect::<Vec<_>>()[..]
        else {
            panic!("{last}: {:?}", outcome.laws);
        };
        sizes.push(finding.session.messages().len());
        let late = others.iter().map(|state| matches!(state, check::LawState::OutOfTime));
        assert_eq!(late.collect::<Vec<_>>(), [is_late; 2], "{last}: {others:?}");
    }
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

#[test]
fn a_check_without_time_for_all_laws_ends_with_5() {
    let folder = folder_with("say '{\"type\":\"unchanged\"}'");
    let mut command = assert_cmd::Command::cargo_bin("proctor").unwrap();
    let check = ["check", "--max-seconds", "0", "--junit", "laws.xml", "--", "sh", "own.sh"];
    let done = command.args(check).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(5), "{said}");
    let laws = check::laws().count();
    for words in [
        "not judged within 0 s: answers, goes_on",
        "program: nothing broken so far",
        &format!("out of time: {laws} laws were not judged in every session"),
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let suite = std::fs::read_to_string(folder.path().join("laws.xml")).unwrap();
    assert_eq!(suite.matches("type=\"time\"").count(), laws, "{suite}");
}

/// Rules that write summaries lose most facts; a faithful summariser shows which of two programs loses them.
#[test]
fn plumbing_is_what_a_program_loses_by_itself() {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let recipe =
        Recipe { family: "debugging".to_owned(), length: Length::Rounds(80), ..Recipe::default() };
    let made = synthetic::generate(&recipe, &counts).unwrap();
    let facts = made.truth.facts;
    let session = PreparedSession::new(Arc::new(made.session), counts, facts).unwrap();
    let window = Window::new(Tokens(session.largest_prompt().0 / 2));
    let kept = |program: &str| {
        let spec = in_python(&format!("examples/bugs/{program}.py"), 20)?;
        let found = plumbing(&session, Box::new(spec.build().unwrap()), window).unwrap();
        Some(found.kept / found.weight)
    };
    let (Some(good), Some(drops)) = (kept("good"), kept("drops_summary")) else {
        return;
    };
    assert!(good > 0.8, "{good}");
    assert!(drops < good - 0.1, "{drops}");
}

/// A preset and its twin in Python send the same prompts, and ask the same.
fn twins(program: &str, preset: &str, sessions: impl Iterator<Item = Session>) {
    let Some(twin) = in_python(program, 60) else {
        return;
    };
    let preset = strategy(preset);
    let mut fired = 0;
    for session in sessions {
        let id = session.id().to_owned();
        let walk = |spec: &StrategySpec| {
            let reply = |number: usize, _: &Request| Ok(response(format!("SUMMARY {number}")));
            Walk::of(session.clone(), spec, Window::new(Tokens(200_000)), reply)
        };
        let (own, other) = (walk(&preset), walk(&twin));
        assert_eq!(own.record.end, other.record.end, "{id}");
        for (call, (own, other)) in own.contexts.iter().zip(&other.contexts).enumerate() {
            assert_eq!(own, other, "{id}, call {call}");
        }
        let said = |walk: &Walk| -> Vec<Vec<String>> {
            let said = |request: &Request| request.messages.iter().map(|it| said_in(it)).collect();
            walk.requests.iter().map(said).collect()
        };
        assert_eq!(said(&own), said(&other), "{id}");
        fired += usize::from(!own.record.compactions.is_empty());
    }
    assert!(fired > 0, "{program} never had anything to do");
}

const TWINS: [(&str, &str); 2] = [
    ("examples/strategies/observation_masking.py", "observation-masking"),
    ("examples/strategies/learn_claude_code_s06.py", "learn-claude-code-s06"),
];

#[test]
fn a_preset_and_its_twin_send_the_same_prompts() {
    for (program, preset) in TWINS {
        let generated = ["code-review", "debugging"].map(|family| {
            let recipe = Recipe {
                family: family.to_owned(),
                seed: 3,
                length: Length::Rounds(60),
                ..Recipe::default()
            };
            synthetic::generate(&recipe, &CountedTexts::new(Arc::new(CharsPer4))).unwrap().session
        });
        twins(program, preset, generated.into_iter());
    }
}

#[test]
fn shared_recordings_make_the_same_prompts_under_a_preset_and_its_twin() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    for (program, preset) in TWINS {
        let files = sampled(shared::files(&folder));
        let sessions = files.filter_map(|file| import::load(&file).ok()).flatten();
        twins(program, preset, sessions);
    }
}

#[test]
fn the_helpers_for_tests_are_of_this_version() {
    let own = format!("VERSION = \"{}\"", env!("CARGO_PKG_VERSION"));
    for helper in [
        include_str!("../../clients/python/pytest_proctor.py"),
        include_str!("../../clients/typescript/proctor_testing.ts"),
    ] {
        assert!(helper.contains(&own));
    }
}
