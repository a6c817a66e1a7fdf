//! Cost by call: what single calls cost, and from when on a strategy saves anything.

use super::{cost, role, row};
use crate::record::Arm;
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Section, Table, Value};

/// One row per strategy, under the scheme of the comparison.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut rows = Vec::new();
    for (kind, arm) in &material.arms {
        let Some(shown) = arm.costs.first() else {
            continue;
        };
        let Some(calls) = shown.by_call else {
            continue;
        };
        let saved = shown.saved.into_iter().chain([shown.savings]);
        let saved = saved.map(|saved| match kind {
            Arm::Strategy => Cell::savings(saved),
            Arm::Reference | Arm::Floor => Cell::exact(Value::NotApplicable),
        });
        let costs = [calls.first, calls.median, calls.last, calls.dearest];
        let costs = costs.map(|cost| Cell::exact(Value::Tokens(cost.0)));
        let mut row = row(
            &arm.strategy,
            role(*kind),
            costs.into_iter().chain(saved).collect(),
        );
        row.marks.extend(arm.broken().map(|_| "broken".to_owned()));
        rows.push(row);
    }
    let shown = cost::shown(material).unwrap_or_default();
    Section {
        id: "cost_by_call",
        title: "Cost by call".to_owned(),
        about: format!(
            "Under {shown}, in tokens of plain input that would cost as much, the strategy's own calls \
             included: the first, the median and the last call of a session, in the mean over cells, and \
             the dearest of all; and what is saved against full history up to a quarter, half and three \
             quarters of the calls, and to the end."
        ),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("first", "first call", 3),
                Column::new("median", "median call", 0),
                Column::new("last", "last call", 3),
                Column::new("dearest", "dearest call", 2),
                Column::new("saved_quarter", "saved by 1/4", 0),
                Column::new("saved_half", "saved by 1/2", 0),
                Column::new("saved_three_quarters", "saved by 3/4", 1),
                Column::new("saved", "saved in all", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}
