//! Which items of a session are asked: at which points, of which kinds, and at most how many.

use serde::Serialize;
use std::collections::BTreeMap;

use super::{Item, Probe, ProbeKind};
use crate::probe::ProbeExt as _;
use crate::session::Session;
use crate::units::ContentHash;

/// How far a session is, in percent of its calls, where nothing else is said.
const POINTS: [u8; 4] = [25, 50, 75, 100];

/// Chooses items. It sees a session and its probes and nothing else, so that every arm is asked the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// How far the session is at each point, in percent of its calls, ascending.
    pub points: Vec<u8>,
    /// Items of a session, at most.
    pub items: Option<usize>,
    /// The kinds that are asked; none means all.
    pub kinds: Vec<ProbeKind>,
    /// Draws the items where there are more than are asked.
    pub seed: u64,
    /// Indices of the probes that are asked; none means all.
    #[serde(skip)]
    pub only: Vec<usize>,
}

impl Default for Selection {
    fn default() -> Self {
        Self { points: POINTS.to_vec(), items: None, kinds: Vec::new(), seed: 1, only: Vec::new() }
    }
}

impl Selection {
    /// The calls at which probes are asked, with how far the session is.
    ///
    /// 100 % is the last call. Points that fall on the same call are asked once, as the later point.
    pub fn ask_points(&self, calls: usize) -> Vec<(u8, usize)> {
        let mut points: Vec<(u8, usize)> = Vec::new();
        for &percent in &self.points {
            let Some(call) = (calls * usize::from(percent)).div_ceil(100).checked_sub(1) else {
                continue;
            };
            match points.last_mut() {
                Some(last) if last.1 == call => last.0 = percent,
                _ => points.push((percent, call)),
            }
        }
        points
    }

    /// The items of a session, by call, then by probe: a probe is asked wherever the full history
    /// holds its answer. One that is used first between two points is asked at the call that uses it.
    ///
    /// Of too many, each kind keeps at least one and otherwise its share. Which ones is drawn from
    /// the seed, the session and the probe, so that a larger number asks the same items and more.
    pub fn items(&self, session: &Session, probes: &[Probe]) -> Vec<Item> {
        self.items_at(session.id(), session.calls(), probes)
    }

    /// The same of the session of this id, of which nothing else is known than the messages that answer
    /// its calls.
    pub fn items_at(&self, session: &str, calls: &[usize], probes: &[Probe]) -> Vec<Item> {
        let points = self.ask_points(calls.len());
        let mut items = Vec::new();
        for (index, probe) in probes.iter().enumerate() {
            let meant = self.kinds.is_empty() || self.kinds.contains(&probe.kind());
            if !meant || !(self.only.is_empty() || self.only.contains(&index)) {
                continue;
            }
            let mut due = points.clone();
            due.retain(|(_, call)| probe.is_answerable(calls[*call]));
            if due.is_empty() {
                due.extend(call_of_use(probe, calls));
            }
            items.extend(due.into_iter().map(|(percent, call)| Item {
                probe: index,
                percent,
                call,
            }));
        }
        items.sort_by_key(|item| (item.call, item.probe));
        match self.items {
            Some(most) if items.len() > most => self.drawn(items, most, session, probes),
            Some(_) | None => items,
        }
    }

    /// The given number of items, in their order.
    fn drawn(&self, items: Vec<Item>, most: usize, session: &str, probes: &[Probe]) -> Vec<Item> {
        let mut of_kind: BTreeMap<ProbeKind, Vec<(String, Item)>> = BTreeMap::new();
        for item in items {
            let probe = &probes[item.probe];
            let parts = [
                &self.seed.to_le_bytes()[..],
                session.as_bytes(),
                probe.id.as_bytes(),
                &[item.percent],
            ];
            let lot = ContentHash::of_parts(parts).to_string();
            of_kind.entry(probe.kind()).or_default().push((lot, item));
        }
        let sizes: Vec<usize> = of_kind.values().map(Vec::len).collect();
        let mut kept = Vec::new();
        for (mut of_one, share) in of_kind.into_values().zip(shares(&sizes, most)) {
            of_one.sort_by(|one, other| one.0.cmp(&other.0));
            kept.extend(of_one.into_iter().take(share).map(|(_, item)| item));
        }
        kept.sort_by_key(|item| (item.call, item.probe));
        kept
    }

    /// The selection in words, as far as it is not the usual one: empty if all is asked.
    pub fn in_words(&self) -> Option<String> {
        let usual = Self::default();
        let mut parts = Vec::new();
        if self.points != usual.points {
            let points: Vec<String> = self.points.iter().map(u8::to_string).collect();
            parts.push(format!("at {} %", points.join(", ")));
        }
        if !self.kinds.is_empty() {
            let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
            parts.push(format!("only {}", kinds.join(", ")));
        }
        if let Some(most) = self.items {
            parts.push(format!("at most {most} a session, seed {}", self.seed));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The call that uses a probe first, with how far the session is, if it is answerable there.
fn call_of_use(probe: &Probe, calls: &[usize]) -> Option<(u8, usize)> {
    let until = probe.until?;
    let call = calls.partition_point(|at| *at <= until).checked_sub(1)?;
    let percent = u8::try_from((call + 1) * 100 / calls.len()).ok()?;
    probe.is_answerable(calls[call]).then_some((percent, call))
}

/// How many of `most` each class gets: one each, the largest classes first, then by the divisor
/// method of Sainte-Laguë (`size/(2·given + 1)`). A larger `most` takes nothing away from any class.
fn shares(sizes: &[usize], most: usize) -> Vec<usize> {
    let mut given = vec![0_usize; sizes.len()];
    for _ in 0..most {
        let open = (0..sizes.len()).filter(|at| given[*at] < sizes[*at]);
        // The first of equals: cross-multiplied, so that no rounding decides.
        let next = open.rev().max_by(|a, b| {
            let own = sizes[*a] * (2 * given[*b] + 1);
            let other = sizes[*b] * (2 * given[*a] + 1);
            let first = (given[*a] == 0).cmp(&(given[*b] == 0));
            first.then(own.cmp(&other))
        });
        let Some(next) = next else {
            break;
        };
        given[next] += 1;
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::ground_truth::{Fact, Importance};

    #[test]
    fn a_fact_that_is_used_between_two_points_is_asked_at_its_use() {
        let calls: Vec<usize> = (0..20).map(|call| 2 * call + 1).collect();
        let asked = |until| {
            let probe = Probe {
                id: "r".to_owned(),
                fact: Fact::Recall { key: String::new(), value: "4f8a1c2d9".to_owned() },
                question: "Which hash?".to_owned(),
                evidence: vec![10],
                until,
                importance: Importance::Normal,
            };
            let items = Selection::default().items_at("s", &calls, &[probe]);
            items.iter().map(|item| (item.percent, item.call)).collect::<Vec<_>>()
        };
        assert_eq!(asked(None), [(50, 9), (75, 14), (100, 19)]);
        assert_eq!(asked(Some(25)), [(50, 9)]);
        assert_eq!(asked(Some(13)), [(35, 6)]);
        assert_eq!(asked(Some(10)), []);
    }

    fn points(points: &[u8], calls: usize) -> Vec<(u8, usize)> {
        let selection = Selection { points: points.to_vec(), ..Selection::default() };
        selection.ask_points(calls)
    }

    #[test]
    fn probes_are_asked_at_fixed_shares_of_the_session() {
        let all = &POINTS;
        assert_eq!(points(all, 100), [(25, 24), (50, 49), (75, 74), (100, 99)]);
        assert_eq!(points(all, 6), [(25, 1), (50, 2), (75, 4), (100, 5)]);
        assert_eq!(points(all, 2), [(50, 0), (100, 1)]);
        assert_eq!(points(all, 1), [(100, 0)]);
        assert_eq!(points(all, 0), []);
        assert_eq!(points(&[10, 100], 20), [(10, 1), (100, 19)]);
    }

    proptest! {
        #[test]
        fn each_kind_keeps_its_share_and_a_larger_number_takes_nothing_away(
            sizes in prop::collection::vec(0_usize..60, 1..14),
            most in 1_usize..200,
        ) {
            let all: usize = sizes.iter().sum();
            let given = shares(&sizes, most);
            prop_assert_eq!(given.iter().sum::<usize>(), most.min(all));
            let kinds = sizes.iter().filter(|size| **size > 0).count();
            let both = || sizes.iter().zip(&given);
            for (size, share) in both() {
                prop_assert!(share <= size);
                prop_assert!(*size == 0 || *share > 0 || most < kinds);
                // Beyond the first, no place would have been due to another kind.
                for (other, had) in both().filter(|(other, had)| had < other) {
                    prop_assert!(*share <= 1 || size * (2 * had + 1) >= other * (2 * share - 1));
                }
            }
            let more = shares(&sizes, most + 1);
            prop_assert!(given.iter().zip(&more).all(|(less, more)| less <= more));
        }
    }
}
