//! The formats that reports are written in, by the endings of their files.

use super::plot::{Scene, WIDE, bill, curves, forest, pareto, svg, sweep, tokens};
use super::{Report, Subject, comment, csv, html, json, junit, markdown, otlp, terminal};

/// A format of reports. It opens no file and reads no environment.
#[derive(Debug)]
pub struct Format {
    /// The ending of its files, without the dot.
    pub ending: &'static str,
    kinds: &'static [Kind],
    render: Render,
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
enum Render {
    Text(fn(&Report) -> String),
    Document(fn(&Report) -> Result<String, RenderError>),
    /// A picture of a width.
    Picture(fn(&Report, f64) -> Scene),
    /// The tables of cells and of probe items.
    Tables(fn(&Report) -> Result<[Vec<u8>; 2], RenderError>),
}

use Render::{Document, Picture, Tables, Text};

/// The kinds of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run.
    Run,
    /// Strategies against each other, or against a baseline.
    Comparison,
    /// Many settings of one strategy.
    Sweep,
}

use Kind::{Comparison, Run, Sweep};

/// All formats, in the order of help texts.
const FORMATS: &[Format] = &[
    Format::new("csv", &[Run], Tables(csv::render)),
    Format::new("html", &[Run, Sweep], Document(html::render)),
    Format::new("json", &[Run, Comparison, Sweep], Document(json::render)),
    Format::new("jsonl", &[Run], Document(json::lines)),
    Format::new("junit.xml", &[Run, Comparison], Document(junit::render)),
    Format::new("md", &[Run, Comparison], Document(comment::render)),
    Format::new("full.md", &[Run, Comparison], Document(markdown::render)),
    Format::new("otlp.json", &[Run], Text(otlp::render)),
    #[cfg(feature = "parquet")]
    Format::new("parquet", &[Run], Tables(super::parquet::render)),
    Format::new("txt", &[Run, Comparison, Sweep], Text(terminal::file)),
    Format::new("tokens.svg", &[Run], Picture(tokens::scene)),
    Format::new("bill.svg", &[Run], Picture(bill::scene)),
    Format::new("pareto.svg", &[Run], Picture(pareto::scene)),
    Format::new("retention.svg", &[Run], Picture(curves::scene)),
    Format::new("sweep.svg", &[Sweep], Picture(of_sweep)),
    Format::new("svg", &[Comparison], Picture(forest::scene)),
];

fn of_sweep(report: &Report, width: f64) -> Scene {
    match &report.subject {
        Subject::Sweep(it) => sweep::scene(it, width),
        Subject::Run | Subject::Comparison(_) => Scene::new("no sweep", width),
    }
}

/// The format of a file of this name, by its ending; the comparison ignores case. A picture may have
/// nothing in front of its ending: `report.tokens.svg`, `bill.svg`.
pub fn format(kind: Kind, file: &str) -> Option<&'static Format> {
    let name = file.to_ascii_lowercase();
    let is_named = |format: &&Format| {
        let front = name.strip_suffix(format.ending);
        let is_picture = matches!(format.render, Picture(_));
        front.is_some_and(|front| front.ends_with('.') || (is_picture && front.is_empty()))
    };
    // Of `.otlp.json` and `.json` the longer one is meant.
    formats_of(kind).filter(is_named).max_by_key(|format| format.ending.len())
}

fn formats_of(kind: Kind) -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(move |format| format.kinds.contains(&kind))
}

/// The endings that [`format`](fn@format) knows, without the dot.
pub fn endings(kind: Kind) -> impl Iterator<Item = &'static str> {
    formats_of(kind).map(|format| format.ending)
}

impl Format {
    const fn new(ending: &'static str, kinds: &'static [Kind], render: Render) -> Self {
        Self { ending, kinds, render }
    }

    /// Lays the report out.
    pub fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let artifact = |ending: &str, bytes| Artifact { ending: ending.to_owned(), bytes };
        let ending = self.ending;
        Ok(match self.render {
            Text(text) => vec![artifact(ending, text(report).into_bytes())],
            Document(text) => vec![artifact(ending, text(report)?.into_bytes())],
            Picture(scene) => vec![artifact(ending, svg(&scene(report, WIDE))?.into_bytes())],
            Tables(tables) => {
                let [cells, items] = tables(report)?;
                let beside = format!("probes.{ending}");
                vec![artifact(ending, cells), artifact(&beside, items)]
            }
        })
    }
}
