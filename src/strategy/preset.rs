//! Presets: strategies kept as TOML, compiled in, and copied by users to start their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::control::ControlName;
use super::external::{Host, Programs};
use super::history::SeenHistory;
use super::knob::KEYS;
use super::law::Law;
use super::pipeline::Pipeline;
use super::trigger::Trigger;
use crate::naming::{StrategyName, StrategyNameError, base_name};
use crate::record::words::Worth;
use crate::settings::{
    Place, Reader, Setting, SettingError, SettingTable, SettingValue, parse_value, with_suggestion,
};
use crate::units::{Tokens, is_valid_id};

mod build;
mod built_in;
mod tune;
mod worth;

pub use built_in::PRESETS;
pub use tune::Tune;

/// The stage that is asked after a refusal.
const OVERFLOW: &str = "overflow";

/// The kind of stage that is a program: a strategy with a `command` is one of these alone.
pub const PROGRAM: &str = "external";

/// Names of strategies that are none: the reference and the floor of every table.
pub const RESERVED: [&str; 2] = ["full", "empty"];

/// Whether a strategy of the user's own can have this name. Of a control, and of what the recording holds, more is
/// believed than of others.
pub fn is_free(name: &str) -> bool {
    let taken = name == "recorded" || ControlName::of(name).is_some();
    is_valid_id(name) && !RESERVED.contains(&name) && !taken
}

/// A strategy as it is named in a scenario, checked, and ready to be built once per cell.
#[derive(Debug, Clone)]
pub struct StrategySpec {
    name: String,
    table: SettingTable,
    trigger: Trigger,
    /// Whether all stages that wait for something wait for `trigger`.
    is_matched: bool,
    /// The sizes that a strategy which follows another cuts to, by call.
    sizes: BTreeMap<usize, Tokens>,
    /// The processes of its programs, where it has any.
    programs: Programs,
    /// Whether nobody named it: a run adds it to compare another strategy with.
    is_added: bool,
    worth: Option<Worth>,
}

impl StrategySpec {
    /// The preset that replays the recorded product's own compactions.
    pub fn recorded() -> Result<Self, SettingError> {
        Self::named("recorded", &Trigger::always(), &Place::BuiltIn)
    }

    /// The preset or control called `name`. Controls fire at `trigger`.
    pub fn named(name: &str, trigger: &Trigger, place: &Place) -> Result<Self, SettingError> {
        if let Some(control) = ControlName::of(name) {
            return Self::control(name, control, trigger, place);
        }
        if RESERVED.contains(&name) {
            let problem =
                format!("`{name}` is no strategy: every run measures it beside the others");
            return Err(SettingError::new(place, problem));
        }
        let Some((_, text)) = PRESETS.iter().find(|(preset, _)| *preset == name) else {
            let known = PRESETS.iter().map(|(preset, _)| *preset).chain(["tail@20000"]);
            let error = SettingError::new(place, format!("unknown strategy `{name}`"));
            if let Some((first, _)) = name.split_once(',') {
                let hint =
                    format!("name each with a flag of its own: `--strategy {first} --strategy …`");
                return Err(error.with_hint(hint));
            }
            let extension = Path::new(name).extension().unwrap_or_default();
            let hint = match extension.to_str() {
                Some("py") => {
                    format!("`--strategy-cmd 'python3 {name}'` takes a program of your own")
                }
                Some("js" | "mjs" | "ts" | "sh" | "rb") => {
                    format!("`--strategy-cmd '{name}'` takes a program of your own")
                }
                Some("toml") => {
                    format!(
                        "`run --strategy {name}` takes a preset of your own; in a scenario, write out its stages"
                    )
                }
                _ => "`proctor strategies` lists them".to_owned(),
            };
            return Err(with_suggestion(error.with_hint(hint), name, known));
        };
        let table = SettingTable::parse(&format!("presets/{name}.toml"), text)?;
        Self::of(name, table, trigger)
    }

    /// As [`StrategySpec::named`], with overrides in brackets, as names are printed:
    /// `observation-masking[clear_results.keep_last=5,clear_results.every=10]`.
    ///
    /// Brackets after `tail@` and a strategy belong to the strategy.
    pub fn parse(text: &str, trigger: &Trigger, place: &Place) -> Result<Self, SettingError> {
        if let Some(control @ ControlName::Follow(..)) = ControlName::of(text) {
            return Self::control(text, control, trigger, place);
        }
        let name: StrategyName = text.parse().map_err(|error: StrategyNameError| {
            let wrong = SettingError::new(place, error.to_string());
            match error {
                StrategyNameError::UnclosedBracket(_) => wrong.with_hint(
                    "overrides end with `]`: `observation-masking[clear_results.keep_last=5]`",
                ),
                StrategyNameError::SetsNothing(..) => wrong,
            }
        })?;
        let mut spec = Self::named(&name.base, trigger, place)?;
        for (path, value) in &name.overrides {
            spec = spec.with(path, parse_value(value, place))?;
        }
        Ok(spec)
    }

    /// The same strategy under another name: `[a-z0-9][a-z0-9._@-]*`.
    pub fn renamed(mut self, name: &str, place: &Place) -> Result<Self, SettingError> {
        if !is_free(name) {
            let problem = format!("a strategy cannot be called `{name}`");
            return Err(SettingError::new(place, problem).with_hint(
                "names are `[a-z0-9][a-z0-9._@-]*`, and neither `full`, `empty`, `recorded` nor that of a control",
            ));
        }
        name.clone_into(&mut self.name);
        Ok(self)
    }

    /// A strategy of the user's own, written out in `table`.
    pub fn of(name: &str, table: SettingTable, trigger: &Trigger) -> Result<Self, SettingError> {
        let mut spec = Self {
            name: name.to_owned(),
            table: with_stage(table),
            trigger: trigger.clone(),
            is_matched: false,
            sizes: BTreeMap::new(),
            programs: Programs::default(),
            is_added: false,
            worth: None,
        };
        spec.build()?;
        spec.breaks()?;
        spec.worth = spec.read_worth()?;
        spec.sources()?;
        Ok(spec)
    }

    fn control(
        name: &str,
        control: ControlName<'_>,
        trigger: &Trigger,
        place: &Place,
    ) -> Result<Self, SettingError> {
        let ControlName::Follow(method, follows) = control else {
            return Self::of(name, control.table(name)?, trigger);
        };
        let follows = match Self::parse(follows, trigger, place) {
            Ok(spec) => spec.name,
            Err(error) if follows.contains(['[', '@']) => return Err(error),
            // It may be a strategy of the scenario's own.
            Err(_) if is_valid_id(follows) => follows.to_owned(),
            Err(_) => {
                let problem = format!("`{name}` names neither a budget in tokens nor a strategy");
                return Err(SettingError::new(place, problem)
                    .with_hint("write `tail@20000`, or `tail@observation-masking`"));
            }
        };
        let name = format!("{method}@{follows}");
        let mut table = ControlName::Follow(method, &follows).table(&name)?;
        table.put("follows", follows, place);
        Self::of(&name, table, trigger)
    }

    /// The strategy's name, overrides in brackets:
    /// `observation-masking[clear_results.keep_last=5]`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name without overrides.
    pub fn base_name(&self) -> String {
        base_name(&self.name)
    }

    /// The control at equal budget, `tail@NAME`, which a run adds and shows no row of. `None` for
    /// strategies without a stage, which change nothing, and for controls themselves.
    #[must_use]
    pub fn added_control(&self) -> Option<Self> {
        let control = ControlName::of(&self.name).is_some() || self.follows().is_some();
        let acts = self.stages_set().next().is_some() || self.table.get(OVERFLOW).is_some();
        if control || !acts {
            return None;
        }
        let table = ControlName::Follow("tail", &self.name).table(&self.name).ok()?;
        let mut spec = Self::of(&format!("tail@{}", self.name), table, &self.trigger).ok()?;
        spec.is_added = true;
        spec.is_matched = self.is_matched;
        Some(spec)
    }

    /// Whether a run added it to compare another strategy with.
    pub fn is_added(&self) -> bool {
        self.is_added
    }

    /// The settings as they were written, each with its place.
    pub fn table(&self) -> &SettingTable {
        &self.table
    }

    /// The same strategy with one trigger for all: every stage fires at the scenario's, but for
    /// those that fire before every call or on overflow alone.
    #[must_use]
    pub fn matched(mut self) -> Self {
        self.is_matched = true;
        self
    }

    /// The name of the strategy that this one follows. It must run first, on the same session, and
    /// [`StrategySpec::with_sizes`] takes its sizes.
    pub fn follows(&self) -> Option<&str> {
        self.table.text("follows")
    }

    /// The same control, following the strategy called `name`.
    #[must_use]
    pub fn following(mut self, name: &str) -> Self {
        if let Some(earlier) = self.follows() {
            let behind = format!("@{earlier}");
            if let Some(method) = self.name.strip_suffix(&behind) {
                self.name = format!("{method}@{name}");
            }
            let place = self.table.place().clone();
            self.table.put("follows", name, &place);
        }
        self
    }

    /// The same strategy with the sizes of all messages that the one it follows had, by call. A
    /// strategy that follows none needs no sizes.
    #[must_use]
    pub fn with_sizes(mut self, sizes: BTreeMap<usize, Tokens>) -> Self {
        self.sizes = sizes;
        self
    }

    /// Whether it is a control that cuts to nothing, as `tail@0`.
    pub fn has_no_budget(&self) -> bool {
        matches!(ControlName::of(&self.name), Some(ControlName::Budget(_, 0)))
    }

    /// One sentence.
    pub fn description(&self) -> &str {
        self.table.text("description").unwrap_or_default()
    }

    /// The product or paper whose strategy it is; nothing where nobody says so.
    pub fn product(&self) -> &str {
        self.table.text("product").unwrap_or_default()
    }

    /// How near it is to its product, where it says so.
    pub fn worth(&self) -> Option<&Worth> {
        self.worth.as_ref()
    }

    /// What stands for what a provider's server does, in one sentence.
    pub fn stand_in(&self) -> Option<&str> {
        self.table.text("stand_in")
    }

    /// The laws it breaks by design.
    pub fn breaks(&self) -> Result<Vec<Law>, SettingError> {
        let mut reader = Reader::new(&self.table, "");
        let names = reader.texts("breaks")?.unwrap_or_default();
        let laws = names.into_iter().map(|name| {
            Law::named(name).ok_or_else(|| {
                let problem = format!("`breaks` names an unknown law `{name}`");
                let error = SettingError::new(self.table.place(), problem);
                with_suggestion(error, name, Law::ALL.map(Law::name))
            })
        });
        laws.collect()
    }

    /// The settings, written out: what a run's fingerprint covers.
    pub fn to_toml(&self) -> String {
        self.written(&["stage"], |key| !worth::OF_WORTH.contains(&key))
    }

    /// The same with what it is worth and its sources: what `strategies show` prints.
    pub fn to_file(&self) -> String {
        self.written(&["stage", "source"], |_| true)
    }

    /// The settings whose key `is_written`, then the tables of these lists.
    fn written(&self, lists: &[&str], is_written: impl Fn(&str) -> bool) -> String {
        let mut out = String::new();
        for (key, setting) in self.table.entries().iter().filter(|(key, _)| is_written(key)) {
            if !matches!(setting.value, SettingValue::List(_)) || key == "breaks" {
                let _ = writeln!(out, "{key} = {}", setting.value);
            }
        }
        for list in lists {
            for table in self.tables(list) {
                let _ = writeln!(out, "\n[[{list}]]");
                for (key, setting) in table.entries() {
                    let _ = writeln!(out, "{key} = {}", setting.value);
                }
            }
        }
        out
    }

    /// The same strategy with one knob changed: `path` is `stage.knob`, `guards.…` or
    /// `overflow.…`. `stage.when.CONDITION` changes this condition alone where the trigger has it.
    pub fn with(mut self, path: &str, setting: Setting) -> Result<Self, SettingError> {
        let shown = setting.value.to_string();
        let Some((head, rest)) = path.split_once('.') else {
            let stages: Vec<String> = self.stages_with(path);
            let (problem, names) = match &stages[..] {
                [stage] => return self.with(&format!("{stage}.{path}"), setting),
                [] => {
                    let problem = format!("`{path}` names no knob of `{}`", self.name);
                    (problem, self.stage_names())
                }
                _ => (format!("several stages have a knob `{path}`"), stages),
            };
            let hint = format!("write `stage.knob`; the stages are `{}`", names.join("`, `"));
            return Err(SettingError::new(&setting.place, problem).with_hint(hint));
        };
        if matches!(head, "guards" | "overflow") {
            self.table.overlay(path, setting)?;
            let overflow = self.table.get_mut(OVERFLOW);
            if path == "overflow.prompt"
                && let Some(overflow) = overflow.and_then(Setting::as_table_mut)
            {
                overflow.remove("prompt_text");
            }
        } else {
            let mut tables = stage_tables(&mut self.table).into_iter();
            let Some(table) = tables.find(|table| name_of(table) == Some(head)) else {
                let problem = format!("strategy `{}` has no stage `{head}`", self.name);
                let error = SettingError::new(&setting.place, problem);
                let names = self.stage_names();
                return Err(with_suggestion(error, head, names.iter().map(String::as_str)));
            };
            if rest == "prompt" {
                // The text is that of another file.
                table.remove("prompt_text");
            }
            if !tune::set_condition(table, rest, &setting) {
                table.overlay(rest, setting)?;
            }
        }
        let mut name = StrategyName::recorded(&self.name);
        name.set(path, shown);
        self.name = name.to_string();
        self.build()?;
        Ok(self)
    }

    /// The same strategy with the prompts that its stages name read by `read`, which is given the
    /// path as written and its place. A stage that has its text already is left as it is.
    pub fn with_prompts(
        mut self,
        mut read: impl FnMut(&str, &Place) -> Result<String, SettingError>,
    ) -> Result<Self, SettingError> {
        for table in stage_tables(&mut self.table) {
            let Some((path, place)) = unread_prompt(table) else {
                continue;
            };
            table.put("prompt_text", read(&path, &place)?, &place);
        }
        self.build()?;
        Ok(self)
    }

    /// The first prompt that a stage names and that was not read.
    pub fn unread_prompt(&self) -> Option<(String, Place)> {
        self.stages_set().chain(self.table.table(OVERFLOW)).find_map(unread_prompt)
    }

    /// The same strategy with its programs started so.
    pub fn with_programs(mut self, host: Host) -> Result<Self, SettingError> {
        self.programs = Programs::on(host);
        self.build()?;
        Ok(self)
    }

    /// The same strategy, whose programs run in new processes in which sets have another order.
    pub(crate) fn in_another_order(&self) -> Self {
        Self { programs: self.programs.in_another_order(), ..self.clone() }
    }

    /// The commands of its programs, each with the names of the variables that it gets, and its place.
    pub fn programs(&self) -> Vec<(Vec<&str>, Vec<&str>, &Place)> {
        let commands = self.stages_set().filter_map(|stage| {
            let command = stage.get("command")?;
            Some((texts_of(stage, "command"), texts_of(stage, "env"), &command.place))
        });
        commands.collect()
    }

    /// Whether one of its programs cannot be started: nobody said how.
    pub fn has_unlocated_program(&self) -> bool {
        !self.programs.is_located() && !self.programs().is_empty()
    }

    /// The tables of the stages, without that of `[overflow]`.
    fn stages_set(&self) -> impl Iterator<Item = &SettingTable> {
        self.tables("stage")
    }

    /// The tables of a list.
    fn tables(&self, list: &str) -> impl Iterator<Item = &SettingTable> + use<'_> {
        self.table.list(list).unwrap_or_default().iter().filter_map(Setting::as_table)
    }

    /// The table of the stage of this name.
    fn stage(&self, name: &str) -> Option<&SettingTable> {
        self.stages_set().find(|stage| name_of(stage) == Some(name))
    }

    /// The stages that have a knob of this name.
    pub(crate) fn stages_with(&self, knob: &str) -> Vec<String> {
        let stages = self.stages_set().filter(|stage: &&SettingTable| {
            let kind = stage.text("kind").unwrap_or_default();
            KEYS.table(kind).get(knob).is_some()
        });
        stages.filter_map(name_of).map(str::to_owned).collect()
    }

    pub(crate) fn stage_names(&self) -> Vec<String> {
        let names = self.stages_set().map(|stage| name_of(stage).unwrap_or_default());
        names.map(str::to_owned).collect()
    }

    /// The knob that decides together with this one (`stage.knob`), and values to sweep it over:
    /// `sweep_with` in `keys.toml`.
    pub fn swept_with(&self, path: &str) -> Option<(String, &'static str)> {
        let (head, knob) = path.split_once('.')?;
        let (other, values) = tune::decides_with(self.stage(head)?.text("kind")?, knob)?;
        Some((format!("{head}.{other}"), values))
    }

    /// The stages that are switched on, each with its name and its trigger; that of `[overflow]` among them.
    pub fn triggers(&self) -> Result<Vec<(Arc<str>, Trigger)>, SettingError> {
        let slots = self.slots()?.0.into_iter();
        Ok(slots.map(|slot| (slot.notes.name, slot.notes.when)).collect())
    }

    /// The same for people: `clear_results (before every call)`.
    pub fn stages(&self) -> Result<Vec<String>, SettingError> {
        let triggers = self.triggers()?.into_iter();
        Ok(triggers.map(|(name, when)| format!("{name} ({when})")).collect())
    }

    /// Makes the strategy: one value per cell.
    pub fn build(&self) -> Result<Pipeline, SettingError> {
        let (slots, retries) = self.slots()?;
        let mut pipeline = Pipeline::new(slots, retries);
        pipeline.history = self.sees_all()?.then(SeenHistory::default);
        Ok(pipeline)
    }
}

/// A strategy that is one program, written as one: its keys are those of its stage.
fn with_stage(mut table: SettingTable) -> SettingTable {
    if table.get("command").is_none() || table.get("stage").is_some() {
        return table;
    }
    let place = table.place().clone();
    let mut stage = SettingTable::new(place.clone());
    stage.put("kind", PROGRAM, &place);
    for key in
        ["command", "env", "start_seconds", "timeout_seconds", "memory_mb", "line_mb", "when"]
    {
        if let Some(setting) = table.remove(key) {
            stage.set(key, setting);
        }
    }
    if stage.get("when").is_none() {
        let whenever = ["always", "overflow"].map(|word| Setting::new(word, &place));
        let mut when = SettingTable::new(place.clone());
        when.put("any", Vec::from(whenever), &place);
        stage.put("when", when, &place);
    }
    table.put("stage", vec![Setting::new(stage, &place)], &place);
    table
}

/// The tables of all stages, that of `[overflow]` included.
fn stage_tables(table: &mut SettingTable) -> Vec<&mut SettingTable> {
    let mut tables = Vec::new();
    for (key, setting) in table.entries_mut() {
        match (key, &mut setting.value) {
            ("stage", SettingValue::List(stages)) => {
                tables.extend(stages.iter_mut().filter_map(Setting::as_table_mut));
            }
            (OVERFLOW, SettingValue::Table(overflow)) => tables.push(overflow),
            _ => {}
        }
    }
    tables
}

fn texts_of<'t>(stage: &'t SettingTable, key: &str) -> Vec<&'t str> {
    stage.list(key).unwrap_or_default().iter().filter_map(Setting::as_text).collect()
}

fn name_of(stage: &SettingTable) -> Option<&str> {
    stage.text("name").or_else(|| stage.text("kind"))
}

/// The prompt that a stage names without having its text.
fn unread_prompt(stage: &SettingTable) -> Option<(String, Place)> {
    let setting = stage.get("prompt")?;
    let path = stage.text("prompt").filter(|path| !path.is_empty())?;
    stage.get("prompt_text").is_none().then(|| (path.to_owned(), setting.place.clone()))
}

#[cfg(test)]
mod tests;
