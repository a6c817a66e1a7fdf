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
    let same_session = |one: &CellSummary, next: &CellSummary| one.session == next.session;
    for of_session in material.summaries.chunk_by(same_session) {
        for strategy in &material.strategies {
            let of_strategy = |cell: &&CellSummary| cell.strategy == strategy.name;
            for cell in of_session.iter().filter(of_strategy) {
                let mut row = super::row(&cell.session, super::role(strategy.arm), cells(cell));
                row.marks = Vec::from_iter(cell.is_broken().then_some(RowMark::Broken(None)));
                rows.push(row);
            }
        }
    }
    Section::new("sessions", rows)
}

fn cells(cell: &CellSummary) -> Vec<Cell> {
    let of_items = |share: Option<f64>, items: usize| Cell {
        n: share.map(|_| SampleSize { sessions: 1, items }),
        ..Cell::share(share)
    };
    let planted = cell.survival.planted();
    let accuracy = cell
        .answers
        .as_ref()
        .map_or(Cell::NOT_MEASURED, |found| of_items(found.score.mean(), found.score.items));
    let run = |value: Cell| match cell.arm {
        Arm::Floor => Cell::NOT_APPLICABLE,
        Arm::Reference | Arm::Strategy => value,
    };
    let strategy = |value: Cell| super::of_strategy(cell.arm, value);
    let wanted = usize::try_from(cell.support.wanted).unwrap_or(usize::MAX);
    let savings = cell.savings.and_then(|savings| savings.share());
    vec![
        Cell::text(cell.strategy.as_str()),
        Cell::count(cell.repeat as usize),
        run(Cell::share(cell.completion.share())),
        strategy(Cell::share(savings)),
        of_items(planted.mean(), planted.items),
        accuracy,
        run(of_items(cell.support.share(), wanted)),
        strategy(Cell::count(cell.compactions())),
        strategy(Cell::count(cell.findings.rejected)),
    ]
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
            let window = window.tokens;
            format!("a prompt of {prompt} tokens in a window of {window}")
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
    let list = |counts: &BTreeMap<String, u64>| {
        let parts = counts.iter().map(|(what, it)| format!("{what}: {it}"));
        Cell::listed(parts, "; ", "none")
    };
    let rows = material.manifest.sessions.iter().filter_map(|session| {
        let (unknown, warnings) = (&session.unknown, &session.warnings);
        let format = Cell::text(session.format.as_str());
        let cells = vec![format, list(unknown), list(warnings)];
        let is_any = !unknown.is_empty() || !warnings.is_empty();
        is_any.then(|| super::row(&session.id, Role::Other, cells))
    });
    Section::new("importers", rows).in_files_if_long()
}
