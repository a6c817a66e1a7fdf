//! Judges after the run: other verdicts on kept answers, people's labels, and what a cassette holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proctor::files::checked;
use proctor::model::ModelKind;
use proctor::probe::judge::JudgeTask;
use proctor::probe::judge::known_answer::known_answers;
use proctor::probe::{GradeVerdict, Unscored};
use proctor::record::journal::RecordedRun;
use proctor::record::{AnswerRecord, Arm, CalibrationStatus, Fate, JudgeCalibration};
use proctor::report::{BannerLevel, Report};
use serde_json::Value;

mod narrow;

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
    judge(folder, "agreeable", "")
}

/// A judge that knows the sentinels that words alone do not tell, and compares words; a question that
/// holds `refused` nobody answers right.
fn careful(folder: &Path, name: &str, refused: &str) -> String {
    let mut rules = String::new();
    if !refused.is_empty() {
        let _ = write!(
            rules,
            "[[answer]]\nasked = \"{refused}\"\ntext = '{{\"verdict\": \"incorrect\"}}'\n"
        );
    }
    let known = known_answers(JudgeTask::Wide);
    let known = known.iter().map(|known| {
        let word = if known.is_right { "right" } else { "incomplete" };
        (&*known.answer, word)
    });
    for (asked, verdict) in known.chain([("says so is correct", "invented")]) {
        let asked = if asked.starts_with("says so") {
            asked.to_owned()
        } else {
            format!("<answer>\n{asked}\n</answer>")
        };
        let asked = toml::Value::String(asked);
        let _ =
            write!(rules, "[[answer]]\nasked = {asked}\ntext = '{{\"verdict\": \"{verdict}\"}}'\n");
    }
    let _ = write!(
        rules,
        "[[answer]]\nalike = 0.5\ntext = '{{\"verdict\": \"correct\"}}'\n\
         [[answer]]\ntext = '{{\"verdict\": \"incorrect\"}}'\n"
    );
    judge(folder, name, &rules)
}

fn judge(folder: &Path, name: &str, rules: &str) -> String {
    let path = folder.join(format!("{name}.toml"));
    let all = "[[answer]]\ntext = '{\"verdict\": \"correct\"}'\n";
    let text = format!("format = \"proctor-script\"\nversion = 1\n{rules}{all}");
    fs::write(&path, text).unwrap();
    let path = path.display();
    format!("{{ kind = \"scripted\", model = \"{name}\", script = \"{path}\" }}")
}

/// The graded scenario, run in a folder of its own.
fn graded(folder: &Path) -> PathBuf {
    let graded = scenarios().join("graded.toml");
    run(folder, &["run", graded.to_str().unwrap(), "--out", "out"], 0);
    folder.join("out")
}

/// A rule of which a summary says only that it came up is unsure, until a judge is asked about that sentence.
#[test]
fn a_judge_decides_what_string_matching_cannot_tell() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = "sessions generate policy-support --seed 3 --tokens 30000 -o made";
    run(folder.path(), &made.split(' ').collect::<Vec<_>>(), 0);
    let made = fs::read_dir(at("made")).unwrap();
    let made: Vec<PathBuf> = made.map(|entry| entry.unwrap().path()).collect();
    let truth = made.iter().find(|path| path.to_string_lossy().ends_with(".truth.json"));
    let truth: Value = serde_json::from_slice(&fs::read(truth.unwrap()).unwrap()).unwrap();
    let mut facts = truth["facts"].as_array().unwrap().iter();
    let rule = facts.find(|fact| fact["fact"]["kind"] == "constraint").unwrap();
    let topic = rule["fact"]["topic"].as_str().unwrap();
    let summary = format!("Of {topic} there was talk.");
    let script = format!(
        "format = \"proctor-script\"\nversion = 1\n[[answer]]\ntext = {}\n",
        toml::Value::String(summary.clone())
    );
    fs::write(at("writer.toml"), script).unwrap();
    let judge = careful(folder.path(), "decides", "there was talk");
    for (name, judge, expected) in [
        ("without", String::new(), Fate::Unsure),
        ("with", format!("judge = {judge}\n"), Fate::Changed),
    ] {
        let scenario = format!(
            "name = \"{name}\"\ncontrols = false\n[window]\nmode = \"fit\"\nfraction = 0.6\nfloor = 0\n[models]\n\
             summariser = {{ kind = \"scripted\", model = \"writer\", script = \"writer.toml\" }}\n{judge}\
             [[sessions]]\npath = \"made\"\n[[strategies]]\npreset = \"compact-directly\"\n"
        );
        fs::write(at(&format!("{name}.toml")), scenario).unwrap();
        run(folder.path(), &["run", &format!("{name}.toml"), "--out", name], 0);
        let run = RecordedRun::read(&at(name)).unwrap();
        let known = run.cells.iter().map(|cell| cell.sentinels.len()).sum::<usize>();
        assert_eq!(known > 0, expected == Fate::Changed, "{name}");
        let cells = run.cells.iter().filter(|cell| cell.arm == Arm::Strategy);
        let items = cells.flat_map(|cell| &cell.probes);
        let own = items.filter(|item| item.survival.said.as_ref() == Some(&summary));
        let fates: BTreeSet<Fate> = own.map(|item| item.survival.fate).collect();
        assert_eq!(fates, BTreeSet::from([expected]), "{name}");
    }
}

#[test]
fn another_judge_grades_the_kept_answers_and_nothing_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let out = graded(folder.path());
    let cells = fs::read(out.join("cells.jsonl")).unwrap();
    let before = RecordedRun::read(&out).unwrap();
    let judge = careful(folder.path(), "careful", "");
    let score = ["judge", "score", "out", "--judge", &judge, "--all"];
    let said = shown(&run(folder.path(), &score, 0).stderr);
    assert!(said.contains("meets 20 of 20 answers"), "{said}");
    assert_eq!(fs::read(out.join("cells.jsonl")).unwrap(), cells, "records stay as they are");
    let after = RecordedRun::read(&out).unwrap();
    let judge = after.manifest.judge.unwrap();
    assert_eq!((judge.name.as_str(), judge.kind), ("careful", ModelKind::Scripted));
    assert_eq!(before.manifest.judge.unwrap().name, "scripted-judge");
    let judged = |item: &&proctor::record::ProbeRecord| {
        let answer = item.answer.as_ref();
        matches!(answer.and_then(|it| it.judged), Some(GradeVerdict::Scored { .. }))
    };
    let items = || after.cells.iter().flat_map(|cell| &cell.probes);
    assert!(items().filter(judged).count() > 50);
    // Verdicts are added: another time adds as many lines.
    let lines =
        |out: &Path| fs::read_to_string(out.join("verdicts.jsonl")).unwrap().lines().count();
    let once = lines(&out);
    run(folder.path(), &score, 0);
    assert_eq!(lines(&out), 2 * once);
}

#[test]
fn a_judge_that_calls_everything_right_is_unfit_and_its_verdicts_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let out = graded(folder.path());
    let judge = agreeable(folder.path());
    let score = ["judge", "score", "out", "--judge", &judge, "--all", "-o", "r.json"];
    let output = run(folder.path(), &score, 102);
    let said = shown(&output.stderr);
    assert!(said.contains("meets 10 of 20 answers"), "{said}");
    assert!(said.contains("unfit as a judge"), "{said}");
    let after = RecordedRun::read(&out).unwrap();
    let mut graded = 0;
    for answer in
        after.cells.iter().flat_map(|cell| &cell.probes).filter_map(|item| item.answer.as_ref())
    {
        // What rules graded they have graded.
        let reason = Unscored::JudgeUnfit;
        assert!(
            answer.judged.is_none() || answer.judged == Some(GradeVerdict::Unscored { reason })
        );
        graded += usize::from(answer.judged.is_none() && answer.verdict() == answer.typed);
    }
    assert!(graded > 50, "{graded}");
    // It was asked about the answers whose verdict is known, and about nothing else.
    let verdicts = fs::read_to_string(out.join("verdicts.jsonl")).unwrap();
    let lines = verdicts.lines().map(|line| serde_json::from_str(line).unwrap());
    let (known, rest): (Vec<Value>, Vec<Value>) =
        lines.partition(|line: &Value| !line["sentinel"].is_null());
    assert_eq!(known.len(), 32);
    assert!(rest.len() > 50);
    for line in rest {
        assert_eq!(line["verdict"]["reason"], "judge_unfit");
        assert!(line["key"].is_null() && line["usage"]["output"] == 0, "{line}");
    }
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["unfit_judges"][0], "agreeable");
    assert!(report.to_string().contains("it is unfit, and its verdicts do not count"));
}

#[test]
fn a_panel_votes_on_kept_answers_and_says_how_far_it_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let out = graded(folder.path());
    let strict = careful(folder.path(), "strict", "What is the ");
    let careful = careful(folder.path(), "careful", "");
    let unfit = agreeable(folder.path());
    let panel = [
        "judge", "score", "out", "--judge", &strict, "--judge", &careful, "--judge", &unfit,
        "--all",
    ];
    let said = shown(&run(folder.path(), &[&panel[..], &["-o", "r.json"]].concat(), 102).stderr);
    assert!(said.contains("answers were given to judge strict"), "{said}");
    let after = RecordedRun::read(&out).unwrap();
    assert_eq!(after.manifest.judge.unwrap().name, "strict + careful + agreeable");
    let answers = || {
        let items = after.cells.iter().flat_map(|cell| &cell.probes);
        items.filter_map(|item| item.answer.as_ref()).filter(|answer| answer.panel.len() == 3)
    };
    assert!(answers().count() > 50);
    let right = |verdict: &GradeVerdict| matches!(verdict, GradeVerdict::Scored { score, .. } if *score > 0.5);
    let mut split = 0;
    for answer in answers() {
        // The unfit one has no vote: two that differ are split.
        let expected = match (right(&answer.panel[0]), right(&answer.panel[1])) {
            (left, other) if left == other => Some(left),
            _ => None,
        };
        let judged = answer.judged.unwrap();
        if let Some(is_right) = expected {
            assert_eq!(right(&judged), is_right);
        } else {
            split += 1;
            let reason = Unscored::Split;
            assert_eq!(judged, GradeVerdict::Unscored { reason });
        }
    }
    assert!(split > 0, "the two differ somewhere");
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let agreement = sections.iter().find(|it| it["id"] == "judge_agreement").unwrap();
    let rows = agreement["table"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    // What a judge is shown again, at another point of the session or in another cell, is no further verdict.
    let texts: BTreeMap<_, _> = after
        .cells
        .iter()
        .flat_map(|cell| cell.probe_texts.iter().map(move |text| (cell, text)))
        .map(|(cell, text)| ((&cell.session, &text.probe, text.percent), text))
        .collect();
    let mut given = 0;
    let mut different = BTreeSet::new();
    for (cell, item) in
        after.cells.iter().flat_map(|cell| cell.probes.iter().map(move |item| (cell, item)))
    {
        let scored = |answer: &&AnswerRecord| {
            let scored = |verdict: &&GradeVerdict| matches!(verdict, GradeVerdict::Scored { .. });
            answer.panel.iter().filter(scored).count() > 1
        };
        for answer in item.every_answer().filter(scored) {
            let asked = texts[&(&cell.session, &item.probe, item.percent)];
            let said = answer.text.as_deref().unwrap().trim();
            given += 1;
            different.insert((&cell.session, &asked.question, &asked.gold, said));
        }
    }
    assert!(different.len() * 2 < given, "{} of {given}", different.len());
    let counted = &rows[0]["cells"][0]["value"]["count"];
    assert_eq!(*counted, different.len());
}

/// An object with another text in it, and the checksum of that.
fn resigned(json: &str, old: &str, new: &str, layout: checked::Layout) -> String {
    assert!(json.contains(old));
    let (content, _) = json.rsplit_once(',').unwrap();
    let mut other = content.replace(old, new) + "}";
    checked::sign(&mut other, layout);
    other
}

#[test]
fn verdicts_by_two_rubrics_are_never_one_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let out = graded(path);
    run(path, &["baseline", "save", "out", "main"], 0);
    let baseline = fs::read_to_string(path.join("baselines/main.json")).unwrap();
    let stored: Value = serde_json::from_str(&baseline).unwrap();
    let settings = stored["conditions"]["settings"].as_object().unwrap();
    let rubric = settings["judge rubric"].as_str().unwrap();
    assert_eq!(settings["judged answers"], "all");
    run(path, &["compare", "main", "out"], 0);
    let with = |old: &str, new: &str| resigned(&baseline, old, new, checked::DOCUMENT);
    fs::write(path.join("other.json"), with(rubric, "0123456789ab")).unwrap();
    let said = shown(&run(path, &["compare", "other.json", "out"], 106).stderr);
    assert!(said.contains("setting judge rubric: 0123456789ab in the baseline"), "{said}");
    let compare = ["compare", "other.json", "out", "--allow-different"];
    let output = run(path, &compare, 0);
    let said = shown(&output.stderr);
    assert!(said.contains("answers are not compared"), "{said}");
    assert!(!shown(&output.stdout).contains("answers"), "{said}");
    // The same rubric in another layout is another prompt.
    let prompt = settings["judge prompt"].as_str().unwrap();
    fs::write(path.join("relaid.json"), with(prompt, "v0 0123456789ab")).unwrap();
    let said = shown(&run(path, &["compare", "relaid.json", "out"], 106).stderr);
    assert!(said.contains("setting judge prompt: v0 0123456789ab in the baseline"), "{said}");
    assert!(!said.contains("judge rubric"), "{said}");
    let compare = ["compare", "relaid.json", "out", "--allow-different"];
    let output = run(path, &compare, 0);
    let said = shown(&output.stderr);
    assert!(said.contains("answers are not compared"), "{said}");
    fs::write(path.join("newer.json"), with("survival v1", "survival v0")).unwrap();
    let said = shown(&run(path, &["compare", "newer.json", "out"], 106).stderr);
    assert!(said.contains("setting evaluators: survival v0"), "{said}");
    // Before rubrics were written down nothing was told, and nothing is held against it.
    let line = format!("\"judge rubric\": \"{rubric}\",");
    assert!(baseline.contains(&line));
    fs::write(path.join("older.json"), with(&line, "")).unwrap();
    run(path, &["compare", "older.json", "out"], 0);
    let line = format!("\"judge prompt\": \"{prompt}\",");
    assert!(baseline.contains(&line));
    fs::write(path.join("older.json"), with(&line, "")).unwrap();
    run(path, &["compare", "older.json", "out"], 0);
    // Verdicts that were given later bring their own rubric.
    let judge = careful(path, "careful", "");
    run(path, &["judge", "score", "out", "--judge", &judge, "--all"], 0);
    let verdicts = fs::read_to_string(out.join("verdicts.jsonl")).unwrap();
    let later = verdicts.lines().map(|line| {
        let line = resigned(line, rubric, "ba9876543210", checked::LINE);
        format!("{line}\n")
    });
    let later: String = later.collect();
    fs::write(out.join("verdicts.jsonl"), later).unwrap();
    let conditions = RecordedRun::read(&out).unwrap().manifest.conditions;
    assert_eq!(conditions["judge rubric"], "ba9876543210");
    assert_eq!(conditions["judge prompt"], prompt);
    assert!(!conditions.contains_key("judged answers"));
}

#[test]
fn answers_without_a_score_are_errors_that_the_exit_code_tells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Questions of one form are answered by nothing; what rules cannot grade was never to be graded.
    let script = "format = \"proctor-script\"\nversion = 1\n\
        [[answer]]\npurpose = \"probe\"\nasked = \"Which\"\ntext = \"\"\n\
        [[answer]]\npurpose = \"probe\"\ntext = \"not in context\"\n";
    fs::write(path.join("reader.toml"), script).unwrap();
    let scenario = "name = \"silent\"\ncounter = \"chars/4\"\n\
        [models]\nreader = { kind = \"scripted\", model = \"r\", script = \"reader.toml\" }\n\
        [[sessions]]\nsynthetic = { family = \"code-review\", seed = 5, rounds = 16 }\n\
        [[strategies]]\npreset = \"observation-masking\"\n";
    fs::write(path.join("silent.toml"), scenario).unwrap();
    let command = ["run", "silent.toml", "--out", "out", "--json"];
    let output = run(path, &command, 104);
    let said = shown(&output.stderr);
    assert!(said.contains(" answers have no score: "), "{said}");
    assert!(said.contains(" empty") && said.contains("--max-error-rate"), "{said}");
    let last: Value = serde_json::from_str(shown(&output.stdout).lines().last().unwrap()).unwrap();
    let (asked, unscored) = (&last["answers"]["asked"], &last["answers"]["unscored"]);
    let share = unscored.as_f64().unwrap() / asked.as_f64().unwrap();
    assert!(0.0 < share && share < 0.5, "{last}");
    assert_eq!(last["cells"]["failed"], 0);
    let enough = format!("{:.3}", share + 0.001);
    let too_few = format!("{:.3}", share - 0.001);
    run(path, &["run", "silent.toml", "--out", "out", "--max-error-rate", &enough], 0);
    run(path, &["run", "silent.toml", "--out", "out", "--max-error-rate", &too_few], 104);
}

#[test]
fn every_line_of_verdicts_fits_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let out = graded(folder.path());
    let judge = careful(folder.path(), "careful", "");
    run(folder.path(), &["judge", "score", "out", "--judge", &judge], 0);
    let schema = shown(&run(folder.path(), &["schema", "record"], 0).stdout);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let verdicts = fs::read_to_string(out.join("verdicts.jsonl")).unwrap();
    for line in verdicts.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(validator.is_valid(&line), "{line}");
    }
    let mut wrong: Value = serde_json::from_str(verdicts.lines().next().unwrap()).unwrap();
    wrong["percent"] = "many".into();
    assert!(!validator.is_valid(&wrong));
}

#[cfg(feature = "http")]
#[test]
fn live_judges_are_not_asked_before_somebody_agrees_to_what_they_cost() {
    let folder = tempfile::tempdir().unwrap();
    graded(folder.path());
    // Nobody listens there: what is refused must be refused before that matters.
    let judge =
        "{ kind = \"anthropic\", model = \"claude-opus-5\", base_url = \"http://127.0.0.1:9/v1\" }";
    let score = ["judge", "score", "out", "--judge", judge, "--all", "--cost-limit", "0"];
    let said = shown(&run(folder.path(), &score, 2).stderr);
    assert!(said.contains("above the limit of $0.0000") && said.contains("--yes"), "{said}");
    assert!(!folder.path().join("out/verdicts.jsonl").exists());
    let nobody = judge.replace("claude-opus-5", "of-no-price-file");
    let said = shown(&run(folder.path(), &["judge", "score", "out", "--judge", &nobody], 2).stderr);
    assert!(said.contains("no price file knows"), "{said}");
    fs::write(
        folder.path().join("l.jsonl"),
        r#"{"question":"q","reference":"7","answer":"7","label":true}"#,
    )
    .unwrap();
    let calibrate = ["judge", "test", "l.jsonl", "--judge", &nobody];
    let said = shown(&run(folder.path(), &calibrate, 2).stderr);
    assert!(said.contains("asks live models 35 times"), "{said}");
}

#[cfg(feature = "http")]
#[test]
fn a_judge_that_cannot_be_asked_gives_no_verdict_and_displaces_none() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::live::server::{Reply, Server};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let out = graded(path);
    let careful = careful(path, "careful", "");
    run(path, &["judge", "score", "out", "--judge", &careful, "--all"], 0);
    let verdicts = || fs::read(out.join("verdicts.jsonl")).unwrap();
    let before = verdicts();
    let live =
        |url: &str| format!("{{ kind = \"openai\", model = \"judge-x\", base_url = \"{url}\" }}");
    let check = |judges: &[&str]| {
        let flags = judges.iter().flat_map(|judge| ["--judge", judge]);
        let command: Vec<&str> =
            ["judge", "score", "out", "--all", "--yes"].into_iter().chain(flags).collect();
        let said = shown(&run(path, &command, 5).stderr);
        assert!(said.contains("judge-x could not be asked"), "{said}");
        assert!(said.contains("the same command continues"), "{said}");
        assert_eq!(verdicts(), before, "{said}");
    };
    let nobody = live("http://127.0.0.1:9/v1");
    check(&[&nobody]);
    check(&[&careful, &nobody]);
    check(&[&nobody, &careful]);
    // It grades the answers with a known verdict and a few more, and is gone then.
    let left = Arc::new(AtomicUsize::new(40));
    let lasting = left.clone();
    let server = Server::answering(move |body| {
        let take = |left: usize| left.checked_sub(1);
        let taken = lasting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        taken.map_or(Reply::status(401, "{}"), |_| crate::models::reply(body))
    });
    let judge = live(&server.base_url());
    check(&[&judge]);
    left.store(usize::MAX, Ordering::SeqCst);
    let score = ["judge", "score", "out", "--all", "--yes", "--judge", &judge];
    run(path, &score, 0);
    assert_eq!(RecordedRun::read(&out).unwrap().manifest.judge.unwrap().name, "judge-x");
    let entries = proctor::model::cassette::read(&out.join("cassette.jsonl")).unwrap().entries;
    let kept = entries.iter().filter(|entry| entry.model == "judge-x").count();
    let requests = server.requests();
    let answered = requests.iter().filter(|asked| asked.was_answered).count();
    assert_eq!(answered, kept, "no verdict is paid twice");
    // Labels and a judge that is not heard make no figures.
    let labels = r#"{"question":"q","reference":"7","answer":"7","label":true}"#;
    fs::write(path.join("l.jsonl"), labels).unwrap();
    let calibrate = ["judge", "test", "l.jsonl", "--yes", "-o", "c.json", "--judge", &nobody];
    let said = shown(&run(path, &calibrate, 5).stderr);
    assert!(said.contains("judge-x could not be asked"), "{said}");
    assert!(!path.join("c.json").exists());
}

#[test]
fn a_run_without_answers_of_a_model_has_nothing_to_grade() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[sessions]]\nsynthetic = { family = \"code-review\", rounds = 4 }\n\
         [[strategies]]\npreset = \"none\"\n";
    fs::write(folder.path().join("s.toml"), text).unwrap();
    run(folder.path(), &["run", "s.toml", "--out", "out"], 0);
    let judge = agreeable(folder.path());
    run(folder.path(), &["judge", "score", "out", "--judge", &judge], 4);
    run(folder.path(), &["judge", "score", "out", "--judge", "nobody"], 4);
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
        run(path, &["judge", "test", "l.csv", "-o", "c.json"], 0);
        let text = fs::read_to_string(path.join("c.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let good = figures(&[(true, true, 55), (true, false, 5), (false, true, 4), (false, false, 36)]);
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
fn a_report_shows_rules_against_the_judge_by_kind_with_examples() {
    let folder = tempfile::tempdir().unwrap();
    graded(folder.path());
    // It calls wrong what rules confirm.
    let strict = careful(folder.path(), "strict", "What is the ");
    let score = ["judge", "score", "out", "--judge", &strict, "--all", "-o", "r.json"];
    run(folder.path(), &score, 0);
    let text = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let rows = |id: &str| {
        let sections = report["sections"].as_array().unwrap();
        let section = sections.iter().find(|section| section["id"] == id);
        section.unwrap()["table"]["rows"].as_array().unwrap().clone()
    };
    let count = |row: &Value, at: usize| row["cells"][at]["value"]["count"].as_u64().unwrap();
    let by_kind = rows("rules_and_judge");
    assert_eq!(by_kind[0]["name"], "all");
    let (all, agreed) = (count(&by_kind[0], 0), count(&by_kind[0], 1));
    let apart = count(&by_kind[0], 2) + count(&by_kind[0], 3);
    assert!(apart > 0 && all == agreed + apart, "{all} {agreed} {apart}");
    let of_kinds: u64 = by_kind[1..].iter().map(|row| count(row, 0)).sum();
    assert_eq!(of_kinds, all);
    let examples = rows("rules_and_judge_examples");
    assert!(!examples.is_empty() && examples.len() as u64 <= apart);
}

#[test]
fn a_run_gives_a_sheet_of_answers_to_label_that_tells_nothing_of_who_gave_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    graded(path);
    let sheet = |file: &str| {
        let arguments = ["judge", "test", "--from-run", "out", "-n", "20", "-o", file];
        run(path, &arguments, 0);
        fs::read_to_string(path.join(file)).unwrap()
    };
    let written = sheet("labels.csv");
    assert_eq!(written, sheet("again.csv"));
    assert!(!written.contains("masking"), "no strategy is named");
    let refused = ["judge", "test", "--from-run", "out", "-o", "labels.csv"];
    let said = shown(&run(path, &refused, 2).stderr);
    assert!(said.contains("labels in it would be lost"), "{said}");
    let mut reader = csv::Reader::from_reader(written.as_bytes());
    let head = reader.headers().unwrap().clone();
    let at = |name: &str| head.iter().position(|column| column == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 20);
    let kinds: BTreeSet<&str> = rows.iter().map(|row| &row[at("kind")]).collect();
    assert!(kinds.len() > 5, "{kinds:?}");
    // Labelled by hand, it is what the judge is compared with.
    let mut labelled = csv::Writer::from_path(path.join("labels.csv")).unwrap();
    labelled.write_record(&head).unwrap();
    for row in &rows {
        let is_right = row[at("answer")].contains(&row[at("reference")]);
        let label = if is_right { "right" } else { "abstained" };
        let cells = row.iter().enumerate();
        let cells = cells.map(|(place, cell)| if place == at("label") { label } else { cell });
        labelled.write_record(cells).unwrap();
    }
    labelled.flush().unwrap();
    let judge = careful(path, "careful", "");
    let said = shown(&run(path, &["judge", "test", "labels.csv", "--judge", &judge], 0).stdout);
    assert!(said.contains("20 answers, 20 labelled and judged"), "{said}");
    // As JSON lines it says the same.
    let lines = sheet("labels.jsonl");
    assert_eq!(lines.lines().count(), 20);
}

/// What reports say of each judge.
fn standings(folder: &Path) -> Value {
    run(folder, &["report", "out", "-o", "r.json"], 0);
    let text = fs::read_to_string(folder.join("r.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["run"]["judges"].clone()
}

#[test]
fn what_people_say_of_a_judge_reaches_every_report_of_its_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let out = graded(path);
    assert_eq!(standings(path)["scripted-judge"], "not calibrated");
    let judge = careful(path, "careful", "");
    let mut rows = String::new();
    for (answer, label) in [("7", true), ("8", false)].repeat(3) {
        let _ = writeln!(
            rows,
            r#"{{"question":"q","reference":"7","answer":"{answer}","label":{label}}}"#
        );
    }
    fs::write(path.join("l.jsonl"), rows).unwrap();
    let calibrate = ["judge", "test", "l.jsonl", "--judge", &judge, "-o", "c.json"];
    run(path, &calibrate, 0);
    let score = |calibration: &str, exit| {
        let arguments = ["judge", "score", "out", "--judge", &judge, "--calibration", calibration];
        shown(&run(path, &arguments, exit).stderr)
    };
    score("c.json", 0);
    assert_eq!(standings(path)["careful"], "provisional (6 labels, kappa 1.00)");
    let said = shown(&run(path, &["report", "out"], 0).stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("judge careful, provisional (6 labels, kappa 1.00)"), "{said}");
    // What was found under another rubric says nothing of these verdicts.
    let text = fs::read_to_string(path.join("c.json")).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["rubric"] = "000000000000".into();
    fs::write(path.join("old.json"), other.to_string()).unwrap();
    score("old.json", 0);
    assert_eq!(standings(path)["careful"], "not calibrated");
    // Nor what was found with another layout.
    let mut relaid: Value = serde_json::from_str(&text).unwrap();
    relaid["prompt"] = "v0 000000000000".into();
    fs::write(path.join("relaid.json"), relaid.to_string()).unwrap();
    score("c.json", 0);
    score("relaid.json", 0);
    assert_eq!(standings(path)["careful"], "not calibrated");
    score("old.json", 0);
    other["judge"] = "somebody".into();
    fs::write(path.join("other.json"), other.to_string()).unwrap();
    let said = score("other.json", 3);
    assert!(said.contains("it is of judge `somebody`"), "{said}");
    fs::write(path.join("none.json"), "{}").unwrap();
    assert!(score("none.json", 3).contains("missing field"));

    // A live judge of whom nobody knows that is warned of; one that disagrees, too.
    let run = RecordedRun::read(&out).unwrap();
    let mut manifest = run.manifest;
    manifest.judge.as_mut().unwrap().kind = ModelKind::Live;
    let mut calibration = JudgeCalibration::read(&text).unwrap();
    for (verdict, level, part) in [
        (None, BannerLevel::Warning, "nobody compared"),
        (Some(CalibrationStatus::Unfit), BannerLevel::Warning, "should not be believed"),
        (Some(CalibrationStatus::Provisional), BannerLevel::Note, "as far as"),
        (Some(CalibrationStatus::Calibrated), BannerLevel::Note, ""),
    ] {
        manifest.calibrations = Vec::new();
        if let Some(verdict) = verdict {
            calibration.verdict = verdict;
            manifest.calibrations.push(calibration.clone());
        }
        let report = Report::of(&manifest, &run.cells);
        let mut banners = report.banners.iter();
        let said = banners.find(|banner| banner.text.starts_with("judge careful is"));
        match said {
            Some(banner) => {
                assert!(banner.level == level && banner.text.contains(part), "{banner:?}");
            }
            None => assert_eq!(verdict, Some(CalibrationStatus::Calibrated)),
        }
    }
}

#[test]
fn a_scenario_names_what_was_found_out_about_its_judges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let judge = careful(path, "careful", "");
    careful(path, "reader", "");
    let scenario = |more: &str| {
        format!(
            "[models]\nreader = {{ kind = \"scripted\", model = \"reader\", script = \"reader.toml\" }}\n\
             judge = {judge}\n{more}\n\
             [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 4 }}\n\
             [[strategies]]\npreset = \"none\"\n"
        )
    };
    let arguments = ["run", "s.toml", "--out", "out"];
    fs::write(path.join("s.toml"), scenario("")).unwrap();
    run(path, &arguments, 0);
    assert_eq!(standings(path)["careful"], "not calibrated");
    let found = serde_json::json!({
        "format": "proctor-calibration", "version": 1, "judge": "careful",
        "rubric": proctor::probe::judge::rubric_hash(),
        "prompt": proctor::probe::judge::prompt_id(),
        "all": { "verdict": "calibrated", "labels": 120, "base_rate": 0.5, "kappa": 0.81 },
    });
    fs::write(path.join("c.json"), found.to_string()).unwrap();
    fs::write(path.join("s.toml"), scenario("calibrations = [\"c.json\"]")).unwrap();
    // It is the same run: what became known of the judge is added to it.
    run(path, &arguments, 0);
    assert_eq!(standings(path)["careful"], "calibrated (120 labels, kappa 0.81)");
    fs::write(path.join("c.json"), found.to_string().replace("careful", "another")).unwrap();
    let said = shown(&run(path, &arguments, 3).stderr);
    assert!(said.contains("`another`") && said.contains("`s.toml`: line"), "{said}");
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
    let output = run(path, &["judge", "test", "l.jsonl", "--judge", &judge], 0);
    let said = shown(&output.stdout);
    for part in [
        "judge agreeable: unfit",
        "3 answers, 2 labelled",
        "agrees with itself on  100.0 %",
        "of 1 answers without a label it calls 100.0 % right",
    ] {
        assert!(said.contains(part), "{said}");
    }
    run(path, &["judge", "test", "l.jsonl"], 2);
    fs::write(
        path.join("l.jsonl"),
        format!("{}\n{{\"question\":\"q\",\"answer\":\"a\",\"label\":\"maybe\"}}", rows[0]),
    )
    .unwrap();
    let output = run(path, &["judge", "test", "l.jsonl", "--judge", &judge], 3);
    let said = shown(&output.stderr);
    assert!(said.contains("line 2 of `l.jsonl`") && said.contains("not `maybe`"), "{said}");
}

#[test]
fn a_cassette_is_listed_verified_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::copy(scenarios().join("graded/cassette.jsonl"), path.join("c.jsonl")).unwrap();
    let listed = shown(&run(path, &["cache", "list", "c.jsonl"], 0).stdout);
    assert!(listed.contains("scripted-reader (scripted), probe:"), "{listed}");
    let said = shown(&run(path, &["cache", "verify", "c.jsonl"], 0).stdout);
    assert!(said.contains("sound"), "{said}");
    let whole = fs::read(path.join("c.jsonl")).unwrap();
    fs::write(path.join("c.jsonl"), &whole[..whole.len() - 30]).unwrap();
    let said = shown(&run(path, &["cache", "verify", "c.jsonl"], 3).stdout);
    assert!(said.contains("last line was cut off"), "{said}");
    fs::write(path.join("c.jsonl"), &whole).unwrap();
    let clear = ["cache", "clear", "c.jsonl", "--model", "scripted-judge"];
    let said = shown(&run(path, &clear, 2).stderr);
    assert!(said.contains("--force"), "{said}");
    assert_eq!(fs::read(path.join("c.jsonl")).unwrap(), whole);
    run(path, &[&clear[..], &["--force"]].concat(), 0);
    let listed = shown(&run(path, &["cache", "list", "c.jsonl"], 0).stdout);
    assert!(!listed.contains("scripted-judge") && listed.contains("scripted-reader"), "{listed}");
    run(path, &["cache", "list", "none.jsonl"], 3);
}
