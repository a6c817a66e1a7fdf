//! `proctor cache`: what a cassette holds, whether it is sound, and taking answers out of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{Exit, Stop, print};
use crate::model::cassette::{self, Entry};
use crate::report::escape;
use crate::units::Tokens;

/// Arguments of `proctor cache`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
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
        /// Cassettes
        #[arg(required = true)]
        cassettes: Vec<PathBuf>,
    },
    /// Take out the answers of a model, or all
    Clear {
        /// The cassette
        cassette: PathBuf,
        /// Only answers of this model
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Without it nothing is changed, and what would be is said
        #[arg(long)]
        force: bool,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::List { cassettes } => list(cassettes),
        Command::Verify { cassettes } => verify(cassettes),
        Command::Clear {
            cassette,
            model,
            force,
        } => clear(cassette, model.as_deref(), *force),
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

fn list(cassettes: &[PathBuf]) -> anyhow::Result<Exit> {
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
        print(&format!("{}: {} answers\n", path.display(), entries.len()))?;
        for ((model, purpose, kind), (count, tokens)) in sums {
            let model = escape::plain(&model);
            print(&format!(
                "  {model} ({kind}), {purpose}: {count} answers, {tokens} tokens\n"
            ))?;
        }
    }
    Ok(Exit::Done)
}

fn verify(cassettes: &[PathBuf]) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
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
    Ok(exit)
}

fn is_sound(entry: &Entry) -> bool {
    entry.key.len() == 64 && entry.key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn clear(path: &Path, model: Option<&str>, force: bool) -> anyhow::Result<Exit> {
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
    print(&format!(
        "{path_shown}: {what} are gone, {} are left\n",
        kept.len()
    ))?;
    Ok(Exit::Done)
}
