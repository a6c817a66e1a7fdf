//! `proctor doctor`: what a run would use, and where each setting comes from.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::inputs::{ENVIRONMENT, Inputs};
use super::{Exit, environment, print_json, prose, terminal};
use crate::report::escape;
use crate::runner::{PlanError, prices};
use crate::scenario::{self, CacheSetting, LiveSetting, ModelSetting, Scenario};
use crate::settings::{Place, Setting, SettingError, Table, Value};
use crate::strategy::StrategySpec;
use crate::strategy::stage;
use crate::tokens::COUNTERS;

/// Arguments of `proctor doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Says which keys are present, and never what they are.")]
pub(super) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder under which run folders are made
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
}

/// Variables that hold a key of a model provider.
const KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
];

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let (table, folder) = args.inputs.laid_over()?;
    let scenario = Scenario::read(&table, &folder);
    let settings = settings(&table);
    if args.json {
        print_json(&to_json(args, &settings, &scenario))?;
    } else {
        let text = in_words(args, &settings, &scenario);
        let lines = text.lines().map(|line| escape::plain(line) + "\n");
        prose::say(&lines.collect::<String>())?;
    }
    Ok(match scenario {
        Ok(_) => Exit::Done,
        Err(_) => Exit::Invalid,
    })
}

/// Dotted path, value and source of every setting of the scenario, defaults included.
fn settings(table: &Table) -> Vec<(String, String, String)> {
    let mut settings = Vec::new();
    flatten("", table, &mut settings);
    for (path, default) in scenario::defaults() {
        // A table takes the place of a default as a whole.
        let within = format!("{path}.");
        let is_set = |(known, ..): &(String, _, _)| *known == path || known.starts_with(&within);
        if !settings.iter().any(is_set) {
            settings.push((path, default, "default".to_owned()));
        }
    }
    settings
}

fn in_words(
    args: &Args,
    settings: &[(String, String, String)],
    scenario: &Result<Scenario, SettingError>,
) -> String {
    let mut out = String::new();
    machine(&mut out, &args.reports);
    out.push_str("\nsettings of the scenario\n");
    list(&mut out, settings);
    match scenario {
        Err(error) => {
            let _ = writeln!(out, "\nthe scenario is invalid: {error}");
        }
        Ok(scenario) => {
            if let Err(error) = prices(&mut out, &scenario.cache) {
                let _ = writeln!(out, "\nthe prices cannot be read: {error}");
            }
            for model in scenario.models.all() {
                if let ModelSetting::Live(LiveSetting {
                    model,
                    key: Some(key),
                    ..
                }) = model
                {
                    let state = environment(key).map_or("not set", |_| "present");
                    let _ = writeln!(out, "\nkey {key}, for {model}: {state}");
                }
            }
            for spec in &scenario.strategies {
                let _ = writeln!(out, "\nsettings of strategy {}", spec.name());
                list(&mut out, &knobs(spec));
            }
        }
    }
    out
}

fn to_json(
    args: &Args,
    settings: &[(String, String, String)],
    scenario: &Result<Scenario, SettingError>,
) -> Json {
    let rows = |settings: &[(String, String, String)]| {
        let rows = settings.iter();
        let rows = rows
            .map(|(path, value, source)| json!({ "path": path, "value": value, "source": source }));
        rows.collect::<Vec<Json>>()
    };
    let is_set = |name: &str| environment(name).is_some();
    let variables = ENVIRONMENT
        .iter()
        .map(|(name, path)| json!({ "name": name, "path": path, "value": environment(name) }));
    let mut keys: Vec<Json> = KEYS
        .iter()
        .map(|name| json!({ "name": name, "is_present": is_set(name) }))
        .collect();
    let mut strategies = Vec::new();
    let mut price_lists = Vec::new();
    if let Ok(scenario) = scenario {
        for model in scenario.models.all() {
            if let ModelSetting::Live(LiveSetting {
                model,
                key: Some(key),
                ..
            }) = model
            {
                keys.push(json!({ "name": key, "model": model, "is_present": is_set(key) }));
            }
        }
        for spec in &scenario.strategies {
            strategies.push(json!({ "name": spec.name(), "settings": rows(&knobs(spec)) }));
        }
        let prices = prices::in_force(&scenario.cache);
        for list in prices.as_ref().map_or(&[][..], |prices| prices.lists()) {
            price_lists.push(json!({
                "file": list.file.to_string(),
                "provider": list.provider,
                "date": list.date,
                "models": list.models.len(),
                "schemes": list.schemes.len(),
            }));
        }
    }
    let terminal = terminal();
    json!({
        "format": "proctor-doctor",
        "version": 1,
        "proctor": env!("CARGO_PKG_VERSION"),
        "columns": terminal.columns(),
        "color": terminal.has_color(),
        "counters": COUNTERS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "environment": variables.collect::<Vec<_>>(),
        "keys": keys,
        "reports": { "folder": args.reports.display().to_string(), "state": writable(&args.reports) },
        "settings": rows(settings),
        "error": scenario.as_ref().err().map(ToString::to_string),
        "prices": price_lists,
        "strategies": strategies,
    })
}

fn machine(out: &mut String, reports: &Path) {
    let _ = writeln!(out, "proctor {}", env!("CARGO_PKG_VERSION"));
    let terminal = terminal();
    let color = if terminal.has_color() { "on" } else { "off" };
    let variables: Vec<&str> = ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "CI"]
        .into_iter()
        .filter(|name| environment(name).is_some())
        .collect();
    let because = if variables.is_empty() {
        "no variable speaks of it".to_owned()
    } else {
        format!("set: {}", variables.join(", "))
    };
    let _ = writeln!(
        out,
        "output: {} columns, colour {color} ({because})",
        terminal.columns()
    );
    for (name, what) in COUNTERS {
        let _ = writeln!(out, "counter {name}: {what}");
    }
    for (name, path) in ENVIRONMENT {
        let state = environment(name).map_or("not set".to_owned(), |value| format!("`{value}`"));
        let _ = writeln!(out, "environment {name}, for `{path}`: {state}");
    }
    for name in KEYS {
        let state = match environment(name) {
            Some(_) => "present",
            None => "not set",
        };
        let _ = writeln!(out, "key {name}: {state}");
    }
    let _ = writeln!(
        out,
        "reports folder `{}`: {}",
        reports.display(),
        writable(reports)
    );
}

/// The price files in force, those that go before others first.
fn prices(out: &mut String, cache: &CacheSetting) -> Result<(), PlanError> {
    let _ = writeln!(
        out,
        "\nprices in force, the first file that names a model decides"
    );
    for list in prices::in_force(cache)?.lists() {
        let _ = writeln!(
            out,
            "  {}: {}, {} ({}); {} models, {} cache schemes",
            list.file,
            list.provider,
            list.date,
            list.document,
            list.models.len(),
            list.schemes.len()
        );
    }
    if let Some(model) = &cache.model {
        let _ = writeln!(out, "  for every session those of {model}");
    }
    Ok(())
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

/// Dotted path, value and source of every setting of a table.
fn flatten(prefix: &str, table: &Table, out: &mut Vec<(String, String, String)>) {
    for (key, setting) in table.entries() {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        flatten_one(&path, setting, out);
    }
}

fn flatten_one(path: &str, setting: &Setting, out: &mut Vec<(String, String, String)>) {
    match &setting.value {
        Value::Table(inner) => flatten(path, inner, out),
        Value::List(items)
            if items
                .iter()
                .any(|item| matches!(item.value, Value::Table(_))) =>
        {
            for (at, item) in items.iter().enumerate() {
                flatten_one(&format!("{path}[{at}]"), item, out);
            }
        }
        value => out.push((path.to_owned(), value.to_string(), source(&setting.place))),
    }
}

/// Where a setting was written: `file:line`, a flag, a variable, or Proctor itself.
fn source(place: &Place) -> String {
    match place {
        Place::File(file, line) => format!("{file}:{line}"),
        Place::Flag(flag) => format!("flag {flag}"),
        Place::Environment(name) => format!("environment {name}"),
        Place::BuiltIn => "default".to_owned(),
    }
}

/// Every setting of a strategy, knobs that nobody set with their defaults.
fn knobs(spec: &StrategySpec) -> Vec<(String, String, String)> {
    let mut settings = Vec::new();
    for (key, setting) in spec.table().entries() {
        let Value::List(stages) = &setting.value else {
            flatten_one(key, setting, &mut settings);
            continue;
        };
        for stage in stages {
            match &stage.value {
                Value::Table(table) => stage_settings(table, &mut settings),
                _ => flatten_one(key, stage, &mut settings),
            }
        }
    }
    settings
}

fn stage_settings(table: &Table, settings: &mut Vec<(String, String, String)>) {
    let text = |key| table.get(key).and_then(Setting::as_text);
    let kind = text("kind").unwrap_or_default();
    let name = text("name").unwrap_or(kind);
    flatten(name, table, settings);
    let knobs = stage::kind(kind).map_or(&[][..], |kind| kind.knobs);
    for knob in knobs.iter().filter(|knob| table.get(knob.name).is_none()) {
        settings.push((
            format!("{name}.{}", knob.name),
            knob.default(),
            "default".to_owned(),
        ));
    }
}

fn list(out: &mut String, settings: &[(String, String, String)]) {
    const LONGEST_VALUE: usize = 60;
    let width = settings
        .iter()
        .map(|(path, ..)| path.chars().count())
        .max()
        .unwrap_or(0);
    for (path, value, source) in settings {
        let value = escape::short(value, LONGEST_VALUE);
        let _ = writeln!(out, "  {path:width$}  {value}  ({source})");
    }
}
