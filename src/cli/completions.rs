//! `proctor completions`: a script that lets a shell complete commands and flags.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Exit, print};

/// Arguments of `proctor completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "proctor", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
