//! What a command runs on: a scenario file with the environment and flags laid over it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Exit, Stop, environment, prompts, say, walk};
use crate::scenario::{QUICK_START, Scenario};
use crate::settings::{Place, Setting, SettingError, Table, Value, did_you_mean, parse_value};
use crate::strategy::preset::PRESETS;
use crate::units::is_valid_id;

/// What is to be run: a scenario file, and what is changed in it.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Inputs {
    /// Scenario file; without one, the built-in quick start
    pub(super) scenario: Option<PathBuf>,
    /// Replay this recording, or all in this folder, instead of the scenario's sessions (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(super) session: Vec<PathBuf>,
    /// Compare this strategy instead of the scenario's (repeatable), as in
    /// `observation-masking[clear_results.keep_last=5]`; or a preset's file, `tuned.toml`
    #[arg(long, value_name = "NAME")]
    pub(super) strategy: Vec<String>,
    /// Set one value: a scenario key (`window.max_output=8000`), or a knob of a strategy
    /// (`observation-masking.clear_results.keep_last=5`) (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Context window: a number of tokens, `native`, or `fit:0.6` for a share of each session;
    /// `matched` keeps the scenario's, and all strategies compact at one trigger (`window.trigger`)
    #[arg(
        long,
        value_name = "TOKENS|native|fit:F|matched",
        allow_negative_numbers = true
    )]
    pub(super) window: Option<String>,
    /// Token counter: o200k, cl100k, cl100k-content, chars/4, chars/3, bytes/4 or padded
    #[arg(long)]
    pub(super) counter: Option<String>,
    /// Size prompts as billed, where a session carries usage (the default), or by the counter alone
    #[arg(long, value_name = "billed|counted")]
    pub(super) sizes: Option<String>,
    /// Price file that goes before the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(super) prices: Option<PathBuf>,
    /// Seed of the order in which strategies run
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Repeats of each cell
    #[arg(long, value_name = "N")]
    pub(super) repeats: Option<u32>,
}

/// Environment variables that are laid over a scenario, with the path each sets.
pub(super) const ENVIRONMENT: [(&str, &str); 3] = [
    ("PROCTOR_COUNTER", "counter"),
    ("PROCTOR_SEED", "seed"),
    ("PROCTOR_WINDOW", "window"),
];

impl Inputs {
    /// Reads the scenario: flag over environment over file over default.
    pub(super) fn read(&self) -> anyhow::Result<Scenario> {
        self.read_with(|_| Ok(()))
    }

    /// The same, with something else laid over it.
    pub(super) fn read_with(
        &self,
        lay_over: impl FnOnce(&mut Table) -> anyhow::Result<()>,
    ) -> anyhow::Result<Scenario> {
        let (mut table, folder) = self.laid_over()?;
        lay_over(&mut table)?;
        let mut scenario = Scenario::read(&table, &folder)?;
        scenario.sessions = walk::found_in_folders(scenario.sessions)?;
        prompts::read(&mut scenario.strategies)?;
        for spec in &scenario.strategies {
            if has_no_budget(spec.name()) {
                say(&format!(
                    "note: `{}` has a budget of 0 tokens: it keeps the newest API round, which is never cut, \
                     and nothing before it",
                    spec.name()
                ));
            }
        }
        Ok(scenario)
    }

    /// The scenario's settings with environment and flags laid over them, and the folder where
    /// its relative paths start.
    pub(super) fn laid_over(&self) -> anyhow::Result<(Table, PathBuf)> {
        let (mut table, folder) = self.table()?;
        self.sessions(&mut table);
        self.strategies(&mut table)?;
        for (name, path) in ENVIRONMENT {
            if let Some(value) = environment(name) {
                let place = Place::Environment(name.into());
                match path {
                    "window" => set_window(&mut table, &value, &place)?,
                    path => table.overlay(path, parse_value(&value, &place))?,
                }
            }
        }
        let flags = [
            ("counter", self.counter.clone()),
            ("sizes", self.sizes.clone()),
            ("seed", self.seed.map(|seed| seed.to_string())),
            ("repeats", self.repeats.map(|repeats| repeats.to_string())),
        ];
        for (key, value) in flags {
            if let Some(value) = value {
                let place = Place::Flag(format!("--{key} {value}").into());
                table.overlay(key, parse_value(&value, &place))?;
            }
        }
        if let Some(path) = &self.prices {
            let place = Place::Flag(format!("--prices {}", path.display()).into());
            let full = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let value = Value::Text(full.display().to_string());
            table.overlay("cache.prices", Setting { value, place })?;
        }
        if let Some(window) = &self.window {
            let place = Place::Flag(format!("--window {window}").into());
            set_window(&mut table, window, &place)?;
        }
        for assignment in &self.set {
            set(&mut table, assignment)?;
        }
        Ok((table, folder))
    }

    fn table(&self) -> anyhow::Result<(Table, PathBuf)> {
        let Some(path) = &self.scenario else {
            return Ok((
                Table::parse("built-in quick start", QUICK_START)?,
                PathBuf::new(),
            ));
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            let stop = Stop::new(
                Exit::Invalid,
                format!("cannot read scenario `{}`: {error}", path.display()),
            );
            let typed = path.display().to_string();
            match did_you_mean(&typed, PRESETS.iter().map(|(name, _)| *name)) {
                Some(preset) => stop.with_hint(format!(
                    "to run a strategy, write `proctor run --strategy {preset}`"
                )),
                None => stop.with_hint("`proctor init` writes one to start from"),
            }
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut table = Table::parse(&path.display().to_string(), &text)?;
        if table.get("name").is_none() {
            name_after(path, &mut table);
        }
        Ok((table, folder))
    }

    /// Sessions named on the command line take the place of the scenario's; their paths start at
    /// the working directory.
    fn sessions(&self, table: &mut Table) {
        if self.session.is_empty() {
            return;
        }
        let items = self.session.iter().map(|path| {
            let place = Place::Flag(format!("--session {}", path.display()).into());
            let full = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let mut entry = Table::new(place.clone());
            let value = Value::Text(full.display().to_string());
            entry.set(
                "path",
                Setting {
                    value,
                    place: place.clone(),
                },
            );
            Setting {
                value: Value::Table(entry),
                place,
            }
        });
        let value = Value::List(items.collect());
        table.set(
            "sessions",
            Setting {
                value,
                place: Place::Flag("--session".into()),
            },
        );
        if self.scenario.is_none() {
            // The quick start's window and name belong to its own sessions.
            table.remove("window");
            table.remove("description");
            let place = Place::Flag("--session".into());
            table.set(
                "name",
                Setting {
                    value: Value::Text("sessions".to_owned()),
                    place,
                },
            );
        }
    }

    /// Strategies named on the command line; one that ends in `.toml` is the file of a preset.
    fn strategies(&self, table: &mut Table) -> anyhow::Result<()> {
        if self.strategy.is_empty() {
            return Ok(());
        }
        let item = |name: &String| -> anyhow::Result<Setting> {
            let place = Place::Flag(format!("--strategy {name}").into());
            let is_file = Path::new(name)
                .extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
            let entry = if is_file {
                preset_of(Path::new(name), &place)?
            } else {
                let mut entry = Table::new(place.clone());
                let value = Value::Text(name.clone());
                let place = place.clone();
                entry.set("preset", Setting { value, place });
                entry
            };
            let value = Value::Table(entry);
            Ok(Setting { value, place })
        };
        let items = self.strategy.iter().map(item).collect::<Result<_, _>>()?;
        let value = Value::List(items);
        table.set(
            "strategies",
            Setting {
                value,
                place: Place::Flag("--strategy".into()),
            },
        );
        Ok(())
    }
}

/// Whether a strategy is a control that cuts to nothing, as `tail@0`.
fn has_no_budget(name: &str) -> bool {
    let budget = name.split_once('@').map(|(_, budget)| budget);
    budget.is_some_and(|budget| budget.trim_end_matches('k').parse() == Ok(0))
}

/// A preset from a file, named after it.
fn preset_of(path: &Path, place: &Place) -> anyhow::Result<Table> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Stop::new(
            Exit::Invalid,
            format!("cannot read preset `{shown}`: {error}"),
        )
        .with_hint("`--strategy` takes the name of a preset, or a file that ends in `.toml`")
    })?;
    let mut table = Table::parse(&shown, &text).context("cannot read the preset")?;
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let value = Value::Text(name);
    let place = place.clone();
    table.set("name", Setting { value, place });
    Ok(table)
}

/// A scenario that names itself nothing is called after its file, where that is a name.
fn name_after(path: &Path, table: &mut Table) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.to_ascii_lowercase().replace([' ', '+'], "-");
    if is_valid_id(&name) && name.len() <= 60 {
        let place = table.place().clone();
        let value = Value::Text(name);
        table.set("name", Setting { value, place });
    }
}

/// `--window`: a number, `native`, `fit:F`, or `matched`.
fn set_window(table: &mut Table, window: &str, place: &Place) -> anyhow::Result<()> {
    let text = |value: &str| Setting {
        value: Value::Text(value.to_owned()),
        place: place.clone(),
    };
    if window == "matched" {
        // The size stays as the scenario names it.
        table.overlay("window.mode", text("matched"))?;
        return Ok(());
    }
    for key in ["mode", "fraction", "tokens"] {
        if let Some(Setting {
            value: Value::Table(window),
            ..
        }) = table.get("window")
        {
            let mut window = window.clone();
            window.remove(key);
            let place = window.place().clone();
            table.set(
                "window",
                Setting {
                    value: Value::Table(window),
                    place,
                },
            );
        }
    }
    if let Some(fraction) = window.strip_prefix("fit:") {
        table.overlay("window.mode", text("fit"))?;
        table.overlay("window.fraction", parse_value(fraction, place))?;
    } else if window == "native" {
        table.overlay("window.mode", text("native"))?;
    } else {
        let digits: String = window.chars().filter(|c| *c != '_' && *c != ',').collect();
        let digits = match digits.strip_suffix(['k', 'K']) {
            Some(thousands) => format!("{thousands}000"),
            None => digits,
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let problem = format!("`{window}` is no window");
            return Err(SettingError::new(place, problem)
                .with_hint(
                    "write a number of tokens (`200000`, `200k`), `native`, `fit:0.6`, or `matched`",
                )
                .into());
        }
        table.overlay("window.tokens", parse_value(&digits, place))?;
    }
    Ok(())
}

/// `--set PATH=VALUE`: a path that begins with a strategy's name changes that strategy.
fn set(table: &mut Table, assignment: &str) -> anyhow::Result<()> {
    let Some((path, value)) = assignment.split_once('=') else {
        return Err(
            Stop::new(Exit::Usage, format!("`--set {assignment}` sets nothing"))
                .with_hint("write `--set PATH=VALUE`")
                .into(),
        );
    };
    let place = Place::Flag(format!("--set {assignment}").into());
    let setting = parse_value(value, &place);
    let mut strategies = match table.get("strategies") {
        Some(Setting {
            value: Value::List(items),
            place,
        }) => (items.clone(), place.clone()),
        _ => (Vec::new(), place.clone()),
    };
    let mut matched = false;
    for item in &mut strategies.0 {
        let Value::Table(entry) = &mut item.value else {
            continue;
        };
        let name = ["name", "preset"]
            .iter()
            .find_map(|key| match entry.get(key) {
                Some(Setting {
                    value: Value::Text(name),
                    ..
                }) => Some(name.clone()),
                _ => None,
            });
        if let Some(knob) =
            name.and_then(|name| Some(path.strip_prefix(&name)?.strip_prefix('.')?.to_owned()))
        {
            let mut knobs = match entry.get("set") {
                Some(Setting {
                    value: Value::Table(knobs),
                    ..
                }) => knobs.clone(),
                _ => Table::new(place.clone()),
            };
            knobs.overlay(&knob, setting.clone())?;
            entry.set(
                "set",
                Setting {
                    value: Value::Table(knobs),
                    place: place.clone(),
                },
            );
            matched = true;
        }
    }
    if matched {
        // Variants that the flag made alike are one strategy.
        let mut seen = BTreeSet::new();
        strategies.0.retain(|item| {
            let is_new = seen.insert(item.value.to_string());
            if !is_new {
                say(&format!(
                    "note: `--set {assignment}` makes two strategies alike; they are run once"
                ));
            }
            is_new
        });
        let value = Value::List(strategies.0);
        table.set(
            "strategies",
            Setting {
                value,
                place: strategies.1,
            },
        );
    } else {
        table.overlay(path, setting)?;
    }
    Ok(())
}
