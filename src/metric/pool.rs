//! Pooling: from the cells of a strategy to one value with the n it rests on.
//!
//! Repeats of a session are averaged first. In a mean the sessions of a cluster, a main session with its
//! side chains, are averaged next, so that each cluster weighs the same; in a total they are added up.

use std::ops::Add;

use super::fidelity::Anchors;
use super::prelude::*;
use super::{CellSummary, Metric, Unit};
use crate::stats::Estimate;
use crate::units::{Usd, whole};

/// A value with the number of its observations.
pub(crate) type Observed = (f64, usize);

/// The function of a metric, and how its values of several cells become one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Formula {
    /// A mean over clusters.
    Mean(fn(&CellSummary) -> Option<Observed>),
    /// What is saved of a total.
    Saved(fn(&CellSummary) -> Option<SpendingPair>),
    /// A total, in the unit of the metric.
    Total(fn(&CellSummary) -> Option<Amount>),
    /// A sum.
    Count(fn(&CellSummary) -> Option<usize>),
    /// A sum.
    Tokens(fn(&CellSummary) -> Option<Tokens>),
    /// The largest.
    Largest(fn(&CellSummary) -> Option<Tokens>),
    /// It is computed from all cells together.
    Pool(fn(&[&CellSummary], Anchors) -> Option<PooledValue>),
}

/// The value of a metric over the cells of a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PooledValue {
    /// A mean over clusters, or a ratio of two totals.
    Estimate(Estimate),
    /// The same of a share that is at least this, and at most that.
    AtLeast(Estimate, f64),
    /// A share that is exact on these cells.
    Share(f64),
    Count(usize),
    Tokens(Tokens),
    Dollars(Usd),
    Seconds(f64),
    /// A count out of a total.
    Part(usize, usize),
}

impl PooledValue {
    /// A share of at least this and at most that; a range where they are further apart than `tolerance`.
    pub(super) fn between(least: Estimate, most: f64, tolerance: f64) -> Self {
        if most - least.point_estimate > tolerance {
            Self::AtLeast(least, most)
        } else {
            Self::Estimate(least)
        }
    }
}

/// What a cell spends and what full history spends on the same calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SpendingPair {
    /// Both in tokens.
    pub(crate) tokens: (f64, f64),
    /// Both in dollars, where the prices are known.
    pub(crate) dollars: Option<(f64, f64)>,
    /// The calls compared.
    pub(crate) calls: usize,
}

impl SpendingPair {
    /// The share of the tokens that is saved.
    pub(crate) fn saved(&self) -> Option<f64> {
        let (own, reference) = self.tokens;
        (reference > 0.0).then(|| 1.0 - own / reference)
    }
}

/// Dollars or seconds of a cell, and of full history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Amount {
    /// Of the cell; `None` where it is not known.
    pub(crate) own: Option<f64>,
    /// Of full history, on the calls that both reached.
    pub(crate) reference: f64,
    /// Of full history, on all calls.
    pub(crate) whole_reference: f64,
}

impl Metric {
    /// Its value over the cells of one strategy; `None` where it was not measured.
    pub(crate) fn over(&self, cells: &[&CellSummary], anchors: Anchors) -> Option<PooledValue> {
        let all = cells.iter().copied();
        Some(match self.function {
            Formula::Mean(of) => PooledValue::Estimate(estimate(cells, of)?),
            Formula::Saved(of) => PooledValue::Estimate(saved(cells, of)?),
            Formula::Total(of) => {
                let sum = total(cells, of)?;
                match self.unit {
                    Unit::Dollars => PooledValue::Dollars(Usd::of_dollars(sum)),
                    Unit::Tokens => PooledValue::Tokens(Tokens(whole(sum))),
                    Unit::Share | Unit::Count | Unit::Seconds => PooledValue::Seconds(sum),
                }
            }
            Formula::Count(of) => PooledValue::Count(all.filter_map(of).reduce(Add::add)?),
            Formula::Tokens(of) => PooledValue::Tokens(all.filter_map(of).reduce(Add::add)?),
            Formula::Largest(of) => PooledValue::Tokens(all.filter_map(of).max()?),
            Formula::Pool(of) => return of(cells, anchors),
        })
    }
}

/// A part of a whole; `None` if the whole is 0.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A share with the number of its observations.
pub(super) fn counted(share: Option<f64>, items: u64) -> Option<Observed> {
    Some((share?, usize::try_from(items).unwrap_or(usize::MAX)))
}

/// A part of a whole as a share of as many observations; `None` if the whole is 0.
pub(super) fn rate(part: u64, whole: u64) -> Option<Observed> {
    counted(share(part, whole), whole)
}

/// How many sessions have a cell with this property.
pub(crate) fn sessions(cells: &[&CellSummary], is_meant: fn(&CellSummary) -> bool) -> usize {
    distinct(cells, is_meant, |cell| &cell.session)
}

/// How many clusters have a cell with this property.
pub(crate) fn clusters(cells: &[&CellSummary], is_meant: fn(&CellSummary) -> bool) -> usize {
    distinct(cells, is_meant, |cell| &cell.cluster)
}

fn distinct(
    cells: &[&CellSummary],
    is_meant: fn(&CellSummary) -> bool,
    name: fn(&CellSummary) -> &String,
) -> usize {
    cells.iter().filter(|cell| is_meant(cell)).map(|cell| name(cell)).collect::<BTreeSet<_>>().len()
}

/// The mean over clusters, each weighing the same.
pub(crate) fn estimate(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<Observed>,
) -> Option<Estimate> {
    let (values, items) = by_cluster(cells, |cell| of(cell).map(|(value, n)| ((value, 0.0), n)));
    let values: Vec<f64> = values.into_iter().map(|(value, _)| value).collect();
    Estimate::of_sessions(&values, items)
}

/// The ratio of two means over clusters, and whether any cluster has both.
pub(super) fn ratio(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<((f64, f64), usize)>,
) -> (Option<Estimate>, bool) {
    let (pairs, items) = by_cluster(cells, of);
    (Estimate::of_ratio(&pairs, items), !pairs.is_empty())
}

/// What is saved of the total of full history, over the sessions that both completed. Formula: `1 − Σx/Σy`,
/// in dollars where all are known, else in tokens.
pub(crate) fn saved(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<SpendingPair>,
) -> Option<Estimate> {
    let completed = both_completed(cells);
    let mut spent = completed.iter().filter_map(|cell| of(cell));
    let all_priced = spent.all(|spending| spending.dollars.is_some());
    let (sessions, items) = by_session(&completed, |cell| {
        let spending = of(cell)?;
        let (own, reference) = spending.dollars.filter(|_| all_priced).unwrap_or(spending.tokens);
        Some(((reference - own, reference), spending.calls))
    });
    let clusters = in_clusters(sessions).into_values();
    let pairs: Vec<(f64, f64)> = clusters.map(|cluster| cluster.sum).collect();
    Estimate::of_ratio(&pairs, items)
}

fn both_completed<'a>(cells: &[&'a CellSummary]) -> Vec<&'a CellSummary> {
    cells.iter().copied().filter(|cell| cell.both_completed).collect()
}

/// The spending of the completed sessions of one cluster, and of full history on them; repeats are averaged.
pub(crate) fn cluster_total(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<(f64, f64)>,
) -> Option<(f64, f64)> {
    let (sessions, _) = by_session(&both_completed(cells), |cell| Some((of(cell)?, 0)));
    in_clusters(sessions).into_values().next().map(|cluster| cluster.sum)
}

/// The total over the sessions of which that of full history is known. A session that no repeat completed
/// counts as full history does, times the ratio of the two over the others. `None` where no session was
/// completed, or a completed one is not known.
pub(crate) fn total(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<Amount>,
) -> Option<f64> {
    let mut sessions: BTreeMap<&str, (Mean, f64)> = BTreeMap::new();
    for cell in cells {
        let Some(amount) = of(cell) else { continue };
        let (completed, whole) = sessions.entry(&cell.session).or_default();
        *whole = amount.whole_reference;
        if cell.both_completed {
            completed.add((amount.own?, amount.reference));
        }
    }
    let (mut known, mut missing) = (Mean::default(), 0.0);
    for (completed, whole) in sessions.into_values() {
        if completed.count == 0 {
            missing += whole;
        } else {
            known.add(completed.value());
        }
    }
    let (own, reference) = known.sum;
    let share = own / reference;
    let more = if missing > 0.0 { share * missing } else { 0.0 };
    Some(own + more).filter(|total| known.count > 0 && total.is_finite())
}

/// Pairs of values by cluster, each the mean over its sessions of the mean over repeats, and the number of
/// all observations.
fn by_cluster(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<((f64, f64), usize)>,
) -> (Vec<(f64, f64)>, usize) {
    let (sessions, items) = by_session(cells, of);
    let clusters = in_clusters(sessions).into_values();
    (clusters.map(|cluster| cluster.value()).collect(), items)
}

/// Sessions by cluster.
fn in_clusters<'a>(sessions: BTreeMap<(&'a str, &str), Mean>) -> BTreeMap<&'a str, Mean> {
    let mut clusters: BTreeMap<&str, Mean> = BTreeMap::new();
    for ((cluster, _), session) in sessions {
        clusters.entry(cluster).or_default().add(session.value());
    }
    clusters
}

/// Pairs of values by cluster and session, each over repeats, and the number of all observations.
fn by_session<'a>(
    cells: &[&'a CellSummary],
    of: impl Fn(&CellSummary) -> Option<((f64, f64), usize)>,
) -> (BTreeMap<(&'a str, &'a str), Mean>, usize) {
    let mut sessions: BTreeMap<(&str, &str), Mean> = BTreeMap::new();
    let mut items = 0;
    for cell in cells {
        if let Some((values, observations)) = of(cell) {
            let session = sessions.entry((&cell.cluster, &cell.session));
            session.or_default().add(values);
            items += observations;
        }
    }
    (sessions, items)
}

/// The sum and the mean of the pairs that were added to it.
#[derive(Default)]
struct Mean {
    sum: (f64, f64),
    count: usize,
}

impl Mean {
    fn add(&mut self, (first, second): (f64, f64)) {
        self.sum = (self.sum.0 + first, self.sum.1 + second);
        self.count += 1;
    }

    fn value(&self) -> (f64, f64) {
        let count = self.count as f64;
        (self.sum.0 / count, self.sum.1 / count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metric::cost::{PaidTokens, SchemeCost};
    use crate::metric::metric;
    use crate::record::words::PerToken;
    use crate::record::{CellRecord, PriceEntry};
    use crate::units::Usage;

    /// A cell of a session in a cluster.
    fn cell(session: &str, cluster: &str, repeat: u32) -> CellSummary {
        let cell = CellRecord { session: session.to_owned(), repeat, ..CellRecord::default() };
        CellSummary { cluster: cluster.to_owned(), ..CellSummary::of(&cell, None) }
    }

    /// A cell of its own cluster with a bill of so many dollars, beside those of full history on the same
    /// calls and on all.
    fn billed(session: &str, [own, reference, whole]: [u64; 3]) -> CellSummary {
        let [agent, in_reference, whole_reference] =
            [own, reference, whole].map(|tokens| Usage::uncached(Tokens(tokens), Tokens::ZERO));
        let cost = SchemeCost {
            agent,
            reference: in_reference,
            whole_reference,
            paid: PaidTokens {
                agent,
                reference: in_reference,
                whole_reference,
                ..PaidTokens::default()
            },
            cost: own * 1_000,
            reference_cost: reference * 1_000,
            other_models_cost: Some(0),
            ..SchemeCost::default()
        };
        let price = PriceEntry {
            model: "m".to_owned(),
            provider: "p".to_owned(),
            date: "2026-01-01".to_owned(),
            document: "d".to_owned(),
            per_token: PerToken { input: Some(Usd::of_dollars(1.0)), ..PerToken::default() },
            ..PriceEntry::default()
        };
        CellSummary {
            costs: vec![cost],
            price: Some(price),
            both_completed: true,
            ..cell(session, session, 0)
        }
    }

    fn died(cell: CellSummary) -> CellSummary {
        CellSummary { both_completed: false, ..cell }
    }

    /// The bill in dollars and the share of it that is saved.
    fn totals(cells: &[CellSummary]) -> (Option<f64>, Option<Estimate>) {
        let cells: Vec<&CellSummary> = cells.iter().collect();
        let bill = match over("bill", &cells) {
            Some(PooledValue::Dollars(bill)) => Some(bill.in_dollars()),
            _ => None,
        };
        match over("bill_saved", &cells) {
            Some(PooledValue::Estimate(saved)) => (bill, Some(saved)),
            _ => (bill, None),
        }
    }

    fn over(name: &str, cells: &[&CellSummary]) -> Option<PooledValue> {
        metric(name).unwrap().over(cells, Anchors::default())
    }

    #[track_caller]
    fn check(cells: &[CellSummary], bill: Option<f64>, saved: Option<f64>) {
        let (found, estimate) = totals(cells);
        let estimate = estimate.map(|estimate| estimate.point_estimate);
        assert_eq!([found, estimate].map(digits), [bill, saved].map(digits));
    }

    fn digits(value: Option<f64>) -> Option<String> {
        value.map(|value| format!("{value:.9}"))
    }

    #[test]
    fn a_bill_is_a_total_and_a_death_costs_what_full_history_does_at_the_same_ratio() {
        let [long, short] = [billed("a", [60, 100, 100]), billed("b", [9, 10, 10])];
        check(&[long.clone(), short.clone()], Some(69.0), Some(1.0 - 69.0 / 110.0));
        // Repeats are averaged.
        let again = billed("a", [100, 100, 100]);
        check(&[long.clone(), again, short.clone()], Some(89.0), Some(1.0 - 89.0 / 110.0));
        // 300 of full history at 69/110 of its bill; what the dead cell paid until then says nothing.
        let dead = died(billed("c", [1, 50, 300]));
        let more = 69.0 + 69.0 / 110.0 * 300.0;
        check(&[long.clone(), short.clone(), dead.clone()], Some(more), Some(1.0 - 69.0 / 110.0));
        // A repeat that completed speaks for its session.
        let alive = billed("c", [150, 300, 300]);
        check(&[long.clone(), dead.clone(), alive], Some(210.0), Some(1.0 - 210.0 / 400.0));
        check(&[dead], None, None);
        check(&[], None, None);
    }

    #[test]
    fn without_a_price_a_session_is_in_no_bill_and_all_are_compared_in_tokens() {
        let known = billed("a", [60, 100, 100]);
        let mut unknown = billed("b", [9, 10, 10]);
        unknown.price = None;
        check(&[known.clone(), unknown.clone()], Some(60.0), Some(1.0 - 69.0 / 110.0));
        check(&[unknown], None, Some(0.1));
        // What one cell alone asked of a model without a price makes its row unknown, and no cheaper.
        let mut other = billed("b", [9, 10, 10]);
        other.costs[0].other_models_cost = None;
        check(&[known, other], None, Some(0.4));
    }

    #[test]
    fn sessions_copied_as_their_own_side_chains_double_the_bill_and_change_no_share() {
        let bills = [[60, 100, 100], [9, 10, 10], [80, 70, 70]];
        let sessions = ["a", "b", "c"].into_iter().zip(bills);
        let alone: Vec<CellSummary> = sessions.map(|(id, bill)| billed(id, bill)).collect();
        let copies = alone
            .iter()
            .map(|cell| CellSummary { session: format!("{}-side", cell.session), ..cell.clone() });
        let copied: Vec<CellSummary> = alone.iter().cloned().chain(copies).collect();
        let [once, twice] = [totals(&alone), totals(&copied)];
        assert_eq!((once.0, twice.0), (Some(149.0), Some(298.0)));
        assert_eq!(once.1, twice.1);
        assert_eq!(once.1.unwrap().n.sessions, 3);
    }

    proptest! {
        #[test]
        fn the_ratio_of_the_bills_shown_is_what_is_not_saved(
            sessions in prop::collection::vec((1..500_u64, 1..500_u64, any::<bool>()), 1..12),
        ) {
            let (mut own, mut full) = (Vec::new(), Vec::new());
            for (at, (spent, whole, completes)) in sessions.iter().copied().enumerate() {
                let name = at.to_string();
                full.push(billed(&name, [whole; 3]));
                own.push(if completes {
                    billed(&name, [spent, whole, whole])
                } else {
                    died(billed(&name, [spent / 2, whole / 2, whole]))
                });
            }
            let (bill, saved) = totals(&own);
            let (reference, _) = totals(&full);
            prop_assert_eq!(bill.is_some(), sessions.iter().any(|(.., completes)| *completes));
            if let (Some(bill), Some(saved)) = (bill, saved) {
                prop_assert!((bill / reference.unwrap() - (1.0 - saved.point_estimate)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_session_copied_as_its_own_side_chain_changes_no_mean_and_no_interval() {
        let sessions = ["b", "a", "d", "c"];
        let alone: Vec<CellSummary> =
            sessions.iter().flat_map(|id| [cell(id, id, 0), cell(id, id, 1)]).collect();
        let copies = ["a", "c", "a"].iter().enumerate().flat_map(|(at, id)| {
            let copy = format!("{id}-side-{at}");
            [cell(&copy, id, 0), cell(&copy, id, 1)]
        });
        let copied: Vec<CellSummary> = alone.iter().cloned().chain(copies).collect();
        // A value that depends on the main session and on the repeat.
        let of = |cell: &CellSummary| {
            let letter = f64::from(cell.cluster.as_bytes()[0] - b'a');
            Some((letter.powi(2) + 0.1 * f64::from(cell.repeat), 1))
        };
        let both = |cells: &[CellSummary]| {
            let cells: Vec<&CellSummary> = cells.iter().collect();
            let pair = |cell: &CellSummary| of(cell).map(|(value, n)| ((value, value + 1.0), n));
            [estimate(&cells, of), ratio(&cells, pair).0].map(|found| {
                let mut found = found.expect("all sessions have a value");
                found.n.items = 0;
                found
            })
        };
        assert_eq!(both(&alone), both(&copied));
        assert_eq!(both(&alone)[0].n.sessions, 4);
    }
}
