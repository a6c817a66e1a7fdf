//! A sample of a scenario's sessions, as like the whole as so few can be.

use std::collections::BTreeSet;

use crate::units::ContentHash;

/// A session and those of its sub-agents: they are taken together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SampleUnit {
    /// Its kind: the format of a recording, the family of a generated session.
    pub(super) kind: String,
    /// How many calls it has.
    pub(super) calls: usize,
    /// Its id.
    pub(super) id: String,
}

/// The ids of `count` units. They are taken at even distances from all units in the order of their kind and length, so
/// that every kind, and the short and the long ones of each, have their share; the seed decides which ones.
/// This is systematic sampling from an ordered list (W. G. Cochran, *Sampling Techniques*, chapter 8).
pub(super) fn sample(mut units: Vec<SampleUnit>, count: usize, seed: u64) -> BTreeSet<String> {
    let hash =
        |text: &str| ContentHash::of_parts([&seed.to_le_bytes()[..], text.as_bytes()]).hex(16);
    units.sort_by_cached_key(|unit| (unit.kind.clone(), unit.calls, hash(&unit.id)));
    let all = units.len();
    let drawn = count.min(all);
    let start = u64::from_str_radix(&hash(""), 16).unwrap_or_default() % all.max(1) as u64;
    let start = usize::try_from(start).unwrap_or_default();
    // Of `all` places on a circle those are taken at which one more of `drawn` is due.
    let due = (0..all).filter(|at| (at + 1) * drawn / all > at * drawn / all);
    due.map(|at| units[(at + start) % all].id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_kind_has_its_share_and_the_seed_decides_which_sessions() {
        let units = |sizes: &[usize]| -> Vec<SampleUnit> {
            let kinds = sizes.iter().zip('a'..);
            let of = |(size, kind): (&usize, char)| {
                let of = move |at| SampleUnit {
                    kind: kind.to_string(),
                    calls: at % 7,
                    id: format!("{kind}{at}"),
                };
                (0..*size).map(of).collect::<Vec<_>>()
            };
            kinds.flat_map(of).collect()
        };
        for sizes in [&[40, 30, 10][..], &[1, 1, 1], &[100, 1, 99], &[7]] {
            let all: usize = sizes.iter().sum();
            for count in 0..=all + 1 {
                for seed in 0..5 {
                    let taken = sample(units(sizes), count, seed);
                    assert_eq!(taken.len(), count.min(all));
                    let mut of: BTreeMap<&str, usize> = BTreeMap::new();
                    for id in &taken {
                        *of.entry(&id[..1]).or_default() += 1;
                    }
                    for (size, kind) in sizes.iter().zip('a'..) {
                        let share = size * count.min(all) / all;
                        let own = of.get(&*kind.to_string()).copied().unwrap_or_default();
                        // The circle may cut a kind in two.
                        assert!(own.abs_diff(share) <= 2, "{count} of {sizes:?}: {of:?}");
                    }
                }
            }
        }
        let [one, other] = [1, 2].map(|seed| sample(units(&[50]), 10, seed));
        assert_ne!(one, other);
        assert_eq!(one, sample(units(&[50]), 10, 1));
    }
}
