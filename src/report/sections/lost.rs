//! What was lost, and where: call, stage and reason.

use std::collections::BTreeMap;

use crate::record::Importance;
use crate::record::{Arm, CellRecord, LostAt, ProbeRecord};
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Section, Table, Value};

/// Items shown.
const SHOWN: usize = 12;

/// One item over all strategies.
struct Item<'a> {
    session: &'a str,
    probe: &'a ProbeRecord,
    /// Cells that were asked for it.
    cells: u64,
    /// Where each cell lost it, in the order of strategies.
    lost: Vec<(&'a str, &'a LostAt)>,
}

/// The most frequently lost items of high importance.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut items: BTreeMap<(&str, &str), Item<'_>> = BTreeMap::new();
    for (_, arm) in material
        .arms
        .iter()
        .filter(|(kind, _)| *kind == Arm::Strategy)
    {
        for cell in material
            .cells
            .iter()
            .filter(|cell| cell.strategy == arm.strategy)
        {
            collect(cell, &mut items);
        }
    }
    let mut lost: Vec<Item<'_>> = items
        .into_values()
        .filter(|item| !item.lost.is_empty())
        .collect();
    // Most often first; the order of sessions and probes decides among equals.
    lost.sort_by_key(|item| std::cmp::Reverse(item.lost.len()));
    let rest = lost.len().saturating_sub(SHOWN);
    let rows = lost
        .iter()
        .take(SHOWN)
        .map(|item| {
            super::row(
                &item.probe.probe,
                Role::Other,
                vec![
                    Cell::exact(Value::Of(item.lost.len() as u64, item.cells)),
                    Cell::text(item.session),
                    Cell::text(place(item)),
                ],
            )
        })
        .collect();
    let mut notes = Vec::new();
    if rest > 0 {
        notes.push(format!("and {rest} more lost items of high importance"));
    }
    Section {
        id: "lost",
        title: "Lost".to_owned(),
        about: "Items of high importance, those that most cells lost first, and where each was \
                lost earliest."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("item", "item", 0),
                Column::new("lost", "lost in", 0),
                Column::new("session", "session", 1),
                Column::new("where", "where", 0),
            ],
            rows,
        },
        notes,
    }
}

fn collect<'a>(cell: &'a CellRecord, items: &mut BTreeMap<(&'a str, &'a str), Item<'a>>) {
    let mut seen: BTreeMap<&str, Option<&LostAt>> = BTreeMap::new();
    for probe in cell
        .probes
        .iter()
        .filter(|probe| probe.importance == Importance::High)
    {
        items
            .entry((&cell.session, &probe.probe))
            .or_insert_with(|| Item {
                session: &cell.session,
                probe,
                cells: 0,
                lost: Vec::new(),
            });
        // An item is asked several times; it was lost where it was lost first.
        let at = seen.entry(&probe.probe).or_default();
        if let Some(lost) = &probe.survival.lost_at
            && at.is_none_or(|earlier| lost.call < earlier.call)
        {
            *at = Some(lost);
        }
    }
    for (probe, at) in seen {
        if let Some(item) = items.get_mut(&(cell.session.as_str(), probe)) {
            item.cells += 1;
            item.lost
                .extend(at.map(|lost| (cell.strategy.as_str(), lost)));
        }
    }
}

/// `lost at call 57 by clear_results (3 results older than the last 3), under observation-masking`.
fn place(item: &Item<'_>) -> String {
    let Some((strategy, lost)) = item.lost.iter().min_by_key(|(_, lost)| lost.call) else {
        return String::new();
    };
    format!(
        "lost at call {} by {} ({}), under {strategy}",
        lost.call, lost.stage, lost.reason
    )
}
