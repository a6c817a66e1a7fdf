//! `proctor generate`: writes synthetic sessions, and apart from them what was planted.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Exit, Stop, print, write_new};
use crate::session::native;
use crate::session::synthetic::{self, FAMILIES, Length, Recipe};
use crate::tokens::{CountedTexts, O200k};
use crate::units::Tokens;

/// Arguments of `proctor generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Writes ID.session.jsonl and, apart from it, ID.truth.json.")]
pub(super) struct Args {
    /// Family of sessions, or `list`
    family: String,
    /// First seed; same seed, same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many sessions, with consecutive seeds
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Length in rounds (API calls)
    #[arg(long, conflicts_with = "tokens", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Length in tokens (o200k)
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..))]
    tokens: Option<u64>,
    /// Folder the files are written to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Write over files that are there already
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.family == "list" {
        for family in FAMILIES {
            print(&format!("{}  {}\n", family.name(), family.description()))?;
        }
        return Ok(Exit::Done);
    }
    let length = match (args.rounds, args.tokens) {
        (Some(rounds), _) => Length::Rounds(rounds),
        (None, tokens) => Length::Tokens(Tokens(tokens.unwrap_or(100_000))),
    };
    std::fs::create_dir_all(&args.output).map_err(|error| {
        Stop::new(
            Exit::NotWritten,
            format!("cannot make `{}`: {error}", args.output.display()),
        )
    })?;
    for n in 0..args.count {
        let recipe = Recipe {
            family: args.family.clone(),
            seed: args.seed.wrapping_add(n),
            length,
            ..Recipe::default()
        };
        let counts = CountedTexts::new(Arc::new(O200k));
        let made = synthetic::generate(&recipe, &counts).map_err(|error| {
            Stop::new(Exit::Usage, error.to_string())
                .with_hint("`proctor generate list` names them")
        })?;
        let id = made.session.id();
        let mut bytes = Vec::new();
        native::write(&made.session, &mut bytes)?;
        let path = args.output.join(format!("{id}.session.jsonl"));
        write_new(&path, &bytes, args.force)?;
        let mut truth = serde_json::to_vec_pretty(&made.truth)?;
        truth.push(b'\n');
        write_new(
            &args.output.join(format!("{id}.truth.json")),
            &truth,
            args.force,
        )?;
        let tokens: Tokens = made
            .session
            .texts()
            .map(|text| counts.size(text).tokens)
            .sum();
        print(&format!(
            "{}  {} calls, {tokens} tokens, {} facts\n",
            path.display(),
            made.session.calls().len(),
            made.truth.facts.len()
        ))?;
    }
    Ok(Exit::Done)
}
