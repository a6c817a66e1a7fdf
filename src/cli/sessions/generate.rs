//! `proctor sessions generate`: writes synthetic sessions, and in separate files the planted facts.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use crate::cli::{
    CliError, Exit, Format, make_folder, prose, show, stop_with, token_count, write_session,
    write_truth,
};
use crate::session::synthetic::{
    self, FAMILIES, Generated, HEAD_TOKENS, LEAST_WINDOW, Language, Length, MOST_DISTRACTORS,
    MOST_FACTS, OBSERVATIONS, RESULTS, Recipe, SyntheticError,
};
use crate::settings::did_you_mean;
use crate::tokens::{CountedTexts, O200k};
use crate::units::Tokens;

mod describe;

/// Arguments of `proctor sessions generate`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes ID.session.jsonl and, apart from it, ID.truth.json. With `--describe` \
                  nothing is written: all families, or those that are named, and recordings are \
                  described side by side."
)]
pub(super) struct Args {
    /// Family of sessions, or `list`; with `--describe` families, recordings and folders of them
    #[arg(value_name = "FAMILY", required_unless_present = "describe")]
    targets: Vec<String>,
    /// Describe the sessions, and write none
    #[arg(long)]
    describe: bool,
    /// Format of `--describe`
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        requires = "describe"
    )]
    format: Format,
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// First seed; same seed, same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many sessions, with consecutive seeds; 1, or 4 of each family to describe them
    #[arg(long)]
    count: Option<u64>,
    /// Length in rounds (API calls)
    #[arg(long, conflicts_with = "tokens", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Length in tokens (o200k); 100,000 if neither is given
    #[arg(long, value_parser = at_least_a_thousand)]
    tokens: Option<u64>,
    /// Window of the model that the session is made for: it is four times as long, with a head and
    /// results that leave room in it
    #[arg(long, value_name = "TOKENS", conflicts_with_all = ["rounds", "tokens"],
          value_parser = a_window)]
    for_window: Option<u32>,
    /// Number of planted facts, in percent of the family's own
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_FACTS)))]
    facts: u32,
    /// Share of tool results in the tokens of the messages, in percent; by default as in the
    /// family
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32)
          .range(i64::from(*OBSERVATIONS.start())..=i64::from(*OBSERVATIONS.end())))]
    observations: Option<u32>,
    /// Usual size of a result, in percent of the family's own; the largest results keep their size
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u32)
              .range(i64::from(*RESULTS.start())..=i64::from(*RESULTS.end())))]
    results: u32,
    /// Other keys near each planted one; by default as in the family
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_DISTRACTORS)))]
    distractors: Option<u32>,
    /// Number of wordings of a planted fact; by default all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    phrasings: Option<u32>,
    /// Tokens of system prompt and tools in front of every prompt, in addition to those written
    /// down; 7,400, or with `--for-window` at most an eighth of it, and none below 16,000
    #[arg(long, value_name = "TOKENS")]
    head_tokens: Option<u64>,
    /// Language in which the session is held and facts are planted
    #[arg(long, value_name = "CODE", default_value = "en", value_parser = Language::ALL.map(Language::code))]
    language: String,
    /// Folder the files are written to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Overwrite existing files
    #[arg(short, long)]
    force: bool,
}

fn a_window(typed: &str) -> Result<u32, String> {
    let number = token_count(typed).and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| *number >= LEAST_WINDOW);
    number.ok_or_else(|| format!("it must be a whole number of at least {LEAST_WINDOW}"))
}

fn at_least_a_thousand(typed: &str) -> Result<u64, String> {
    let number = token_count(typed).filter(|number| *number >= 1_000);
    number.ok_or_else(|| "it must be a whole number of at least 1000".to_owned())
}

impl Args {
    /// The recipe of the `n`-th session of a family.
    fn recipe(&self, family: &str, n: u64) -> Recipe {
        let recipe = Recipe {
            family: family.to_owned(),
            seed: self.seed.wrapping_add(n),
            length: match (self.rounds, self.tokens) {
                (Some(rounds), _) => Length::Rounds(rounds),
                (None, tokens) => Length::Tokens(Tokens(tokens.unwrap_or(100_000))),
            },
            fact_percent: self.facts,
            observation_percent: self.observations,
            result_percent: self.results,
            distractors: self.distractors,
            head_tokens: HEAD_TOKENS,
            window: None,
            phrasings: self.phrasings,
            language: Language::of_code(&self.language).unwrap_or_default(),
        };
        let sized = match self.for_window {
            Some(window) => recipe.for_window(window),
            None => recipe,
        };
        Recipe {
            head_tokens: self.head_tokens.map_or(sized.head_tokens, Tokens),
            ..sized
        }
    }
}

/// Makes a session, and counts the tokens of its texts.
fn make(recipe: &Recipe) -> Result<(Generated, CountedTexts), CliError> {
    let counts = CountedTexts::new(Arc::new(O200k));
    let made = synthetic::generate(recipe, &counts).map_err(|error| {
        let mut problem = error.to_string();
        if let SyntheticError::UnknownFamily { family } = &error
            && let Some(meant) = did_you_mean(family, FAMILIES.iter().map(|known| known.name))
        {
            problem = format!("{problem}, did you mean `{meant}`?");
        }
        CliError::new(Exit::Usage, problem).with_hint("`proctor sessions generate list` names them")
    })?;
    Ok((made, counts))
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.describe {
        return describe::run(args);
    }
    let [family] = &args.targets[..] else {
        let problem = "only one family is written at a time";
        return stop_with(Exit::Usage, problem, "`--describe` takes several");
    };
    if family == "list" {
        let families = FAMILIES.iter();
        let facts: Vec<_> = families
            .map(|family| json!({ "name": family.name, "description": family.description }))
            .collect();
        let facts = json!({ "families": facts });
        return show(
            args.json,
            "proctor-families",
            facts,
            include_str!("../text/families.txt"),
        );
    }
    make_folder(&args.output)?;
    let mut written = Vec::new();
    for n in 0..args.count.unwrap_or(1) {
        let (made, counts) = make(&args.recipe(family, n))?;
        let path = write_session(&args.output, &made.session, args.force)?;
        let truth = write_truth(&args.output, &made.truth, args.force)?;
        let texts = made.session.texts();
        let tokens: Tokens = texts.map(|text| counts.size(text).tokens).sum();
        let (calls, facts) = (made.session.calls().len(), made.truth.facts.len());
        let (path, truth) = (path.display().to_string(), truth.display().to_string());
        if !args.json {
            prose::say(&format!(
                "{path}  {calls} calls, {tokens} tokens, {facts} facts in `{truth}`\n"
            ))?;
        }
        written.push(json!({
            "session": made.session.id(),
            "file": path,
            "truth": truth,
            "calls": calls,
            "tokens": tokens.0,
            "facts": facts,
        }));
    }
    let facts = json!({ "sessions": written });
    show(args.json, "proctor-generated", facts, "")
}
