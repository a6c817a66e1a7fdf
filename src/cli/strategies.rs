//! `proctor strategies`: what there is to compare, and every knob of it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Exit, print, print_json, prose};
use crate::settings::Place;
use crate::strategy::StageKind;
use crate::strategy::control::CONTROLS;
use crate::strategy::law::Law;
use crate::strategy::preset::{PRESETS, StrategySpec};
use crate::strategy::stage::STAGES;
use crate::strategy::trigger::{Condition, Trigger};

/// Arguments of `proctor strategies`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show one strategy: its TOML, its stages, and the knobs of each
    Show {
        /// The strategy's name
        name: String,
    },
    /// List the kinds of stages with their knobs
    Stages,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match (&args.command, args.json) {
        (None, false) => prose::say(&list()?)?,
        (None, true) => print_json(&list_json()?)?,
        (Some(Command::Show { name }), false) => print(&show(name)?)?,
        (Some(Command::Show { name }), true) => print_json(&show_json(name)?)?,
        (Some(Command::Stages), false) => {
            prose::say(&STAGES.iter().map(knobs_of).collect::<String>())?;
        }
        (Some(Command::Stages), true) => {
            let stages: Vec<Value> = STAGES.iter().map(kind_json).collect();
            print_json(&json!({ "format": "proctor-stages", "version": 1, "stages": stages }))?;
        }
    }
    Ok(Exit::Done)
}

fn named(name: &str) -> anyhow::Result<StrategySpec> {
    let trigger = Trigger::of(Condition::WindowFraction(0.8));
    Ok(StrategySpec::parse(
        name,
        &trigger,
        &Place::Flag("strategies show".into()),
    )?)
}

fn list() -> anyhow::Result<String> {
    let width = PRESETS
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (name, _) in PRESETS {
        let spec = named(name)?;
        writeln!(text, "{name:width$}  {}", spec.description())?;
    }
    for (name, description) in CONTROLS {
        writeln!(text, "{name:width$}  control: {description}")?;
    }
    Ok(text)
}

fn list_json() -> anyhow::Result<Value> {
    let entry = |kind: &str, name: &str, description: &str| json!({ "name": name, "kind": kind, "description": description });
    let mut strategies = Vec::new();
    for (name, _) in PRESETS {
        strategies.push(entry("preset", name, named(name)?.description()));
    }
    let controls = CONTROLS.iter();
    strategies.extend(controls.map(|(name, said)| entry("control", name, said)));
    Ok(json!({ "format": "proctor-strategies", "version": 1, "strategies": strategies }))
}

/// The kinds of the stages that a strategy uses, in the order of the documentation.
fn kinds_in(stages: &[String]) -> impl Iterator<Item = &'static StageKind> {
    let uses = |kind: &StageKind, line: &String| line.split([' ', '(']).next() == Some(kind.name);
    STAGES
        .iter()
        .filter(move |kind| stages.iter().any(|line| uses(kind, line)))
}

/// The strategy as TOML that can be a file of one's own; what is said of it stands in comments.
fn show(name: &str) -> anyhow::Result<String> {
    let spec = named(name)?;
    let mut text = spec.to_toml();
    let stages = spec.stages()?;
    let mut said = String::new();
    if !stages.is_empty() {
        said.push_str("\nstages, in order:\n");
    }
    for stage in &stages {
        writeln!(said, "  {stage}")?;
    }
    for kind in kinds_in(&stages) {
        said.push('\n');
        said.push_str(&knobs_of(kind));
    }
    for line in prose::folded(&said, 2).lines() {
        let sign = if line.is_empty() { "" } else { "# " };
        writeln!(text, "{sign}{line}")?;
    }
    Ok(text)
}

fn show_json(name: &str) -> anyhow::Result<Value> {
    let spec = named(name)?;
    let stages = spec.stages()?;
    let breaks: Vec<&str> = spec.breaks()?.into_iter().map(Law::name).collect();
    let kinds: Vec<Value> = kinds_in(&stages).map(kind_json).collect();
    Ok(json!({
        "format": "proctor-strategy",
        "version": 1,
        "name": spec.name(),
        "description": spec.description(),
        "breaks": breaks,
        "stages": stages,
        "toml": spec.to_toml(),
        "kinds": kinds,
    }))
}

fn knobs_of(kind: &StageKind) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", kind.name, kind.description);
    for knob in kind.knobs {
        let _ = writeln!(
            text,
            "  {} ({}, default {}): {}",
            knob.name,
            knob.kind,
            knob.default(),
            kind.doc(knob.name)
        );
    }
    text
}

fn kind_json(kind: &StageKind) -> Value {
    let knobs = kind.knobs.iter().map(|knob| {
        json!({
            "name": knob.name,
            "takes": knob.kind.to_string(),
            "default": knob.default(),
            "doc": kind.doc(knob.name),
        })
    });
    let breaks: Vec<&str> = kind.breaks.iter().map(|law| law.name()).collect();
    json!({
        "kind": kind.name,
        "description": kind.description,
        "breaks": breaks,
        "knobs": knobs.collect::<Vec<_>>(),
    })
}
