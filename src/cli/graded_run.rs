//! A graded run of a size that can be afforded: `--graded MODEL --usd N`, or `--minutes N` with a server on
//! this machine.
//!
//! The model answers, judges and summarises wherever the scenario names no other. The amount decides how many
//! sessions are run, at which points is asked, how many items, and last how many strategies: of all sizes that
//! fit and can decide something, the one that shows the smallest difference.

use std::collections::BTreeSet;
use std::path::Path;

use super::home::{self, Homes};
use super::inputs::{AT_HOME, Inputs, QUICK};
use super::{Exit, Result, forecast, models, say, stop_with};
use crate::metric::forecast::Spend;
use crate::model::ModelKind;
use crate::model::cassette::ReplayMode;
use crate::record::ForecastCell;
use crate::report::escape::plain;
use crate::runner::{FirstAnswers, Plan};
use crate::scenario::{Home, ModelSetting, Scenario, is_at_home};
use crate::settings::{Place, Setting, SettingTable, SettingValue, parse_value};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stop::StopToken;
use crate::units::{Tokens, Usd, many, whole};

mod size;

use size::largest;

/// The models that `--graded` names, as the scenario calls them.
const ROLES: [&str; 3] = ["reader", "judge", "summariser"];

/// Minutes of a run whose model is on this machine, where nothing is said.
const MINUTES: f64 = 10.0;

/// A graded run and what it may take.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct GradedOptions {
    /// Have this model answer, judge and summarise where the scenario names no model, as in
    /// `openai:gpt-5.4-mini`; `local` finds a server on this machine, and
    /// `openai:NAME@http://127.0.0.1:8000/v1` names one
    #[arg(long, value_name = "KIND:MODEL[@URL]|local")]
    graded: Option<String>,
    /// Choose sessions, points, items and strategies so that the expected cost of the run is at most this many
    /// dollars, and begin no session once they are spent
    #[arg(long, value_name = "USD", value_parser = models::dollars)]
    pub(super) usd: Option<f64>,
    /// Choose them so that the run is expected to take at most this many minutes of a server on this machine [default: 10]
    #[arg(long, value_name = "MINUTES", value_parser = minutes, conflicts_with = "usd")]
    minutes: Option<f64>,
    /// Go on where that is too little for a verdict, or where the reader knows too little for one
    #[arg(long)]
    anyway: bool,
}

fn minutes(typed: &str) -> Result<f64, String> {
    let what = "a number of minutes, such as 10";
    let minutes = models::number(typed, what)?;
    (minutes > 0.0).then_some(minutes).ok_or_else(|| format!("it must be {what}"))
}

/// A limit on the cost or on the time of a run.
#[derive(Debug, Clone, Copy)]
enum RunLimit {
    Money { most: Usd, in_batches: bool },
    Minutes(f64),
}

impl RunLimit {
    /// In nano-dollars, or in milliseconds.
    fn most(self) -> u64 {
        match self {
            Self::Money { most, .. } => most.0,
            Self::Minutes(minutes) => whole(minutes * 60_000.0),
        }
    }

    /// The expected part of it that requests use up.
    fn of(self, spend: &Spend) -> Option<u64> {
        let dollars = match self {
            Self::Minutes(_) => return Some(spend.milliseconds?.expected),
            Self::Money { in_batches, .. } if in_batches => spend.batch_dollars,
            Self::Money { .. } => spend.dollars,
        };
        Some(dollars?.expected.0)
    }

    /// How a sentence about what it is enough for begins.
    fn pays(self) -> String {
        let most = self.in_words(self.most());
        match self {
            Self::Money { .. } => format!("{most} pays for"),
            Self::Minutes(_) => format!("{most} are enough for"),
        }
    }

    fn in_words(self, amount: u64) -> String {
        match self {
            Self::Money { .. } => Usd(amount).to_string(),
            Self::Minutes(_) => forecast::minutes_in_words(amount),
        }
    }
}

impl GradedOptions {
    /// The same for a plan, which asks nobody whether to go on.
    pub(super) fn to_look_at(&self) -> Self {
        Self { anyway: true, ..self.clone() }
    }

    /// Asks the reader a few items before all others. A run of a reader that knows too little ends here.
    pub(super) fn check_reader(&self, plan: &Plan, stop: &StopToken) -> Result<()> {
        let reader = plan.manifest().reader.as_ref();
        let live = reader.filter(|reader| reader.kind == ModelKind::Live);
        let Some(reader) = live.filter(|_| !self.anyway) else {
            return Ok(());
        };
        let answers = plan.ask_reader_first(stop);
        let Some(answers) = answers.filter(FirstAnswers::are_too_few) else {
            return Ok(());
        };
        let problem = plain(&answers.in_words(&reader.name));
        models::close(plan.models(), false)?;
        if let Some(spent) = models::spent(plan) {
            say(&spent);
        }
        let hint = "`--anyway` goes on; without a reader the facts kept are measured all the same";
        stop_with(Exit::ControlsFailed, problem, hint)
    }

    /// The scenario with the model in every role that it does not name, and with what servers on this machine
    /// say of themselves, or said when the run in the folder `out` began.
    pub(super) fn scenario(
        &self,
        inputs: &Inputs,
        is_offline: bool,
        (reports, out): (&Path, Option<&Path>),
    ) -> Result<Scenario> {
        let graded = match self.graded.as_deref() {
            Some("local") => Some(home::found(is_offline)?),
            graded => graded.map(str::to_owned),
        };
        let url = graded.as_deref().and_then(|model| model.split_once('@'));
        let base = match url {
            Some((_, url)) if is_at_home(url) => AT_HOME,
            _ => QUICK,
        };
        let (mut table, folder) = inputs.laid_over(base)?;
        self.lay_over(&mut table, graded.as_deref())?;
        let mut scenario = inputs.scenario_of(table, &folder)?.with_controls();
        let timed = self.usd.is_none() && (self.minutes.is_some() || self.graded.is_some());
        let offline = is_offline || scenario.models.replay == ReplayMode::Strict;
        Homes::read(reports).ask(&mut scenario, offline, timed)?;
        if let Some(folder) = out {
            home::go_on(&mut scenario, folder);
        }
        if let Some(limit) = self.minutes_of(&scenario) {
            let minutes = whole(limit.ceil().max(1.0));
            let budget = &mut scenario.models.budget;
            budget.minutes = Some(budget.minutes.map_or(minutes, |own| own.min(minutes)));
        }
        Ok(scenario)
    }

    /// The minutes that a run may take, where it is sized by them.
    fn minutes_of(&self, scenario: &Scenario) -> Option<f64> {
        let models = &scenario.models;
        let homes: BTreeSet<&str> = models.homes().map(|(live, _)| &*live.dialect.model).collect();
        let live = models.live_names();
        let local = self.graded.is_some()
            && !live.is_empty()
            && live.iter().all(|model| homes.contains(model));
        self.minutes.or(local.then_some(MINUTES)).filter(|_| self.usd.is_none())
    }

    fn lay_over(&self, table: &mut SettingTable, graded: Option<&str>) -> Result<()> {
        if let Some(typed) = graded {
            let place = Place::Flag(format!("--graded {typed}").into());
            let model = parse_value(&models::written("--graded", typed)?, &place);
            for role in ROLES {
                let named = table.get("models").and_then(Setting::as_table);
                if named.is_none_or(|named| named.get(role).is_none()) {
                    table.overlay(&format!("models.{role}"), model.clone())?;
                }
            }
        }
        if let Some(usd) = self.usd {
            let place = Place::Flag(format!("--usd {usd}").into());
            table.overlay("models.budget.usd", Setting::new(SettingValue::Real(usd), &place))?;
        }
        Ok(())
    }

    /// The largest plan that can be afforded, of the sessions whose summaries its models can write. Prints the choice.
    pub(super) fn sized(&self, plan: Plan, in_batches: bool) -> Result<Plan> {
        let (plan, known) = match Summariser::of(&plan) {
            Some(summariser) => {
                let cells = plan.forecast()?;
                let (plan, cells) = self.within_window(plan, cells, &summariser)?;
                (plan, Some(cells))
            }
            None => (plan, None),
        };
        let money = self.usd.map(|usd| RunLimit::Money { most: Usd::of_dollars(usd), in_batches });
        let Some(limit) = money.or(self.minutes_of(plan.scenario()).map(RunLimit::Minutes)) else {
            return Ok(plan);
        };
        if !forecast::asks_live_models(&plan) {
            let flag = if money.is_some() { "--usd" } else { "--minutes" };
            let problem =
                format!("`{flag}` sizes a run that asks live models, and none is asked here");
            let hint = "`--graded openai:gpt-5.4-mini` names one";
            return stop_with(Exit::Usage, problem, hint);
        }
        let cells = known.map_or_else(|| plan.forecast(), Ok)?;
        let spend = forecast::spend_of(&plan, &cells);
        let Some(expected) = limit.of(&spend) else {
            return match limit {
                RunLimit::Money { .. } => unpriced(&plan, &spend),
                RunLimit::Minutes(_) => untimed(&plan),
            };
        };
        let all = plan.manifest().sessions.len();
        if expected <= limit.most() {
            say(&format!(
                "all of it fits {}: {}, {} expected",
                limit.in_words(limit.most()),
                many(all, "session", "sessions"),
                limit.in_words(expected)
            ));
            return Ok(plan);
        }
        // Fewer sessions than that decide nothing, however many strategies and items they have.
        let can_decide = all >= FEWEST_SESSIONS;
        let enough = if can_decide { FEWEST_SESSIONS } else { 1 };
        match (largest(&plan, &cells, limit, enough)?, limit) {
            (Ok(size), _) => size.say(&plan, limit),
            (Err(least), RunLimit::Money { .. }) => too_little(limit, enough, least),
            (Err(least), RunLimit::Minutes(_)) => self.look(&plan, &cells, limit, least),
        }
    }

    /// The plan without the sessions in which a strategy would send the summariser more than its window holds: it
    /// would seem to fail there.
    fn within_window(
        &self,
        plan: Plan,
        mut cells: Vec<ForecastCell>,
        summariser: &Summariser,
    ) -> Result<(Plan, Vec<ForecastCell>)> {
        let too_large = cells.iter().filter(|cell| !summariser.holds(cell));
        let too_large: BTreeSet<String> =
            too_large.map(|cell| cell.record.session.clone()).collect();
        let all = plan.manifest().sessions.len();
        let out = too_large.len();
        if out == 0 {
            return Ok((plan, cells));
        }
        let problem = plain(&format!(
            "in {out} of {}, a strategy sends a prompt to be summarised that is larger than the window of {}, {} tokens",
            many(all, "session", "sessions"),
            summariser.model,
            summariser.window
        ));
        if out == all {
            if self.anyway {
                say(&format!("note: {problem}"));
                return Ok((plan, cells));
            }
            let hint = "start its server with a larger one (`num_ctx` of Ollama, `-c` of llama.cpp, `--max-model-len` of \
                        vLLM), name another `models.summariser`, or measure a smaller `window.tokens`";
            return stop_with(Exit::NothingSelected, problem, hint);
        }
        let ids: Vec<&str> = too_large.iter().map(String::as_str).collect();
        let ids = plain(&ids.join(", "));
        say(&format!("note: {problem}; without {ids}:"));
        cells.retain(|cell| !too_large.contains(&cell.record.session));
        let reason = format!(
            "a strategy sends {} more to be summarised than its window holds, {} tokens",
            summariser.model, summariser.window
        );
        Ok((plan.without(&too_large, reason), cells))
    }

    /// A run that decides nothing and shows how it would be, where that is agreed to.
    fn look(
        &self,
        plan: &Plan,
        cells: &[ForecastCell],
        limit: RunLimit,
        verdict: Option<u64>,
    ) -> Result<Plan> {
        let size = match largest(plan, cells, limit, 1)? {
            Ok(size) => size,
            Err(least) => return too_little(limit, 1, least),
        };
        let sessions = size.plan.manifest().sessions.len();
        let needed =
            verdict.map_or("more than can be told".to_owned(), |least| limit.in_words(least));
        let problem = format!(
            "a verdict needs {needed}; {} read {}, as a look",
            limit.in_words(limit.most()),
            many(sessions, "session", "sessions")
        );
        let flag = verdict.map(|least| format!("`--minutes {}`", least.div_ceil(60_000)));
        let minutes = flag.unwrap_or_else(|| "a larger `--minutes`".to_owned());
        let hint = format!("{minutes}, or `--anyway` for the look");
        if self.anyway {
            say(&problem);
        } else {
            models::agree(&problem, &hint, Exit::BudgetReached)?;
        }
        size.say(plan, limit)
    }
}

/// A summariser on this machine whose window is known.
struct Summariser {
    model: String,
    home: Home,
    window: Tokens,
    /// Tokens that it may think before it answers.
    thinking: Tokens,
}

impl Summariser {
    fn of(plan: &Plan) -> Option<Self> {
        let ModelSetting::Live(live) = &plan.scenario().models.summariser else {
            return None;
        };
        Some(Self {
            model: live.dialect.model.clone(),
            home: live.home?,
            window: live.home?.window?,
            thinking: live.dialect.thinking,
        })
    }

    /// Whether its window holds each prompt that strategies send it in this cell, and the summary that is expected
    /// of it. The limit of a summary may be larger than the window: the server gives it what the prompt leaves.
    fn holds(&self, cell: &ForecastCell) -> bool {
        let calls = &cell.record.model_calls;
        cell.sent.iter().all(|(number, prompt)| {
            let answer = calls.get(*number).map(|call| call.usage.output);
            let all = *prompt + answer.unwrap_or_default() + self.thinking;
            self.home.holds(all)
        })
    }
}

fn too_little(limit: RunLimit, sessions: usize, cheapest: Option<u64>) -> Result<Plan> {
    let known = cheapest.filter(|cheapest| *cheapest < u64::MAX);
    let least = known.map(|least| format!(": {} is the least", limit.in_words(least)));
    let problem = format!(
        "{} cannot pay for {} of this scenario, with the fewest items and one strategy{}",
        limit.in_words(limit.most()),
        match sessions {
            1 => "one session".to_owned(),
            sessions => format!("the {sessions} sessions that a verdict needs"),
        },
        least.unwrap_or_default()
    );
    let hint = match limit {
        RunLimit::Money { .. } => "a larger `--usd`, shorter sessions or a cheaper model",
        RunLimit::Minutes(_) => "a larger `--minutes`, shorter sessions or a smaller model",
    };
    stop_with(Exit::Usage, problem, hint)
}

/// Says what is needed before a run can be sized by time.
fn untimed(plan: &Plan) -> Result<Plan> {
    let mut untimed = plan.scenario().models.live_names();
    untimed.retain(|model| plan.timing_of(model).is_none());
    let problem = format!(
        "the run cannot be sized by time, because it is not known how fast {} is",
        untimed.join(" and ")
    );
    let hint = "`--minutes` times servers on this machine; for others the file of `cache.prices` needs `latency`, or \
                `--usd` sizes by money";
    stop_with(Exit::Usage, problem, hint)
}

/// Names the entries that a price file needs before a run can be sized.
fn unpriced(plan: &Plan, spend: &Spend) -> Result<Plan> {
    let mut missing = Vec::new();
    for model in plan.scenario().models.live_names() {
        let listed = plan.asked_prices().of(model);
        let price = listed.map(|(_, price)| price.per_token).unwrap_or_default();
        let written = spend.cache_written.0 > 0;
        let keys = [
            ("input", price.input, true),
            ("output", price.output, true),
            ("cache_read", price.cache_read, spend.cache_read.0 > 0),
            ("cache_write_5m", price.cache_write_5m, written),
        ];
        let unknown = keys.iter().filter(|(_, price, occurs)| *occurs && price.is_none());
        let keys: Vec<String> = unknown.map(|(key, ..)| format!("`{key} = …`")).collect();
        if !keys.is_empty() {
            missing.push(format!("`names = [\"{model}\"]` with {}", keys.join(", ")));
        }
    }
    let problem = "the run cannot be sized, because no price file has the prices of its models";
    let hint = format!(
        "the file of `cache.prices` needs `[[models]]` with {} (dollars per million tokens); \
         `docs/writing-a-scenario.md` shows a whole one",
        missing.join("; and ")
    );
    stop_with(Exit::Usage, problem, hint)
}
