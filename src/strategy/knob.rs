//! Knobs: what can be set on a stage, as data that reading, help, docs and the JSON schema share.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use super::external::Programs;
use super::guard::Guards;
use super::stage::StageKind;
use super::trigger::{Trigger, measures};
use crate::settings::{CheckedTable, Keys, Reader, SettingError, SettingTable};
use crate::units::Tokens;

/// The keys of stages: `stage` has those of every stage, `guards` and `when` those of its guards and
/// its trigger, and each kind of stage has its knobs.
pub static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys::parse(include_str!("keys.toml"), names));

fn names(what: &str) -> Vec<&'static str> {
    match what {
        "measures" => measures(),
        _ => Vec::new(),
    }
}

/// The settings of one stage: what its table sets, and the defaults of its kind.
#[derive(Debug)]
pub struct Knobs<'a> {
    keyed: CheckedTable<'a>,
    /// The guards of the stage: one that asks a model keeps some of them itself.
    pub guards: Guards,
    /// When the stage fires: some say so in what they leave behind.
    pub when: Trigger,
    /// For a control that follows another strategy: the sizes that it came to, by call.
    pub sizes: Option<BTreeMap<usize, Tokens>>,
    /// How a program is started, for a stage that is one.
    pub programs: Programs,
}

impl<'a> Knobs<'a> {
    /// Checks the table of a stage of this kind that is called `path`.
    pub fn new(
        table: &'a SettingTable,
        path: &str,
        kind: &StageKind,
    ) -> Result<Self, SettingError> {
        let mut reader = Reader::new(table, path);
        KEYS.check(&mut reader, "stage")?;
        KEYS.check(&mut reader, kind.name)?;
        reader.finish()?;
        Ok(Self {
            keyed: CheckedTable::unchecked(table, path, (&KEYS, kind.name)),
            guards: Guards::default(),
            when: Trigger::default(),
            sizes: None,
            programs: Programs::default(),
        })
    }

    /// The knobs as the fields of a value that have their names.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SettingError> {
        self.keyed.read()
    }

    /// Text.
    pub fn text(&self, name: &str) -> &str {
        self.keyed.text(name).unwrap_or_default()
    }

    /// Whether the table sets a knob.
    pub fn is_set(&self, name: &str) -> bool {
        self.keyed.setting(name).is_some()
    }

    /// An error about one knob.
    pub fn wrong(&self, name: &str, problem: &str) -> SettingError {
        let path = self.keyed.reader().path_of(name);
        SettingError::new(self.keyed.place_of(name), format!("`{path}` {problem}"))
    }
}
