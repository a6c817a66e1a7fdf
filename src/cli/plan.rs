//! `proctor plan`: what a run would send and cost, found out by an offline replay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::graded::Graded;
use super::inputs::Inputs;
use super::{Exit, Stop, print, prose, terminal, walk};
use crate::metric::cost::{AS_BILLED, Bill};
use crate::metric::forecast::{ArmForecast, Asking, Forecast, Span, Spend, Thinking};
use crate::model::ModelKind;
use crate::probe::judge::{MAX_ANSWER, MAX_VERDICT};
use crate::record::journal::Run;
use crate::record::{CellKey, ForecastCell};
use crate::report::{
    Audience, Cell, Column, Report, Role, Row, Section, Table, Value, tokens_in_words,
};
use crate::runner::Plan;
use crate::scenario::ModelSetting;
use crate::stats::power;
use crate::units::{Tokens, Usd};

/// How much a probe's answer differs between two strategies, as a standard deviation: that of one
/// probe in five turning out otherwise, either way, √0.2. Assumed before a run; `compare` measures it.
const DEVIATION: f64 = 0.45;

/// How alike such differences are within a session. Assumed before a run; `compare` measures it.
const CORRELATION: f64 = 0.1;

/// Arguments of `proctor plan`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    graded: Graded,
    /// Size a run that asks readers and judges in batches
    #[arg(long, requires = "usd")]
    batch: bool,
    /// A run with repeats, by which is said where its noise comes from and what a further repeat would buy
    #[arg(long, value_name = "RUN")]
    pilot: Option<PathBuf>,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let noise = args.pilot.as_deref().map(noise).transpose()?;
    let plan = Plan::new(args.graded.scenario(&args.inputs)?)?;
    walk::say_passed_over(&plan);
    let plan = args.graded.sized(plan, args.batch)?;
    let forecast = forecast(&plan, &BTreeSet::new())?;
    let manifest = plan.manifest();
    if args.json {
        let json = serde_json::json!({
            "format": "proctor-plan",
            "version": 1,
            "scenario": manifest.scenario,
            "fingerprint": manifest.fingerprint,
            "counter": manifest.counter,
            "sessions": manifest.sessions.len(),
            "cells": plan.cells().len(),
            "strategies": forecast.arms,
            "spend": forecast.spend,
            "noise": noise,
            "detectable": detectable(&plan).map(|seen| serde_json::json!({
                "difference": seen.difference,
                "sessions": seen.sessions,
                "items_per_session": seen.items,
                "assumed_deviation": DEVIATION,
                "assumed_correlation": CORRELATION,
            })),
        });
        print(&format!("{}\n", serde_json::to_string_pretty(&json)?))?;
        return Ok(Exit::Done);
    }
    let sessions = manifest.sessions.len();
    let head = format!(
        "Plan: {}, {sessions} sessions, {} cells, counter {}",
        manifest.scenario,
        plan.cells().len(),
        manifest.counter
    );
    prose::say(&(crate::report::escape::plain(&head) + "\n"))?;
    let terminal = terminal();
    for section in [calls(&forecast), costs(&forecast)] {
        print(&terminal.section(&section))?;
    }
    prose::say(&format!(
        "\n{}\n{}\n",
        detectable_in_words(&plan),
        spend_in_words(&plan, &forecast.spend)
    ))?;
    if let Some(noise) = &noise {
        print(&terminal.section(noise))?;
    } else if asks_live_models(&plan) {
        prose::say(HOW_TO_KNOW_NOISE)?;
    }
    Ok(Exit::Done)
}

const HOW_TO_KNOW_NOISE: &str = "Noise is not known before models were asked: run a few sessions with \
`--set repeats=2 --set models.answers=2` (with a judge, `--set models.judgements=2`), and \
`proctor plan --pilot RUN` says which further repeat buys most.\n";

/// Where the noise of a run comes from.
fn noise(folder: &Path) -> anyhow::Result<Section> {
    let shown = folder.display();
    let run = Run::read(folder).with_context(|| format!("cannot read the run in `{shown}`"))?;
    Report::noise(&run.manifest, &run.cells).ok_or_else(|| {
        let problem = format!("the run in `{shown}` repeated nothing, or scored no item every time");
        let hint = "`--set repeats=2`, `--set models.answers=2` or `--set models.judgements=2` makes one that did";
        Stop::new(Exit::NothingSelected, problem).with_hint(hint).into()
    })
}

/// Forecasts the cells of a plan that are not done.
pub(super) fn forecast(plan: &Plan, done: &BTreeSet<CellKey>) -> anyhow::Result<Forecast> {
    let mut cells = plan.forecast()?;
    cells.retain(|cell| !done.contains(&cell.record.key()));
    Ok(of_cells(plan, &cells))
}

/// Sums cells up that a plan has forecast.
fn of_cells(plan: &Plan, cells: &[ForecastCell]) -> Forecast {
    with_asking(plan, |asking| Forecast::of(plan.manifest(), cells, asking))
}

/// The requests to models in such cells of the run itself.
pub(super) fn spend_of(plan: &Plan, cells: &[ForecastCell]) -> Spend {
    with_asking(plan, |asking| Spend::of(plan.manifest(), cells, asking))
}

/// Hands over what the models of a plan cost and may write.
fn with_asking<T>(plan: &Plan, with: impl FnOnce(&Asking<'_>) -> T) -> T {
    let models = &plan.scenario().models;
    let asking = Asking {
        price_of: &|model| plan.prices().of(model).map(|(_, price)| price.per_token),
        judges: &plan.judges(),
        longest_answer: MAX_ANSWER,
        longest_verdict: MAX_VERDICT,
        thinking: Thinking {
            summariser: models.summariser.thinking(),
            reader: models
                .reader
                .as_ref()
                .map_or(Tokens::ZERO, ModelSetting::thinking),
            judges: models.judges.iter().map(ModelSetting::thinking).collect(),
        },
        window: plan.scenario().models.asking.window,
        summaries_written_from: plan.summaries_written_from(),
        batch_of: &|model| plan.prices().of(model)?.0.batch,
    };
    with(&asking)
}

/// Whether a run of this plan asks a live model.
pub(super) fn asks_live_models(plan: &Plan) -> bool {
    let manifest = plan.manifest();
    [&manifest.summariser, &manifest.reader]
        .into_iter()
        .chain(&plan.judges())
        .any(|model| model.kind == ModelKind::Live)
}

/// The smallest difference between two strategies that a run of this size shows.
pub(super) struct Detectable {
    pub(super) difference: f64,
    sessions: usize,
    items: f64,
}

impl Detectable {
    /// Of so many items about something planted, session by session.
    pub(super) fn of(planted: &[usize]) -> Option<Self> {
        let asked: Vec<usize> = planted.iter().copied().filter(|items| *items > 0).collect();
        let sessions = asked.len();
        let items = asked.iter().sum::<usize>() as f64 / sessions.max(1) as f64;
        let difference = power::detectable_ahead(DEVIATION, CORRELATION, items, sessions)?;
        Some(Self {
            difference,
            sessions,
            items,
        })
    }
}

fn detectable(plan: &Plan) -> Option<Detectable> {
    Detectable::of(&plan.planted_items())
}

pub(super) fn detectable_in_words(plan: &Plan) -> String {
    match detectable(plan) {
        Some(seen) if seen.difference < 1.0 => format!(
            "MDE {:.1} points: the smallest difference in survival or accuracy between two strategies that \
             {} sessions with {:.0} items each show in 8 of 10 runs, if one item in five turns out \
             otherwise and items of a session correlate at {CORRELATION}.",
            100.0 * seen.difference,
            seen.sessions,
            seen.items
        ),
        Some(seen) => format!(
            "MDE: {} sessions are too few to show any difference in survival or accuracy.",
            seen.sessions
        ),
        None => {
            "MDE: none, for it takes at least two sessions of which something is asked.".to_owned()
        }
    }
}

fn row(arm: &ArmForecast, cells: Vec<Cell>) -> Row {
    let mut marks = Vec::new();
    if arm.broken > 0 {
        marks.push(format!("ends early in {} of {}", arm.broken, arm.cells));
    }
    Row {
        name: arm.strategy.clone(),
        role: Role::Other,
        marks,
        ranked: false,
        cells,
    }
}

/// What each strategy sends.
fn calls(forecast: &Forecast) -> Section {
    let tokens = |tokens: Tokens| Cell::exact(Value::Tokens(tokens.0));
    let rows = forecast.arms.iter().map(|arm| {
        let cost = arm.costs.first();
        let known = |of: Option<Tokens>| of.map_or(Cell::exact(Value::NotMeasured), tokens);
        let cells = vec![
            Cell::count(arm.agent_calls),
            Cell::count(arm.strategy_calls),
            Cell::text(range(arm.input_range, |tokens| tokens_in_words(tokens.0))),
            known(cost.map(|cost| cost.cache_read)),
            known(cost.map(|cost| cost.cache_written)),
            Cell::text(range(arm.strategy_output, |tokens| {
                tokens_in_words(tokens.0)
            })),
        ];
        row(arm, cells)
    });
    let scheme = forecast.arms.iter().find_map(|arm| arm.costs.first());
    let scheme = scheme.map_or("no scheme", |cost| cost.scheme.as_str());
    let scheme = match scheme {
        AS_BILLED => "the scheme of each session's bill".to_owned(),
        scheme => format!("`{scheme}`"),
    };
    Section {
        id: "plan_calls",
        title: "Calls and tokens".to_owned(),
        about: format!(
            "What each strategy sends over all cells: exact, as `run` records it; cache reads and \
             writes under {scheme}. Where a live model writes, its output is a range, and so is \
             what later prompts carry of it."
        ),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("agent_calls", "agent's calls", 1),
                Column::new("strategy_calls", "own calls", 0),
                Column::new("input", "input", 0),
                Column::new("read", "cache read", 0),
                Column::new("written", "cache written", 0),
                Column::new("output", "own output", 2),
            ],
            rows: rows.collect(),
        },
        notes: Vec::new(),
    }
}

/// What each strategy costs under each scheme.
fn costs(forecast: &Forecast) -> Section {
    let mut known = forecast.arms.iter().flat_map(|arm| &arm.costs);
    let is_priced = known.any(|cost| cost.dollars.is_some());
    let rows = forecast.arms.iter().flat_map(|arm| {
        arm.costs.iter().filter_map(move |cost| {
            let bill = match &cost.bill {
                // It is one of the placements.
                Bill::Shown => return None,
                Bill::Own(placement) => format!("as billed, {}", placement.name()),
                Bill::Fixed(_) => "fixed".to_owned(),
            };
            let dollars = cost.dollars.map_or(Cell::text("unknown"), |dollars| {
                Cell::text(range(dollars, |dollars| dollars.to_string()))
            });
            let mut cells = vec![
                Cell::text(bill),
                Cell::text(cost.scheme.as_str()),
                Cell::text(range(cost.input_equivalents, |tokens| {
                    tokens_in_words(tokens.0)
                })),
            ];
            cells.extend(is_priced.then_some(dollars));
            Some(row(arm, cells))
        })
    });
    let mut columns = vec![
        Column::new("strategy", "strategy", 0),
        Column::new("bill", "bill", 1),
        Column::new("scheme", "scheme", 0),
        Column::new("cost", "input equivalents", 0),
    ];
    columns.extend(is_priced.then(|| Column::new("dollars", "dollars", 1)));
    let unpriced =
        "dollars: unknown, for no price file knows the sessions' models (`cache.model` names one)";
    Section {
        id: "plan_costs",
        title: "Cost under every cache scheme".to_owned(),
        about: "In input tokens: what as many uncached ones would cost, without what the agent writes; \
                in dollars with it, where a price file knows the sessions' models. Least, expected and \
                most where a live model writes."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns,
            rows: rows.collect(),
        },
        notes: (!is_priced).then(|| unpriced.to_owned()).into_iter().collect(),
    }
}

/// `1.2k`, or `0 to 3.4k, expected 1.2k`.
fn range<T: Copy + PartialEq>(span: Span<T>, words: impl Fn(T) -> String) -> String {
    if span.low == span.high {
        return words(span.expected);
    }
    format!(
        "{} to {}, expected {}",
        words(span.low),
        words(span.high),
        words(span.expected)
    )
}

/// What the run itself spends, in a sentence or two.
pub(super) fn spend_in_words(plan: &Plan, spend: &Spend) -> String {
    if !asks_live_models(plan) {
        return "The run itself spends nothing: no live model is asked.".to_owned();
    }
    let money = match spend.dollars {
        Some(dollars) => range(dollars, |dollars: Usd| dollars.to_string()),
        None => "an unknown price".to_owned(),
    };
    let judged = if spend.judged_at_most > 0 {
        format!(", and judges at most {} times more", spend.judged_at_most)
    } else {
        String::new()
    };
    let cached = if spend.cache_read > Tokens::ZERO {
        let read = tokens_in_words(spend.cache_read.0);
        format!(" ({read} of them from the prompt cache)")
    } else {
        String::new()
    };
    let batched = match spend.batch_dollars.zip(spend.dollars) {
        Some((batched, dollars)) if batched.expected < dollars.expected => format!(
            " With `--batch` it is {}.",
            range(batched, |dollars: Usd| dollars.to_string())
        ),
        Some(_) | None => String::new(),
    };
    format!(
        "The run itself asks live models {} times, with {} tokens of prompts{cached}{judged}, for \
         {money}.{batched}",
        spend.calls,
        tokens_in_words(spend.input_tokens.0)
    )
}
