//! Unsupported claims of summaries.

use super::prelude::*;
use crate::record::SummaryAtoms;

/// Unsupported names in summaries, with examples.
pub(super) fn unsupported(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let found: Vec<&SummaryAtoms> =
            cells.filter_map(|cell| cell.summary_atoms.as_ref()).collect();
        let sum = |count: fn(&SummaryAtoms) -> u64| found.iter().map(|it| count(it)).sum::<u64>();
        let (atoms, unsupported) = (sum(|it| it.atoms), sum(|it| it.unsupported));
        let examples = found.iter().flat_map(|atoms| &atoms.examples).take(3);
        let examples = examples.map(|it| format!("{} ({}, call {})", it.atom, it.stage, it.call));
        (strategy.arm == Arm::Strategy && !found.is_empty()).then(|| {
            vec![
                Cell::exact(Value::Count(sum(|it| it.summaries))),
                Cell::exact(Value::Count(atoms)),
                Cell::exact(Value::Count(unsupported)),
                Cell::share((atoms > 0).then(|| unsupported as f64 / atoms as f64)),
                Cell::listed(examples, "; ", "–"),
            ]
        })
    });
    Section::new("unsupported_atoms", rows)
}
