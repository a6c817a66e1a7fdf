//! Tables of a report: columns, rows and cells whose values say what kind they are.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::{RowMark, display};
use crate::metric::{Direction, Unit};
use crate::stats::{ConfidenceInterval, SampleSize};
use crate::units::{Tokens, Usd};

/// Rows under columns.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize)]
pub struct Table {
    /// The columns; the first one is the rows' name.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Column {
    /// Its name in files.
    pub id: &'static str,
    /// Its heading.
    pub label: String,
    /// Unit and direction, where it is a metric.
    pub measure: Option<Measure>,
    /// Its priority where there is no room for all columns: 0 is the most important. Columns with a
    /// larger number are left out first, among equals the last; [`Column::FILES_ONLY`] is shown in
    /// files only.
    #[serde(rename = "rank")]
    pub priority: u8,
}

/// Unit and direction of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Measure {
    /// In what it is measured.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
}

/// One row.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The kind of row.
    pub role: Role,
    /// Remarks on the whole row: `broken (2 rejected, died at 57)`.
    pub marks: Vec<RowMark>,
    /// Whether it takes part in rankings: it fired, and nothing in it is broken.
    pub ranked: bool,
    /// One cell per column after the first.
    pub cells: Vec<Cell>,
}

/// The kind of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `full`.
    Reference,
    /// `empty`.
    Floor,
    /// A strategy.
    Strategy,
    /// Something else: a session, an item, a stage.
    Other,
}

/// One value with its sample size and interval.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Cell {
    /// The value.
    pub value: Value,
    /// Its sample size, where it is an estimate or a share of items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<SampleSize>,
    /// Its interval, where it is an estimate over two sessions or more; of a share of all items Wilson's. It
    /// may reach beyond what is possible, which formats for people do not print.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<ConfidenceInterval>,
    /// Of a share that is at least its value, the most that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// Whether it is the best of its column among the rows that are ranked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub best: bool,
    /// The range of possible values.
    #[serde(skip)]
    pub(crate) range: Range,
}

/// A range of possible values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Range {
    /// From 0 to 1.
    #[default]
    Share,
    /// Up to 1.
    Savings,
}

/// A value of a known kind.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A share: 1 is printed as 100 %. Always finite.
    Share(f64),
    /// Tokens.
    Tokens(u64),
    /// How many.
    Count(u64),
    /// A count out of a total.
    #[serde(rename = "of")]
    Fraction(u64, u64),
    /// Dollars, `80.29` in files.
    Dollars(
        #[serde(serialize_with = "dollars")]
        #[schemars(with = "f64")]
        Usd,
    ),
    /// Seconds, modelled. Always finite.
    Seconds(f64),
    /// Words, as recorded: to be escaped.
    Text(String),
    /// Nobody measured it. Never printed as zero or blank.
    NotMeasured,
    /// There is nothing to measure: the reference never fires.
    NotApplicable,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn dollars<S: Serializer>(money: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(money.in_dollars())
}

impl Column {
    /// The priority of a column that a terminal does not show: too long, or not measured, which a
    /// note then says.
    pub const FILES_ONLY: u8 = u8::MAX;

    /// Whether a terminal does not show it.
    pub(crate) fn is_for_files(&self) -> bool {
        self.priority == Self::FILES_ONLY
    }

    /// A column of words or counts.
    pub(crate) fn new(id: &'static str, label: impl Into<String>, priority: u8) -> Self {
        Self { id, label: label.into(), measure: None, priority }
    }
}

impl Table {
    /// The cells of a column; none of the first, which holds the rows' names.
    pub(crate) fn cells(&self, at: usize) -> impl Iterator<Item = &Cell> {
        let place = at.checked_sub(1);
        self.rows.iter().filter_map(move |row| row.cells.get(place?))
    }

    /// The names of the rows and these columns, in this order.
    pub(crate) fn pick(&self, columns: &[usize]) -> Self {
        let rows = self.rows.iter().map(|row| {
            let cells = columns.iter().filter_map(|at| row.cells.get(at - 1));
            let mut few = row.clone();
            few.cells = cells.cloned().collect();
            few
        });
        let places = [0].iter().chain(columns);
        let columns = places.filter_map(|at| self.columns.get(*at)).cloned();
        Self { rows: rows.collect(), columns: columns.collect() }
    }

    /// Whether a column holds words.
    pub(crate) fn is_text(&self, at: usize) -> bool {
        at == 0 || self.cells(at).any(|cell| matches!(cell.value, Value::Text(_)))
    }

    /// The n that at least half of the cells of a column have: the heading shows it, and a cell with
    /// another prints its own. Where they differ the heading has none.
    pub(crate) fn shared_n(&self, at: usize) -> Option<SampleSize> {
        let sizes: Vec<SampleSize> = self.cells(at).filter_map(|cell| cell.n).collect();
        let counts =
            sizes.iter().rev().map(|n| (sizes.iter().filter(|other| *other == n).count(), *n));
        let (count, most) = counts.max_by_key(|(count, _)| *count)?;
        (2 * count >= sizes.len()).then_some(most)
    }

    /// The place of the column of this name.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// The cell of a row in the column of this name; `None` in the first column, the rows' names.
    pub(crate) fn cell<'a>(&self, row: &'a Row, column: &str) -> Option<&'a Cell> {
        row.cells.get(self.position(column)?.checked_sub(1)?)
    }

    /// The same in words; nothing where there is no such column.
    pub(crate) fn text(&self, row: &Row, column: &str) -> String {
        self.cell(row, column).map_or_else(String::new, display::cell)
    }
}

/// Columns from a line of `id: label @priority`, divided by `|`. The label is the id, the rank 0, unless the
/// line says otherwise; a `%` in front marks a share of which more is better.
pub(crate) fn columns(line: &'static str) -> Vec<Column> {
    let columns = line.split('|').map(|text| {
        let (name, priority) = text.rsplit_once('@').unwrap_or((text, "0"));
        let (id, label) = name.split_once(':').unwrap_or((name, name));
        let (id, priority) = (id.trim(), priority.trim().parse().unwrap_or(0));
        let share = Measure { unit: Unit::Share, direction: Direction::Higher };
        let measure = id.starts_with('%').then_some(share);
        let column = Column::new(id.strip_prefix('%').unwrap_or(id), label.trim(), priority);
        Column { measure, ..column }
    });
    columns.collect()
}

impl Cell {
    /// Nobody measured it.
    pub(crate) const NOT_MEASURED: Self = Self::exact(Value::NotMeasured);
    /// There is nothing to measure.
    pub(crate) const NOT_APPLICABLE: Self = Self::exact(Value::NotApplicable);

    /// A value that is exact, or no number.
    pub(crate) const fn exact(value: Value) -> Self {
        Self { value, n: None, interval: None, most: None, best: false, range: Range::Share }
    }

    pub(crate) fn tokens(tokens: Tokens) -> Self {
        Self::exact(Value::Tokens(tokens.0))
    }

    /// A count out of a total.
    pub(crate) fn of(part: usize, whole: usize) -> Self {
        Self::exact(Value::Fraction(part as u64, whole as u64))
    }

    /// Words.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::exact(Value::Text(text.into()))
    }

    /// Words with a sign between them, or the word for none.
    pub(crate) fn listed(
        words: impl IntoIterator<Item = impl Display>,
        between: &str,
        none: &str,
    ) -> Self {
        Self::text(display::listed(words, between).unwrap_or_else(|| none.to_owned()))
    }

    /// Kappa or alpha.
    pub(crate) fn agreement(value: Option<f64>) -> Self {
        Self::text(value.map_or("not defined".to_owned(), |value| format!("{value:.2}")))
    }

    /// How many.
    pub(crate) fn count(count: usize) -> Self {
        Self::exact(Value::Count(count as u64))
    }

    /// A value of this kind; `NotMeasured` without one.
    pub(crate) fn known<T>(value: Option<T>, kind: fn(T) -> Value) -> Self {
        value.map_or(Self::NOT_MEASURED, |value| Self::exact(kind(value)))
    }

    /// An exact share; `NotMeasured` where there is none, or it is not finite.
    pub(crate) fn share(share: Option<f64>) -> Self {
        Self::known(share.filter(|share| share.is_finite()), Value::Share)
    }
}

impl Row {
    /// Whether the provider would have refused its prompts, or it ended early: it is never compared.
    pub(crate) fn is_broken(&self) -> bool {
        self.marks.iter().any(RowMark::is_broken)
    }

    /// The words of its marks.
    pub fn marks_in_words(&self) -> Vec<String> {
        self.marks.iter().map(RowMark::to_string).collect()
    }
}

impl Value {
    /// Whether nothing was measured, or there is nothing to measure.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::NotMeasured | Self::NotApplicable)
    }

    /// The value as a number; `None` of words, of a count out of a total, and of nothing.
    pub(crate) fn number(&self) -> Option<f64> {
        match *self {
            Self::Share(value) | Self::Seconds(value) => Some(value),
            Self::Tokens(count) | Self::Count(count) => Some(count as f64),
            Self::Dollars(dollars) => Some(dollars.in_dollars()),
            Self::Fraction(..) | Self::Text(_) | Self::NotMeasured | Self::NotApplicable => None,
        }
    }
}
