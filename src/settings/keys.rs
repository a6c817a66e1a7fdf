//! Keys: what a table may hold, as data that reading, defaults and the JSON schema share.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use super::{Place, Reader, Setting, SettingError, SettingTable, SettingValue};

/// Sections of keys: each key is a table that says what it takes, its default and what it is for.
#[derive(Debug)]
pub struct Keys {
    sections: SettingTable,
    /// Names of something, where a key takes one of them.
    names: fn(&str) -> Vec<&'static str>,
}

/// One key, in words.
#[derive(Debug, Clone, Serialize)]
pub struct KeyInWords<'k> {
    /// Its name.
    pub name: &'k str,
    /// The values it takes.
    pub takes: String,
    /// Its default, as settings write it.
    pub default: String,
    /// Its purpose.
    pub doc: &'k str,
}

static EMPTY: SettingTable = SettingTable { entries: Vec::new(), place: Place::BuiltIn };

fn range(key: &SettingTable) -> Option<(u64, u64)> {
    let mut ends = key.list("whole")?.iter().map(|end| match end.value {
        SettingValue::Integer(end) => u64::try_from(end).unwrap_or(0),
        _ => 0,
    });
    Some((ends.next()?, ends.next().unwrap_or(u64::MAX)))
}

/// The JSON schema of a whole number.
fn whole_schema(low: u64, high: u64) -> Json {
    let mut schema = json!({ "type": "integer", "minimum": low });
    if high != u64::MAX {
        schema["maximum"] = json!(high);
    }
    schema
}

/// The type of a key that takes neither a whole number nor one of some words.
fn taken(key: &SettingTable) -> &'static SettingTable {
    static TAKES: LazyLock<Keys> =
        LazyLock::new(|| Keys::parse(include_str!("takes.toml"), |_| Vec::new()));
    TAKES.table(key.text("takes").unwrap_or("text"))
}

impl Keys {
    /// Parses sections of keys. Text that is not TOML has none, so that every key is an error.
    pub fn parse(text: &str, names: fn(&str) -> Vec<&'static str>) -> Self {
        let sections = SettingTable::parse("keys.toml", text).unwrap_or_else(|_| EMPTY.clone());
        Self { sections, names }
    }

    /// A section as it is written.
    pub fn table(&self, section: &str) -> &SettingTable {
        self.sections.table(section).unwrap_or(&EMPTY)
    }

    fn section(&self, name: &str) -> impl Iterator<Item = (&str, &SettingTable)> {
        let keys = self.table(name).entries().iter();
        keys.filter_map(|(name, key)| Some((name.as_str(), key.as_table()?)))
    }

    fn words<'k>(&self, key: &'k SettingTable) -> Option<Vec<&'k str>> {
        if let Some(names) = key.text("names") {
            return Some((self.names)(names));
        }
        let words = key.list("words")?.iter();
        Some(words.filter_map(|word| word.as_text()).collect())
    }

    /// The words that a key takes.
    pub fn words_of(&self, section: &str, name: &str) -> Vec<&str> {
        let key = self.table(section).table(name);
        key.and_then(|key| self.words(key)).unwrap_or_default()
    }

    /// The names of the keys of a section that take this.
    pub fn names_of(&self, section: &str, takes: &str) -> Vec<&str> {
        let taking = self.section(section).filter(|(_, key)| key.text("takes") == Some(takes));
        taking.map(|(name, _)| name).collect()
    }

    /// The keys of a section, in words.
    pub fn in_words(&self, section: &str) -> Vec<KeyInWords<'_>> {
        let keys = self.section(section).map(|(name, key)| KeyInWords {
            name,
            takes: self.takes(key),
            default: match key.get("default").map(|default| &default.value) {
                Some(SettingValue::Real(number)) => number.to_string(),
                Some(default) => default.to_string(),
                None => "no limit".to_owned(),
            },
            doc: key.text("doc").unwrap_or_default(),
        });
        keys.collect()
    }

    fn takes(&self, key: &SettingTable) -> String {
        if let Some((low, high)) = range(key) {
            return match high {
                u64::MAX => format!("whole number ≥ {low}"),
                _ => format!("whole number {low}..={high}"),
            };
        }
        if let Some(words) = self.words(key) {
            return words.join(" | ");
        }
        taken(key).text("words").unwrap_or_default().to_owned()
    }

    /// Checks the settings of a section by type and range.
    pub fn check(
        &'static self,
        reader: &mut Reader<'_>,
        section: &str,
    ) -> Result<(), SettingError> {
        for (name, key) in self.section(section) {
            if let Some((low, high)) = range(key) {
                reader.whole(name, low, high)?;
            } else if let Some(words) = self.words(key) {
                reader.choice(name, &words)?;
            } else {
                match key.text("takes") {
                    Some("fraction") => drop(reader.fraction(name)?),
                    Some("factor") => drop(reader.factor(name)?),
                    Some("amount") => drop(reader.amount(name)?),
                    Some("flag" | "word") => drop(reader.flag(name)?),
                    Some("text") => drop(reader.text(name)?),
                    Some("texts") => reader.texts_of(name, key.list("of"))?,
                    _ => drop(reader.setting(name)),
                }
            }
        }
        Ok(())
    }

    /// The JSON schema of a section.
    pub fn object(&self, section: &str) -> Json {
        let required = self.section(section).filter(|(_, key)| key.get("is_required").is_some());
        let keys = self.section(section);
        let properties = keys.map(|(name, key)| (name.to_owned(), self.schema(key)));
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties.collect::<Map<_, _>>(),
            "required": required.map(|(name, _)| name).collect::<Vec<_>>(),
        })
    }

    fn schema(&self, key: &SettingTable) -> Json {
        let mut schema = Map::new();
        if let Some(doc) = key.text("doc") {
            schema.insert("description".to_owned(), json!(doc));
        }
        let takes = if let Some((low, high)) = range(key) {
            whole_schema(low, high)
        } else if let Some(words) = self.words(key) {
            json!({ "enum": words })
        } else if let Some(section) = key.text("table") {
            self.object(section)
        } else {
            let schema = key.get("schema").or_else(|| taken(key).get("schema"));
            schema.map_or(Json::Null, |schema| self.json(&schema.value))
        };
        schema.extend(takes.as_object().cloned().unwrap_or_default());
        if let Some(default) = key.get("default") {
            schema.insert("default".to_owned(), self.json(&default.value));
        }
        Json::Object(schema)
    }

    /// A value as JSON; `@name` is replaced by the names or the section of that name.
    fn json(&self, value: &SettingValue) -> Json {
        value.to_json(&|text| match text.strip_prefix('@') {
            None => json!(text),
            Some(name) => match (self.names)(name) {
                names if !names.is_empty() => json!(names),
                _ => match name.strip_suffix("/properties") {
                    Some(section) => self.object(section)["properties"].take(),
                    None => self.object(name),
                },
            },
        })
    }

    /// The dotted paths of all keys of a section that have a default, with the default as TOML.
    pub fn defaults(&self, section: &str, path: &str) -> Vec<(String, String)> {
        let keys = self.section(section);
        let defaults = keys.flat_map(|(name, key)| match (key.text("table"), key.get("default")) {
            (Some(inner), _) if key.get("is_optional").is_none() => {
                self.defaults(inner, &format!("{path}{name}."))
            }
            (_, Some(default)) => vec![(format!("{path}{name}"), default.value.to_string())],
            _ => Vec::new(),
        });
        defaults.collect()
    }
}

impl SettingValue {
    /// The value as JSON.
    pub fn plain(&self) -> Json {
        self.to_json(&|text| json!(text))
    }

    /// The value as JSON, its texts as `of_text` has them.
    fn to_json(&self, of_text: &dyn Fn(&str) -> Json) -> Json {
        match self {
            Self::Text(text) => of_text(text),
            Self::Integer(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::Flag(flag) => json!(flag),
            Self::List(items) => items.iter().map(|item| item.value.to_json(of_text)).collect(),
            Self::Table(table) => {
                let entries = table.entries().iter();
                let fields =
                    entries.map(|(key, setting)| (key.clone(), setting.value.to_json(of_text)));
                Json::Object(fields.collect())
            }
        }
    }
}

/// A table whose keys, types and ranges were checked. A key that is missing has its default.
#[derive(Debug)]
pub struct CheckedTable<'a> {
    table: &'a SettingTable,
    path: String,
    keys: &'static Keys,
    section: &'static str,
}

impl<'a> CheckedTable<'a> {
    /// Checks `table` against a section; `path` is its dotted path, empty for the whole file.
    pub fn new(
        table: &'a SettingTable,
        path: &str,
        (keys, section): (&'static Keys, &'static str),
    ) -> Result<Self, SettingError> {
        let mut reader = Reader::new(table, path);
        keys.check(&mut reader, section)?;
        reader.finish()?;
        Ok(Self::unchecked(table, path, (keys, section)))
    }

    /// The same, without a look at the keys of the table.
    pub fn unchecked(
        table: &'a SettingTable,
        path: &str,
        (keys, section): (&'static Keys, &'static str),
    ) -> Self {
        Self { table, path: path.to_owned(), keys, section }
    }

    /// The same table, to be read key by key.
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.table, &*self.path)
    }

    fn key(&self, name: &str) -> Option<&'static SettingTable> {
        self.keys.table(self.section).table(name)
    }

    /// The names of the keys that a table of this kind may have: those that list it in `kinds`, or
    /// list none.
    pub fn of_kind(&self, kind: &str) -> Vec<&'static str> {
        let keys = self.keys.section(self.section).filter(|(_, key)| {
            let kinds = key.list("kinds");
            kinds.is_none_or(|kinds| kinds.iter().any(|word| word.as_text() == Some(kind)))
        });
        keys.map(|(name, _)| name).collect()
    }

    /// A table in this one, with the keys that it has there; without settings if it is not there.
    pub fn table(&self, name: &str) -> Result<Self, SettingError> {
        let section = self.key(name).and_then(|key| key.text("table"));
        let mut reader = self.reader();
        let table = reader.table(name)?.map_or(&EMPTY, |reader| reader.table);
        let section = (self.keys, section.unwrap_or_default());
        Self::new(table, &reader.path_of(name), section)
    }

    /// Where the table was written.
    pub fn place(&self) -> &'a Place {
        self.table.place()
    }

    /// Where a key was written; else the place of the table.
    pub fn place_of(&self, name: &str) -> &'a Place {
        self.table.place_of(name)
    }

    /// The setting as it was written, if it is there.
    pub fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.table.get(name)
    }

    /// The setting as it was written, or the default.
    pub fn given(&self, name: &str) -> Option<&Setting> {
        self.setting(name).or_else(|| self.key(name)?.get("default"))
    }

    /// All keys as the fields of a value that have their names: what is set, else the default.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SettingError> {
        let keys = self.keys.section(self.section);
        let defaults = keys.filter_map(|(name, key)| Some((name, key.get("default")?)));
        let values = defaults.map(|(name, default)| (name.to_owned(), default.value.plain()));
        self.laid_over(values.collect())
    }

    /// `base`, with the keys that are set in place of its fields.
    pub fn read_over<T: Serialize + DeserializeOwned>(&self, base: &T) -> Result<T, SettingError> {
        let base = serde_json::to_value(base).unwrap_or_default();
        self.laid_over(base.as_object().cloned().unwrap_or_default())
    }

    fn laid_over<T: DeserializeOwned>(
        &self,
        mut values: Map<String, Json>,
    ) -> Result<T, SettingError> {
        for (name, setting) in self.table.entries() {
            values.insert(name.clone(), setting.value.plain());
        }
        serde_json::from_value(Json::Object(values))
            .map_err(|error| SettingError::new(self.place(), error.to_string()))
    }

    /// A whole number.
    pub fn whole<N: TryFrom<i64>>(&self, name: &str) -> Option<N> {
        match self.given(name)?.value {
            SettingValue::Integer(number) => N::try_from(number).ok(),
            _ => None,
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.given(name)?.value {
            SettingValue::Real(number) => Some(number),
            SettingValue::Integer(number) => Some(number as f64),
            _ => None,
        }
    }

    /// Text, or one of some words.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given(name)?.as_text()
    }

    /// Which of `all` is named.
    pub fn one_of<T: Copy>(
        &self,
        name: &str,
        all: impl IntoIterator<Item = T>,
        name_of: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.text(name)?;
        all.into_iter().find(|one| name_of(*one) == text)
    }

    /// Yes or no.
    pub fn flag(&self, name: &str) -> bool {
        let flag = self.given(name).map(|setting| &setting.value);
        flag == Some(&SettingValue::Flag(true))
    }

    /// A file, relative to `folder`, with what named it.
    pub fn file(&self, name: &str, folder: &Path) -> Option<(PathBuf, Place)> {
        let path = folder.join(self.text(name)?);
        Some((path, self.place_of(name).clone()))
    }

    /// Files, relative to `folder`, with what named them.
    pub fn files(&self, name: &str, folder: &Path) -> Vec<(PathBuf, Place)> {
        let files = self.reader().texts(name).ok().flatten().into_iter().flatten();
        files.map(|file| (folder.join(file), self.place_of(name).clone())).collect()
    }
}
