//! Recovery: items that a search over removed text finds.

use super::prelude::*;
use crate::record::RecoveryRecord;

/// The items that all searches of some cells found.
#[derive(Default)]
struct Totals {
    lost: u64,
    regained: u64,
    tokens: Tokens,
}

impl Totals {
    fn of<'a>(records: impl Iterator<Item = &'a RecoveryRecord>) -> Self {
        let mut totals = Self::default();
        for item in records.flat_map(|record| &record.items) {
            totals.lost += 1;
            totals.regained += u64::from(item.is_regained);
            totals.tokens += item.tokens;
        }
        totals
    }

    fn mean_tokens(&self) -> u64 {
        self.tokens.0 / self.lost.max(1)
    }
}

/// How much each search brings back, in words.
fn setting(record: &RecoveryRecord) -> String {
    format!(
        "BM25, {} of at most about {} tokens",
        many(record.snippets, "snippet", "snippets"),
        record.snippet_tokens
    )
}

fn first<'a>(material: &Material<'a>) -> Option<&'a RecoveryRecord> {
    let mut cells = material.cells.iter().copied();
    cells.find_map(|cell| cell.recovery.as_ref())
}

/// Strategy by strategy.
pub(super) fn section(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let totals = Totals::of(cells.filter_map(|cell| cell.recovery.as_ref()));
        (totals.lost > 0).then(|| {
            vec![
                Cell::exact(Value::Fraction(totals.regained, totals.lost)),
                Cell::share(Some(totals.regained as f64 / totals.lost as f64)),
                Cell::tokens(Tokens(totals.mean_tokens())),
                Cell::tokens(totals.tokens),
            ]
        })
    });
    let search = first(material).map(setting);
    let note = search.map(|it| format!("search: {it}, with the question as it is asked"));
    Section::new("recovery", rows).with_notes(note)
}
