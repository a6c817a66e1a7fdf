//! `proctor schema`: JSON Schemas, for editors and for programs that write scenarios or read the
//! files of a run.

use super::{Exit, Result, print};
use crate::session::native;
use crate::{compare, record, report};

mod scenario;

/// Arguments of `proctor schema`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files or output to describe
    #[arg(value_enum)]
    what: SchemaKind,
}

/// The files and outputs that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SchemaKind {
    /// Scenario files
    Scenario,
    /// One line of a session in Proctor's own format
    Session,
    /// The files of a run folder: `run.json`, or one line of `cells.jsonl` or `verdicts.jsonl`
    Record,
    /// The JSON report
    Report,
    /// One line between Proctor and an external strategy
    Strategy,
    /// A baseline
    Baseline,
    /// A comparison as JSON
    Comparison,
    /// A sweep as JSON
    Sweep,
    /// The output of `proctor sessions import --json`
    Import,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let schema = match args.what {
        SchemaKind::Scenario => scenario::schema(),
        SchemaKind::Session => native::schema(),
        SchemaKind::Record => record::schema(),
        SchemaKind::Report => report::json::schema(),
        SchemaKind::Strategy => crate::strategy::external::schema(),
        SchemaKind::Baseline => compare::baseline::schema(),
        SchemaKind::Comparison => report::comparison::schema(),
        SchemaKind::Sweep => compare::sweep::schema(),
        SchemaKind::Import => super::sessions::import::schema(),
    };
    print(&format!("{schema:#}\n"))
}
