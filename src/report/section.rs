//! A section of a report: a table, and the texts around it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Column, Row, Table, columns};

/// One table with its texts.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Section {
    /// Its name in files.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Its content, in a sentence.
    pub about: String,
    /// Where it is shown.
    pub audience: Audience,
    /// The table.
    pub table: Table,
    /// The text below it: legends, and lists of what was left out.
    pub notes: Vec<String>,
    /// The most rows that a terminal shows.
    #[serde(skip)]
    pub(crate) most_rows: usize,
}

/// Tables of sessions up to this long are shown on a terminal as well.
const SHORT: usize = 10;

/// Where a section is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Everywhere.
    Everyone,
    /// In files only: too long for a terminal.
    Files,
}

/// The texts of a section.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SectionTexts {
    title: String,
    about: String,
    columns: String,
    files_only: bool,
}

/// The texts of all sections, by id.
static TEXTS: LazyLock<BTreeMap<String, SectionTexts>> =
    LazyLock::new(|| toml::from_str(include_str!("sections.toml")).unwrap_or_default());

/// The ids of all sections that a report can have.
pub(crate) fn section_ids() -> Vec<&'static str> {
    TEXTS.keys().map(String::as_str).collect()
}

impl Section {
    /// A section with the texts of this id in `sections.toml`.
    pub(crate) fn new(id: &'static str, rows: impl IntoIterator<Item = Row>) -> Self {
        static NONE: LazyLock<SectionTexts> = LazyLock::new(SectionTexts::default);
        let texts = TEXTS.get(id).unwrap_or(&NONE);
        Self {
            id,
            title: texts.title.clone(),
            about: texts.about.clone(),
            audience: if texts.files_only { Audience::Files } else { Audience::Everyone },
            table: Table { columns: columns(&texts.columns), rows: rows.into_iter().collect() },
            notes: Vec::new(),
            most_rows: usize::MAX,
        }
    }

    /// Puts a value in the place of `{name}` in title and text.
    pub(crate) fn fill(mut self, name: &str, value: &str) -> Self {
        let place = format!("{{{name}}}");
        self.title = self.title.replace(&place, value);
        self.about = self.about.replace(&place, value);
        self
    }

    /// Shows only the first rows on a terminal.
    pub(crate) fn at_most(self, most_rows: usize) -> Self {
        Self { most_rows, ..self }
    }

    /// Adds columns whose number depends on the run.
    pub(crate) fn more_columns(mut self, more: impl IntoIterator<Item = Column>) -> Self {
        self.table.columns.extend(more);
        self
    }

    /// Leaves columns out, with their cells.
    pub(crate) fn without(mut self, ids: &[&str]) -> Self {
        let columns = self.table.columns.iter().enumerate().skip(1);
        let kept: Vec<usize> =
            columns.filter(|(_, column)| !ids.contains(&column.id)).map(|(at, _)| at).collect();
        self.table = self.table.pick(&kept);
        self
    }

    /// Keeps columns without any measured value out of terminals.
    pub(crate) fn hide_unmeasured(mut self) -> Self {
        let Table { columns, rows } = &mut self.table;
        for (at, column) in columns.iter_mut().skip(1).enumerate() {
            if rows.iter().filter_map(|row| row.cells.get(at)).all(|cell| cell.value.is_nothing()) {
                column.priority = Column::FILES_ONLY;
            }
        }
        self
    }

    pub(crate) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Keeps a table of many sessions out of terminals.
    pub(crate) fn in_files_if_long(mut self) -> Self {
        if self.table.rows.len() > SHORT {
            self.audience = Audience::Files;
        }
        self
    }

    /// Keeps the first rows, with a note on how many more there are.
    pub(crate) fn cut(mut self, most: usize, note: impl Fn(usize) -> String) -> Self {
        let rest = self.table.rows.len().saturating_sub(most);
        self.table.rows.truncate(most);
        self.with_notes((rest > 0).then(|| note(rest)))
    }
}
