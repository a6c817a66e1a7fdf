//! The graded scenario: its script is made from what was planted, its cassette from its script.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proctor::metric::CellSummary;
use proctor::model::ModelKind;
use proctor::model::cassette::{self, ReplayMode};
use proctor::probe::Fact;
use proctor::probe::judge::{JudgeTask, known_answer};
use proctor::record::CellRecord;
use proctor::report::Report;
use proctor::runner::{Access, Plan, RunOutcome};
use proctor::scenario::{Scenario, SessionSource};
use proctor::session::synthetic::generate;
use proctor::settings::SettingTable;
use proctor::tokens::{CountedTexts, counter};

use crate::goldens::golden;
use crate::support::run_in;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

fn scenario() -> Scenario {
    let text = std::fs::read_to_string(folder().join("graded.toml")).unwrap();
    let table = SettingTable::parse("graded.toml", &text).unwrap();
    Scenario::read(&table, &folder()).unwrap()
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A reader that knows every planted value, and says it where the prompt still has it.
fn script() -> String {
    let mut out = "# Made by the tests from what is planted in the session: PROCTOR_BLESS=1 writes it again.\n\
         # The reader says a value where the prompt still has it; the judge compares words. Neither is a\n\
         # model, and what they say is no result.\n\
         format = \"proctor-script\"\nversion = 1\n"
        .to_owned();
    let mut rule = |purpose: &str, rest: &[(&str, &str)]| {
        let _ = write!(out, "\n[[answer]]\npurpose = \"{purpose}\"\n");
        for (key, value) in rest {
            let _ = writeln!(out, "{key} = {}", quoted(value));
        }
    };
    for source in &scenario().sessions {
        let SessionSource::Synthetic(recipe) = source else {
            panic!("the sessions are made to order");
        };
        let counts = CountedTexts::new(counter("o200k").unwrap());
        let made = generate(recipe, &counts).unwrap();
        for probe in made.truth.facts.clone() {
            for (holds, text) in known(&probe.fact) {
                let asked = probe.question.trim();
                rule("probe", &[("asked", asked), ("holds", &holds), ("text", &text)]);
            }
        }
    }
    rule("probe", &[("text", "not in context")]);
    let right = "{\"reason\": \"the same words\", \"verdict\": \"right\"}";
    let wrong = "{\"reason\": \"other words\", \"verdict\": \"incomplete\"}";
    // Only an answer that says so is right where nothing was planted.
    let abstained = "says so is correct.\n</reference>\n\n<answer>\nnot in context";
    rule("judge", &[("asked", abstained), ("text", right)]);
    // Words alone do not tell these: a judge that knows no more must be told.
    for known in known_answer::known_answers(JudgeTask::Wide) {
        let asked = format!("<answer>\n{}\n</answer>", known.answer);
        let text = if known.is_right { right } else { wrong };
        rule("judge", &[("asked", &asked), ("text", text)]);
    }
    let (right, wrong) = (quoted(right), quoted(wrong));
    let _ = write!(
        out,
        "\n[[answer]]\npurpose = \"judge\"\nalike = 0.5\ntext = {right}\n\n\
         [[answer]]\npurpose = \"judge\"\ntext = {wrong}\n"
    );
    out
}

/// What the prompt must hold, and what is said then; the newest of several values first.
fn known(fact: &Fact) -> Vec<(String, String)> {
    match fact {
        Fact::Recall { value, .. } | Fact::Indirect { value, .. } | Fact::Binding { value, .. } => {
            vec![(value.clone(), value.clone())]
        }
        Fact::Constraint { statement, .. } => vec![(statement.clone(), statement.clone())],
        Fact::Error { code, place, .. } => vec![(code.clone(), format!("{code} at {place}"))],
        Fact::Update { values, .. } => {
            values.iter().rev().map(|said| (said.value.clone(), said.value.clone())).collect()
        }
        Fact::Numeric { values, unit, .. } => values
            .iter()
            .rev()
            .map(|said| (said.value.clone(), format!("{} {unit}", said.value)))
            .collect(),
        Fact::Decision { choice, reason, .. } => {
            vec![(choice.clone(), format!("{choice}, for {reason}"))]
        }
        Fact::RejectedPath { reason, .. } => vec![(reason.clone(), format!("Yes: {reason}"))],
        _ => Vec::new(),
    }
}

fn run(mode: ReplayMode) -> (RunOutcome, Report, Vec<CellRecord>) {
    let out = tempfile::tempdir().unwrap();
    let mut plan = Plan::new(scenario()).unwrap();
    plan.connect(&Access {
        variable: &|_| None,
        is_offline: true,
        replay: Some(mode),
        cassette: out.path().join("unused.jsonl"),
        #[cfg(feature = "http")]
        notice: None,
    })
    .unwrap();
    let (outcome, run) = run_in(out.path(), &plan, 2);
    plan.models().unwrap().cassette.as_ref().unwrap().close().unwrap();
    (outcome, Report::of(&run.manifest, &run.cells), run.cells)
}

#[test]
fn a_newcomer_sees_the_whole_graded_path_offline_and_that_it_is_no_result() {
    golden("scenarios/graded/script.toml", &script());
    let path = folder().join("graded/cassette.jsonl");
    if std::env::var_os("PROCTOR_BLESS").is_some_and(|value| value == "1") {
        if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
        run(ReplayMode::Record);
    }
    let before = std::fs::read(&path).unwrap();
    let (outcome, report, cells) = run(ReplayMode::Strict);
    assert!(!outcome.missed, "the cassette is older than the script: PROCTOR_BLESS=1 writes it");
    assert_eq!(outcome.outstanding, 0);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let entries = cassette::read(&path).unwrap().entries;
    assert!(entries.iter().all(|entry| entry.kind == ModelKind::Scripted));
    // Both reader and judge are named as what they are, and the numbers are accuracy.
    assert_eq!(report.run.unwrap().reader.unwrap().kind, ModelKind::Scripted);
    let banners: Vec<&str> = report.banners.iter().map(|banner| banner.text.as_str()).collect();
    for said in ["answers scripted", "verdicts scripted"] {
        assert!(banners.iter().any(|banner| banner.starts_with(said)), "{banners:?}");
    }
    assert!(!banners.iter().any(|banner| banner.starts_with("judge ")), "{banners:?}");
    let judged = |cell: &CellRecord| {
        let answers = cell.probes.iter().filter_map(|item| item.answer.as_ref());
        answers.filter(|answer| answer.judged.is_some()).count()
    };
    assert!(cells.iter().map(judged).sum::<usize>() > 0, "the judge was asked");
    let full = cells.iter().find(|cell| cell.strategy == "full").unwrap();
    let masking = cells.iter().find(|cell| cell.strategy.starts_with("observation-masking"));
    let accuracy = |cell: &CellRecord| {
        let answers = CellSummary::of(cell, Some(full)).answers.unwrap();
        answers.score.mean().unwrap()
    };
    assert!(accuracy(full) > accuracy(masking.unwrap()));
}

/// The figures of real models, byte for byte and without a server, where Python is there.
#[test]
fn recorded_answers_give_the_page_of_real_models_again() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg(root.join("scripts/reference_results"))
        .args([env!("CARGO_BIN_EXE_proctor"), "--check"])
        .output();
    let Ok(output) = output else {
        println!("skipped: no python3");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
