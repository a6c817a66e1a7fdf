//! `proctor validate`: checks a scenario, and says what it would run.

use std::fmt::Write as _;

use super::inputs::Inputs;
use super::{Exit, Stop, print};
use crate::scenario::{ModelSetting, SessionSource};

/// Arguments of `proctor validate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    inputs: Inputs,
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
            SessionSource::File(path, place) => {
                if !path.exists() {
                    let problem = format!("{place}: there is no session `{}`", path.display());
                    return Err(Stop::new(Exit::Invalid, problem).into());
                }
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
    for line in text.lines() {
        print(&(crate::report::escape::plain(line) + "\n"))?;
    }
    Ok(Exit::Done)
}
