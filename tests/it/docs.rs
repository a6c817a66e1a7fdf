//! The guides say what the program does: their commands run, and what is generated is current.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctor::strategy::stage::STAGES;

use crate::goldens;
use crate::goldens::sampled;

/// A page of `docs`.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

/// The commands of the `console` and `sh` blocks of a page, in order.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => fence = Some(language),
            (Some(_), Some(_)) => fence = None,
            (Some("console"), None) => {
                commands.extend(line.strip_prefix("$ ").map(str::to_owned));
            }
            (Some("sh"), None) if !line.is_empty() => commands.push(line.to_owned()),
            (Some(_) | None, None) => {}
        }
    }
    commands
}

/// Runs all commands of a page in one folder, in order; each must succeed.
#[track_caller]
fn run_all(name: &str, at_least: usize) {
    let text = std::fs::read_to_string(page(name)).unwrap();
    let commands = commands(&text);
    assert!(commands.len() >= at_least, "{name}: {commands:?}");
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_proctor"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    for command in commands {
        let shown = command.replace("cargo run --release -- ", "proctor ");
        let output = Command::new("sh")
            .args(["-c", &shown])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env_remove("PROCTOR_WINDOW")
            .env_remove("PROCTOR_COUNTER")
            .env_remove("PROCTOR_SEED")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: `{command}`:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_commands_of_the_guides_run() {
    for (name, at_least) in sampled([
        ("getting-started.md", 6),
        ("writing-a-scenario.md", 3),
        ("scale.md", 6),
        ("synthetic-sessions.md", 4),
    ]) {
        run_all(name, at_least);
    }
}

#[test]
fn the_reference_of_metrics_is_what_the_code_writes() {
    let written = proctor::metric::reference::reference();
    goldens::golden("docs/metrics.md", &written);
}

#[test]
fn the_reference_of_strategies_is_what_presets_and_code_say() {
    let written = proctor::strategy::reference::reference().unwrap();
    goldens::golden("docs/strategies.md", &written);
    for kind in STAGES {
        let written = proctor::strategy::reference::page(kind);
        assert!(
            !written.contains("|  |\n"),
            "a knob says nothing: {written}"
        );
        goldens::golden(&format!("docs/stages/{}.md", kind.name), &written);
    }
}

#[test]
fn the_schema_of_the_protocol_is_what_the_code_reads_and_writes() {
    let schema = proctor::strategy::external::schema();
    goldens::golden("docs/strategy.schema.json", &format!("{schema:#}\n"));
}

#[test]
fn links_between_the_guides_lead_somewhere() {
    for entry in std::fs::read_dir(page("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#']).next().unwrap();
            let is_file = !target.is_empty() && !target.contains("://");
            assert!(
                !is_file || page("").join(target).exists(),
                "{}: {target}",
                path.display()
            );
        }
    }
}
