//! Judges that are unfit for the wide task, through the whole program.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proctor::probe::judge::JudgeTask;
use proctor::probe::judge::known_answer::known_answers;
use proctor::probe::{GradeVerdict, Outcome, Unscored};
use proctor::record::journal::RecordedRun;
use serde_json::Value;

use super::{careful, judge, run, shown, standings};

/// A judge that calls everything right where it is asked for a word of six, and compares words where it is
/// asked for yes or no.
fn weak(folder: &Path, name: &str) -> String {
    let mut rules = String::new();
    let mut rule = |asked: &str, alike: &str, text: &str| {
        let asked = toml::Value::String(asked.to_owned());
        let _ = write!(rules, "[[answer]]\nasked = {asked}\n{alike}text = \"{text}\"\n");
    };
    for known in known_answers(JudgeTask::Narrow) {
        let asked = format!("<answer>\n{}\n</answer>\n\nDoes", known.answer);
        rule(&asked, "", if known.is_right { "Yes." } else { "No." });
    }
    rule("Reply yes or no.", "alike = 0.5\n", "yes");
    rule("Reply yes or no.", "", "No, it gives another value.");
    judge(folder, name, &rules)
}

/// A scenario with a reader whose answers rules cannot grade, and this judge.
fn judged_by(folder: &Path, judge: &str, exit: i32) -> RecordedRun {
    careful(folder, "reader", "");
    let scenario = format!(
        "name = \"judged\"\n[models]\n\
         reader = {{ kind = \"scripted\", model = \"reader\", script = \"reader.toml\" }}\n\
         judge = {judge}\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 4 }}\n\
         [[strategies]]\npreset = \"none\"\n"
    );
    fs::write(folder.join("s.toml"), scenario).unwrap();
    let command = ["run", "s.toml", "--out", "out", "-o", "r.json"];
    run(folder, &command, exit);
    RecordedRun::read(&folder.join("out")).unwrap()
}

/// The verdicts on the sentinels of each task, in order.
fn known_verdicts(run: &RecordedRun) -> [Vec<GradeVerdict>; 2] {
    [JudgeTask::Wide, JudgeTask::Narrow].map(|task| {
        let known = run.cells.iter().flat_map(|cell| &cell.sentinels);
        let known = known.filter(|record| record.task() == task);
        known.map(|record| record.verdict).collect()
    })
}

#[test]
fn a_judge_that_is_unfit_for_six_words_is_asked_yes_or_no() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let weak_judge = weak(path, "weak");
    let run_of_it = judged_by(path, &weak_judge, 0);
    assert_eq!(known_verdicts(&run_of_it).map(|known| known.len()), [20, 12]);
    let items = run_of_it.cells.iter().flat_map(|cell| &cell.probes);
    let judged = items.filter_map(|item| item.answer.as_ref()?.judged);
    let outcome = |verdict| match verdict {
        GradeVerdict::Scored { outcome, .. } => outcome,
        GradeVerdict::Unscored { reason } => panic!("{reason:?}"),
    };
    let outcomes: BTreeSet<Outcome> = judged.map(outcome).collect();
    assert!(outcomes.contains(&Outcome::Wrong), "{outcomes:?}");
    assert!(
        outcomes.is_subset(&[Outcome::Right, Outcome::Wrong, Outcome::Invented].into()),
        "{outcomes:?}"
    );
    let prompt = &run_of_it.manifest.conditions["judge prompt"];
    assert!(prompt.contains(", weak yes or no v1 "), "{prompt}");
    let report = fs::read_to_string(path.join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(report["unfit_judges"].is_null());
    assert_eq!(report["run"]["judges"]["weak"], "asked yes or no, not calibrated");
    let sections = report["sections"].as_array().unwrap();
    let section = sections.iter().find(|it| it["id"] == "sentinels").unwrap();
    let rows = section["table"]["rows"].as_array().unwrap();
    let fitness = rows.iter().map(|row| (&row["name"], &row["cells"][3]["value"]["text"]));
    let expected = serde_json::json!([["weak", "unfit"], ["weak, yes or no", "fit"]]);
    assert_eq!(serde_json::json!(fitness.collect::<Vec<_>>()), expected);
    // Labels are compared with its answers to the same question.
    let labels =
        "question,reference,answer,label\nWhich port?,7,7,right\nWhich port?,7,8,invented\n";
    fs::write(path.join("l.csv"), labels).unwrap();
    let calibrate = ["judge", "test", "l.csv", "--judge", &weak_judge, "-o", "c.json"];
    run(path, &calibrate, 0);
    let score = ["judge", "score", "out", "--judge", &weak_judge, "--calibration", "c.json"];
    let said = shown(&run(path, &score, 0).stderr);
    assert!(said.contains("it meets, with yes or no, 12 of 12 answers"), "{said}");
    let found = standings(path)["weak"].to_string();
    assert!(found.starts_with("\"asked yes or no, provisional (2 labels"), "{found}");
    let after = RecordedRun::read(&path.join("out")).unwrap();
    assert_eq!(after.manifest.conditions["judge prompt"], *prompt);
    assert_eq!(known_verdicts(&after).map(|known| known.len()), [20, 12]);
    // Its verdicts and those of a judge with six words make no difference of strategies.
    run(path, &["baseline", "save", "out", "narrow"], 0);
    let wide = careful(path, "weak", "");
    run(path, &["judge", "score", "out", "--judge", &wide, "--replay", "record"], 0);
    let said = shown(&run(path, &["compare", "narrow", "out"], 106).stderr);
    assert!(said.contains("setting judge prompt"), "{said}");
}

#[test]
fn a_judge_that_writes_nonsense_is_ended_after_three_replies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let nonsense = judge(path, "nonsense", "[[answer]]\ntext = \"The ferry is blue.\"\n");
    let run_of_it = judged_by(path, &nonsense, 102);
    let unscored = |reason| GradeVerdict::Unscored { reason };
    for known in known_verdicts(&run_of_it) {
        assert!(known.len() > 10);
        let (asked, rest) = known.split_at(3);
        assert_eq!(asked, [unscored(Unscored::Unparsable); 3]);
        assert!(rest.iter().all(|it| *it == unscored(Unscored::JudgeUnfit)), "{rest:?}");
    }
}
