//! Knobs: what can be set on a stage, as a table that reading, help, docs and sweeps share.

use std::fmt;

use super::guard::Guards;
use super::trigger::Trigger;
use crate::settings::{Place, Reader, Setting, SettingError, Table, Value};
use crate::units::Tokens;

/// One setting of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Its name: snake case, the unit as suffix, counts bare.
    pub name: &'static str,
    /// What it takes.
    pub kind: KnobKind,
    /// The default.
    pub default: Default,
    /// One sentence.
    pub doc: &'static str,
}

/// What a knob takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobKind {
    /// A whole number in this range, both ends included.
    Whole(u64, u64),
    /// A number from 0 to 1.
    Fraction,
    /// A number of at least 1.
    Factor,
    /// Text.
    Text,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
}

impl fmt::Display for KnobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(low, u64::MAX) => write!(f, "whole number ≥ {low}"),
            Self::Whole(low, high) => write!(f, "whole number {low}..={high}"),
            Self::Fraction => f.write_str("number 0..=1"),
            Self::Factor => f.write_str("number ≥ 1"),
            Self::Text => f.write_str("text"),
            Self::Flag => f.write_str("true or false"),
            Self::Choice(words) => f.write_str(&words.join(" | ")),
            Self::Texts => f.write_str("list of texts"),
        }
    }
}

/// The default of a knob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// There is none: it must be set.
    Required,
    /// A whole number.
    Whole(u64),
    /// A number from 0 to 1, or a factor.
    Fraction(f64),
    /// Text, or one of the words.
    Text(&'static str),
    /// Yes or no.
    Flag(bool),
    /// The empty list.
    Empty,
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => f.write_str("required"),
            Self::Whole(u64::MAX) => f.write_str("no limit"),
            Self::Whole(number) => number.fmt(f),
            Self::Fraction(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{}", Value::Text((*text).to_owned())),
            Self::Flag(flag) => flag.fmt(f),
            Self::Empty => f.write_str("[]"),
        }
    }
}

/// Reads the knobs of one stage from its table.
///
/// Asking for a knob that is not in the stage's own list is a mistake in Proctor, not in the
/// settings; it is reported like any other, so that the stage's first test finds it.
#[derive(Debug)]
pub struct KnobReader<'a> {
    reader: Reader<'a>,
    knobs: &'static [Knob],
    /// The guards of the stage: one that asks a model keeps some of them itself.
    pub guards: Guards,
    /// When the stage fires: some say so in what they leave behind.
    pub when: Trigger,
}

/// The keys of a stage's table that are no knobs: the pipeline reads them.
pub const STAGE_KEYS: &[&str] = &["kind", "name", "enabled", "when", "guards"];

impl<'a> KnobReader<'a> {
    /// Reads the table of the stage that is called `path`.
    pub fn new(table: &'a Table, path: &str, knobs: &'static [Knob]) -> Self {
        let mut reader = Reader::new(table, path);
        for key in STAGE_KEYS {
            reader.setting(key);
        }
        Self {
            reader,
            knobs,
            guards: Guards::default(),
            when: Trigger::always(),
        }
    }

    /// The same, for a stage that has these guards and fires at this trigger.
    #[must_use]
    pub fn guarded(self, guards: Guards, when: &Trigger) -> Self {
        Self {
            guards,
            when: when.clone(),
            ..self
        }
    }

    fn knob(&self, name: &str) -> Result<Knob, SettingError> {
        self.knobs
            .iter()
            .find(|knob| knob.name == name)
            .copied()
            .ok_or_else(|| {
                SettingError::new(
                    &Place::BuiltIn,
                    format!("stage asks for an unlisted knob `{name}`"),
                )
            })
    }

    fn missing(&self, name: &str) -> SettingError {
        let path = self.reader.path_of(name);
        SettingError::new(self.reader.place(), format!("`{path}` must be set"))
    }

    /// A whole number.
    pub fn whole(&mut self, name: &str) -> Result<u64, SettingError> {
        let knob = self.knob(name)?;
        let (low, high) = match knob.kind {
            KnobKind::Whole(low, high) => (low, high),
            _ => (0, u64::MAX),
        };
        match (self.reader.whole(name, low, high)?, knob.default) {
            (Some(number), _) | (None, Default::Whole(number)) => Ok(number),
            _ => Err(self.missing(name)),
        }
    }

    /// A whole number that counts things in memory.
    pub fn count(&mut self, name: &str) -> Result<usize, SettingError> {
        Ok(usize::try_from(self.whole(name)?).unwrap_or(usize::MAX))
    }

    /// A number of tokens.
    pub fn tokens(&mut self, name: &str) -> Result<Tokens, SettingError> {
        self.whole(name).map(Tokens)
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self, name: &str) -> Result<f64, SettingError> {
        let knob = self.knob(name)?;
        match (self.reader.fraction(name)?, knob.default) {
            (Some(number), _) | (None, Default::Fraction(number)) => Ok(number),
            _ => Err(self.missing(name)),
        }
    }

    /// A number of at least 1.
    pub fn factor(&mut self, name: &str) -> Result<f64, SettingError> {
        let knob = self.knob(name)?;
        match (self.reader.factor(name)?, knob.default) {
            (Some(number), _) | (None, Default::Fraction(number)) => Ok(number),
            _ => Err(self.missing(name)),
        }
    }

    /// Text.
    pub fn text(&mut self, name: &str) -> Result<String, SettingError> {
        let knob = self.knob(name)?;
        match (self.reader.text(name)?, knob.default) {
            (Some(text), _) | (None, Default::Text(text)) => Ok(text.to_owned()),
            _ => Err(self.missing(name)),
        }
    }

    /// Yes or no.
    pub fn flag(&mut self, name: &str) -> Result<bool, SettingError> {
        let knob = self.knob(name)?;
        match (self.reader.flag(name)?, knob.default) {
            (Some(flag), _) | (None, Default::Flag(flag)) => Ok(flag),
            _ => Err(self.missing(name)),
        }
    }

    /// One of the knob's words.
    pub fn choice(&mut self, name: &str) -> Result<&'static str, SettingError> {
        let knob = self.knob(name)?;
        let words = match knob.kind {
            KnobKind::Choice(words) => words,
            _ => &[],
        };
        match (self.reader.choice(name, words)?, knob.default) {
            (Some(word), _) | (None, Default::Text(word)) => Ok(word),
            _ => Err(self.missing(name)),
        }
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, SettingError> {
        self.knob(name)?;
        Ok(self
            .reader
            .texts(name)?
            .unwrap_or_default()
            .into_iter()
            .map(str::to_owned)
            .collect())
    }

    /// The setting itself, for errors that say more than a range can.
    pub fn setting(&mut self, name: &str) -> Option<&'a Setting> {
        self.reader.setting(name)
    }

    /// An error about one knob.
    pub fn wrong(&mut self, name: &str, problem: &str) -> SettingError {
        let place = self
            .setting(name)
            .map_or(self.reader.place(), |setting| &setting.place);
        let path = self.reader.path_of(name);
        SettingError::new(place, format!("`{path}` {problem}"))
    }

    /// Refuses knobs that the stage does not have.
    pub fn finish(mut self) -> Result<(), SettingError> {
        for knob in self.knobs {
            self.reader.setting(knob.name);
        }
        self.reader.finish()
    }
}
