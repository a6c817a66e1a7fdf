//! Settings as they were written: a TOML table in which every value knows where it came from.
//!
//! Files, the environment and the command line all end up in one [`SettingTable`]; it is read once, by
//! [`Reader`]s that check names, types and ranges and, on a mistake, say the file, the line, the
//! dotted path and what was probably meant.

mod keys;
mod reader;

use std::fmt;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use keys::{CheckedTable, KeyInWords, Keys};
pub use reader::Reader;

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: SettingValue,
    /// Where it was written.
    pub place: Place,
}

impl Setting {
    /// A value written at this place.
    pub fn new(value: impl Into<SettingValue>, place: &Place) -> Self {
        Self { value: value.into(), place: place.clone() }
    }

    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            SettingValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items, where it is a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.value {
            SettingValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// The table, where it is one.
    pub fn as_table(&self) -> Option<&SettingTable> {
        match &self.value {
            SettingValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The table to be changed, where it is one.
    pub fn as_table_mut(&mut self) -> Option<&mut SettingTable> {
        match &mut self.value {
            SettingValue::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// A value of TOML.
#[derive(Debug, Clone, PartialEq, derive_more::From)]
pub enum SettingValue {
    /// Text.
    #[from(String, &str)]
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Yes or no.
    Flag(bool),
    /// A list.
    #[from]
    List(Vec<Setting>),
    /// A table.
    #[from]
    Table(SettingTable),
}

impl fmt::Display for SettingValue {
    /// Writes the value as TOML would, on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => toml::Value::String(text.clone()).fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Real(number) => toml::Value::Float(*number).fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(items) => {
                let values: Vec<String> = items.iter().map(|item| item.value.to_string()).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::Table(table) => {
                let entries = table.entries.iter();
                let pairs = entries.map(|(key, own)| format!("{} = {}", quoted(key), own.value));
                write!(f, "{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file, and the line in it, from 1.
    File(Arc<str>, usize),
    /// A command-line flag, as typed.
    Flag(Arc<str>),
    /// An environment variable.
    Environment(Arc<str>),
    /// Proctor itself.
    BuiltIn,
}

impl Place {
    /// The folder at which paths start that are written there: that of the file, else the working directory.
    pub fn folder(&self) -> &Path {
        match self {
            Self::File(file, _) => Path::new(&**file).parent().unwrap_or(Path::new("")),
            Self::Flag(_) | Self::Environment(_) | Self::BuiltIn => Path::new(""),
        }
    }

    /// The place without the value that a flag gives.
    #[must_use]
    pub fn without_value(&self) -> Self {
        match self {
            Self::Flag(typed) => Self::Flag(typed.split('=').next().unwrap_or(typed).into()),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file, line) => write!(f, "`{file}`: line {line}"),
            Self::Flag(flag) if flag.starts_with('-') => write!(f, "flag `{flag}`"),
            Self::Flag(argument) => write!(f, "`{argument}`"),
            Self::Environment(name) => write!(f, "environment variable `{name}`"),
            Self::BuiltIn => f.write_str("built-in default"),
        }
    }
}

/// A mistake in some settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SettingError {
    /// Where it is.
    pub place: Place,
    /// The mistake, values in backticks.
    pub problem: String,
    /// How to mend it.
    pub hint: Option<String>,
}

impl SettingError {
    /// A mistake without a hint.
    pub fn new(place: &Place, problem: impl Into<String>) -> Self {
        Self { place: place.clone(), problem: problem.into(), hint: None }
    }

    /// The same mistake with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Named settings, in the order in which they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingTable {
    entries: Vec<(String, Setting)>,
    place: Place,
}

impl SettingTable {
    /// An empty table.
    pub fn new(place: Place) -> Self {
        Self { entries: Vec::new(), place }
    }

    /// Parses TOML; `file` names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, SettingError> {
        let file: Arc<str> = file.into();
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let ends: Vec<usize> = body.match_indices('\n').map(|(at, _)| at).collect();
        let at = |offset| Place::File(file.clone(), ends.partition_point(|end| *end < offset) + 1);
        let table = DeTable::parse(body).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            SettingError::new(&at(start), error.message().trim().to_owned()).with_hint(
                "the file is TOML: a line is `key = value` or `[table]`, a text is in straight quotes, and a number has \
                 no unit: `200_000`",
            )
        })?;
        convert_entries(table.get_ref(), &at(0), &at)
    }

    /// Where the table was written.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Where a key was written; else the place of the table.
    pub fn place_of(&self, key: &str) -> &Place {
        self.get(key).map_or(&self.place, |setting| &setting.place)
    }

    /// The names and settings, in order.
    pub fn entries(&self) -> &[(String, Setting)] {
        &self.entries
    }

    /// The settings with their keys, to be changed.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = (&str, &mut Setting)> {
        self.entries.iter_mut().map(|(key, setting)| (key.as_str(), setting))
    }

    /// One setting.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, setting)| setting)
    }

    /// One setting, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Setting> {
        self.entries.iter_mut().find(|(name, _)| name == key).map(|(_, setting)| setting)
    }

    /// One setting, if it is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    /// One setting, if it is a list.
    pub fn list(&self, key: &str) -> Option<&[Setting]> {
        self.get(key)?.as_list()
    }

    /// One setting, if it is a table.
    pub fn table(&self, key: &str) -> Option<&Self> {
        self.get(key)?.as_table()
    }

    /// Adds or replaces one setting.
    pub fn set(&mut self, key: &str, setting: Setting) {
        match self.get_mut(key) {
            Some(old) => *old = setting,
            None => self.entries.push((key.to_owned(), setting)),
        }
    }

    /// Adds or replaces one value, written at this place.
    pub fn put(&mut self, key: &str, value: impl Into<SettingValue>, place: &Place) {
        self.set(key, Setting::new(value, place));
    }

    /// Removes one setting.
    pub fn remove(&mut self, key: &str) -> Option<Setting> {
        let at = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.remove(at).1)
    }

    /// The setting at a dotted path.
    pub fn at(&self, path: &str) -> Option<&Setting> {
        match path.split_once('.') {
            None => self.get(path),
            Some((head, rest)) => self.table(head)?.at(rest),
        }
    }

    /// Refuses a flag, at this place, that sets what another flag set.
    pub fn refuse_second_flag(&self, path: &str, place: &Place) -> Result<(), SettingError> {
        match self.at(path).map(|setting| &setting.place) {
            Some(other @ Place::Flag(_)) => {
                let problem = format!("{other} sets `{path}` too");
                Err(SettingError::new(place, problem).with_hint("leave one of them out"))
            }
            _ => Ok(()),
        }
    }

    /// Lays a setting over the table at a dotted path, making tables on the way.
    pub fn overlay(&mut self, path: &str, setting: Setting) -> Result<(), SettingError> {
        let Some((head, rest)) = path.split_once('.') else {
            self.set(path, setting);
            return Ok(());
        };
        if self.get(head).is_none() {
            let place = &setting.place;
            self.put(head, Self::new(place.clone()), place);
        }
        match self.get_mut(head).and_then(Setting::as_table_mut) {
            Some(table) => table.overlay(rest, setting),
            None => Err(SettingError::new(&setting.place, format!("`{head}` is not a table"))),
        }
    }
}

/// A key as TOML writes it: in quotes where it is more than one word.
fn quoted(key: &str) -> String {
    if key.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return key.to_owned();
    }
    toml::Value::String(key.to_owned()).to_string()
}

/// Parses one value as typed on a command line: TOML if it is TOML, else text.
pub fn parse_value(text: &str, place: &Place) -> Setting {
    let parsed = DeValue::parse(text)
        .ok()
        .and_then(|value| convert(value.get_ref(), place, &|_| place.clone()).ok());
    let value = parsed.unwrap_or_else(|| SettingValue::Text(text.to_owned()));
    Setting::new(value, place)
}

fn convert_entries(
    table: &DeTable<'_>,
    place: &Place,
    at: &dyn Fn(usize) -> Place,
) -> Result<SettingTable, SettingError> {
    let mut entries = Vec::new();
    let mut keys: Vec<_> = table.iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in keys {
        let place = at(key.span().start);
        let value = convert(value.get_ref(), &place, at)?;
        entries.push((key.get_ref().to_string(), Setting { value, place }));
    }
    Ok(SettingTable { entries, place: place.clone() })
}

fn convert(
    value: &DeValue<'_>,
    place: &Place,
    at: &dyn Fn(usize) -> Place,
) -> Result<SettingValue, SettingError> {
    Ok(match value {
        DeValue::String(text) => SettingValue::Text(text.to_string()),
        DeValue::Boolean(flag) => SettingValue::Flag(*flag),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            let too_large = format!("`{}` is too large a number", number.as_str());
            SettingValue::Integer(whole.map_err(|_| SettingError::new(place, too_large))?)
        }
        DeValue::Float(number) => {
            let real = number.as_str().parse();
            SettingValue::Real(real.map_err(|_| not_a_number(number.as_str(), place))?)
        }
        DeValue::Datetime(time) => SettingValue::Text(time.to_string()),
        DeValue::Array(items) => {
            let settings = items.iter().map(|item: &Spanned<DeValue<'_>>| {
                let place = at(item.span().start);
                let value = convert(item.get_ref(), &place, at)?;
                Ok(Setting { value, place })
            });
            SettingValue::List(settings.collect::<Result<_, SettingError>>()?)
        }
        DeValue::Table(table) => SettingValue::Table(convert_entries(table, place, at)?),
    })
}

fn not_a_number(text: &str, place: &Place) -> SettingError {
    SettingError::new(place, format!("`{text}` is not a number"))
}

/// The candidate that `typed` was probably meant to be.
pub fn did_you_mean<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    one_slip(typed, &candidates).or_else(|| {
        let scored =
            candidates.iter().map(|candidate| (strsim::jaro_winkler(typed, candidate), *candidate));
        scored
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, candidate)| candidate)
    })
}

/// The candidate that is one slip of the fingers away, such as two letters that changed places: in a short
/// word that leaves little alike.
fn one_slip<'a>(typed: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let mut near = candidates
        .iter()
        .copied()
        .filter(|candidate| candidate.len() > 2 && strsim::osa_distance(typed, candidate) == 1);
    near.next().filter(|_| near.next().is_none())
}

/// Adds a did-you-mean, or else the list of what there is, to an error.
pub fn with_suggestion<'a>(
    mut error: SettingError,
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> SettingError {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    // Then it is the value that is wrong.
    if candidates.contains(&typed) {
        return error;
    }
    match did_you_mean(typed, candidates.iter().copied()) {
        Some(candidate) => {
            let _ = write!(error.problem, ", did you mean `{candidate}`?");
            error
        }
        None if error.hint.is_none() && !candidates.is_empty() => {
            let listed: Vec<String> = candidates.iter().map(|word| format!("`{word}`")).collect();
            error.with_hint(format!("there are {}", listed.join(", ")))
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, read: impl Fn(&mut Reader<'_>) -> Result<(), SettingError>, says: &str) {
        let said = SettingTable::parse("s.toml", text)
            .and_then(|table| {
                let mut reader = Reader::new(&table, "");
                read(&mut reader)?;
                reader.finish()
            })
            .map_or_else(|error| error.to_string(), |()| "ok".to_owned());
        assert_eq!(said, says);
    }

    #[test]
    fn mistakes_name_file_line_and_what_was_meant() {
        check(
            "a = 1\nprobs = 2\n",
            |r| {
                r.whole("a", 0, 9)?;
                r.table("probes").map(drop)
            },
            "`s.toml`: line 2: unknown key `probs`, did you mean `probes`?",
        );
        check(
            "\n\na = 11",
            |r| r.whole("a", 1, 10).map(drop),
            "`s.toml`: line 3: `a` must be a whole number from 1 to 10, not `11`",
        );
        check(
            "a = -1",
            |r| r.whole("a", 1, u64::MAX).map(drop),
            "`s.toml`: line 1: `a` must be a whole number of at least 1, not `-1`",
        );
        check(
            "a = 1.5",
            |r| r.fraction("a").map(drop),
            "`s.toml`: line 1: `a` must be a number from 0 to 1, not `1.5`",
        );
        check(
            "a = 'vrebatim'",
            |r| r.choice("a", &["verbatim", "edited"]).map(drop),
            "`s.toml`: line 1: `a` must be one of `verbatim`, `edited`, not `\"vrebatim\"`, did you mean `verbatim`?",
        );
        check(
            "[b]\nc = []",
            |r| r.table("b")?.ok_or(()).map_or(Ok(()), |mut b| b.flag("c").map(drop)),
            "`s.toml`: line 2: `b.c` must be `true` or `false`, not a list",
        );
        check(
            "a = ",
            |_| Ok(()),
            "`s.toml`: line 1: string values must be quoted, expected literal string",
        );
    }

    #[test]
    fn a_key_that_has_to_be_there_may_be_there_misspelt() {
        let read = |reader: &mut Reader<'_>| {
            reader.text("family")?.map(drop).ok_or_else(|| reader.must_be_set("family"))
        };
        check("family = 'x'\n", read, "ok");
        check("seed = 1\n", read, "`s.toml`: line 1: `family` must be set");
        check(
            "seed = 1\nfamly = 'x'\n",
            read,
            "`s.toml`: line 2: unknown key `famly`, did you mean `family`?",
        );
    }

    #[test]
    fn overlays_reach_into_tables_and_keep_their_place() {
        let mut table = SettingTable::parse("s.toml", "[window]\ntokens = 5").unwrap();
        let flag = Place::Flag("--set window.tokens=9".into());
        table.overlay("window.tokens", parse_value("9", &flag)).unwrap();
        table.overlay("probes.grid.last", parse_value("true", &flag)).unwrap();
        let mut reader = Reader::new(&table, "");
        let mut window = reader.table("window").unwrap().unwrap();
        assert_eq!(window.whole("tokens", 0, 10), Ok(Some(9)));
        assert_eq!(window.setting("tokens").unwrap().place, flag);
        assert!(table.overlay("window.tokens.x", parse_value("1", &flag)).is_err());
    }

    #[test]
    fn values_on_a_command_line_need_no_quotes() {
        let place = Place::BuiltIn;
        for (typed, value) in [
            ("5", SettingValue::Integer(5)),
            ("0.5", SettingValue::Real(0.5)),
            ("true", SettingValue::Flag(true)),
            ("gone", SettingValue::Text("gone".to_owned())),
            ("\"5\"", SettingValue::Text("5".to_owned())),
        ] {
            assert_eq!(parse_value(typed, &place).value, value);
        }
    }
}
