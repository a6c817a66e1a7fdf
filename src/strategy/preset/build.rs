//! From settings to stages in their places.

use std::collections::{BTreeMap, BTreeSet};

use super::worth::OF_WORTH;
use super::{OVERFLOW, StrategySpec, name_of};
use crate::settings::{Reader, Setting, SettingError, SettingTable, SettingValue, with_suggestion};
use crate::strategy::control::{DIGEST, following_words};
use crate::strategy::guard::Guards;
use crate::strategy::knob::Knobs;
use crate::strategy::pipeline::{Retries, RetriesPer, Slot};
use crate::strategy::stage::{self, STAGES};
use crate::strategy::trigger::{Condition, Trigger, TriggerScope};
use crate::units::Tokens;
use crate::window::{PromptSizes, Window};

const RESERVED_STAGES: [&str; 3] = ["guards", OVERFLOW, "window"];

impl StrategySpec {
    pub(super) fn slots(&self) -> Result<(Vec<Slot>, Retries), SettingError> {
        let mut reader = Reader::new(&self.table, "");
        for key in ["description", "product", "stand_in"] {
            reader.text(key)?;
        }
        reader.texts("breaks")?;
        // What a sweep varies is no behaviour: it is checked, and a run does not know it.
        self.written_tunes()?;
        for key in [&["tune"][..], &OF_WORTH].concat() {
            reader.setting(key);
        }
        let guards = Guards::default().read(reader.table("guards")?)?;
        if reader.text("follows")?.is_some() {
            let method = reader.choice("method", &following_words())?;
            reader.whole("seed", 0, u64::MAX)?;
            reader.finish()?;
            let slot = self.follower(method.unwrap_or("tail"), guards)?;
            return Ok((vec![slot], Retries::default()));
        }
        let mut slots: Vec<Slot> = Vec::new();
        let mut off = BTreeSet::new();
        let tables = reader.tables("stage")?;
        for table in &tables {
            let slot = self.slot(table, guards, None)?;
            let name = &slot.notes.name;
            if Reader::new(table, &**name).flag("enabled")? == Some(false) {
                off.insert(name.clone());
            }
            if slots.iter().any(|other| other.notes.name == *name) {
                let problem = format!("there are two stages called `{name}`");
                let error = SettingError::new(table.place(), problem);
                return Err(error.with_hint("give one of them a `name`"));
            }
            slots.push(slot);
        }
        self.check_order(&slots, &tables)?;
        // One that is switched off is read and checked all the same, and may be waited for in vain.
        slots.retain(|slot| !off.contains(&slot.notes.name));
        let retries = match reader.table("overflow")? {
            Some(overflow) => self.overflow(overflow, guards, &mut slots)?,
            None => Retries { most: 1, per: RetriesPer::Call },
        };
        reader.finish()?;
        Ok((slots, retries))
    }

    /// Whether every condition means something in this window. A reserve that leaves no room for the least prompt, a head
    /// with one round, would make its stage fire before every call; and so would a tail that is kept, if it reaches the
    /// line of its stage.
    pub fn check_window(&self, window: Window, prompts: &PromptSizes) -> Result<(), SettingError> {
        let (slots, _) = self.slots()?;
        let least = prompts.head + prompts.round;
        for (key, stage, trigger) in slots.iter().flat_map(Slot::triggers) {
            let Some((reserve, part)) = trigger.condition.too_large_reserve(window, least) else {
                continue;
            };
            let place = self.stage(stage).and_then(|table| Some(&table.get(key)?.place));
            let problem = format!(
                "`{stage}.{key}` of `{}` reserves {reserve} tokens of {part}, which has {}{}: it would hold before every call",
                self.name,
                window.part(part),
                match least {
                    Tokens::ZERO => String::new(),
                    least => format!(", and a head with one round has {least}"),
                }
            );
            let hint = format!(
                "set a smaller reserve, or leave it out where the window is small: `{{ all = [{{ window_over = {reserve} }}, {{ \
                 reserve_tokens = {reserve} }}] }}`"
            );
            let error = SettingError::new(place.unwrap_or(self.table.place()), problem);
            return Err(error.with_hint(hint));
        }
        for slot in &slots {
            let when = &slot.notes.when;
            let head = match when.scope {
                TriggerScope::Prompt => prompts.head,
                TriggerScope::Messages => Tokens::ZERO,
            };
            // A tail ends in front of a message that does not fit into it whole.
            let kept = slot.least_kept(window) - prompts.round;
            // One that fires before every call by its settings is meant to, and one that waits for rounds cannot.
            let from = when.condition.holds_from(window).filter(|_| when.min_rounds_between <= 1);
            let line = from.filter(|line| (Tokens(1)..=prompts.largest).contains(line));
            if let Some(line) = line.filter(|line| kept > Tokens::ZERO && head + kept >= *line) {
                let problem = format!(
                    "`{}` of `{}` fires from {line} tokens on, and keeps {kept} behind a head of {head}: it would fire before \
                     every call",
                    slot.notes.name, self.name
                );
                let error = SettingError::new(self.table.place(), problem);
                return Err(error.with_hint("let it keep less, or set a larger window"));
            }
        }
        Ok(())
    }

    /// The stage of a control that follows another strategy.
    fn follower(&self, method: &str, guards: Guards) -> Result<Slot, SettingError> {
        let (kind, keys) = match method {
            DIGEST => (DIGEST, &[][..]),
            _ => ("select", &["method", "seed"][..]),
        };
        let mut table = SettingTable::new(self.table.place().clone());
        table.put("kind", kind, self.table.place());
        for key in keys {
            if let Some(setting) = self.table.get(key) {
                table.set(key, setting.clone());
            }
        }
        self.slot(&table, guards, Some(&self.sizes))
    }

    /// Whether its stages see the whole history at each call.
    ///
    /// # Errors
    ///
    /// What a stage that keeps something writes is forgotten by one that does not: all see the whole, or none.
    pub(super) fn sees_all(&self) -> Result<bool, SettingError> {
        let mut kept = None;
        let mut full: Option<&Setting> = None;
        for stage in self.stages_set() {
            let history = stage.get("history");
            let Some(setting) = history.filter(|_| stage.text("history") == Some("full")) else {
                kept = kept.or_else(|| name_of(stage));
                continue;
            };
            full = Some(setting);
            let kind = stage.text("kind").and_then(stage::kind);
            let cannot = match kind {
                Some(kind) if !kind.is_stateless() => Some("keeps something between calls"),
                _ if stage.get("prepare_at").is_some() => Some("prepares what it does later"),
                _ if stage.text("mode") == Some("cache_edit") => Some("has the provider clear"),
                _ => None,
            };
            if let Some(cannot) = cannot {
                let name = name_of(stage).unwrap_or_default();
                let problem =
                    format!("`{name}` {cannot}, and cannot see the whole history at each");
                let kinds = STAGES.iter().filter(|kind| kind.is_stateless());
                let kinds: Vec<&str> = kinds.map(|kind| kind.name).collect();
                let hint = format!("of these kinds it can: `{}`", kinds.join("`, `"));
                return Err(SettingError::new(&setting.place, problem).with_hint(hint));
            }
        }
        let answer = self.table.table(OVERFLOW).and_then(|overflow| overflow.text("stage"));
        let stateful =
            answer.filter(|name| stage::kind(name).is_some_and(|kind| !kind.is_stateless()));
        match (full, kept.or(stateful)) {
            (Some(full), Some(kept)) => {
                let problem =
                    format!("`history = \"full\"` beside `{kept}`, which keeps what it did");
                let hint = "set it on every stage of the strategy, or on none";
                Err(SettingError::new(&full.place, problem).with_hint(hint))
            }
            (full, _) => Ok(full.is_some()),
        }
    }

    /// Whether stages wait only for what was asked before them.
    fn check_order(&self, slots: &[Slot], tables: &[&SettingTable]) -> Result<(), SettingError> {
        let overflow = self.table.get(OVERFLOW).map(|_| OVERFLOW);
        for (at, (slot, table)) in slots.iter().zip(tables).enumerate() {
            let earlier: Vec<&str> =
                slots[..at].iter().map(|earlier| &*earlier.notes.name).chain(overflow).collect();
            let stages = slot.notes.when.condition.stages();
            let Some(named) = stages.iter().find(|named| !earlier.contains(named)) else {
                continue;
            };
            let exists = slots.iter().any(|other| *other.notes.name == **named);
            let why = if exists {
                "which does not stand before it"
            } else {
                "and the strategy has no such stage"
            };
            let problem = format!("`{}.when` names `{named}`, {why}", slot.notes.name);
            let error = SettingError::new(table.place_of("when"), problem);
            return Err(if exists { error } else { with_suggestion(error, named, earlier) });
        }
        Ok(())
    }

    /// The stage of this table; `sizes` are those of the strategy that it follows.
    fn slot(
        &self,
        table: &SettingTable,
        guards: Guards,
        sizes: Option<&BTreeMap<usize, Tokens>>,
    ) -> Result<Slot, SettingError> {
        let mut reader = Reader::new(table, "stage");
        let Some(kind_name) = reader.text("kind")? else {
            return Err(SettingError::new(table.place(), "the stage has no `kind`"));
        };
        let Some(kind) = stage::kind(kind_name) else {
            let error = SettingError::new(
                table.place_of("kind"),
                format!("unknown stage kind `{kind_name}`"),
            );
            let kinds = STAGES.iter().map(|kind| kind.name);
            return Err(with_suggestion(error, kind_name, kinds));
        };
        let name = reader.text("name")?.unwrap_or(kind_name);
        if RESERVED_STAGES.contains(&name) || name.contains('.') || name.is_empty() {
            let problem = format!("a stage cannot be called `{name}`");
            return Err(SettingError::new(table.place(), problem));
        }
        let mut when = match reader.setting("when") {
            None => Trigger::always(),
            Some(_) if table.text("when") == Some("scenario") => self.trigger.clone(),
            Some(setting) => Trigger::read(&format!("{name}.when"), setting)?,
        };
        if self.is_matched {
            when = when.matched_to(&self.trigger);
        }
        let own = kind.guards(guards);
        let guards = own.read(reader.table("guards")?)?;
        let mut knobs = Knobs::new(table, name, kind)?;
        (knobs.guards, knobs.when) = (guards, when.clone());
        knobs.sizes = sizes.cloned();
        knobs.programs = self.programs.clone();
        let stage = (kind.build)(&knobs)?;
        let ahead = reader.setting("prepare_at");
        let trigger = ahead.map(|setting| Trigger::read(&format!("{name}.prepare_at"), setting));
        let mut slot = Slot::new(name.into(), when, guards, stage);
        slot.notes.prepare_at = trigger.transpose()?;
        Ok(slot)
    }

    /// `[overflow]`: a stage of this strategy, or another kind, with knobs of its own, that is
    /// asked after a refusal. Returns how often.
    fn overflow(
        &self,
        mut reader: Reader<'_>,
        guards: Guards,
        slots: &mut Vec<Slot>,
    ) -> Result<Retries, SettingError> {
        let place = reader.place().clone();
        let most = reader.whole("max_retries", 0, 100)?.unwrap_or(1);
        let per = match reader.choice("max_retries_per", &["call", "turn"])? {
            Some("turn") => RetriesPer::Turn,
            _ => RetriesPer::Call,
        };
        let Some(wanted) = reader.text("stage")? else {
            return Err(SettingError::new(&place, "`overflow` names no `stage`"));
        };
        let mut table = SettingTable::new(place.clone());
        match self.stage(wanted) {
            Some(stage) => table.clone_from(stage),
            None => table.put("kind", wanted, &place),
        }
        for (key, setting) in
            self.table.table(OVERFLOW).map(SettingTable::entries).unwrap_or_default()
        {
            if !matches!(key.as_str(), "stage" | "max_retries" | "max_retries_per") {
                table.set(key, setting.clone());
            }
        }
        // Shares of the stage are of the same part of the window.
        let of = table.table("when").and_then(|when| when.get("of").cloned());
        for key in ["name", "enabled", "when", "prepare_at", "history"] {
            table.remove(key);
        }
        if let Some(of) = of {
            let mut when = SettingTable::new(place.clone());
            when.set("always", Setting::new(SettingValue::Flag(true), &place));
            when.set("of", of);
            table.put("when", when, &place);
        }
        let mut slot = self.slot(&table, guards, None)?;
        slot.notes.name = OVERFLOW.into();
        slot.notes.when = Trigger::of(Condition::Overflow);
        // In front of what waits for it, or else last.
        let at = slots.iter().position(|one| one.notes.when.condition.stages().contains(&OVERFLOW));
        slots.insert(at.unwrap_or(slots.len()), slot);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Ok(Retries { most, per })
    }
}
