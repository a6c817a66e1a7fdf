//! Judges after the run: other verdicts on kept answers, people's labels, and what a cassette holds.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proctor::model::ModelKind;
use proctor::probe::Verdict;
use proctor::record::journal::Run;
use serde_json::Value;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

#[track_caller]
fn run(folder: &Path, arguments: &[&str], exit: i32) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env_remove("OPENAI_API_KEY")
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    output
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A judge that calls everything right, as a script.
fn agreeable(folder: &Path) -> String {
    let path = folder.join("agreeable.toml");
    let text = "format = \"proctor-script\"\nversion = 1\n[[answer]]\ntext = '{\"verdict\": \"correct\"}'\n";
    fs::write(&path, text).unwrap();
    format!("scripted:{}", path.display())
}

#[test]
fn another_judge_grades_the_kept_answers_and_nothing_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let graded = scenarios().join("graded.toml");
    run(
        folder.path(),
        &["run", graded.to_str().unwrap(), "--out", "out"],
        0,
    );
    let out = folder.path().join("out");
    let cells = fs::read(out.join("cells.jsonl")).unwrap();
    let before = Run::read(&out).unwrap();
    let judge = agreeable(folder.path());
    let output = run(
        folder.path(),
        &["score", "out", "--judge", &judge, "--all"],
        0,
    );
    let said = shown(&output.stderr);
    assert!(said.contains("meets 5 of 10 answers"), "{said}");
    assert_eq!(
        fs::read(out.join("cells.jsonl")).unwrap(),
        cells,
        "records stay as they are"
    );
    let after = Run::read(&out).unwrap();
    let judge = after.manifest.judge.unwrap();
    assert_eq!(
        (judge.name.as_str(), judge.kind),
        ("scripted", ModelKind::Scripted)
    );
    assert_eq!(before.manifest.judge.unwrap().name, "scripted-judge");
    let mut judged = 0;
    for item in after.cells.iter().flat_map(|cell| &cell.probes) {
        if let Some(Verdict::Scored { score, .. }) = item.answer.as_ref().and_then(|a| a.judged) {
            assert!(score > 0.5, "it calls everything right");
            judged += 1;
        }
    }
    assert!(judged > 50, "{judged}");
    // Verdicts are added: another time adds as many lines.
    let lines = |out: &Path| {
        fs::read_to_string(out.join("verdicts.jsonl"))
            .unwrap()
            .lines()
            .count()
    };
    let once = lines(&out);
    let again = agreeable(folder.path());
    run(
        folder.path(),
        &["score", "out", "--judge", &again, "--all"],
        0,
    );
    assert_eq!(lines(&out), 2 * once);
}

#[test]
fn a_run_without_answers_of_a_model_has_nothing_to_grade() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[sessions]]\nsynthetic = { family = \"code-review\", rounds = 4 }\n\
         [[strategies]]\npreset = \"none\"\n";
    fs::write(folder.path().join("s.toml"), text).unwrap();
    run(folder.path(), &["run", "s.toml", "--out", "out"], 0);
    let judge = agreeable(folder.path());
    run(folder.path(), &["score", "out", "--judge", &judge], 4);
    run(folder.path(), &["score", "out", "--judge", "nobody"], 4);
}

/// Labelled answers: so many of each, people's label first.
fn labels(rows: &[(bool, bool, usize)]) -> String {
    let mut out = String::from("question,reference,answer,label,verdict,strategy\n");
    let word = |said: bool| if said { "correct" } else { "incorrect" };
    for (human, judge, count) in rows {
        for at in 0..*count {
            let strategy = if at % 2 == 0 { "a" } else { "b" };
            let (human, judge) = (word(*human), word(*judge));
            let _ = writeln!(out, "\"Which, now?\",7,seven,{human},{judge},{strategy}");
        }
    }
    out
}

#[test]
fn calibration_says_what_a_judge_is_worth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let figures = |rows: &[(bool, bool, usize)]| {
        fs::write(path.join("l.csv"), labels(rows)).unwrap();
        run(path, &["calibrate", "l.csv", "-o", "c.json"], 0);
        let text = fs::read_to_string(path.join("c.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let good = figures(&[
        (true, true, 55),
        (true, false, 5),
        (false, true, 4),
        (false, false, 36),
    ]);
    assert_eq!(good["all"]["verdict"], "calibrated");
    assert_eq!(good["all"]["base_rate"], 0.6);
    assert_eq!(good["all"]["specificity"]["value"], 0.9);
    assert_eq!(good["self_consistency"], Value::Null);
    assert_eq!(good["strategies"].as_object().unwrap().len(), 2);
    let few = figures(&[(true, true, 9), (true, false, 1), (false, false, 10)]);
    assert_eq!(few["all"]["verdict"], "provisional");
    let poor = figures(&[(true, true, 60), (false, true, 60)]);
    assert_eq!(poor["all"]["verdict"], "unfit");
}

#[test]
fn a_judge_is_asked_several_times_and_about_unlabelled_answers_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let rows = [
        r#"{"question":"q","reference":"7","answer":"7","label":true}"#,
        r#"{"question":"q","reference":"7","answer":"8","label":"incorrect"}"#,
        r#"{"question":"q","reference":"7","answer":"9"}"#,
    ];
    fs::write(path.join("l.jsonl"), rows.join("\n")).unwrap();
    let judge = agreeable(path);
    let output = run(path, &["calibrate", "l.jsonl", "--judge", &judge], 0);
    let said = shown(&output.stdout);
    for part in [
        "judge scripted: unfit",
        "3 answers, 2 labelled",
        "agrees with itself on  100.0 %",
        "of 1 answers without a label it calls 100.0 % right",
    ] {
        assert!(said.contains(part), "{said}");
    }
    run(path, &["calibrate", "l.jsonl"], 2);
    fs::write(
        path.join("l.jsonl"),
        format!(
            "{}\n{{\"question\":\"q\",\"answer\":\"a\",\"label\":\"maybe\"}}",
            rows[0]
        ),
    )
    .unwrap();
    let output = run(path, &["calibrate", "l.jsonl", "--judge", &judge], 3);
    let said = shown(&output.stderr);
    assert!(
        said.contains("line 2 of `l.jsonl`") && said.contains("not `maybe`"),
        "{said}"
    );
}

#[test]
fn a_cassette_is_listed_verified_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::copy(
        scenarios().join("graded/cassette.jsonl"),
        path.join("c.jsonl"),
    )
    .unwrap();
    let listed = shown(&run(path, &["cache", "list", "c.jsonl"], 0).stdout);
    assert!(
        listed.contains("scripted-reader (scripted), probe:"),
        "{listed}"
    );
    let said = shown(&run(path, &["cache", "verify", "c.jsonl"], 0).stdout);
    assert!(said.contains("sound"), "{said}");
    let whole = fs::read(path.join("c.jsonl")).unwrap();
    fs::write(path.join("c.jsonl"), &whole[..whole.len() - 30]).unwrap();
    let said = shown(&run(path, &["cache", "verify", "c.jsonl"], 3).stdout);
    assert!(said.contains("1 lines were cut off"), "{said}");
    fs::write(path.join("c.jsonl"), &whole).unwrap();
    let clear = ["cache", "clear", "c.jsonl", "--model", "scripted-judge"];
    let said = shown(&run(path, &clear, 2).stderr);
    assert!(said.contains("--force"), "{said}");
    assert_eq!(fs::read(path.join("c.jsonl")).unwrap(), whole);
    run(path, &[&clear[..], &["--force"]].concat(), 0);
    let listed = shown(&run(path, &["cache", "list", "c.jsonl"], 0).stdout);
    assert!(
        !listed.contains("scripted-judge") && listed.contains("scripted-reader"),
        "{listed}"
    );
    run(path, &["cache", "list", "none.jsonl"], 3);
}
