//! The formats that reports are written in, by the endings of their files.

use super::plot::{PlotScene, WIDE, bill, curves, forest, pareto, svg, sweep, tokens};
use super::{Report, ReportData, comment, csv, html, json, junit, markdown, otlp, terminal};

/// A format of reports. It opens no file and reads no environment.
#[derive(Debug)]
pub struct Format {
    /// The ending of its files, without the dot.
    pub ending: &'static str,
    kinds: &'static [ReportKind],
    render: Renderer,
}

/// A file that a format made.
///
/// The first one is the report itself; the others have its name with another ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The ending of its name, without the dot.
    pub ending: String,
    /// Its content.
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
    /// No template could be filled: of pages, Markdown and `JUnit`.
    #[error("cannot lay the report out: {0}")]
    Template(String),
    /// A plot could not be drawn.
    #[error("cannot draw the plot: {0}")]
    Plot(String),
}

/// How a report becomes bytes.
#[derive(Debug)]
enum Renderer {
    Document(fn(&Report) -> Result<String, RenderError>),
    /// A picture of a width.
    Picture(fn(&Report, f64) -> PlotScene),
    /// The tables of cells and of probe items.
    Tables(fn(&Report) -> Result<[Vec<u8>; 2], RenderError>),
}

use Renderer::{Document, Picture, Tables};

/// The kinds of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// A run.
    Run,
    /// Strategies against each other, or against a baseline.
    Comparison,
    /// Many settings of one strategy.
    Sweep,
}

use ReportKind::{Comparison, Run, Sweep};

/// All formats, in the order of help texts.
const FORMATS: &[Format] = &[
    Format::new("csv", &[Run], Tables(csv::render)),
    Format::new("html", &[Run, Sweep], Document(html::render)),
    Format::new("json", &[Run, Comparison, Sweep], Document(json::render)),
    Format::new("jsonl", &[Run], Document(json::lines)),
    Format::new("junit.xml", &[Run, Comparison], Document(junit::render)),
    Format::new("md", &[Run, Comparison], Document(comment::render)),
    Format::new("full.md", &[Run, Comparison], Document(markdown::render)),
    Format::new("otlp.json", &[Run], Document(|report| Ok(otlp::render(report)))),
    #[cfg(feature = "parquet")]
    Format::new("parquet", &[Run], Tables(super::parquet::render)),
    Format::new("txt", &[Run, Comparison, Sweep], Document(|report| Ok(terminal::file(report)))),
    Format::new("tokens.svg", &[Run], Picture(tokens::scene)),
    Format::new("bill.svg", &[Run], Picture(bill::scene)),
    Format::new("pareto.svg", &[Run], Picture(pareto::scene)),
    Format::new("retention.svg", &[Run], Picture(curves::scene)),
    Format::new("sweep.svg", &[Sweep], Picture(of_sweep)),
    Format::new("svg", &[Comparison], Picture(forest::scene)),
];

fn of_sweep(report: &Report, width: f64) -> PlotScene {
    match &report.subject {
        ReportData::Sweep(swept) => sweep::scene(swept, width),
        ReportData::Run | ReportData::Comparison(_) => PlotScene::new("no sweep", width),
    }
}

/// The format of a file of this name, by its ending; the comparison ignores case. A picture may have
/// nothing in front of its ending: `report.tokens.svg`, `bill.svg`.
pub fn format(kind: ReportKind, file: &str) -> Option<&'static Format> {
    let name = file.to_ascii_lowercase();
    let named = formats_of(kind).filter(|format| {
        let front = name.strip_suffix(format.ending);
        let picture = matches!(format.render, Picture(_));
        front.is_some_and(|front| front.ends_with('.') || (picture && front.is_empty()))
    });
    // Of `.otlp.json` and `.json` the longer one is meant.
    named.max_by_key(|format| format.ending.len())
}

fn formats_of(kind: ReportKind) -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(move |format| format.kinds.contains(&kind))
}

/// The endings that [`format`](fn@format) knows, without the dot.
pub fn endings(kind: ReportKind) -> impl Iterator<Item = &'static str> {
    formats_of(kind).map(|format| format.ending)
}

impl Format {
    const fn new(ending: &'static str, kinds: &'static [ReportKind], render: Renderer) -> Self {
        Self { ending, kinds, render }
    }

    /// Lays the report out.
    pub fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let (bytes, items) = match self.render {
            Document(text) => (text(report)?.into_bytes(), None),
            Picture(scene) => (svg(&scene(report, WIDE))?.into_bytes(), None),
            Tables(tables) => {
                let [cells, items] = tables(report)?;
                (cells, Some(items))
            }
        };
        let first = Artifact { ending: self.ending.to_owned(), bytes };
        let ending = format!("probes.{}", self.ending);
        let second = items.map(|bytes| Artifact { ending, bytes });
        Ok([first].into_iter().chain(second).collect())
    }
}
