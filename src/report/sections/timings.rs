//! Measured processor time of the strategies' own code, and next to it the modelled time of all
//! calls: two columns that are never added.

use super::prelude::*;
use crate::record::Timing;
use crate::report::Report;
use crate::units::median;

/// The measured times of a run, strategy by strategy; `None` where none belongs to a row of the
/// comparison.
pub(crate) fn section(report: &Report, timings: &[Timing]) -> Option<Section> {
    // If a resumed run timed a cell twice, the last time counts.
    let cells: BTreeMap<_, &Timing> =
        timings.iter().map(|time| ((&time.strategy, &time.session, time.repeat), time)).collect();
    let rows = report.strategies().filter_map(|row| {
        let own = cells.values().filter(|timing| timing.strategy == row.name);
        let mut p50: Vec<u64> = own.clone().map(|timing| timing.p50_ns).collect();
        p50.sort_unstable();
        let p95 = own.clone().map(|timing| timing.p95_ns).max()?;
        let cells = vec![
            Cell::count(p50.len()),
            Cell::text(in_words(median(&p50, u64::midpoint)?)),
            Cell::text(in_words(p95)),
            Cell::text(in_words(own.clone().map(|timing| timing.strategy_cpu_ns).sum())),
            Cell::text(in_words(own.clone().map(|timing| timing.cell_cpu_ns).sum())),
            modelled(report, &row.name, "waiting"),
            modelled(report, &row.name, "background_seconds"),
        ];
        Some(super::row(&row.name, Role::Strategy, cells))
    });
    let section = Section::new("timings", rows).hide_unmeasured();
    (!section.table.rows.is_empty()).then_some(section)
}

/// A strategy's cell in the table of costs, under the scheme of the comparison, which comes first.
fn modelled(report: &Report, strategy: &str, column: &str) -> Cell {
    let found = report.section("cost_by_scheme").and_then(|section| {
        let row = section.table.rows.iter().find(|row| row.name == strategy)?;
        section.table.cell(row, column).cloned()
    });
    found.unwrap_or(Cell::NOT_MEASURED)
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
        for (time, words) in
            [(999, "999 ns"), (1_500, "1.5 µs"), (2_000_000, "2.0 ms"), (61_200_000_000, "61.2 s")]
        {
            assert_eq!(in_words(time), words);
        }
    }
}
