//! The reference of strategies, as Markdown: `docs/reference/strategies.md`, and a page for each kind of stage.

use std::fmt::Write as _;

use proctor::settings::Place;
use proctor::strategy::control::CONTROLS;
use proctor::strategy::knob::KEYS;
use proctor::strategy::law::Law;
use proctor::strategy::preset::{PRESETS, StrategySpec};
use proctor::strategy::stage::{STAGES, StageKind};
use proctor::strategy::trigger::{Condition, Trigger};

const HEAD: &str = include_str!("strategies/head.md");

const OWN_PROMPT: &str = include_str!("strategies/own_prompt.md");

const SOURCE: &str = include_str!("strategies/source.md");

const TUNE: &str = include_str!("strategies/tune.md");

/// All presets, controls, conditions and kinds of stages.
pub(super) fn reference() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Presets\n\n| preset | what it does | fidelity | missing | stages, in order | breaks by design | source |\n|---|---|---|---|---|---|---|\n");
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    for (name, _) in PRESETS {
        let spec = StrategySpec::named(name, &trigger, &Place::BuiltIn).unwrap();
        let worth = spec.worth();
        let _ = writeln!(
            out,
            "| [`{name}`](../../presets/{name}.toml) | {} | {} | {} | {} | {} | {} |",
            cell(&sentence(spec.description())),
            worth.map_or("", |worth| worth.fidelity.name()),
            cell(worth.and_then(|worth| worth.missing.as_deref()).unwrap_or_default()),
            cell(&spec.stages().unwrap().join("; ")),
            laws(&spec.breaks().unwrap()),
            cell(&spec.sources().unwrap().join("; "))
        );
    }
    out.push_str("\n## Controls\n\n| control | what it does |\n|---|---|\n");
    for (name, doc) in CONTROLS {
        let _ = writeln!(out, "| `{name}` | {} |", cell(doc));
    }
    out.push_str("\n## When a stage fires\n\n| `when` | takes | it fires |\n|---|---|---|\n");
    for key in KEYS.in_words("condition") {
        let _ = writeln!(out, "| `{}` | {} | {} |", key.name, key.takes, cell(key.doc));
    }
    out.push_str("\nBeside the condition, for the whole of it:\n\n");
    out.push_str(&keys("when"));
    out.push_str("\n## What every stage takes\n\n");
    out.push_str(&docs("stage"));
    out.push_str(OWN_PROMPT);
    out.push_str(TUNE);
    out.push_str(SOURCE);
    out.push_str(&docs("source"));
    out.push_str("\n## Kinds of stages\n\n| stage | what it does |\n|---|---|\n");
    for kind in STAGES {
        let (name, description) = (kind.name, cell(kind.description()));
        let _ = writeln!(out, "| [`{name}`](stages/{name}.md) | {description} |");
    }
    out
}

/// The page of a kind of stage, `docs/reference/stages/<name>.md`.
pub(super) fn page(kind: &StageKind) -> String {
    let mut out = format!("# {}\n\n{}.\n", kind.name, sentence(kind.description()));
    let breaks = kind.breaks();
    if !breaks.is_empty() {
        let _ = write!(out, "\nBreaks by design: {}.\n", laws(&breaks));
    }
    if !kind.knobs().is_empty() {
        out.push('\n');
        out.push_str(&keys(kind.name));
    }
    out
}

/// A table of the keys of a section.
fn keys(section: &str) -> String {
    let mut out = "| knob | takes | default | |\n|---|---|---|---|\n".to_owned();
    for knob in KEYS.in_words(section) {
        let [takes, default, doc] = [&knob.takes, &knob.default, knob.doc].map(cell);
        let _ = writeln!(out, "| `{}` | {takes} | `{default}` | {doc} |", knob.name);
    }
    out
}

/// The same of keys that have no default.
fn docs(section: &str) -> String {
    let mut out = "| key | |\n|---|---|\n".to_owned();
    for key in KEYS.in_words(section) {
        let _ = writeln!(out, "| `{}` | {} |", key.name, cell(key.doc));
    }
    out
}

fn laws(laws: &[Law]) -> String {
    let names: Vec<String> = laws.iter().map(|law| format!("`{}`", law.name())).collect();
    names.join(", ")
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default() + chars.as_str()
}
