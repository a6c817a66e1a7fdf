//! The command line: the only code that prints and reads the environment.
//!
//! Results go to standard output, everything else to standard error.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use serde::Serialize;
use serde_json::Value;

use crate::compare::baseline::BaselineError;
use crate::model::cassette::CassetteError;
use crate::patterns::PatternsError;
use crate::record::journal::{JournalError, write_private, write_whole};
use crate::report::escape;
use crate::report::terminal::Terminal;
use crate::runner::PlanError;
use crate::session::ground_truth::GroundTruth;
use crate::session::import::ImportError;
use crate::session::{Session, native};
use crate::settings::SettingError;
use crate::strategy::external::ProgramError;
use crate::units::Tokens;

/// Prints a line on standard error, of arguments as `format!` takes them.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::cli::say(&$crate::report::escape::plain(&format!($($words)*)))
    };
}

mod apply;
mod autopsy;
mod baseline;
mod batch;
mod budget;
mod cassette;
mod compare;
mod comparison;
mod completions;
mod decisions;
mod default_strategies;
mod doctor;
mod examples;
mod exit;
mod explain;
mod find_sessions;
mod forecast;
mod graded_run;
#[cfg(feature = "http")]
mod home;
#[cfg(not(feature = "http"))]
#[path = "cli/no_home.rs"]
mod home;
mod init;
mod judge;
mod live;
mod inputs;
mod inspect;
mod interrupt;
mod man;
mod merge;
mod messages;
mod models;
mod old_names;
mod outputs;
mod parts;
mod progress;
mod check;
mod programs;
mod prompts;
mod prose;
mod record;
mod report;
mod run;
mod schema;
mod sessions;
mod strategies;
mod sweep;
mod template;
mod usage;

pub use exit::Exit;
use report::read_run;

/// A test bench for context compaction: replays long agent sessions through compaction
/// strategies, and measures what each saves and what each loses.
#[derive(Debug, Parser)]
#[command(name = "proctor", version, after_help = Exit::HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Replay sessions through strategies and report; without a scenario, a built-in quick start
    Run(Box<run::Args>),
    /// Join the parts of a run that several machines made
    Merge(merge::Args),
    /// Try many settings of one strategy, and recommend one
    Sweep(Box<sweep::Args>),
    /// Compare runs or baselines, session by session; `--gate` says whether a run is no worse
    Compare(compare::Args),
    /// Render a finished or unfinished run again, or serve its page to a browser
    Report(report::Args),
    /// Run a recording proxy: pass on and keep the requests of agents to a model's API
    Record(record::Args),
    /// Stand in front of a model's API, and compact what running agents send
    Live(Box<live::Args>),
    /// Say what the compactions of a session lost, what was needed of it later, and what that cost
    Autopsy(autopsy::Args),
    /// List the sessions on this machine; import or generate some, and derive facts to ask about
    Sessions(Box<sessions::Args>),
    /// List strategies, or show one with its knobs
    Strategies(strategies::Args),
    /// Check a program of your own, or any strategy, against the laws of compaction
    Check(check::Args),
    /// Write a starter scenario that runs offline
    Init(init::Args),
    /// Show what the model would see at a call, or what a number is made of
    Inspect(inspect::Args),
    /// Save the scores of a run, as a file for git
    Baseline(baseline::Args),
    /// Show the thresholds of a window, and which of them a prompt crosses
    Budget(budget::Args),
    /// Grade the answers of a run with another judge, and test a judge against people's labels
    #[command(subcommand)]
    Judge(judge::JudgeAction),
    /// Recorded answers of models: list, verify, clear
    Cache(cassette::Args),
    /// Check a scenario, and list what it would run with which settings
    Doctor(doctor::Args),
    /// Say what the code of a verdict or a warning means
    #[command(hide = true)]
    Explain(explain::Args),
    /// Print a JSON Schema, for editors
    Schema(schema::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print or write manual pages
    Man(man::Args),
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let command = examples::with_examples(Cli::command());
    let matches = command.clone().try_get_matches_from(&typed);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return without_command(&error, &command, &typed).into(),
    };
    // A panic is a mistake in Proctor. The hook has printed it; the exit code must not be 101.
    catch_unwind(|| dispatch(cli.command)).unwrap_or(Exit::Internal).into()
}

/// Help and version are results; everything else is a mistake in the call.
fn without_command(error: &clap::Error, command: &clap::Command, typed: &[OsString]) -> Exit {
    if !error.use_stderr() {
        let _ = error.print();
        Exit::Done
    } else if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        Exit::Usage
    } else {
        say_error(&usage::explained(error, command, typed).into())
    }
}

fn dispatch(command: CliCommand) -> Exit {
    interrupt::say_on_interrupt(match command {
        CliCommand::Run(_) | CliCommand::Sweep(_) => "interrupted: nothing was run",
        _ => "interrupted",
    });
    let result = match command {
        CliCommand::Run(args) => run::run(&args),
        CliCommand::Merge(args) => merge::run(&args),
        CliCommand::Report(args) => report::run(&args),
        CliCommand::Compare(args) => compare::run(&args),
        CliCommand::Sweep(args) => sweep::run(&args),
        CliCommand::Baseline(args) => baseline::run(&args),
        CliCommand::Autopsy(args) => autopsy::run(&args),
        CliCommand::Sessions(args) => sessions::run(&args),
        #[cfg(feature = "http")]
        CliCommand::Record(args) => record::run(&args),
        #[cfg(feature = "http")]
        CliCommand::Live(args) => live::run(&args),
        #[cfg(not(feature = "http"))]
        CliCommand::Record(_) | CliCommand::Live(_) => without_http(),
        CliCommand::Strategies(args) => strategies::run(&args),
        CliCommand::Check(args) => check::run(&args),
        CliCommand::Init(args) => init::run(&args),
        CliCommand::Inspect(args) => inspect::run(&args),
        CliCommand::Budget(args) => budget::run(&args),
        CliCommand::Judge(action) => judge::run(&action),
        CliCommand::Cache(args) => cassette::run(&args),
        CliCommand::Doctor(args) => doctor::run(&args),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Schema(args) => schema::run(&args),
        CliCommand::Completions(args) => completions::run(&args),
        CliCommand::Man(args) => man::run(&args),
    };
    result.unwrap_or_else(|error| say_error(&error))
}

/// Says what went wrong and how to mend it; returns the exit code that it asks for.
fn say_error(error: &anyhow::Error) -> Exit {
    let (exit, hint) = explain(error);
    say!("error: {}", chain(error));
    if let Some(hint) = hint {
        say(&format!(" hint: {hint}"));
    }
    exit
}

/// The exit code and hint of an error, by the first error in its chain that has one.
fn explain(error: &anyhow::Error) -> (Exit, Option<String>) {
    error.chain().find_map(explain_cause).unwrap_or((Exit::Internal, None))
}

fn explain_cause(cause: &(dyn std::error::Error + 'static)) -> Option<(Exit, Option<String>)> {
    if let Some(stop) = cause.downcast_ref::<CliError>() {
        Some((stop.exit, stop.hint.clone()))
    } else if let Some(error) = cause.downcast_ref::<ProgramError>() {
        Some((Exit::Invalid, Some(error.hint().to_owned())))
    } else if let Some(error) = cause.downcast_ref::<SettingError>() {
        Some((Exit::Invalid, error.hint.clone()))
    } else if let Some(error) = cause.downcast_ref::<ImportError>() {
        Some((Exit::Invalid, error.hint().map(str::to_owned)))
    } else if let Some(error) = cause.downcast_ref::<PlanError>() {
        match error {
            PlanError::Cassette(error) => explain_cause(error),
            PlanError::Setting(error) => explain_cause(error),
            PlanError::Import(error) => explain_cause(error),
            error => Some((Exit::Invalid, error.hint())),
        }
    } else if let Some(error) = cause.downcast_ref::<JournalError>() {
        let exit = match error {
            JournalError::Io { .. } | JournalError::Gone(_) | JournalError::OtherFiles(_) => {
                Exit::NotWritten
            }
            _ => Exit::Invalid,
        };
        Some((exit, error.hint()))
    } else if let Some(error) = cause.downcast_ref::<CassetteError>() {
        let exit = match error {
            CassetteError::Io(..) => Exit::NotWritten,
            CassetteError::Missing(_) => Exit::ReplayMiss,
            _ => Exit::Invalid,
        };
        Some((exit, error.hint()))
    } else if let Some(error) = cause.downcast_ref::<BaselineError>() {
        Some((Exit::Baseline, error.hint().map(str::to_owned)))
    } else {
        let error = cause.downcast_ref::<PatternsError>();
        error.map(|_| (Exit::Invalid, None))
    }
}

/// An error that names its own exit code.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct CliError {
    exit: Exit,
    problem: String,
    hint: Option<String>,
}

impl CliError {
    fn new(exit: Exit, problem: impl Into<String>) -> Self {
        Self { exit, problem: problem.into(), hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Ends a command with this problem.
fn stop<T>(exit: Exit, problem: impl Into<String>) -> Result<T> {
    Err(CliError::new(exit, problem).into())
}

/// Ends a command with this problem, and says how to solve it.
fn stop_with<T>(exit: Exit, problem: impl Into<String>, hint: impl Into<String>) -> Result<T> {
    Err(CliError::new(exit, problem).with_hint(hint).into())
}

/// An error with its causes, in one line; a cause that repeats an earlier text is left out.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let said = without_number(&cause.to_string());
        if !text.contains(&said) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&said);
        }
    }
    escape::plain(&text)
}

/// The words of the operating system, without the number of its error and the name of a temporary file.
fn without_number(message: &str) -> String {
    let text = message.split(" at path \"").next().unwrap_or(message);
    match text.split_once(" (os error ") {
        Some((words, rest)) => {
            let behind = rest.split_once(')').map_or("", |(_, behind)| behind);
            format!("{words}{behind}")
        }
        None => text.to_owned(),
    }
}

/// Prints lines on standard error, in which nothing is left that a terminal obeys.
fn say(text: &str) {
    for line in text.lines() {
        let _ = writeln!(anstream::stderr(), "{}", escape::plain(line));
    }
}

/// Prints text on standard output. A closed pipe is not an error.
fn print(text: &str) -> Result<Exit> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The end of a command that printed its result.
fn printed(result: io::Result<()>) -> Result<Exit> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let problem = format!("cannot write to standard output: {error}");
            stop_with(Exit::NotWritten, problem, "`> FILE` needs room where the file is")
        }
        _ => Ok(Exit::Done),
    }
}

/// Prints facts for programs, as JSON that a terminal does not obey, line by line: some facts are many.
fn print_json(value: &impl Serialize) -> Result<Exit> {
    let mut lines = EscapedLines { out: io::BufWriter::new(io::stdout().lock()), line: Vec::new() };
    let written = serde_json::to_writer_pretty(&mut lines, value).map_err(io::Error::from);
    printed(written.and_then(|()| lines.write_all(b"\n")).and_then(|()| lines.flush()))
}

/// Writes JSON, each line once it is whole.
struct EscapedLines<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Write for EscapedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if bytes.contains(&b'\n') {
            self.flush_line()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_line()?;
        self.out.flush()
    }
}

impl<W: Write> EscapedLines<W> {
    fn flush_line(&mut self) -> io::Result<()> {
        let line = str::from_utf8(&self.line).map_err(io::Error::other)?;
        self.out.write_all(escape::json(line).as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// The JSON that a command prints or writes: which kind of facts, and the facts.
#[derive(Serialize)]
struct CliFacts<'a, T> {
    format: &'a str,
    version: u32,
    #[serde(flatten)]
    facts: T,
}

impl<'a, T: Serialize> CliFacts<'a, T> {
    fn new(format: &'a str, facts: T) -> Self {
        let version = 1;
        Self { format, version, facts }
    }
}

/// Prints the result of a command: its facts for programs, or for people a text that the template makes
/// of them, in which nothing is left that a terminal obeys.
fn show(as_json: bool, format: &str, facts: impl Serialize, template: &str) -> Result<Exit> {
    if as_json { print_json(&CliFacts::new(format, facts)) } else { show_text(facts, template) }
}

/// The same, with more that only the text says: the template knows the facts as `facts`.
fn show_with(
    as_json: bool,
    format: &str,
    facts: Value,
    mut more: Value,
    template: &str,
) -> Result<Exit> {
    if as_json {
        return show(true, format, facts, "");
    }
    more["facts"] = facts;
    show_text(more, template)
}

/// Prints the text that a template makes of these facts.
fn show_text(facts: impl Serialize, template: &str) -> Result<Exit> {
    prose::say(&template::fill(template, facts)?)
}

/// The terminal that results go to: its width, and whether it shows colours.
fn terminal() -> Terminal {
    let color = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    Terminal::new(terminal_width().unwrap_or(80), color)
}

/// Columns of the terminal that results go to, or as many as `COLUMNS` says.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size()
        .map(|(width, _)| usize::from(width.0))
        .filter(|_| io::stdout().is_terminal())
        .or_else(|| environment("COLUMNS")?.parse().ok())
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A number of tokens as people type it: `200000`, `200_000`, `200,000`, `200k`.
fn tokens(typed: &str) -> Result<Tokens, String> {
    let digits = typed.replace(['_', ','], "");
    let (digits, factor) = match digits.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000),
        None => (&*digits, 1),
    };
    let number = digits.parse().ok();
    let tokens = number.and_then(|number: u64| number.checked_mul(factor)).map(Tokens);
    tokens.ok_or_else(|| "it must be a number of tokens, as in `200000` or `200k`".to_owned())
}

/// Reads a text file; `what` names it in errors, as in `scenario `, and the hint says what it has to be.
fn read_text(what: &str, path: &Path, hint: &str) -> Result<String, CliError> {
    crate::files::read_to_string(path).map_err(|error| {
        let (error, hint) = match error.kind() {
            io::ErrorKind::InvalidData => ("it is not UTF-8".to_owned(), "save it as UTF-8"),
            _ => (without_number(&error.to_string()), hint),
        };
        let problem = format!("cannot read {what}`{}`: {error}", path.display());
        CliError::new(Exit::Invalid, problem).with_hint(hint)
    })
}

/// Names with commas between.
fn listed(names: impl IntoIterator<Item = impl ToString>) -> String {
    names.into_iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

/// Takes the name of one of these.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: impl IntoIterator<Item = T>,
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let all: Vec<T> = all.into_iter().collect();
    PossibleValuesParser::new(all.iter().map(|one| name(*one))).try_map(move |typed| {
        let mut named = all.iter().filter(|one| name(**one) == typed);
        named.next().copied().ok_or("there is no such value")
    })
}

/// Whether a file's name has this ending, in any case.
fn has_ending(path: impl AsRef<Path>, ending: &str) -> bool {
    let own = path.as_ref().extension();
    own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

/// Ends a command that cannot use a file so.
fn cannot(exit: Exit, doing: &str, path: &Path) -> impl Fn(io::Error) -> CliError + use<> {
    let problem = format!("cannot {doing} `{}`", path.display());
    move |error| CliError::new(exit, format!("{problem}: {error}"))
}

/// Makes a folder, and those above it.
fn make_folder(folder: &Path) -> Result<(), CliError> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(cannot(Exit::NotWritten, "make", folder)).map_err(|stop| {
        let hint =
            if folder.is_file() { "it is a file: name a folder" } else { "name another folder" };
        stop.with_hint(hint)
    })
}

/// Refuses a command that this build does not have.
#[cfg(not(feature = "http"))]
fn without_http() -> Result<Exit> {
    let hint = "build it with the feature `http`, which is on by default";
    stop_with(Exit::Usage, "this build of proctor speaks no HTTP", hint)
}

/// Writes a file, and says so.
fn write_output(path: &Path, bytes: &[u8]) -> Result<()> {
    write_whole(path, bytes)?;
    say!("wrote `{}`", path.display());
    Ok(())
}

/// Writes a new file, and refuses to write over an old one without `force`.
fn write_new(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    refuse_existing(path, force)?;
    Ok(write_whole(path, bytes)?)
}

/// Refuses to write over a file without `force`.
fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if path.is_dir() {
        let problem = format!("`{}` is a folder", path.display());
        return stop_with(Exit::NotWritten, problem, "name the file to write in it");
    }
    if path.exists() && !force {
        let problem = format!("`{}` is there already", path.display());
        return stop_with(Exit::NotWritten, problem, "`--force` writes over it");
    }
    Ok(())
}

/// The same for a file that holds text of sessions: only its owner may read it.
fn write_own(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    refuse_existing(path, force)?;
    Ok(write_private(path, &mut |out| out.write_all(bytes))?)
}

/// Writes the facts about a session to a file of their own, and returns its path.
fn write_truth(folder: &Path, truth: &GroundTruth, force: bool) -> Result<PathBuf> {
    let path = folder.join(format!("{}.truth.json", truth.session));
    let mut bytes = serde_json::to_vec_pretty(truth)?;
    bytes.push(b'\n');
    write_own(&path, &bytes, force)?;
    Ok(path)
}

/// Writes a session to a file of its own, in the native format, and returns its path.
fn write_session(folder: &Path, session: &Session, force: bool) -> Result<PathBuf> {
    let path = folder.join(format!("{}.session.jsonl", session.id()));
    let mut bytes = Vec::new();
    native::write(session, &mut bytes)?;
    write_own(&path, &bytes, force)?;
    Ok(path)
}
