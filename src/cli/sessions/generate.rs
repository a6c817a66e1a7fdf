//! `proctor sessions generate`: writes synthetic sessions, and in separate files the planted facts.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use crate::cli::{
    CliError, Exit, Result, make_folder, prose, show, stop_with, tokens, write_session, write_truth,
};
use crate::scenario;
use crate::session::synthetic::{self, FAMILIES, Generated, Recipe};
use crate::settings::{Place, SettingError, SettingTable, parse_value};
use crate::tokens::{CountedTexts, O200k};
use crate::units::Tokens;

mod describe;

/// Arguments of `proctor sessions generate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Family of sessions, or `list`; with `--describe` families, recordings and folders of them
    #[arg(value_name = "FAMILY", required_unless_present = "describe")]
    targets: Vec<String>,
    /// Describe the sessions, and write none
    #[arg(long)]
    describe: bool,
    /// First seed; same seed, same bytes [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// How many sessions, with consecutive seeds; 1, or 4 of each family to describe them
    #[arg(long)]
    count: Option<NonZeroU64>,
    /// Length in rounds (API calls)
    #[arg(long, conflicts_with = "tokens")]
    rounds: Option<u32>,
    /// Length in tokens (o200k); 100,000 if neither is given
    #[arg(long, value_parser = tokens)]
    tokens: Option<Tokens>,
    /// Window of the model that the session is made for: it is four times as long, with a head and
    /// results that leave room in it
    #[arg(long, value_name = "TOKENS", conflicts_with_all = ["rounds", "tokens"], value_parser = tokens)]
    for_window: Option<Tokens>,
    /// Set another key of a scenario's `synthetic`, such as `fact_percent=50` or `language=zh` (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten, next_help_heading = "Output")]
    output: GenerateOutput,
}

#[derive(Debug, clap::Args)]
struct GenerateOutput {
    /// Folder the files are written to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Overwrite existing files
    #[arg(short, long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The recipe of the first session of a family, read as an entry of a scenario.
    fn recipe(&self, family: &str) -> Result<Recipe, SettingError> {
        let (length, number) = match (self.rounds, self.tokens, self.for_window) {
            (Some(rounds), ..) => ("rounds", Some(u64::from(rounds))),
            (None, _, Some(window)) => ("for_window", Some(window.0)),
            (None, tokens, None) => ("tokens", tokens.map(|tokens| tokens.0)),
        };
        let mut table = SettingTable::new(Place::Flag("sessions generate".into()));
        let place = Place::Flag(family.into());
        table.overlay("family", parse_value(family, &place))?;
        // Of the lengths, only `tokens` has a default.
        for (key, typed, default) in [("seed", self.seed, 1), (length, number, 100_000)] {
            let place = typed.map_or(Place::BuiltIn, |number| {
                Place::Flag(format!("--{} {number}", key.replace('_', "-")).into())
            });
            let number = typed.unwrap_or(default);
            table.overlay(key, parse_value(&number.to_string(), &place))?;
        }
        for typed in &self.set {
            let place = Place::Flag(format!("--set {typed}").into());
            let (key, value) = typed.split_once('=').unwrap_or((typed, ""));
            table.refuse_second_flag(key, &place)?;
            table.overlay(key, parse_value(value, &place))?;
        }
        scenario::synthetic(&table)
    }

    /// Makes the sessions of a family one by one, and counts the tokens of their texts.
    fn make(
        &self,
        family: &str,
        count: u64,
    ) -> Result<impl Iterator<Item = Result<(Generated, CountedTexts)>>, SettingError> {
        let first = self.recipe(family)?;
        Ok((0..count).map(move |n| {
            let seed = first.seed.wrapping_add(n);
            let counts = CountedTexts::new(Arc::new(O200k));
            let made = synthetic::generate(&Recipe { seed, ..first.clone() }, &counts)
                .map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
            Ok((made, counts))
        }))
    }
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    if args.describe {
        return describe::run(args);
    }
    let [family] = &args.targets[..] else {
        let problem = "only one family is written at a time";
        return stop_with(Exit::Usage, problem, "`--describe` takes several");
    };
    let output = &args.output;
    if family == "list" {
        let families = FAMILIES
            .iter()
            .map(|family| json!({ "name": family.name, "description": family.description }));
        let facts = json!({ "families": families.collect::<Vec<_>>() });
        let template = include_str!("../text/families.txt");
        return show(output.json, "proctor-families", facts, template);
    }
    make_folder(&output.output)?;
    let mut written = Vec::new();
    for made in args.make(family, args.count.map_or(1, NonZeroU64::get))? {
        let (made, counts) = made?;
        let path = write_session(&output.output, &made.session, output.force)?;
        let truth = write_truth(&output.output, &made.truth, output.force)?;
        let texts = made.session.texts();
        let tokens: Tokens = texts.map(|text| counts.size(text).tokens).sum();
        let (calls, facts) = (made.session.calls().len(), made.truth.facts.len());
        let (path, truth) = (path.display().to_string(), truth.display().to_string());
        if !output.json {
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
    show(output.json, "proctor-generated", facts, "")
}
