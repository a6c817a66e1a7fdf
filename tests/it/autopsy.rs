//! `proctor autopsy`: on sessions whose losses are known by construction, and on all shared recordings.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use proctor::session::{
    CompactedTo, ContentBlock, InnerRequest, JsonText, Message, Recorded, RecordedCompaction, Role,
    Session, SessionParts, Source, Tag, ToolClass, ToolResult, ToolUse, native,
};
use proctor::units::{Timestamp, Tokens, Usage};
use serde_json::{Value, json};

use crate::shared;
use crate::support::{said, typed};

fn autopsy(folder: &Path, arguments: &[&str]) -> Output {
    autopsy_in("80", folder, arguments)
}

fn autopsy_in(columns: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env("COLUMNS", columns)
        .env("PROCTOR_COUNTER", "chars/4")
        .env("HOME", folder)
        .arg("autopsy")
        .args(arguments)
        .output()
        .unwrap()
}

/// The sessions that it finds.
fn sessions(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = autopsy(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let facts: Value = serde_json::from_slice(&output.stdout).unwrap();
    facts["sessions"].as_array().unwrap().clone()
}

/// A screen of at most 40 lines of 80 columns.
fn screen(folder: &Path, arguments: &[&str]) -> String {
    let output = autopsy(folder, arguments);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() <= 40, "{text}");
    // A command is copied as one line.
    let widest = text.lines().filter(|line| !line.starts_with("Next "));
    let widest = widest.map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}\n{text}");
    text
}

/// A session as it grows.
#[derive(Default)]
struct Recording {
    messages: Vec<Message>,
    compactions: Vec<RecordedCompaction>,
    /// `s`, where it has no other.
    id: Option<&'static str>,
}

impl Recording {
    /// The agent calls a tool, which answers.
    fn calls(&mut self, name: &str, class: ToolClass, input: &Value, result: &str) {
        let id = format!("use-{}", self.messages.len());
        let tool = ToolUse {
            id: id.as_str().into(),
            name: name.into(),
            class,
            input: JsonText::of(input),
        };
        let mut asked = Message::new(Role::Assistant, vec![ContentBlock::ToolUse(Box::new(tool))]);
        let at = self.messages.len() as u64;
        asked.details.usage = Some(Usage {
            cache_read: Tokens(20_000 + 50 * at),
            cache_write_5m: Tokens(500),
            ..Usage::uncached(Tokens(3), Tokens(40))
        });
        asked.details.timestamp = Some(Timestamp(at.cast_signed() * 1_000));
        let answer = ToolResult {
            tool_use_id: id.as_str().into(),
            content: vec![ContentBlock::Text(result.into())],
            is_error: false,
        };
        self.messages.push(asked);
        let answer = ContentBlock::ToolResult(Box::new(answer));
        self.messages.push(Message::new(Role::User, vec![answer]));
    }

    fn runs(&mut self, command: &str, result: &str) {
        self.calls("Bash", ToolClass::Shell, &json!({ "command": command }), result);
    }

    fn reads(&mut self, path: &str, content: &str) {
        self.calls("Read", ToolClass::Read, &json!({ "file_path": path }), content);
    }

    fn types(&mut self, text: &str) {
        self.messages.push(typed(text));
    }

    /// The product compacts to this summary.
    fn compacts(&mut self, summary: &str) {
        let summary = Message::text(Role::User, summary).with_tags([Tag::CompactSummary]);
        self.compact(CompactedTo::Replaced(vec![Recorded::Written(Arc::new(summary))]));
    }

    fn compact(&mut self, after: CompactedTo) {
        self.compactions.push(RecordedCompaction {
            at: self.messages.len(),
            trigger: Some("auto".into()),
            pre_tokens: Some(Tokens(150_000)),
            usage: None,
            after,
        });
    }

    /// Writes it as `s.jsonl`.
    fn write(self, folder: &Path) {
        let session = Session::new(SessionParts {
            id: self.id.unwrap_or("s").to_owned(),
            messages: self.messages.into_iter().map(Arc::new).collect(),
            compactions: self.compactions,
            model: Some("claude-opus-4-6".to_owned()),
            source: Source {
                format: "claude-code".to_owned(),
                version: Some("2.1.92".to_owned()),
                ..Source::default()
            },
            ..SessionParts::default()
        });
        let mut bytes = Vec::new();
        native::write(&session.unwrap(), &mut bytes).unwrap();
        std::fs::write(folder.join("s.jsonl"), bytes).unwrap();
    }
}

/// What becomes of a thing that the first result brought.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// The summary names it, and a later call uses it.
    Kept,
    /// No later call uses it.
    Unneeded,
    /// A later call uses it, and nothing had brought it back.
    Without,
    /// A later result brings it, then a call uses it.
    Fetched,
    /// The user types it again, then a call uses it.
    Told,
}

const FATES: [Fate; 5] = [Fate::Kept, Fate::Unneeded, Fate::Without, Fate::Fetched, Fate::Told];

/// Things of three kinds, each with its fate; the numbers make them different.
fn things(seed: usize) -> Vec<(&'static str, String, Fate)> {
    let one = |at: usize| {
        let number = seed * 31 + at;
        let fate = FATES[(number * 7 + at / 3) % FATES.len()];
        match at % 3 {
            0 => ("path", format!("src/part_{number}/file_{at}_{number}.rs"), fate),
            1 => ("value", format!("{}", 7_000_000 + number * 17), fate),
            _ => ("name", format!("setting_{number}_{at}"), fate),
        }
    };
    (0..9 + seed % 12).map(one).collect()
}

#[test]
fn each_loss_is_counted_as_what_it_was_made() {
    for seed in 0..24 {
        let things = things(seed);
        let listed = |fates: &[Fate]| {
            let own = things.iter().filter(|(_, _, fate)| fates.contains(fate));
            let lines = own.map(|(_, thing, _)| format!("see {thing}\n"));
            lines.collect::<String>()
        };
        let mut recording = Recording::default();
        recording.types("begin");
        recording.runs("list everything", &listed(&FATES));
        recording.compacts(&format!("Found so far:\n{}", listed(&[Fate::Kept])));
        recording.runs("look again", &listed(&[Fate::Fetched]));
        recording.types(&format!("I said:\n{}", listed(&[Fate::Told])));
        let used = [Fate::Kept, Fate::Without, Fate::Fetched, Fate::Told];
        recording.runs(&format!("use {}", listed(&used).replace('\n', " ")), "used it all");
        recording.messages.push(said("done"));
        let folder = tempfile::tempdir().unwrap();
        recording.write(folder.path());
        let found = sessions(folder.path(), &["s.jsonl"]);
        let thrown = &found[0]["compactions"][0]["thrown"];
        for kind in ["path", "value", "name"] {
            let count = |fates: &[Fate]| {
                let own = things.iter().filter(|(of, _, fate)| *of == kind && fates.contains(fate));
                json!(own.count())
            };
            let row = &thrown[kind];
            let context = format!("seed {seed}, {kind}: {row}");
            assert_eq!(row["before"], count(&FATES), "{context}");
            assert_eq!(row["stayed"], count(&[Fate::Kept]), "{context}");
            assert_eq!(row["without"], count(&[Fate::Without]), "{context}");
            assert_eq!(row["fetched"], count(&[Fate::Fetched]), "{context}");
            assert_eq!(row["told"], count(&[Fate::Told]), "{context}");
        }
    }
}

/// Two compactions: files that are read again, a rule that is broken, a port that is told again.
fn lossy() -> Recording {
    let file = |name: &str| {
        let lines = (0..40).map(|line| format!("{line}\tlet {name}_{line} = compute({line});\n"));
        lines.collect::<String>()
    };
    let mut recording = Recording::default();
    recording.types("Never run `git push --force`. The gateway listens on 48213.");
    for name in ["alpha", "beta", "gamma"] {
        recording.reads(&format!("/work/src/{name}.rs"), &file(name));
    }
    recording.runs("cargo test", "test result: ok. 12 passed; 0 failed");
    recording.compacts("The work is about /work/src/alpha.rs and two more files.");
    recording.reads("/work/src/beta.rs", &file("beta"));
    recording.types("It is 48213, as I said.");
    recording.runs("curl localhost:48213", "it answers");
    recording.runs("git push --force origin main", "forced update of main");
    recording.compacts("All is pushed; beta.rs was looked at.");
    recording.reads("/work/src/beta.rs", &file("beta"));
    recording.reads("/work/src/beta.rs", &file("beta"));
    recording.messages.push(said("done"));
    recording
}

#[test]
fn a_lossy_session_fits_one_screen() {
    let folder = tempfile::tempdir().unwrap();
    lossy().write(folder.path());
    let shown = screen(folder.path(), &["s.jsonl"]);
    // The next command has the path of the file in it.
    let (shown, _) = shown.split_once("\nNext").unwrap();
    insta::assert_snapshot!("autopsy", shown);
    let found = &sessions(folder.path(), &["s.jsonl"])[0];
    assert_eq!(found["rules"][0]["broken_at"], 6);
    // Of the two reads at the end the first fetches what is gone, and the second what is there.
    assert_eq!(found["repeated_anyway"], 1);
    for compaction in found["compactions"].as_array().unwrap() {
        assert_eq!(compaction["thrown"]["file"]["fetched"], 1);
    }
}

#[test]
fn a_rule_that_is_said_again_is_broken_by_no_compaction() {
    let folder = tempfile::tempdir().unwrap();
    for (typed, broken_at) in [
        ("Go on with the release.", json!(2)),
        ("Never run `make deploy --now`. I said so.", json!(null)),
        ("Please run make deploy --now.", json!(null)),
    ] {
        let mut recording = Recording::default();
        recording.types("Never run `make deploy --now`. Build the release.");
        recording.runs("make build", "built");
        recording.compacts("The release is built.");
        recording.runs("make test", "tested");
        recording.types(typed);
        recording.runs("make deploy --now", "deployed");
        recording.write(folder.path());
        let rule = &sessions(folder.path(), &["s.jsonl"])[0]["rules"][0];
        assert_eq!(rule["broken_at"], broken_at, "{typed}: {rule}");
    }
}

#[test]
fn a_thing_is_the_same_however_it_is_shown_or_spelled() {
    let file = (0..20).map(|line| format!("{line}\tlet row_{line} = sum({line});\n"));
    let file = file.collect::<String>();
    let [first, second] = [1, 2].map(|id| {
        format!("Chunk ID: {id}\nWall time: {id}.5 seconds\nOutput:\nin all 12 passed; 0 failed")
    });
    let mut recording = Recording::default();
    recording.types("begin");
    recording.reads("/work/src/kept.rs", &file);
    recording.reads("/work/src/lost.rs", &file.replace("row", "other"));
    recording.runs("make check", &first);
    let export = json!({ "command": "make export", "run_in_background": true });
    recording.calls("Bash", ToolClass::Shell, &export, "It runs with the ID bash_71.");
    let left = ["The work goes on.", &format!("Beside it kept.rs:\n{file}")].map(|text| {
        let message = Message::text(Role::User, text).with_tags([Tag::CompactSummary]);
        Recorded::Written(Arc::new(message))
    });
    recording.compact(CompactedTo::Replaced(left.into()));
    recording.runs("cat src/lost.rs", &file.replace("row", "other"));
    recording.runs("make check", &second);
    recording.calls("Output", ToolClass::Shell, &json!({ "bash_id": "bash_71" }), "It runs.");
    recording.messages.push(said("done"));
    let folder = tempfile::tempdir().unwrap();
    recording.write(folder.path());
    let thrown = &sessions(folder.path(), &["s.jsonl"])[0]["compactions"][0]["thrown"];
    let counted = ["stayed", "fetched"].map(|count| &thrown["file"][count]);
    assert_eq!(counted, [1, 1], "{thrown}");
    assert_eq!(thrown["result"]["fetched"], 1, "{thrown}");
    assert_eq!(thrown["task"]["without"], 1, "{thrown}");
    assert_ne!(thrown["name"]["without"], 1, "{thrown}");
}

/// All tokens of a usage.
fn tokens(usage: &Value) -> u64 {
    let classes = usage.as_object().unwrap().values();
    classes.map(|class| class.as_u64().unwrap()).sum()
}

/// Tokens of the requests for summaries that a run of the strategy `recorded` bills.
fn billed_by_a_run(folder: &Path) -> u64 {
    let ran = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env("PROCTOR_COUNTER", "chars/4")
        .args(["run", "s.jsonl", "--strategy", "recorded"])
        .args(["--out", "run", "-o", "run.json"])
        .output()
        .unwrap();
    let report = std::fs::read_to_string(folder.join("run.json"));
    let report: Value =
        serde_json::from_str(&report.unwrap_or_else(|_| panic!("{ran:?}"))).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let calls = sections.iter().find(|one| one["id"] == "model_calls");
    let tokens = &calls.unwrap()["table"]["rows"][0]["cells"][3]["value"]["tokens"];
    tokens.as_u64().unwrap()
}

#[test]
fn the_total_has_the_requests_for_summaries_as_billed_or_else_as_a_run_bills_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    lossy().write(path);
    let estimated = &sessions(path, &["s.jsonl"])[0];
    let compactions = estimated["compactions"].as_array().unwrap();
    let asked = compactions.iter().map(|one| tokens(&one["request"]));
    assert_eq!(asked.sum::<u64>(), billed_by_a_run(path));
    let part = estimated["estimated_usd"].as_f64().unwrap();
    assert!(part > 0.0);
    assert!(screen(path, &["s.jsonl"]).contains("with an estimate of $0.0"));
    let bill = Usage { cache_read: Tokens(20_000), ..Usage::uncached(Tokens(100), Tokens(300)) };
    let mut recording = lossy();
    for compaction in &mut recording.compactions {
        compaction.usage = Some(bill);
    }
    // Its own model looks at the prompt once more within a call.
    recording.messages[1].details.inner_requests =
        vec![InnerRequest { kind: "advisor_message".into(), model: None, usage: bill }];
    recording.write(path);
    let billed = &sessions(path, &["s.jsonl"])[0];
    assert_eq!(billed["estimated_usd"], 0.0);
    assert!(!screen(path, &["s.jsonl"]).contains("estimate"));
    let calls = tokens(&estimated["usage"]) - billed_by_a_run(path);
    assert_eq!(tokens(&billed["usage"]), calls + 3 * bill.total().0);
    // At the prices of Claude Opus 4.6: $5 of input and $25 of output, and reads at a tenth.
    let usd = 3.0 * (100.0 * 5.0 + 20_000.0 * 0.5 + 300.0 * 25.0) / 1e6;
    let [all, whole] = [estimated, billed].map(|found| found["usd"].as_f64().unwrap());
    assert!((whole - (all - part) - usd).abs() < 1e-9);
    for compaction in billed["compactions"].as_array().unwrap() {
        assert_eq!(compaction["is_billed"], true);
    }
}

#[test]
fn what_cannot_be_known_is_said_and_nothing_is_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for after in [CompactedTo::Encrypted, CompactedTo::Missing] {
        let mut recording = lossy();
        for compaction in &mut recording.compactions {
            compaction.after = after.clone();
        }
        recording.write(path);
        let found = &sessions(path, &["s.jsonl"])[0];
        let value = &found["compactions"][0]["thrown"]["value"];
        assert_eq!((&value["without"], &value["stayed"]), (&json!(0), &json!(0)));
        // Behind the first nothing shows what stands: the second counts what came since, one file of three.
        let paths = [0, 1].map(|at| &found["compactions"][at]["thrown"]["path"]["before"]);
        assert_eq!(paths, [3, 1]);
        assert!(screen(path, &["s.jsonl"]).contains("cannot be read in this recording"));
    }
    let mut whole = lossy();
    whole.compactions.clear();
    whole.write(path);
    assert!(screen(path, &["s.jsonl"]).contains("never compacted"));
    let mut at_its_end = lossy();
    at_its_end.compactions.remove(0);
    at_its_end.compactions[0].at = at_its_end.messages.len();
    at_its_end.write(path);
    assert!(screen(path, &["s.jsonl"]).contains("1 more compaction has no call behind"));
    let mut later = lossy();
    later.compactions[0].at = 0;
    later.write(path);
    assert!(screen(path, &["s.jsonl"]).contains("begins with a summary"));
}

#[test]
fn a_model_names_decisions_whose_fate_rules_then_follow() {
    let choice = "bounded ring buffer";
    let reason = "the unbounded list ran out of memory in the load test";
    let text = format!("For the exporter queue I take the {choice}, because {reason}.");
    let mut recording = Recording::default();
    recording.types("Build the exporter.");
    recording.messages.push(said(&text));
    recording.runs("cargo test", "test result: ok. 12 passed; 0 failed");
    recording.compacts("The exporter is half built.");
    recording.runs("cargo test", "test result: ok. 12 passed; 0 failed");
    recording.messages.push(said("done"));
    let folder = tempfile::tempdir().unwrap();
    recording.write(folder.path());
    let proposals = json!([{
        "question": "What was chosen for the exporter queue, and why?", "key": "exporter queue",
        "choice": choice, "reason": reason, "rejected": ["linked list"], "quote": text,
    }]);
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let script = format!(
        "format = \"proctor-script\"\nversion = 1\n[[answer]]\nasked = \"<part>\"\ntext = {}\n\
         [[answer]]\nholds = \"{choice}\"\ntext = {}\n[[answer]]\ntext = \"not in context\"\n",
        quoted(&proposals.to_string()),
        quoted(&format!("The {choice}: {reason}"))
    );
    std::fs::write(folder.path().join("script.toml"), script).unwrap();
    let model = "{ kind = \"scripted\", model = \"m\", script = \"script.toml\" }";
    let shown = screen(folder.path(), &["s.jsonl", "--graded", model]);
    assert!(shown.contains("lost or changed 1 decision"), "{shown}");
    assert!(shown.contains("your instructions and decisions"), "{shown}");
    let found = &sessions(folder.path(), &["s.jsonl", "--graded", model])[0];
    assert_eq!(found["rules"][0]["kind"], "decision");
    assert_eq!(found["rules"][0]["gone_at"], 2);
}

#[test]
fn a_recording_that_is_not_whole_says_so_and_a_missing_one_is_named_as_it_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut midway = lossy();
    midway.messages.remove(0);
    for compaction in &mut midway.compactions {
        compaction.at -= 1;
    }
    midway.write(path);
    assert!(screen(path, &["s.jsonl"]).contains("begins in the middle of a session"));
    let whole = format!("{}/claude-code/split-calls.jsonl", crate::FIXTURES);
    let whole = std::fs::read(whole).unwrap();
    std::fs::write(path.join("open.jsonl"), &whole[..whole.len() - 20]).unwrap();
    let shown = screen(path, &["open.jsonl"]);
    assert!(shown.contains("the last line was cut"), "{shown}");
    let missing = autopsy(path, &["none.jsonl"]);
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("there is no session `none.jsonl`"), "{said}");
}

#[test]
fn what_agents_keep_beside_their_recordings_is_no_reason_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(".claude/projects/p");
    std::fs::create_dir_all(own.join("s/subagents")).unwrap();
    let whole = format!("{}/claude-code/split-calls.jsonl", crate::FIXTURES);
    std::fs::copy(whole, own.join("s.jsonl")).unwrap();
    for (file, text) in [
        ("sessions-index.json", r#"{"version":1,"entries":[]}"#),
        ("s/subagents/agent-1.meta.json", r#"{"agentType":"x"}"#),
        ("notes.md", "notes"),
        ("empty.jsonl", ""),
    ] {
        std::fs::write(own.join(file), text).unwrap();
    }
    assert_eq!(sessions(folder.path(), &[]).len(), 1);
}

#[test]
fn a_compaction_counts_once_and_in_the_session_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut twice = lossy();
    twice.compacts("All is done.");
    twice.compacts("All is done, and was said.");
    twice.write(path);
    let shown = screen(path, &["s.jsonl"]);
    assert!(shown.contains("2 more compactions have no call behind"), "{shown}");
    let mut twice = lossy();
    twice.compacts("All is done.");
    twice.compacts("All is done, and was said.");
    twice.messages.push(said("Yes."));
    twice.compactions[2].pre_tokens = Some(Tokens(160_000));
    for compaction in &mut twice.compactions {
        compaction.usage = Some(Usage::uncached(Tokens(1_000), Tokens(100)));
    }
    twice.write(path);
    // Of those in a row all bills count, and the size in front of the first.
    let row = &sessions(path, &["s.jsonl"])[0]["compactions"][2];
    assert_eq!((tokens(&row["request"]), &row["before"]), (2_200, &json!(160_000)));
    let shown = screen(path, &["s.jsonl"]);
    assert!(shown.contains("compacted 4 times"), "{shown}");
    assert!(shown.contains("2 compactions in a row"), "{shown}");
    // What was loaded was compacted before.
    let text = std::fs::read_to_string(path.join("s.jsonl")).unwrap();
    let loaded = text.replacen("\"version\":1,", "\"version\":1,\"resumed\":{\"at\":9},", 1);
    std::fs::write(path.join("s.jsonl"), loaded).unwrap();
    let found = &sessions(path, &["s.jsonl"])[0];
    assert_eq!(found["compactions"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["begins_compacted"], true);
}

#[test]
fn in_sixty_columns_no_row_of_a_table_wraps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    lossy().write(path);
    let output = autopsy_in("60", path, &["s.jsonl"]);
    let narrow = String::from_utf8(output.stdout).unwrap();
    let output = autopsy_in("100", path, &["s.jsonl"]);
    let wide = String::from_utf8(output.stdout).unwrap();
    let (table, _) = narrow.split_once("\nNext").unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 60));
    for first in ["thrown", "files", "values", "cache break", "compaction"] {
        let rows = |text: &str| text.lines().filter(|line| line.starts_with(first)).count();
        assert_eq!(rows(&narrow), rows(&wide), "{narrow}");
    }
    let last = narrow.lines().find(|line| line.starts_with("files"));
    assert_eq!(last.unwrap().split_whitespace().count(), 8, "{narrow}");
}

#[test]
fn a_folder_shows_the_worst_first_and_an_unreadable_file_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    lossy().write(folder.path());
    let whole = std::fs::read(folder.path().join("s.jsonl")).unwrap();
    let mut calm = lossy();
    calm.compactions.clear();
    calm.id = Some("calm");
    calm.messages[0] = typed("Another session.");
    calm.types("and one more thing");
    calm.runs("echo the end of it", "the end of it");
    calm.write(folder.path());
    std::fs::rename(folder.path().join("s.jsonl"), folder.path().join("calm.jsonl")).unwrap();
    std::fs::write(folder.path().join("lossy.jsonl"), &whole).unwrap();
    std::fs::write(folder.path().join("torn.jsonl"), &whole[..whole.len() / 3]).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "nothing of it").unwrap();
    let shown = screen(folder.path(), &["."]);
    assert!(shown.contains("2 compactions"), "{shown}");
    let found = sessions(folder.path(), &["."]);
    let first = found[0]["compactions"].as_array().unwrap();
    assert_eq!(first.len(), 2, "{found:?}");
    // A page has all of them, and the total.
    screen(folder.path(), &[".", "-o", "page.md"]);
    let page = std::fs::read_to_string(folder.path().join("page.md")).unwrap();
    for said in ["2 sessions with 2 compactions: \\$", "## session s ", "## session calm "] {
        assert!(page.contains(said), "{page}");
    }
}

#[test]
fn a_price_that_is_not_known_makes_a_sum_the_least_that_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = lossy();
    // The second compaction is the other model's.
    let other = recording.compactions[1].at;
    for message in &mut recording.messages[other..] {
        message.details.model = Some("nobody-1".into());
    }
    recording.write(folder.path());
    let whole = std::fs::read(folder.path().join("s.jsonl")).unwrap();
    let shown = screen(folder.path(), &["s.jsonl"]);
    assert!(shown.contains("at least $0.1") && shown.contains("tokens without a price"), "{shown}");
    let mut calm = lossy();
    calm.id = Some("calm");
    calm.messages[0] = typed("Another session.");
    calm.write(folder.path());
    std::fs::rename(folder.path().join("s.jsonl"), folder.path().join("calm.jsonl")).unwrap();
    std::fs::write(folder.path().join("other.jsonl"), whole).unwrap();
    let shown = screen(folder.path(), &["."]);
    assert!(shown.contains("2 sessions with 4 compactions: at least $0."), "{shown}");
}

#[test]
fn texts_of_sessions_give_a_terminal_no_orders() {
    let mut recording = lossy();
    recording.runs("cat 'a\u{1b}[31m_b'", "\u{1b}]0;owned\u{7} and \u{202e} <b>evil_name_1</b>");
    recording.compacts("gone \u{1b}[2J");
    recording.runs("use evil_name_1 \u{9b}1m <b>", "ok");
    let folder = tempfile::tempdir().unwrap();
    recording.write(folder.path());
    let shown = screen(folder.path(), &["s.jsonl", "-o", "x.html", "-o", "x.md"]);
    let is_order = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!shown.contains(is_order), "{shown:?}");
    for file in ["x.html", "x.md"] {
        let written = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(!written.contains(is_order) && !written.contains("<b>"), "{written}");
        assert!(written.contains("evil"), "{written}");
    }
}

#[test]
fn shared_recordings_fit_one_screen_and_keep_their_sums() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let path = folder.display().to_string();
    let here = tempfile::tempdir().unwrap();
    screen(here.path(), &[&path]);
    let found = sessions(here.path(), &[&path]);
    let compacted = found.iter().filter(|one| !one["compactions"].as_array().unwrap().is_empty());
    assert!(compacted.count() >= 6);
    for one in &found {
        for compaction in one["compactions"].as_array().unwrap() {
            for (kind, row) in compaction["thrown"].as_object().unwrap() {
                let count = |name: &str| row[name].as_u64().unwrap();
                assert!(count("stayed") <= count("before"), "{kind} {row}");
                let outcomes = ["fetched", "told", "without"].map(count);
                assert!(outcomes.iter().sum::<u64>() <= count("needed"), "{kind} {row}");
                assert!(count("needed") <= count("before") - count("stayed"), "{kind} {row}");
            }
        }
    }
}
