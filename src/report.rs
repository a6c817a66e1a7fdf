//! Reports: what a run found, as plain data first and as bytes second.
//!
//! [`Report::of`] computes everything from the records; a [`Renderer`] only lays it out. A number
//! in a report always carries the n it rests on, and an interval where it is an estimate. Texts in
//! a report are as they were recorded: they come from sessions, so each renderer escapes them
//! (see [`escape`]).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::metric::CellSummary;
use crate::record::{
    Arm, CellRecord, CompactionChange, CompactionEvent, Manifest, ModelEntry, ProbeRecord, Timing,
};
use crate::stats::ConfidenceInterval;

pub mod arm;
pub mod bmf;
mod build;
mod columns;
pub mod controls;
pub mod cost;
pub mod csv;
pub mod escape;
pub(crate) mod figure;
pub mod html;
pub mod json;
pub mod jsonl;
pub mod junit;
pub(crate) mod layout;
pub mod markdown;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod plot;
mod section;
mod sections;
pub(crate) mod table;
pub mod terminal;
pub mod versus;

pub use controls::{Controls, InvalidRun};
pub use section::{Audience, Section};
pub use table::{Cell, Column, Measure, Role, Row, Table, Value};
pub(crate) use table::{Range, columns};

/// Version of the report as data, which the JSON renderer writes.
///
/// 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// What a run found.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// What was run.
    pub run: Run,
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

    /// What was run, in two lines for people.
    pub(crate) fn summary_lines(&self) -> [String; 2] {
        let run = &self.run;
        let coverage = &self.coverage;
        let judges = run.judges.iter();
        let judges: Vec<String> = judges
            .map(|(name, said)| format!("{name}, {said}"))
            .collect();
        let judge = if judges.is_empty() {
            "none".to_owned()
        } else {
            judges.join("; ")
        };
        [
            format!(
                "{}, {}, {} of {} cells; window {}{}, counter {}, seed {}",
                figure::many(run.sessions, "session", "sessions"),
                figure::many(run.strategies, "strategy", "strategies"),
                coverage.recorded,
                coverage.planned,
                run.window,
                self.window_sizes(),
                run.counter,
                run.seed
            ),
            format!(
                "summariser {}, reader {}, judge {judge}; run {}, proctor {}",
                run.summariser.name, run.reader.name, run.fingerprint, run.proctor
            ),
        ]
    }

    /// The windows that a mode without a number came to: ` (80.0k tokens)`, or nothing where the mode
    /// says it.
    fn window_sizes(&self) -> String {
        let windows = self.series.iter().filter_map(|cell| cell.window);
        let sizes: BTreeSet<u64> = windows.map(|window| window.tokens.0).collect();
        let is_said = |size: &u64| self.run.window.starts_with(&size.to_string());
        match (sizes.first(), sizes.last()) {
            (Some(least), Some(most)) if least < most => format!(
                " ({} to {} tokens)",
                figure::tokens(*least),
                figure::tokens(*most)
            ),
            (Some(size), _) if !is_said(size) => format!(" ({} tokens)", figure::tokens(*size)),
            (Some(_) | None, _) => String::new(),
        }
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

    /// The section of this name.
    pub fn section(&self, id: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }
}

/// Lays a report out as bytes. It opens no file and reads no environment.
pub trait Renderer {
    /// The format's name, which is the extension of its files.
    fn format(&self) -> &'static str;

    /// Lays the report out.
    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError>;
}

/// A file that a renderer made.
///
/// The first one is the report itself; others stand beside it, under its name and an ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its name, without a folder: `report`, then the ending.
    pub name: String,
    /// What stands in it.
    pub bytes: Vec<u8>,
}

/// Why a report could not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The report could not be written as JSON.
    #[error("cannot write the report as JSON")]
    Json(#[source] serde_json::Error),
    /// The report could not be written as CSV.
    #[error("cannot write the report as CSV")]
    Csv(#[source] ::csv::Error),
    /// The report could not be written as Parquet.
    #[cfg(feature = "parquet")]
    #[error("cannot write the report as Parquet")]
    Parquet(#[source] ::parquet::errors::ParquetError),
    /// The report could not be written as HTML.
    #[error("cannot write the report as HTML: {0}")]
    Html(String),
    /// A plot could not be drawn.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
}

/// A number of tokens as people read it: `812`, `12.3k`, `1.2M`.
pub fn tokens_in_words(tokens: u64) -> String {
    figure::tokens(tokens)
}

/// Makes a renderer.
type Make = fn() -> Box<dyn Renderer>;

/// Formats that can be written to a file, by extension.
const RENDERERS: &[(&str, Make)] = &[
    ("bmf.json", || Box::new(bmf::Bmf)),
    ("csv", || Box::new(csv::Csv)),
    ("html", || Box::new(html::Html)),
    ("json", || Box::new(json::Json)),
    ("jsonl", || Box::new(jsonl::JsonLines)),
    ("junit.xml", || Box::new(junit::Junit)),
    ("md", || Box::new(markdown::Markdown)),
    #[cfg(feature = "parquet")]
    ("parquet", || Box::new(parquet::Parquet)),
    ("txt", || {
        Box::new(terminal::Terminal::plain(terminal::FILE_WIDTH))
    }),
];

/// The renderer for a file of this name, told by its ending; the comparison ignores case.
///
/// Pictures say which in front of it, and may say no more: `report.tokens.svg`, `savings.svg`.
pub fn renderer(file: &str) -> Option<Box<dyn Renderer>> {
    if let Some(plot) = plot::for_file(&plot::OF_RUN, file) {
        return Some(Box::new(plot::PlotRenderer(plot)));
    }
    let name = file.to_ascii_lowercase();
    // Of `.bmf.json` and `.json` the longer one is meant.
    RENDERERS
        .iter()
        .filter(|(known, _)| name.ends_with(&format!(".{known}")))
        .max_by_key(|(known, _)| known.len())
        .map(|(_, make)| make())
}

/// The endings [`renderer`] knows, without the dot, in the order of help texts.
pub fn endings() -> impl Iterator<Item = String> {
    let texts = RENDERERS
        .iter()
        .map(|(extension, _)| (*extension).to_owned());
    texts.chain(plot::OF_RUN.iter().map(|(name, _)| format!("{name}.svg")))
}
