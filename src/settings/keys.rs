//! Keys: what a table may hold, as data that reading, defaults and the JSON schema share.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::{Place, Reader, Setting, SettingError, Table, Value};

/// Sections of keys: each key is a table that says what it takes, its default and what it is for.
#[derive(Debug)]
pub struct Keys {
    sections: Table,
    /// Names of something, where a key takes one of them.
    names: fn(&str) -> Vec<&'static str>,
}

static EMPTY: Table = Table {
    entries: Vec::new(),
    place: Place::BuiltIn,
};

fn text<'t>(key: &'t Table, name: &str) -> Option<&'t str> {
    key.get(name)?.as_text()
}

fn list<'t>(key: &'t Table, name: &str) -> Option<&'t [Setting]> {
    key.get(name)?.as_list()
}

fn range(key: &Table) -> Option<(u64, u64)> {
    let mut ends = list(key, "whole")?.iter().map(|end| match end.value {
        Value::Whole(end) => u64::try_from(end).unwrap_or(0),
        _ => 0,
    });
    Some((ends.next()?, ends.next().unwrap_or(u64::MAX)))
}

/// The JSON schema of a whole number.
pub fn whole_schema(low: u64, high: u64) -> Json {
    let mut schema = json!({ "type": "integer", "minimum": low });
    if high != u64::MAX {
        schema["maximum"] = json!(high);
    }
    schema
}

/// The JSON schema of a share.
pub fn fraction_schema() -> Json {
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
}

impl Keys {
    /// Parses sections of keys. Text that is no TOML has none, so that every key is a mistake.
    pub fn parse(text: &str, names: fn(&str) -> Vec<&'static str>) -> Self {
        let sections = Table::parse("keys.toml", text);
        let sections = sections.unwrap_or_else(|_| EMPTY.clone());
        Self { sections, names }
    }

    fn section(&self, name: &str) -> impl Iterator<Item = (&str, &Table)> {
        let section = self.sections.get(name);
        let section = section.and_then(|section| section.as_table());
        let keys = section.unwrap_or(&EMPTY).entries().iter();
        keys.filter_map(|(name, key)| Some((name.as_str(), key.as_table()?)))
    }

    fn words<'k>(&self, key: &'k Table) -> Option<Vec<&'k str>> {
        if let Some(names) = text(key, "names") {
            return Some((self.names)(names));
        }
        let words = list(key, "words")?.iter();
        Some(words.filter_map(|word| word.as_text()).collect())
    }

    /// The JSON schema of a section.
    pub fn object(&self, section: &str) -> Json {
        let keys = || self.section(section);
        let required = keys().filter(|(_, key)| key.get("is_required").is_some());
        let properties = keys().map(|(name, key)| (name.to_owned(), self.schema(key)));
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties.collect::<Map<_, _>>(),
            "required": required.map(|(name, _)| name).collect::<Vec<_>>(),
        })
    }

    fn schema(&self, key: &Table) -> Json {
        let mut schema = Map::new();
        if let Some(doc) = text(key, "doc") {
            schema.insert("description".to_owned(), json!(doc));
        }
        let takes = if let Some((low, high)) = range(key) {
            whole_schema(low, high)
        } else if let Some(words) = self.words(key) {
            json!({ "enum": words })
        } else if let Some(section) = text(key, "table") {
            self.object(section)
        } else if let Some(schema) = key.get("schema") {
            self.json(&schema.value)
        } else {
            match text(key, "takes") {
                Some("fraction") => fraction_schema(),
                Some("amount") => json!({ "type": "number", "minimum": 0 }),
                Some("flag") => json!({ "type": "boolean" }),
                Some("texts") => json!({ "type": "array", "items": { "type": "string" } }),
                _ => json!({ "type": "string" }),
            }
        };
        schema.extend(takes.as_object().cloned().unwrap_or_default());
        if let Some(default) = key.get("default") {
            schema.insert("default".to_owned(), self.json(&default.value));
        }
        Json::Object(schema)
    }

    /// A value as JSON; `@name` stands for the names or the section of that name.
    fn json(&self, value: &Value) -> Json {
        match value {
            Value::Text(text) => match text.strip_prefix('@').map(|name| (self.names)(name)) {
                Some(names) if !names.is_empty() => json!(names),
                Some(_) => match text[1..].strip_suffix("/properties") {
                    Some(section) => self.object(section)["properties"].take(),
                    None => self.object(&text[1..]),
                },
                None => json!(text),
            },
            Value::Whole(number) => json!(number),
            Value::Real(number) => json!(number),
            Value::Flag(flag) => json!(flag),
            Value::List(items) => items.iter().map(|item| self.json(&item.value)).collect(),
            Value::Table(table) => {
                let entries = table.entries().iter();
                let entries = entries.map(|(key, it)| (key.clone(), self.json(&it.value)));
                Json::Object(entries.collect())
            }
        }
    }

    /// The dotted paths of all keys of a section that have a default, with the default as TOML.
    pub fn defaults(&self, section: &str, path: &str) -> Vec<(String, String)> {
        let of = |(name, key): (&str, &Table)| match (text(key, "table"), key.get("default")) {
            (Some(inner), _) if key.get("is_optional").is_none() => {
                self.defaults(inner, &format!("{path}{name}."))
            }
            (_, Some(default)) => vec![(format!("{path}{name}"), default.value.to_string())],
            _ => Vec::new(),
        };
        self.section(section).flat_map(of).collect()
    }
}

/// A table whose keys, types and ranges were checked. A key that is missing has its default.
#[derive(Debug)]
pub struct Keyed<'a> {
    table: &'a Table,
    path: String,
    keys: &'static Keys,
    section: &'static str,
}

impl<'a> Keyed<'a> {
    /// Checks `table` against a section; `path` is its dotted path, empty for the whole file.
    pub fn new(
        table: &'a Table,
        path: &str,
        (keys, section): (&'static Keys, &'static str),
    ) -> Result<Self, SettingError> {
        let mut reader = Reader::new(table, path);
        for (name, key) in keys.section(section) {
            if let Some((low, high)) = range(key) {
                reader.whole(name, low, high)?;
            } else if let Some(words) = keys.words(key) {
                reader.choice(name, &words)?;
            } else {
                match text(key, "takes") {
                    Some("fraction") => drop(reader.fraction(name)?),
                    Some("amount") => drop(reader.amount(name)?),
                    Some("flag") => drop(reader.flag(name)?),
                    Some("text") => drop(reader.text(name)?),
                    Some("texts") => drop(reader.texts(name)?),
                    _ => drop(reader.setting(name)),
                }
            }
        }
        reader.finish()?;
        Ok(Self::unchecked(table, path, (keys, section)))
    }

    /// The same, without a look at the keys of the table.
    pub fn unchecked(
        table: &'a Table,
        path: &str,
        (keys, section): (&'static Keys, &'static str),
    ) -> Self {
        let path = path.to_owned();
        Self {
            table,
            path,
            keys,
            section,
        }
    }

    /// The same table, to be read key by key.
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.table, &*self.path)
    }

    fn key(&self, name: &str) -> Option<&'static Table> {
        let mut section = self.keys.section(self.section);
        section.find(|(key, _)| *key == name).map(|(_, key)| key)
    }

    /// The names of the keys that a table of this kind may have: those that list it in `kinds`, or
    /// list none.
    pub fn of_kind(&self, kind: &str) -> Vec<&'static str> {
        let keys = self.keys.section(self.section);
        let is_of_kind = |key: &Table| {
            let mut kinds = list(key, "kinds")?.iter();
            Some(kinds.any(|it| it.as_text() == Some(kind)))
        };
        let keys = keys.filter(|(_, key)| is_of_kind(key) != Some(false));
        keys.map(|(name, _)| name).collect()
    }

    /// A table in this one, with the keys that it has there; without settings if it is not there.
    pub fn table(&self, name: &str) -> Result<Self, SettingError> {
        let section = self.key(name).and_then(|key| text(key, "table"));
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
        let setting = self.setting(name);
        setting.map_or(self.place(), |setting| &setting.place)
    }

    /// The setting as it was written, if it is there.
    pub fn setting(&self, name: &str) -> Option<&'a Setting> {
        self.table.get(name)
    }

    /// The setting as it was written, or the default.
    pub fn given(&self, name: &str) -> Option<&Setting> {
        let default = || self.key(name)?.get("default");
        self.setting(name).or_else(default)
    }

    /// A whole number.
    pub fn whole<N: TryFrom<i64>>(&self, name: &str) -> Option<N> {
        match self.given(name)?.value {
            Value::Whole(number) => N::try_from(number).ok(),
            _ => None,
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.given(name)?.value {
            Value::Real(number) => Some(number),
            Value::Whole(number) => Some(number as f64),
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
        flag == Some(&Value::Flag(true))
    }

    /// A file, relative to `folder`, with what named it.
    pub fn file(&self, name: &str, folder: &Path) -> Option<(PathBuf, Place)> {
        let path = folder.join(self.text(name)?);
        Some((path, self.place_of(name).clone()))
    }

    /// Files, relative to `folder`, with what named them.
    pub fn files(&self, name: &str, folder: &Path) -> Vec<(PathBuf, Place)> {
        let files = self.reader().texts(name).ok().flatten();
        let files = files.into_iter().flatten();
        files
            .map(|file| (folder.join(file), self.place_of(name).clone()))
            .collect()
    }
}
