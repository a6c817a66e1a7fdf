//! Which size of a graded run fits: sessions, points, items and strategies.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::RunLimit;
use crate::cli::forecast::{self, Detectable};
use crate::cli::{Result, say};
use crate::probe::Selection;
use crate::record::{Arm, ForecastCell};
use crate::report::escape::plain;
use crate::runner::Plan;
use crate::units::{Tokens, whole};

/// Items of a session that are tried, the most first. Fewer than the last would leave kinds out.
const ITEMS: [usize; 7] = [128, 96, 64, 48, 32, 24, 16];

/// A size with fewer points is taken only where it shows a difference smaller by this share: what is
/// lost early in a session is seen at early points only.
const WORTH: f64 = 0.98;

/// Of the sessions that are left out, so many are named.
const MOST_NAMED: usize = 8;

/// How often a size is made smaller because the exact forecast of it does not fit.
const ATTEMPTS: usize = 6;

/// The names of the scenario's own strategies, without the controls that are added.
fn own_strategies(plan: &Plan) -> Vec<String> {
    let own = plan.scenario().strategies.iter().filter(|spec| !spec.is_added());
    own.map(|spec| spec.name().to_owned()).collect()
}

/// The plan with these of its own strategies, and their controls.
fn with_strategies(plan: &Plan, kept: &[String]) -> Plan {
    let kept: BTreeSet<&str> = kept.iter().map(String::as_str).collect();
    let mut scenario = plan.scenario().clone();
    let own: BTreeSet<String> = own_strategies(plan).into_iter().collect();
    scenario.strategies.retain(|spec| {
        let leads = spec.name().split_once('@').map(|(_, lead)| lead);
        leads.is_none_or(|lead| !own.contains(lead) || kept.contains(lead))
            && (spec.is_added() || kept.contains(spec.name()))
    });
    plan.variant(scenario, &|_| true)
}

/// A size that fits.
pub(super) struct Sized {
    pub(super) plan: Plan,
    items: Option<String>,
    expected: u64,
    /// Strategies of the scenario that it leaves out.
    dropped: Vec<String>,
}

impl Sized {
    /// The plan; says what it is, and which strategies and sessions of the whole plan it leaves out.
    pub(super) fn say(self, of: &Plan, limit: RunLimit) -> Result<Plan> {
        let [all, kept] = [of, &self.plan].map(|plan| &plan.manifest().sessions);
        let sessions: Vec<&str> =
            all.iter().filter(|entry| !kept.contains(entry)).map(|entry| &*entry.id).collect();
        let mut names: Vec<&str> = self.dropped.iter().map(String::as_str).collect();
        names.extend(sessions.iter().take(MOST_NAMED));
        let mut without = match &names[..] {
            [] => String::new(),
            names => format!(", without {}", plain(&names.join(", "))),
        };
        if sessions.len() > MOST_NAMED {
            let _ = write!(without, " and {} more", sessions.len() - MOST_NAMED);
        }
        say(&format!(
            "{} {} of {} sessions, {}{without} ({} expected); {}",
            limit.pays(),
            kept.len(),
            all.len(),
            self.items.as_deref().unwrap_or("all items"),
            limit.in_words(self.expected),
            forecast::detectable_in_words(&self.plan)?
        ));
        Ok(self.plan)
    }
}

/// The largest size that fits and has `enough` sessions, with as many of the strategies as can be; where none fits,
/// what the cheapest takes. `cells` are those of all strategies.
pub(super) fn largest(
    plan: &Plan,
    cells: &[ForecastCell],
    limit: RunLimit,
    enough: usize,
) -> Result<Result<Sized, Option<u64>>> {
    let strategies = own_strategies(plan);
    let mut least = None;
    for count in (1..=strategies.len()).rev() {
        let (kept, dropped) = strategies.split_at(count);
        match fitting(&with_strategies(plan, kept), cells, limit, enough)? {
            Ok(mut size) => {
                size.dropped = dropped.to_vec();
                return Ok(Ok(size));
            }
            Err(cheapest) => least = cheapest.into_iter().chain(least).min(),
        }
    }
    Ok(Err(least))
}

/// The largest size of this plan that fits and has `enough` sessions; where none fits, what the cheapest takes.
/// `all` are the cells of all strategies.
fn fitting(
    plan: &Plan,
    all: &[ForecastCell],
    limit: RunLimit,
    enough: usize,
) -> Result<Result<Sized, Option<u64>>> {
    let names: BTreeSet<&str> =
        plan.manifest().strategies.iter().map(|entry| entry.name.as_str()).collect();
    let mut cells = all.to_vec();
    cells.retain(|cell| cell.record.arm != Arm::Strategy || names.contains(&*cell.record.strategy));
    let mut within = limit.most();
    let mut least: Option<u64> = None;
    for _ in 0..ATTEMPTS {
        let size = match PlanSize::choose(plan, &mut cells, (limit, within), enough) {
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
                dropped: Vec::new(),
            }));
        }
        within = within / 10 * 9;
    }
    Ok(Err(least))
}

/// A part of a plan.
struct PlanSize {
    selection: Selection,
    /// Indices of its sessions.
    sessions: Vec<usize>,
}

impl PlanSize {
    /// Of all sizes with `enough` sessions that fit, the one that shows the smallest difference; where none
    /// fits, what the cheapest takes.
    fn choose(
        plan: &Plan,
        cells: &mut [ForecastCell],
        (limit, within): (RunLimit, u64),
        enough: usize,
    ) -> Result<Self, Option<u64>> {
        let mut best: Option<(f64, Self)> = None;
        let mut cheapest: Option<u64> = None;
        let sizes = plan.manifest().sessions.iter().map(|entry| entry.tokens);
        let order = match limit {
            RunLimit::Money { .. } => spread(sizes.len()),
            RunLimit::Minutes(_) => smallest_first(&sizes.collect::<Vec<_>>()),
        };
        for selection in selections(&plan.scenario().selection) {
            plan.ask_instead(cells, &selection);
            let costs = costs(plan, cells, limit);
            let mut by_cost: Vec<usize> = (0..costs.len()).collect();
            by_cost.sort_by_key(|at| costs[*at]);
            by_cost.truncate(enough);
            let least = sum(&costs, &by_cost);
            cheapest = Some(least).into_iter().chain(cheapest).min();
            if least > within {
                continue;
            }
            let mut counts = (0..=order.len()).rev();
            let most = counts.find(|count| sum(&costs, &order[..*count]) <= within).unwrap_or(0);
            // The first of the order may be the dearest of all.
            let sessions = if most < enough { by_cost } else { order[..most].to_vec() };
            let planted = plan.planted_if(&selection);
            let planted: Vec<usize> = sessions.iter().map(|at| planted[*at]).collect();
            let difference = Detectable::of(&planted).map_or(f64::MAX, |seen| seen.difference);
            let smallest = best.as_ref().map(|(smallest, _)| smallest * WORTH);
            if smallest.is_none_or(|smallest| difference < smallest) {
                let size = Self { selection, sessions };
                best = Some((difference, size));
            }
        }
        best.map(|(_, size)| size).ok_or(cheapest)
    }

    /// The plan cut to this size.
    fn cut(&self, plan: &Plan) -> Plan {
        let entries = &plan.manifest().sessions;
        let kept: Vec<&str> = self.sessions.iter().map(|at| entries[*at].id.as_str()).collect();
        let mut scenario = plan.scenario().clone();
        scenario.selection = self.selection.clone();
        plan.variant(scenario, &|id| kept.contains(&id))
    }
}

/// The cost of these sessions.
fn sum(costs: &[u64], sessions: &[usize]) -> u64 {
    sessions.iter().map(|at| costs[*at]).fold(0, u64::saturating_add)
}

/// The expected cost or time of each session: its cells are neighbours.
fn costs(plan: &Plan, cells: &[ForecastCell], limit: RunLimit) -> Vec<u64> {
    let sessions = cells.chunk_by(|one, next| one.record.session == next.record.session);
    let costs: BTreeMap<&str, Option<u64>> = sessions
        .map(|own| (&*own[0].record.session, limit.of(&forecast::spend_of(plan, own))))
        .collect();
    let entries = plan.manifest().sessions.iter();
    let costs = entries.map(|entry| costs.get(&*entry.id).copied().flatten());
    costs.map(|cost| cost.unwrap_or(u64::MAX)).collect()
}

/// The selections that are tried: all points, every second, the last alone; and ever fewer items.
fn selections(own: &Selection) -> Vec<Selection> {
    let last = own.points.len().saturating_sub(1);
    let fewer = ITEMS.into_iter().filter(|items| own.items.is_none_or(|most| *items < most));
    let items: Vec<Option<usize>> = std::iter::once(own.items).chain(fewer.map(Some)).collect();
    let mut found: Vec<Selection> = Vec::new();
    for step in [1, 2, last.max(1) + 1] {
        let kept = own.points.iter().enumerate().filter(|(at, _)| (last - at).is_multiple_of(step));
        let points: Vec<u8> = kept.map(|(_, point)| *point).collect();
        if found.last().is_some_and(|before| before.points == points) {
            continue;
        }
        found.extend(items.iter().map(|items| Selection {
            points: points.clone(),
            items: *items,
            ..own.clone()
        }));
    }
    found
}

/// The indices of sessions of these sizes, those of the largest last: a server on this machine may need longer for
/// one of them than for all others. Sizes are doublings of the smallest one, and the sessions of each are spread.
fn smallest_first(sizes: &[Tokens]) -> Vec<usize> {
    let least = sizes.iter().min();
    let smallest = least.map_or(1.0, |least| least.0.max(1) as f64);
    let mut order = spread(sizes.len());
    order.sort_by_key(|at| whole((sizes[*at].0.max(1) as f64 / smallest).log2().round()));
    order
}

/// The indices of all sessions in an order whose every prefix is spread over the whole, because
/// families come in blocks. The bits of each index are reversed.
fn spread(sessions: usize) -> Vec<usize> {
    let bits = sessions.max(1).next_power_of_two().trailing_zeros();
    let places = 0..1_usize << bits;
    let all = places.map(|at| {
        let reversed = at.reverse_bits().checked_shr(usize::BITS - bits);
        reversed.unwrap_or(0)
    });
    all.filter(|at| *at < sessions).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_session_goes_before_one_of_half_its_size(
            sizes in prop::collection::vec(1_u64..200_000, 0..40),
        ) {
            let sizes: Vec<Tokens> = sizes.into_iter().map(Tokens).collect();
            let order = smallest_first(&sizes);
            for (at, early) in order.iter().enumerate() {
                for late in &order[at + 1..] {
                    prop_assert!(sizes[*late].0 * 2 >= sizes[*early].0, "{order:?}");
                }
            }
            let alike = vec![Tokens(7_000); sizes.len()];
            prop_assert_eq!(smallest_first(&alike), spread(sizes.len()));
        }
    }

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
            assert!(order[..2].iter().any(|at| *at >= sessions / 2), "{sessions}");
        }
    }

    #[test]
    fn fewer_items_and_points_are_tried_from_the_most_to_the_least() {
        let all = selections(&Selection::default());
        assert_eq!(all.len(), 3 * (1 + ITEMS.len()));
        assert_eq!(all[0], Selection::default());
        let points: Vec<&[u8]> =
            all.iter().step_by(1 + ITEMS.len()).map(|one| &*one.points).collect();
        assert_eq!(points, [&[25, 50, 75, 100][..], &[50, 100], &[100]]);
        let own = Selection { points: vec![100], items: Some(20), ..Selection::default() };
        let items: Vec<_> = selections(&own).iter().map(|one| one.items).collect();
        assert_eq!(items, [Some(20), Some(16)]);
    }
}
