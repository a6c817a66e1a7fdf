//! Lost items and where they were lost: call, stage and reason.

use std::cmp::Reverse;

use super::prelude::*;
use super::row;
use crate::record::{Importance, LostAt};

/// Items shown: a look at what goes, not the whole list.
const SHOWN: usize = 6;

/// Where one cell lost an item.
struct Loss<'a> {
    strategy: &'a str,
    /// Whether the strategy is broken: its losses are expected.
    is_broken: bool,
    at: &'a LostAt,
}

/// The most frequently lost items of high importance.
pub(super) fn section(material: &Material<'_>) -> Section {
    // For each item the cells that were asked for it, and where those that lost it did.
    let mut items: BTreeMap<(&str, &str), (usize, Vec<Loss<'_>>)> = BTreeMap::new();
    let strategies = material.strategies.iter();
    for (_, strategy) in strategies.filter(|(kind, _)| *kind == Arm::Strategy) {
        let is_broken = strategy.broken().is_some();
        for cell in material.cells_of(&strategy.name) {
            // An item is asked several times; it was lost where it was lost first.
            let mut asked: BTreeMap<&str, Option<&LostAt>> = BTreeMap::new();
            let probes = cell.probes.iter();
            for probe in probes.filter(|probe| probe.importance == Importance::High) {
                let at = asked.entry(&probe.probe).or_default();
                let lost = at.iter().copied().chain(&probe.survival.lost_at);
                *at = lost.min_by_key(|lost| lost.call);
            }
            for (probe, at) in asked {
                let (cells, lost) = items.entry((&cell.session, probe)).or_default();
                *cells += 1;
                let strategy = &cell.strategy;
                lost.extend(at.map(|at| Loss {
                    strategy,
                    is_broken,
                    at,
                }));
            }
        }
    }
    let mut lost: Vec<_> = items
        .into_iter()
        .filter(|(_, (_, lost))| !lost.is_empty())
        .collect();
    // Most often first; the order of sessions and probes decides among equals.
    lost.sort_by_key(|(_, (_, lost))| {
        let sound = lost.iter().filter(|loss| !loss.is_broken).count();
        Reverse((sound, lost.len()))
    });
    let rest = lost.len().saturating_sub(SHOWN);
    let rows = lost
        .iter()
        .take(SHOWN)
        .filter_map(|((session, probe), (cells, lost))| {
            // The earliest under a strategy that is not broken, if there is one.
            let first = lost
                .iter()
                .min_by_key(|loss| (loss.is_broken, loss.at.call))?;
            let cells = vec![
                Cell::text(*session),
                Cell::of(lost.len(), *cells),
                Cell::count(first.at.call),
                Cell::text(first.strategy),
                Cell::text(first.at.stage.as_str()),
                Cell::text(first.at.reason.as_str()),
            ];
            Some(row(probe, Role::Other, cells))
        });
    Section::new("lost", rows).with_notes((rest > 0).then(|| {
        format!("and {rest} more lost items of high importance: `-o FILE.csv` lists every item")
    }))
}

/// Lost items of strategies that summarise: those their summariser had been sent, and those that
/// were gone before.
pub(super) fn by_summary(material: &Material<'_>) -> Section {
    let rows = material.rows(|_, strategy| {
        let probes = material
            .cells_of(&strategy.name)
            .flat_map(|cell| &cell.probes);
        let seen: Vec<bool> = probes
            .filter_map(|probe| probe.survival.lost_at.as_ref()?.seen_by_summariser)
            .collect();
        let (all, by_summary) = (seen.len(), seen.iter().filter(|seen| **seen).count());
        let of = |count| Cell::of(count, all);
        (all > 0).then(|| vec![Cell::count(all), of(by_summary), of(all - by_summary)])
    });
    Section::new("lost_by_summary", rows)
}
