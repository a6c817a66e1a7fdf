//! `proctor sessions import`: reads recordings of any known format, and writes them in one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use schemars::generate::SchemaSettings;

use crate::cli::find_sessions::{self, Input};
use crate::cli::{
    Exit, Result, chain, make_folder, print_json, prose, refuse_existing, say, say_error, stop,
    stop_with, write_truth,
};
use crate::record::journal::write_private;
use crate::report::display::many;
use crate::report::escape::plain;
use crate::session::export::{Exported, TraceTooLarge, atif, export, otlp};
use crate::session::import::{self, ForkIndex, IMPORTERS, ImportError, Importer, Recording};
use crate::session::redact::Redactor;
use crate::session::wire::Provider;
use crate::session::{JsonText, Session, native};
use crate::tokens::{COUNTERS, counter};
use crate::units::Tokens;
use tally::{ImportReport, Tally};

mod list;
mod tally;

/// Arguments of `proctor sessions import`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recordings (files, or folders that are one), and folders of them
    #[arg(required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Folder the sessions are written to
    #[arg(short, long, value_name = "DIR")]
    #[arg(default_value = ".", help_heading = "Output")]
    output: PathBuf,
    /// Format of the recordings; detected if not given
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(IMPORTERS.iter().map(|importer| importer.format())))]
    format: Option<String>,
    /// Format the sessions are written in
    #[arg(long, value_enum, default_value_t = ImportFormat::Native, help_heading = "Output")]
    to: ImportFormat,
    /// Replace keys, tokens, passwords, e-mail addresses and the names of home folders: the same
    /// secret by the same name in all files. Secrets that only a person would recognise stay, and
    /// so do pictures
    #[arg(long)]
    redact: bool,
    /// Token counter: o200k, cl100k, cl100k-content, chars/4, chars/3, bytes/4 or padded
    #[arg(long, default_value = "o200k", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(COUNTERS.iter().map(|(name, _)| *name)))]
    counter: String,
    /// Overwrite existing files
    #[arg(short, long, help_heading = "Output")]
    force: bool,
    /// End with an error where a file in a folder is passed over
    #[arg(long, conflicts_with = "list")]
    strict: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Only list the recordings, from the beginning and the end of each: format, size, first and
    /// last time
    #[arg(long)]
    list: bool,
}

/// The format that is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImportFormat {
    /// Everything, as `ID.session.jsonl`
    Native,
    /// The messages, as `ID.anthropic.json`
    Anthropic,
    /// The messages, as `ID.openai.json`
    Openai,
    /// A trajectory of Harbor, as `ID.atif.json`
    Atif,
    /// A trace of OpenTelemetry with a span for each call, as `ID.otlp.json`
    Otlp,
}

/// A JSON Schema (draft 2020-12) of what `--json` prints.
pub(in crate::cli) fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<ImportReport>()
        .to_value()
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    if args.list {
        return list::list(find_sessions::inputs(&args.files), args.json);
    }
    let format = args.format.as_deref().and_then(import::importer);
    make_folder(&args.output)?;
    let mut worst = Exit::Done;
    let mut run = ImportRun {
        args,
        format,
        redactor: args.redact.then(Redactor::new),
        written: BTreeSet::new(),
        read: BTreeMap::new(),
        forks: ForkIndex::default(),
        report: ImportReport::default(),
    };
    let mut sessions = 0;
    for input in find_sessions::inputs(&args.files) {
        match run.one(&input) {
            Ok(Some(tally)) => {
                sessions += tally.sessions.len();
                if !args.json {
                    prose::say(&plain(&tally.line()?))?;
                }
                run.report.recordings.push(tally);
            }
            Ok(None) => {}
            Err(error) => {
                let exit = say_error(&error);
                run.report.errors.push(chain(&error));
                // An unreadable file is a worse result than an existing one.
                if worst != Exit::Invalid {
                    worst = exit;
                }
            }
        }
    }
    if args.json {
        print_json(&run.report)?;
    }
    if run.report.recordings.is_empty() {
        return Ok(or_nothing(worst, true));
    }
    let passed_over = match run.report.passed_over.len() {
        0 => String::new(),
        count => format!("; passed over: {}", many(count, "file", "files")),
    };
    say!(
        "wrote {} of {} to `{}`{passed_over}",
        many(sessions, "session", "sessions"),
        many(run.report.recordings.len(), "recording", "recordings"),
        args.output.display()
    );
    Ok(worst)
}

/// Says where all went well that there was nothing.
fn or_nothing(worst: Exit, is_empty: bool) -> Exit {
    if !is_empty || worst != Exit::Done {
        return worst;
    }
    say("error: there is no recording in these folders");
    say(
        " hint: most hidden folders in them are not looked into: name the one that holds recordings; `proctor sessions` lists \
         those on this machine",
    );
    Exit::NothingSelected
}

/// The settings for all files, and the results so far.
struct ImportRun<'a> {
    args: &'a Args,
    format: Option<&'static Importer>,
    redactor: Option<Redactor>,
    written: BTreeSet<PathBuf>,
    /// The recordings that were read, by the ids of their sessions.
    read: BTreeMap<String, PathBuf>,
    forks: ForkIndex,
    report: ImportReport,
}

impl ImportRun<'_> {
    /// Reads one file and writes its sessions; returns its tally, or `None` if it is not a
    /// recording.
    fn one(&mut self, input: &Input) -> Result<Option<Tally>> {
        let path = &input.path;
        let recordings = match import::load_with_truth(path, self.format) {
            Ok(recordings) => recordings,
            Err(error) if self.passes_over(&error, input) => {
                let why = plain(&error.to_string());
                say!("passed over: {why}");
                self.report.passed_over.push(why);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(earlier) = self.copied(&recordings).filter(|_| !self.args.strict) {
            let (path, earlier) = (path.display(), earlier.display());
            let why = plain(&format!("`{path}` is a copy of `{earlier}`"));
            say(&format!("left out: {why}"));
            self.report.passed_over.push(why);
            return Ok(None);
        }
        for recording in &recordings {
            let id = recording.session.id().to_owned();
            self.read.entry(id).or_insert_with(|| path.clone());
        }
        if self.redactor.is_none() {
            // Nothing is written of a file of which something is there already.
            for recording in &recordings {
                self.target(path, &recording.session)?;
            }
        }
        let mut tally = Tally::of(path);
        for recording in recordings {
            self.write(path, recording, &mut tally)?;
        }
        if let Some(redactor) = &mut self.redactor {
            tally.redacted(&redactor.take_counts());
        }
        Ok(Some(tally))
    }

    /// The file that was read before and holds the same sessions.
    fn copied(&self, recordings: &[Recording]) -> Option<&Path> {
        let earlier = self.read.get(recordings.first()?.session.id())?;
        let before = import::load_with_truth(earlier, self.format).ok()?;
        (native_bytes(&before).ok()? == native_bytes(recordings).ok()?).then_some(earlier)
    }

    fn passes_over(&self, error: &ImportError, input: &Input) -> bool {
        let asked = input.is_named || self.format.is_some() || self.args.strict;
        error.is_no_recording() && !asked
    }

    /// Writes a session, and the facts about it.
    fn write(&mut self, path: &Path, mut recording: Recording, tally: &mut Tally) -> Result<()> {
        let repeated = self.forks.repeated(&recording.session);
        if let Some(redactor) = &mut self.redactor {
            recording.session = redactor.session(&recording.session)?;
        }
        let session = &recording.session;
        let target = self.target(path, session)?;
        let exported = self.args.to.of(session)?;
        write_private(&target, &mut |out| match &exported {
            None => native::write(session, out),
            Some(exported) => out.write_all(exported.json.as_bytes()),
        })?;
        let left_out = exported.map_or_else(BTreeMap::new, |exported| exported.left_out);
        let tokens = counter(&self.args.counter)
            .map_or(Tokens::ZERO, |counter| session.texts().map(|text| counter.count(text)).sum());
        tally.add(&recording, &target, tokens, &left_out, repeated.as_ref());
        self.written.insert(target);
        if let (ImportFormat::Native, Some(truth)) = (self.args.to, &mut recording.truth) {
            if let Some(redactor) = &mut self.redactor {
                let json = JsonText::of(&serde_json::to_value(&*truth)?);
                *truth = serde_json::from_str(redactor.json(&json).as_str())?;
                recording.session.id().clone_into(&mut truth.session);
            }
            let target = write_truth(&self.args.output, truth, self.args.force)?;
            if let Some(last) = tally.sessions.last_mut() {
                last.truth = Some(target.display().to_string());
            }
            self.written.insert(target);
        }
        Ok(())
    }

    /// The file of a session, unless it exists.
    fn target(&self, path: &Path, session: &Session) -> Result<PathBuf> {
        let id = session.id();
        let end = match self.args.to {
            ImportFormat::Native => "session.jsonl",
            ImportFormat::Anthropic => "anthropic.json",
            ImportFormat::Openai => "openai.json",
            ImportFormat::Atif => "atif.json",
            ImportFormat::Otlp => "otlp.json",
        };
        let target = self.args.output.join(format!("{id}.{end}"));
        if self.written.contains(&target) {
            let problem = format!(
                "`{}` holds session `{id}` again, which another file held",
                path.display(),
            );
            return stop(Exit::Invalid, problem);
        }
        let files = [path, target.as_path()].map(|file| file.canonicalize().ok());
        if files[0].is_some() && files[0] == files[1] {
            let problem = format!("`{}` is the input, and would be overwritten", path.display());
            return stop_with(Exit::Usage, problem, "name another folder with `-o`");
        }
        refuse_existing(&target, self.args.force)?;
        Ok(target)
    }
}

/// The sessions of a file in the native format.
fn native_bytes(recordings: &[Recording]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for recording in recordings {
        native::write(&recording.session, &mut bytes)?;
    }
    Ok(bytes)
}

impl ImportFormat {
    /// The session in this format; `None` for the native format.
    fn of(self, session: &Session) -> Result<Option<Exported>, TraceTooLarge> {
        Ok(match self {
            Self::Native => None,
            Self::Anthropic => Some(export(session, Provider::Anthropic)),
            Self::Openai => Some(export(session, Provider::OpenAi)),
            Self::Atif => Some(atif(session)),
            Self::Otlp => Some(otlp(session)?),
        })
    }
}
