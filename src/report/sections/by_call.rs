//! Cost by call: what single calls cost, and from when on a strategy saves anything.

use super::cost;
use super::prelude::*;

/// One row per strategy, under the scheme of the comparison.
pub(super) fn section(material: &Material<'_>) -> Section {
    let rows = material.marked_rows(|strategy| {
        let shown = strategy.costs.first()?;
        let calls = shown.by_call?;
        let saved = shown.saved.into_iter().chain([shown.savings]);
        let own = saved.map(|saved| super::of_strategy(strategy.arm, Cell::savings(saved)));
        Some(calls.map(Cell::tokens).into_iter().chain(own).collect())
    });
    Section::new("cost_by_call", rows).fill("scheme", &cost::basis(material).unwrap_or_default())
}
