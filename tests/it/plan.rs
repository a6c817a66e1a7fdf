//! A plan says what a run then records, and spends nothing to find out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proctor::metric::survival::is_planted;
use proctor::probe::judge::MAX_ANSWER;
use proctor::record::journal::RecordedRun;
use proctor::record::{CellRecord, ForecastCell, ProbeRecord};
use proctor::runner::{Access, Plan};
use proctor::strategy::preset::PRESETS;
use proctor::units::{Tokens, Usage};
use serde_json::Value;

use crate::goldens::sampled;
use crate::support::{run_in, scenario};

/// What a plan and a run of the same scenario say of each cell that is in both.
fn both(text: &str, folder: &Path) -> Vec<(ForecastCell, CellRecord)> {
    let mut plan = Plan::new(scenario(text, folder)).unwrap();
    let forecast = plan.forecast().unwrap();
    let out = tempfile::tempdir().unwrap();
    plan.connect(&Access {
        variable: &|_| None,
        is_offline: true,
        replay: None,
        cassette: out.path().join("unused.jsonl"),
        #[cfg(feature = "http")]
        notice: None,
    })
    .unwrap();
    let cells = run_in(out.path(), &plan, 2).1.cells;
    let recorded: Vec<CellRecord> =
        cells.into_iter().filter(|cell| cell.strategy != "empty").collect();
    assert_eq!(forecast.len(), recorded.len(), "a cell is missing");
    let found = |cell: &ForecastCell| {
        let key = cell.record.key();
        let same = recorded.iter().find(|other| other.key() == key);
        same.unwrap_or_else(|| panic!("{key} was not run")).clone()
    };
    forecast
        .into_iter()
        .map(|cell| {
            let record = found(&cell);
            (cell, record)
        })
        .collect()
}

/// Holds the forecast equal to what is recorded, probes left out: a plan asks none.
fn check(text: &str, folder: &Path) -> usize {
    let pairs = both(text, folder);
    for (forecast, recorded) in &pairs {
        let mut recorded = recorded.clone();
        let due: u64 = forecast.probes.values().map(|due| due.items).sum();
        assert_eq!(due, recorded.probes.len() as u64, "{}", recorded.key());
        recorded.probes.clear();
        recorded.probe_texts.clear();
        assert_eq!(forecast.record, recorded);
        // Whatever was asked of a model may be that long, and no longer.
        for (number, longest) in &forecast.asks {
            let call = &recorded.model_calls[*number];
            assert!(call.usage.output <= *longest, "{}: {call:?}", recorded.key());
        }
    }
    pairs.len()
}

#[test]
fn a_plan_says_of_every_preset_what_a_run_records() {
    let mut text =
        "name = 'all'\ncounter = 'chars/4'\nrepeats = 2\n[window]\nmode = 'fit'\nfraction = 0.6\n\
         [[sessions]]\nsynthetic = { family = 'debugging', seed = 3, rounds = 30 }\n\
         [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, rounds = 20 }\n"
            .to_owned();
    let mut presets: BTreeSet<&str> = sampled(PRESETS).map(|(name, _)| *name).collect();
    presets.insert("observation-masking");
    for name in &presets {
        text = text + "[[strategies]]\npreset = '" + name + "'\n";
    }
    // One that follows another has to wait for its sizes in a plan, too.
    text.push_str("[[strategies]]\npreset = 'tail@observation-masking'\n");
    let cells = check(&text, Path::new("."));
    assert_eq!(cells, 2 * (1 + 2 * (presets.len() + 1)));
}

#[test]
fn a_plan_knows_what_will_go_wrong_on_purpose() {
    let text = "name = 'faulty'\ncounter = 'chars/4'\n[window]\nmode = 'fit'\nfraction = 0.5\n\
         [[sessions]]\nsynthetic = { family = 'code-review', seed = 2, rounds = 20 }\n\
         [faults]\nsummary_error = 0.5\n\
         [[strategies]]\npreset = 'claude-code'\n[[strategies]]\npreset = 'none'\n";
    assert_eq!(check(text, Path::new(".")), 3);
}

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env_remove("PROCTOR_WINDOW")
        .env_remove("PROCTOR_SEED")
        .env("PROCTOR_COUNTER", "chars/4")
        .args(arguments)
        .output()
        .unwrap()
}

const SMALL: &str = "name = 'small'\ncontrols = false\n[window]\ntokens = 12_000\n[cache]\nmodel = 'claude-opus-4-5'\n\
    [[sessions]]\nsynthetic = { family = 'code-review', seed = 1, rounds = 12 }\ncount = 2\n\
    [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.keep_last = 2 }\n\
    [[strategies]]\npreset = 'none'\n";

#[test]
fn the_figures_of_a_plan_are_those_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let json = proctor(folder.path(), &["run", "--dry-run", "small.toml", "--json"]);
    assert!(json.status.success(), "{json:?}");
    let plan: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a plan writes nothing");
    let run = proctor(folder.path(), &["run", "small.toml", "--out", "run", "-o", "r.json"]);
    assert!(run.status.success(), "{run:?}");
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let costs = sections.iter().find(|it| it["id"] == "cost_by_scheme").unwrap();
    let columns: Vec<&str> = costs["table"]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["id"].as_str().unwrap())
        .collect();
    let value = |row: &Value, column: &str| {
        let at = columns.iter().position(|it| *it == column).unwrap();
        row["cells"][at - 1]["value"].clone()
    };
    let mut compared = 0;
    for arm in plan["strategies"].as_array().unwrap() {
        for cost in arm["costs"].as_array().unwrap() {
            let rows = costs["table"]["rows"].as_array().unwrap();
            let (bill, breakpoints) = match &cost["bill"] {
                Value::String(_) => continue,
                bill if bill["own"].is_string() => ("as billed", bill["own"].clone()),
                _ => ("fixed", Value::from("usual")),
            };
            let row = rows
                .iter()
                .find(|row| {
                    row["name"] == arm["strategy"]
                        && value(row, "bill")["text"] == bill
                        && value(row, "breakpoints")["text"] == breakpoints
                        && value(row, "scheme")["text"] == cost["scheme"]
                })
                .unwrap();
            for (column, figure) in [
                ("read", &cost["cache_read"]),
                ("written", &cost["cache_written"]),
                ("cost", &cost["input_equivalents"]),
            ] {
                assert_eq!(&value(row, column)["tokens"], figure, "{arm:?} {column}");
            }
            // Neither says the bill of a strategy that dies in every session.
            match cost["dollars"].as_f64() {
                None => assert_eq!(value(row, "dollars"), "not_measured"),
                Some(dollars) => {
                    let found = value(row, "dollars")["dollars"].as_f64().unwrap();
                    assert!((found - dollars).abs() < 1e-9, "{found} {dollars}");
                }
            }
            compared += 1;
        }
    }
    // Three arms under four schemes, usual and ideal; and the edge of masking.
    assert_eq!(compared, 3 * (4 + 2) + 1);
    assert_eq!(plan["spend"]["calls"], 0);
    // By hand: (12.706 + 1.376) · 0.45 · √((1 + 0.1·(m − 1))/(2 m)), m the items of a session.
    let seen = &plan["detectable"];
    let items = seen["items_per_session"].as_f64().unwrap();
    let by_hand =
        (12.706_2 + 1.376_4) * 0.45 * ((1.0 + 0.1 * (items - 1.0)) / (2.0 * items)).sqrt();
    let found = seen["difference"].as_f64().unwrap();
    assert!((found - by_hand).abs() < 1e-3, "{found} {by_hand}");
    assert_eq!(seen["sessions"], 2);
    // Decoys are asked too, and are in no difference.
    let cells = RecordedRun::read(&folder.path().join("run")).unwrap().cells;
    let reference = cells.iter().filter(|cell| cell.strategy == "full");
    let asked = reference.flat_map(|cell| &cell.probes);
    let planted = asked.filter(|item| is_planted(item.kind)).count();
    assert!((2.0 * items - planted as f64).abs() < 1e-9, "{items} {planted}");
}

#[test]
fn a_plan_is_readable_and_says_that_nothing_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let shown = proctor(folder.path(), &["run", "--dry-run", "small.toml", "--tables"]);
    assert!(shown.status.success(), "{shown:?}");
    let text = String::from_utf8(shown.stdout).unwrap();
    for part in [
        "Plan: small, 2 sessions, 8 cells, counter chars/4",
        "observation-masking",
        "anthropic-1h",
        "The run itself spends nothing: no live model is asked.",
        "it shows no difference in facts kept or answers right: 2 sessions are too few.",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // A limit that nobody could agree to is no obstacle for a run that spends nothing.
    let run = proctor(folder.path(), &["run", "small.toml", "--cost-limit", "0"]);
    assert!(run.status.success(), "{run:?}");
    let wrong = proctor(folder.path(), &["run", "small.toml", "--cost-limit=-1"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_plan_counts_what_models_think_before_they_answer() {
    let folder = tempfile::tempdir().unwrap();
    let spend = |thinking: &str| {
        let text = format!(
            "{SMALL}[models]\nreader = {{ kind = 'openai', model = 'gpt-5-mini'{thinking} }}\n"
        );
        fs::write(folder.path().join("live.toml"), text).unwrap();
        let json = proctor(folder.path(), &["run", "--dry-run", "live.toml", "--json"]);
        assert!(json.status.success(), "{json:?}");
        let plan: Value = serde_json::from_slice(&json.stdout).unwrap();
        plan["spend"].clone()
    };
    let [none, some, unsaid] = [", thinking_tokens = 0", ", thinking_tokens = 100", ""].map(spend);
    let of = |spend: &Value, bound: &str| spend["output_tokens"][bound].as_u64().unwrap();
    let calls = none["calls"].as_u64().unwrap();
    assert!(calls > 0);
    assert_eq!(of(&some, "high"), of(&none, "high") + 100 * calls);
    // Its name for the limit is that of models which think: 4,096 tokens where nothing is said.
    assert_eq!(of(&unsaid, "high"), of(&none, "high") + 4_096 * calls);
    for bound in ["low", "expected"] {
        assert_eq!(of(&some, bound), of(&none, bound));
    }
}

#[test]
fn a_plan_knows_what_readers_and_judges_will_be_asked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let text = fs::read_to_string(folder.join("graded.toml")).unwrap();
    let is_asked = |line: &&str| !line.starts_with("cassette =") && !line.starts_with("replay =");
    let text: String = text.lines().filter(is_asked).flat_map(|line| [line, "\n"]).collect();
    let mut judged = 0;
    for (forecast, recorded) in both(&text, &folder) {
        let key = recorded.key();
        for (call, due) in &forecast.probes {
            let items = recorded.probes.iter().filter(|item| item.call == *call);
            let answers: Vec<_> = items.flat_map(ProbeRecord::every_answer).collect();
            let Some(prompt) = recorded.prompt_tokens.get(*call) else {
                continue;
            };
            let read = answers.iter().map(|answer| answer.usage.prompt());
            let asked = prompt.0 * due.questions + due.question_tokens.0;
            assert_eq!(read.sum::<Tokens>().0, asked, "{key} at {call}");
            let shown: Vec<Usage> = answers
                .iter()
                // A fact that string matching cannot tell was read by nobody, and is judged beside the plan.
                .filter(|answer| answer.usage != Usage::default())
                .map(|answer| answer.judge_usage)
                .filter(|usage| *usage != Usage::default())
                .collect();
            assert!(shown.len() as u64 <= due.judged, "{key} at {call}");
            let tokens: Tokens = shown.iter().map(Usage::prompt).sum();
            let most = due.judge_tokens.0 + due.judged * MAX_ANSWER.0;
            assert!(tokens.0 <= most, "{key} at {call}: {tokens:?} of {most}");
            judged += shown.len();
        }
        let known = recorded.sentinels.iter();
        let tokens: Tokens = known.map(|one| one.usage.prompt()).sum();
        let planned = forecast.sentinels;
        assert_eq!(planned.calls, recorded.sentinels.len() as u64, "{key}");
        assert_eq!(planned.tokens, tokens, "{key}");
    }
    assert!(judged > 0, "nothing was judged");
}
