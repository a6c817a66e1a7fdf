//! Recovery: items that a search over removed text finds.

use super::prelude::*;
use crate::record::{RecoveredItem, RecoveryRecord};

/// How much each search brings back, in words.
fn setting(record: &RecoveryRecord) -> String {
    let snippets = many(record.snippets, "snippet", "snippets");
    let tokens = record.snippet_tokens;
    format!("BM25, {snippets} of at most about {tokens} tokens")
}

/// Strategy by strategy.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut records = material.cells.iter().flat_map(|cell| &cell.recovery);
    let search = records.next().map(setting);
    let note = search.map(|words| format!("search: {words}, with the question as it is asked"));
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let records = cells.flat_map(|cell| &cell.recovery);
        let lost: Vec<&RecoveredItem> = records.flat_map(|record| &record.items).collect();
        let regained = lost.iter().filter(|item| item.is_regained).count();
        let tokens: Tokens = lost.iter().map(|item| item.tokens).sum();
        (!lost.is_empty()).then(|| {
            vec![
                Cell::of(regained, lost.len()),
                Cell::share(Some(regained as f64 / lost.len() as f64)),
                Cell::tokens(Tokens(tokens.0 / lost.len() as u64)),
                Cell::tokens(tokens),
            ]
        })
    });
    Section::new("recovery", rows).with_notes(note)
}
