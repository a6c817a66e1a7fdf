//! `proctor init`: a scenario to start from.

use std::path::PathBuf;

use super::{Exit, print, write_new};

/// Arguments of `proctor init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File to write
    #[arg(default_value = "proctor.toml")]
    path: PathBuf,
    /// Overwrite an existing file
    #[arg(short, long)]
    force: bool,
}

const STARTER: &str = include_str!("../../scenarios/starter.toml");

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    write_new(&args.path, STARTER.as_bytes(), args.force)?;
    print(&format!(
        "wrote `{0}`; run it with `proctor run {0}`\n",
        args.path.display()
    ))?;
    Ok(Exit::Done)
}
