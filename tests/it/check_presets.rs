//! `scripts/check_presets`: what it says of a package whose constants are there, elsewhere, or nowhere.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What the script says of `preset`, and its exit code; nothing where there is no Python.
fn said(packages: &Path, preset: &str) -> Option<(String, Option<i32>)> {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return None;
    }
    let output = Command::new("python3")
        .arg(root().join("scripts/check_presets"))
        .arg("--packages")
        .args([packages.as_os_str(), preset.as_ref()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Some((said, output.status.code()))
}

#[test]
fn a_constant_is_held_moved_gone_or_not_reachable_and_nothing_passes_unseen() {
    let prune = "src/generate-text/prune-messages.ts";
    let docs = "docs/07-reference/02-ai-sdk-ui/19-prune-messages.mdx";
    let code = "reasoning = 'none'\ntoolCalls = []\nemptyMessages = 'remove'\n";
    let example = "reasoning: 'before-last-message'\ntoolCalls: 'before-last-2-messages'\n";
    for (files, says, exits) in [
        (vec![(prune, code), (docs, example)], "Constants: 5 held.", 0),
        // One of its five is in another file, or in none, of the newest version.
        (
            vec![
                (prune, "reasoning = 'none'\nemptyMessages = 'remove'\n"),
                (docs, example),
                ("src/defaults.ts", "toolCalls = []\n"),
            ],
            "`other.toolCalls` moved (to `src/defaults.ts`)",
            0,
        ),
        (
            vec![
                (prune, "reasoning = 'all'\ntoolCalls = []\nemptyMessages = 'remove'\n"),
                (docs, example),
            ],
            "`other.reasoning` gone",
            1,
        ),
        (vec![("README.md", "Moved.\n")], "stub (the package has no such file)", 1),
        (Vec::new(), "5 not reachable", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in &files {
            let path = folder.path().join("npm/ai").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        if !files.is_empty() {
            let manifest = r#"{"name": "ai", "version": "9.0.0"}"#;
            std::fs::write(folder.path().join("npm/ai/package.json"), manifest).unwrap();
        }
        if let Some((said, code)) = said(folder.path(), "vercel-prune") {
            assert!(said.contains(says), "{says}: {said}");
            assert_eq!(code, Some(exits), "{said}");
        }
    }
}
