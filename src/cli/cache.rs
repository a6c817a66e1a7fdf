//! `proctor cache`: what a cassette holds, whether it is sound, and taking answers out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::json;

use super::{Exit, Stop, print, print_json};
use crate::metric::kept;
use crate::model::Purpose;
use crate::model::cassette::{self, Entry};
use crate::record::journal::Run;
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
    /// Say what cassettes hold, by model and purpose
    List {
        /// Cassettes: JSON-lines files that `proctor run` keeps answers in
        #[arg(required = true)]
        cassettes: Vec<PathBuf>,
    },
    /// Check that each is whole, canonical and holds every answer once
    Verify {
        /// Cassettes; with `--run` by default the one in its folder
        #[arg(required_unless_present = "run")]
        cassettes: Vec<PathBuf>,
        /// Also check that they hold every answer that this run was given, and that what these cost
        /// is what its report says, by purpose
        #[arg(long, value_name = "FOLDER")]
        run: Option<PathBuf>,
    },
    /// Take out the answers of a model, or all
    Clear {
        /// The cassette
        cassette: PathBuf,
        /// Only answers of this model
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Without it nothing is changed, and what would be is said
        #[arg(short, long, visible_alias = "yes")]
        force: bool,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::List { cassettes } => list(cassettes, args.json),
        Command::Verify { cassettes, run } => {
            let own = run.iter().map(|run| run.join("cassette.jsonl"));
            let cassettes = if cassettes.is_empty() {
                own.collect()
            } else {
                cassettes.clone()
            };
            let found = run.as_ref().map(|run| compared(run, &cassettes));
            let found = found.transpose()?;
            let sound = verify(&cassettes, found.as_ref(), args.json)?;
            if let (Some(run), Some(found), false) = (run, &found, args.json) {
                tell(run, found)?;
            }
            Ok(match found {
                Some(found) if sound == Exit::Done && !found.agrees => Exit::Invalid,
                _ => sound,
            })
        }
        Command::Clear {
            cassette,
            model,
            force,
        } => clear(cassette, model.as_deref(), *force, args.json),
    }
}

/// Reads a cassette that must be there.
fn read(path: &Path) -> anyhow::Result<cassette::Contents> {
    if !path.exists() {
        let problem = format!("there is no cassette `{}`", path.display());
        let hint = "a run keeps its answers in `cassette.jsonl` in its folder, or where \
                    `models.cassette` says";
        return Err(Stop::new(Exit::Invalid, problem).with_hint(hint).into());
    }
    Ok(cassette::read(path)?)
}

fn list(cassettes: &[PathBuf], as_json: bool) -> anyhow::Result<Exit> {
    let mut listed = Vec::new();
    for path in cassettes {
        let entries = read(path)?.entries;
        let mut sums: BTreeMap<(String, String, String), (usize, Tokens)> = BTreeMap::new();
        for entry in &entries {
            let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let key = (
                entry.model.clone(),
                word(serde_json::to_value(entry.purpose)?),
                word(serde_json::to_value(entry.kind)?),
            );
            let sum = sums.entry(key).or_default();
            sum.0 += 1;
            sum.1 += entry.answer.usage.total();
        }
        if as_json {
            let sums = sums.iter().map(|((model, purpose, kind), (count, tokens))| {
                json!({
                    "model": model, "purpose": purpose, "kind": kind, "answers": count, "tokens": tokens.0,
                })
            });
            listed.push(json!({
                "file": path.display().to_string(),
                "answers": entries.len(),
                "models": sums.collect::<Vec<_>>(),
            }));
            continue;
        }
        print(&format!("{}: {} answers\n", path.display(), entries.len()))?;
        for ((model, purpose, kind), (count, tokens)) in sums {
            let model = escape::plain(&model);
            print(&format!(
                "  {model} ({kind}), {purpose}: {count} answers, {tokens} tokens\n"
            ))?;
        }
    }
    if as_json {
        print_json(&json!({ "format": "proctor-cassettes", "version": 1, "cassettes": listed }))?;
    }
    Ok(Exit::Done)
}

fn verify(
    cassettes: &[PathBuf],
    found: Option<&Reconciled>,
    as_json: bool,
) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    let mut verified = Vec::new();
    for path in cassettes {
        let contents = read(path)?;
        let mut problems = Vec::new();
        if contents.torn > 0 {
            problems.push(format!("{} lines were cut off by a crash", contents.torn));
        }
        let text = std::fs::read_to_string(path)?;
        let lines = text.lines().count().saturating_sub(1 + contents.torn);
        if lines > contents.entries.len() {
            let twice = lines - contents.entries.len();
            problems.push(format!(
                "{twice} answers stand there twice, the last one counts"
            ));
        }
        if let Some(entry) = contents.entries.iter().find(|entry| !is_sound(entry)) {
            problems.push(format!("`{}` is no key", escape::short(&entry.key, 80)));
        }
        if problems.is_empty() && cassette::canonical(&contents.entries)? != text {
            problems.push("it is not in its canonical form".to_owned());
        }
        if as_json {
            if !problems.is_empty() {
                exit = Exit::Invalid;
            }
            verified.push(json!({
                "file": path.display().to_string(),
                "answers": contents.entries.len(),
                "problems": problems,
            }));
            continue;
        }
        if problems.is_empty() {
            let count = contents.entries.len();
            print(&format!("{}: {count} answers, sound\n", path.display()))?;
        } else {
            exit = Exit::Invalid;
            let said = problems.join("; ");
            print(&format!(
                "{}: {said}; a run that keeps an answer in it puts it in order\n",
                path.display()
            ))?;
        }
    }
    if as_json {
        let run = found.map(|found| json!({ "agrees": found.agrees, "said": found.lines }));
        print_json(&json!({
            "format": "proctor-cassettes",
            "version": 1,
            "cassettes": verified,
            "run": run,
        }))?;
    }
    Ok(exit)
}

/// Whether the answers that a run was given are those that cassettes hold, at the same cost.
fn compared(folder: &Path, cassettes: &[PathBuf]) -> anyhow::Result<Reconciled> {
    let shown = folder.display();
    let run = Run::read(folder).with_context(|| format!("cannot read the run in `{shown}`"))?;
    let mut entries = Vec::new();
    for path in cassettes {
        entries.extend(read(path)?.entries);
    }
    Ok(reconcile(&run.cells, &entries))
}

fn tell(folder: &Path, found: &Reconciled) -> anyhow::Result<()> {
    let shown = folder.display();
    for line in &found.lines {
        print(&format!("{shown}: {line}\n"))?;
    }
    if found.lines.is_empty() {
        print(&format!(
            "{shown}: no request was made whose answer is kept\n"
        ))?;
    }
    Ok(())
}

/// What a run and cassettes say of the same answers.
struct Reconciled {
    lines: Vec<String>,
    agrees: bool,
}

fn reconcile(cells: &[CellRecord], entries: &[Entry]) -> Reconciled {
    let reported = kept::kept(cells);
    let wanted = kept::keys(cells);
    let mut held: BTreeMap<Purpose, (usize, Tokens)> = BTreeMap::new();
    let mut others = 0;
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for entry in entries {
        let key = entry.key.get(..KeptCall::DIGITS).unwrap_or(&entry.key);
        match wanted.get(key) {
            Some(purpose) if seen.insert(key) => {
                let sum = held.entry(*purpose).or_default();
                sum.0 += 1;
                sum.1 += entry.answer.usage.total();
            }
            Some(_) => {}
            None => others += 1,
        }
    }
    let (mut lines, mut agrees) = (Vec::new(), true);
    for (purpose, kept) in reported.iter().filter(|(_, kept)| kept.distinct > 0) {
        let (answers, tokens) = held.get(purpose).copied().unwrap_or_default();
        let purpose = format!("{purpose:?}").to_lowercase();
        if (answers, tokens) == (kept.distinct, kept.paid) {
            lines.push(format!(
                "{purpose}: {answers} answers, {tokens} tokens in both"
            ));
        } else {
            agrees = false;
            lines.push(format!(
                "{purpose}: the report has {} answers, {} tokens; the cassettes hold {answers} of them, \
                 {tokens} tokens",
                kept.distinct, kept.paid
            ));
        }
    }
    if others > 0 {
        lines.push(format!(
            "{others} answers in the cassettes belong to other runs"
        ));
    }
    Reconciled { lines, agrees }
}

fn is_sound(entry: &Entry) -> bool {
    entry.key.len() == 64 && entry.key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn clear(path: &Path, model: Option<&str>, force: bool, as_json: bool) -> anyhow::Result<Exit> {
    let entries = read(path)?.entries;
    let (gone, kept): (Vec<Entry>, Vec<Entry>) = entries
        .into_iter()
        .partition(|entry| model.is_none_or(|model| entry.model == model));
    let tokens: Tokens = gone.iter().map(|entry| entry.answer.usage.total()).sum();
    let what = format!("{} answers that cost {tokens} tokens", gone.len());
    let path_shown = path.display();
    if gone.is_empty() {
        let problem = format!("`{path_shown}` holds no such answer");
        return Err(Stop::new(Exit::NothingSelected, problem).into());
    }
    if !force {
        let problem = format!("this would take {what} out of `{path_shown}`");
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint("`--force` does it")
            .into());
    }
    cassette::write_sorted(path, &kept)?;
    if as_json {
        print_json(&json!({
            "format": "proctor-cassette-cleared",
            "version": 1,
            "file": path_shown.to_string(),
            "cleared": gone.len(),
            "tokens": tokens.0,
            "left": kept.len(),
        }))?;
        return Ok(Exit::Done);
    }
    print(&format!(
        "{path_shown}: {what} are gone, {} are left\n",
        kept.len()
    ))?;
    Ok(Exit::Done)
}
