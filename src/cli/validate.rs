//! `proctor validate`: checks a scenario, and says what it would run.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::inputs::Inputs;
use super::{Exit, print_json, prose};
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
    let mut text = String::new();
    writeln!(text, "scenario `{}` is valid", scenario.name)?;
    writeln!(
        text,
        "  counter {}, window {}, seed {}",
        scenario.counter, scenario.window, scenario.seed
    )?;
    if !scenario.faults.is_empty() {
        writeln!(text, "  faults: {}", scenario.faults)?;
    }
    let models = &scenario.models;
    for model in models
        .all()
        .filter(|model| **model != ModelSetting::Offline)
    {
        let paid = match model {
            ModelSetting::Live(_) => ": live, it will be asked and paid",
            _ => "",
        };
        writeln!(text, "  model {}{paid}", model.name())?;
    }
    writeln!(text, "  sessions: {}", scenario.sessions.len())?;
    for source in &scenario.sessions {
        match source {
            SessionSource::File(path, _) | SessionSource::Found(path) => {
                writeln!(text, "    {}", path.display())?;
            }
            SessionSource::Synthetic(recipe) => {
                writeln!(
                    text,
                    "    {} seed {} ({})",
                    recipe.family, recipe.seed, recipe.length
                )?;
            }
        }
    }
    writeln!(text, "  strategies: {}", scenario.strategies.len())?;
    for spec in &scenario.strategies {
        writeln!(text, "    {}", spec.name())?;
        for stage in spec.stages()? {
            writeln!(text, "      {stage}")?;
        }
    }
    if args.json {
        print_json(&to_json(&scenario)?)?;
        return Ok(Exit::Done);
    }
    let lines: String = text
        .lines()
        .map(|line| crate::report::escape::plain(line) + "\n")
        .collect();
    prose::say(&lines)?;
    Ok(Exit::Done)
}

fn to_json(scenario: &Scenario) -> anyhow::Result<Value> {
    let sessions = scenario.sessions.iter().map(|source| match source {
        SessionSource::File(path, _) | SessionSource::Found(path) => {
            json!({ "file": path.display().to_string() })
        }
        SessionSource::Synthetic(recipe) => json!({
            "family": recipe.family,
            "seed": recipe.seed,
            "length": recipe.length.to_string(),
        }),
    });
    let sessions: Vec<Value> = sessions.collect();
    let mut strategies = Vec::new();
    for spec in &scenario.strategies {
        strategies.push(json!({ "name": spec.name(), "stages": spec.stages()? }));
    }
    let models = scenario.models.all().map(|model| {
        let is_live = matches!(model, ModelSetting::Live(_));
        json!({ "name": model.name(), "is_live": is_live })
    });
    let faults = (!scenario.faults.is_empty()).then(|| scenario.faults.to_string());
    Ok(json!({
        "format": "proctor-validation",
        "version": 1,
        "scenario": scenario.name,
        "counter": scenario.counter,
        "window": scenario.window.to_string(),
        "seed": scenario.seed,
        "faults": faults,
        "models": models.collect::<Vec<_>>(),
        "sessions": sessions,
        "strategies": strategies,
    }))
}
