//! Real recordings under every preset: none fails, and no context is one that a provider would refuse.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use proctor::context::validity::Level;
use proctor::model::offline::Offline;
use proctor::record::{CellRecord, End};
use proctor::replay::{Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::Session;
use proctor::session::import;
use proctor::session::wire::RuleSet;
use proctor::strategy::law::Law;
use proctor::strategy::preset::PRESETS;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;
use rayon::prelude::*;
use serde_json::json;

use crate::goldens::sampled;
use crate::shared;
use crate::support::{cell, strategy};

/// Files beside the recordings that hold no conversation which a model was sent.
const UNREAD: &[&str] =
    &[".md", "tau-bench/MockRetailDomainEnv-few_shot.jsonl", "tau2-bench/voice__"];

/// The files that an importer reads.
fn recordings() -> Vec<PathBuf> {
    let folders = ["sessions", "oracles/peers/sessions"].map(shared::folder);
    let files = folders.into_iter().flatten().map(|folder| shared::files(&folder));
    files.flatten().collect()
}

fn is_rejected(record: &CellRecord) -> bool {
    record.violations.iter().any(|violation| violation.level == Level::Rejected)
}

#[test]
fn shared_each_recording_under_every_preset_is_accepted() {
    let files: Vec<PathBuf> = sampled(recordings()).collect();
    let compacted: usize = files
        .into_par_iter()
        .map(|path| {
            let sessions = match import::load(&path) {
                Ok(sessions) => sessions,
                Err(error) => {
                    let name = path.display().to_string();
                    let is_known = UNREAD.iter().any(|unread| name.contains(unread));
                    assert!(is_known, "{name}: {error}");
                    return 0;
                }
            };
            let sessions = sessions.into_iter().map(Arc::new);
            sessions.map(|session| under_every_preset(&session)).sum()
        })
        .sum();
    let is_there = shared::folder("sessions").is_some();
    assert!(!is_there || compacted > 100, "{compacted} cells");
}

/// Replays the session in a window of three fifths of its largest prompt. Returns in how many cells something was
/// compacted.
fn under_every_preset(session: &Arc<Session>) -> usize {
    let provider = match session.source().format.as_str() {
        "mini-swe-agent" | "openai-chat" | "openai-responses" | "tau-bench" | "tau2" => {
            RuleSet::OpenAi
        }
        _ => RuleSet::Anthropic,
    };
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let models = Models {
        summariser: Arc::new(Offline::new(counts.clone())),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let prepared =
        PreparedSession::new(session.clone(), counts, Vec::new()).unwrap().sent_to(provider);
    let full = replay(&prepared, cell("full"), Replayed::Full, &models, &NoClock);
    let peak = full.record.prompt_tokens.iter().max().copied().unwrap_or_default();
    let window = Window::new(Tokens((peak.0 * 3 / 5).max(1)));
    // Each recording under a third of the presets.
    let third = session.messages().len() % 3;
    let mut compacted = 0;
    for (name, _) in PRESETS.iter().skip(third).step_by(3) {
        let spec = strategy(name);
        let replayed = Replayed::Strategy(Box::new(spec.build().unwrap()), window);
        let cell = replay(&prepared, cell(name), replayed, &models, &NoClock);
        let (id, record) = (session.id(), &cell.record);
        if let End::Failed { error, .. } = &record.end {
            panic!("{name} on {id}: {error}");
        }
        compacted += usize::from(!record.compactions.is_empty());
        let is_declared = spec.breaks().unwrap().contains(&Law::ValidContext);
        assert!(is_declared || !is_rejected(record), "{name} on {id}: {:?}", record.violations);
    }
    compacted
}

/// A session of fourteen calls whose product compacted after ten of them.
fn compacted(at: usize) -> String {
    let id = format!("s{at}");
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let mut lines = vec![
        json!({"format": "proctor-session", "version": 1, "id": id, "model": "claude-sonnet-5-5"}),
        json!({"role": "user", "content": text(&format!("Mend part {at}."))}),
    ];
    for call in 0..14 {
        if call == 10 {
            let summary = json!({"role": "user", "content": text("Ten parts are read.")});
            let after = json!([{"written": summary}, {"kept": {"start": 19, "end": 21}}]);
            lines.push(json!({"compaction": {"trigger": "auto", "after": {"replaced": after}}}));
        }
        let tool = format!("t{call}");
        let input = json!({"path": format!("part-{at}-{call}.rs")});
        let body = format!("fn part_{at}_{call}() {{}} ").repeat(200);
        lines.push(json!({"role": "assistant", "content":
            [{"type": "tool_use", "id": tool, "name": "read", "class": "read", "input": input}]}));
        lines.push(json!({"role": "user", "content":
            [{"type": "tool_result", "tool_use_id": tool, "content": text(&body)}]}));
    }
    lines.push(json!({"role": "assistant", "content": text("Done.")}));
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn what_the_agent_did_is_not_held_against_itself() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..7 {
        let path = folder.path().join(format!("in/s{at}.session.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, compacted(at)).unwrap();
    }
    let says = |strategies: &[&str]| {
        let flags = strategies.iter().flat_map(|name| ["--strategy", name]);
        let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
            .current_dir(folder.path())
            .args(["run", "in"])
            .args(flags)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = says(&["recorded"]);
    let alone = "Keep what you have: nothing else changed anything in these sessions.";
    assert!(said.contains(alone), "{said}");
    let said = says(&["recorded", "observation-masking"]);
    for part in [
        "Keep what you have. Everything else costs more than its $",
        ": the cheapest, observation-masking, costs $",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("Avoid recorded"), "{said}");
}
