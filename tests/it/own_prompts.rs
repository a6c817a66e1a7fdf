//! Prompts of the user's own, from the file to the record; and what else one run can say of summaries.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proctor::record::journal::RecordedRun;
use tempfile::TempDir;

const SCENARIO: &str = "name = 'own'\ncounter = 'chars/4'\n[window]\nmode = 'fit'\nfraction = 0.7\n\
    [[sessions]]\nsynthetic = { family = 'code-review', seed = 3, rounds = 24 }\ncount = 2\n\
    [[strategies]]\npreset = 'compact-directly'\nset = { summarize.prompt = 'prompts/own.md' }\n\
    [[strategies]]\npreset = 'learn-claude-code-s08'\n\
    [[strategies]]\npreset = 'tail@12000'\n";

const PROMPT: &str = "# Goal\nSay in at most {{max_output_tokens}} tokens what is asked for.\n\
    # Open ends\nKeep: {{focus}}\n\nThe window has {{window_tokens}} tokens.\n";

fn bench(prompt: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("sub/prompts")).unwrap();
    fs::write(path.join("sub/own.toml"), SCENARIO).unwrap();
    fs::write(path.join("sub/prompts/own.md"), prompt).unwrap();
    folder
}

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs into `out`, which must succeed, and reads what was written.
#[track_caller]
fn run(folder: &Path, out: &str, more: &[&str]) -> (RecordedRun, String) {
    let arguments = ["run", "sub/own.toml", "-y", "--out", out];
    let output = proctor(folder, &[&arguments[..], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let run = RecordedRun::read(&folder.join(out)).unwrap();
    (run, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs, which must fail and say this.
#[track_caller]
fn refused(folder: &Path, more: &[&str], says: &str) {
    let output = proctor(folder, &[&["run", "sub/own.toml", "-y", "--out", "no"], more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(says), "{said}\n\ndoes not say\n\n{says}");
}

#[test]
fn a_prompt_is_read_beside_its_scenario_and_decides_the_fingerprint() {
    let folder = bench(PROMPT);
    let (first, _) = run(folder.path(), "a", &[]);
    let toml = &first.manifest.strategies[0].toml;
    assert!(toml.contains("prompt = \"prompts/own.md\"") && toml.contains("# Open ends"), "{toml}");
    // The offline summariser follows the headings.
    let own = first.cells.iter().filter(|cell| cell.strategy.starts_with("compact-directly"));
    let excerpts = own.flat_map(|cell| &cell.changes).filter_map(|change| change.after.as_ref());
    assert!(excerpts.clone().count() > 0);
    assert!(excerpts.into_iter().any(|after| after.text.contains("## Goal")));
    fs::write(folder.path().join("sub/prompts/own.md"), "Be brief.").unwrap();
    let (second, _) = run(folder.path(), "b", &[]);
    assert_ne!(first.manifest.fingerprint, second.manifest.fingerprint);
}

#[test]
fn a_prompt_that_cannot_be_used_is_refused_with_its_place() {
    let folder = bench("Keep all.\nKeep {{fokus}}.");
    let path = folder.path();
    refused(path, &[], "line 2: unknown variable `fokus`, did you mean `focus`?");
    fs::write(path.join("sub/prompts/own.md"), "{{previous_summary}}").unwrap();
    refused(path, &[], "needs `previous = \"update\"`");
    fs::write(path.join("sub/prompts/own.md"), "{{conversation}}").unwrap();
    refused(path, &[], "where `mode` is `append` the conversation stands in front");
    fs::write(path.join("sub/prompts/own.md"), " \n").unwrap();
    refused(path, &[], "it is blank");
    fs::remove_file(path.join("sub/prompts/own.md")).unwrap();
    refused(path, &[], "own.toml`: line 11: cannot read the prompt `sub/prompts/own.md`");
}

#[test]
fn prompts_are_swept_like_any_other_setting() {
    let folder = bench(PROMPT);
    let path = folder.path();
    fs::write(path.join("short.md"), "Be brief.\n").unwrap();
    fs::write(path.join("long.md"), "# Goal\n# Files\n# Errors\nTell all.\n").unwrap();
    let output = proctor(
        path,
        &[
            "sweep",
            "sub/own.toml",
            "--strategy",
            "compact-directly",
            "-P",
            "summarize.prompt=short.md,long.md",
            "--out",
            "swept",
        ],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("3 settings"), "{said}");
    let folder = fs::read_dir(path.join("swept/tune")).unwrap().next().unwrap();
    let run = RecordedRun::read(&folder.unwrap().path()).unwrap();
    let tomls: Vec<&str> = run.manifest.strategies.iter().map(|it| it.toml.as_str()).collect();
    assert!(tomls.iter().any(|toml| toml.contains("Be brief.")), "{tomls:?}");
    assert!(tomls.iter().any(|toml| toml.contains("Tell all.")), "{tomls:?}");
}

/// The one run says what the offline summariser cannot rank, what it had been sent of what is lost, what
/// a search finds of it, and how each compaction went.
#[test]
fn a_run_says_what_became_of_what_is_lost() {
    let folder = bench(PROMPT);
    let path = folder.path();
    let (run, _) = run(path, "a", &["--set", "recovery.snippets=3", "-o", "a.full.md"]);
    let page = fs::read_to_string(path.join("a.full.md")).unwrap();
    for part in [
        "this table cannot rank strategies that summarise against those that do not",
        "## Compaction by compaction",
        "## Seen by the summariser",
        "## Recovery of what was lost",
        "with the question as it is asked",
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
    let mut all_seen = Vec::new();
    for cell in run.cells.iter().filter(|cell| cell.window.is_some()) {
        let lost: Vec<_> = cell.probes.iter().filter(|it| it.survival.score < 1.0).collect();
        let was_asked = cell.summary_health.summaries > 0;
        for lost_at in lost.iter().filter_map(|it| it.survival.lost_at.as_ref()) {
            let seen = lost_at.seen_by_summariser;
            assert_eq!(seen.is_some(), was_asked, "{lost_at:?}");
            // What a stage without a model took out, no summariser had seen.
            assert!(seen != Some(true) || lost_at.stage == "summarize", "{lost_at:?}");
            all_seen.extend(seen);
        }
        let recovery = cell.recovery.as_ref().unwrap();
        assert_eq!(recovery.snippets, 3);
        for item in &recovery.items {
            let of_it = |it: &&&proctor::record::ProbeRecord| {
                (&it.probe, it.percent) == (&item.probe, item.percent)
            };
            assert!(lost.iter().any(|it| of_it(&it)), "{item:?} is not lost");
            assert!(item.tokens.0 <= 3 * 320, "{item:?}");
        }
        let regained = recovery.items.iter().filter(|item| item.is_regained).count();
        assert!(regained * 2 > recovery.items.len(), "{}", cell.strategy);
    }
    assert!(all_seen.contains(&true) && all_seen.contains(&false));
}

/// The place of recorded summaries: what a run with a key writes there, later runs read without one.
#[test]
fn recorded_summaries_are_read_from_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text = "name = 'summaries'\n[window]\nmode = 'fit'\nfraction = 0.6\n[models]\nreplay = 'strict'\n\
        summariser = { kind = 'scripted', model = 'writer', script = 'writer.toml' }\n\
        cassette = 'summaries/cassette.jsonl'\n\
        [[sessions]]\nsynthetic = { family = 'debugging', seed = 1, tokens = 8_000 }\n\
        [[strategies]]\npreset = 'codex'\n[[strategies]]\npreset = 'compact-directly'\n";
    fs::create_dir_all(path.join("sub")).unwrap();
    fs::write(path.join("sub/own.toml"), text).unwrap();
    let script = "format = \"proctor-script\"\nversion = 1\n\n[[answer]]\n\
        text = \"Goal: go on with the work. Files: as they stand. Next: the open items of the plan.\"\n";
    fs::write(path.join("sub/writer.toml"), script).unwrap();
    refused(path, &[], "--replay auto");
    let (first, _) = run(path, "a", &["--replay", "record"]);
    assert!(path.join("sub/summaries/cassette.jsonl").is_file());
    fs::write(path.join("sub/writer.toml"), script.replace("Goal", "Nothing")).unwrap();
    let (again, _) = run(path, "b", &[]);
    let survival = |run: &RecordedRun| -> Vec<f64> {
        let probes = run.cells.iter().flat_map(|cell| &cell.probes);
        let mut all: Vec<f64> = probes.map(|probe| probe.survival.score).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    assert_eq!(survival(&first), survival(&again));
}

#[test]
fn facts_of_a_folder_are_written_session_by_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for seed in ["1", "2"] {
        let arguments =
            ["sessions", "generate", "code-review", "--rounds", "12", "--seed", seed, "-o", "all"];
        assert!(proctor(path, &arguments).status.success());
    }
    let derived = |more: &[&str]| {
        proctor(path, &[&["sessions", "facts", "all", "-o", "facts"], more].concat())
    };
    let output = derived(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("wrote 2 files for 2 sessions"), "{said}");
    assert_eq!(fs::read_dir(path.join("facts")).unwrap().count(), 2);
    assert!(!derived(&[]).status.success(), "nothing is written over");
    assert!(derived(&["--force"]).status.success());
}
