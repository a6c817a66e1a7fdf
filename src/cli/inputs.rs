//! The input of a command: a scenario file with the environment and flags laid over it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::default_strategies;
use super::{
    Exit, Result, environment, find_sessions, has_ending, programs, prompts, read_text, stop_with,
    tokens,
};
use crate::naming::StrategyName;
use crate::report::escape::{flag, plain, shell};
use crate::scenario::{LOCAL, QUICK_START, Scenario};
use crate::session::import::ImportError;
use crate::session::import::file_info::format_of;
use crate::settings::{
    Place, Setting, SettingError, SettingTable, SettingValue, did_you_mean, parse_value,
};
use crate::strategy::preset::PRESETS;
use crate::units::is_valid_id;

/// The input of a run: a scenario file, and the changes to it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Inputs {
    /// Scenario file, or recordings and folders of recordings, as with `--session`; without any, the
    /// built-in quick start
    #[arg(value_name = "SCENARIO|RECORDING", help_heading = None::<&'static str>)]
    pub(super) named: Vec<PathBuf>,
    /// Replay this recording, or all in this folder, instead of the scenario's sessions (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(super) session: Vec<PathBuf>,
    /// Compare this strategy instead of the scenario's (repeatable): a preset, as in
    /// `observation-masking[clear_results.keep_last=5]`, a preset's file, `tuned.toml`, or the name of one of
    /// the scenario's own
    #[arg(long, value_name = "NAME")]
    pub(super) strategy: Vec<String>,
    /// The sessions are those of agents that run
    #[arg(skip)]
    pub(super) of_agents: bool,
    /// Compare this program instead of the scenario's strategies (repeatable): any language, see
    /// `docs/reference/external-strategies.md`; as in `'python3 mine.py'`. `-` is the program that started this one, on
    /// standard input and output
    #[arg(long, value_name = "COMMAND")]
    pub(super) strategy_cmd: Vec<String>,
    /// Set one value: a scenario key (`window.max_output=8000`), or a knob of a strategy
    /// (`observation-masking.clear_results.keep_last=5`) (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    /// Context window: a number of tokens, `native`, or `fit:0.6` for a share of each session
    /// (recordings too short for it are left out, see `window.floor`); `matched` keeps the
    /// scenario's, and all strategies compact at one trigger (`window.trigger`)
    #[arg(long, value_name = "TOKENS|native|fit:F|matched")]
    pub(super) window: Option<String>,
    /// Replay only so many sessions, drawn by the seed so that every kind and length has its share
    #[arg(long, value_name = "N")]
    pub(super) sample: Option<usize>,
}

/// A scenario that is compiled in, by its name: one for commands that name neither a scenario nor a recording.
type BuiltIn = (&'static str, &'static str);

/// The quick start.
pub(super) const QUICK: BuiltIn = ("built-in quick start", QUICK_START);

/// Sessions for models on this machine.
pub(super) const AT_HOME: BuiltIn = ("built-in `local.toml`", LOCAL);

/// A recording on the command line, with what names it.
type Named<'a> = (&'a Path, Place);

/// How the names of these variables begin.
const PREFIX: &str = "PROCTOR_";

/// Environment variables that are laid over a scenario, with the path each sets.
pub(super) const ENVIRONMENT: [(&str, &str); 3] =
    [("PROCTOR_COUNTER", "counter"), ("PROCTOR_SEED", "seed"), ("PROCTOR_WINDOW", "window")];

impl Inputs {
    /// Reads the scenario: flag over environment over file over default.
    pub(super) fn read(&self) -> Result<Scenario> {
        let (table, folder) = self.laid_over(QUICK)?;
        self.scenario_of(table, &folder)
    }

    /// The scenario of settings that were laid over one another.
    pub(super) fn scenario_of(&self, mut table: SettingTable, folder: &Path) -> Result<Scenario> {
        let mut scenario = loop {
            match Scenario::read(&table, folder) {
                Err(error) if self.has_default_strategies()? && leave_out(&mut table, &error) => {}
                read => break read?,
            }
        };
        scenario.sessions = find_sessions::found_in_folders(scenario.sessions)?;
        if scenario.strict {
            find_sessions::all_open(&scenario.sessions)?;
        }
        prompts::read(&mut scenario.strategies)?;
        for spec in &scenario.strategies {
            if spec.has_no_budget() {
                say!(
                    "note: `{}` has a budget of 0 tokens: it keeps the newest API round, which is never cut, \
                     and nothing before it",
                    spec.name()
                );
            }
        }
        Ok(scenario)
    }

    /// The settings of the scenario, else of the one that is built in, with environment and flags laid over them, and
    /// the folder where its relative paths start.
    pub(super) fn laid_over(&self, built_in: BuiltIn) -> Result<(SettingTable, PathBuf)> {
        let (scenario, recordings) = self.scenario_and_recordings()?;
        let (mut table, folder) = match scenario {
            None => {
                let (name, text) = if recordings.is_empty() { built_in } else { QUICK };
                (SettingTable::parse(name, text)?, PathBuf::new())
            }
            Some(path) => table_of(path)?,
        };
        put_sessions(&mut table, &recordings);
        if scenario.is_none() && (self.of_agents || !recordings.is_empty()) {
            // The quick start's window, model and name belong to its own sessions.
            table.remove("window");
            table.remove("cache");
            table.remove("description");
            table.put("name", "sessions", &Place::BuiltIn);
        }
        if scenario.is_none() && !recordings.is_empty() {
            let paths = recordings.iter().map(|(path, _)| *path);
            let strategies = default_strategies::of_recordings(paths)?;
            table.put("strategies", strategies, &Place::BuiltIn);
        }
        self.strategies(&mut table)?;
        say_misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()));
        let environment = ENVIRONMENT.iter().filter_map(|(name, path)| {
            let place = Place::Environment((*name).into());
            Some((*path, environment(name)?, place))
        });
        let given = [
            ("sample", self.sample.map(|count| count.to_string())),
            ("window", self.window.clone()),
        ];
        let flags = given.into_iter().filter_map(|(key, typed)| {
            let value = typed?;
            let place = Place::Flag(format!("--{key} {value}").into());
            Some((key, value, place))
        });
        for (path, value, place) in environment.chain(flags) {
            match path {
                "window" => set_window(&mut table, &value, &place)?,
                path => table.overlay(path, parse_value(&value, &place))?,
            }
        }
        for assignment in &self.set {
            set(&mut table, assignment)?;
        }
        Ok((table, folder))
    }

    /// The scenario that is named, if any, and the recordings that take the place of its sessions,
    /// each with the flag that names it.
    fn scenario_and_recordings(&self) -> Result<(Option<&Path>, Vec<Named<'_>>)> {
        let (recordings, scenarios): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.named.iter().partition(|path| is_recording(path));
        let named = recordings.into_iter().map(|path| (path, ""));
        let flagged = self.session.iter().map(|path| (path, "--session "));
        let recordings = named.chain(flagged).map(|(path, flag)| {
            let place = Place::Flag(format!("{flag}{}", path.display()).into());
            (path.as_path(), place)
        });
        let recordings: Vec<Named<'_>> = recordings.collect();
        if let Some((path, _)) = recordings.iter().find(|(path, _)| path.to_str().is_none()) {
            let problem =
                format!("the name of `{}` is not UTF-8", plain(&path.display().to_string()));
            return stop_with(Exit::Usage, problem, "rename it, or name it through a link");
        }
        match scenarios.as_slice() {
            [] => Ok((None, recordings)),
            [scenario] => Ok((Some(scenario), recordings)),
            [one, two, ..] => {
                let [one, two] = [one, two].map(|path| plain(&path.display().to_string()));
                let problem = format!("`{one}` and `{two}` are both taken for scenarios");
                let hint = "name one scenario; a recording has to exist, and `proctor sessions import --list` says its format";
                stop_with(Exit::Usage, problem, hint)
            }
        }
    }

    /// Completes a command with the words of the same scenario, recordings and settings, behind its first
    /// word; a flag with its value is one word. A preset that was typed as a file is named by it.
    pub(super) fn complete(&self, command: &mut Vec<String>) {
        for file in self.strategy.iter().filter(|name| has_ending(name, "toml")) {
            let named = flag("--strategy", &preset_name(Path::new(file)));
            let own = command.iter_mut().filter(|word| **word == named);
            own.for_each(|word| *word = flag("--strategy", file));
        }
        let end = command.len().min(1);
        command.splice(end..end, self.words());
    }

    fn words(&self) -> Vec<String> {
        let named = self.named.iter().map(|path| path.display().to_string());
        let mut words: Vec<String> = named.map(|path| shell(&path)).collect();
        let sessions = self.session.iter().map(|path| path.display().to_string());
        words.extend(sessions.map(|path| flag("--session", &path)));
        words.extend(self.window.iter().map(|window| flag("--window", window)));
        let sample = self.sample.map(|count| count.to_string());
        words.extend(sample.map(|count| flag("--sample", &count)));
        words.extend(self.set.iter().map(|typed| flag("--set", typed)));
        words
    }

    /// Whether recordings are named.
    #[cfg(feature = "http")]
    pub(super) fn has_recordings(&self) -> bool {
        !self.session.is_empty() || self.named.iter().any(|path| is_recording(path))
    }

    /// Whether standard input and output belong to a strategy.
    pub(super) fn has_caller(&self) -> bool {
        self.strategy_cmd.iter().any(|command| command == programs::CALLER)
    }

    /// Refuses a strategy that has standard output to itself, where the command needs it.
    pub(super) fn refuse_caller(&self, command: &str) -> Result<()> {
        if !self.has_caller() {
            return Ok(());
        }
        let problem = format!(
            "`--strategy-cmd -` has standard output to itself, and `{command}` prints there"
        );
        let hint = "`run --strategy-cmd - -o report.json` writes its report to a file";
        stop_with(Exit::Usage, problem, hint)
    }

    /// Whether the strategies are those of the built-in quick start.
    fn has_default_strategies(&self) -> Result<bool> {
        let none = self.strategy.is_empty() && self.strategy_cmd.is_empty();
        Ok(none && self.scenario_and_recordings()?.0.is_none())
    }

    /// Strategies named on the command line; one that ends in `.toml` is the file of a preset.
    fn strategies(&self, table: &mut SettingTable) -> Result<()> {
        if self.strategy.is_empty() && self.strategy_cmd.is_empty() {
            return Ok(());
        }
        let list = table.get("strategies").and_then(Setting::as_list);
        let mut written = list.map(<[Setting]>::to_vec).unwrap_or_default();
        // A variant of a file's preset names it as one of the scenario's own: `mine[keep_last=5]`.
        for file in self.strategy.iter().filter(|name| has_ending(name, "toml")) {
            let place = Place::Flag(format!("--strategy {file}").into());
            written.push(Setting::new(preset_of(Path::new(file), &place)?, &place));
        }
        let mut items: Vec<Setting> =
            self.strategy.iter().map(|name| strategy(name, &written)).collect::<Result<_, _>>()?;
        items.extend(programs::of_flags(&self.strategy_cmd)?);
        table.put("strategies", items, &Place::Flag("--strategy".into()));
        Ok(())
    }
}

/// Names variables that are nearly one of [`ENVIRONMENT`], and set nothing.
fn say_misspelt(variables: impl Iterator<Item = String>) {
    let known = ENVIRONMENT.map(|(name, _)| name);
    for name in variables.filter(|name| !known.contains(&name.as_str())) {
        let Some(end) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let ends = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
        if let Some(meant) = did_you_mean(end, ends) {
            say!("!! environment variable `{name}` sets nothing, did you mean `{PREFIX}{meant}`?");
        }
    }
}

/// A strategy as it is typed: a file, one of the scenario's own, or a preset.
fn strategy(name: &str, written: &[Setting]) -> Result<Setting> {
    let place = Place::Flag(format!("--strategy {name}").into());
    if has_ending(name, "toml") {
        return Ok(Setting::new(preset_of(Path::new(name), &place)?, &place));
    }
    if let Some(own) = own_strategy(written, name, &place)? {
        return Ok(own);
    }
    let mut entry = SettingTable::new(place.clone());
    entry.put("preset", name, &place);
    Ok(Setting::new(entry, &place))
}

/// Leaves out the preset that is refused, as one is in a window no larger than its reserve, and says so; true if
/// there was one.
fn leave_out(table: &mut SettingTable, error: &SettingError) -> bool {
    let Place::File(file, _) = &error.place else {
        return false;
    };
    let Some(items) = strategies_in(table) else {
        return false;
    };
    let before = items.len();
    items.retain(|item| {
        let preset = item.as_table().and_then(|entry| entry.text("preset"));
        preset.is_none_or(|preset| **file != format!("presets/{preset}.toml"))
    });
    if items.len() == before {
        return false;
    }
    say!("note: a strategy is left out: {}; `--strategy` chooses others", error.problem);
    true
}

/// The entries of `[[strategies]]`.
fn strategies_in(table: &mut SettingTable) -> Option<&mut Vec<Setting>> {
    match &mut table.get_mut("strategies")?.value {
        SettingValue::List(items) => Some(items),
        _ => None,
    }
}

/// The strategy that the scenario itself calls so, with the overrides in brackets.
fn own_strategy(written: &[Setting], typed: &str, place: &Place) -> Result<Option<Setting>> {
    // A name that cannot be read is refused where presets are named.
    let Ok(typed) = typed.parse::<StrategyName>() else {
        return Ok(None);
    };
    let mut own = written.iter().filter_map(Setting::as_table);
    let Some(own) = own.find(|entry| entry.text("name") == Some(&*typed.base)) else {
        return Ok(None);
    };
    let mut entry = own.clone();
    for (path, value) in &typed.overrides {
        entry.overlay(&format!("set.{path}"), parse_value(value, place))?;
    }
    Ok(Some(Setting::new(entry, place)))
}

/// Whether a path on the command line is a recording, or a folder, rather than a scenario: a scenario
/// ends in `.toml`, or begins as no recording does.
fn is_recording(path: &Path) -> bool {
    path.is_dir()
        || !has_ending(path, "toml")
            && matches!(format_of(path), Ok(_) | Err(ImportError::Empty(_)))
}

/// Whether a file that is no recording for this reason may be a scenario.
fn may_be_scenario(path: &Path, error: &ImportError) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let data = matches!(ending, Some("json" | "jsonl"));
    match error {
        ImportError::NotJson(_) => !data && crate::files::read_to_string(path).is_ok(),
        ImportError::NotFound(_) => true,
        _ => false,
    }
}

/// The settings of a scenario, and the folder where its relative paths start.
fn table_of(path: &Path) -> Result<(SettingTable, PathBuf)> {
    let shown = path.display().to_string();
    // The reason why it is no recording says more than that it is no scenario.
    match format_of(path) {
        Err(error) if !has_ending(path, "toml") && !may_be_scenario(path, &error) => {
            return Err(error.into());
        }
        _ => {}
    }
    let what = if has_ending(path, "toml") { "scenario " } else { "" };
    let preset = PRESETS.iter().find(|(name, _)| shown.eq_ignore_ascii_case(name));
    let hint = match preset {
        Some((preset, _)) => {
            format!("to run a strategy, write `proctor run --strategy {preset}`")
        }
        None if has_ending(path, "toml") => "`proctor init` writes one to start from".to_owned(),
        None => "name a recording, a folder of recordings, or a scenario, which ends in `.toml`"
            .to_owned(),
    };
    let text = read_text(what, path, &hint)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut table = SettingTable::parse(&shown, &text).map_err(|error| {
        if has_ending(path, "toml") {
            return error;
        }
        let problem = format!("it is neither a scenario nor a recording: {}", error.problem);
        SettingError { problem, ..error }
            .with_hint("a scenario is TOML and ends in `.toml`; recordings are JSON: `proctor sessions` lists yours")
    })?;
    if table.get("stage").is_some() {
        let problem = format!("`{shown}` is a preset, and no scenario");
        let hint = format!("write `proctor run {}`", flag("--strategy", &shown));
        return stop_with(Exit::Invalid, problem, hint);
    }
    if table.get("name").is_none() {
        name_after(path, &mut table);
    }
    Ok((table, folder))
}

/// Recordings named on the command line take the place of the scenario's sessions; their paths start
/// at the working directory.
fn put_sessions(table: &mut SettingTable, recordings: &[Named<'_>]) {
    if recordings.is_empty() {
        return;
    }
    let items = recordings.iter().map(|(path, place)| {
        let mut entry = SettingTable::new(place.clone());
        entry.put("path", absolute(path), place);
        Setting::new(entry, place)
    });
    let place = Place::Flag("--session".into());
    table.put("sessions", items.collect::<Vec<_>>(), &place);
}

/// The absolute path of a typed path, which starts at the working directory.
fn absolute(path: &Path) -> String {
    let full = std::path::absolute(path);
    full.as_deref().unwrap_or(path).display().to_string()
}

/// A preset from a file, named after it.
fn preset_of(path: &Path, place: &Place) -> Result<SettingTable> {
    let hint = "`--strategy` takes the name of a preset, or a file that ends in `.toml`";
    let text = read_text("preset ", path, hint)?;
    let mut table = SettingTable::parse(&path.display().to_string(), &text)
        .context("cannot read the preset")?;
    if table.entries().is_empty() {
        let problem = format!("preset `{}` is empty", path.display());
        let hint = "`proctor strategies show codex` prints one to begin with";
        return stop_with(Exit::Invalid, problem, hint);
    }
    table.put("name", preset_name(path), place);
    Ok(table)
}

/// The name of a preset in a file.
fn preset_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A scenario that names itself nothing is called after its file, where that is a name.
fn name_after(path: &Path, table: &mut SettingTable) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.to_ascii_lowercase().replace([' ', '+'], "-");
    if is_valid_id(&name) && name.len() <= 60 {
        let place = table.place().clone();
        table.put("name", name, &place);
    }
}

/// `--window`: a number, `native`, `fit:F`, or `matched`.
fn set_window(table: &mut SettingTable, window: &str, place: &Place) -> Result<()> {
    // With `matched` the size stays as the scenario names it.
    let own = table.get("window").and_then(Setting::as_table).cloned();
    if let Some(mut own) = own.filter(|_| window != "matched") {
        for key in ["mode", "fraction", "tokens"] {
            own.remove(key);
        }
        let place = own.place().clone();
        table.put("window", own, &place);
    }
    if let Some(fraction) = window.strip_prefix("fit:") {
        table.overlay("window.mode", Setting::new("fit", place))?;
        table.overlay("window.fraction", parse_value(fraction, place))?;
    } else if matches!(window, "native" | "matched") {
        table.overlay("window.mode", Setting::new(window, place))?;
    } else {
        let typed = tokens(window).ok();
        let Some(tokens) = typed.and_then(|tokens| i64::try_from(tokens.0).ok()) else {
            let error = SettingError::new(place, format!("`{window}` is not a window"));
            let hint =
                "write a number of tokens (`200000`, `200k`), `native`, `fit:0.6`, or `matched`";
            return Err(error.with_hint(hint).into());
        };
        table.overlay("window.tokens", Setting::new(SettingValue::Integer(tokens), place))?;
    }
    Ok(())
}

/// `--set PATH=VALUE`: a path that begins with a strategy's name changes that strategy.
fn set(table: &mut SettingTable, assignment: &str) -> Result<()> {
    let Some((path, value)) = assignment.split_once('=') else {
        let problem = format!("`--set {assignment}` sets nothing");
        return stop_with(Exit::Usage, problem, "write `--set PATH=VALUE`");
    };
    let place = Place::Flag(format!("--set {assignment}").into());
    // The path of a file starts at the working directory.
    let setting = if path == "cache.prices" {
        Setting::new(absolute(Path::new(value)), &place)
    } else {
        parse_value(value, &place)
    };
    let mut matched = false;
    for item in strategies_in(table).into_iter().flatten() {
        let SettingValue::Table(entry) = &mut item.value else {
            continue;
        };
        let name = entry.text("name").or_else(|| entry.text("preset"));
        let knob = name.and_then(|name| path.strip_prefix(name)?.strip_prefix('.'));
        if let Some(knob) = knob {
            let set = entry.get("set").and_then(Setting::as_table).cloned();
            let mut knobs = set.unwrap_or_else(|| SettingTable::new(place.clone()));
            knobs.refuse_second_flag(knob, &place)?;
            knobs.overlay(knob, setting.clone())?;
            entry.put("set", knobs, &place);
            matched = true;
        }
    }
    if !matched {
        let preset =
            path.split('.').next().filter(|name| PRESETS.iter().any(|(own, _)| own == name));
        if let Some(preset) = preset {
            let problem = format!("no strategy of this run is `{preset}`");
            return Err(SettingError::new(&place, problem)
                .with_hint(format!("`--strategy {preset}` adds it"))
                .into());
        }
        table.refuse_second_flag(path, &place)?;
        return Ok(table.overlay(path, setting)?);
    }
    // Variants that the flag made alike are one strategy.
    let mut seen = BTreeSet::new();
    if let Some(items) = strategies_in(table) {
        items.retain(|item| {
            let new = seen.insert(item.value.to_string());
            if !new {
                say!("note: `--set {assignment}` makes two strategies alike; they are run once");
            }
            new
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_and_the_window_of_the_quick_start_are_those_of_no_agent() {
        let scenario = |of_agents| Inputs { of_agents, ..Inputs::default() }.read().unwrap();
        let [own, agents] = [scenario(false), scenario(true)];
        assert!(own.cache.model.is_some() && agents.cache.model.is_none());
        assert_eq!(agents.window.to_string(), "native");
        assert_ne!(own.window.to_string(), "native");
    }
}
