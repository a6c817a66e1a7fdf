//! Which size of a graded run fits: sessions, points, items and strategies.

use std::collections::{BTreeMap, BTreeSet};

use super::Limit;
use crate::cli::forecast::{self, Detectable};
use crate::cli::say;
use crate::probe::Selection;
use crate::record::{Arm, ForecastCell};
use crate::runner::Plan;
use crate::strategy::StrategySpec;

/// Items of a session that are tried, the most first. Fewer than the last would leave kinds out.
const ITEMS: [usize; 7] = [128, 96, 64, 48, 32, 24, 16];

/// A size with fewer points is taken only where it shows a difference smaller by this share: what is
/// lost early in a session is seen at early points only.
const WORTH: f64 = 0.98;

/// How often a size is made smaller because the exact forecast of it does not fit.
const ATTEMPTS: usize = 6;

/// The names of the scenario's own strategies, without the controls that are added.
pub(super) fn own_strategies(plan: &Plan) -> Vec<String> {
    let own = plan.scenario().strategies.iter();
    let own = own.filter(|spec| !spec.is_added());
    own.map(|spec| spec.name().to_owned()).collect()
}

/// The plan with these of its own strategies, and their controls.
pub(super) fn with_strategies(plan: &Plan, kept: &[String]) -> Plan {
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
pub(super) struct Sized {
    pub(super) plan: Plan,
    items: Option<String>,
    expected: u64,
}

impl Sized {
    pub(super) fn say(&self, all: usize, dropped: &[String], limit: Limit) -> anyhow::Result<()> {
        let without = match dropped {
            [] => String::new(),
            dropped => format!(", without {}", dropped.join(" and ")),
        };
        say(&format!(
            "{} {} of {all} sessions, {}{without} ({} expected); {}",
            limit.pays(),
            self.plan.manifest().sessions.len(),
            self.items.as_deref().unwrap_or("all items"),
            limit.in_words(self.expected),
            forecast::detectable_in_words(&self.plan)?
        ));
        Ok(())
    }
}

/// The largest size of this plan that fits and has `enough` sessions; where none fits, what the cheapest takes.
/// `cells` are those of all strategies.
pub(super) fn fitting(
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
        let exact = limit.of(&forecast::spend_of(&sized, &sized.forecast()?));
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

/// The expected cost or time of each session: its cells are neighbours.
fn costs(plan: &Plan, cells: &[ForecastCell], limit: Limit) -> Vec<u64> {
    let sessions = cells.chunk_by(|one, next| one.record.session == next.record.session);
    let costs: BTreeMap<&str, Option<u64>> = sessions
        .map(|own| {
            (
                &*own[0].record.session,
                limit.of(&forecast::spend_of(plan, own)),
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
