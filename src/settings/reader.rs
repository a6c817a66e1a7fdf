//! Reading a table once: names, types and ranges are checked, and a key that is not read is a mistake.

use std::collections::BTreeSet;

use super::{
    CheckedTable, Keys, Place, Setting, SettingError, SettingTable, SettingValue, did_you_mean,
    with_suggestion,
};

/// Reads a table once: every setting that is there must be asked for, or it is a mistake.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(super) table: &'a SettingTable,
    path: String,
    read_keys: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    /// Reads `table`; `path` is its dotted path, empty for the whole file.
    pub fn new(table: &'a SettingTable, path: impl Into<String>) -> Self {
        Self { table, path: path.into(), read_keys: BTreeSet::new() }
    }

    /// Where the table was written.
    pub fn place(&self) -> &'a Place {
        self.table.place()
    }

    /// Where `key` was written; else the place of the table.
    pub fn place_of(&self, key: &str) -> &'a Place {
        self.table.place_of(key)
    }

    /// The dotted path of `key`.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The setting, if it is there.
    pub fn setting(&mut self, key: &str) -> Option<&'a Setting> {
        self.read_keys.insert(key.to_owned());
        self.table.get(key)
    }

    fn wrong(&self, key: &str, setting: &Setting, wanted: &str) -> SettingError {
        let got = match &setting.value {
            value @ (SettingValue::Text(_)
            | SettingValue::Integer(_)
            | SettingValue::Real(_)
            | SettingValue::Flag(_)) => format!("`{value}`"),
            SettingValue::List(_) => "a list".to_owned(),
            SettingValue::Table(_) => "a table".to_owned(),
        };
        let path = self.path_of(key);
        SettingError::new(&setting.place, format!("`{path}` must be {wanted}, not {got}"))
    }

    /// Converts a value with `of`.
    fn take<T>(
        &mut self,
        key: &str,
        wanted: &str,
        of: impl Fn(&'a Setting) -> Option<T>,
    ) -> Result<Option<T>, SettingError> {
        let Some(setting) = self.setting(key) else {
            return Ok(None);
        };
        of(setting).map(Some).ok_or_else(|| self.wrong(key, setting, wanted))
    }

    /// Converts each value of a list with `of`.
    fn items<T>(
        &mut self,
        key: &str,
        wanted: &str,
        of: impl Fn(&'a Setting) -> Option<T>,
    ) -> Result<Option<Vec<T>>, SettingError> {
        let Some(items) = self.take(key, wanted, Setting::as_list)? else {
            return Ok(None);
        };
        let converted =
            items.iter().map(|item| of(item).ok_or_else(|| self.wrong(key, item, wanted)));
        converted.collect::<Result<_, _>>().map(Some)
    }

    /// A number between these, both included; one written without a fraction is at most `most`.
    fn number(
        &mut self,
        key: &str,
        wanted: &str,
        (low, high, most): (f64, f64, i64),
    ) -> Result<Option<f64>, SettingError> {
        self.take(key, wanted, |setting| {
            let number = match &setting.value {
                SettingValue::Real(number) => Some(*number),
                SettingValue::Integer(number) if *number <= most => Some(*number as f64),
                _ => None,
            };
            number.filter(|number| (low..=high).contains(number))
        })
    }

    /// Text that must be there.
    pub fn required(&mut self, key: &str) -> Result<String, SettingError> {
        self.text(key)?.map(str::to_owned).ok_or_else(|| self.must_be_set(key))
    }

    /// Text.
    pub fn text(&mut self, key: &str) -> Result<Option<&'a str>, SettingError> {
        self.take(key, "text", Setting::as_text)
    }

    /// A whole number from `low` to `high`, both included.
    pub fn whole(&mut self, key: &str, low: u64, high: u64) -> Result<Option<u64>, SettingError> {
        let Some(setting) = self.setting(key) else {
            return Ok(None);
        };
        match &setting.value {
            SettingValue::Integer(number) => match u64::try_from(*number) {
                Ok(number) if (low..=high).contains(&number) => Ok(Some(number)),
                _ => Err(self.wrong(key, setting, &range_of(low, high))),
            },
            SettingValue::Text(text) => {
                let error = self.wrong(key, setting, "a whole number");
                let thousands = text.strip_suffix(['k', 'K']).map(str::parse::<u32>);
                Err(match thousands {
                    Some(Ok(thousands)) => error.with_hint(format!("write `{thousands}_000`")),
                    Some(Err(_)) | None => error,
                })
            }
            _ => Err(self.wrong(key, setting, "a whole number")),
        }
    }

    /// A number from 0 to 1, both included.
    pub fn fraction(&mut self, key: &str) -> Result<Option<f64>, SettingError> {
        self.number(key, "a number from 0 to 1", (0.0, 1.0, 1))
    }

    /// A number of at least 1.
    pub fn factor(&mut self, key: &str) -> Result<Option<f64>, SettingError> {
        self.number(key, "a number of at least 1", (1.0, f64::MAX, 1_000_000))
    }

    /// A number of at least 0.
    pub fn amount(&mut self, key: &str) -> Result<Option<f64>, SettingError> {
        self.number(key, "a number of at least 0", (0.0, f64::MAX, 1_000_000_000))
    }

    /// Yes or no.
    pub fn flag(&mut self, key: &str) -> Result<Option<bool>, SettingError> {
        self.take(key, "`true` or `false`", |setting| match &setting.value {
            SettingValue::Flag(flag) => Some(*flag),
            _ => None,
        })
    }

    /// One of some words.
    pub fn choice(
        &mut self,
        key: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, SettingError> {
        let Some(setting) = self.setting(key) else {
            return Ok(None);
        };
        if let SettingValue::Text(text) = &setting.value
            && let Some(word) = words.iter().find(|word| *word == text)
        {
            return Ok(Some(word));
        }
        let listed: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let error = self.wrong(key, setting, &format!("one of {}", listed.join(", ")));
        Err(match &setting.value {
            SettingValue::Text(text) => match did_you_mean(text, words.iter().copied()) {
                Some(_) => with_suggestion(error, text, words.iter().copied()),
                None => error,
            },
            _ => error,
        })
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &str) -> Result<Option<Vec<&'a str>>, SettingError> {
        self.items(key, "a list of texts", Setting::as_text)
    }

    /// Checks a list of texts, each of which must be one of `allowed`, if that says anything.
    pub(super) fn texts_of(
        &mut self,
        key: &str,
        allowed: Option<&[Setting]>,
    ) -> Result<(), SettingError> {
        let texts = self.texts(key)?.unwrap_or_default();
        let allowed: Vec<&str> =
            allowed.into_iter().flatten().filter_map(Setting::as_text).collect();
        let unknown = texts.into_iter().find(|text| !allowed.contains(text));
        match (unknown.filter(|_| !allowed.is_empty()), self.setting(key)) {
            (Some(unknown), Some(setting)) => {
                let (path, allowed) = (self.path_of(key), allowed.join("`, `"));
                let problem = format!("`{path}` names `{unknown}`: it must be of `{allowed}`");
                Err(SettingError::new(&setting.place, problem))
            }
            _ => Ok(()),
        }
    }

    /// The same table, checked against a section of keys.
    pub fn keyed(
        self,
        keys: &'static Keys,
        section: &'static str,
    ) -> Result<CheckedTable<'a>, SettingError> {
        CheckedTable::new(self.table, &self.path, (keys, section))
    }

    /// A table, ready to be read.
    pub fn table(&mut self, key: &str) -> Result<Option<Reader<'a>>, SettingError> {
        let table = self.take(key, "a table", Setting::as_table)?;
        Ok(table.map(|table| Reader::new(table, self.path_of(key))))
    }

    /// A list of tables, as `[[key]]` writes it.
    pub fn tables(&mut self, key: &str) -> Result<Vec<&'a SettingTable>, SettingError> {
        let wanted = format!("a list of tables (`[[{key}]]`)");
        let tables = self.items(key, &wanted, Setting::as_table)?;
        Ok(tables.unwrap_or_default())
    }

    /// The error that `key` is missing. A key that is probably a misspelling of it is named.
    pub fn must_be_set(&self, key: &str) -> SettingError {
        let meant = self.table.entries().iter().find(|(typed, _)| {
            !self.read_keys.contains(typed) && did_you_mean(typed, [key]).is_some()
        });
        if let Some((typed, setting)) = meant {
            let problem = format!("unknown key `{}`", self.path_of(typed));
            with_suggestion(SettingError::new(&setting.place, problem), typed, [key])
        } else {
            let problem = format!("`{}` must be set", self.path_of(key));
            SettingError::new(self.place(), problem)
        }
    }

    /// Refuses keys that were not read.
    pub fn finish(self) -> Result<(), SettingError> {
        let read_keys: Vec<&str> = self.read_keys.iter().map(String::as_str).collect();
        self.refuse_others(&read_keys)
    }

    /// Refuses keys that are none of these.
    pub fn refuse_others(&self, known: &[&str]) -> Result<(), SettingError> {
        let mut entries = self.table.entries().iter();
        let Some((key, setting)) = entries.find(|(key, _)| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let problem = format!("unknown key `{}`", self.path_of(key));
        let error = SettingError::new(&setting.place, problem);
        Err(with_suggestion(error, key, known.iter().copied()))
    }
}

fn range_of(low: u64, high: u64) -> String {
    if high == u64::MAX {
        format!("a whole number of at least {low}")
    } else {
        format!("a whole number from {low} to {high}")
    }
}
