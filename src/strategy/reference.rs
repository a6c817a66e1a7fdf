//! The reference of strategies, as Markdown: `docs/reference/strategies.md`, and a page for each kind of stage.

use std::fmt::Write as _;

use super::control::CONTROLS;
use super::knob::KEYS;
use super::law::Law;
use super::preset::{PRESETS, StrategySpec};
use super::stage::{STAGES, StageKind};
use super::trigger::{Condition, Trigger};
use crate::settings::{Place, SettingError};

const HEAD: &str = include_str!("reference/head.md");

const OWN_PROMPT: &str = include_str!("reference/own_prompt.md");

const SOURCE: &str = include_str!("reference/source.md");

const TUNE: &str = include_str!("reference/tune.md");

/// All presets, controls, conditions and kinds of stages.
///
/// Fails where a preset does not read, which a test rules out for those that are compiled in.
#[doc(hidden)]
pub fn reference() -> Result<String, SettingError> {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Presets\n\n| preset | what it does | fidelity | missing | stages, in order | breaks by design | source |\n|---|---|---|---|---|---|---|\n");
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    for (name, _) in PRESETS {
        let spec = StrategySpec::named(name, &trigger, &Place::BuiltIn)?;
        let worth = spec.worth();
        let _ = writeln!(
            out,
            "| [`{name}`](../../presets/{name}.toml) | {} | {} | {} | {} | {} | {} |",
            cell(&sentence(spec.description())),
            worth.map_or("", |worth| worth.fidelity.name()),
            cell(worth.and_then(|worth| worth.missing.as_deref()).unwrap_or_default()),
            cell(&spec.stages()?.join("; ")),
            laws(&spec.breaks()?),
            cell(&spec.sources()?.join("; "))
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
    Ok(out)
}

/// The page of a kind of stage, `docs/reference/stages/<name>.md`.
#[doc(hidden)]
pub fn page(kind: &StageKind) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_of_every_preset_has_its_source() {
        let mut constants = 0;
        for (name, text) in PRESETS {
            // Constants of a `[[source]]` are sources.
            let text = text.split("\n[[source]]").next().unwrap_or_default();
            let tables = text.find("\n[").map_or("", |at| &text[at..]);
            let is_named = |line: &&str| {
                let mut names = ["kind", "name", "knob"].into_iter();
                names.any(|name| line.starts_with(name))
            };
            let lines = tables.lines().filter(|line| line.contains(" = ") && !is_named(line));
            for line in lines.filter(|line| !line.starts_with('#')) {
                assert!(line.contains("  # "), "{name}: no source: {line}");
                constants += 1;
            }
        }
        assert!(constants > 250, "{constants}");
    }
}
