//! What was lost, and where: call, stage and reason.

use std::collections::BTreeMap;

use crate::record::Importance;
use crate::record::{Arm, CellRecord, LostAt, ProbeRecord};
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Row, Section, Table, Value};

/// Items shown: a look at what goes, not the whole list.
const SHOWN: usize = 6;

/// One item over all strategies.
struct Item<'a> {
    session: &'a str,
    probe: &'a ProbeRecord,
    /// Cells that were asked for it.
    cells: u64,
    /// Where each cell lost it, in the order of strategies.
    lost: Vec<Loss<'a>>,
}

/// Where one cell lost an item.
struct Loss<'a> {
    strategy: &'a str,
    /// The strategy breaks anyway: what it loses is no news.
    is_broken: bool,
    at: &'a LostAt,
}

impl<'a> Item<'a> {
    fn sound_losses(&self) -> usize {
        self.lost.iter().filter(|loss| !loss.is_broken).count()
    }

    /// The loss to be shown: the earliest under a strategy that is not broken, if there is one.
    fn first(&self) -> Option<&Loss<'a>> {
        self.lost
            .iter()
            .min_by_key(|loss| (loss.is_broken, loss.at.call))
    }
}

/// The most frequently lost items of high importance.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut items: BTreeMap<(&str, &str), Item<'_>> = BTreeMap::new();
    for (_, arm) in material
        .arms
        .iter()
        .filter(|(kind, _)| *kind == Arm::Strategy)
    {
        let is_broken = arm.broken().is_some();
        for cell in material
            .cells
            .iter()
            .filter(|cell| cell.strategy == arm.strategy)
        {
            collect(cell, is_broken, &mut items);
        }
    }
    let mut lost: Vec<Item<'_>> = items
        .into_values()
        .filter(|item| !item.lost.is_empty())
        .collect();
    // Most often first; the order of sessions and probes decides among equals.
    lost.sort_by_key(|item| std::cmp::Reverse((item.sound_losses(), item.lost.len())));
    let rest = lost.len().saturating_sub(SHOWN);
    let rows = lost.iter().take(SHOWN).filter_map(row).collect();
    let mut notes = Vec::new();
    if rest > 0 {
        notes.push(format!(
            "and {rest} more lost items of high importance: `-o FILE.csv` lists every item"
        ));
    }
    Section {
        id: "lost",
        title: "Lost".to_owned(),
        about: "Items of high importance, those first that most cells of strategies that are not \
                broken lost; and where the earliest of them lost it."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("item", "item", 0),
                Column::new("session", "session", 0),
                Column::new("lost", "lost in", 0),
                Column::new("call", "at call", 0),
                Column::new("strategy", "under", 0),
                Column::new("stage", "by stage", 0),
                Column::new("reason", "reason", Column::FILES_ONLY),
            ],
            rows,
        },
        notes,
    }
}

/// Of what strategies that summarise lost: what their summariser had been sent, and what was gone
/// before.
pub(super) fn by_summary(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let cells = material.cells.iter();
        let seen: Vec<bool> = cells
            .filter(|cell| cell.strategy == arm.strategy)
            .flat_map(|cell| &cell.probes)
            .filter_map(|probe| probe.survival.lost_at.as_ref()?.seen_by_summariser)
            .collect();
        if seen.is_empty() {
            continue;
        }
        let by_summary = seen.iter().filter(|seen| **seen).count();
        let of = |count: usize| Cell::exact(Value::Of(count as u64, seen.len() as u64));
        let row = vec![
            Cell::count(seen.len()),
            of(by_summary),
            of(seen.len() - by_summary),
        ];
        rows.push(super::row(&arm.strategy, super::role(*kind), row));
    }
    Section {
        id: "lost_by_summary",
        title: "Seen by the summariser".to_owned(),
        about: "Items that strategies which summarise lost, by string matching. Lost by the summary: \
                what the summariser was sent held it, and what it wrote does not. Lost before: an \
                earlier stage, or a limit on what is sent, had taken it out; no prompt can mend that."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("lost", "lost items", 0),
                Column::new("by_summary", "by the summary", 0),
                Column::new("before", "before", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

fn row(item: &Item<'_>) -> Option<Row> {
    let loss = item.first()?;
    Some(super::row(
        &item.probe.probe,
        Role::Other,
        vec![
            Cell::text(item.session),
            Cell::exact(Value::Of(item.lost.len() as u64, item.cells)),
            Cell::count(loss.at.call),
            Cell::text(loss.strategy),
            Cell::text(loss.at.stage.as_str()),
            Cell::text(loss.at.reason.as_str()),
        ],
    ))
}

fn collect<'a>(
    cell: &'a CellRecord,
    is_broken: bool,
    items: &mut BTreeMap<(&'a str, &'a str), Item<'a>>,
) {
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
            item.lost.extend(at.map(|at| Loss {
                strategy: &cell.strategy,
                is_broken,
                at,
            }));
        }
    }
}
