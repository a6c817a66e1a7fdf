//! `proctor completions`: a script that lets a shell complete commands and flags.

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory as _, ValueHint};
use clap_complete::Shell;

use super::{Cli, Exit, Result, print};
use crate::strategy::preset::PRESETS;

/// Arguments of `proctor completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut script = Vec::new();
    let mut command = with_values(Cli::command());
    clap_complete::generate(args.shell, &mut command, "proctor", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// The same with what a shell can complete: the names of strategies, and files and folders.
fn with_values(bare: Command) -> Command {
    let mut command = bare.mut_args(|arg| match arg.get_id().as_str() {
        "strategy" => {
            arg.value_parser(PossibleValuesParser::new(PRESETS.iter().map(|(name, _)| *name)))
        }
        "session" | "sessions" | "scenario" | "run" | "output" | "paths" | "files" | "named" => {
            arg.value_hint(ValueHint::AnyPath)
        }
        _ => arg,
    });
    let inner = command.get_subcommands();
    let names: Vec<String> = inner.map(|inner| inner.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, with_values);
    }
    command
}
