//! Summaries that models wrote: unhealthy ones, and names in them that nothing supports.

use super::prelude::*;
use crate::record::{Ailment, SummaryAtoms};

/// Unhealthy summaries shown with their text.
const SHOWN: usize = 12;

/// Unhealthy summaries, by their problems.
pub(super) fn health(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells: Vec<&CellRecord> = material.cells_of(&strategy.name).collect();
        let summaries = cells.iter().map(|cell| cell.summary_health.summaries).sum();
        let unhealthy = cells.iter().flat_map(|cell| &cell.summary_health.unhealthy);
        let counts = Ailment::ALL.map(|(ailment, ..)| {
            let ailments = unhealthy.clone().flat_map(|summary| &summary.ailments);
            ailments.filter(|own| **own == ailment).count()
        });
        let cells = [summaries, unhealthy.count()].into_iter().chain(counts);
        counts.iter().any(|count| *count > 0).then(|| cells.map(Cell::count).collect())
    });
    let of_ailments = Ailment::ALL.map(|(_, id, name)| Column::new(id, name, 0));
    Section::new("summary_health", rows).more_columns(of_ailments)
}

/// The first of these summaries, with their text.
pub(super) fn unhealthy(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let all = cells.flat_map(|cell| {
            cell.summary_health.unhealthy.iter().map(move |summary| (&cell.session, summary))
        });
        all.map(|(session, summary)| {
            let names = summary.ailments.iter().map(|ailment| ailment.name());
            vec![
                Cell::text(format!("{session}, call {}", summary.call)),
                Cell::text(display::joined(names, ", ")),
                Cell::text(summary.text.as_str()),
            ]
        })
    });
    let section = Section::new("unhealthy_summaries", rows);
    let place = "in the run folder's cells";
    section.cut(SHOWN, |rest| format!("and {rest} more, {place}"))
}

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
