//! The command line: the only code that prints and reads the environment.
//!
//! Results go to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::model::cassette::CassetteError;
use crate::needles::NeedlesError;
use crate::record::journal::JournalError;
use crate::runner::PlanError;
use crate::session::import::ImportError;
use crate::settings::{SettingError, did_you_mean};

mod baseline;
mod batch;
mod budget;
mod cache;
mod calibrate;
mod compare;
mod completions;
mod confirm;
mod doctor;
mod exit;
mod gate;
mod generate;
mod graded;
mod import;
mod init;
mod inputs;
mod inspect;
mod judges;
mod man;
mod messages;
mod models;
mod plan;
mod probes;
mod progress;
mod prompts;
mod prose;
mod record;
mod report;
mod run;
mod schema;
mod score;
mod strategies;
mod sweep;
mod validate;
mod versus;
mod walk;

pub use exit::Exit;

/// A test bench for context compaction: replays long agent sessions through compaction
/// strategies, and measures what each saves and what each loses.
#[derive(Debug, Parser)]
#[command(name = "proctor", version, after_help = Exit::HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay sessions through strategies and report; without a scenario, a built-in quick start
    #[command(visible_alias = "eval")]
    Run(Box<run::Args>),
    /// Say what a run would send and cost, without running it
    Plan(plan::Args),
    /// Render a finished or unfinished run again
    Report(report::Args),
    /// Compare runs or baselines, session by session, with statistics
    Compare(compare::Args),
    /// Say whether a run is no worse than a baseline
    Gate(gate::Args),
    /// Try many settings of one strategy, and recommend one
    Sweep(Box<sweep::Args>),
    /// Keep what a run scored, as a file for git
    Baseline(baseline::Args),
    /// Write synthetic sessions and what was planted in them
    Generate(generate::Args),
    /// Write recordings in the native format, or in that of a provider's API
    Import(import::Args),
    /// Listen as a recording proxy: what agents send to a model's API is passed on, and kept
    Record(record::Args),
    /// List strategies, or show one with its knobs
    Strategies(strategies::Args),
    /// Find facts of a recording that can be asked for, and check a file of them
    Probes(probes::Args),
    /// Check a scenario file, and say what it would run
    Validate(validate::Args),
    /// Write a starter scenario that runs offline
    Init(init::Args),
    /// Show what the model would see at a call, and what became of the rest
    Inspect(inspect::Args),
    /// Say what fits into a window, and which lines a prompt crosses
    Budget(budget::Args),
    /// Have another judge grade the answers of a run, without replaying it
    Score(score::Args),
    /// Compare a judge with people's labels, and say whether it may be believed
    Calibrate(calibrate::Args),
    /// Recorded answers of models: list, verify, clear
    Cache(cache::Args),
    /// Say what a run would use, and where each setting comes from
    Doctor(doctor::Args),
    /// Print a JSON Schema, for editors
    Schema(schema::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print or write manual pages
    Man(man::Args),
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            suggest_command(&mut error);
            // Help and version are results; everything else is a mistake in the call.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            let _ = error.print();
            return exit.into();
        }
    };
    // A panic is a mistake in Proctor. The hook has printed it; the exit code must not be 101.
    let exit = catch_unwind(|| dispatch(cli.command)).unwrap_or(Exit::Internal);
    exit.into()
}

/// Names the command that was meant, where clap sees no likeness: it knows no two letters that changed places.
fn suggest_command(error: &mut clap::Error) {
    let (said, suggested) = (
        ContextKind::InvalidSubcommand,
        ContextKind::SuggestedSubcommand,
    );
    let Some(ContextValue::String(typed)) = error.get(said) else {
        return;
    };
    if error.get(suggested).is_some() {
        return;
    }
    let cli = Cli::command();
    let names = cli
        .get_subcommands()
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()));
    let meant = did_you_mean(typed, names).map(str::to_owned);
    if let Some(meant) = meant {
        error.insert(suggested, ContextValue::Strings(vec![meant]));
    }
}

fn dispatch(command: Command) -> Exit {
    let result = match command {
        Command::Run(args) => run::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Baseline(args) => baseline::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Strategies(args) => strategies::run(&args),
        Command::Probes(args) => probes::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Budget(args) => budget::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    result.unwrap_or_else(|error| {
        say(&format!("error: {}", chain(&error)));
        let (exit, hint) = explain(&error);
        if let Some(hint) = hint {
            say(&format!(" hint: {hint}"));
        }
        exit
    })
}

/// The exit code and hint of an error, by the first error in its chain that has one.
fn explain(error: &anyhow::Error) -> (Exit, Option<String>) {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<SettingError>() {
            return (Exit::Invalid, error.hint.clone());
        }
        if let Some(error) = cause.downcast_ref::<ImportError>() {
            return (Exit::Invalid, error.hint().map(str::to_owned));
        }
        if let Some(error) = cause.downcast_ref::<PlanError>() {
            if let PlanError::Cassette(CassetteError::Missing { .. }) = error {
                let hint = "`--replay auto` asks the models, and keeps their answers there";
                return (Exit::ReplayMiss, Some(hint.to_owned()));
            }
            let hint = match error {
                PlanError::NoKey { variable, .. } => Some(format!(
                    "set `{variable}`, or give the model `key`, the name of another variable"
                )),
                PlanError::Import(error) => error.hint().map(str::to_owned),
                _ => None,
            };
            return (Exit::Invalid, hint);
        }
        if let Some(error) = cause.downcast_ref::<JournalError>() {
            return match error {
                JournalError::Io { .. } => (Exit::NotWritten, None),
                JournalError::Unreadable { .. } => {
                    let hint = "a run folder is what `proctor run` names when it is done";
                    (Exit::Invalid, Some(hint.to_owned()))
                }
                _ => (Exit::Invalid, None),
            };
        }
        if cause.downcast_ref::<NeedlesError>().is_some() {
            return (Exit::Invalid, None);
        }
        if let Some(error) = cause.downcast_ref::<CassetteError>() {
            return match error {
                CassetteError::Io { .. } => (Exit::NotWritten, None),
                CassetteError::Missing { .. } => (Exit::ReplayMiss, None),
                _ => (Exit::Invalid, None),
            };
        }
        if let Some(error) = cause.downcast_ref::<Stop>() {
            return (error.exit, error.hint.clone());
        }
    }
    (Exit::Internal, None)
}

/// An error that names its own exit code.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Stop {
    exit: Exit,
    what: String,
    hint: Option<String>,
}

impl Stop {
    fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            hint: None,
        }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// An error with its causes, in one line; a cause that repeats what is said already is left out.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&said);
        }
    }
    crate::report::escape::plain(&text)
}

/// Says something on standard error.
fn say(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Prints a result on standard output. A reader that has gone away is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints facts for programs.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value)?;
    print(&(crate::report::escape::json(&json) + "\n"))
}

/// The terminal that results go to: its width, and whether it shows colours.
fn terminal() -> crate::report::terminal::Terminal {
    let color = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => false,
        anstream::ColorChoice::Auto
        | anstream::ColorChoice::Always
        | anstream::ColorChoice::AlwaysAnsi => true,
    };
    crate::report::terminal::Terminal::new(columns().unwrap_or(80), color)
}

/// Columns of the terminal that results go to, or as many as `COLUMNS` says.
fn columns() -> Option<usize> {
    terminal_size::terminal_size()
        .map(|(width, _)| usize::from(width.0))
        .filter(|_| io::stdout().is_terminal())
        .or_else(|| environment("COLUMNS")?.parse().ok())
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes a new file, and refuses to write over an old one unless told to.
fn write_new(path: &Path, bytes: &[u8], force: bool) -> anyhow::Result<()> {
    if path.exists() && !force {
        return Err(Stop::new(
            Exit::NotWritten,
            format!("`{}` is there already", path.display()),
        )
        .with_hint("`--force` writes over it")
        .into());
    }
    Ok(crate::record::journal::write_whole(path, bytes)?)
}
