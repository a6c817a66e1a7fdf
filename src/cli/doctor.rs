//! `proctor doctor`: whether a scenario is valid, what it would run, and where each of its settings comes from.

use std::fs::OpenOptions;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::compare::rules;
use super::inputs::{ENVIRONMENT, Inputs, QUICK};
use super::{Exit, Result, chain, environment, find_sessions, show_with, terminal};
use crate::model::price::PriceList;
use crate::runner::{self, prices};
use crate::scenario::{self, ModelSetting, Scenario, SessionSource, is_variable_name};
use crate::settings::{Place, Reader, Setting, SettingTable, SettingValue};
use crate::strategy::StrategySpec;
use crate::strategy::stage::{self, StageKind};
use crate::tokens::COUNTERS;

/// Arguments of `proctor doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten, next_help_heading = "Input")]
    inputs: Inputs,
    /// Print every session, strategy and setting, instead of one screen
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// The folder under which run folders are made, where no flag names another.
const REPORTS: &str = "reports";

/// Variables that hold a key of a model provider.
const KEYS: &[&str] =
    &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"];

pub(super) fn run(args: &Args) -> Result<Exit> {
    args.inputs.refuse_caller("doctor")?;
    let (table, folder) = args.inputs.laid_over(QUICK)?;
    let found = args.inputs.scenario_of(table.clone(), &folder);
    let scenario = found.and_then(|scenario| {
        rules(&scenario.gate)?;
        find_sessions::all_open(&scenario.sessions)?;
        runner::check_facts(&scenario)?;
        let prices = prices::in_force(&scenario.cache)?;
        scenario.strategies.iter().try_for_each(runner::starts)?;
        let plan = planned(&scenario)?;
        Ok((scenario, plan, prices))
    });
    let read = scenario.as_ref().ok().map(|(scenario, ..)| scenario);
    let screen = terminal();
    let variables = ENVIRONMENT
        .map(|(name, path)| json!({ "name": name, "path": path, "value": environment(name) }));
    let lists = scenario.as_ref().map_or(&[][..], |(.., prices)| prices.lists());
    let specs = read.map_or(&[][..], |scenario| &scenario.strategies).iter();
    let strategies = specs.map(|spec| json!({ "name": spec.name(), "settings": knobs(spec) }));
    let facts = json!({
        "proctor": env!("CARGO_PKG_VERSION"),
        "columns": screen.columns(),
        "color": screen.has_color(),
        "counters": COUNTERS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "environment": variables,
        "keys": keys(read),
        "reports": { "folder": REPORTS, "state": writable(Path::new(REPORTS)) },
        "settings": settings(&table),
        "error": scenario.as_ref().err().map(chain),
        "planned": scenario.as_ref().ok().map(|(_, planned, _)| planned),
        "prices": lists.iter().map(price_list).collect::<Vec<_>>(),
        "strategies": strategies.collect::<Vec<_>>(),
    });
    let names = ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "CI"];
    let set = names.into_iter().filter(|name| environment(name).is_some());
    let more = json!({
        "is_whole": args.all,
        "set": set.collect::<Vec<_>>(),
        "counters": COUNTERS,
        "documents": lists.iter().map(|list| &list.document).collect::<Vec<_>>(),
        "model": read.and_then(|scenario| scenario.cache.model.as_deref()),
    });
    let template = include_str!("text/doctor.txt");
    show_with(args.json, "proctor-doctor", facts, more, template)?;
    scenario.map(|_| Exit::Done)
}

fn price_list(list: &PriceList) -> Json {
    json!({
        "file": list.file.to_string(),
        "provider": list.provider,
        "date": list.date,
        "models": list.models.len(),
        "schemes": list.schemes.len(),
    })
}

/// The sessions, strategies and models of a scenario.
fn planned(scenario: &Scenario) -> Result<Json> {
    let models = scenario.models.all().map(
        |model| json!({ "name": model.name(), "is_live": matches!(model, ModelSetting::Live(_)) }),
    );
    let sessions = scenario.sessions.iter().map(|source| match source {
        SessionSource::File(path, _) => {
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
    Ok(json!({
        "scenario": scenario.name,
        "counter": scenario.counter,
        "window": scenario.window.to_string(),
        "seed": scenario.seed,
        "faults": (!faults.is_empty()).then(|| faults.to_string()),
        "models": models.collect::<Vec<_>>(),
        "sessions": sessions.collect::<Vec<_>>(),
        "strategies": strategies.collect::<Result<Vec<_>>>()?,
    }))
}

/// A setting, by its dotted path.
#[derive(Serialize)]
struct SettingRow {
    path: String,
    value: String,
    source: String,
}

/// A variable that holds a key of a provider.
#[derive(Serialize)]
struct Key<'a> {
    name: &'a str,
    /// The model of the scenario that needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    is_present: bool,
}

/// The usual keys, and those that the models of the scenario name.
fn keys(scenario: Option<&Scenario>) -> Vec<Key<'_>> {
    let models = scenario.into_iter().flat_map(|scenario| scenario.models.all());
    let named = models.filter_map(|model| match model {
        ModelSetting::Live(live) => Some((live.key.as_deref()?, Some(live.dialect.model.as_str()))),
        _ => None,
    });
    KEYS.iter()
        .map(|name| (*name, None))
        .chain(named)
        .map(|(name, model)| Key { name, model, is_present: environment(name).is_some() })
        .collect()
}

/// Every setting of the scenario, defaults included.
fn settings(table: &SettingTable) -> Vec<SettingRow> {
    let mut settings = Vec::new();
    flatten("", table, &mut settings);
    // Sessions and strategies are many.
    settings.sort_by_key(|row| row.path.contains('['));
    for (path, default) in scenario::defaults() {
        // A table takes the place of a default as a whole.
        let within = format!("{path}.");
        let mut set = settings.iter().map(|row| &row.path);
        if !set.any(|set| *set == path || set.starts_with(&within)) {
            settings.push(SettingRow::default(path, default));
        }
    }
    settings
}

impl SettingRow {
    fn default(path: String, value: String) -> Self {
        let source = "default".to_owned();
        Self { path, value, source }
    }
}

/// Whether files can be made in a folder, or in the nearest one above it that is there.
fn writable(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let Some(there) = absolute.ancestors().find(|path| path.is_dir()) else {
        return "cannot be made".to_owned();
    };
    let test = there.join(format!(".proctor-doctor-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&test);
    let _ = std::fs::remove_file(&test);
    match made {
        Ok(_) if there == absolute => "can be written".to_owned(),
        Ok(_) => "is not there yet, and can be made".to_owned(),
        Err(error) => format!("cannot be written: {error}"),
    }
}

/// Whether a setting names the variable that holds a key.
fn is_key(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, key)| key == "key")
}

/// Every setting of a table, under this path.
fn flatten(prefix: &str, table: &SettingTable, out: &mut Vec<SettingRow>) {
    for (key, setting) in table.entries() {
        flatten_one(&Reader::new(table, prefix).path_of(key), setting, out);
    }
}

fn flatten_one(path: &str, setting: &Setting, out: &mut Vec<SettingRow>) {
    match &setting.value {
        SettingValue::Table(inner) => flatten(path, inner, out),
        SettingValue::List(items) if items.iter().any(|item| item.as_table().is_some()) => {
            for (at, item) in items.iter().enumerate() {
                flatten_one(&format!("{path}[{at}]"), item, out);
            }
        }
        SettingValue::Text(text) if is_key(path) && !is_variable_name(text) => {
            out.push(SettingRow {
                path: path.to_owned(),
                // It may be the key itself.
                value: "not shown".to_owned(),
                source: setting.place.without_value().to_string(),
            });
        }
        value => out.push(SettingRow {
            path: path.to_owned(),
            value: value.to_string(),
            source: match &setting.place {
                Place::File(file, line) => format!("{file}:{line}"),
                Place::Flag(flag) => format!("flag {flag}"),
                Place::Environment(name) => format!("environment {name}"),
                Place::BuiltIn => "default".to_owned(),
            },
        }),
    }
}

/// Every setting of a strategy, other knobs with their defaults.
fn knobs(spec: &StrategySpec) -> Vec<SettingRow> {
    let mut settings = Vec::new();
    for (key, setting) in spec.table().entries() {
        for stage in setting.as_list().unwrap_or(std::slice::from_ref(setting)) {
            match stage.as_table() {
                Some(table) if setting.as_list().is_some() => stage_knobs(table, &mut settings),
                _ => flatten_one(key, stage, &mut settings),
            }
        }
    }
    settings
}

fn stage_knobs(table: &SettingTable, settings: &mut Vec<SettingRow>) {
    let kind = table.text("kind").unwrap_or_default();
    let name = table.text("name").unwrap_or(kind);
    flatten(name, table, settings);
    let mut knobs = stage::kind(kind).map(StageKind::knobs).unwrap_or_default();
    knobs.retain(|knob| table.get(knob.name).is_none());
    for knob in knobs {
        let path = format!("{name}.{}", knob.name);
        settings.push(SettingRow::default(path, knob.default));
    }
}
