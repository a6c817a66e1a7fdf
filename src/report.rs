//! Reports: the results of a command, first as plain data, then as bytes.
//!
//! [`Report::of`] computes a run's report from the records; comparisons and sweeps make the same type.
//! A [`Format`] only lays it out. A number in a report always carries the n it rests on, and an
//! interval where it is an estimate. Texts in a report are as they were recorded: they come from
//! sessions, so each format escapes them (see [`escape`]).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::NoteCode;
use crate::compare::advice::Verdict;
use crate::compare::sweep::Sweep;
use crate::metric::CellSummary;
use crate::metric::cost::SimulatedCost;
use crate::metric::live::LiveTotals;
use crate::metric::retention::Retention;
use crate::record::{Arm, CellRecord, Manifest, ModelEntry, ProbeRecord, ProbeText, Timing};
use crate::stats::ConfidenceInterval;

mod build;
mod columns;
pub mod comment;
pub mod comparison;
pub mod controls;
pub mod cost;
mod csv;
mod evidence;
pub mod explain;
pub(crate) mod display;
pub mod escape;
mod format;
pub(crate) mod github;
mod grid;
mod headline;
mod html;
pub mod json;
pub(crate) mod junit;
pub(crate) mod layout;
mod mark;
pub mod markdown;
mod otlp;
#[cfg(feature = "parquet")]
mod parquet;
mod plot;
pub mod screen;
mod section;
mod sections;
pub mod strategy_summary;
pub(crate) mod sweep;
mod table;
mod template;
pub mod terminal;
mod view;

pub(crate) use build::foreseen;
pub use controls::{Controls, InvalidRun};
pub use format::{Artifact, Format, RenderError, ReportKind, endings, format};
pub use mark::RowMark;
pub(crate) use section::section_ids;
pub use section::{Audience, Section};
pub use table::{Cell, Column, Measure, Role, Row, Table, Value};
pub(crate) use table::{Range, columns};

/// Version of the report as data, which the JSON renderer writes.
///
/// 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// The results of a run, a comparison or a sweep.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// The run, where the report has one.
    #[schemars(required)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// Planned, finished and missing cells.
    pub coverage: Coverage,
    /// Whether ceiling, floor and decoys are where they must be.
    pub controls: Controls,
    /// Judges that miss too many answers whose verdict is known: their verdicts do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfit_judges: Vec<String>,
    /// Which strategy to use, and which to avoid; `None` in reports that compare no strategies of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Notices to read before any number; in every format.
    pub banners: Vec<Banner>,
    /// The sessions, and what they cost as they ran and with full history.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub totals: String,
    /// The model whose prices hold, or how many there are.
    #[serde(skip)]
    pub(crate) priced_as: String,
    /// Whether all sessions were recorded, and so the bill is the user's own.
    #[serde(skip)]
    pub(crate) is_recorded: bool,
    /// How far to trust it, in a few sentences.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trust: String,
    /// How far simulated costs are from the bill; `None` where no session says what was billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_cost: Option<SimulatedCost>,
    /// The command that a person may want to run next.
    #[serde(skip)]
    pub next: Vec<String>,
    /// The purpose of that command.
    #[serde(skip)]
    pub(crate) next_why: String,
    /// The bills of agents, where any ran.
    #[serde(skip)]
    pub(crate) live: Option<LiveTotals>,
    /// The session whose timeline the page shows first, whatever it lost.
    #[serde(skip)]
    pub first_session: Option<String>,
    /// The rows of the controls that the verdict quotes: in no table.
    #[serde(skip)]
    pub(crate) quoted_controls: Vec<Row>,
    /// The metrics of their cells.
    #[serde(skip)]
    pub(crate) quoted_cells: Vec<CellSummary>,
    /// The tables, the comparison first.
    pub sections: Vec<Section>,
    /// A description of the run or comparison, in lines for people.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// The subject of the report.
    #[serde(skip)]
    pub subject: ReportData,
    /// The metrics of each cell, by session, strategy and repeat. Not part of the JSON report,
    /// which would repeat what the run folder holds; formats with one row per cell write them.
    #[serde(skip)]
    pub cells: Vec<CellSummary>,
    /// The records of these cells, in the same order.
    #[serde(skip)]
    pub(crate) records: Vec<CellRecord>,
}

/// The subject of a report, with the data that formats need in addition to the tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ReportData {
    /// A run.
    #[default]
    Run,
    /// Strategies against each other, or against a baseline.
    Comparison(Box<comparison::Comparisons>),
    /// Many settings of one strategy.
    Sweep(Box<Sweep>),
}

/// A probe item, with its cell.
#[derive(Clone, Copy)]
pub(crate) struct AskedItem<'a> {
    pub(crate) cell: &'a CellRecord,
    pub(crate) probe: &'a ProbeRecord,
    /// Its question and value, where the reference has been replayed.
    pub(crate) text: Option<&'a ProbeText>,
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Run {
    /// Version of Proctor that made the records.
    pub proctor: String,
    /// Hash of all that decides the results.
    pub fingerprint: String,
    /// The scenario's name.
    pub scenario: String,
    /// Sessions.
    pub sessions: usize,
    /// Strategies, reference and floor not counted.
    pub strategies: usize,
    /// Repeats of each cell.
    pub repeats: u32,
    /// The token counter.
    pub counter: String,
    /// The window mode.
    pub window: String,
    /// The seed.
    pub seed: u64,
    /// Who writes summaries.
    pub summariser: ModelEntry,
    /// Who answers probes.
    pub reader: Option<ModelEntry>,
    /// Who judges answers.
    pub judge: Option<ModelEntry>,
    /// The calibration of each judge against people's labels: `not calibrated`, or the verdict of
    /// `proctor judge test`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub judges: BTreeMap<String, String>,
}

/// Planned, finished and missing cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Coverage {
    /// Cells of the plan: each session under `full`, under each strategy as often as it is
    /// repeated, and under `empty` where probes are asked of it.
    pub planned: usize,
    /// Of these, cells with a record, however they ended.
    pub recorded: usize,
    /// Of these, cells in which the strategy failed.
    pub failed: usize,
    /// Of these, cells that cannot be measured from the recording: they count in no number.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub not_measurable: usize,
    /// Cells of the plan without a record.
    pub outstanding: usize,
    /// Records of no session or strategy of the manifest, or of a cell recorded twice: not used.
    pub unused: usize,
}

/// A notice to read before any number.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Banner {
    /// How it is shown.
    pub level: BannerLevel,
    /// One sentence or two.
    pub text: String,
    /// Its code, which `proctor explain` tells more about.
    pub(crate) code: NoteCode,
}

/// How a banner is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BannerLevel {
    /// The numbers mean nothing.
    Invalid,
    /// The numbers mean less than it seems.
    Warning,
    /// The nature of the numbers.
    Note,
}

impl BannerLevel {
    /// A banner of this level.
    pub(crate) fn banner(self, code: NoteCode, text: impl Into<String>) -> Banner {
        let (level, text) = (self, text.into());
        Banner { level, text, code }
    }
}

impl Banner {
    /// The text with the code behind it.
    pub(crate) fn in_full(&self) -> String {
        self.code.behind(&self.text)
    }
}

impl Report {
    /// Computes the report of a run. Pure: the same records give the same report.
    pub fn of(manifest: &Manifest, cells: &[CellRecord]) -> Self {
        build::report(manifest, cells)
    }

    /// The report with a section of measured times: they belong to a machine, so a report holds them
    /// only on request.
    #[must_use]
    pub fn with_timings(mut self, timings: &[Timing]) -> Self {
        let before_last = self.sections.len().saturating_sub(1);
        if let Some(section) = sections::timings::section(&self, timings) {
            self.sections.insert(before_last, section);
        }
        self
    }

    /// The first repeat of each cell under full history or a strategy of the comparison.
    pub(crate) fn first_cells(&self) -> impl Iterator<Item = &CellRecord> {
        let names: BTreeSet<&str> = self.compared().iter().map(|row| row.name.as_str()).collect();
        self.records.iter().filter(move |cell| {
            cell.arm != Arm::Floor && cell.repeat == 0 && names.contains(&*cell.strategy)
        })
    }

    /// The rows of the comparison.
    pub(crate) fn compared(&self) -> &[Row] {
        self.section("comparison").map_or(&[], |section| &section.table.rows)
    }

    /// Those of its strategies.
    pub(crate) fn strategies(&self) -> impl Iterator<Item = &Row> {
        self.compared().iter().filter(|row| row.role == Role::Strategy)
    }

    /// The cell of a row of the comparison.
    pub(crate) fn cell<'a>(&self, row: &'a Row, column: &str) -> Option<&'a Cell> {
        self.section("comparison")?.table.cell(row, column)
    }

    /// The same as a number: a share, an amount, a count, or seconds.
    pub(crate) fn number(&self, row: &Row, column: &str) -> Option<f64> {
        self.cell(row, column)?.value.number()
    }

    /// Whether a row of the comparison has a value in this column.
    pub(crate) fn is_measured(&self, row: &Row, column: &str) -> bool {
        self.cell(row, column).is_some_and(|cell| !cell.value.is_nothing())
    }

    /// A share of the comparison, with its interval.
    pub(crate) fn share(
        &self,
        row: &Row,
        column: &str,
    ) -> Option<(f64, Option<ConfidenceInterval>)> {
        let cell = self.cell(row, column)?;
        match cell.value {
            Value::Share(value) => Some((value, cell.interval)),
            _ => None,
        }
    }

    /// The column that says how much was kept, with its words: answers where they were graded, else
    /// survival, and the agent's own needs where nothing was asked.
    pub(crate) fn kept(&self) -> (&'static str, &'static str) {
        const AXES: [(&str, &str); 4] = [
            ("fidelity", "facts kept, by answers"),
            ("answers", "facts kept, by answers"),
            ("facts", "facts kept, by string search"),
            ("actions", "actions supported"),
        ];
        let measured = AXES
            .into_iter()
            .find(|(column, _)| self.strategies().any(|row| self.is_measured(row, column)));
        measured.unwrap_or(AXES[2])
    }

    /// The comparisons that it is about; none in reports of runs and sweeps.
    pub(crate) fn comparisons(&self) -> &[comparison::GatedComparison] {
        match &self.subject {
            ReportData::Comparison(compared) => &compared.comparisons,
            ReportData::Run | ReportData::Sweep(_) => &[],
        }
    }

    /// The items of a strategy with their ages.
    pub(crate) fn retention(&self, strategy: &str) -> Retention {
        let own = self.cells.iter().filter(|cell| cell.strategy == strategy);
        Retention(own.flat_map(|cell| &cell.retention.0).copied().collect())
    }

    /// The section of this name.
    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }
}

/// Every probe item of these cells.
pub(crate) fn asked_items<'a>(
    cells: impl IntoIterator<Item = &'a CellRecord> + Clone,
) -> Vec<AskedItem<'a>> {
    let texts = probe_texts(cells.clone());
    let mut items = Vec::new();
    for cell in cells {
        for probe in &cell.probes {
            let key = (&*cell.session, &*probe.probe, probe.percent);
            let text = texts.get(&key).copied();
            items.push(AskedItem { cell, probe, text });
        }
    }
    items
}

/// Questions and answers by session, probe and how far the session was, as they were asked last.
pub(crate) fn probe_texts<'a>(
    cells: impl IntoIterator<Item = &'a CellRecord>,
) -> BTreeMap<(&'a str, &'a str, u8), &'a ProbeText> {
    let texts = cells.into_iter().flat_map(|cell| {
        let own = cell.probe_texts.iter();
        own.map(move |text| ((&*cell.session, &*text.probe, text.percent), text))
    });
    texts.collect()
}
