//! A graded run of a size that was paid for: `--graded MODEL --usd N`.
//!
//! The model answers, judges and summarises wherever the scenario names no other. The amount decides
//! how many sessions are run, at which points is asked and how many items: of all sizes whose expected
//! cost fits, the one that shows the smallest difference.

use std::collections::BTreeMap;

use super::inputs::Inputs;
use super::plan::{self, Detectable};
use super::{Exit, models, say, stop_with};
use crate::metric::forecast::Spend;
use crate::probe::Selection;
use crate::record::ForecastCell;
use crate::runner::Plan;
use crate::scenario::Scenario;
use crate::settings::{Place, Setting, Table, Value, parse_value};
use crate::units::Usd;

/// The models that `--graded` names, as the scenario calls them.
const ROLES: [&str; 3] = ["reader", "judge", "summariser"];

/// Items of a session that are tried, the most first. Fewer than the last would leave kinds out.
const ITEMS: [usize; 7] = [128, 96, 64, 48, 32, 24, 16];

/// A size with fewer points is taken only where it shows a difference smaller by this share: what is
/// lost early in a session is seen at early points only.
const WORTH: f64 = 0.98;

/// How often a size is made smaller because the exact forecast of it does not fit.
const ATTEMPTS: usize = 6;

/// A graded run and its spending limit.
#[derive(Debug, Default, clap::Args)]
pub(super) struct GradedOptions {
    /// Have this model answer, judge and summarise where the scenario names no model, as in
    /// `openai:gpt-5.4-mini`, or `openai:NAME@http://127.0.0.1:8000/v1` for a server of your own
    #[arg(long, value_name = "KIND:MODEL[@URL]")]
    graded: Option<String>,
    /// Choose sessions, points and items so that the expected cost of the run is at most this many
    /// dollars, and begin no session once they are spent
    #[arg(long, value_name = "USD", value_parser = models::dollars)]
    usd: Option<f64>,
}

impl GradedOptions {
    /// The amount that the run is sized to.
    pub(super) fn usd(&self) -> Option<f64> {
        self.usd
    }

    /// The scenario with the model in every role that it does not name.
    pub(super) fn scenario(&self, inputs: &Inputs) -> anyhow::Result<Scenario> {
        let scenario = inputs.read_with(|table| self.lay_over(table))?;
        Ok(scenario.with_controls())
    }

    fn lay_over(&self, table: &mut Table) -> anyhow::Result<()> {
        if let Some(typed) = &self.graded {
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

    /// The largest plan that the amount pays for. Prints the choice.
    pub(super) fn sized(&self, plan: Plan, in_batches: bool) -> anyhow::Result<Plan> {
        let Some(dollars) = self.usd else {
            return Ok(plan);
        };
        if !plan::asks_live_models(&plan) {
            let problem = "`--usd` sizes a run that asks live models, and none is asked here";
            let hint = "`--graded openai:gpt-5.4-mini` names one";
            return stop_with(Exit::Usage, problem, hint);
        }
        let limit = Usd::of_dollars(dollars);
        let mut cells = plan.forecast()?;
        let spend = plan::spend_of(&plan, &cells);
        let Some(expected) = expected(&spend, in_batches) else {
            return unpriced(&plan, &spend);
        };
        let all = plan.manifest().sessions.len();
        if expected <= limit {
            say(&format!(
                "all of it fits {limit}: {all} sessions, {expected} expected"
            ));
            return Ok(plan);
        }
        let mut within = limit;
        let mut least: Option<Usd> = None;
        for _ in 0..ATTEMPTS {
            let size = match Size::choose(&plan, &mut cells, within, in_batches) {
                Ok(size) => size,
                Err(cheapest) => return too_little(limit, least.max(cheapest)),
            };
            let sized = size.cut(&plan);
            let spend = plan::spend_of(&sized, &sized.forecast()?);
            let exact = self::expected(&spend, in_batches);
            least = exact.into_iter().chain(least).min();
            if let Some(exact) = exact.filter(|exact| *exact <= limit) {
                let items = size.selection.in_words();
                say(&format!(
                    "{limit} pays for {} of {all} sessions, {} ({exact} expected); {}",
                    sized.manifest().sessions.len(),
                    items.as_deref().unwrap_or("all items"),
                    plan::detectable_in_words(&sized)?
                ));
                return Ok(sized);
            }
            within = Usd(within.0 / 10 * 9);
        }
        too_little(limit, least)
    }
}

fn expected(spend: &Spend, in_batches: bool) -> Option<Usd> {
    let dollars = if in_batches {
        spend.batch_dollars
    } else {
        spend.dollars
    };
    dollars.map(|span| span.expected)
}

/// A part of a plan.
struct Size {
    selection: Selection,
    /// Indices of its sessions.
    sessions: Vec<usize>,
}

impl Size {
    /// Of all sizes that fit, the one that shows the smallest difference; where none fits, what the
    /// cheapest session costs.
    fn choose(
        plan: &Plan,
        cells: &mut [ForecastCell],
        limit: Usd,
        in_batches: bool,
    ) -> Result<Self, Option<Usd>> {
        let mut best: Option<(f64, Self)> = None;
        let mut cheapest: Option<Usd> = None;
        let order = spread(plan.manifest().sessions.len());
        for selection in selections(&plan.scenario().selection) {
            plan.ask_instead(cells, &selection);
            let costs = costs(plan, cells, in_batches);
            let mut sum = Usd::default();
            let fitting = order.iter().copied().take_while(|at| {
                sum += costs[*at];
                sum <= limit
            });
            let mut sessions: Vec<usize> = fitting.collect();
            let least = (0..costs.len()).min_by_key(|at| costs[*at]);
            let least_cost = least.map(|at| costs[at]);
            cheapest = cheapest.into_iter().chain(least_cost).min();
            if sessions.is_empty() {
                // The first of the order may be the dearest of all.
                sessions.extend(least.filter(|at| costs[*at] <= limit));
            }
            if sessions.is_empty() {
                continue;
            }
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

/// The expected cost of each session: its cells are neighbours.
fn costs(plan: &Plan, cells: &[ForecastCell], in_batches: bool) -> Vec<Usd> {
    let sessions = cells.chunk_by(|one, next| one.record.session == next.record.session);
    let costs: BTreeMap<&str, Option<Usd>> = sessions
        .map(|own| {
            let spend = plan::spend_of(plan, own);
            (&*own[0].record.session, expected(&spend, in_batches))
        })
        .collect();
    let cost = |id: &str| costs.get(id).copied().flatten().unwrap_or(Usd(u64::MAX));
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

fn too_little(limit: Usd, cheapest: Option<Usd>) -> anyhow::Result<Plan> {
    let known = cheapest.filter(|cheapest| cheapest.0 < u64::MAX);
    let cheapest = known.map(|cheapest| format!(": the cheapest costs {cheapest}"));
    let problem = format!(
        "{limit} does not pay for a graded run of this scenario{}",
        cheapest.unwrap_or_default()
    );
    let hint =
        "a larger `--usd`, fewer strategies (`--strategy`), shorter sessions or a cheaper model";
    stop_with(Exit::Usage, problem, hint)
}

/// Names the entries that a price file needs before a run can be sized.
fn unpriced(plan: &Plan, spend: &Spend) -> anyhow::Result<Plan> {
    let mut missing = Vec::new();
    for model in plan.scenario().models.live_names() {
        let known = plan.prices().of(model).map(|(_, price)| price.per_token);
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
