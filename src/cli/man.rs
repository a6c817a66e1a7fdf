//! `proctor man`: manual pages, one of them printed or all of them written.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};

use super::{Cli, Exit, Result, make_folder, print};
use crate::record::journal::write_whole;

/// Arguments of `proctor man`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write all pages into this folder; without it, the first page is printed
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut command = super::examples::with_examples(Cli::command());
    // Names of subcommands are known once the command is built.
    command.build();
    let Some(folder) = &args.output else {
        return print(&String::from_utf8_lossy(&page(&command)?));
    };
    make_folder(folder)?;
    write(&command, folder)?;
    Ok(Exit::Done)
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut bytes)?;
    Ok(bytes)
}

/// Writes the page of a command and those of its subcommands: `proctor-run.1`.
fn write(command: &Command, folder: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    write_whole(&path, &page(command)?)?;
    print(&format!("{}\n", path.display()))?;
    let mut inner = command.get_subcommands();
    inner.try_for_each(|inner| match inner.get_name() {
        "help" => Ok(()),
        _ => write(inner, folder),
    })
}
