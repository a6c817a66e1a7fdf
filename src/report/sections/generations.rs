//! Compaction by compaction: what each freed, the floor under it, and when the next one came.

use super::prelude::*;
use crate::compare::NoteCode;
use crate::metric::generations::{Generation, STUCK_RULE, generations};

/// From this compaction on, the later ones share a row.
const SHOWN: usize = 6;

/// The compactions of each cell that has any.
fn of_cells(material: &Material<'_>, strategy: &StrategySummary) -> Vec<Vec<Generation>> {
    let cells = material.cells_of(&strategy.name);
    let own = cells.filter(|cell| cell.arm == Arm::Strategy);
    own.map(generations).filter(|of| !of.is_empty()).collect()
}

/// The strategies that got stuck, in one line.
pub(crate) fn banner(material: &Material<'_>) -> Option<Banner> {
    let stuck = material.strategies.iter().filter_map(|strategy| {
        let all = of_cells(material, strategy);
        let stuck = all.iter().filter(|of| of.iter().any(Generation::is_stuck));
        let (stuck, all) = (stuck.count(), many(all.len(), "cell", "cells"));
        (stuck > 0).then(|| format!("`{}` in {stuck} of {all}", strategy.name))
    });
    let stuck = display::listed(stuck, ", ")?;
    let text = format!("stuck at least once: {stuck} ({STUCK_RULE})");
    Some(BannerLevel::Note.banner(NoteCode::Stuck, text))
}

/// The effect of the first, second, third compaction of a cell.
pub(super) fn by_number(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = of_cells(material, strategy);
        let most = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..most.min(SHOWN)).map(move |at| {
            let shares_row = at + 1 == SHOWN && most > SHOWN;
            let count = if shares_row { usize::MAX } else { 1 };
            let all = cells.iter();
            let same: Vec<_> = all.flat_map(|of| of.iter().skip(at).take(count)).collect();
            let later = if shares_row { " and later" } else { "" };
            let number = Cell::text(format!("{}{later}", at + 1));
            let counted = [number, Cell::count(same.len())].into_iter();
            counted.chain(figures(&same)).collect()
        })
    });
    Section::new("generations", rows).with_notes([format!("{STUCK_RULE}.")])
}

fn figures(same: &[&Generation]) -> [Cell; 7] {
    let shares: Vec<f64> = same.iter().filter_map(|generation| generation.freed()).collect();
    let freed = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
    let next: Vec<usize> = same.iter().filter_map(|generation| generation.until_next).collect();
    let until_next = if next.is_empty() {
        Cell::NOT_APPLICABLE
    } else {
        let mean = next.iter().sum::<usize>() as f64 / next.len() as f64;
        Cell::text(format!("{mean:.1}"))
    };
    let stuck = same.iter().filter(|generation| generation.is_stuck()).count();
    [
        mean(same, |generation| generation.before),
        Cell::share(freed),
        mean(same, |generation| generation.after),
        mean(same, |generation| generation.fixed),
        mean(same, |generation| generation.summary),
        until_next,
        Cell::of(stuck, same.len()),
    ]
}

fn mean(same: &[&Generation], tokens: fn(&Generation) -> Tokens) -> Cell {
    let sum: Tokens = same.iter().map(|generation| tokens(generation)).sum();
    Cell::tokens(Tokens(sum.0 / (same.len().max(1)) as u64))
}
