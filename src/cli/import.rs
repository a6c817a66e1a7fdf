//! `proctor import`: reads recordings of any known format, and writes them in one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use super::{Exit, Stop, chain, explain, print, say, write_new};
use crate::record::journal::write_private;
use crate::report::escape::plain;
use crate::session::export::export;
use crate::session::ground_truth::GroundTruth;
use crate::session::import::outline::{self, Cut, Outline, Rests};
use crate::session::import::{self, Beginnings, IMPORTERS, ImportError, Importer, Recording};
use crate::session::native::{Of, Whole};
use crate::session::redact::{Class, Redactor};
use crate::session::wire::Provider;
use crate::session::{JsonText, Message, Session, Tag, ToolSchema, native};
use crate::tokens::{COUNTERS, CountedTexts, TokenCounter, counter};
use crate::units::Tokens;

mod list;

/// Arguments of `proctor import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes ID.session.jsonl, ID.anthropic.json or ID.openai.json for each \
                        session, and prints one line for each file that was read. A file that \
                        cannot be read is told on standard error, and the others go on."
)]
pub(super) struct Args {
    /// Recordings (files, or folders that are one), and folders of them
    #[arg(required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Folder the sessions are written to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Format of the recordings; told from their first bytes if not given
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(IMPORTERS.iter().map(|it| it.format())))]
    format: Option<String>,
    /// Format the sessions are written in
    #[arg(long, value_enum, default_value_t = To::Native)]
    to: To,
    /// Replace keys, tokens, passwords, e-mail addresses and the names of home folders: the same
    /// secret by the same name in all files. Passages that only a person would know for secret
    /// stay, and so do pictures
    #[arg(long)]
    redact: bool,
    /// Token counter: o200k or chars/4
    #[arg(long, default_value = "o200k")]
    counter: String,
    /// Write over files that are there already
    #[arg(long)]
    force: bool,
    /// Only list the recordings, by a look at the beginning and the end of each: format, size,
    /// first and last time
    #[arg(long)]
    list: bool,
}

/// What is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum To {
    /// Everything, as `ID.session.jsonl`
    Native,
    /// The messages, as `ID.anthropic.json`
    Anthropic,
    /// The messages, as `ID.openai.json`
    Openai,
}

/// A session to read, a file or a folder, and whether it was named or found in a folder.
struct Input {
    path: PathBuf,
    is_named: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    if counter(&args.counter).is_none() {
        let names: Vec<&str> = COUNTERS.iter().map(|(name, _)| *name).collect();
        let stop = Stop::new(
            Exit::Usage,
            format!("there is no token counter `{}`", args.counter),
        );
        return Err(stop
            .with_hint(format!("there are {}", names.join(", ")))
            .into());
    }
    if args.list {
        return list::list(inputs(&args.files));
    }
    let format = args.format.as_deref().and_then(import::importer);
    std::fs::create_dir_all(&args.output).map_err(|error| {
        let problem = format!("cannot make `{}`: {error}", args.output.display());
        Stop::new(Exit::NotWritten, problem)
    })?;
    let mut worst = Exit::Done;
    let mut run = Run {
        args,
        format,
        redactor: args.redact.then(Redactor::new),
        written: BTreeSet::new(),
        beginnings: Beginnings::default(),
    };
    let mut read = 0;
    for input in inputs(&args.files) {
        let result = input.and_then(|input| run.one(&input));
        match result {
            Ok(Some(line)) => {
                read += 1;
                print(&line)?;
            }
            Ok(None) => {}
            Err(error) => {
                let (exit, hint) = explain(&error);
                say(&format!("error: {}", chain(&error)));
                if let Some(hint) = hint {
                    say(&format!(" hint: {hint}"));
                }
                // What cannot be read weighs more than what is there already.
                if worst != Exit::Invalid {
                    worst = exit;
                }
            }
        }
    }
    if read == 0 && worst == Exit::Done {
        say("error: there is no recording in these folders");
        worst = Exit::NothingSelected;
    }
    Ok(worst)
}

/// The files, and those in the folders, in the order of their paths. A folder that is a session is
/// read as one. Links are not followed into folders, and what is hidden stays so.
fn inputs(paths: &[PathBuf]) -> Vec<anyhow::Result<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.is_dir() && !import::is_session_folder(path) {
            walk(path, &mut inputs);
        } else {
            let path = path.clone();
            let is_named = true;
            inputs.push(Ok(Input { path, is_named }));
        }
    }
    inputs
}

fn walk(folder: &Path, inputs: &mut Vec<anyhow::Result<Input>>) {
    let entries = std::fs::read_dir(folder)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .map_err(|source| ImportError::Io {
            path: folder.to_owned(),
            source,
        });
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return inputs.push(Err(error.into())),
    };
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let path = entry.path();
        let is_named = false;
        match entry.file_type() {
            _ if is_hidden => {}
            Ok(kind) if kind.is_dir() && !import::is_session_folder(&path) => {
                walk(&path, inputs);
            }
            Ok(kind) if kind.is_dir() || path.is_file() => {
                inputs.push(Ok(Input { path, is_named }));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// What is the same for all files, and what was done so far.
struct Run<'a> {
    args: &'a Args,
    format: Option<&'a dyn Importer>,
    redactor: Option<Redactor>,
    written: BTreeSet<PathBuf>,
    beginnings: Beginnings,
}

impl Run<'_> {
    /// Reads one file and writes its sessions; says what it held, or nothing if it is no recording.
    fn one(&mut self, input: &Input) -> anyhow::Result<Option<String>> {
        let path = &input.path;
        if let Some(mut outline) = self.outline(path)? {
            self.go_on(path, &mut outline.recordings)?;
            return self.piecewise(path, outline).map(Some);
        }
        let mut recordings = match import::load_with_truth(path, self.format) {
            Ok(recordings) => recordings,
            Err(
                error @ (ImportError::NotJson { .. }
                | ImportError::Empty { .. }
                | ImportError::NoMessages { .. }
                | ImportError::UnknownFormat { .. }
                | ImportError::Database { .. }
                | ImportError::NoDatabase { .. }),
            ) if !input.is_named && self.format.is_none() => {
                say(&format!("passed over: {}", plain(&error.to_string())));
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.go_on(path, &mut recordings)?;
        if let Some(redactor) = &mut self.redactor {
            for recording in &mut recordings {
                redact(recording, redactor)?;
            }
        }
        let mut left_out = BTreeMap::new();
        let mut files = Vec::new();
        for recording in &recordings {
            let session = &recording.session;
            let (name, bytes) = file(session, self.args.to, &mut left_out)?;
            let target = self.target(path, session, &name)?;
            files.push((target, bytes));
            if let (To::Native, Some(truth)) = (self.args.to, &recording.truth) {
                files.push(truth_file(&self.args.output, truth)?);
            }
        }
        for (target, bytes) in files {
            write_new(&target, &bytes, self.args.force)?;
            self.written.insert(target);
        }
        let counted = counter(&self.args.counter).map(CountedTexts::new);
        let texts = recordings.iter().flat_map(|it| it.session.texts());
        let tokens = counted.map_or(Tokens::ZERO, |counted| {
            texts.map(|text| counted.size(text).tokens).sum()
        });
        let mut line = line(path, &recordings, tokens, &left_out);
        let facts = recordings.iter().filter_map(|it| it.truth.as_ref());
        let facts: usize = facts.map(|truth| truth.facts.len()).sum();
        let not_asked: usize = recordings.iter().map(|it| it.left_out).sum();
        if facts + not_asked > 0 {
            let _ = write!(line, "; facts: {facts}, questions left out: {not_asked}");
        }
        if let Some(redactor) = &mut self.redactor {
            line.push_str(&replaced(&redactor.take_counts()));
        }
        Ok(Some(plain(&line) + "\n"))
    }

    /// What an earlier file held of a session is told there.
    fn go_on(&mut self, path: &Path, recordings: &mut [Recording]) -> Result<(), ImportError> {
        for recording in recordings {
            let session = recording.session.clone();
            let result = self.beginnings.after_repeated(session);
            recording.session = result.map_err(|source| ImportError::Session {
                path: path.to_owned(),
                source,
            })?;
        }
        Ok(())
    }

    /// Where a session is written, unless something stands there.
    fn target(&self, path: &Path, session: &Session, name: &str) -> anyhow::Result<PathBuf> {
        let target = self.args.output.join(name);
        if self.written.contains(&target) {
            let problem = format!(
                "`{}` holds session `{}` again, which another file held",
                path.display(),
                session.id()
            );
            return Err(Stop::new(Exit::Invalid, problem).into());
        }
        if target.exists() && !self.args.force {
            let problem = format!("`{}` is there already", target.display());
            let stop = Stop::new(Exit::NotWritten, problem);
            return Err(stop.with_hint("`--force` writes over it").into());
        }
        Ok(target)
    }

    /// The outline of a file that is too long to be held, where that says all that is needed.
    fn outline(&self, path: &Path) -> anyhow::Result<Option<Outline>> {
        let is_long = path.metadata().is_ok_and(|it| it.len() >= LONG);
        if !is_long || !matches!(self.args.to, To::Native) {
            return Ok(None);
        }
        Ok(outline::outline(path, self.format, Cut::default())?)
    }

    /// Writes the sessions of a long file message by message.
    fn piecewise(&mut self, path: &Path, outline: Outline) -> anyhow::Result<String> {
        let mut redactor = self.redactor.take();
        let written = self.pieces(path, outline, redactor.as_mut());
        // The files after one that failed are redacted, too.
        self.redactor = redactor;
        written
    }

    fn pieces(
        &mut self,
        path: &Path,
        outline: Outline,
        mut redactor: Option<&mut Redactor>,
    ) -> anyhow::Result<String> {
        let Outline {
            mut recordings,
            rests,
        } = outline;
        if let Some(redactor) = redactor.as_deref_mut() {
            for recording in &mut recordings {
                let around = redactor.around(&recording.session)?;
                redact_truth(recording, around, redactor)?;
            }
        }
        let mut counting = Counting {
            redactor: redactor.as_deref_mut(),
            rests,
            counter: counter(&self.args.counter),
            tokens: Tokens::ZERO,
        };
        for recording in &recordings {
            let session = &recording.session;
            let target = self.target(path, session, &format!("{}.session.jsonl", session.id()))?;
            counting.count_header(session);
            write_private(&target, &mut |out| {
                native::write_whole(session, &mut counting, out)
            })?;
            self.written.insert(target);
            if let Some(truth) = &recording.truth {
                let (target, bytes) = truth_file(&self.args.output, truth)?;
                write_new(&target, &bytes, self.args.force)?;
            }
        }
        let mut line = line(path, &recordings, counting.tokens, &BTreeMap::new());
        if let Some(redactor) = redactor {
            line.push_str(&replaced(&redactor.take_counts()));
        }
        Ok(plain(&line) + "\n")
    }
}

/// A file of so many bytes is read without holding its long texts.
const LONG: u64 = 16 << 20;

/// Counts the tokens of messages as they are written.
struct Counting<'r> {
    /// Takes the secrets out, where it is asked to.
    redactor: Option<&'r mut Redactor>,
    rests: Rests,
    counter: Option<Arc<dyn TokenCounter>>,
    tokens: Tokens,
}

impl Counting<'_> {
    fn count(&mut self, text: &str) {
        if let Some(counter) = &self.counter {
            self.tokens += counter.count(text);
        }
    }

    fn count_header(&mut self, session: &Session) {
        let tools = session.tools().iter().map(ToolSchema::text);
        for text in session.system().into_iter().chain(tools) {
            self.count(text);
        }
    }
}

impl Whole for Counting<'_> {
    fn message<'a>(&mut self, message: &'a Message, of: Of) -> io::Result<Cow<'a, Message>> {
        let mut whole = self.rests.message(message, of)?;
        if let Some(redactor) = &mut self.redactor {
            whole = Cow::Owned(redactor.message(&whole));
        }
        if of == Of::History {
            for text in whole.model_text() {
                self.count(text);
            }
        }
        Ok(whole)
    }

    fn text(&mut self, text: &Arc<str>) -> io::Result<Arc<str>> {
        let whole = self.rests.text(text)?;
        Ok(match &mut self.redactor {
            Some(redactor) => redactor.text(&whole).into(),
            None => whole,
        })
    }
}

/// The name and bytes of the file of what is known about a session.
fn truth_file(folder: &Path, truth: &GroundTruth) -> anyhow::Result<(PathBuf, Vec<u8>)> {
    let mut bytes = serde_json::to_vec_pretty(truth)?;
    bytes.push(b'\n');
    let name = format!("{}.truth.json", truth.session);
    Ok((folder.join(name), bytes))
}

/// Takes the secrets out of a session and of what is known about it.
fn redact(recording: &mut Recording, redactor: &mut Redactor) -> anyhow::Result<()> {
    let redacted = redactor.session(&recording.session)?;
    redact_truth(recording, redacted, redactor)
}

/// The same of what is known about a session, of which `session` is what is left.
fn redact_truth(
    recording: &mut Recording,
    session: Session,
    redactor: &mut Redactor,
) -> anyhow::Result<()> {
    recording.session = session;
    if let Some(truth) = &mut recording.truth {
        let json = JsonText::of(&serde_json::to_value(&*truth)?);
        *truth = serde_json::from_str(redactor.json(&json).as_str())?;
        recording.session.id().clone_into(&mut truth.session);
    }
    Ok(())
}

/// How many places were replaced, by class: never what stood there.
fn replaced(counts: &BTreeMap<Class, u64>) -> String {
    let shown: Vec<String> = counts
        .iter()
        .map(|(class, count)| format!("{} × {count}", class.name()))
        .collect();
    if shown.is_empty() {
        return "; redacted: nothing".to_owned();
    }
    format!("; redacted: {}", shown.join(", "))
}

/// The name and bytes of the file a session is written to.
fn file(
    session: &Session,
    to: To,
    left_out: &mut BTreeMap<String, u64>,
) -> anyhow::Result<(String, Vec<u8>)> {
    let id = session.id();
    let provider = match to {
        To::Native => {
            let mut bytes = Vec::new();
            native::write(session, &mut bytes)?;
            return Ok((format!("{id}.session.jsonl"), bytes));
        }
        To::Anthropic => Provider::Anthropic,
        To::Openai => Provider::OpenAi,
    };
    let exported = export(session, provider);
    for (what, count) in exported.left_out {
        *left_out.entry(what.to_owned()).or_default() += count;
    }
    Ok((format!("{id}.{provider}.json"), exported.json.into_bytes()))
}

/// What a file held, in one line.
fn line(
    path: &Path,
    recordings: &[Recording],
    tokens: Tokens,
    left_out: &BTreeMap<String, u64>,
) -> String {
    let mut counts = [0_usize; 6];
    let (mut skipped, mut unknown, mut warnings) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for Recording { session, .. } in recordings {
        for message in session.messages() {
            counts[2] += message.tool_uses().count();
            counts[3] += message.tool_results().count();
            counts[4] += usize::from(message.has_tag(Tag::Orphan));
        }
        counts[0] += session.messages().len();
        counts[1] += session.calls().len();
        counts[5] += session.compactions().len();
        let source = session.source();
        for (all, some) in [
            (&mut skipped, &source.skipped),
            (&mut unknown, &source.unknown),
            (&mut warnings, &source.warnings),
        ] {
            for (what, count) in some {
                *all.entry(what.clone()).or_default() += count;
            }
        }
    }
    let [messages, calls, uses, results, orphans, compactions] = counts;
    let format = recordings
        .first()
        .map_or("", |first| &first.session.source().format);
    let mut line = format!(
        "{}: {format}, {} sessions, {messages} messages, {calls} calls, {uses} tool uses, \
         {results} results, {orphans} orphans, {tokens} tokens, {compactions} compactions",
        path.display(),
        recordings.len(),
    );
    for (name, counts) in [
        ("unknown", &unknown),
        ("warnings", &warnings),
        ("skipped", &skipped),
        ("not carried", left_out),
    ] {
        let shown: Vec<String> = counts
            .iter()
            .map(|(what, count): (&String, &u64)| format!("{what} × {count}"))
            .collect();
        if !shown.is_empty() {
            let _ = write!(line, "; {name}: {}", shown.join(", "));
        }
    }
    line
}
