//! `proctor schema`: JSON Schemas, for editors and for programs that write scenarios.

use super::{Exit, Stop, print};

mod scenario;

/// Arguments of `proctor schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = "An editor that knows TOML takes it by a first line `#:schema FILE`.")]
pub(super) struct Args {
    /// What is described
    #[arg(value_enum)]
    what: What,
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Scenario files
    Scenario,
    /// Sessions in Proctor's own format: not written yet
    Session,
    /// The files of a run folder: not written yet
    Record,
    /// The JSON report: not written yet
    Report,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let missing = match args.what {
        What::Scenario => {
            print(&format!("{:#}\n", scenario::schema()))?;
            return Ok(Exit::Done);
        }
        What::Session => "sessions",
        What::Record => "the files of a run folder",
        What::Report => "the JSON report",
    };
    Err(Stop::new(
        Exit::Usage,
        format!("there is no JSON Schema of {missing} yet"),
    )
    .with_hint("`proctor schema scenario` is the one there is")
    .into())
}
