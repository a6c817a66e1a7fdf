//! Reports: what a command found, as plain data first and as bytes second.
//!
//! [`Report::of`] computes a run's report from the records; comparisons and sweeps make the same type.
//! A [`Format`] only lays it out. A number in a report always carries the n it rests on, and an
//! interval where it is an estimate. Texts in a report are as they were recorded: they come from
//! sessions, so each format escapes them (see [`escape`]).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::sweep::Sweep;
use crate::metric::CellSummary;
use crate::record::{
    Arm, CellRecord, CompactionChange, CompactionEvent, Manifest, ModelEntry, ProbeRecord, Timing,
};
use crate::stats::ConfidenceInterval;

pub mod arm;
mod bmf;
mod build;
mod columns;
pub mod comparison;
pub mod controls;
pub mod cost;
mod csv;
pub mod escape;
pub(crate) mod figure;
mod format;
pub(crate) mod github;
mod html;
pub mod json;
mod junit;
pub(crate) mod layout;
pub mod markdown;
#[cfg(feature = "parquet")]
mod parquet;
mod plot;
mod section;
mod sections;
pub(crate) mod sweep;
mod table;
pub mod terminal;

pub use controls::{Controls, InvalidRun};
pub use format::{Artifact, Format, Kind, RenderError, endings, format};
pub use section::{Audience, Section};
pub use table::{Cell, Column, Measure, Role, Row, Table, Value};
pub(crate) use table::{Range, columns};

/// Version of the report as data, which the JSON renderer writes.
///
/// 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// What a run found.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// What was run.
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
    /// What a reader must know before looking at a number; in every format.
    pub banners: Vec<Banner>,
    /// The tables, the comparison first.
    pub sections: Vec<Section>,
    /// What was run or compared, in lines for people.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// What the report is about.
    #[serde(skip)]
    pub subject: Subject,
    /// The metrics of each cell, by session, strategy and repeat. Not part of the JSON report,
    /// which would repeat what the run folder holds; formats with one row per cell write them.
    #[serde(skip)]
    pub cells: Vec<CellSummary>,
    /// Every probe item of each cell, in the same order.
    #[serde(skip)]
    pub items: Vec<ItemOutcome>,
    /// Every compaction of the first repeat of each cell, in the same order.
    #[serde(skip)]
    pub(crate) compactions: Vec<CellCompaction>,
    /// What was sent at each call, for plots.
    #[serde(skip)]
    pub(crate) series: Vec<plot::series::CellSeries>,
    /// What was asked and what the answer is, by session, probe and how far the session was.
    #[serde(skip)]
    pub(crate) questions: BTreeMap<(String, String, u8), (String, String)>,
}

/// What a report is about, with what formats need beside the tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Subject {
    /// A run.
    #[default]
    Run,
    /// Strategies against each other, or against a baseline.
    Comparison(Box<comparison::Comparisons>),
    /// Many settings of one strategy.
    Sweep(Box<Sweep>),
}

/// One probe item of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemOutcome {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Which column of the comparison its cell belongs to.
    pub arm: Arm,
    /// What was asked, and what became of it.
    pub probe: ProbeRecord,
}

/// One compaction of one cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellCompaction {
    /// The session's id.
    pub(crate) session: String,
    /// The strategy's name.
    pub(crate) strategy: String,
    /// What happened.
    pub(crate) event: CompactionEvent,
    /// What it took out and put in; nothing in older records.
    pub(crate) change: Option<CompactionChange>,
}

/// What was run.
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
    pub reader: ModelEntry,
    /// Who judges answers.
    pub judge: Option<ModelEntry>,
    /// What people's labels say of each judge: `not calibrated`, or the verdict of `proctor calibrate`.
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
    /// Of these, cells that the recording leaves nothing to measure of: they count in no number.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_measurable: usize,
    /// Cells of the plan without a record.
    pub outstanding: usize,
    /// Records of no session or strategy of the manifest, or of a cell recorded twice: not used.
    pub unused: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a reader must know before looking at a number.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Banner {
    /// How it is shown.
    pub level: BannerLevel,
    /// One sentence or two.
    pub text: String,
}

/// How a banner is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BannerLevel {
    /// The numbers mean nothing.
    Invalid,
    /// The numbers mean less than it seems.
    Warning,
    /// What the numbers are.
    Note,
}

impl Banner {
    /// What the numbers are.
    pub(crate) fn note(text: impl Into<String>) -> Self {
        let (level, text) = (BannerLevel::Note, text.into());
        Self { level, text }
    }

    /// Why the numbers mean less than it seems.
    pub(crate) fn warning(text: impl Into<String>) -> Self {
        let (level, text) = (BannerLevel::Warning, text.into());
        Self { level, text }
    }
}

impl Report {
    /// Computes the report of a run. Pure: the same records give the same report.
    pub fn of(manifest: &Manifest, cells: &[CellRecord]) -> Self {
        build::report(manifest, cells)
    }

    /// Where the noise within an item comes from, in a run whose items were repeated.
    pub fn noise(manifest: &Manifest, cells: &[CellRecord]) -> Option<Section> {
        sections::noise::of(manifest, cells)
    }

    /// The same, with a section of measured times: they belong to a machine, so a report holds them
    /// only where somebody asks.
    #[must_use]
    pub fn with_timings(mut self, timings: &[Timing]) -> Self {
        let section = sections::timings::section(&self, timings);
        let before_last = self.sections.len().saturating_sub(1);
        if let Some(section) = section {
            self.sections.insert(before_last, section);
        }
        self
    }

    /// Whether the run is valid: an error says which control is off.
    pub fn controls(&self) -> Result<(), InvalidRun> {
        self.controls.check()
    }

    /// The rows of the comparison.
    pub(crate) fn compared(&self) -> &[Row] {
        self.section("comparison")
            .map_or(&[], |section| &section.table.rows)
    }

    /// A share of the comparison, with its interval.
    pub(crate) fn share(
        &self,
        row: &Row,
        column: &str,
    ) -> Option<(f64, Option<ConfidenceInterval>)> {
        let cell = self.section("comparison")?.table.cell(row, column)?;
        match cell.value {
            Value::Percent(value) => Some((value, cell.interval)),
            _ => None,
        }
    }

    /// The comparisons that it is about; none in reports of runs and sweeps.
    pub(crate) fn comparisons(&self) -> &[comparison::GatedComparison] {
        match &self.subject {
            Subject::Comparison(it) => &it.comparisons,
            Subject::Run | Subject::Sweep(_) => &[],
        }
    }

    /// The section of this name.
    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }
}

/// A number of tokens as people read it: `812`, `12.3k`, `1.2M`.
pub fn tokens_in_words(tokens: u64) -> String {
    figure::tokens(tokens)
}
