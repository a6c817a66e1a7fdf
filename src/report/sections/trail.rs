//! Unsupported claims of summaries.

use super::prelude::*;
use crate::record::SummaryAtoms;

/// Unsupported names in summaries, with examples.
pub(super) fn unsupported(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let found: Vec<&SummaryAtoms> =
            cells.filter_map(|cell| cell.summary_atoms.as_ref()).collect();
        let summaries: u64 = found.iter().map(|counts| counts.summaries).sum();
        let atoms: u64 = found.iter().map(|counts| counts.atoms).sum();
        let unsupported: u64 = found.iter().map(|counts| counts.unsupported).sum();
        let first = found.iter().flat_map(|counts| &counts.examples).take(3);
        let examples = first
            .map(|example| format!("{} ({}, call {})", example.atom, example.stage, example.call));
        (strategy.arm == Arm::Strategy && !found.is_empty()).then(|| {
            vec![
                Cell::exact(Value::Count(summaries)),
                Cell::exact(Value::Count(atoms)),
                Cell::exact(Value::Count(unsupported)),
                Cell::share((atoms > 0).then(|| unsupported as f64 / atoms as f64)),
                Cell::listed(examples, "; ", "–"),
            ]
        })
    });
    Section::new("unsupported_atoms", rows)
}
