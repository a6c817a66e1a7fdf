//! `proctor validate`: checks a scenario, and says what it would run.

use std::fmt::Write as _;

use serde_json::json;

use super::inputs::Inputs;
use super::{Exit, show};
use crate::scenario::{ModelSetting, Scenario, SessionSource};

/// Arguments of `proctor validate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let scenario = args.inputs.read()?;
    super::gate::rules(&scenario.gate, &super::gate::Asked::default())?;
    let Scenario {
        name,
        counter,
        window,
        seed,
        ..
    } = &scenario;
    let mut text = format!("scenario `{name}` is valid\n");
    writeln!(text, "  counter {counter}, window {window}, seed {seed}")?;
    let faults = (!scenario.faults.is_empty()).then(|| scenario.faults.to_string());
    if let Some(faults) = &faults {
        writeln!(text, "  faults: {faults}")?;
    }
    let mut models = Vec::new();
    for model in scenario.models.all() {
        let is_live = matches!(model, ModelSetting::Live(_));
        let (name, cost) = (
            model.name(),
            if is_live {
                ": live, it will be asked and paid"
            } else {
                ""
            },
        );
        if *model != ModelSetting::Offline {
            writeln!(text, "  model {name}{cost}")?;
        }
        models.push(json!({ "name": name, "is_live": is_live }));
    }
    writeln!(text, "  sessions: {}", scenario.sessions.len())?;
    let mut sessions = Vec::new();
    for source in &scenario.sessions {
        match source {
            SessionSource::File(path, _) | SessionSource::Found(path) => {
                let path = path.display().to_string();
                writeln!(text, "    {path}")?;
                sessions.push(json!({ "file": path }));
            }
            SessionSource::Synthetic(recipe) => {
                let (family, seed, length) = (&recipe.family, recipe.seed, &recipe.length);
                writeln!(text, "    {family} seed {seed} ({length})")?;
                let length = length.to_string();
                sessions.push(json!({ "family": family, "seed": seed, "length": length }));
            }
        }
    }
    writeln!(text, "  strategies: {}", scenario.strategies.len())?;
    let mut strategies = Vec::new();
    for spec in &scenario.strategies {
        let stages = spec.stages()?;
        writeln!(text, "    {}", spec.name())?;
        for stage in &stages {
            writeln!(text, "      {stage}")?;
        }
        strategies.push(json!({ "name": spec.name(), "stages": stages }));
    }
    let facts = json!({
        "scenario": name,
        "counter": counter,
        "window": window.to_string(),
        "seed": seed,
        "faults": faults,
        "models": models,
        "sessions": sessions,
        "strategies": strategies,
    });
    show(args.json, "proctor-validation", facts, &text)
}
