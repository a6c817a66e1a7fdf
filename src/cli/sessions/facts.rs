//! `proctor sessions facts`: derives facts to ask about from recordings, and checks files of facts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use crate::cli::{
    Exit, Result, chain, decisions, find_sessions, has_ending, listed, make_folder, models, print,
    read_text, say, show_with, stop, stop_with, write_own,
};
use crate::probe::ProbeExt as _;
use crate::probe::Selection;
use crate::probe::check::{self, Mistake, TruthFile};
use crate::probe::derive;
use crate::replay::PreparedSession;
use crate::replay::verify::{UnsoundProbe, unsound};
use crate::report::display::many;
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::session::{Session, import};
use crate::tokens::{CharsPer4, CountedTexts};

/// Arguments of `proctor sessions facts`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recordings, and folders of recordings
    #[arg(value_name = "PATH", required_unless_present_any = ["check", "show"])]
    paths: Vec<PathBuf>,
    /// Check files of facts against their recordings, and list each mistake with its line
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["paths", "show"])]
    check: Vec<PathBuf>,
    /// The recording that the checked file is about; without it, `ID.session.jsonl` beside `ID.truth.json`
    #[arg(long, value_name = "FILE", requires = "check")]
    session: Option<PathBuf>,
    /// Print the questions of a file and their known answers
    #[arg(long, value_name = "FILE", conflicts_with = "paths")]
    show: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Models")]
    proposer: ProposerOptions,
    #[command(flatten, next_help_heading = "Output")]
    output: FactsTarget,
}

#[derive(Debug, clap::Args)]
struct ProposerOptions {
    /// The model, as in `openai:gpt-5-mini`, or a table as in a scenario. A proposal is kept if it is verbatim in
    /// the recording, and if the model answers it from there and not without it
    #[arg(long, value_name = "KIND:MODEL")]
    model: Option<String>,
    /// File that keeps the model's replies
    #[arg(long, value_name = "FILE", default_value = "derive.cassette.jsonl")]
    cassette: PathBuf,
    #[command(flatten)]
    judges: models::JudgeOptions,
}

#[derive(Debug, clap::Args)]
struct FactsTarget {
    /// File to write, or a folder where there are several sessions
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(short, long)]
    force: bool,
    /// Print what `--check` or `--show` finds as JSON; derived facts always are
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    if let Some(file) = &args.show {
        return show_file(file, args.output.json);
    }
    if args.check.is_empty() {
        return derive_all(args);
    }
    if args.session.is_some() && args.check.len() > 1 {
        let problem = "`--session` names one recording, and `--check` several files";
        return stop_with(Exit::Usage, problem, "check each file by itself");
    }
    let mut mistakes = 0;
    for file in &args.check {
        mistakes += check_file(file, args)?;
    }
    if mistakes == 0 {
        return Ok(Exit::Done);
    }
    let quoted = args.check.iter().map(|file| file.display()).map(|path| format!("`{path}`"));
    let files = listed(quoted);
    let mistakes = many(mistakes, "mistake", "mistakes");
    stop(Exit::Invalid, format!("{mistakes} in {files}"))
}

/// Derives facts for each session of each recording.
fn derive_all(args: &Args) -> Result<Exit> {
    let mut files = Vec::new();
    for path in &args.paths {
        if find_sessions::is_walked(path) {
            files.extend(find_sessions::recordings(path)?.recordings);
        } else {
            files.push(path.clone());
        }
    }
    let Some(first) = files.first() else {
        return Err(find_sessions::no_recording(Exit::NothingSelected, "", &args.paths[0]).into());
    };
    let output = args.output.output.as_deref();
    if files == args.paths
        && files.len() == 1
        && let [session] = &import::load(first)?[..]
    {
        let asked = (Arc::new(session.clone()), output.map(Path::to_owned));
        derive_asked(&[asked], args)?;
        return Ok(Exit::Done);
    }
    if let Some(file) = output.filter(|path| has_ending(path, "json")) {
        let problem = format!("there are several sessions, and `{}` is one file", file.display());
        let hint = "name a folder: each session gets a file in it";
        return stop_with(Exit::Usage, problem, hint);
    }
    // With a model all sessions are read first: their cost is agreed to once.
    let (mut known, mut asked) = (BTreeSet::new(), Vec::new());
    for file in &files {
        let folder = output.or(file.parent()).unwrap_or(Path::new(""));
        let sessions = match import::load(file) {
            Err(error) if !args.paths.contains(file) => {
                say!("passed over: {}", chain(&error.into()));
                continue;
            }
            read => read?,
        };
        make_folder(folder)?;
        for session in sessions {
            let id = session.id();
            if known.insert(id.to_owned()) {
                let path = folder.join(format!("{id}.truth.json"));
                asked.push((Arc::new(session), Some(path)));
                if args.proposer.model.is_none() {
                    derive_asked(&std::mem::take(&mut asked), args)?;
                }
            } else {
                say!("passed over: session `{id}` was read before");
            }
        }
    }
    derive_asked(&asked, args)?;
    let found = match output {
        None => "a run of the recordings finds them beside those",
        Some(_) => "a scenario takes them as `[probes] files = [\"….truth.json\"]`",
    };
    say!(
        "wrote {} for {}; {found}",
        many(known.len(), "file", "files"),
        many(known.len(), "session", "sessions")
    );
    Ok(Exit::Done)
}

/// Derives facts for these sessions, with those of the model if there is one, and writes each to its file.
fn derive_asked(all: &[(Arc<Session>, Option<PathBuf>)], args: &Args) -> Result<()> {
    let sessions: Vec<Arc<Session>> = all.iter().map(|(session, _)| session.clone()).collect();
    let mut decided = match &args.proposer.model {
        None => Vec::new(),
        Some(model) => decisions::Proposer {
            flag: "--model",
            model,
            cassette: &args.proposer.cassette,
            options: &args.proposer.judges,
        }
        .decided(&sessions)?,
    }
    .into_iter();
    for (session, output) in all {
        let own = decided.next().transpose()?.unwrap_or_default();
        derive_one(session, output.as_deref(), own, args)?;
    }
    Ok(())
}

/// Derives facts for one session and writes them with its decisions: into a file, or to standard output.
fn derive_one(
    session: &Session,
    output: Option<&Path>,
    decided: Vec<PlantedFact>,
    args: &Args,
) -> Result<()> {
    let mut derived = derive::derive(session);
    if !decided.is_empty() {
        derived.facts.extend(decided);
        derived.facts.sort_by(|a, b| a.id.cmp(&b.id));
    }
    let (truth, dropped) = sound(session, derived)?;
    let json = serde_json::to_string_pretty(&truth)? + "\n";
    if let Some(path) = output {
        write_own(path, json.as_bytes(), args.output.force)?;
        say!("wrote `{}`", path.display());
    } else {
        print(&json)?;
    }
    let mut kinds: Vec<&str> = truth.facts.iter().map(|fact| fact.kind().name()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (lacking, planted) = derive::without_anchor(&truth.facts);
    let mut said = format!(
        "{} of {} ({}), {lacking} of {planted} without an anchor",
        many(truth.facts.len(), "fact", "facts"),
        many(kinds.len(), "kind", "kinds"),
        kinds.join(", ")
    );
    if dropped > 0 {
        write!(said, "; {dropped} more are not answered by the full history")?;
    }
    say(&said);
    Ok(())
}

/// The facts that can be asked for and that the full history answers, and how many were dropped.
fn sound(session: &Session, proposed: GroundTruth) -> Result<(GroundTruth, usize)> {
    let unsound = unsound_in(session, &proposed)?.into_iter();
    let unsound: BTreeSet<String> = unsound.map(|unsound| unsound.probe).collect();
    let before = proposed.facts.len();
    let mut facts = proposed.facts;
    facts.retain(|fact| !unsound.contains(&fact.id));
    let dropped = before - facts.len();
    Ok((GroundTruth::new(session.id(), facts), dropped))
}

/// Probes whose evidence the full history does not hold.
fn unsound_in(session: &Session, truth: &GroundTruth) -> Result<Vec<UnsoundProbe>> {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let prepared = PreparedSession::new(Arc::new(session.clone()), counts, truth.facts.clone())?;
    Ok(unsound(&prepared))
}

fn read(path: &Path) -> Result<TruthFile> {
    let hint = "`proctor sessions facts SESSION -o FILE` writes one";
    let text = read_text("", path, hint)?;
    let is_one = text.contains(GroundTruth::FORMAT);
    let hint = if is_one { "mend that line, and check the file again" } else { hint };
    TruthFile::read(&text)
        .or_else(|mistake| stop_with(Exit::Invalid, in_words(path, &mistake), hint))
}

fn in_words(path: &Path, mistake: &Mistake) -> String {
    let fact = match mistake.fact.as_str() {
        "" => String::new(),
        fact => format!("`{fact}`: "),
    };
    let (path, line) = (path.display(), mistake.line);
    format!("{path}: line {line}: {fact}{}", mistake.problem)
}

/// The recording beside a file of facts, by its name.
fn recording_of(truth: &Path) -> Option<PathBuf> {
    let stem = truth.file_name()?.to_str()?.strip_suffix(".truth.json")?;
    Some(truth.with_file_name(format!("{stem}.session.jsonl")))
}

/// Lists the mistakes of a file; returns how many there are.
fn check_file(path: &Path, args: &Args) -> Result<usize> {
    let shown = path.display();
    let file = read(path)?;
    let Some(recording) = args.session.clone().or_else(|| recording_of(path)) else {
        let problem = format!("no session is named for `{shown}`");
        return stop_with(Exit::Usage, problem, "add `--session FILE`");
    };
    // Its own facts may be those that are wrong.
    let recordings = import::load_without_truth(&recording, None);
    let recordings = recordings.context("cannot read the session")?;
    let mut sessions = recordings.iter().map(|recording| &recording.session);
    let first = sessions.clone().next();
    let of_id = sessions.find(|session| session.id() == file.truth.session);
    let Some(session) = of_id.or(first) else {
        let problem = format!("`{}` holds no session", recording.display());
        return stop(Exit::Invalid, problem);
    };
    let mut mistakes = file.mistakes(session);
    // A file with mistakes is not replayed.
    if mistakes.is_empty() {
        let unsound = unsound_in(session, &file.truth)?.into_iter();
        mistakes.extend(unsound.map(|unsound| Mistake {
            line: file.line_of(&unsound.probe),
            fact: unsound.probe,
            problem: unsound.problem,
        }));
        mistakes.sort();
    }
    let probes = file.truth.facts.clone();
    let items = Selection::default().items(session, &probes).len();
    let facts = json!({
        "facts": probes.len(),
        "asked": items,
        "mistakes": mistakes,
    });
    let words: Vec<String> = mistakes.iter().map(|mistake| in_words(path, mistake)).collect();
    let more = json!({ "file": shown.to_string(), "mistakes": words });
    let template = include_str!("../text/checked.txt");
    let as_json = args.output.json;
    show_with(as_json, "proctor-probes-check", facts, more, template)?;
    Ok(mistakes.len())
}

fn show_file(path: &Path, as_json: bool) -> Result<Exit> {
    let file = read(path)?;
    if let Some(mistake) = file.unread.first() {
        let hint = "`--check` lists all mistakes of the file";
        return stop_with(Exit::Invalid, in_words(path, mistake), hint);
    }
    let (mut probes, mut never_said, mut all_known) = (Vec::new(), Vec::new(), Vec::new());
    for probe in &file.truth.facts {
        let known = check::known(probe);
        let values: Vec<&String> = known.iter().map(|(value, _)| value).collect();
        let current: Vec<&String> =
            known.iter().filter(|(_, holds)| *holds).map(|(value, _)| value).collect();
        probes.push(json!({
            "id": probe.id,
            "kind": probe.kind().name(),
            "asked": probe.questions(),
            "known": values,
            "current": current,
            "evidence": probe.evidence,
            "until": probe.until,
        }));
        never_said.push(probe.kind().is_never_said());
        all_known.push(known);
    }
    let facts = json!({
        "session": file.truth.session,
        "probes": probes,
    });
    let more = json!({ "never_said": never_said, "known": all_known });
    let template = include_str!("../text/probes.txt");
    show_with(as_json, "proctor-probes", facts, more, template)
}
