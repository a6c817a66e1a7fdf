//! What a command says about models: recorded answers, limits, and no network.

use std::path::Path;

use super::{Exit, Stop, environment, say};
use crate::model::cassette::{Cassette, ReplayMode};
use crate::model::price::Prices;
use crate::report::escape;
use crate::runner::{Access, Connected, Outcome, Plan};
use crate::scenario::{ModelsSetting, Scenario};
use crate::units::{Tokens, Usd};

/// The file beside the runs' folders that holds the answers by which they qualify probes.
const QUALIFYING: &str = "qualification.jsonl";

/// What recorded answers are for, in every command that asks models.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct ReplayOptions {
    /// What recorded answers are for: `auto` asks what is missing, `strict` never asks, `record`
    /// asks everything anew, `off` neither reads nor keeps any
    #[arg(long, value_name = "MODE", value_parser = mode)]
    replay: Option<ReplayMode>,
    /// Open no socket: live models answer from recorded answers only
    #[arg(long)]
    offline: bool,
}

/// Options of a run that asks models.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct ModelOptions {
    #[command(flatten)]
    recorded: ReplayOptions,
    /// Begin no session once this many tokens are spent
    #[arg(long, value_name = "TOKENS")]
    token_limit: Option<u64>,
    /// Begin no session once this many minutes are over
    #[arg(long, value_name = "MINUTES")]
    time_limit: Option<u64>,
}

fn mode(typed: &str) -> Result<ReplayMode, String> {
    let mode = ReplayMode::ALL
        .into_iter()
        .find(|mode| mode.name() == typed);
    mode.ok_or_else(|| {
        let names = ReplayMode::ALL.map(ReplayMode::name);
        format!("it must be one of {}", names.join(", "))
    })
}

impl ModelOptions {
    /// Lays the limits over those of the scenario.
    pub(super) fn limit(&self, scenario: &mut Scenario) {
        let budget = &mut scenario.models.budget;
        budget.tokens = self.token_limit.map(Tokens).or(budget.tokens);
        budget.minutes = self.time_limit.or(budget.minutes);
    }

    /// Whether tokens are limited on the command line.
    pub(super) fn limits_tokens(&self) -> bool {
        self.token_limit.is_some()
    }

    /// Makes the models of a plan ready; answers are kept in the run's folder if the scenario names
    /// no other place.
    pub(super) fn connect(&self, plan: &mut Plan, folder: &Path) -> anyhow::Result<()> {
        plan.connect(&Access {
            variable: &environment,
            is_offline: self.recorded.offline,
            replay: self.recorded.replay,
            cassette: folder.join("cassette.jsonl"),
        })?;
        let models = &plan.scenario().models;
        // A cassette that the scenario names is shared already, as far as somebody wants it to be.
        if models.has_live()
            && models.cassette.is_none()
            && let Some(cassette) = plan.models().and_then(Connected::cassette)
        {
            let beside = folder.parent().unwrap_or(Path::new(""));
            cassette.share(&beside.join(QUALIFYING))?;
        }
        Ok(())
    }

    /// Has readers and judges asked in batches from now on.
    pub(super) fn defer(plan: &Plan) {
        if let Some(cassette) = plan.models().and_then(Connected::cassette) {
            cassette.defer();
        }
    }
}

/// Whether only recorded answers are given: nothing can be spent.
pub(super) fn is_recorded(plan: &Plan) -> bool {
    let cassette = plan.models().and_then(|models| models.cassette());
    cassette.is_some_and(|cassette| cassette.mode() == ReplayMode::Strict)
}

impl ReplayOptions {
    /// Makes judges ready that belong to no scenario.
    pub(super) fn connect_judges(
        self,
        models: &ModelsSetting,
        cassette: &Path,
    ) -> anyhow::Result<Connected> {
        let prices = Prices::built_in()?;
        let access = Access {
            variable: &environment,
            is_offline: self.offline,
            replay: self.replay,
            cassette: cassette.to_owned(),
        };
        Ok(Connected::new(models, 1, &prices, &access)?)
    }
}

/// Puts the cassette of judges in order; an answer that must be recorded and is not ends the command.
pub(super) fn finish(connected: &Connected) -> anyhow::Result<()> {
    say_refused_schemas(connected);
    match connected.cassette() {
        Some(cassette) => settle(cassette, true),
        None => Ok(()),
    }
}

/// Says of which judges verdicts were asked for in words, for their servers take no schema.
fn say_refused_schemas(connected: &Connected) {
    for (model, why) in connected.refused_schemas() {
        say(&format!(
            "warning: the server of {} refused the JSON schema for verdicts ({}); they were asked for in \
             words. `structured = false` asks so at once",
            escape::plain(&model),
            escape::plain(&why)
        ));
    }
}

/// Puts the cassette of several runs in order, none of which missed an answer.
pub(super) fn finish_plan(plan: &Plan) -> anyhow::Result<()> {
    match plan.models().and_then(Connected::cassette) {
        Some(cassette) => settle(cassette, false),
        None => Ok(()),
    }
}

/// Puts the cassette in order, and says what was wanted of it and not there.
pub(super) fn close(plan: &Plan, outcome: &Outcome) -> anyhow::Result<()> {
    if let Some(connected) = plan.models() {
        say_refused_schemas(connected);
    }
    match plan.models().and_then(Connected::cassette) {
        Some(cassette) => settle(cassette, outcome.missed),
        None => Ok(()),
    }
}

fn settle(cassette: &Cassette, missed: bool) -> anyhow::Result<()> {
    cassette.close()?;
    if let Some(failure) = cassette.failure() {
        let path = cassette.path().display();
        say(&format!(
            "warning: answers could not be kept in `{path}`: {failure}"
        ));
    }
    match cassette.missed() {
        Some((_, first)) if missed => {
            let hint = "`--replay auto` asks the model what is missing, and keeps the answers";
            Err(Stop::new(Exit::ReplayMiss, first).with_hint(hint).into())
        }
        _ => Ok(()),
    }
}

/// What was paid in this run, if anything was.
pub(super) fn spent(plan: &Plan) -> Option<String> {
    let spent = plan.models()?.spending().so_far();
    if spent.calls == 0 {
        return None;
    }
    let money = match (spent.money + spent.batched, spent.unpriced) {
        (money, 0) => money.to_string(),
        (Usd(0), _) => "at unknown prices".to_owned(),
        (money, _) => format!("{money} and more, some prices are unknown"),
    };
    Some(format!(
        "asked now: {} requests, {} tokens, {money}; all other answers were recorded before",
        spent.calls,
        spent.tokens + spent.batched_tokens
    ))
}

/// The exit code of a run that is fine as far as it came.
pub(super) fn exit_of(plan: &Plan, outcome: &Outcome, planned: usize) -> Exit {
    let least = plan.models().map(|models| models.budget().least_coverage);
    let done = (planned - outcome.outstanding) as f64;
    if outcome.budget.is_some() && done < least.unwrap_or(0.0) * planned as f64 {
        return Exit::BudgetReached;
    }
    Exit::Outstanding
}
