//! `proctor strategies`: what there is to compare, and every knob of it.

use std::fmt::Write as _;

use super::{Exit, print};
use crate::settings::Place;
use crate::strategy::control::CONTROLS;
use crate::strategy::preset::{PRESETS, StrategySpec};
use crate::strategy::stage::STAGES;
use crate::strategy::trigger::{Condition, Trigger};

/// Arguments of `proctor strategies`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
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
    let text = match &args.command {
        None => list()?,
        Some(Command::Show { name }) => show(name)?,
        Some(Command::Stages) => STAGES.iter().map(|kind| knobs_of(kind.name)).collect(),
    };
    print(&text)?;
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

fn show(name: &str) -> anyhow::Result<String> {
    let spec = named(name)?;
    let mut text = spec.to_toml();
    let stages = spec.stages()?;
    if !stages.is_empty() {
        text.push_str("\n# stages, in order:\n");
    }
    for stage in &stages {
        writeln!(text, "#   {stage}")?;
    }
    for kind in STAGES {
        let uses = |line: &&String| line.split([' ', '(']).next() == Some(kind.name);
        if stages.iter().any(|line| uses(&line)) {
            text.push('\n');
            for line in knobs_of(kind.name).lines() {
                writeln!(text, "# {line}")?;
            }
        }
    }
    Ok(text)
}

fn knobs_of(kind: &str) -> String {
    let mut text = String::new();
    if let Some(kind) = STAGES.iter().find(|known| known.name == kind) {
        let _ = writeln!(text, "{}: {}", kind.name, kind.description);
        for knob in kind.knobs {
            let _ = writeln!(
                text,
                "  {} ({}, default {}): {}",
                knob.name, knob.kind, knob.default, knob.doc
            );
        }
    }
    text
}
