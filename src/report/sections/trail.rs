//! Files that prompts still name, verb by verb, and unsupported claims of summaries.

use super::prelude::*;
use crate::metric::trail::{self, VERBS};
use crate::record::SummaryAtoms;
use crate::stats::SampleSize;

/// The artifact trail, by strategy and verb.
pub(super) fn by_verb(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let verbs = VERBS.into_iter().filter_map(|(verb, name)| {
            let counts = strategy.trail.as_ref()?.get(&verb).copied()?;
            (counts.touched > 0 || counts.mentioned > 0).then_some((name, counts))
        });
        verbs.map(|(verb, counts)| {
            let share = |share: Option<f64>, items: u64| Cell {
                n: Some(SampleSize {
                    sessions: strategy.sessions,
                    items: usize::try_from(items).unwrap_or(usize::MAX),
                }),
                ..Cell::share(share)
            };
            vec![
                Cell::text(verb),
                share(trail::precision(&counts), counts.mentioned),
                share(trail::recall(&counts), counts.touched),
                share(trail::f1(&counts), counts.touched),
            ]
        })
    });
    Section::new("artifact_trail", rows)
}

/// Unsupported names in summaries, with examples.
pub(super) fn unsupported(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let found = cells.filter_map(|cell| cell.summary_atoms.as_ref());
        let found: Vec<&SummaryAtoms> = found.collect();
        let sum = |count: fn(&SummaryAtoms) -> u64| found.iter().map(|it| count(it)).sum::<u64>();
        let (atoms, unsupported) = (sum(|it| it.atoms), sum(|it| it.unsupported));
        let examples = found.iter().flat_map(|atoms| &atoms.examples).take(3);
        let examples = examples.map(|it| format!("{} ({}, call {})", it.atom, it.stage, it.call));
        let examples: Vec<String> = examples.collect();
        (strategy.arm == Arm::Strategy && !found.is_empty()).then(|| {
            vec![
                Cell::exact(Value::Count(sum(|it| it.summaries))),
                Cell::exact(Value::Count(atoms)),
                Cell::exact(Value::Count(unsupported)),
                Cell::share((atoms > 0).then(|| unsupported as f64 / atoms as f64)),
                Cell::listed(&examples, "; ", "–"),
            ]
        })
    });
    Section::new("unsupported_atoms", rows)
}
