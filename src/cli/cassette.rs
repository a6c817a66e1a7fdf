//! `proctor cache`: lists, verifies and clears the answers in cassettes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use super::{Exit, Result, read_run, show, show_with, stop, stop_with};
use crate::metric::cached_calls;
use crate::model::Purpose;
use crate::model::cassette::{self, CassetteEntry};
use crate::record::{CellRecord, KeptCall};
use crate::report::escape;
use crate::units::Tokens;

/// Arguments of `proctor cache`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the answers in cassettes, by model and purpose
    List {
        /// Cassettes: JSON-lines files that `proctor run` keeps answers in
        #[arg(required = true)]
        cassettes: Vec<PathBuf>,
    },
    /// Check that each is complete, in canonical form, and holds every answer once
    Verify {
        /// Cassettes; with `--run` by default the one in its folder
        #[arg(required_unless_present = "run")]
        cassettes: Vec<PathBuf>,
        /// Also check that they hold every answer of this run, and that the cost of the answers is
        /// that of its report, by purpose
        #[arg(long, value_name = "FOLDER")]
        run: Option<PathBuf>,
    },
    /// Write an edited cassette with its checksums
    ///
    /// A line whose checksum is wrong is refused all the same. To edit a line, take its `check` away.
    Renew {
        /// The cassette
        cassette: PathBuf,
    },
    /// Delete the answers of a model, or all
    Clear {
        /// The cassette
        cassette: PathBuf,
        /// Only answers of this model
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Delete them; without it, only list the answers that would be deleted
        #[arg(short, long, visible_alias = "yes")]
        force: bool,
    },
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    match &args.command {
        Command::List { cassettes } => list(cassettes, args.json),
        Command::Verify { cassettes, run } => verify(cassettes, run.as_deref(), args.json),
        Command::Renew { cassette } => renew(cassette, args.json),
        Command::Clear { cassette, model, force } => {
            clear(cassette, model.as_deref(), *force, args.json)
        }
    }
}

/// Reads a cassette that must be there.
fn read(path: &Path) -> Result<cassette::Contents> {
    check_exists(path)?;
    Ok(cassette::read(path)?)
}

fn check_exists(path: &Path) -> Result<()> {
    if !path.exists() {
        let problem = format!("there is no cassette `{}`", path.display());
        let hint = "a run keeps its answers in `cassette.jsonl` in its folder, or where \
                    `models.cassette` says";
        return stop_with(Exit::Invalid, problem, hint);
    }
    Ok(())
}

fn renew(path: &Path, as_json: bool) -> Result<Exit> {
    check_exists(path)?;
    let answers = cassette::renew(path)?;
    let facts = json!({ "file": path.display().to_string(), "answers": answers });
    let template = "{{ file }}: {{ answers }} answers, each with a checksum\n";
    show(as_json, "proctor-cassette-renewed", facts, template)
}

/// A number of answers, and their tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AnswerTotal {
    count: usize,
    tokens: Tokens,
}

impl AnswerTotal {
    fn add(&mut self, entry: &CassetteEntry) {
        self.count += 1;
        self.tokens += entry.answer.usage.total();
    }
}

fn list(cassettes: &[PathBuf], as_json: bool) -> Result<Exit> {
    let mut listed = Vec::new();
    for path in cassettes {
        let entries = read(path)?.entries;
        let mut sums: BTreeMap<_, AnswerTotal> = BTreeMap::new();
        for entry in &entries {
            let key = (&*entry.model, entry.purpose, entry.kind);
            sums.entry(key).or_default().add(entry);
        }
        let models = sums.into_iter().map(|((model, purpose, kind), AnswerTotal { count, tokens })| {
            json!({
                "model": model, "purpose": purpose, "kind": kind, "answers": count, "tokens": tokens,
            })
        });
        listed.push(json!({
            "file": path.display().to_string(),
            "answers": entries.len(),
            "models": models.collect::<Vec<_>>(),
        }));
    }
    let facts = json!({ "cassettes": listed });
    let template = include_str!("text/cassettes.txt");
    show(as_json, "proctor-cassettes", facts, template)
}

fn verify(cassettes: &[PathBuf], run: Option<&Path>, as_json: bool) -> Result<Exit> {
    let of_run = run.map(|run| run.join("cassette.jsonl"));
    let own = of_run.iter().filter(|_| cassettes.is_empty());
    let (mut verified, mut entries) = (Vec::new(), Vec::new());
    let mut is_sound = true;
    for path in own.chain(cassettes) {
        let contents = read(path)?;
        let damage = problems(path, &contents)?;
        is_sound &= damage.is_empty();
        let (file, count) = (path.display().to_string(), contents.entries.len());
        verified.push(json!({ "file": file, "answers": count, "problems": damage }));
        entries.extend(contents.entries);
    }
    let mut found = None;
    if let Some(run) = run {
        let (lines, agrees) = reconcile(&read_run(run)?.cells, &entries);
        is_sound &= agrees;
        found = Some(json!({ "agrees": agrees, "said": lines }));
    }
    let facts = json!({ "cassettes": verified, "run": found });
    let folder = json!({ "folder": run.map(|run| run.display().to_string()) });
    let template = include_str!("text/verified.txt");
    show_with(as_json, "proctor-cassettes", facts, folder, template)?;
    Ok(if is_sound { Exit::Done } else { Exit::Invalid })
}

/// The faults of a cassette: it is to be whole, canonical and to hold every answer once.
fn problems(path: &Path, contents: &cassette::Contents) -> Result<Vec<String>> {
    let entries = &contents.entries;
    let bytes = crate::files::read(path)?;
    // The first line is the head, and the last one ends with a line feed.
    let lines = bytes.split(|byte| *byte == b'\n').count();
    let twice = lines.saturating_sub(2 + entries.len());
    let mut problems = Vec::new();
    if contents.is_torn {
        problems.push("its last line was cut off by a crash".to_owned());
    }
    if twice > 0 {
        problems.push(format!("{twice} answers stand there twice, the last one counts"));
    }
    if let Some(entry) = entries.iter().find(|entry| !is_key(&entry.key)) {
        problems.push(format!("`{}` is not a key", escape::short(&entry.key, 80)));
    }
    if problems.is_empty() && cassette::canonical(entries)? != bytes {
        problems.push("it is not in its canonical form".to_owned());
    }
    Ok(problems)
}

fn is_key(key: &str) -> bool {
    key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Compares the answers of a run with those in cassettes: in words, and whether both have the same
/// answers at the same cost.
fn reconcile(cells: &[CellRecord], entries: &[CassetteEntry]) -> (Vec<String>, bool) {
    let wanted = cached_calls::keys(cells);
    let mut held: BTreeMap<Purpose, AnswerTotal> = BTreeMap::new();
    let mut others = 0;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for entry in entries {
        let key = entry.key.get(..KeptCall::DIGITS).unwrap_or(&entry.key);
        match wanted.get(key) {
            Some(purpose) if seen.insert(key) => held.entry(*purpose).or_default().add(entry),
            Some(_) => {}
            None => others += 1,
        }
    }
    let (mut lines, mut agrees) = (Vec::new(), true);
    for (purpose, kept) in cached_calls::by_purpose(cells) {
        let AnswerTotal { count, tokens } = held.get(&purpose).copied().unwrap_or_default();
        let purpose = format!("{purpose:?}").to_lowercase();
        let (answers, paid) = (kept.distinct, kept.paid);
        if answers == 0 {
            continue;
        }
        if (count, tokens) == (answers, paid) {
            lines.push(format!("{purpose}: {count} answers, {tokens} tokens in both"));
        } else {
            agrees = false;
            lines.push(format!(
                "{purpose}: the report has {answers} answers, {paid} tokens; the cassettes hold {count} of them, \
                 {tokens} tokens"
            ));
        }
    }
    if others > 0 {
        lines.push(format!("{others} answers in the cassettes belong to other runs"));
    }
    (lines, agrees)
}

fn clear(path: &Path, model: Option<&str>, force: bool, as_json: bool) -> Result<Exit> {
    let (shown, mut kept) = (path.display().to_string(), read(path)?.entries);
    let mut gone = AnswerTotal::default();
    kept.retain(|entry| {
        let stays = model.is_some_and(|model| entry.model != model);
        if !stays {
            gone.add(entry);
        }
        stays
    });
    let AnswerTotal { count, tokens } = gone;
    if count == 0 {
        let problem = format!("`{shown}` holds no such answer");
        return stop(Exit::NothingSelected, problem);
    }
    if !force {
        let problem =
            format!("this would take {count} answers that cost {tokens} tokens out of `{shown}`");
        return stop_with(Exit::Usage, problem, "`--force` does it");
    }
    cassette::write_sorted(path, &kept)?;
    let facts = json!({ "file": shown, "cleared": count, "tokens": tokens, "left": kept.len() });
    let template = "{{ file }}: {{ cleared }} answers that cost {{ tokens }} tokens are gone, {{ left }} are left\n";
    show(as_json, "proctor-cassette-cleared", facts, template)
}
