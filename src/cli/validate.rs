//! `proctor validate`: checks a scenario, and lists what it would run.

use serde_json::json;

use super::inputs::Inputs;
use super::{Exit, show};
use crate::scenario::{ModelSetting, SessionSource};

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
    super::gate::rules(&scenario.gate, &super::gate::GateOptions::default())?;
    let models = scenario.models.all();
    let models = models.map(|model| {
        let is_live = matches!(model, ModelSetting::Live(_));
        json!({ "name": model.name(), "is_live": is_live })
    });
    let sessions = scenario.sessions.iter().map(|source| match source {
        SessionSource::File(path, _) | SessionSource::Found(path) => {
            json!({ "file": path.display().to_string() })
        }
        SessionSource::Synthetic(recipe) => {
            let length = recipe.length.to_string();
            json!({ "family": recipe.family, "seed": recipe.seed, "length": length })
        }
    });
    let strategies = scenario.strategies.iter();
    let strategies =
        strategies.map(|spec| Ok(json!({ "name": spec.name(), "stages": spec.stages()? })));
    let faults = &scenario.faults;
    let facts = json!({
        "scenario": scenario.name,
        "counter": scenario.counter,
        "window": scenario.window.to_string(),
        "seed": scenario.seed,
        "faults": (!faults.is_empty()).then(|| faults.to_string()),
        "models": models.collect::<Vec<_>>(),
        "sessions": sessions.collect::<Vec<_>>(),
        "strategies": strategies.collect::<anyhow::Result<Vec<_>>>()?,
    });
    let template = include_str!("text/validate.txt");
    show(args.json, "proctor-validation", facts, template)
}
