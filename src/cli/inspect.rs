//! `proctor inspect`: what the model would see at a call, and what became of what it does not.

use std::path::PathBuf;
use std::sync::Arc;

use super::inputs::Inputs;
use super::{Exit, Stop, print, prose, terminal};
use crate::bill::Bill;
use crate::model::offline::Offline;
use crate::model::price::Prices;
use crate::record::End;
use crate::replay::observe::snapshot::{Snapshot, SnapshotObserver, SnapshotSlot};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay_observed};
use crate::runner::native;
use crate::session::synthetic::{self, HEAD_TOKENS, Length, Recipe};
use crate::session::{Session, import};
use crate::strategy::StrategySpec;
use crate::tokens::{CountedTexts, TokenCounter};
use crate::window::Window;

mod diff;
mod page;
mod usage;

use diff::Diff;
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
    /// Compare two contexts: two calls (`--diff 10 20`), or two strategies at one call
    /// (`--diff full observation-masking`)
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    diff: Vec<String>,
    /// Context window: a number of tokens, `native`, or `fit:0.6`
    #[arg(long, value_name = "TOKENS|fit:F")]
    window: Option<String>,
    /// Token counter: o200k, cl100k, cl100k-content, chars/4, chars/3, bytes/4 or padded
    #[arg(long)]
    counter: Option<String>,
    /// Size prompts as billed, where the session carries usage (the default), or by the counter alone
    #[arg(long, value_name = "billed|counted")]
    sizes: Option<String>,
    /// Characters of each block that are shown; 0 for all
    #[arg(long, value_name = "N", default_value_t = 160)]
    chars: usize,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// One context to look at.
struct View {
    /// Its name, in output.
    name: String,
    /// The strategy, by its place among those that were read; without one, the full history.
    strategy: Option<usize>,
    call: usize,
}

/// A session, ready to be replayed under an onlooker.
struct Bench {
    session: Arc<Session>,
    counts: Arc<CountedTexts>,
    prepared: PreparedSession,
    window: Window,
    specs: Vec<StrategySpec>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let strategies = args.strategies()?;
    let bench = Bench::new(args, &strategies)?;
    let views = bench.views(args, &strategies)?;
    let looks = views
        .iter()
        .map(|view| bench.look(view))
        .collect::<anyhow::Result<Vec<Snapshot>>>()?;
    let pages: Vec<Page<'_>> = views
        .iter()
        .zip(&looks)
        .map(|(view, look)| bench.page(&view.name, look, args.chars))
        .collect();
    let (json, text) = match &pages[..] {
        [left, right] => {
            let diff = Diff::new(left, right);
            (diff.to_json(), diff.to_text())
        }
        pages => {
            let columns = terminal().columns();
            let text = pages.iter().map(|page| page.to_text(columns)).collect();
            let json = pages.first().map(Page::to_json).unwrap_or_default();
            (json, text)
        }
    };
    if args.json {
        let json = serde_json::to_string_pretty(&json)?;
        print(&(crate::report::escape::json(&json) + "\n"))?;
    } else {
        prose::say(&text)?;
    }
    Ok(Exit::Done)
}

impl Args {
    /// What `--diff` names: two calls, two strategies, or nothing.
    fn compared(&self) -> anyhow::Result<Compared<'_>> {
        let [left, right] = &self.diff[..] else {
            return Ok(Compared::Nothing);
        };
        let wrong = |problem: &str, hint: &str| {
            let stop = Stop::new(Exit::Usage, problem);
            Err(stop.with_hint(hint).into())
        };
        match (left.parse::<usize>(), right.parse::<usize>()) {
            (Ok(_), Ok(_)) if self.at.is_some() => wrong(
                "`--at` has no meaning where `--diff` names two calls",
                "name two strategies, or leave it out",
            ),
            (Ok(left), Ok(right)) => Ok(Compared::Calls([left, right])),
            (Err(_), Err(_)) if self.strategy.is_some() => wrong(
                "`--strategy` has no meaning where `--diff` names two strategies",
                "name two calls, or leave it out",
            ),
            (Err(_), Err(_)) => Ok(Compared::Strategies([left, right])),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => wrong(
                "`--diff` compares two calls or two strategies, not one of each",
                "as in `--diff 10 20` or `--diff none observation-masking`",
            ),
        }
    }

    /// The strategies that are looked at, in order; nothing for the full history.
    fn strategies(&self) -> anyhow::Result<Vec<Option<&str>>> {
        let strategies = match self.compared()? {
            Compared::Strategies(pair) => pair.map(|name| Some(name.as_str())).to_vec(),
            Compared::Calls(_) | Compared::Nothing => vec![self.strategy.as_deref()],
        };
        let strategies = strategies.into_iter();
        Ok(strategies
            .map(|name| name.filter(|name| *name != FULL))
            .collect())
    }
}

/// What `--diff` names.
enum Compared<'a> {
    Nothing,
    Calls([usize; 2]),
    Strategies([&'a String; 2]),
}

/// The whole history, beside strategies.
const FULL: &str = "full";

impl Bench {
    fn new(args: &Args, strategies: &[Option<&str>]) -> anyhow::Result<Self> {
        let mut names: Vec<String> = strategies
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        names.dedup();
        let is_full = names.is_empty();
        if is_full {
            names.push("none".to_owned());
        }
        // The settings are read as `run` reads them, so that both mean the same by the same words.
        let scenario = Inputs {
            session: args.session.clone().into_iter().collect(),
            strategy: names,
            window: args.window.clone(),
            counter: args.counter.clone(),
            sizes: args.sizes.clone(),
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
        let counts = Arc::new(CountedTexts::new(counter).with_images_of(session.model()));
        let bill = Bill::of(&session, &counts, scenario.sizes, scenario.window.head);
        let prices = Prices::built_in()?;
        let native = native::window(&session, &bill, &prices);
        let prepared = PreparedSession::new(session.clone(), counts.clone(), Vec::new())?
            .billed(Arc::new(bill));
        let head = prepared.bill().scale(0).head;
        let largest = prepared.largest_prompt();
        let window = scenario.window.resolve(native, largest, head);
        Ok(Self {
            session,
            counts,
            prepared,
            window,
            specs: if is_full {
                Vec::new()
            } else {
                scenario.strategies
            },
        })
    }

    fn views(&self, args: &Args, strategies: &[Option<&str>]) -> anyhow::Result<Vec<View>> {
        let id = self.session.id();
        let Some(last) = self.session.calls().len().checked_sub(1) else {
            let what = format!("session `{id}` has no call");
            return Err(Stop::new(Exit::NothingSelected, what).into());
        };
        let calls = match args.compared()? {
            Compared::Calls(calls) => calls.to_vec(),
            Compared::Strategies(_) => vec![args.at.unwrap_or(last); 2],
            Compared::Nothing => vec![args.at.unwrap_or(last)],
        };
        if let Some(at) = calls.iter().find(|call| **call > last) {
            let what = format!("session `{id}` has no call {at}");
            let stop = Stop::new(Exit::NothingSelected, what);
            return Err(stop.with_hint(format!("its calls are 0 to {last}")).into());
        }
        let mut specs = 0..self.specs.len();
        let mut placed: Vec<Option<usize>> = Vec::new();
        for (at, name) in strategies.iter().enumerate() {
            placed.push(match name {
                None => None,
                Some(_) if at > 0 && strategies[at - 1] == *name => placed[at - 1],
                Some(_) => specs.next(),
            });
        }
        let views = calls.into_iter().enumerate().map(|(at, call)| {
            let strategy = placed.get(at).or(placed.last()).copied().flatten();
            let name = strategy.map_or(FULL, |at| self.specs[at].name());
            View {
                name: name.to_owned(),
                strategy,
                call,
            }
        });
        Ok(views.collect())
    }

    fn look(&self, view: &View) -> anyhow::Result<Snapshot> {
        let replayed = match view.strategy {
            Some(at) => Replayed::Strategy(Box::new(self.specs[at].build()?), self.window),
            None => Replayed::Full,
        };
        let seen = SnapshotSlot::default();
        let replay = replay_observed(
            &self.prepared,
            CellName {
                strategy: view.name.clone(),
                repeat: 0,
            },
            replayed,
            &Models {
                summariser: Arc::new(Offline::new(self.counts.clone())),
                reader: None,
                judge: None,
                times: crate::replay::Times::default(),
            },
            &NoClock,
            vec![Box::new(SnapshotObserver::new(view.call, seen.clone()))],
        );
        let end = &replay.record.end;
        let early = || early(&view.name, view.call, end, self.window);
        Ok(seen.take().ok_or_else(early)?)
    }

    fn page<'a>(&'a self, name: &'a str, look: &'a Snapshot, chars: usize) -> Page<'a> {
        Page::new(&self.session, name, self.window, look, &self.counts, chars)
    }
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
        End::NotMeasurable { call, why } => Stop::new(
            Exit::NothingSelected,
            format!(
                "under `{name}` call {at} is not measurable, nor is anything from call {call} on: {why}"
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
                    head_tokens: HEAD_TOKENS,
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
