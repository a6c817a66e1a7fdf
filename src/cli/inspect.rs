//! `proctor inspect`: what the model would see at a call, and what became of what it does not.

use std::path::PathBuf;
use std::sync::Arc;

use super::inputs::Inputs;
use super::{Exit, Stop, print, terminal};
use crate::model::offline::Offline;
use crate::record::End;
use crate::replay::observe::look::{Onlooker, Seen};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay_observed};
use crate::session::synthetic::{self, Length, Recipe};
use crate::session::{Session, import};
use crate::tokens::{CountedTexts, TokenCounter};
use crate::window::Window;

mod page;
mod usage;

use page::Page;

/// Arguments of `proctor inspect`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(super) struct Args {
    /// Recorded session
    #[arg(group = "source")]
    session: Option<PathBuf>,
    /// Synthetic session, as in `code-review:7:40`
    #[arg(long, value_name = "FAMILY:SEED:ROUNDS", group = "source")]
    synthetic: Option<String>,
    /// Which session of a recording that holds several
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Strategy the context goes through; without one, the full history
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Call to look at, from 0; without one, the last
    #[arg(long, value_name = "CALL")]
    at: Option<usize>,
    /// Context window: a number of tokens, `native`, or `fit:0.6`
    #[arg(long, value_name = "TOKENS|fit:F")]
    window: Option<String>,
    /// Token counter: o200k or chars/4
    #[arg(long)]
    counter: Option<String>,
    /// Characters of each block that are shown; 0 for all
    #[arg(long, value_name = "N", default_value_t = 160)]
    chars: usize,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    // The settings are read as `run` reads them, so that both mean the same by the same words.
    let scenario = Inputs {
        session: vec![args.session.clone().unwrap_or_default()],
        strategy: vec![args.strategy.clone().unwrap_or_else(|| "none".to_owned())],
        window: args.window.clone(),
        counter: args.counter.clone(),
        ..Inputs::default()
    }
    .read()?;
    let counter = crate::tokens::counter(&scenario.counter).ok_or_else(|| {
        Stop::new(
            Exit::Usage,
            format!("there is no token counter `{}`", scenario.counter),
        )
    })?;
    let session = Arc::new(session(args, &counter)?);
    let counts = Arc::new(CountedTexts::new(counter));
    let prepared = PreparedSession::new(session.clone(), counts.clone(), Vec::new())?;
    let Some(last) = session.calls().len().checked_sub(1) else {
        return Err(Stop::new(
            Exit::NothingSelected,
            format!("session `{}` has no call", session.id()),
        )
        .into());
    };
    let at = args.at.unwrap_or(last);
    if at > last {
        return Err(Stop::new(
            Exit::NothingSelected,
            format!("session `{}` has no call {at}", session.id()),
        )
        .with_hint(format!("its calls are 0 to {last}"))
        .into());
    }
    let window = scenario
        .window
        .resolve(session.context_window(), prepared.largest_prompt().tokens);
    let (name, replayed) = match (&args.strategy, scenario.strategies.first()) {
        (Some(_), Some(spec)) => (
            spec.name().to_owned(),
            Replayed::Strategy(Box::new(spec.build()?), window),
        ),
        _ => ("full".to_owned(), Replayed::Full),
    };
    let seen = Seen::default();
    let replay = replay_observed(
        &prepared,
        CellName {
            strategy: name.clone(),
            repeat: 0,
        },
        replayed,
        &Models {
            summariser: Arc::new(Offline::new(counts.clone())),
            reader: None,
            judge: None,
        },
        &NoClock,
        vec![Box::new(Onlooker::new(at, seen.clone()))],
    );
    let Some(look) = seen.take() else {
        return Err(early(&name, at, &replay.record.end, window).into());
    };
    let page = Page::new(&session, &name, window, &look, &counts, args.chars);
    if args.json {
        let text = serde_json::to_string_pretty(&page.to_json())?;
        print(&(crate::report::escape::json(&text) + "\n"))?;
    } else {
        print(&page.to_text(terminal().columns()))?;
    }
    Ok(Exit::Done)
}

/// The call was never sent.
fn early(name: &str, at: usize, end: &End, window: Window) -> Stop {
    match end {
        End::Died { call, prompt, .. } => Stop::new(
            Exit::NothingSelected,
            format!(
                "under `{name}` call {at} is never sent: the session dies at call {call}, with a \
                 prompt of {prompt} tokens in a window of {}",
                window.tokens
            ),
        )
        .with_hint("`--window` makes it larger, `--at` looks at an earlier call"),
        End::Failed { call, error } => Stop::new(
            Exit::NothingSelected,
            format!(
                "under `{name}` call {at} is never sent: the strategy fails at call {call}: {error}"
            ),
        ),
        End::Completed => Stop::new(Exit::Internal, format!("call {at} was not seen")),
    }
}

fn session(args: &Args, counter: &Arc<dyn TokenCounter>) -> anyhow::Result<Session> {
    if let Some(recipe) = &args.synthetic {
        let recipe = recipe_of(recipe)?;
        let made =
            synthetic::generate(&recipe, &CountedTexts::new(counter.clone())).map_err(|error| {
                Stop::new(Exit::Usage, error.to_string())
                    .with_hint("`proctor generate list` names the families")
            })?;
        return Ok(made.session);
    }
    let path = args.session.clone().unwrap_or_default();
    let mut sessions = import::load(&path)?;
    let wanted = match &args.id {
        None => 0,
        Some(id) => sessions
            .iter()
            .position(|session| session.id() == id)
            .ok_or_else(|| {
                let ids: Vec<String> = sessions
                    .iter()
                    .map(|session| format!("`{}`", session.id()))
                    .collect();
                Stop::new(
                    Exit::NothingSelected,
                    format!("`{}` holds no session `{id}`", path.display()),
                )
                .with_hint(format!("it holds {}", ids.join(", ")))
            })?,
    };
    if sessions.is_empty() {
        return Err(Stop::new(
            Exit::NothingSelected,
            format!("`{}` holds no session", path.display()),
        )
        .into());
    }
    Ok(sessions.swap_remove(wanted))
}

/// `code-review:7:40`: family, seed, rounds.
fn recipe_of(text: &str) -> anyhow::Result<Recipe> {
    let parts: Vec<&str> = text.split(':').collect();
    let recipe = match parts[..] {
        [family, seed, rounds] => {
            seed.parse()
                .ok()
                .zip(rounds.parse().ok())
                .map(|(seed, rounds)| Recipe {
                    family: family.to_owned(),
                    seed,
                    length: Length::Rounds(rounds),
                    ..Recipe::default()
                })
        }
        _ => None,
    };
    recipe.ok_or_else(|| {
        Stop::new(Exit::Usage, format!("`{text}` is not `family:seed:rounds`"))
            .with_hint("as in `--synthetic code-review:7:40`")
            .into()
    })
}
