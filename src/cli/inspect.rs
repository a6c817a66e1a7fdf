//! `proctor inspect`: the prompt that the model would see at a call, and the fate of the messages
//! it does not see.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::inputs::Inputs;
use super::prose::show_cut;
use super::{CliError, Exit, Result, show, show_with, stop, stop_with, terminal};
use crate::bill::Bill;
use crate::model::price::Prices;
use crate::record::End;
use crate::replay::observe::Observer;
use crate::replay::observe::snapshot::SnapshotObserver;
use crate::replay::{
    CellName, Models, NoClock, PreparedSession, Replay, Replayed, replay_observed,
};
use crate::runner::{native, sizes_of};
use crate::session::synthetic::{self, HEAD_TOKENS, Length, Recipe};
use crate::session::{Session, import};
use crate::settings::Place;
use crate::strategy::StrategySpec;
use crate::strategy::trigger::Trigger;
use crate::tokens::{CountedTexts, TokenCounter};
use crate::window::Window;

mod diff;
mod number;
mod page;
mod usage;

use diff::Diff;
use page::CallPage;

/// Arguments of `proctor inspect`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(super) struct Args {
    /// Recorded session; with `--metric` the folder of a run
    #[arg(group = "source")]
    session: Option<PathBuf>,
    /// Synthetic session, as in `code-review:7:40`
    #[arg(long, value_name = "FAMILY:SEED:ROUNDS", group = "source")]
    synthetic: Option<String>,
    /// Session to show, if a recording holds several
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Strategy to apply to the context, or a control at its size, as in `tail@codex`; without one, the full
    /// history
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
    /// Set one value as `run` does: `counter=chars/4`, `sizes=counted`, or a knob of the strategy (repeatable)
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Characters of each block that are shown; 0 for all
    #[arg(long, value_name = "N", default_value_t = 160)]
    chars: usize,
    /// Explain a number of a run: of each strategy, or of `--strategy`, the values of its sessions; any
    /// column of the report, such as `bill`, `facts`, `answers`, `actions`, `fired`, `tokens` or `calls`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["at", "diff", "synthetic"])]
    metric: Option<String>,
    /// Print every message instead of one screen
    #[arg(long)]
    all: bool,
    /// Explain the number of this cell alone, `SESSION/STRATEGY` or `SESSION/STRATEGY/REPEAT`, call by
    /// call or fact by fact
    #[arg(long, value_name = "KEY")]
    #[arg(requires = "metric", conflicts_with = "strategy")]
    cell: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// The name of the whole history, next to strategies.
const FULL: &str = "full";

/// A strategy as typed, or the full history; and a call, or the last.
type TypedView<'a> = (Option<&'a str>, Option<usize>);

/// A session, ready to be replayed.
struct Bench {
    session: Arc<Session>,
    counts: Arc<CountedTexts>,
    prepared: PreparedSession,
    window: Window,
    /// The strategies that were read: those typed, in their order, and those that these follow.
    strategies: Vec<StrategySpec>,
    /// The names as they were typed.
    names: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    if let (Some(folder), Some(cell), Some(metric)) = (&args.session, &args.cell, &args.metric) {
        return number::explain(folder, cell, metric, args.json);
    }
    if let Some(folder) = &args.session
        && folder.join("run.json").exists()
    {
        let (metric, strategy) = (args.metric.as_deref(), args.strategy.as_deref());
        return number::explain_run(folder, metric, strategy, args.json);
    }
    if args.metric.is_some() {
        let problem = "`--metric` explains a number of a run, and this is not the folder of one";
        return stop(Exit::Usage, problem);
    }
    let views = args.views()?;
    let bench = Bench::new(args, &views)?;
    if let [left, right] = &views[..] {
        let left = &bench.page(left, args.chars)?;
        let right = &bench.page(right, args.chars)?;
        let diff = Diff { left, right }.facts();
        let template = include_str!("text/diff.txt");
        let more = json!({ "is_whole": args.all });
        if args.json || args.all {
            return show_with(args.json, "proctor-inspect-diff", diff, more, template);
        }
        return show_cut(json!({ "facts": diff, "is_whole": false }), template);
    }
    let page = bench.page(&views[0], args.chars)?;
    if args.json {
        return show(true, "proctor-inspect", page.facts(), "");
    }
    if !args.all {
        return page.print_screen(terminal().columns());
    }
    page.print(terminal().columns())
}

impl Args {
    /// The contexts to look at: one, or the two that `--diff` names.
    fn views(&self) -> Result<Vec<TypedView<'_>>> {
        let own = self.strategy.as_deref().filter(|name| *name != FULL);
        let [left, right] = &self.diff[..] else {
            return Ok(vec![(own, self.at)]);
        };
        match (left.parse().ok(), right.parse().ok()) {
            (Some(left), Some(right)) if self.at.is_none() => {
                Ok(vec![(own, Some(left)), (own, Some(right))])
            }
            (None, None) if self.strategy.is_none() => {
                let names = [left, right].map(|name| Some(&**name).filter(|name| *name != FULL));
                Ok(names.map(|name| (name, self.at)).to_vec())
            }
            _ => {
                let problem = "`--diff` compares two calls, without `--at`, or two strategies, without `--strategy`";
                let hint = "as in `--diff 10 20` or `--diff none observation-masking`";
                stop_with(Exit::Usage, problem, hint)
            }
        }
    }

    fn session(&self, counter: &Arc<dyn TokenCounter>) -> Result<Session> {
        if let Some(typed) = &self.synthetic {
            let Some(recipe) = recipe(typed) else {
                let problem = format!("`{typed}` is not `family:seed:rounds`");
                return stop_with(Exit::Usage, problem, "as in `--synthetic code-review:7:40`");
            };
            let counts = CountedTexts::new(counter.clone());
            let hint = "`proctor sessions generate list` names the families";
            let made = synthetic::generate(&recipe, &counts)
                .or_else(|error| stop_with(Exit::Usage, error.to_string(), hint))?;
            return Ok(made.session);
        }
        let path = self.session.clone().unwrap_or_default();
        let shown = path.display();
        let sessions = import::load(&path)?;
        let ids: Vec<String> =
            sessions.iter().map(|session| format!("`{}`", session.id())).collect();
        let id = self.id.as_deref();
        let found = sessions.into_iter().find(|session| id.is_none_or(|id| session.id() == id));
        match (found, id) {
            (Some(session), _) => Ok(session),
            (None, Some(id)) if !ids.is_empty() => {
                let problem = format!("`{shown}` holds no session `{id}`");
                let hint = format!("it holds {}", ids.join(", "));
                stop_with(Exit::NothingSelected, problem, hint)
            }
            (None, _) => stop(Exit::NothingSelected, format!("`{shown}` holds no session")),
        }
    }
}

impl Bench {
    fn new(args: &Args, views: &[TypedView<'_>]) -> Result<Self> {
        let mut names: Vec<String> =
            views.iter().filter_map(|(name, _)| *name).map(str::to_owned).collect();
        names.dedup();
        let mut read = if names.is_empty() { vec!["none".to_owned()] } else { names.clone() };
        read.extend(followed(&names));
        // The settings are read as `run` reads them, so that both mean the same by the same words.
        let scenario = Inputs {
            session: args.session.clone().into_iter().collect(),
            strategy: read,
            window: args.window.clone(),
            set: args.set.clone(),
            ..Inputs::default()
        }
        .read()?;
        let counter = crate::tokens::counter(&scenario.counter).context("no token counter")?;
        let session = Arc::new(args.session(&counter)?);
        let counts = Arc::new(CountedTexts::new(counter).with_images_of(session.model()));
        let bill = Bill::of(&session, &counts, scenario.sizes, scenario.window.head);
        let native = native::window(&session, &bill, &Prices::built_in()?);
        let mut prepared = PreparedSession::new(session.clone(), counts.clone(), Vec::new())?
            .billed(Arc::new(bill));
        prepared.product_windows = native::product_windows(&session, native, &scenario.window);
        Ok(Self {
            session,
            counts,
            window: native::resolved(&scenario.window, native, &prepared),
            prepared,
            strategies: scenario.strategies,
            names,
        })
    }

    /// Replays the session under a strategy, or under the full history; first under the strategy that it follows.
    fn replay(
        &self,
        spec: Option<&StrategySpec>,
        observers: Vec<Box<dyn Observer + '_>>,
    ) -> Result<Replay> {
        let replayed = match spec {
            Some(spec) => {
                Replayed::Strategy(Box::new(self.with_sizes(spec)?.build()?), self.window)
            }
            None => Replayed::Full,
        };
        let name = CellName::first(spec.map_or(FULL, StrategySpec::name));
        let (of, models) = (&self.prepared, &Models::offline(&self.counts));
        Ok(replay_observed(of, name, replayed, models, &NoClock, observers))
    }

    /// The same strategy; one that follows another has the sizes that the other had.
    fn with_sizes(&self, spec: &StrategySpec) -> Result<StrategySpec> {
        let Some(followed) = spec.follows() else {
            return Ok(spec.clone());
        };
        let leader = self.strategies.iter().find(|spec| spec.name() == followed);
        let record = self.replay(leader, Vec::new())?.record;
        let Some(sizes) = sizes_of(&record) else {
            let problem =
                format!("`{followed}`, which `{}` follows, is not measurable here", spec.name());
            return stop(Exit::NothingSelected, problem);
        };
        Ok(spec.clone().with_sizes(sizes))
    }

    /// Replays the session as far as the call, and looks at what is sent.
    fn page(&self, (strategy, asked): &TypedView<'_>, chars: usize) -> Result<CallPage<'_>> {
        let id = self.session.id();
        let Some(last) = self.session.calls().len().checked_sub(1) else {
            let problem = format!("session `{id}` has no call");
            return stop(Exit::NothingSelected, problem);
        };
        let call = asked.unwrap_or(last);
        if call > last {
            let problem = format!("session `{id}` has no call {call}");
            let hint = format!("its calls are 0 to {last}");
            return stop_with(Exit::NothingSelected, problem, hint);
        }
        let at = strategy.and_then(|name| self.names.iter().position(|typed| typed == name));
        let spec = at.and_then(|at| self.strategies.get(at));
        let name = spec.map_or(FULL, StrategySpec::name);
        let mut seen = None;
        let observer = Box::new(SnapshotObserver::new(call, &mut seen));
        let end = &self.replay(spec, vec![observer])?.record.end;
        let snapshot = seen.ok_or_else(|| early(name, call, end, self.window))?;
        Ok(CallPage {
            session: &self.session,
            strategy: name,
            window: self.window,
            usage: usage::usage(&self.session, &snapshot, &self.counts),
            snapshot,
            counts: &self.counts,
            chars,
        })
    }
}

/// The strategies that these follow and that are not named themselves: a control cuts to the sizes of another.
fn followed(names: &[String]) -> Vec<String> {
    let named: Vec<StrategySpec> = names.iter().filter_map(|name| preset(name)).collect();
    let leaders = named.iter().filter_map(StrategySpec::follows);
    let missing = leaders.filter(|name| named.iter().all(|spec| spec.name() != *name));
    // A name that is no preset may be that of the file named beside it.
    let mut missing: Vec<String> =
        missing.filter(|name| preset(name).is_some()).map(str::to_owned).collect();
    missing.dedup();
    missing
}

fn preset(name: &str) -> Option<StrategySpec> {
    StrategySpec::parse(name, &Trigger::always(), &Place::BuiltIn).ok()
}

/// The mistake that the session ends before the call.
fn early(name: &str, at: usize, end: &End, window: Window) -> CliError {
    let never = format!("under `{name}` call {at} is never sent:");
    let problem = match end {
        End::Died { call, prompt, .. } => format!(
            "{never} the session dies at call {call}, with a prompt of {prompt} tokens in a window of {}",
            window.tokens
        ),
        End::Failed { call, error } => {
            format!("{never} the strategy fails at call {call}: {error}")
        }
        End::NotMeasurable { call, why } => format!(
            "under `{name}` call {at} is not measurable, nor is anything from call {call} on: {why}"
        ),
        End::Completed => return CliError::new(Exit::Internal, format!("call {at} was not seen")),
    };
    let stop = CliError::new(Exit::NothingSelected, problem);
    if matches!(end, End::Died { .. }) {
        return stop.with_hint("`--window` makes it larger, `--at` looks at an earlier call");
    }
    stop
}

/// `code-review:7:40`: family, seed, rounds.
fn recipe(typed: &str) -> Option<Recipe> {
    let (family, rest) = typed.split_once(':')?;
    let (seed, rounds) = rest.split_once(':')?;
    Some(Recipe {
        family: family.to_owned(),
        seed: seed.parse().ok()?,
        length: Length::Rounds(rounds.parse().ok()?),
        head_tokens: HEAD_TOKENS,
        ..Recipe::default()
    })
}
