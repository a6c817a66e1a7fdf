//! Scenario files: what is to be run, checked and complete.
//!
//! A file, the environment and the command line are laid over each other as one table, which is
//! read once into a [`Scenario`]. Paths in a file are relative to it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value as Json;

use crate::bill::Sizes;
use crate::model::cassette::ReplayMode;
use crate::model::fault::Faults;
use crate::model::price::Placement;
use crate::probe::recovery::Recovery;
use crate::probe::{ProbeKind, Selection};
use crate::session::synthetic::{FAMILIES, Language, Recipe};
use crate::session::wire::{Provider, RuleSet};
use crate::settings::{
    CheckedTable, Keys, Place, Reader, Setting, SettingError, SettingTable, SettingValue,
};
use crate::strategy::StrategySpec;
use crate::strategy::preset::PRESETS;
use crate::strategy::trigger::{Trigger, measures};
use crate::tokens::COUNTERS;
use crate::units::is_valid_id;
use crate::window::PromptSizes;

mod cache;
mod faults;
mod follow;
mod gate;
mod models;
mod probes;
mod sessions;
mod window;

pub use cache::CacheSetting;
pub use gate::{GateSetting, read_gate};
pub(crate) use models::is_at_home;
pub use models::{Home, LiveSetting, ModelSetting, ModelsSetting, RequestPace, is_variable_name};
pub use sessions::synthetic;
pub use window::{LineSource, WindowMode, WindowSetting};

/// The scenario that runs when none is named.
pub const QUICK_START: &str = include_str!("../scenarios/quick-start.toml");

/// The scenario for models that run on this machine.
pub const LOCAL: &str = include_str!("../scenarios/local.toml");

/// A value read from a scenario, or its first mistake.
type Result<T> = std::result::Result<T, SettingError>;

/// A run, as it is planned.
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
    pub provider: RuleSet,
    /// Whether prompts are sized as billed, where a session carries usage.
    pub sizes: Sizes,
    /// Whether the conversations of sub-agents are replayed, too.
    pub side_chains: bool,
    /// Whether a recording in a folder that cannot be read ends the run.
    pub strict: bool,
    /// How many of the sessions are replayed, where not all are: each with those of its sub-agents.
    pub sample: Option<usize>,
    /// The window of each session.
    pub window: WindowSetting,
    /// When the controls compact.
    pub trigger: Trigger,
    /// Where sessions come from, in order.
    pub sessions: Vec<SessionSource>,
    /// The strategies to compare, in order.
    pub strategies: Vec<StrategySpec>,
    /// Whether a run adds `tail@S` for each strategy S: its control at equal budget.
    pub controls: bool,
    /// Files of further facts about the sessions, each with the place that names it.
    pub probes: Vec<(PathBuf, Place)>,
    /// Which items are asked.
    pub selection: Selection,
    /// Who summarises, reads and judges.
    pub models: ModelsSetting,
    /// How removed text is searched for lost facts, if it is.
    pub recovery: Option<Recovery>,
    /// Faults that are injected.
    pub faults: Faults,
    /// The provider's prompt cache and prices.
    pub cache: CacheSetting,
    /// Limits on how much worse a change may be.
    pub gate: GateSetting,
}

/// Where sessions come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionSource {
    /// A recording, with what named it; one that was found in a named folder is passed over if it holds no
    /// conversation.
    File(PathBuf, Option<Place>),
    /// Made to order.
    Synthetic(Recipe),
}

/// The keys of a scenario.
static KEYS: LazyLock<Keys> =
    LazyLock::new(|| Keys::parse(include_str!("scenario/keys.toml"), names));

/// The names that a key may take.
fn names(what: &str) -> Vec<&'static str> {
    match what {
        "counters" => COUNTERS.iter().map(|(name, _)| *name).collect(),
        "families" => FAMILIES.iter().map(|family| family.name).collect(),
        "kinds" => ProbeKind::ALL.map(ProbeKind::name).to_vec(),
        "languages" => Language::ALL.map(Language::code).to_vec(),
        "measures" => measures(),
        "placements" => Placement::ALL.map(Placement::name).to_vec(),
        "presets" => PRESETS.iter().map(|(name, _)| *name).collect(),
        "providers" => Provider::ALL.map(Provider::name).to_vec(),
        "rule_sets" => RuleSet::ALL.map(RuleSet::name).to_vec(),
        "replay_modes" => ReplayMode::ALL.map(ReplayMode::name).to_vec(),
        _ => Vec::new(),
    }
}

/// The JSON schema of a section of keys.
pub fn schema(section: &str) -> Json {
    let mut schema = KEYS.object(section);
    if let Some(faults) = schema["properties"].get_mut("faults") {
        *faults = faults::schema();
    }
    schema
}

/// The dotted path and the default, as TOML, of every key of a scenario that has one.
pub fn defaults() -> Vec<(String, String)> {
    KEYS.defaults("scenario", "")
}

impl Scenario {
    /// Reads a scenario. `folder` is where its relative paths start.
    pub fn read(table: &SettingTable, folder: &Path) -> Result<Self> {
        let keys = CheckedTable::new(table, "", (&KEYS, "scenario"))?;
        // A value of the wrong type is reported before an unknown name.
        keys.reader().text("name")?;
        let name = keys.text("name").unwrap_or_default().to_owned();
        if !is_valid_id(&name) || name.len() > 60 {
            let problem = format!("`name` must be `[a-z0-9][a-z0-9._@-]*`, not `{name}`");
            return Err(SettingError::new(keys.place_of("name"), problem));
        }
        let seed = keys.whole("seed").unwrap_or_default();
        let (window, trigger) = window::read(&keys.table("window")?)?;
        let models = models::read(&keys.table("models")?, folder)?;
        models::check(&models)?;
        let probes = keys.table("probes")?;
        let selection = probes::read(&probes, seed)?;
        let recovery = keys.table("recovery")?;
        let recovery = keys.setting("recovery").map(|_| recovery.read());
        let faults = faults::read(keys.reader().table("faults")?)?;
        let cache = cache::read(&keys.table("cache")?, folder)?;
        let gate = gate::read(&keys.table("gate")?)?;
        let mut sessions = Vec::new();
        for table in keys.reader().tables("sessions")? {
            sessions.extend(sessions::read(table, folder)?);
        }
        let mut strategies: Vec<StrategySpec> = Vec::new();
        for table in keys.reader().tables("strategies")? {
            let mut spec = read_strategy(table, &trigger)?;
            if window.is_matched {
                spec = spec.matched();
            }
            if strategies.iter().any(|other| other.name() == spec.name()) {
                let problem = format!("strategy `{}` is named twice", spec.name());
                let hint = "leave one of them out, or give it a `name` of its own";
                return Err(SettingError::new(table.place(), problem).with_hint(hint));
            }
            strategies.push(spec);
        }
        if let Some(window) = window.fixed() {
            for spec in &strategies {
                spec.check_window(window, &PromptSizes::default())?;
            }
        }
        let strategies = follow::find_followed(strategies, table.place())?;
        let problem_and_hint = if sessions.is_empty() {
            Some(("session", "add `[[sessions]]` with `path = \"…\"` or `synthetic = { … }`"))
        } else {
            let hint = "add `[[strategies]]` with `preset = \"observation-masking\"`";
            strategies.is_empty().then_some(("strategy", hint))
        };
        if let Some((what, hint)) = problem_and_hint {
            let problem = format!("the scenario names no {what}");
            return Err(SettingError::new(table.place(), problem).with_hint(hint));
        }
        let provider = keys.one_of("provider", RuleSet::ALL, RuleSet::name);
        let sizes = keys.one_of("sizes", [Sizes::Billed, Sizes::Counted], Sizes::name);
        Ok(Self {
            name,
            description: keys.text("description").unwrap_or_default().to_owned(),
            seed,
            counter: keys.text("counter").unwrap_or_default().to_owned(),
            repeats: keys.whole("repeats").unwrap_or_default(),
            provider: provider.unwrap_or_default(),
            sizes: sizes.unwrap_or_default(),
            side_chains: keys.flag("side_chains"),
            strict: keys.flag("strict"),
            sample: keys.whole("sample"),
            window,
            trigger,
            sessions,
            strategies,
            controls: keys.flag("controls"),
            probes: probes.files("files", folder),
            selection,
            models,
            recovery: recovery.transpose()?,
            faults,
            cache,
            gate,
        })
    }
}

impl Scenario {
    /// The same with the control `tail@S` of each strategy S, where the scenario wants controls and does
    /// not name that one itself. Reports have no rows of them: a verdict compares with them.
    #[must_use]
    pub fn with_controls(mut self) -> Self {
        if self.controls {
            let added = self.strategies.iter().filter_map(StrategySpec::added_control);
            let new = added
                .filter(|spec| self.strategies.iter().all(|other| other.name() != spec.name()));
            let controls: Vec<StrategySpec> = new.collect();
            self.strategies.extend(controls);
        }
        self
    }
}

fn read_strategy(table: &SettingTable, trigger: &Trigger) -> Result<StrategySpec> {
    let mut reader = Reader::new(table, "strategies");
    let preset = reader.text("preset")?;
    let name = reader.text("name")?;
    let set = reader.setting("set");
    let spec = if let Some(preset) = preset {
        if let Some(setting) = table.get("stage") {
            let problem = "`stage` cannot be combined with `preset`: use `set`, or write a preset";
            return Err(SettingError::new(&setting.place, problem));
        }
        let mut spec = StrategySpec::parse(preset, trigger, table.place_of("preset"))?;
        if let Some(name) = name.filter(|name| *name != preset) {
            spec = spec.renamed(name, table.place_of("name"))?;
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
        let spec = StrategySpec::of(name, own, trigger)?;
        if spec.stages()?.is_empty() {
            let problem = format!("strategy `{name}` does nothing: it has no stage and no command");
            let hint =
                "name a preset, as in `preset = \"codex\"`; full history is `preset = \"none\"`";
            return Err(SettingError::new(table.place(), problem).with_hint(hint));
        }
        spec.renamed(name, table.place_of("name"))?
    };
    let Some(setting) = set else {
        return Ok(spec);
    };
    let Some(knobs) = setting.as_table() else {
        let error = SettingError::new(&setting.place, "`strategies.set` must be a table");
        return Err(error.with_hint("as in `set = { clear_results.keep_last = 5 }`"));
    };
    let mut entries = knobs.entries().iter();
    entries.try_fold(spec, |spec, (path, setting)| with_flattened(spec, path, setting))
}

/// `set = { a.b = 1 }` and `set = { "a.b" = 1 }` mean the same.
fn with_flattened(spec: StrategySpec, path: &str, setting: &Setting) -> Result<StrategySpec> {
    match &setting.value {
        SettingValue::Table(inner) if path.rsplit('.').next() != Some("when") => {
            inner.entries().iter().try_fold(spec, |spec, (key, setting)| {
                with_flattened(spec, &format!("{path}.{key}"), setting)
            })
        }
        _ => spec.with(path, setting.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, says: &str) {
        let said = SettingTable::parse("s.toml", text)
            .and_then(|table| Scenario::read(&table, Path::new("/base")))
            .map_or_else(|error| error.to_string(), |scenario| format!("{scenario:?}"));
        assert!(said.contains(says), "{said}\n\ndoes not say\n\n{says}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let good = "[[sessions]]\npath = 'a.jsonl'\n[[strategies]]\npreset = 'none'\n";
        check(good, "/base/a.jsonl");
        check("nam = 'x'\n", "line 1: unknown key `nam`, did you mean `name`?");
        check("[[strategies]]\npreset = 'none'", "the scenario names no session");
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
        for taken in ["full", "tail@mine", "recorded"] {
            let own = format!("[[strategies]]\nname = '{taken}'\ncommand = ['true']");
            let says = format!("line 2: a strategy cannot be called `{taken}`");
            check(&own, &says);
        }
        check(
            "[[sessions]]\nsynthetic = { family = 'code-review' }",
            "needs one of `rounds`, `tokens` and `for_window`",
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
        let small = "[window]\ntokens = 13_000\n[[sessions]]\npath = 'a'\n[[strategies]]\nname = 'mine'\n[[strategies.stage]]\nkind = 'summarize'\n";
        check(
            &format!("{small}when = {{ any = ['manual', {{ reserve_tokens = 13_000 }}] }}"),
            "line 9: `summarize.when` of `mine` reserves 13000 tokens of the effective window, which has 13000: it would hold before",
        );
        check(
            &format!(
                "{small}when = {{ all = [{{ window_over = 13_000 }}, {{ reserve_tokens = 13_000 }}] }}"
            ),
            "name: \"mine\"",
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
            "Selection { points: [50], items: Some(9), kinds: [Decoy], seed: 7, only: [] }",
        );
        check(
            "[[sessions]]\npath = 'a'\n[[strategies]]\npreset = 'tail@nome'\n[[strategies]]\npreset = 'none'",
            "line 4: `tail@nome` follows `nome`, which the scenario does not run, did you mean `none`?",
        );
        check(
            "[[sessions]]\npath = 'a'\n[[strategies]]\npreset = 'tail@tail@none'\n[[strategies]]\npreset = 'tail@none'\n[[strategies]]\npreset = 'none'",
            "line 4: `tail@tail@none` follows `tail@none`, which itself follows another strategy",
        );
        check(
            "[[strategies]]\nname = 'mine'",
            "line 1: strategy `mine` does nothing: it has no stage and no command",
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
        let table = SettingTable::parse("s.toml", text).unwrap();
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
        let table = SettingTable::parse("s.toml", text).unwrap();
        let scenario = Scenario::read(&table, Path::new("")).unwrap();
        assert_eq!(scenario.window.to_string(), "9000 tokens, triggers matched");
        let stages: Vec<String> =
            scenario.strategies.iter().flat_map(|spec| spec.stages().unwrap()).collect();
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
}
