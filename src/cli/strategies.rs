//! `proctor strategies`: what there is to compare, and every knob of it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Exit, Result, print, prose, show, show_with, stop_with, template};
use crate::settings::{Place, Reader, SettingTable};
use crate::strategy::control::CONTROLS;
use crate::strategy::law::Law;
use crate::strategy::preset::{PRESETS, StrategySpec};
use crate::strategy::stage::{STAGES, StageKind};
use crate::strategy::trigger::{Condition, Trigger};

/// What people look for that has no preset, with the preset that is nearest. Changed by hand.
const NEAREST: &str = include_str!("../../presets/nearest.toml");

/// Of so many strategies that are found, the descriptions fit on one screen.
const DESCRIBED: usize = 5;

/// Arguments of `proctor strategies`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<StrategiesCommand>,
    /// Print what each strategy does, instead of one screen
    #[arg(long, global = true)]
    all: bool,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum StrategiesCommand {
    /// Show one strategy: its TOML, its stages, and the knobs of each
    Show {
        /// The strategy's name
        name: String,
    },
    /// List the strategies that have all of these words in name, product, description, source or stages, and what is
    /// nearest where a name has none
    Find {
        /// Words, in any case
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// List the kinds of stages with their knobs
    Stages,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    match &args.command {
        None => list(&[], args),
        Some(StrategiesCommand::Find { words }) => list(words, args),
        Some(StrategiesCommand::Show { name }) => show_one(name, args.json),
        Some(StrategiesCommand::Stages) => {
            let facts = json!({ "stages": STAGES.iter().map(facts_of).collect::<Vec<_>>() });
            let template = include_str!("text/stages.txt");
            show(args.json, "proctor-stages", facts, template)
        }
    }
}

fn named(name: &str) -> Result<StrategySpec> {
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    let read = StrategySpec::parse(name, &trigger, &Place::BuiltIn);
    // The name is the only argument, so that the error need not say where it is.
    read.or_else(|error| stop_with(Exit::Invalid, error.problem, error.hint.unwrap_or_default()))
}

/// Presets by product, in the order of each product's first one, and controls; those with all of the words.
fn list(words: &[String], args: &Args) -> Result<Exit> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut strategies = Vec::new();
    for (name, text) in PRESETS {
        let spec = named(name)?;
        let product = spec.product().to_owned();
        let stages = spec.stages()?.join("\n");
        let about = format!("{name}\n{text}\n{stages}");
        let entry = json!({
            "name": name,
            "kind": "preset",
            "product": product,
            "stands_in": spec.stand_in(),
            "description": spec.description(),
            "fidelity": spec.worth().map(|worth| worth.fidelity),
            "missing": spec.worth().and_then(|worth| worth.missing.as_deref()),
            "sources": spec.sources()?,
        });
        strategies.push((product, about, entry));
    }
    for (name, about) in CONTROLS {
        let entry = json!({ "name": name, "kind": "control", "product": "", "description": about });
        strategies.push((String::new(), format!("control {name}\n{about}"), entry));
    }
    if !words.is_empty() {
        strategies.extend(nearest()?);
    }
    let products: Vec<String> = strategies.iter().map(|(product, ..)| product.clone()).collect();
    strategies.sort_by_key(|(product, ..)| products.iter().position(|other| other == product));
    strategies.retain(|(_, about, _)| {
        let text = about.to_lowercase();
        words.iter().all(|word| text.contains(word))
    });
    if strategies.is_empty() {
        let problem = format!(
            "no strategy has `{}` in its name, product, description, source or stages",
            words.join(" ")
        );
        let hint = "`proctor strategies` lists all";
        return stop_with(Exit::NothingSelected, problem, hint);
    }
    let strategies: Vec<Value> = strategies.into_iter().map(|(.., entry)| entry).collect();
    let more =
        json!({ "is_described": (args.all || !words.is_empty() && strategies.len() <= DESCRIBED) });
    let facts = json!({ "strategies": strategies });
    let template = include_str!("text/strategies.txt");
    show_with(args.json, "proctor-strategies", facts, more, template)
}

/// Names that have no preset, each with the nearest one and the reason: found by name alone.
fn nearest() -> Result<Vec<(String, String, Value)>> {
    let table = SettingTable::parse("presets/nearest.toml", NEAREST)?;
    Ok(Reader::new(&table, "").tables("nearest")?.into_iter().map(|entry| {
        let [name, preset, why] = ["name", "preset", "why"].map(|key| entry.text(key).unwrap_or_default());
        let product = "No preset of its own";
        let description = format!("nearest is `{preset}`: {why}");
        let shown = json!({ "name": name, "kind": "nearest", "product": product, "nearest": preset, "description": description });
        (product.to_owned(), name.to_owned(), shown)
    }).collect())
}

/// Shows a strategy as TOML that can be a file of one's own; its stages and knobs are comments.
fn show_one(name: &str, as_json: bool) -> Result<Exit> {
    let spec = named(name)?;
    let stages = spec.stages()?;
    let names: Vec<&str> = stages.iter().filter_map(|line| line.split([' ', '(']).next()).collect();
    // In the order of the documentation.
    let kinds = STAGES.iter().filter(|kind| names.contains(&kind.name));
    let breaks: Vec<&str> = spec.breaks()?.into_iter().map(Law::name).collect();
    let tunes = spec.tunes()?.into_iter().map(|tune| {
        let values = tune.values.iter().map(|value| value.value.to_string());
        json!({ "knob": tune.knob, "values": values.collect::<Vec<_>>() })
    });
    let facts = json!({
        "name": spec.name(),
        "description": spec.description(),
        "breaks": breaks,
        "stages": stages,
        "tunes": tunes.collect::<Vec<_>>(),
        "toml": spec.to_file(),
        "kinds": kinds.map(facts_of).collect::<Vec<_>>(),
    });
    if as_json {
        return show(true, "proctor-strategy", facts, "");
    }
    let about = template::fill(include_str!("text/strategy.txt"), facts)?;
    let mut text = spec.to_file();
    for line in prose::folded(&about, 2).lines() {
        let sign = if line.is_empty() { "" } else { "# " };
        writeln!(text, "{sign}{line}")?;
    }
    print(&text)
}

fn facts_of(kind: &StageKind) -> Value {
    let breaks: Vec<&str> = kind.breaks().into_iter().map(Law::name).collect();
    json!({
        "kind": kind.name,
        "description": kind.description(),
        "breaks": breaks,
        "knobs": kind.knobs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_preset_names_one_that_is_there_and_is_no_preset_itself() {
        for (_, name, entry) in nearest().unwrap() {
            let preset = entry["nearest"].as_str().unwrap();
            assert!(PRESETS.iter().any(|(known, _)| *known == preset), "{name}: {preset}");
            let said = entry["description"].as_str().unwrap();
            assert!(said.len() > format!("nearest is `{preset}`: ").len(), "{name}");
        }
    }
}
