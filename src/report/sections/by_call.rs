//! Cost by call: what single calls cost, and from when on a strategy saves anything.

use super::cost;
use crate::record::Arm;
use crate::report::build::Material;
use crate::report::{Cell, Section, columns};

/// One row per strategy, under the scheme of the comparison.
pub(super) fn section(material: &Material<'_>) -> Section {
    let rows = material.marked_rows(|kind, arm| {
        let shown = arm.costs.first()?;
        let calls = shown.by_call?;
        let saved = shown.saved.into_iter().chain([shown.savings]);
        let saved = saved.map(|saved| match kind {
            Arm::Strategy => Cell::savings(saved),
            Arm::Reference | Arm::Floor => Cell::NOT_APPLICABLE,
        });
        let costs = [calls.first, calls.median, calls.last, calls.dearest].map(Cell::tokens);
        Some(costs.into_iter().chain(saved).collect())
    });
    let shown = cost::shown(material).unwrap_or_default();
    Section::new(
        "cost_by_call",
        "Cost by call",
        format!(
            "Under {shown}, in tokens of plain input that would cost as much, the strategy's own calls \
             included: the first, the median and the last call of a session, in the mean over cells, and \
             the dearest of all; and what is saved against full history up to a quarter, half and three \
             quarters of the calls, and to the end."
        ),
        columns(
            "strategy | first: first call @3 | median: median call | last: last call @3 | \
             dearest: dearest call @2 | saved_quarter: saved by 1/4 | saved_half: saved by 1/2 | \
             saved_three_quarters: saved by 3/4 @1 | saved: saved in all",
        ),
        rows,
    )
}
