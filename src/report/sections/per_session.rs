//! Tables of single sessions: results, early ends, the counter's error, imports.

use super::prelude::*;
use crate::metric::CellSummary;
use crate::record::{DeathCause, End};
use crate::stats::SampleSize;

/// Cells that ended early, shown before the rest is only counted.
const SHOWN: usize = 20;

/// Each session under each strategy.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for of_session in material.summaries.chunk_by(|one, next| one.session == next.session) {
        for strategy in &material.strategies {
            for cell in of_session.iter().filter(|cell| cell.strategy == strategy.name) {
                let mut row = super::row(&cell.session, super::role(strategy.arm), cells(cell));
                row.marks = Vec::from_iter(cell.is_broken().then_some(RowMark::Broken(None)));
                rows.push(row);
            }
        }
    }
    Section::new("sessions", rows)
}

fn cells(cell: &CellSummary) -> Vec<Cell> {
    let planted = cell.survival.planted();
    let accuracy = cell
        .answers
        .as_ref()
        .map_or(Cell::NOT_MEASURED, |found| of_items(found.score.mean(), found.score.items));
    let wanted = usize::try_from(cell.support.wanted).unwrap_or(usize::MAX);
    let savings = cell.savings.and_then(|savings| savings.share());
    let [completed, supported] =
        [Cell::share(cell.completion.share()), of_items(cell.support.share(), wanted)]
            .map(|own| if cell.arm == Arm::Floor { Cell::NOT_APPLICABLE } else { own });
    let [saved, compactions, rejected] = [
        Cell::share(savings),
        Cell::count(cell.compactions()),
        Cell::count(cell.findings.rejected),
    ]
    .map(|own| super::of_strategy(cell.arm, own));
    vec![
        Cell::text(cell.strategy.as_str()),
        Cell::count(cell.repeat as usize),
        completed,
        saved,
        of_items(planted.mean(), planted.items),
        accuracy,
        supported,
        compactions,
        rejected,
    ]
}

fn of_items(share: Option<f64>, items: usize) -> Cell {
    let n = share.map(|_| SampleSize { sessions: 1, items });
    Cell { n, ..Cell::share(share) }
}

/// Cells that died or failed, with the reason.
pub(super) fn ended_early(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let unmeasured =
            material.unmeasured.iter().copied().filter(|cell| cell.strategy == strategy.name);
        let rows = material.cells_of(&strategy.name).chain(unmeasured).filter_map(|cell| {
            let (call, why) = match &cell.end {
                End::Completed => return None,
                End::Died { call, prompt, cause } => {
                    let why = cause_of_death(cell, *call, *prompt, *cause);
                    (call, format!("died: {why}"))
                }
                End::Failed { call, error } => (call, format!("failed: {error}")),
                End::NotMeasurable { call, why } => (call, format!("not measurable: {why}")),
            };
            Some(vec![
                Cell::text(cell.session.as_str()),
                Cell::of(*call, cell.planned_calls),
                Cell::text(why),
            ])
        });
        rows.collect::<Vec<_>>()
    });
    Section::new("ended_early", rows).cut(SHOWN, |rest| format!("and {rest} more cells"))
}

fn cause_of_death(cell: &CellRecord, call: usize, prompt: Tokens, cause: DeathCause) -> String {
    let mut refusals = cell.refusals.iter();
    match (cause, cell.window) {
        (DeathCause::Unanswered, _) => "the provider failed at every attempt".to_owned(),
        // A limit other than the window.
        (DeathCause::Overflow, _)
            if let Some(refusal) = refusals.find(|refusal| refusal.call == call) =>
        {
            format!("the provider takes {}", refusal.limit)
        }
        (DeathCause::Overflow, Some(window)) => {
            format!("a prompt of {prompt} tokens in a window of {}", window.tokens)
        }
        (DeathCause::Overflow, None) => format!("a prompt of {prompt} tokens"),
    }
}

/// How often each limit other than the window refused a prompt, with the document that names it.
fn refused_by_limits(material: &Material<'_>) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for refusal in material.cells.iter().flat_map(|cell| &cell.refusals) {
        let limit = (&*refusal.limit, &*refusal.document);
        *counts.entry(limit).or_default() += 1;
    }
    let notes = counts.into_iter().map(|((limit, document), count)| {
        format!("The provider takes {limit} ({document}): {count} of these overflows.")
    });
    notes.collect()
}

/// Prompts that were refused as too long, and what became of them.
pub(super) fn overflows(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let first: Vec<usize> = cells.filter_map(|cell| cell.overflows.first()).copied().collect();
        let deaths = strategy.deaths.len();
        let counts = [
            strategy.overflows,
            strategy.overflows.saturating_sub(deaths),
            deaths,
            first.len(),
            first.into_iter().min().unwrap_or(0),
        ];
        (strategy.overflows > 0).then(|| counts.map(Cell::count).into())
    });
    Section::new("overflows", rows).with_notes(refused_by_limits(material))
}

/// How far the counter is off, where the recording says what was billed.
pub(super) fn counter_error(material: &Material<'_>) -> Section {
    let rows = material.references().filter_map(|cell| {
        let error = cell.counter_error.as_ref()?;
        let cells = vec![
            Cell::count(error.increments),
            Cell::share(Some(error.median)),
            Cell::share(Some(error.p95)),
            Cell::share(Some(error.ratio)),
        ];
        Some(super::row(&cell.session, Role::Other, cells))
    });
    let section = Section::new("counter_error", rows).in_files_if_long();
    section.fill("counter", &material.manifest.counter)
}

/// Data that importers did not know or had to repair.
pub(super) fn importers(material: &Material<'_>) -> Section {
    let sessions = material.manifest.sessions.iter();
    let noted = sessions.filter(|entry| !entry.unknown.is_empty() || !entry.warnings.is_empty());
    let rows = noted.map(|entry| {
        let [unknown, warnings] = [&entry.unknown, &entry.warnings].map(|counts| {
            Cell::listed(
                counts.iter().map(|(what, count)| format!("{what}: {count}")),
                "; ",
                "none",
            )
        });
        let cells = vec![Cell::text(entry.format.as_str()), unknown, warnings];
        super::row(&entry.id, Role::Other, cells)
    });
    Section::new("importers", rows).in_files_if_long()
}
