//! Scenario files: what is to be run, checked and complete.
//!
//! A file, the environment and the command line are laid over each other as one table, which is
//! read once into a [`Scenario`]. Paths in a file are relative to it.

use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::bill::Sizes;
use crate::model::fault::Faults;
use crate::probe::Selection;
use crate::probe::recovery::Recovery;
use crate::session::synthetic::Recipe;
use crate::session::wire::Provider;
use crate::settings::{Place, Reader, Setting, SettingError, Table, Value};
use crate::strategy::StrategySpec;
use crate::strategy::trigger::{Condition, Trigger};
use crate::tokens::COUNTERS;
use crate::units::{Tokens, is_valid_id};
use crate::window::{NativeWindow, Window};

mod cache;
mod faults;
mod follow;
mod gate;
mod models;
mod probes;
mod recipe;
mod recovery;

pub use cache::CacheSetting;
pub use gate::{GateSetting, read_gate};
pub use models::{LiveSetting, ModelSetting, ModelsSetting, Pace};
pub use probes::ProbeFile;

/// The scenario that runs when none is named.
pub const QUICK_START: &str = include_str!("../scenarios/quick-start.toml");

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name, which becomes part of the run folder's.
    pub name: String,
    /// One sentence, printed above the table.
    pub description: String,
    /// Orders strategies within a session.
    pub seed: u64,
    /// Name of the token counter.
    pub counter: String,
    /// Repeats of each cell.
    pub repeats: u32,
    /// Whose rules prompts are checked by.
    pub provider: Provider,
    /// Whether prompts are sized as billed, where a session carries usage.
    pub sizes: Sizes,
    /// The window of each session.
    pub window: WindowSetting,
    /// When the controls compact.
    pub trigger: Trigger,
    /// Where sessions come from, in order.
    pub sessions: Vec<SessionSource>,
    /// What is compared, in order.
    pub strategies: Vec<StrategySpec>,
    /// Files of facts that are asked for, beside what is known of the sessions already.
    pub probes: Vec<ProbeFile>,
    /// Which items are asked.
    pub selection: Selection,
    /// Who summarises, reads and judges.
    pub models: ModelsSetting,
    /// How what was removed is searched for what is lost; nothing where it is not.
    pub recovery: Option<Recovery>,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// What is said of the provider's prompt cache and prices.
    pub cache: CacheSetting,
    /// What a change must not make worse.
    pub gate: GateSetting,
}

/// How large the window is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WindowSetting {
    /// The mode.
    pub mode: WindowMode,
    /// Whether all strategies share one trigger, the scenario's: with `mode = "matched"`.
    pub is_matched: bool,
    /// Tokens the model may write in one response; nothing: what the recorded product reserves, in
    /// its own window, else none.
    pub max_output: Option<Tokens>,
    /// Tokens the provider adds to the prompt when it decides whether the prompt fits.
    pub overflow_reserve: Tokens,
    /// Billed tokens in front of every prompt of a session that neither holds its system prompt and
    /// tools nor tells their size.
    pub head: Option<Tokens>,
}

/// Where the window's size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum WindowMode {
    /// This many tokens; without a number the session's own window, else 200,000.
    Native(Option<Tokens>),
    /// This share of the largest prompt of the full history, so that short sessions exercise
    /// every strategy.
    Fit(f64),
}

impl WindowSetting {
    /// The window for one session: `native` is its own, `largest` its largest prompt, of which `head`
    /// tokens are in front of every prompt. A share of the session is a share of what follows them.
    pub fn resolve(&self, native: NativeWindow, largest: Tokens, head: Tokens) -> Window {
        let (tokens, reserved) = match self.mode {
            WindowMode::Native(None) => (native.tokens, native.max_output),
            WindowMode::Native(Some(tokens)) => (tokens, Tokens::ZERO),
            WindowMode::Fit(fraction) => (head + (largest - head).fraction(fraction), Tokens::ZERO),
        };
        Window {
            tokens,
            max_output: self.max_output.unwrap_or(reserved),
            overflow_reserve: self.overflow_reserve,
        }
    }
}

impl fmt::Display for WindowSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            WindowMode::Native(None) => f.write_str("native")?,
            WindowMode::Native(Some(tokens)) => write!(f, "{tokens} tokens")?,
            WindowMode::Fit(fraction) => write!(f, "fit:{fraction}")?,
        }
        if self.is_matched {
            f.write_str(", triggers matched")?;
        }
        if let Some(output) = self.max_output.filter(|output| *output > Tokens::ZERO) {
            write!(f, ", {output} reserved for output")?;
        }
        Ok(())
    }
}

/// Where sessions come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionSource {
    /// A recording, with what named it.
    File(PathBuf, Place),
    /// What was found in a folder that was named. It is passed over if it holds no conversation.
    Found(PathBuf),
    /// Made to order.
    Synthetic(Recipe),
}

impl Scenario {
    /// Reads a scenario. `folder` is where its relative paths start.
    pub fn read(table: &Table, folder: &Path) -> Result<Self, SettingError> {
        let mut reader = Reader::new(table, "");
        let name = reader.text("name")?.unwrap_or("scenario").to_owned();
        if !is_valid_id(&name) || name.len() > 60 {
            let problem = format!("`name` must be `[a-z0-9][a-z0-9._@-]*`, not `{name}`");
            return Err(SettingError::new(place_of(table, "name"), problem));
        }
        let description = reader.text("description")?.unwrap_or_default().to_owned();
        let seed = reader.whole("seed", 0, u64::MAX)?.unwrap_or(1);
        let counters: Vec<&'static str> = COUNTERS.iter().map(|(name, _)| *name).collect();
        let counter = reader
            .choice("counter", &counters)?
            .unwrap_or("o200k")
            .to_owned();
        let sizes = match reader.choice("sizes", &Sizes::NAMES)? {
            Some("counted") => Sizes::Counted,
            _ => Sizes::Billed,
        };
        let provider = match reader.choice("provider", &Provider::ALL.map(Provider::name))? {
            Some("openai") => Provider::OpenAi,
            _ => Provider::Anthropic,
        };
        let repeats = small(reader.whole("repeats", 1, 1_000)?.unwrap_or(1));
        let (window, trigger) = read_window(reader.table("window")?)?;
        let models = models::read(reader.table("models")?, folder)?;
        models::check(&models)?;
        let (probes, selection) = probes::read(reader.table("probes")?, folder, seed)?;
        let recovery = recovery::read(reader.table("recovery")?)?;
        let faults = faults::read(reader.table("faults")?)?;
        let cache = cache::read(reader.table("cache")?, folder)?;
        let gate = gate::read(reader.table("gate")?)?;
        let mut sessions = Vec::new();
        for table in reader.tables("sessions")? {
            read_sessions(table, folder, &mut sessions)?;
        }
        let mut strategies: Vec<StrategySpec> = Vec::new();
        for table in reader.tables("strategies")? {
            let mut spec = read_strategy(table, &trigger)?;
            if window.is_matched {
                spec = spec.matched();
            }
            if strategies.iter().any(|other| other.name() == spec.name()) {
                let problem = format!("strategy `{}` is named twice", spec.name());
                return Err(SettingError::new(table.place(), problem));
            }
            strategies.push(spec);
        }
        reader.finish()?;
        let strategies = follow::find_followed(strategies, table.place())?;
        if sessions.is_empty() {
            return Err(
                SettingError::new(table.place(), "the scenario names no session")
                    .with_hint("add `[[sessions]]` with `path = \"…\"` or `synthetic = { … }`"),
            );
        }
        if strategies.is_empty() {
            return Err(
                SettingError::new(table.place(), "the scenario names no strategy")
                    .with_hint("add `[[strategies]]` with `preset = \"observation-masking\"`"),
            );
        }
        Ok(Self {
            name,
            description,
            seed,
            counter,
            repeats,
            provider,
            sizes,
            window,
            trigger,
            sessions,
            strategies,
            probes,
            selection,
            models,
            recovery,
            faults,
            cache,
            gate,
        })
    }
}

fn place_of<'a>(table: &'a Table, key: &str) -> &'a Place {
    table
        .get(key)
        .map_or(table.place(), |setting| &setting.place)
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn read_window(reader: Option<Reader<'_>>) -> Result<(WindowSetting, Trigger), SettingError> {
    // The default of the controls: cut at four fifths of the window.
    let mut trigger = Trigger::of(Condition::WindowFraction(0.8));
    let mut window = WindowSetting {
        mode: WindowMode::Native(None),
        is_matched: false,
        max_output: None,
        overflow_reserve: Tokens::ZERO,
        head: None,
    };
    let Some(mut reader) = reader else {
        return Ok((window, trigger));
    };
    let mode = reader.choice("mode", &["native", "fit", "matched"])?;
    window.is_matched = mode == Some("matched");
    let fraction = reader.fraction("fraction")?;
    let tokens = reader.whole("tokens", 1, u64::MAX)?.map(Tokens);
    window.mode = match (mode, fraction, tokens) {
        // The size of a window in which triggers are matched is named as any other.
        (Some("fit" | "matched"), Some(fraction), None) if fraction > 0.0 => {
            WindowMode::Fit(fraction)
        }
        (Some("fit"), _, None) => {
            return Err(
                SettingError::new(reader.place(), "`window.fraction` must be set")
                    .with_hint("with `mode = \"fit\"`, as in `fraction = 0.6`"),
            );
        }
        (Some("fit"), _, Some(_)) => {
            let problem = "`window.tokens` has no meaning with `mode = \"fit\"`";
            return Err(SettingError::new(reader.place(), problem));
        }
        (_, None, tokens) => WindowMode::Native(tokens),
        (_, Some(_), _) => {
            let problem = "`window.fraction` needs `mode = \"fit\"` and no `tokens`";
            return Err(SettingError::new(reader.place(), problem));
        }
    };
    if let Some(tokens) = reader.whole("max_output", 0, u64::MAX)? {
        window.max_output = Some(Tokens(tokens));
    }
    if let Some(tokens) = reader.whole("overflow_reserve", 0, u64::MAX)? {
        window.overflow_reserve = Tokens(tokens);
    }
    window.head = reader.whole("head_tokens", 0, 100_000_000)?.map(Tokens);
    if let Some(setting) = reader.setting("trigger") {
        trigger = Trigger::read("window.trigger", setting)?;
    }
    reader.finish()?;
    Ok((window, trigger))
}

fn read_sessions(
    table: &Table,
    folder: &Path,
    sessions: &mut Vec<SessionSource>,
) -> Result<(), SettingError> {
    let mut reader = Reader::new(table, "sessions");
    let path = reader.text("path")?;
    let count = small(reader.whole("count", 1, 100_000)?.unwrap_or(1));
    let recipe = match reader.table("synthetic")? {
        Some(recipe) => Some(recipe::read(recipe)?),
        None => None,
    };
    match (path, recipe) {
        (Some(path), None) if table.get("count").is_none() => {
            let place = place_of(table, "path").clone();
            sessions.push(SessionSource::File(folder.join(path), place));
        }
        (None, Some(recipe)) => {
            for n in 0..u64::from(count) {
                let seed = recipe.seed.wrapping_add(n);
                sessions.push(SessionSource::Synthetic(Recipe {
                    seed,
                    ..recipe.clone()
                }));
            }
        }
        (Some(_), None) => {
            let problem = "`sessions.count` needs `synthetic`: a file is read once";
            return Err(SettingError::new(place_of(table, "count"), problem));
        }
        (Some(_), Some(_)) => {
            let problem = "`[[sessions]]` has both `path` and `synthetic`: make two of them";
            return Err(SettingError::new(table.place(), problem));
        }
        (None, None) => {
            let problem = "`[[sessions]]` needs either `path` or `synthetic`";
            return Err(SettingError::new(table.place(), problem));
        }
    }
    reader.finish()
}

fn read_strategy(table: &Table, trigger: &Trigger) -> Result<StrategySpec, SettingError> {
    let mut reader = Reader::new(table, "strategies");
    let preset = reader.text("preset")?;
    let name = reader.text("name")?;
    let set = reader.setting("set");
    let mut spec = if let Some(preset) = preset {
        if let Some(setting) = table.get("stage") {
            let problem = "`stage` has no meaning beside `preset`: use `set`, or write a preset";
            return Err(SettingError::new(&setting.place, problem));
        }
        let mut spec = StrategySpec::parse(preset, trigger, place_of(table, "preset"))?;
        if let Some(name) = name {
            spec = spec.renamed(name, place_of(table, "name"))?;
        }
        reader.finish()?;
        spec
    } else {
        let Some(name) = name else {
            let problem = "`[[strategies]]` needs `preset`, or `name` and stages";
            return Err(SettingError::new(table.place(), problem));
        };
        let mut own = table.clone();
        own.remove("name");
        own.remove("set");
        StrategySpec::of(name, own, trigger)?.renamed(name, place_of(table, "name"))?
    };
    match set {
        None => {}
        Some(Setting {
            value: Value::Table(knobs),
            ..
        }) => {
            for (path, setting) in knobs.entries() {
                spec = with_flattened(spec, path, setting)?;
            }
        }
        Some(setting) => {
            return Err(
                SettingError::new(&setting.place, "`strategies.set` must be a table")
                    .with_hint("as in `set = { clear_results.keep_last = 5 }`"),
            );
        }
    }
    Ok(spec)
}

/// `set = { a.b = 1 }` and `set = { "a.b" = 1 }` mean the same.
fn with_flattened(
    spec: StrategySpec,
    path: &str,
    setting: &Setting,
) -> Result<StrategySpec, SettingError> {
    match &setting.value {
        Value::Table(inner) if path.rsplit('.').next() != Some("when") => inner
            .entries()
            .iter()
            .try_fold(spec, |spec, (key, setting)| {
                with_flattened(spec, &format!("{path}.{key}"), setting)
            }),
        _ => spec.with(path, setting.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::KnownBy;

    #[track_caller]
    fn check(text: &str, says: &str) {
        let said = Table::parse("s.toml", text)
            .and_then(|table| Scenario::read(&table, Path::new("/base")))
            .map_or_else(
                |error| error.to_string(),
                |scenario| format!("{scenario:?}"),
            );
        assert!(said.contains(says), "{said}\n\ndoes not say\n\n{says}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let good = "[[sessions]]\npath = 'a.jsonl'\n[[strategies]]\npreset = 'none'\n";
        check(good, "/base/a.jsonl");
        check(
            "nam = 'x'\n",
            "line 1: unknown key `nam`, did you mean `name`?",
        );
        check(
            "[[strategies]]\npreset = 'none'",
            "the scenario names no session",
        );
        check("[[sessions]]\npath = 'a'", "the scenario names no strategy");
        check("name = '../x'", "`name` must be");
        check("provider = 'opnai'", "line 1: ");
        check(&format!("provider = 'openai'\n{good}"), "provider: OpenAi");
        check("[window]\nmode = 'fit'", "`window.fraction` must be set");
        check(
            "[window]\nfraction = 0.5",
            "`window.fraction` needs `mode = \"fit\"` and no `tokens`",
        );
        check(
            "[[strategies]]\n\npreset = 'nome'",
            "line 3: unknown strategy `nome`, did you mean `none`?",
        );
        check(
            "[[strategies]]\npreset = 'observation-masking'\nset = { clear_results.keep_last = 0 }",
            "line 3: `clear_results.keep_last` must be a whole number of at least 1, not `0`",
        );
        check(
            "[[strategies]]\npreset = 'none'\n[[strategies]]\npreset = 'none'",
            "line 3: strategy `none` is named twice",
        );
        check(
            "[[sessions]]\nsynthetic = { family = 'code-review' }",
            "needs either `rounds` or `tokens`",
        );
        check(
            "[[sessions]]\nsynthetic = { family = 'code-reveiw', rounds = 3 }",
            "did you mean `code-review`?",
        );
        check(
            "[[sessions]]\nsynthetic = { family = 'teaching', rounds = 3, observation_percent = 20 }",
            "observation_percent` must be a whole number from 26 to 84, not `20`",
        );
        check(
            "[[sessions]]\nsynthetic = { family = 'teaching', rounds = 3, distracters = 2 }",
            "distracters`, did you mean `distractors`?",
        );
        check(
            "[probes]\npoints = [50, 25]",
            "line 2: `probes.points` must be a list of ascending whole numbers from 1 to 100",
        );
        check(
            "[probes]\nkinds = ['recal']",
            "line 2: `probes.kinds` names no kind of probe: `recal`",
        );
        check(
            &format!("seed = 7\n{good}[probes]\npoints = [50]\nitems = 9\nkinds = ['decoy']"),
            "Selection { points: [50], items: Some(9), kinds: [Decoy], seed: 7 }",
        );
        check(
            "[[sessions]]\npath = 'a'\n[[strategies]]\npreset = 'tail@nome'\n[[strategies]]\npreset = 'none'",
            "`tail@nome` follows `nome`, which the scenario does not run, did you mean `none`?",
        );
        check(
            "[[sessions]]\npath = 'a'\n[[strategies]]\npreset = 'tail@tail@none'\n[[strategies]]\npreset = 'tail@none'\n[[strategies]]\npreset = 'none'",
            "`tail@tail@none` follows `tail@none`, which itself follows another strategy",
        );
        check(
            "[[strategies]]\nname = 'mine'\n[[strategies.stage]]\nkind = 'clear_result'",
            "line 4: unknown stage kind `clear_result`, did you mean `clear_results`?",
        );
    }

    #[test]
    fn a_control_follows_what_was_changed_from_outside() {
        let text = "[[sessions]]\npath = 'a'\n\
             [[strategies]]\npreset = 'tail@observation-masking'\n\
             [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.every = 10 }\n\
             [[strategies]]\npreset = 'observation-masking'\nset = { clear_results.every = 5 }";
        let table = Table::parse("s.toml", text).unwrap();
        let scenario = Scenario::read(&table, Path::new("")).unwrap();
        let changed = "observation-masking[clear_results.every=10]";
        let [control, ..] = &scenario.strategies[..] else {
            panic!("no strategies");
        };
        assert_eq!(control.name(), format!("tail@{changed}"));
        assert_eq!(control.follows(), Some(changed));
    }

    #[test]
    fn a_matched_window_gives_every_waiting_stage_the_same_trigger() {
        let text = "[window]\nmode = 'matched'\ntokens = 9000\ntrigger = { tokens_over = 70 }\n\
             [[sessions]]\npath = 'a'\n\
             [[strategies]]\npreset = 'learn-claude-code-s06'\n\
             [[strategies]]\nname = 'own'\n\
             [[strategies.stage]]\nkind = 'summarize'\nwhen = { any = ['overflow', 'marker'] }\n\
             [[strategies.stage]]\nkind = 'drop_oldest'\nwhen = 'overflow'";
        let table = Table::parse("s.toml", text).unwrap();
        let scenario = Scenario::read(&table, Path::new("")).unwrap();
        assert_eq!(scenario.window.to_string(), "9000 tokens, triggers matched");
        let stages: Vec<String> = scenario
            .strategies
            .iter()
            .flat_map(|spec| spec.stages().unwrap())
            .collect();
        assert_eq!(
            stages,
            [
                "clear_results (before every call)",
                "summarize (over 70 tokens)",
                "summarize (over 70 tokens or on overflow)",
                "drop_oldest (on overflow)",
            ]
        );
    }

    #[test]
    fn a_window_comes_from_the_scenario_or_the_session() {
        let window = |mode| WindowSetting {
            mode,
            is_matched: false,
            max_output: None,
            overflow_reserve: Tokens::ZERO,
            head: None,
        };
        let resolve = |mode, head| {
            let native = NativeWindow {
                tokens: Tokens(7),
                max_output: Tokens(3),
                known_by: KnownBy::Model,
            };
            let window = window(mode).resolve(native, Tokens(1_000), Tokens(head));
            window.tokens.0
        };
        assert_eq!(resolve(WindowMode::Native(None), 0), 7);
        assert_eq!(resolve(WindowMode::Native(Some(Tokens(9))), 0), 9);
        assert_eq!(resolve(WindowMode::Fit(0.6), 0), 600);
        // A share of what no strategy can change would be no share of the session.
        assert_eq!(resolve(WindowMode::Fit(0.6), 500), 800);
    }
}
