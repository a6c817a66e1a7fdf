//! Compaction by compaction: what each freed, the floor under it, when the next one came, and where
//! in the work it fell.

use crate::metric::generations::{Generation, MomentTotals, STUCK_RULE, generations};
use crate::record::{Arm, CellRecord};
use crate::report::arm::ArmSummary;
use crate::report::build::Material;
use crate::report::figure::many;
use crate::report::{Audience, Banner, BannerLevel, Cell, Column, Section, Table, Value};

/// From this compaction on, the later ones share a row.
const SHOWN: usize = 6;

fn cells<'a>(material: &'a Material<'_>, arm: &ArmSummary) -> Vec<&'a CellRecord> {
    let cells = material.cells.iter();
    let own = cells.filter(|cell| cell.strategy == arm.strategy && cell.arm == Arm::Strategy);
    own.copied().collect()
}

/// The strategies that got stuck, in one line.
pub(in crate::report) fn banner(material: &Material<'_>) -> Option<Banner> {
    let mut stuck = Vec::new();
    for (_, arm) in &material.arms {
        let of_cells = cells(material, arm).into_iter().map(generations);
        let of_cells: Vec<Vec<Generation>> = of_cells.filter(|of| !of.is_empty()).collect();
        let held = of_cells
            .iter()
            .filter(|of| of.iter().any(Generation::is_stuck));
        let held = held.count();
        if held > 0 {
            stuck.push(format!(
                "`{}` in {held} of {}",
                arm.strategy,
                many(of_cells.len(), "cell", "cells")
            ));
        }
    }
    (!stuck.is_empty()).then(|| Banner {
        level: BannerLevel::Note,
        text: format!("stuck at least once: {} ({STUCK_RULE})", stuck.join(", ")),
    })
}

/// What the first, second, third compaction of a cell does.
pub(super) fn by_number(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let of_cells: Vec<Vec<Generation>> = cells(material, arm)
            .into_iter()
            .map(generations)
            .filter(|of| !of.is_empty())
            .collect();
        let most = of_cells.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..most.min(SHOWN) {
            let is_last = at + 1 == SHOWN;
            let same: Vec<&Generation> = of_cells
                .iter()
                .flat_map(|of| {
                    let to = if is_last { of.len() } else { at + 1 };
                    of.get(at..to.min(of.len())).unwrap_or_default()
                })
                .collect();
            let name = if is_last && most > SHOWN {
                format!("{} and later", at + 1)
            } else {
                (at + 1).to_string()
            };
            let mut row = vec![Cell::text(name), Cell::count(same.len())];
            row.extend(figures(&same));
            rows.push(super::row(&arm.strategy, super::role(*kind), row));
        }
    }
    Section {
        id: "generations",
        title: "Compaction by compaction".to_owned(),
        about: "Calls at which whole messages were taken out, in the order in which each cell came \
                to them: how large the prompt was on average before, what share of it was freed, and \
                the floor that was left. Of the floor, the head is system prompt and tools, the \
                summary what was written in place of others, and the rest what was kept."
            .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("generation", "compaction", 0),
                Column::new("cells", "n", 0),
                Column::new("before", "before", 1),
                Column::new("freed", "freed", 0),
                Column::new("floor", "floor", 0),
                Column::new("head", "of it head", 2),
                Column::new("summary", "of it summary", 2),
                Column::new("until_next", "calls to the next", 0),
                Column::new("stuck", "stuck", 0),
            ],
            rows,
        },
        notes: vec![format!("{STUCK_RULE}.")],
    }
}

fn figures(same: &[&Generation]) -> Vec<Cell> {
    let mean = |tokens: fn(&Generation) -> u64| {
        let sum: u64 = same.iter().map(|it| tokens(it)).sum();
        Cell::exact(Value::Tokens(sum / (same.len().max(1)) as u64))
    };
    let shares: Vec<f64> = same.iter().filter_map(|it| it.freed()).collect();
    let freed = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
    let next: Vec<usize> = same.iter().filter_map(|it| it.until_next).collect();
    let until_next = if next.is_empty() {
        Cell::exact(Value::NotApplicable)
    } else {
        Cell::text(format!(
            "{:.1}",
            next.iter().sum::<usize>() as f64 / next.len() as f64
        ))
    };
    let stuck = same.iter().filter(|it| it.is_stuck()).count();
    vec![
        mean(|it| it.before.0),
        Cell::share(freed),
        mean(|it| it.after.0),
        mean(|it| it.fixed.0),
        mean(|it| it.summary.0),
        until_next,
        Cell::exact(Value::Of(stuck as u64, same.len() as u64)),
    ]
}

/// Where in the work these compactions fell.
pub(super) fn moments(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    // Folders of older builds do not say.
    let is_told = material.cells.iter().any(|cell| !cell.moments.is_empty());
    for (kind, arm) in material.arms.iter().filter(|_| is_told) {
        let mut totals = MomentTotals::default();
        for cell in cells(material, arm) {
            totals.add(cell);
        }
        if totals.generations == 0 {
            continue;
        }
        let of = |count: usize| Cell::exact(Value::Of(count as u64, totals.generations as u64));
        let row = vec![
            of(totals.user_turn),
            of(totals.phase_end),
            of(totals.in_loop),
            of(totals.in_flight),
            of(totals.mid_work),
        ];
        rows.push(super::row(&arm.strategy, super::role(*kind), row));
    }
    Section {
        id: "moments",
        title: "Where compactions fall".to_owned(),
        about: "Of the compactions above: those at a turn of the user's; those after the agent \
                ticked off an item of its task list, or the session marks the end of a phase; those \
                where the last three responses made the same tool calls; those with tool calls that \
                had no result yet; and those in the middle of the work. One may be several of these."
            .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("user_turn", "user turn", 0),
                Column::new("phase_end", "phase end", 0),
                Column::new("in_loop", "in a loop", 0),
                Column::new("in_flight", "calls in flight", 0),
                Column::new("mid_work", "mid-work", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}
