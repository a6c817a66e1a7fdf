//! The qualification pass and the reader's two scopes, through the program.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use proctor::metric::cached_calls::by_purpose;
use proctor::model::Purpose;
use proctor::probe::judge::MAX_ANSWER;
use proctor::probe::{GradeVerdict, ProbeKind, Unscored};
use proctor::record::journal::RecordedRun;
use proctor::record::{Arm, CellRecord, ProbeRecord};
use proctor::report::Report;

/// Runs a scripted reader on a small session under a strategy that summarises; `script` is its rules,
/// `models` more settings.
#[track_caller]
fn run(folder: &Path, script: &str, models: &str) -> (RecordedRun, Report) {
    run_to(0, folder, script, models)
}

/// The same, with this exit code.
#[track_caller]
fn run_to(code: i32, folder: &Path, script: &str, models: &str) -> (RecordedRun, Report) {
    let script = format!("format = \"proctor-script\"\nversion = 1\n{script}");
    fs::write(folder.join("script.toml"), script).unwrap();
    let scenario = format!(
        "name = \"qualified\"\n\
         [models]\nreader = {{ kind = \"scripted\", model = \"reader\", script = \"script.toml\" }}\n\
         cassette = \"kept.jsonl\"\n{models}\n\
         [window]\nmode = \"fit\"\nfraction = 0.4\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 8, seed = 7, head_tokens = 0 }}\n\
         [[strategies]]\npreset = \"claude-code\"\nset = {{ summarize.when = {{ tokens_over = 0 }} }}\nname = \"claude-code\"\n"
    );
    fs::write(folder.join("s.toml"), scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(["run", "s.toml", "--out", "out"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let run = RecordedRun::read(&folder.join("out")).unwrap();
    let report = Report::of(&run.manifest, &run.cells);
    (run, report)
}

fn of_arm(run: &RecordedRun, arm: Arm) -> &CellRecord {
    run.cells.iter().find(|cell| cell.arm == arm).unwrap()
}

/// The cells of a section's rows, without their names; nothing where it is left out.
fn rows<'a>(report: &'a Report, id: &str) -> Vec<&'a proctor::report::Row> {
    let mut sections = report.sections.iter();
    let section = sections.find(|section| section.id == id);
    section.map_or(Vec::new(), |section| section.table.rows.iter().collect())
}

fn text(row: &proctor::report::Row, at: usize) -> String {
    format!("{:?}", row.cells[at].value)
}

const ABSTAINS: &str = "[[answer]]\npurpose = \"probe\"\ntext = \"not in context\"\n";

/// A reader that says the planted value of every question wherever the prompt holds it, and with
/// `knows` this one of them everywhere.
fn script(recalled: &[(String, String)], knows: Option<&str>) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut out = String::new();
    for (question, value) in recalled {
        let holds = if knows == Some(question) {
            String::new()
        } else {
            format!("holds = {}\n", quoted(value))
        };
        let _ = write!(
            out,
            "[[answer]]\npurpose = \"probe\"\nasked = {}\n{holds}text = {}\n",
            quoted(question.trim()),
            quoted(value)
        );
    }
    out + ABSTAINS
}

/// The questions after values that stand still, with the values.
fn recalled(run: &RecordedRun) -> Vec<(String, String)> {
    let full = of_arm(run, Arm::Reference);
    let is_recall = |id: &str| {
        let mut items = full.probes.iter();
        items.any(|item| item.probe == id && item.kind == ProbeKind::Recall)
    };
    let mut all: Vec<(String, String)> = full
        .probe_texts
        .iter()
        .filter(|text| is_recall(&text.probe))
        .map(|text| (text.question.clone(), text.gold.clone()))
        .collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn what_the_reader_knows_without_the_context_does_not_qualify_and_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    // First only to learn what is asked.
    let (first, _) = run(folder.path(), ABSTAINS, "qualify = false\n");
    let asked = recalled(&first);
    assert!(asked.len() >= 2, "{asked:?}");
    let is_unasked = |item: &ProbeRecord| item.qualifying.is_none();
    assert!(first.cells.iter().flat_map(|cell| &cell.probes).all(is_unasked));

    let folder = tempfile::tempdir().unwrap();
    let known = asked[0].0.clone();
    let (second, report) = run(folder.path(), &script(&asked, Some(&known)), "");
    // Asked of both anchors and of no strategy, and never what is scored.
    for cell in &second.cells {
        let asked = cell.probes.iter().filter(|item| item.qualifying.is_some());
        let expected = match cell.arm {
            Arm::Reference | Arm::Floor => cell.probes.len(),
            Arm::Strategy => 0,
        };
        assert_eq!(asked.count(), expected, "{}", cell.strategy);
    }
    let listed = rows(&report, "unqualified");
    let why: Vec<String> = listed
        .iter()
        .filter(|row| text(row, 1).contains("recall"))
        .map(|row| text(row, 4))
        .collect();
    assert!(!why.is_empty());
    assert!(why.iter().all(|why| why.contains("right without a context")), "{why:?}");
    // All other kinds are answered with "not in context", and listed for it; decoys qualify.
    let kinds: Vec<String> = listed.iter().map(|row| text(row, 1)).collect();
    assert!(!kinds.iter().any(|kind| kind.contains("decoy")), "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind.contains("constraint")), "{kinds:?}");
    // On an account of its own, in the cassette too.
    let metered = by_purpose(&second.cells);
    let anchors =
        of_arm(&second, Arm::Reference).probes.len() + of_arm(&second, Arm::Floor).probes.len();
    assert!(metered[&Purpose::Qualification].requests >= anchors);
    assert!(metered[&Purpose::Probe].requests > metered[&Purpose::Qualification].requests);
    let entries =
        proctor::model::cassette::read(&folder.path().join("kept.jsonl")).unwrap().entries;
    let of = |purpose| entries.iter().filter(|entry| entry.purpose == purpose).count();
    assert_eq!(of(Purpose::Qualification), metered[&Purpose::Qualification].distinct);
    assert_eq!(of(Purpose::Probe), metered[&Purpose::Probe].distinct);
}

#[test]
fn fidelity_is_refused_where_the_reader_cannot_do_the_task_or_needs_no_context() {
    let fidelity = |script: &str| {
        let folder = tempfile::tempdir().unwrap();
        let (_, report) = run(folder.path(), script, "");
        let strategy = rows(&report, "answers").into_iter().last().unwrap();
        let cells = (0..strategy.cells.len()).map(|at| text(strategy, at));
        cells.collect::<Vec<_>>().join(" ")
    };
    let cannot = fidelity(ABSTAINS);
    assert!(cannot.contains("right too rarely"), "{cannot}");
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = run(folder.path(), ABSTAINS, "qualify = false\n");
    let full = of_arm(&first, Arm::Reference);
    let mut knows = String::new();
    for text in &full.probe_texts {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let (asked, gold) = (quoted(text.question.trim()), quoted(&text.gold));
        let rule = format!("[[answer]]\npurpose = \"probe\"\nasked = {asked}\ntext = {gold}\n");
        knows.push_str(&rule);
    }
    let needs_none = fidelity(&(knows + ABSTAINS));
    assert!(needs_none.contains("hardly needs the context"), "{needs_none}");
}

#[test]
fn a_summary_is_read_alone_where_it_stands_for_the_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = run(folder.path(), ABSTAINS, "qualify = false\n");
    let asked = recalled(&first);
    let folder = tempfile::tempdir().unwrap();
    let both = "reader_scope = \"context+summary\"\n";
    let (run, report) = run(folder.path(), &script(&asked, None), both);
    let strategy = of_arm(&run, Arm::Strategy);
    assert!(!strategy.compactions.is_empty());
    let alone: Vec<&ProbeRecord> =
        strategy.probes.iter().filter(|item| item.from_summary.is_some()).collect();
    assert!(!alone.is_empty() && alone.len() < strategy.probes.len());
    for item in &alone {
        let answer = item.from_summary.as_ref().unwrap();
        // What the prompt lost no summary in it holds.
        if item.kind == ProbeKind::Recall && item.survival.score < 0.5 {
            assert_eq!(answer.text.as_deref(), Some("not in context"), "{}", item.probe);
        }
        assert!(answer.usage.total() < item.answer.as_ref().unwrap().usage.total());
    }
    for cell in run.cells.iter().filter(|cell| cell.arm != Arm::Strategy) {
        assert!(cell.probes.iter().all(|item| item.from_summary.is_none()));
    }
    let table = rows(&report, "summary_answers");
    assert_eq!(table.len(), 1);
    assert!(table[0].name.starts_with("claude-code"));
}

#[test]
fn where_full_history_does_not_fit_the_reader_the_ceiling_is_the_evidence_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let (first, whole) = run(folder.path(), ABSTAINS, "qualify = false\n");
    assert!(!rows(&whole, "comparison")[0].marks_in_words().concat().contains("ceiling"));
    let asked = recalled(&first);
    let full = of_arm(&first, Arm::Reference);
    let largest = full.prompt_tokens.iter().max().unwrap().0;
    let window = full.fixed_tokens.0 + MAX_ANSWER.0 + largest * 2 / 5;

    let folder = tempfile::tempdir().unwrap();
    let setting = format!("reader_window = {window}\n");
    let (second, report) = run(folder.path(), &script(&asked, None), &setting);
    let full = of_arm(&second, Arm::Reference);
    let (evidence, all): (Vec<&ProbeRecord>, Vec<&ProbeRecord>) =
        full.probes.iter().partition(|item| item.of_evidence);
    assert!(!evidence.is_empty() && !all.is_empty(), "some fit, some do not");
    for item in &evidence {
        let prompt = full.prompt_tokens[item.call].0;
        let answer = item.answer.as_ref().unwrap();
        let sent = answer.usage.prompt().0;
        // Both orders of a choice are two requests.
        assert!(prompt > sent / 2, "{}: {sent} of {prompt}", item.probe);
        assert!(sent <= 2 * (window - MAX_ANSWER.0), "{}: {sent}", item.probe);
        if item.kind == ProbeKind::Recall {
            let said = answer.text.as_deref();
            assert_ne!(said, Some("not in context"), "{} was left out", item.probe);
            assert!(item.qualifying.is_some());
        }
    }
    let others = second.cells.iter().filter(|cell| cell.arm != Arm::Reference);
    assert!(others.flat_map(|cell| &cell.probes).all(|item| !item.of_evidence));
    let mark = format!("ceiling: evidence in {} of {} items", evidence.len(), full.probes.len());
    for section in ["comparison", "answers"] {
        let row = rows(&report, section)[0];
        assert!(row.marks_in_words().contains(&mark), "{section}: {:?}", row.marks);
    }
    let sections = report.sections.iter();
    for section in sections.filter(|section| ["answers", "unqualified"].contains(&section.id)) {
        let said = section.notes.join(" ");
        assert!(said.contains("ceiling: evidence"), "{}: {said}", section.id);
    }
    let banners: Vec<&str> = report.banners.iter().map(|it| &*it.text).collect();
    assert!(banners.iter().any(|it| it.starts_with("ceiling: evidence")), "{banners:?}");
    assert_eq!(second.manifest.conditions["reader window"], format!("{window} tokens"));

    // Where not even the evidence fits, nobody is asked, and that is no zero, but no success either.
    let folder = tempfile::tempdir().unwrap();
    let window = full.fixed_tokens.0 + MAX_ANSWER.0;
    let setting = format!("reader_window = {window}\n");
    let (third, report) = run_to(104, folder.path(), ABSTAINS, &setting);
    let full = of_arm(&third, Arm::Reference);
    let too_long = GradeVerdict::Unscored { reason: Unscored::TooLong };
    assert!(full.probes.iter().all(|item| item.verdict() == Some(too_long)));
    let banners: Vec<&str> = report.banners.iter().map(|it| &*it.text).collect();
    assert!(banners.iter().any(|it| it.contains("too long for the reader")), "{banners:?}");
}
