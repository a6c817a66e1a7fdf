//! `proctor probes`: finds facts of a recording that can be asked for, and checks a file of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::{Exit, Stop, judges, models, print, print_json, prose, say, walk, write_new};
use crate::model::Request;
use crate::probe::check::{self, Mistake, TruthFile};
use crate::probe::derive::{self, Derived, decisions};
use crate::probe::grade::Rules;
use crate::probe::judge::{self, Judge, Word};
use crate::probe::{self, Outcome, Probe, Verdict};
use crate::replay::PreparedSession;
use crate::replay::verify::unsound;
use crate::report::escape::plain;
use crate::report::figure::many;
use crate::session::ground_truth::{GroundTruth, PlantedFact};
use crate::session::import::glance::glance;
use crate::session::{Message, Session, import};
use crate::strategy::files::touched_by;
use crate::tokens::{CharsPer4, CountedTexts};

/// Arguments of `proctor probes`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Find facts of a recording that can be asked for, and write them to a file to edit
    Derive(DeriveArgs),
    /// Hold a file of facts against its recording, mistake by mistake with its line
    Check(CheckArgs),
    /// Print the questions of a file, and what is known of their answers
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
struct DeriveArgs {
    /// The recording, in any format that `proctor import` reads, or a folder of them
    session: PathBuf,
    /// Where to write; without it, to standard output. Beside `ID.session.jsonl`, a file called
    /// `ID.truth.json` is found by itself. For a folder, or a file of several sessions: the folder in
    /// which each session gets a file called `ID.truth.json`; without it, that of the recording
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(short, long)]
    force: bool,
    /// A model that proposes decisions, as in `openai:gpt-5-mini`, or a table as in a scenario: kept is
    /// what stands word for word in the recording, and what the model answers from there and not
    /// without
    #[arg(long, value_name = "KIND:MODEL")]
    model: Option<String>,
    /// Where the model's replies are kept
    #[arg(long, value_name = "FILE", default_value = "derive.cassette.jsonl")]
    cassette: PathBuf,
    #[command(flatten)]
    asked: judges::Asked,
    #[command(flatten)]
    costs: judges::Costs,
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// The file of facts
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The recording it is about; without it, `ID.session.jsonl` beside `ID.truth.json`
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The file of facts
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.action {
        Action::Derive(args) => derive_facts(args),
        Action::Check(args) => check_file(args),
        Action::Show(args) => show(args),
    }
}

fn derive_facts(args: &DeriveArgs) -> anyhow::Result<Exit> {
    let is_folder = args.session.is_dir() && !import::is_session_folder(&args.session);
    if !is_folder {
        let sessions = import::load(&args.session)?;
        if let [session] = &sessions[..] {
            return derive_one(session, args.output.as_deref(), args);
        }
        let folder = args.output.clone().unwrap_or_else(|| beside(&args.session));
        return derive_each(&sessions, &folder, args, &mut BTreeSet::new()).map(|_| Exit::Done);
    }
    let mut written = BTreeSet::new();
    let mut files = 0;
    for input in walk::inputs(std::slice::from_ref(&args.session)) {
        let path = input?.path;
        if path.to_string_lossy().ends_with(".truth.json") {
            continue;
        }
        match glance(&path) {
            Ok(_) => {}
            Err(error) if walk::is_something_else(&error) => continue,
            Err(error) => return Err(error.into()),
        }
        let sessions = import::load(&path)?;
        let folder = args.output.clone().unwrap_or_else(|| beside(&path));
        files += derive_each(&sessions, &folder, args, &mut written)?;
    }
    if written.is_empty() {
        let shown = plain(&args.session.display().to_string());
        let problem = format!("there is no recording in the folder `{shown}`");
        let hint = "`proctor import --list FOLDER` says what it sees in one";
        return Err(Stop::new(Exit::NothingSelected, problem)
            .with_hint(hint)
            .into());
    }
    say(&format!(
        "wrote {} for {}; a scenario takes them as `[probes] files = [\"….truth.json\"]`",
        many(files, "file", "files"),
        many(written.len(), "session", "sessions"),
    ));
    Ok(Exit::Done)
}

/// The folder of a recording.
fn beside(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Derives facts for each session into a file of its own, and returns how many were written. The
/// same session is read once, however many files hold it.
fn derive_each(
    sessions: &[Session],
    folder: &Path,
    args: &DeriveArgs,
    known: &mut BTreeSet<String>,
) -> anyhow::Result<usize> {
    std::fs::create_dir_all(folder).map_err(|error| {
        let problem = format!("cannot make `{}`: {error}", folder.display());
        Stop::new(Exit::NotWritten, problem)
    })?;
    let mut files = 0;
    for session in sessions {
        let id = session.id();
        if !known.insert(id.to_owned()) {
            say(&format!("passed over: session `{id}` was read before"));
            continue;
        }
        let path = folder.join(format!("{id}.truth.json"));
        derive_one(session, Some(&path), args)?;
        files += 1;
    }
    Ok(files)
}

/// Derives facts for one session and writes them: into a file, or to standard output.
fn derive_one(session: &Session, output: Option<&Path>, args: &DeriveArgs) -> anyhow::Result<Exit> {
    let Derived {
        truth: mut proposed,
        passed_over,
    } = derive::derive(session, &touched_by);
    if let Some(model) = &args.model {
        let decisions = decided(session, model, args)?;
        proposed.facts.extend(decisions);
        proposed.facts.sort_by(|a, b| a.id.cmp(&b.id));
    }
    let (truth, dropped) = sound(session, proposed)?;
    let json = serde_json::to_string_pretty(&truth)? + "\n";
    match output {
        Some(path) => {
            write_new(path, json.as_bytes(), args.force)?;
            say(&format!("wrote `{}`", path.display()));
        }
        None => print(&json)?,
    }
    let kinds: BTreeSet<&str> = Probe::planted(&truth)
        .iter()
        .map(|p| p.kind().name())
        .collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    say(&format!(
        "{} of {} ({}); {dropped} more do not stand in the history as they should",
        many(truth.facts.len(), "fact", "facts"),
        many(kinds.len(), "kind", "kinds"),
        kinds.join(", ")
    ));
    if !passed_over.is_empty() {
        let reasons: Vec<String> = passed_over
            .iter()
            .map(|(why, count)| format!("{count} {}", why.in_words()))
            .collect();
        say(&format!(
            "plain statements passed over: {}",
            reasons.join(", ")
        ));
    }
    Ok(Exit::Done)
}

/// The decisions that a model proposes, that the recording bears out, and that the model answers from
/// the evidence and not without it.
fn decided(session: &Session, model: &str, args: &DeriveArgs) -> anyhow::Result<Vec<PlantedFact>> {
    let named = judges::parse(&[model.to_owned()])?;
    let connected = args.asked.connect_judges(&named, &args.cassette)?;
    let requests = decisions::requests(session);
    args.costs.confirm(&connected, &requests, 1, &CharsPer4)?;
    let Some(model) = connected.judges().first() else {
        return Ok(Vec::new());
    };
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let ask = |request: &Request| {
        let answered = model.answer(request, 0, &counts);
        answered.answer.ok().map(|reply| reply.text)
    };
    let replies: Vec<_> = requests
        .iter()
        .map(|it| ask(it).unwrap_or_default())
        .collect();
    let replies: Vec<&str> = replies.iter().map(|reply| &**reply).collect();
    let (mut facts, dropped) = decisions::kept(session, &replies);
    let proposed = facts.len() + dropped.values().sum::<usize>();
    let before = session.messages().len();
    facts.retain(|fact| {
        let truth = GroundTruth::new(session.id(), vec![fact.clone()]);
        let probes = Probe::planted(&truth);
        let rules = Rules::new(&probes);
        let is_right = |messages: &[Arc<Message>]| {
            let mut asked = probes.iter().flat_map(|probe| {
                let requests = judge::questions(None, messages, probe);
                requests.into_iter().map(move |request| (probe, request))
            });
            asked.all(|(probe, request)| {
                let said = ask(&request).unwrap_or_default();
                match rules.verdict(probe, before, &said) {
                    Verdict::Scored { outcome, .. } => outcome == Outcome::Right,
                    // Rules confirm only what is exact: the model grades other words itself.
                    Verdict::Unscored { .. } => {
                        let judge = Judge { probes: &probes };
                        let asked = judge.request(probe, before, &said);
                        let reply = model.answer(&asked, 0, &counts).answer;
                        judge::read(&reply) == Ok(Word::Right)
                    }
                }
            })
        };
        let [with, without] = decisions::arms(session, fact);
        is_right(&with) && !is_right(&without)
    });
    models::finish(&connected)?;
    let dropped: Vec<String> = dropped
        .iter()
        .map(|(why, count)| format!(", {count} {}", why.in_words()))
        .collect();
    say(&format!(
        "{} of {proposed} proposed decisions are answered from their evidence and not without it{}",
        facts.len(),
        dropped.concat()
    ));
    Ok(facts)
}

/// What can be asked for and is answered by the full history, and how many proposals were not.
fn sound(session: &Session, proposed: GroundTruth) -> anyhow::Result<(GroundTruth, usize)> {
    let unsound: BTreeSet<String> = unsound_in(session, &proposed)?
        .into_iter()
        .map(|unsound| unsound.0)
        .collect();
    let before = proposed.facts.len();
    let facts = proposed.facts.into_iter();
    let facts: Vec<_> = facts.filter(|fact| !unsound.contains(&fact.id)).collect();
    let dropped = before - facts.len();
    Ok((GroundTruth::new(session.id(), facts), dropped))
}

/// Probes that do not hold what they promise: id and problem.
fn unsound_in(session: &Session, truth: &GroundTruth) -> anyhow::Result<Vec<(String, String)>> {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let session = Arc::new(session.clone());
    let prepared = PreparedSession::new(session, counts, Probe::planted(truth))?;
    let unsound = unsound(&prepared).into_iter();
    Ok(unsound.map(|it| (it.probe, it.problem)).collect())
}

fn read(path: &Path) -> anyhow::Result<TruthFile> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Stop::new(
            Exit::Invalid,
            format!("cannot read `{}`: {error}", path.display()),
        )
        .with_hint("`proctor probes derive SESSION -o FILE` writes one")
    })?;
    TruthFile::read(&text).map_err(|mistake| Stop::new(Exit::Invalid, said(path, &mistake)).into())
}

fn said(path: &Path, mistake: &Mistake) -> String {
    let fact = if mistake.fact.is_empty() {
        String::new()
    } else {
        format!("`{}`: ", mistake.fact)
    };
    format!(
        "{}: line {}: {fact}{}",
        path.display(),
        mistake.line,
        mistake.problem
    )
}

fn check_file(args: &CheckArgs) -> anyhow::Result<Exit> {
    let file = read(&args.file)?;
    let beside = || {
        let name = args.file.file_name()?.to_str()?;
        let stem = name.strip_suffix(".truth.json")?;
        Some(args.file.with_file_name(format!("{stem}.session.jsonl")))
    };
    let path = args.session.clone().or_else(beside).ok_or_else(|| {
        Stop::new(
            Exit::Usage,
            format!("no session is named for `{}`", args.file.display()),
        )
        .with_hint("add `--session FILE`")
    })?;
    let sessions = import::load(&path).context("cannot read the session")?;
    let wanted = sessions
        .iter()
        .find(|session| session.id() == file.truth.session)
        .or_else(|| sessions.first());
    let Some(session) = wanted else {
        let problem = format!("`{}` holds no session", path.display());
        return Err(Stop::new(Exit::Invalid, problem).into());
    };
    let mut mistakes = file.mistakes(session);
    // What cannot be read is not replayed.
    if mistakes.is_empty() {
        for (fact, problem) in unsound_in(session, &file.truth)? {
            let line = file.line_of(&fact);
            mistakes.push(Mistake {
                line,
                fact,
                problem,
            });
        }
        mistakes.sort();
    }
    if args.json {
        let probes = Probe::planted(&file.truth);
        let mistakes = mistakes.iter();
        let mistakes =
            mistakes.map(|it| json!({ "line": it.line, "fact": it.fact, "problem": it.problem }));
        print_json(&json!({
            "format": "proctor-probes-check",
            "version": 1,
            "facts": probes.len(),
            "asked": probe::items(session, &probes).len(),
            "mistakes": mistakes.collect::<Vec<_>>(),
        }))?;
    }
    for mistake in mistakes.iter().filter(|_| !args.json) {
        let line = crate::report::escape::plain(&said(&args.file, mistake));
        print(&(line + "\n"))?;
    }
    let probes = Probe::planted(&file.truth);
    let items = probe::items(session, &probes).len();
    if mistakes.is_empty() {
        if !args.json {
            print(&format!(
                "{}: {} facts hold, asked {items} times\n",
                args.file.display(),
                probes.len()
            ))?;
        }
        return Ok(Exit::Done);
    }
    let problem = format!("{} mistakes in `{}`", mistakes.len(), args.file.display());
    Err(Stop::new(Exit::Invalid, problem).into())
}

fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let file = read(&args.file)?;
    if args.json {
        let probes = Probe::planted(&file.truth);
        let probes = probes.iter().zip(&file.truth.facts).map(|(probe, fact)| {
            json!({
                "id": probe.id,
                "kind": probe.kind().name(),
                "asked": probe.questions(),
                "known": check::known(fact),
                "evidence": fact.evidence,
            })
        });
        print_json(&json!({
            "format": "proctor-probes",
            "version": 1,
            "session": file.truth.session,
            "probes": probes.collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    let lines: String = check::shown(&file.truth)
        .lines()
        .map(|line| crate::report::escape::plain(line) + "\n")
        .collect();
    prose::say(&lines)?;
    Ok(Exit::Done)
}
