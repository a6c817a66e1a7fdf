//! Knobs: what can be set on a stage, as a table that reading, help, docs and sweeps share.

use std::fmt;

use super::guard::Guards;
use super::trigger::Trigger;
use crate::settings::{Place, Reader, Setting, SettingError, Table, Value};
use crate::units::Tokens;

/// One setting of a stage. The page of the stage's kind says what it does.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Its name: snake case, the unit as suffix, counts bare.
    pub name: &'static str,
    /// What it takes.
    pub kind: KnobKind,
}

/// What a knob takes; the default comes last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KnobKind {
    /// A whole number of at least the first.
    Whole(u64, u64),
    /// A whole number from the first to the second, both included.
    Range(u64, u64, u64),
    /// A number from 0 to 1.
    Fraction(f64),
    /// A number of at least 1.
    Factor(f64),
    /// Text.
    Text(&'static str),
    /// `true` or `false`.
    Flag(bool),
    /// One of these words.
    Choice(&'static [&'static str], &'static str),
    /// A list of texts, empty by default.
    Texts,
}

impl fmt::Display for KnobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(low, _) => write!(f, "whole number ≥ {low}"),
            Self::Range(low, high, _) => write!(f, "whole number {low}..={high}"),
            Self::Fraction(_) => f.write_str("number 0..=1"),
            Self::Factor(_) => f.write_str("number ≥ 1"),
            Self::Text(_) => f.write_str("text"),
            Self::Flag(_) => f.write_str("true or false"),
            Self::Choice(words, _) => f.write_str(&words.join(" | ")),
            Self::Texts => f.write_str("list of texts"),
        }
    }
}

impl Knob {
    pub(super) const fn new(name: &'static str, kind: KnobKind) -> Self {
        Self { name, kind }
    }

    /// The default, as settings write it.
    pub fn default(&self) -> String {
        match self.kind {
            KnobKind::Whole(_, u64::MAX) => "no limit".to_owned(),
            KnobKind::Whole(_, number) | KnobKind::Range(_, _, number) => number.to_string(),
            KnobKind::Fraction(number) | KnobKind::Factor(number) => number.to_string(),
            KnobKind::Text(text) | KnobKind::Choice(_, text) => {
                Value::Text(text.to_owned()).to_string()
            }
            KnobKind::Flag(flag) => flag.to_string(),
            KnobKind::Texts => "[]".to_owned(),
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

    fn kind(&self, name: &str) -> Result<KnobKind, SettingError> {
        let knob = self.knobs.iter().find(|knob| knob.name == name);
        knob.map(|knob| knob.kind).ok_or_else(|| unlisted(name))
    }

    /// A whole number.
    pub fn whole(&mut self, name: &str) -> Result<u64, SettingError> {
        let (low, high, default) = match self.kind(name)? {
            KnobKind::Whole(low, default) => (low, u64::MAX, default),
            KnobKind::Range(low, high, default) => (low, high, default),
            _ => return Err(unlisted(name)),
        };
        Ok(self.reader.whole(name, low, high)?.unwrap_or(default))
    }

    /// A whole number that counts things in memory.
    pub fn count(&mut self, name: &str) -> Result<usize, SettingError> {
        Ok(usize::try_from(self.whole(name)?).unwrap_or(usize::MAX))
    }

    /// A number of tokens.
    pub fn tokens(&mut self, name: &str) -> Result<Tokens, SettingError> {
        self.whole(name).map(Tokens)
    }

    /// A number from 0 to 1, or of at least 1.
    pub fn number(&mut self, name: &str) -> Result<f64, SettingError> {
        match self.kind(name)? {
            KnobKind::Fraction(default) => Ok(self.reader.fraction(name)?.unwrap_or(default)),
            KnobKind::Factor(default) => Ok(self.reader.factor(name)?.unwrap_or(default)),
            _ => Err(unlisted(name)),
        }
    }

    /// Text.
    pub fn text(&mut self, name: &str) -> Result<String, SettingError> {
        match self.kind(name)? {
            KnobKind::Text(default) => Ok(self.reader.text(name)?.unwrap_or(default).to_owned()),
            _ => Err(unlisted(name)),
        }
    }

    /// Yes or no.
    pub fn flag(&mut self, name: &str) -> Result<bool, SettingError> {
        match self.kind(name)? {
            KnobKind::Flag(default) => Ok(self.reader.flag(name)?.unwrap_or(default)),
            _ => Err(unlisted(name)),
        }
    }

    /// One of the knob's words.
    pub fn choice(&mut self, name: &str) -> Result<&'static str, SettingError> {
        match self.kind(name)? {
            KnobKind::Choice(words, default) => {
                Ok(self.reader.choice(name, words)?.unwrap_or(default))
            }
            _ => Err(unlisted(name)),
        }
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, SettingError> {
        self.kind(name)?;
        let texts = self.reader.texts(name)?.unwrap_or_default();
        Ok(texts.into_iter().map(str::to_owned).collect())
    }

    /// A list of texts; empty for the usual ones.
    pub(super) fn texts_or(
        &mut self,
        name: &str,
        usual: &[&str],
    ) -> Result<Vec<String>, SettingError> {
        let texts = self.texts(name)?;
        let usual = usual.iter().map(|&text| text.to_owned());
        Ok(if texts.is_empty() {
            usual.collect()
        } else {
            texts
        })
    }

    /// A list of some of these words.
    pub(super) fn words(
        &mut self,
        name: &str,
        words: &[&str],
    ) -> Result<Vec<String>, SettingError> {
        let texts = self.texts(name)?;
        match texts.iter().find(|text| !words.contains(&text.as_str())) {
            None => Ok(texts),
            Some(unknown) => {
                let words = words.join("`, `");
                Err(self.wrong(name, &format!("names `{unknown}`: it must be of `{words}`")))
            }
        }
    }

    /// The setting itself, for errors that say more than a range can.
    pub fn setting(&mut self, name: &str) -> Option<&'a Setting> {
        self.reader.setting(name)
    }

    /// An error about one knob.
    pub fn wrong(&mut self, name: &str, problem: &str) -> SettingError {
        let setting = self.setting(name);
        let place = setting.map_or(self.reader.place(), |setting| &setting.place);
        SettingError::new(place, format!("`{}` {problem}", self.reader.path_of(name)))
    }

    /// Refuses knobs that the stage does not have.
    pub fn finish(mut self) -> Result<(), SettingError> {
        for knob in self.knobs {
            self.reader.setting(knob.name);
        }
        self.reader.finish()
    }
}

fn unlisted(name: &str) -> SettingError {
    let problem = format!("stage asks for an unlisted knob `{name}`");
    SettingError::new(&Place::BuiltIn, problem)
}
