//! `proctor doctor`: what a run would use, and where each setting comes from.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::columns::pairs;
use super::inputs::{ENVIRONMENT, Inputs};
use super::{Exit, environment, show, terminal};
use crate::report::escape;
use crate::runner::prices;
use crate::scenario::{self, CacheSetting, ModelSetting, Scenario};
use crate::settings::{Place, Setting, Table, Value};
use crate::strategy::StrategySpec;
use crate::strategy::stage::{self, StageKind};
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
    let keys = keys(scenario.as_ref().ok());
    let (mut facts, mut text) = machine(&keys, &args.reports);
    let (mut price_lists, mut strategies) = (Vec::new(), Vec::new());
    let _ = writeln!(text, "\nsettings of the scenario\n{}", list(&settings));
    match &scenario {
        Err(error) => {
            let _ = writeln!(text, "the scenario is invalid: {error}");
        }
        Ok(scenario) => {
            price_lists = prices(&scenario.cache, &mut text);
            for (key, model) in keys.iter().filter_map(|key| Some((key, key.model?))) {
                let _ = writeln!(text, "\nkey {}, for {model}: {}", key.name, key.state());
            }
            for spec in &scenario.strategies {
                let (name, knobs) = (spec.name(), knobs(spec));
                let _ = write!(text, "\nsettings of strategy {name}\n{}", list(&knobs));
                strategies.push(json!({ "name": name, "settings": knobs }));
            }
        }
    }
    facts["settings"] = json!(settings);
    facts["error"] = json!(scenario.as_ref().err().map(ToString::to_string));
    facts["prices"] = json!(price_lists);
    facts["strategies"] = json!(strategies);
    show(args.json, "proctor-doctor", facts, &text)?;
    Ok(match scenario {
        Ok(_) => Exit::Done,
        Err(_) => Exit::Invalid,
    })
}

/// A setting, by its dotted path.
#[derive(Serialize)]
struct Row {
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

impl Key<'_> {
    fn state(&self) -> &'static str {
        if self.is_present {
            "present"
        } else {
            "not set"
        }
    }
}

/// The terminal, counters, variables and folders, as facts and in words.
fn machine(keys: &[Key<'_>], reports: &Path) -> (Json, String) {
    let (version, terminal) = (env!("CARGO_PKG_VERSION"), terminal());
    let (columns, has_color) = (terminal.columns(), terminal.has_color());
    let set = ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "CI"].into_iter();
    let set: Vec<&str> = set.filter(|name| environment(name).is_some()).collect();
    let because = if set.is_empty() {
        "no variable speaks of it".to_owned()
    } else {
        format!("set: {}", set.join(", "))
    };
    let color = if has_color { "on" } else { "off" };
    let mut text =
        format!("proctor {version}\noutput: {columns} columns, colour {color} ({because})\n");
    for (name, what) in COUNTERS {
        let _ = writeln!(text, "counter {name}: {what}");
    }
    let mut variables = Vec::new();
    for (name, path) in ENVIRONMENT {
        let value = environment(name);
        let state = value.as_ref().map(|value| format!("`{value}`"));
        let state = state.unwrap_or("not set".to_owned());
        let _ = writeln!(text, "environment {name}, for `{path}`: {state}");
        variables.push(json!({ "name": name, "path": path, "value": value }));
    }
    for key in keys.iter().filter(|key| key.model.is_none()) {
        let _ = writeln!(text, "key {}: {}", key.name, key.state());
    }
    let (folder, state) = (reports.display().to_string(), writable(reports));
    let _ = writeln!(text, "reports folder `{folder}`: {state}");
    let facts = json!({
        "proctor": version,
        "columns": columns,
        "color": has_color,
        "counters": COUNTERS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "environment": variables,
        "keys": keys,
        "reports": { "folder": folder, "state": state },
    });
    (facts, text)
}

/// The price files in force, those that go before others first.
fn prices(cache: &CacheSetting, text: &mut String) -> Vec<Json> {
    text.push_str("prices in force, the first file that names a model decides\n");
    let prices = match prices::in_force(cache) {
        Ok(prices) => prices,
        Err(error) => {
            let _ = writeln!(text, "\nthe prices cannot be read: {error}");
            return Vec::new();
        }
    };
    let mut lists = Vec::new();
    for list in prices.lists() {
        let (models, schemes) = (list.models.len(), list.schemes.len());
        let _ = writeln!(
            text,
            "  {}: {}, {} ({}); {models} models, {schemes} cache schemes",
            list.file, list.provider, list.date, list.document
        );
        lists.push(json!({
            "file": list.file.to_string(),
            "provider": list.provider,
            "date": list.date,
            "models": models,
            "schemes": schemes,
        }));
    }
    if let Some(model) = &cache.model {
        let _ = writeln!(text, "  for every session those of {model}");
    }
    lists
}

/// The usual keys, and those that the models of the scenario name.
fn keys(scenario: Option<&Scenario>) -> Vec<Key<'_>> {
    let models = scenario
        .into_iter()
        .flat_map(|scenario| scenario.models.all());
    let named = models.filter_map(|model| match model {
        ModelSetting::Live(live) => Some((live.key.as_deref()?, Some(live.model.as_str()))),
        _ => None,
    });
    let usual = KEYS.iter().map(|name| (*name, None));
    let all = usual.chain(named).map(|(name, model)| Key {
        name,
        model,
        is_present: environment(name).is_some(),
    });
    all.collect()
}

/// Every setting of the scenario, defaults included.
fn settings(table: &Table) -> Vec<Row> {
    let mut settings = Vec::new();
    flatten("", table, &mut settings);
    for (path, default) in scenario::defaults() {
        // A table takes the place of a default as a whole.
        let within = format!("{path}.");
        let is_set = |row: &Row| row.path == path || row.path.starts_with(&within);
        if !settings.iter().any(is_set) {
            settings.push(Row::default(path, default));
        }
    }
    settings
}

impl Row {
    fn default(path: String, value: String) -> Self {
        let source = "default".to_owned();
        Self {
            path,
            value,
            source,
        }
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

/// Every setting of a table, under this path.
fn flatten(prefix: &str, table: &Table, out: &mut Vec<Row>) {
    for (key, setting) in table.entries() {
        match prefix {
            "" => flatten_one(key, setting, out),
            _ => flatten_one(&format!("{prefix}.{key}"), setting, out),
        }
    }
}

fn flatten_one(path: &str, setting: &Setting, out: &mut Vec<Row>) {
    match &setting.value {
        Value::Table(inner) => flatten(path, inner, out),
        Value::List(items) if items.iter().any(|item| item.as_table().is_some()) => {
            for (at, item) in items.iter().enumerate() {
                flatten_one(&format!("{path}[{at}]"), item, out);
            }
        }
        value => out.push(Row {
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
fn knobs(spec: &StrategySpec) -> Vec<Row> {
    let mut settings = Vec::new();
    for (key, setting) in spec.table().entries() {
        let stages = setting.as_list().unwrap_or(std::slice::from_ref(setting));
        for stage in stages {
            match stage.as_table() {
                Some(table) if setting.as_list().is_some() => stage_knobs(table, &mut settings),
                _ => flatten_one(key, stage, &mut settings),
            }
        }
    }
    settings
}

fn stage_knobs(table: &Table, settings: &mut Vec<Row>) {
    let kind = table.text("kind").unwrap_or_default();
    let name = table.text("name").unwrap_or(kind);
    flatten(name, table, settings);
    let mut knobs = stage::kind(kind).map(StageKind::knobs).unwrap_or_default();
    knobs.retain(|knob| table.get(knob.name).is_none());
    for knob in knobs {
        let path = format!("{name}.{}", knob.name);
        settings.push(Row::default(path, knob.default));
    }
}

fn list(settings: &[Row]) -> String {
    const LONGEST_VALUE: usize = 60;
    let line = |row: &Row| {
        let value = escape::short(&row.value, LONGEST_VALUE);
        (
            format!("  {}", row.path),
            format!("{value}  ({})", row.source),
        )
    };
    pairs(&settings.iter().map(line).collect::<Vec<_>>())
}
