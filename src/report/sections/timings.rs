//! Measured processor time of the strategies' own code, and beside it the modelled time of all calls:
//! two columns that are never added.

use std::collections::BTreeMap;

use crate::record::Timing;
use crate::report::{Audience, Cell, Column, Report, Role, Row, Section, Table, Value};
use crate::units::median;

/// The measured times of a run, strategy by strategy; nothing where none belongs to a row of the
/// comparison.
pub(in crate::report) fn section(report: &Report, timings: &[Timing]) -> Option<Section> {
    // Of a cell that was timed twice, in a run that was taken up again, the last time counts.
    let mut cells: BTreeMap<(&str, &str, u32), &Timing> = BTreeMap::new();
    for timing in timings {
        let key = (
            timing.strategy.as_str(),
            timing.session.as_str(),
            timing.repeat,
        );
        cells.insert(key, timing);
    }
    let comparison = report.section("comparison")?;
    let rows: Vec<Row> = comparison
        .table
        .rows
        .iter()
        .filter(|row| row.role == Role::Strategy)
        .filter_map(|row| {
            let own = cells.values().filter(|timing| timing.strategy == row.name);
            let own: Vec<&Timing> = own.copied().collect();
            let sorted = |of: fn(&Timing) -> u64| {
                let mut times: Vec<u64> = own.iter().map(|timing| of(timing)).collect();
                times.sort_unstable();
                times
            };
            let p50 = sorted(|timing| timing.p50_ns);
            let p95 = sorted(|timing| timing.p95_ns);
            let total: u64 = own.iter().map(|timing| timing.strategy_cpu_ns).sum();
            let whole: u64 = own.iter().map(|timing| timing.cell_cpu_ns).sum();
            let cells = vec![
                Cell::count(own.len()),
                Cell::text(in_words(median(&p50, u64::midpoint)?)),
                Cell::text(in_words(*p95.last()?)),
                Cell::text(in_words(total)),
                Cell::text(in_words(whole)),
                modelled(report, &row.name, "blocking_seconds"),
                modelled(report, &row.name, "background_seconds"),
            ];
            Some(super::row(&row.name, Role::Strategy, cells))
        })
        .collect();
    let is_modelled = rows.iter().any(|row| {
        let last = row.cells.iter().rev().take(2);
        last.into_iter().any(|cell| cell.value != unknown())
    });
    let rank = |rank: u8| {
        if is_modelled {
            rank
        } else {
            Column::FILES_ONLY
        }
    };
    (!rows.is_empty()).then(|| Section {
        id: "timings",
        title: "Measured time of the strategies' own code".to_owned(),
        about: "Processor time on the machine of this run, model calls left out: of one call in the \
                median cell, of one call at the 95th percentile of the slowest cell, and of all calls \
                of all cells. It differs from run to run. Modelled time is that of all calls, the agent's \
                too, by the price file's latencies under the cache of the comparison; the two are \
                never added."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("cells", "cells", 2),
                Column::new("cpu_p50", "CPU p50", 0),
                Column::new("cpu_p95", "CPU p95", 0),
                Column::new("cpu_total", "CPU total", 0),
                Column::new("cell_cpu", "with observers and probes", 2),
                Column::new("modelled", "modelled time", rank(1)),
                Column::new("modelled_background", "modelled background", rank(1)),
            ],
            rows,
        },
        notes: Vec::new(),
    })
}

fn unknown() -> Value {
    Value::Text("unknown".to_owned())
}

/// What the table of costs says of a strategy under the scheme of the comparison, which comes first.
fn modelled(report: &Report, strategy: &str, column: &str) -> Cell {
    let found = report.section("cost_by_scheme").and_then(|section| {
        let mut rows = section.table.rows.iter();
        let row = rows.find(|row| row.name == strategy)?;
        section.table.cell(row, column).cloned()
    });
    found.unwrap_or_else(|| Cell::exact(unknown()))
}

/// `3.1 µs`, `12.0 ms`, `1.5 s`.
fn in_words(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.1} s", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (time, words) in [
            (999, "999 ns"),
            (1_500, "1.5 µs"),
            (2_000_000, "2.0 ms"),
            (61_200_000_000, "61.2 s"),
        ] {
            assert_eq!(in_words(time), words);
        }
    }
}
