//! Repeats at three levels: fresh answers and fresh verdicts, what their noise is, and what confirms a loss.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proctor::probe::GradeVerdict;
use proctor::record::Arm;
use proctor::record::journal::RecordedRun;
use serde_json::Value;

/// The graded script with rules before it, and a scenario that asks it so often.
fn written(folder: &Path, name: &str, before: &str, times: &str) -> String {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let script = fs::read_to_string(scenarios.join("graded/script.toml")).unwrap();
    let script = script.replacen("version = 1\n", &format!("version = 1\n{before}"), 1);
    fs::write(folder.join(format!("{name}.script.toml")), script).unwrap();
    let text = format!(
        "name = 'noisy'\ncontrols = false\n[window]\nmode = 'fit'\nfraction = 0.7\n\
         [models]\nreader = {{ kind = 'scripted', model = 'reader', script = '{name}.script.toml' }}\n\
         judge = {{ kind = 'scripted', model = 'judge', script = '{name}.script.toml' }}\n\
         judging = 'all'\n{times}\n\
         [[sessions]]\nsynthetic = {{ family = 'code-review', seed = 5, rounds = 16 }}\n\
         [[strategies]]\npreset = 'observation-masking'\nset = {{ clear_results.keep_last = 2 }}\n"
    );
    let file = format!("{name}.toml");
    fs::write(folder.join(&file), text).unwrap();
    file
}

/// The second answer knows nothing, and the second verdict on a rule is always the same.
const MOODY: &str = "[[answer]]\npurpose = 'probe'\nturn = 2\ntext = 'not in context'\n\
                     [[answer]]\npurpose = 'judge'\nturn = 2\n\
                     asked = 'Which rule did the user set about'\ntext = '{\"verdict\": \"incorrect\"}'\n";

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    command.env_remove("GITHUB_ACTIONS").current_dir(folder);
    command.args(arguments).output().unwrap()
}

#[track_caller]
fn run(folder: &Path, arguments: &[&str], exit: i32) -> String {
    let output = proctor(folder, arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}\n{said}");
    said
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

fn score(verdict: GradeVerdict) -> Option<f64> {
    match verdict {
        GradeVerdict::Scored { score, .. } => Some(score),
        GradeVerdict::Unscored { .. } => None,
    }
}

#[test]
fn every_answer_and_every_verdict_is_recorded_and_a_table_says_which_repeat_buys_most() {
    let (_guard, folder) = folder();
    let file = written(&folder, "moody", MOODY, "answers = 3\njudgements = 2");
    run(&folder, &["run", &file, "--out", "r", "-o", "r.json"], 0);
    let run_read = RecordedRun::read(&folder.join("r")).unwrap();
    // Pooled variances within groups, computed here from the records alone.
    let (mut of_verdicts, mut of_answers, mut answers, mut items) = (0.0, 0.0, 0.0, 0.0);
    for cell in &run_read.cells {
        for item in &cell.probes {
            assert_eq!(item.answers().count(), 3, "{}", item.probe);
            let said = item.more[0].text.as_deref().unwrap();
            let mut halves = said.split(proctor::probe::OTHER_ORDER);
            assert!(halves.all(|half| half == "not in context"), "{said}");
            assert_eq!(
                item.answer.as_ref().unwrap().text,
                item.more[1].text,
                "only the second is moody"
            );
            let scores: Option<Vec<Vec<f64>>> = item
                .answers()
                .map(|answer| answer.verdicts().into_iter().map(score).collect())
                .collect();
            let planted = item.kind != proctor::probe::ProbeKind::Decoy;
            let Some(scores) = scores.filter(|_| planted && cell.arm == Arm::Strategy) else {
                continue;
            };
            items += 1.0;
            let mut means = Vec::new();
            for verdicts in scores {
                let [first, second] = verdicts.as_slice() else {
                    panic!("judged twice: {verdicts:?}");
                };
                of_verdicts += (first - second).powi(2) / 2.0;
                answers += 1.0;
                means.push(f64::midpoint(*first, *second));
            }
            let mean = means.iter().sum::<f64>() / 3.0;
            of_answers += means.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 2.0;
        }
    }
    let judgement = of_verdicts / answers;
    let answer = (of_answers / items - judgement / 2.0).max(0.0);
    assert!(judgement > 0.01 && answer > 0.001, "{judgement} {answer}");
    let report: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("r.json")).unwrap()).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let noise = sections.iter().find(|it| it["id"] == "noise").unwrap();
    let deviation = |row: usize| noise["table"]["rows"][row]["cells"][1]["value"].clone();
    let text = |value: f64| serde_json::json!({ "text": format!("{:.3}", value.sqrt()) });
    assert_eq!(deviation(0), "not_measured", "compacted once");
    assert_eq!(deviation(1), text(answer));
    assert_eq!(deviation(2), text(judgement));
    // What one more of each would take off, by the formula σ²_N/N + σ²_J/(N·J).
    let now = answer / 3.0 + judgement / 6.0;
    let removes = [
        1.0 - (answer / 4.0 + judgement / 8.0) / now,
        1.0 - (answer / 3.0 + judgement / 9.0) / now,
    ];
    let said = run(&folder, &["report", "r", "--tables=noise"], 0);
    // An answer costs itself and two verdicts, a verdict three: one for each answer.
    let best = if removes[0] / 3.0 > removes[1] / 3.0 {
        format!("`models.answers = 4` takes {:.1} %", removes[0] * 100.0)
    } else {
        format!("`models.judgements = 3` takes {:.1} %", removes[1] * 100.0)
    };
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&best), "{best}\n{said}");
    assert!(flat.contains("(`repeats = 2`) differ is not known"), "{said}");
}

#[test]
fn a_loss_of_an_answer_is_confirmed_by_three_fresh_ones_on_each_side() {
    for (times, breaks) in [("answers = 3", true), ("answers = 2", false)] {
        let (_guard, folder) = folder();
        let file = written(&folder, "s", "", times);
        run(&folder, &["run", &file, "--out", "old", "--save-baseline", "main"], 0);
        // The same strategy, and a reader that has forgotten everything.
        let forgets = "[[answer]]\npurpose = 'probe'\ntext = 'not in context'\n";
        written(&folder, "s", forgets, times);
        run(&folder, &["run", &file, "--out", "new"], 0);
        let gate = ["compare", "--gate", "new", "--baseline", "main", "--tables"];
        let output = proctor(&folder, &gate);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.contains("hard break: lost the answer to"), breaks, "{times}\n{said}");
        // The mean fails the gate all the same; what is asked here is which probe is named as lost.
        assert_eq!(output.status.code(), Some(100), "{said}");
    }
}

#[test]
fn repeating_what_cannot_differ_is_refused() {
    let (_guard, folder) = folder();
    for (models, says) in [
        ("answers = 2", "needs a reader that may answer otherwise"),
        ("judgements = 2", "needs a judge"),
        ("answers = 0", "models.answers"),
    ] {
        let text =
            format!("[models]\n{models}\n[[sessions]]\nsynthetic = {{ family = 'code-review' }}\n");
        fs::write(folder.join("x.toml"), text).unwrap();
        let said = run(&folder, &["run", "x.toml"], 3);
        assert!(said.contains(says) && said.contains("line 2"), "{said}");
    }
}
