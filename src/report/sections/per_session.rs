//! What is to be said of single sessions: results, early ends, the counter's error, imports.

use std::collections::BTreeMap;

use crate::metric::CellSummary;
use crate::metric::answers::Answers;
use crate::record::{Arm, CellRecord, DeathCause, End};
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Section, Table, Value};
use crate::stats::SampleSize;

/// Cells that ended early, shown before the rest is only counted.
const SHOWN: usize = 20;

/// Tables of sessions up to this long are shown on a terminal as well.
const SHORT: usize = 10;

/// Each session under each strategy.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for session in &material.manifest.sessions {
        for (kind, arm) in &material.arms {
            for cell in material
                .summaries
                .iter()
                .filter(|cell| cell.session == session.id && cell.strategy == arm.strategy)
            {
                let mut row = super::row(&session.id, super::role(*kind), cells(cell));
                if cell.is_broken() {
                    row.marks.push("broken".to_owned());
                }
                rows.push(row);
            }
        }
    }
    Section {
        id: "sessions",
        title: "Session by session".to_owned(),
        about: "Survival here is not corrected for chance; n is items. One session has no \
                interval."
            .to_owned(),
        audience: Audience::Files,
        table: Table {
            columns: vec![
                Column::new("session", "session", 0),
                Column::new("strategy", "strategy", 0),
                Column::new("repeat", "repeat", 0),
                Column::new("completion", "completion", 0),
                Column::new("token_savings", "token savings", 0),
                Column::new("survival", "survival", 0),
                Column::new("extract", "extract", 0),
                Column::new("accuracy", "accuracy", 0),
                Column::new("action_support", "action support", 0),
                Column::new("compactions", "compactions", 0),
                Column::new("rejected", "rejected", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

fn cells(cell: &CellSummary) -> Vec<Cell> {
    let of_items = |share: Option<f64>, items: usize| Cell {
        n: share.map(|_| SampleSize { sessions: 1, items }),
        ..Cell::share(share)
    };
    let planted = cell.survival.planted();
    let (extract, accuracy) = match &cell.answers {
        Some(Answers::Extract(extract)) => (
            of_items(extract.right_share(), extract.scored()),
            Cell::exact(Value::NotMeasured),
        ),
        Some(Answers::Accuracy(accuracy)) => (
            Cell::exact(Value::NotMeasured),
            of_items(accuracy.score.mean(), accuracy.score.items),
        ),
        None => (
            Cell::exact(Value::NotMeasured),
            Cell::exact(Value::NotMeasured),
        ),
    };
    let run = |value: Cell| match cell.arm {
        Arm::Floor => Cell::exact(Value::NotApplicable),
        Arm::Reference | Arm::Strategy => value,
    };
    let strategy = |value: Cell| match cell.arm {
        Arm::Floor | Arm::Reference => Cell::exact(Value::NotApplicable),
        Arm::Strategy => value,
    };
    let wanted = usize::try_from(cell.support.wanted).unwrap_or(usize::MAX);
    vec![
        Cell::text(cell.strategy.as_str()),
        Cell::count(cell.repeat as usize),
        run(Cell::share(cell.completion.share())),
        strategy(Cell::share(
            cell.savings.and_then(|savings| savings.share()),
        )),
        of_items(planted.mean(), planted.items),
        extract,
        accuracy,
        run(of_items(cell.support.share(), wanted)),
        strategy(Cell::count(cell.compactions())),
        strategy(Cell::count(cell.findings.rejected)),
    ]
}

/// Cells that died or failed, with the reason.
pub(super) fn ended_early(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let all = material.cells.iter().chain(&material.unmeasured);
        for cell in all.filter(|cell| cell.strategy == arm.strategy) {
            let (call, why) = match &cell.end {
                End::Completed => continue,
                End::Died {
                    call,
                    prompt,
                    cause,
                } => (
                    *call,
                    match (cause, cell.window) {
                        (DeathCause::Unanswered, _) => {
                            "died: the provider failed at every attempt".to_owned()
                        }
                        (DeathCause::Overflow, _) if let Some(limit) = limit_at(cell, *call) => {
                            format!("died: the provider takes {limit}")
                        }
                        (DeathCause::Overflow, Some(window)) => format!(
                            "died: a prompt of {} tokens in a window of {}",
                            prompt, window.tokens
                        ),
                        (DeathCause::Overflow, None) => {
                            format!("died: a prompt of {prompt} tokens")
                        }
                    },
                ),
                End::Failed { call, error } => (*call, format!("failed: {error}")),
                End::NotMeasurable { call, why } => (*call, format!("not measurable: {why}")),
            };
            rows.push(super::row(
                &arm.strategy,
                super::role(*kind),
                vec![
                    Cell::text(cell.session.as_str()),
                    Cell::exact(Value::Of(call as u64, cell.planned_calls as u64)),
                    Cell::text(why),
                ],
            ));
        }
    }
    let rest = rows.len().saturating_sub(SHOWN);
    rows.truncate(SHOWN);
    Section {
        id: "ended_early",
        title: "Cells that ended early".to_owned(),
        about: "The call that was never answered, of the calls planned.".to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("session", "session", 0),
                Column::new("call", "at call", 0),
                Column::new("why", "why", 0),
            ],
            rows,
        },
        notes: if rest > 0 {
            vec![format!("and {rest} more cells")]
        } else {
            Vec::new()
        },
    }
}

/// The limit beside the window that refused the prompt of a call.
fn limit_at(record: &CellRecord, call: usize) -> Option<&str> {
    let refusal = record.refusals.iter().find(|refusal| refusal.call == call);
    refusal.map(|refusal| &*refusal.limit)
}

/// How often each limit beside the window refused a prompt, with the document that names it.
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
    let rows = material
        .arms
        .iter()
        .filter(|(_, arm)| arm.overflows > 0)
        .map(|(kind, arm)| {
            let cells = material
                .cells
                .iter()
                .filter(|cell| cell.strategy == arm.strategy && !cell.overflows.is_empty());
            let first = cells
                .clone()
                .filter_map(|cell| cell.overflows.first())
                .min()
                .copied();
            super::row(
                &arm.strategy,
                super::role(*kind),
                vec![
                    Cell::count(arm.overflows),
                    Cell::count(arm.overflows.saturating_sub(arm.deaths.len())),
                    Cell::count(arm.deaths.len()),
                    Cell::count(cells.count()),
                    Cell::count(first.unwrap_or(0)),
                ],
            )
        })
        .collect();
    Section {
        id: "overflows",
        title: "Overflows".to_owned(),
        about: "Prompts the provider would have refused, too long or over another of its limits: \
                recovered by compacting at once, or the session died there."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("overflows", "overflows", 0),
                Column::new("recovered", "recovered", 0),
                Column::new("deaths", "deaths", 0),
                Column::new("cells", "in cells", 0),
                Column::new("first", "first at call", 0),
            ],
            rows,
        },
        notes: refused_by_limits(material),
    }
}

/// How far the counter is off, where the recording says what was billed.
pub(super) fn counter_error(material: &Material<'_>) -> Section {
    let rows: Vec<_> = material
        .cells
        .iter()
        .filter(|cell| cell.arm == Arm::Reference)
        .filter_map(|cell| {
            let error = cell.counter_error.as_ref()?;
            Some(super::row(
                &cell.session,
                Role::Other,
                vec![
                    Cell::count(error.increments),
                    Cell::share(Some(error.median)),
                    Cell::share(Some(error.p95)),
                    Cell::share(Some(error.ratio)),
                ],
            ))
        })
        .collect();
    Section {
        id: "counter_error",
        title: format!("Error of the counter {}", material.manifest.counter),
        about: "Growth of the prompt from call to call, counted against billed; above 100 % \
                counted/billed the counter counts too much."
            .to_owned(),
        audience: audience(rows.len()),
        table: Table {
            columns: vec![
                Column::new("session", "session", 0),
                Column::new("increments", "increments n", 0),
                Column::new("median", "median error", 0),
                Column::new("p95", "95th percentile", 0),
                Column::new("ratio", "counted/billed", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// What importers did not know or had to mend.
pub(super) fn importers(material: &Material<'_>) -> Section {
    let list = |counts: &BTreeMap<String, u64>| {
        if counts.is_empty() {
            return Cell::text("none");
        }
        let parts: Vec<String> = counts
            .iter()
            .map(|(what, count)| format!("{what}: {count}"))
            .collect();
        Cell::text(parts.join("; "))
    };
    let rows: Vec<_> = material
        .manifest
        .sessions
        .iter()
        .filter(|session| !session.unknown.is_empty() || !session.warnings.is_empty())
        .map(|session| {
            super::row(
                &session.id,
                Role::Other,
                vec![
                    Cell::text(session.format.as_str()),
                    list(&session.unknown),
                    list(&session.warnings),
                ],
            )
        })
        .collect();
    Section {
        id: "importers",
        title: "Imports".to_owned(),
        about: "Records and blocks of unknown type, and what had to be mended.".to_owned(),
        audience: audience(rows.len()),
        table: Table {
            columns: vec![
                Column::new("session", "session", 0),
                Column::new("format", "format", 1),
                Column::new("unknown", "unknown", 0),
                Column::new("warnings", "warnings", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

pub(super) fn audience(rows: usize) -> Audience {
    if rows <= SHORT {
        Audience::Everyone
    } else {
        Audience::Files
    }
}
