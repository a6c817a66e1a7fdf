//! Unhealthy summaries, through the program: detected, counted, and shown with their text.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor::record::Ailment;
use proctor::record::journal::RecordedRun;
use serde_json::Value;

/// Runs a summariser that always says `text` under a strategy that takes what it is given; the ailments
/// found, and the report as JSON.
#[track_caller]
fn sick(folder: &Path, text: &str, faults: &str) -> (Vec<(Vec<Ailment>, String)>, usize, Value) {
    let quoted = toml::Value::String(text.to_owned());
    let script = format!(
        "format = \"proctor-script\"\nversion = 1\n[[answer]]\npurpose = \"compaction\"\ntext = {quoted}\n"
    );
    fs::write(folder.join("script.toml"), script).unwrap();
    let scenario = format!(
        "name = \"sick\"\ncounter = \"chars/4\"\n\
         [models]\nreader = \"none\"\n\
         summariser = {{ kind = \"scripted\", model = \"writer\", script = \"script.toml\" }}\n\
         {faults}\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 8, seed = 3 }}\n\
         [[strategies]]\nname = \"own\"\n\
         [[strategies.stage]]\nkind = \"summarize\"\nwhen = {{ tokens_over = 4_000 }}\n"
    );
    fs::write(folder.join("s.toml"), scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(["run", "s.toml", "--out", "out", "-o", "r.json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let run = RecordedRun::read(&folder.join("out")).unwrap();
    let health = run.cells.iter().map(|cell| &cell.summary_health);
    let found = health.clone().flat_map(|health| &health.unhealthy);
    let found = found.map(|one| (one.ailments.clone(), one.text.clone())).collect();
    let summaries = health.map(|health| health.summaries).sum();
    let report = fs::read_to_string(folder.join("r.json")).unwrap();
    (found, summaries, serde_json::from_str(&report).unwrap())
}

fn section<'a>(report: &'a Value, id: &str) -> Option<&'a Value> {
    let sections = report["sections"].as_array().unwrap();
    sections.iter().find(|section| section["id"] == id)
}

#[track_caller]
fn check(text: &str, faults: &str, expected: Ailment) {
    let folder = tempfile::tempdir().unwrap();
    let (found, summaries, report) = sick(folder.path(), text, faults);
    assert!(!found.is_empty(), "{text:?} is taken for a summary");
    assert_eq!(found.len(), summaries, "each of them");
    for (ailments, kept) in &found {
        assert!(ailments.contains(&expected), "{ailments:?}");
        if faults.is_empty() {
            assert_eq!(*kept, text.chars().take(600).collect::<String>());
        }
    }
    let counted = section(&report, "summary_health").unwrap();
    let columns = counted["table"]["columns"].as_array().unwrap();
    let at = columns.iter().position(|column| column["id"] == Ailment::ALL[expected as usize].1);
    let row = &counted["table"]["rows"][0];
    let cell = &row["cells"][at.unwrap() - 1];
    assert!(cell.to_string().contains(&found.len().to_string()), "{cell}");
    let texts = section(&report, "unhealthy_summaries").unwrap();
    let shown = texts["table"]["rows"][0].to_string();
    assert!(shown.contains(expected.name()), "{shown}");
    let beginning: String = found[0].1.chars().take(20).collect();
    let beginning = serde_json::to_string(&beginning).unwrap();
    assert!(shown.contains(beginning.trim_matches('"')), "{shown}");
}

#[test]
fn each_of_the_seven_is_detected_counted_and_shown_with_its_text() {
    let call = r#"{"name": "read_file", "arguments": {"path": "src/main.rs"}}"#;
    let sound = "## Done\n- the parser was mended\n## Next\n- run the tests";
    check("  ", "", Ailment::Empty);
    check(call, "", Ailment::ToolCall);
    check("Which file should I look at first?", "", Ailment::Question);
    check("Sure, I'll open the file now and mend it.", "", Ailment::Chat);
    check(sound, "[faults]\nsummary_truncated = 1.0", Ailment::CutOff);
    check(
        &"the parser was mended and then some more. ".repeat(4_000),
        "",
        Ailment::LargerThanSource,
    );
    let chinese = "## 已完成\n- 解析器已经修好，所有测试都通过了\n## 下一步\n- 运行集成测试";
    check(chinese, "", Ailment::OtherScript);
}

#[test]
fn a_summary_that_is_one_is_in_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let sound = "## Done\n- the parser was mended\n## Next\n- run the tests";
    let (found, summaries, report) = sick(folder.path(), sound, "");
    assert!(found.is_empty() && summaries > 0, "{found:?}");
    assert!(section(&report, "summary_health").is_none());
    assert!(section(&report, "unhealthy_summaries").is_none());
}
