//! The recovery arm: what a search over removed text brings back.

use crate::record::{Arm, RecoveredItem, RecoveryRecord};
use crate::report::build::Material;
use crate::report::figure::many;
use crate::report::{Audience, Banner, BannerLevel, Cell, Column, Section, Table, Value};
use crate::units::Tokens;

/// What all searches of some cells brought back.
#[derive(Default)]
struct Totals {
    lost: u64,
    regained: u64,
    tokens: Tokens,
}

impl Totals {
    fn add(&mut self, items: &[RecoveredItem]) {
        self.lost += items.len() as u64;
        self.regained += items.iter().filter(|item| item.is_regained).count() as u64;
        self.tokens += items.iter().map(|item| item.tokens).sum();
    }

    fn mean_tokens(&self) -> u64 {
        self.tokens.0 / self.lost.max(1)
    }
}

fn arms<'a>(material: &'a Material<'_>) -> Vec<(&'a str, Arm, Totals)> {
    let mut found = Vec::new();
    for (kind, arm) in &material.arms {
        let mut totals = Totals::default();
        let cells = material.cells.iter();
        for cell in cells.filter(|cell| cell.strategy == arm.strategy) {
            if let Some(recovery) = &cell.recovery {
                totals.add(&recovery.items);
            }
        }
        if totals.lost > 0 {
            found.push((arm.strategy.as_str(), *kind, totals));
        }
    }
    found
}

/// How much each search brings back, in words.
fn setting(record: &RecoveryRecord) -> String {
    format!(
        "BM25, {} of at most about {} tokens",
        many(record.snippets, "snippet", "snippets"),
        record.snippet_tokens
    )
}

fn first<'a>(material: &'a Material<'_>) -> Option<&'a RecoveryRecord> {
    material
        .cells
        .iter()
        .find_map(|cell| cell.recovery.as_ref())
}

/// One line over all strategies.
pub(in crate::report) fn banner(material: &Material<'_>) -> Option<Banner> {
    let record = first(material)?;
    let mut all = Totals::default();
    for (_, _, totals) in arms(material) {
        all.lost += totals.lost;
        all.regained += totals.regained;
        all.tokens += totals.tokens;
    }
    (all.lost > 0).then(|| Banner {
        level: BannerLevel::Note,
        text: format!(
            "recovery: a search over what was removed ({}) finds {} of {} lost items, for {} tokens \
             a question, by string matching",
            setting(record),
            all.regained,
            all.lost,
            all.mean_tokens()
        ),
    })
}

/// Strategy by strategy.
pub(super) fn section(material: &Material<'_>) -> Section {
    let rows = arms(material)
        .into_iter()
        .map(|(strategy, kind, totals)| {
            let row = vec![
                Cell::exact(Value::Of(totals.regained, totals.lost)),
                Cell::share(Some(totals.regained as f64 / totals.lost as f64)),
                Cell::exact(Value::Tokens(totals.mean_tokens())),
                Cell::exact(Value::Tokens(totals.tokens.0)),
            ];
            super::row(strategy, super::role(kind), row)
        })
        .collect();
    let notes = first(material).map(|record| {
        format!(
            "search: {}, with the question as it is asked",
            setting(record)
        )
    });
    Section {
        id: "recovery",
        title: "Recovery of what was lost".to_owned(),
        about:
            "Items that did not survive whole, and of these those whose whole answer a search over \
                the removed messages finds, bound to its key. By string matching, like survival: \
                whether a model would search, and answer from what it finds, is not measured."
                .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("strategy", "strategy", 0),
                Column::new("regained", "regained", 0),
                Column::new("share", "share", 0),
                Column::new("tokens_each", "tokens a question", 0),
                Column::new("tokens", "tokens in all", 1),
            ],
            rows,
        },
        notes: notes.into_iter().collect(),
    }
}
