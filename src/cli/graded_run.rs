//! A graded run of a size that can be afforded: `--graded MODEL --usd N`, or `--minutes N` with a server on
//! this machine.
//!
//! The model answers, judges and summarises wherever the scenario names no other. The amount decides how many
//! sessions are run, at which points is asked, how many items, and last how many strategies: of all sizes that
//! fit and can decide something, the one that shows the smallest difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::home::{self, Homes};
use super::inputs::{Inputs, Without};
use super::plan::{self, Detectable};
use super::{Exit, models, say, stop_with};
use crate::metric::forecast::Spend;
use crate::model::ModelKind;
use crate::probe::Selection;
use crate::record::{Arm, ForecastCell, ModelEntry};
use crate::report::escape::plain;
use crate::runner::{FirstAnswers, Plan};
use crate::scenario::Scenario;
use crate::settings::{Place, Setting, Table, Value, parse_value};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stop::StopToken;
use crate::strategy::StrategySpec;
use crate::units::{Usd, many, whole};

/// The models that `--graded` names, as the scenario calls them.
const ROLES: [&str; 3] = ["reader", "judge", "summariser"];

/// Items of a session that are tried, the most first. Fewer than the last would leave kinds out.
const ITEMS: [usize; 7] = [128, 96, 64, 48, 32, 24, 16];

/// A size with fewer points is taken only where it shows a difference smaller by this share: what is
/// lost early in a session is seen at early points only.
const WORTH: f64 = 0.98;

/// How often a size is made smaller because the exact forecast of it does not fit.
const ATTEMPTS: usize = 6;

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
    usd: Option<f64>,
    /// Choose them so that the run is expected to take at most this many minutes of a server on this machine [default: 10]
    #[arg(long, value_name = "MINUTES", value_parser = minutes, conflicts_with = "usd")]
    minutes: Option<f64>,
    /// Go on where that is too little for a verdict, or where the reader knows too little for one
    #[arg(long)]
    anyway: bool,
}

fn minutes(typed: &str) -> Result<f64, String> {
    let number = typed.parse().ok();
    let number = number.filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0);
    number.ok_or_else(|| "it must be a number of minutes, such as 10".to_owned())
}

/// What a run may take.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Money { most: Usd, in_batches: bool },
    Minutes(f64),
}

impl Limit {
    /// In nano-dollars, or in milliseconds.
    fn most(self) -> u64 {
        match self {
            Self::Money { most, .. } => most.0,
            Self::Minutes(minutes) => whole(minutes * 60_000.0),
        }
    }

    /// What requests are expected to take of it.
    fn of(self, spend: &Spend) -> Option<u64> {
        let dollars = match self {
            Self::Minutes(_) => return Some(spend.milliseconds?.expected),
            Self::Money { in_batches, .. } if in_batches => spend.batch_dollars,
            Self::Money { .. } => spend.dollars,
        };
        Some(dollars?.expected.0)
    }

    fn in_words(self, amount: u64) -> String {
        match self {
            Self::Money { .. } => Usd(amount).to_string(),
            Self::Minutes(_) => plan::minutes_in_words(amount),
        }
    }
}

impl GradedOptions {
    /// The amount that the run is sized to.
    pub(super) fn usd(&self) -> Option<f64> {
        self.usd
    }

    /// The same for a plan, which asks nobody whether to go on.
    pub(super) fn to_look_at(&self) -> Self {
        Self {
            anyway: true,
            ..self.clone()
        }
    }

    /// Asks the reader a few items before all others. A run of a reader that knows too little ends here.
    pub(super) fn check_reader(&self, plan: &Plan, stop: &StopToken) -> anyhow::Result<()> {
        let reader = plan.manifest().reader.as_ref();
        let is_asked = |reader: &&ModelEntry| reader.kind == ModelKind::Live && !self.anyway;
        let Some(reader) = reader.filter(is_asked) else {
            return Ok(());
        };
        let answers = plan.ask_reader_first(stop);
        let Some(answers) = answers.filter(FirstAnswers::are_too_few) else {
            return Ok(());
        };
        let problem = plain(&answers.in_words(&reader.name));
        let hint = "`--anyway` goes on; without a reader the facts kept are measured all the same";
        stop_with(Exit::ControlsFailed, problem, hint)
    }

    /// The scenario with the model in every role that it does not name, and with what servers on this machine
    /// say of themselves.
    pub(super) fn scenario(
        &self,
        inputs: &Inputs,
        is_offline: bool,
        reports: &Path,
    ) -> anyhow::Result<Scenario> {
        let is_local = self.graded.as_deref() == Some("local");
        let graded = match &self.graded {
            Some(_) if is_local => Some(home::found(is_offline)?),
            graded => graded.clone(),
        };
        let base = if is_local {
            Without::Local
        } else {
            Without::QuickStart
        };
        let lay_over = |table: &mut Table| self.lay_over(table, graded.as_deref());
        let scenario = inputs.read_with(base, lay_over)?;
        let mut scenario = scenario.with_controls();
        let is_timed = self.usd.is_none() && (self.minutes.is_some() || self.graded.is_some());
        Homes::read(reports).ask(&mut scenario, is_offline, is_timed)?;
        if let Some(limit) = self.minutes_of(&scenario) {
            let minutes = limit.ceil().max(1.0);
            scenario.models.budget.minutes.get_or_insert(whole(minutes));
        }
        Ok(scenario)
    }

    /// The minutes that a run may take, where it is sized by them.
    fn minutes_of(&self, scenario: &Scenario) -> Option<f64> {
        let is_at_home = self.graded.is_some() && scenario.models.homes().next().is_some();
        let given = self.minutes.or(is_at_home.then_some(MINUTES));
        given.filter(|_| self.usd.is_none())
    }

    fn lay_over(&self, table: &mut Table, graded: Option<&str>) -> anyhow::Result<()> {
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
            table.overlay("models.budget.usd", Setting::new(Value::Real(usd), &place))?;
        }
        Ok(())
    }

    /// The largest plan that can be afforded. Prints the choice.
    pub(super) fn sized(&self, plan: Plan, in_batches: bool) -> anyhow::Result<Plan> {
        let money = self.usd.map(|usd| Limit::Money {
            most: Usd::of_dollars(usd),
            in_batches,
        });
        let minutes = self.minutes_of(plan.scenario()).map(Limit::Minutes);
        let Some(limit) = money.or(minutes) else {
            return Ok(plan);
        };
        if !plan::asks_live_models(&plan) {
            let flag = if money.is_some() {
                "--usd"
            } else {
                "--minutes"
            };
            let problem =
                format!("`{flag}` sizes a run that asks live models, and none is asked here");
            let hint = "`--graded openai:gpt-5.4-mini` names one";
            return stop_with(Exit::Usage, problem, hint);
        }
        let cells = plan.forecast()?;
        let spend = plan::spend_of(&plan, &cells);
        let Some(expected) = limit.of(&spend) else {
            return match limit {
                Limit::Money { .. } => unpriced(&plan, &spend),
                Limit::Minutes(_) => untimed(&plan),
            };
        };
        let all = plan.manifest().sessions.len();
        if expected <= limit.most() {
            say(&format!(
                "all of it fits {}: {all} sessions, {} expected",
                limit.in_words(limit.most()),
                limit.in_words(expected)
            ));
            return Ok(plan);
        }
        // Fewer sessions than that decide nothing, however many strategies and items they have.
        let can_decide = all >= FEWEST_SESSIONS;
        let enough = if can_decide { FEWEST_SESSIONS } else { 1 };
        let strategies = own_strategies(&plan);
        let mut least = None;
        for count in (1..=strategies.len()).rev() {
            let fewer = with_strategies(&plan, &strategies[..count]);
            match fitting(&fewer, &cells, limit, enough)? {
                Ok(size) => {
                    size.say(all, &strategies[count..], limit)?;
                    return Ok(size.plan);
                }
                Err(cheapest) => least = cheapest.into_iter().chain(least).min(),
            }
        }
        match limit {
            Limit::Money { .. } => too_little(limit, enough, least),
            Limit::Minutes(_) => self.look(&plan, &cells, limit, least),
        }
    }

    /// A run that decides nothing and shows how it would be, where that is agreed to.
    fn look(
        &self,
        plan: &Plan,
        cells: &[ForecastCell],
        limit: Limit,
        verdict: Option<u64>,
    ) -> anyhow::Result<Plan> {
        let strategies = own_strategies(plan);
        let mut found = Err(None);
        for count in (1..=strategies.len()).rev() {
            let fewer = with_strategies(plan, &strategies[..count]);
            found = fitting(&fewer, cells, limit, 1)?.map(|size| (size, count));
            if found.is_ok() {
                break;
            }
        }
        let Ok((size, count)) = found else {
            return too_little(limit, 1, found.err().flatten());
        };
        let sessions = size.plan.manifest().sessions.len();
        let needed = verdict.map_or("more than can be told".to_owned(), |it| limit.in_words(it));
        let problem = format!(
            "a verdict needs {needed}; {} read {}, as a look",
            limit.in_words(limit.most()),
            many(sessions, "session", "sessions")
        );
        let minutes = verdict.map_or(0, |it| it.div_ceil(60_000));
        let hint = format!("`--minutes {minutes}`, or `--anyway` for the look");
        if self.anyway {
            say(&problem);
        } else {
            models::agree(&problem, &hint, Exit::BudgetReached)?;
        }
        size.say(plan.manifest().sessions.len(), &strategies[count..], limit)?;
        Ok(size.plan)
    }
}

/// The names of the scenario's own strategies, without the controls that are added.
fn own_strategies(plan: &Plan) -> Vec<String> {
    let own = plan.scenario().strategies.iter();
    let own = own.filter(|spec| !spec.is_added());
    own.map(|spec| spec.name().to_owned()).collect()
}

/// The plan with these of its own strategies, and their controls.
fn with_strategies(plan: &Plan, kept: &[String]) -> Plan {
    let kept: BTreeSet<&str> = kept.iter().map(String::as_str).collect();
    let mut scenario = plan.scenario().clone();
    let own: BTreeSet<String> = own_strategies(plan).into_iter().collect();
    let is_kept = |spec: &StrategySpec| {
        let leads = spec.name().split_once('@').map(|(_, lead)| lead);
        let is_led = leads.is_none_or(|lead| !own.contains(lead) || kept.contains(lead));
        is_led && (spec.is_added() || kept.contains(spec.name()))
    };
    scenario.strategies.retain(is_kept);
    plan.variant(scenario, &|_| true)
}

/// A size that fits.
struct Sized {
    plan: Plan,
    items: Option<String>,
    expected: u64,
}

impl Sized {
    fn say(&self, all: usize, dropped: &[String], limit: Limit) -> anyhow::Result<()> {
        let without = match dropped {
            [] => String::new(),
            dropped => format!(", without {}", dropped.join(" and ")),
        };
        say(&format!(
            "{} pay for {} of {all} sessions, {}{without} ({} expected); {}",
            limit.in_words(limit.most()),
            self.plan.manifest().sessions.len(),
            self.items.as_deref().unwrap_or("all items"),
            limit.in_words(self.expected),
            plan::detectable_in_words(&self.plan)?
        ));
        Ok(())
    }
}

/// The largest size of this plan that fits and has `enough` sessions; where none fits, what the cheapest takes.
/// `cells` are those of all strategies.
fn fitting(
    plan: &Plan,
    cells: &[ForecastCell],
    limit: Limit,
    enough: usize,
) -> anyhow::Result<Result<Sized, Option<u64>>> {
    let names = plan.manifest().strategies.iter();
    let names: BTreeSet<&str> = names.map(|entry| entry.name.as_str()).collect();
    let is_of = |cell: &&ForecastCell| {
        cell.record.arm != Arm::Strategy || names.contains(&*cell.record.strategy)
    };
    let mut cells: Vec<ForecastCell> = cells.iter().filter(is_of).cloned().collect();
    let mut within = limit.most();
    let mut least: Option<u64> = None;
    for _ in 0..ATTEMPTS {
        let size = match Size::choose(plan, &mut cells, (limit, within), enough) {
            Ok(size) => size,
            Err(cheapest) => return Ok(Err(least.max(cheapest))),
        };
        let sized = size.cut(plan);
        let exact = limit.of(&plan::spend_of(&sized, &sized.forecast()?));
        least = exact.into_iter().chain(least).min();
        if let Some(expected) = exact.filter(|exact| *exact <= limit.most()) {
            return Ok(Ok(Sized {
                plan: sized,
                items: size.selection.in_words(),
                expected,
            }));
        }
        within = within / 10 * 9;
    }
    Ok(Err(least))
}

/// A part of a plan.
struct Size {
    selection: Selection,
    /// Indices of its sessions.
    sessions: Vec<usize>,
}

impl Size {
    /// Of all sizes with `enough` sessions that fit, the one that shows the smallest difference; where none
    /// fits, what the cheapest takes.
    fn choose(
        plan: &Plan,
        cells: &mut [ForecastCell],
        (limit, within): (Limit, u64),
        enough: usize,
    ) -> Result<Self, Option<u64>> {
        let mut best: Option<(f64, Self)> = None;
        let mut cheapest: Option<u64> = None;
        let order = spread(plan.manifest().sessions.len());
        for selection in selections(&plan.scenario().selection) {
            plan.ask_instead(cells, &selection);
            let costs = costs(plan, cells, limit);
            let mut by_cost: Vec<usize> = (0..costs.len()).collect();
            by_cost.sort_by_key(|at| costs[*at]);
            by_cost.truncate(enough);
            let sum = |of: &[usize]| {
                of.iter()
                    .fold(0, |sum: u64, at| sum.saturating_add(costs[*at]))
            };
            let least = sum(&by_cost);
            cheapest = Some(least).into_iter().chain(cheapest).min();
            if least > within {
                continue;
            }
            let fits = |count: &usize| sum(&order[..*count]) <= within;
            let most = (0..=order.len()).rev().find(fits).unwrap_or(0);
            // The first of the order may be the dearest of all.
            let sessions = if most < enough {
                by_cost
            } else {
                order[..most].to_vec()
            };
            let planted = plan.planted_if(&selection);
            let planted: Vec<usize> = sessions.iter().map(|at| planted[*at]).collect();
            let difference = Detectable::of(&planted).map_or(f64::MAX, |seen| seen.difference);
            let smallest = best.as_ref().map(|(smallest, _)| smallest * WORTH);
            if smallest.is_none_or(|smallest| difference < smallest) {
                let size = Self {
                    selection,
                    sessions,
                };
                best = Some((difference, size));
            }
        }
        best.map(|(_, size)| size).ok_or(cheapest)
    }

    /// The plan cut to this size.
    fn cut(&self, plan: &Plan) -> Plan {
        let entries = &plan.manifest().sessions;
        let kept = self.sessions.iter().map(|at| entries[*at].id.as_str());
        let kept: Vec<&str> = kept.collect();
        let mut scenario = plan.scenario().clone();
        scenario.selection = self.selection.clone();
        plan.variant(scenario, &|id| kept.contains(&id))
    }
}

/// What each session is expected to take: its cells are neighbours.
fn costs(plan: &Plan, cells: &[ForecastCell], limit: Limit) -> Vec<u64> {
    let sessions = cells.chunk_by(|one, next| one.record.session == next.record.session);
    let costs: BTreeMap<&str, Option<u64>> = sessions
        .map(|own| {
            (
                &*own[0].record.session,
                limit.of(&plan::spend_of(plan, own)),
            )
        })
        .collect();
    let cost = |id: &str| costs.get(id).copied().flatten().unwrap_or(u64::MAX);
    let entries = plan.manifest().sessions.iter();
    entries.map(|entry| cost(&entry.id)).collect()
}

/// The selections that are tried: all points, every second, the last alone; and ever fewer items.
fn selections(own: &Selection) -> Vec<Selection> {
    let last = own.points.len().saturating_sub(1);
    let every = |step: usize| -> Vec<u8> {
        let points = own.points.iter().enumerate();
        let kept = points.filter(|(at, _)| (last - at).is_multiple_of(step));
        kept.map(|(_, point)| *point).collect()
    };
    let mut points = vec![every(1), every(2), every(last.max(1) + 1)];
    points.dedup();
    let fewer = ITEMS
        .into_iter()
        .filter(|items| own.items.is_none_or(|most| *items < most));
    let items: Vec<Option<usize>> = std::iter::once(own.items).chain(fewer.map(Some)).collect();
    let selection = |points: &Vec<u8>, items: Option<usize>| Selection {
        points: points.clone(),
        items,
        ..own.clone()
    };
    points
        .iter()
        .flat_map(|points| items.iter().map(|items| selection(points, *items)))
        .collect()
}

/// The indices of all sessions in an order whose every prefix is spread over the whole, because
/// families come in blocks. The bits of each index are reversed.
fn spread(sessions: usize) -> Vec<usize> {
    let bits = sessions.max(1).next_power_of_two().trailing_zeros();
    let reversed = |at: usize| at.reverse_bits().checked_shr(usize::BITS - bits);
    let all = (0..1_usize << bits).map(|at| reversed(at).unwrap_or(0));
    all.filter(|at| *at < sessions).collect()
}

fn too_little(limit: Limit, sessions: usize, cheapest: Option<u64>) -> anyhow::Result<Plan> {
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
        Limit::Money { .. } => "a larger `--usd`, shorter sessions or a cheaper model",
        Limit::Minutes(_) => "a larger `--minutes`, shorter sessions or a smaller model",
    };
    stop_with(Exit::Usage, problem, hint)
}

/// Says what is needed before a run can be sized by time.
fn untimed(plan: &Plan) -> anyhow::Result<Plan> {
    let models = plan.scenario().models.live_names();
    let is_untimed = |model: &&&str| {
        let price = plan.asked_prices().of(model);
        price.is_none_or(|(_, price)| price.latency.is_none())
    };
    let untimed: Vec<&str> = models.iter().filter(is_untimed).copied().collect();
    let problem = format!(
        "the run cannot be sized by time, because it is not known how fast {} is",
        untimed.join(" and ")
    );
    let hint = "`--minutes` times servers on this machine; for others a file for `--prices` needs `latency`, or \
                `--usd` sizes by money";
    stop_with(Exit::Usage, problem, hint)
}

/// Names the entries that a price file needs before a run can be sized.
fn unpriced(plan: &Plan, spend: &Spend) -> anyhow::Result<Plan> {
    let mut missing = Vec::new();
    for model in plan.scenario().models.live_names() {
        let known = plan
            .asked_prices()
            .of(model)
            .map(|(_, price)| price.per_token);
        let price = known.unwrap_or_default();
        let written = spend.cache_written.0 > 0;
        let keys = [
            ("input", price.input, true),
            ("output", price.output, true),
            ("cache_read", price.cache_read, spend.cache_read.0 > 0),
            ("cache_write_5m", price.cache_write_5m, written),
        ];
        let unknown = keys
            .iter()
            .filter(|(_, price, occurs)| *occurs && price.is_none());
        let keys: Vec<String> = unknown.map(|(key, ..)| format!("`{key} = …`")).collect();
        if !keys.is_empty() {
            missing.push(format!("`names = [\"{model}\"]` with {}", keys.join(", ")));
        }
    }
    let problem = "the run cannot be sized, because no price file has the prices of its models";
    let hint = format!(
        "a file for `--prices` needs `[[models]]` with {} (dollars per million tokens); \
         `docs/writing-a-scenario.md` shows a whole one",
        missing.join("; and ")
    );
    stop_with(Exit::Usage, problem, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_of_the_order_is_spread_over_all_sessions() {
        assert_eq!(spread(0), [0_usize; 0]);
        assert_eq!(spread(1), [0]);
        assert_eq!(spread(6), [0, 4, 2, 1, 5, 3]);
        for sessions in 2..70 {
            let order = spread(sessions);
            let mut all = order.clone();
            all.sort_unstable();
            assert_eq!(all, (0..sessions).collect::<Vec<_>>());
            // Both halves are in the first two.
            assert!(
                order[..2].iter().any(|at| *at >= sessions / 2),
                "{sessions}"
            );
        }
    }

    #[test]
    fn fewer_items_and_points_are_tried_from_the_most_to_the_least() {
        let all = selections(&Selection::default());
        assert_eq!(all.len(), 3 * (1 + ITEMS.len()));
        assert_eq!(all[0], Selection::default());
        let points: Vec<&[u8]> = all
            .iter()
            .step_by(1 + ITEMS.len())
            .map(|one| &*one.points)
            .collect();
        assert_eq!(points, [&[25, 50, 75, 100][..], &[50, 100], &[100]]);
        let own = Selection {
            points: vec![100],
            items: Some(20),
            ..Selection::default()
        };
        let items: Vec<_> = selections(&own).iter().map(|one| one.items).collect();
        assert_eq!(items, [Some(20), Some(16)]);
    }
}
