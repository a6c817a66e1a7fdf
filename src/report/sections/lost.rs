//! Lost items and where they were lost: call, stage and reason.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::prelude::*;
use super::row;
use crate::metric::survival::is_planted;
use crate::record::words::HIGH_WEIGHT;
use crate::record::{LostAt, ProbeRecord, RecoveredItem, RecoveryRecord};
use crate::report::probe_texts;

/// The most items that are listed: a look at what goes, not the whole list.
const MOST: usize = 30;

/// Of these, items on a terminal.
const SHOWN: usize = 6;

/// Where one cell lost an item.
struct ItemLoss<'a> {
    strategy: &'a str,
    /// The point of the session at which it was asked for, in percent.
    percent: u8,
    at: &'a LostAt,
    /// What is said in its place.
    changed_to: Option<&'a str>,
}

/// The fate of an item under all strategies that are not broken.
#[derive(Default)]
struct LostItem<'a> {
    /// Cells that were asked for it.
    cells: usize,
    /// Their strategies.
    strategies: BTreeSet<&'a str>,
    lost: Vec<ItemLoss<'a>>,
}

impl LostItem<'_> {
    /// The strategies that keep it in every repeat: a few names, or how many.
    fn kept_by(&self) -> String {
        let lost: BTreeSet<&str> = self.lost.iter().map(|loss| loss.strategy).collect();
        let kept: Vec<&str> = self.strategies.difference(&lost).copied().collect();
        match kept.len() {
            0 => "no strategy".to_owned(),
            1..=2 => kept.join(", "),
            more => format!("{more} strategies"),
        }
    }

    /// What is first said in its place.
    fn changed_to(&self) -> Option<&str> {
        let changed = self.lost.iter().filter(|loss| loss.changed_to.is_some());
        changed.min_by_key(|loss| loss.at.call)?.changed_to
    }

    /// The stages that lost it, those of most cells first: `4 by clear_results, 1 by summarize`.
    fn by_stage(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for loss in &self.lost {
            *counts.entry(&loss.at.stage).or_default() += 1;
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        if let [(stage, _)] = counts[..] {
            return format!("by {stage}");
        }
        let words = counts.iter().map(|(stage, count)| format!("{count} by {stage}"));
        display::joined(words, ", ")
    }
}

/// The lost items of high importance: first those that some strategies keep, for these show which one to
/// choose.
pub(super) fn section(material: &Material<'_>) -> Section {
    let mut items: BTreeMap<(&str, &str), LostItem<'_>> = BTreeMap::new();
    // The losses of a broken strategy are expected, and say nothing about the item.
    for strategy in material.compared().filter(|strategy| strategy.broken().is_none()) {
        for cell in material.cells_of(&strategy.name) {
            // An item is asked several times; it was lost where it was lost first.
            let mut asked: BTreeMap<&str, Option<ItemLoss<'_>>> = BTreeMap::new();
            for probe in cell.probes.iter().filter(|probe: &&ProbeRecord| {
                probe.weight >= HIGH_WEIGHT && is_planted(probe.kind)
            }) {
                let found = probe.survival.lost_at.as_ref().map(|at| ItemLoss {
                    strategy: &cell.strategy,
                    percent: probe.percent,
                    at,
                    changed_to: probe.survival.changed_to(),
                });
                let known = asked.entry(&probe.probe).or_default();
                let losses = known.take().into_iter().chain(found);
                *known = losses.min_by_key(|loss| loss.at.call);
            }
            for (probe, loss) in asked {
                let item = items.entry((&cell.session, probe)).or_default();
                item.cells += 1;
                item.strategies.insert(&cell.strategy);
                item.lost.extend(loss);
            }
        }
    }
    items.retain(|_, item| !item.lost.is_empty());
    let mut lost: Vec<_> = items.into_iter().collect();
    // Among equals each session shows its first fact before one shows its second.
    let mut of_session: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    lost.sort_by_cached_key(|((session, _), item)| {
        let (losses, is_lost_by_all) = (item.lost.len(), item.lost.len() == item.cells);
        let before = of_session.entry((session, losses)).or_default();
        *before += 1;
        (is_lost_by_all, Reverse(losses), *before)
    });
    let texts = probe_texts(material.cells.iter().copied());
    let rows = lost.iter().filter_map(|((session, probe), item)| {
        let first = item.lost.iter().min_by_key(|loss| loss.at.call)?;
        let text = texts.get(&(*session, *probe, first.percent));
        let value = text.map_or_else(|| "–".to_owned(), |text| display::short_fact(&text.gold));
        let question = text.map(|text| display::short_fact(&text.question));
        let changed = item.changed_to().map(display::short_fact);
        let cells = vec![
            Cell::text(value),
            Cell::of(item.lost.len(), item.cells),
            Cell::text(item.kept_by()),
            changed.map_or(Cell::NOT_APPLICABLE, Cell::text),
            Cell::count(first.at.call),
            Cell::text(first.strategy),
            Cell::text(item.by_stage()),
            Cell::text(*session),
            Cell::text(*probe),
            Cell::text(first.at.reason.as_str()),
        ];
        let name = question.unwrap_or_else(|| (*probe).to_owned());
        Some(row(&name, Role::Other, cells))
    });
    Section::new("lost", rows).at_most(SHOWN).cut(MOST, |rest| {
        format!("and {rest} more lost items of high importance: `-o FILE.csv` lists every item")
    })
}

/// Lost items of strategies that summarise: those their summariser had been sent, and those that
/// were gone before.
pub(super) fn by_summary(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let cells = material.cells_of(&strategy.name);
        let lost = cells.flat_map(|cell| &cell.probes).flat_map(|probe| &probe.survival.lost_at);
        let seen: Vec<bool> = lost.filter_map(|lost| lost.seen_by_summariser).collect();
        let (all, by_summary) = (seen.len(), seen.iter().filter(|seen| **seen).count());
        let parts = [by_summary, all - by_summary].map(|count| Cell::of(count, all));
        (all > 0).then(|| [Cell::count(all)].into_iter().chain(parts).collect())
    });
    Section::new("lost_by_summary", rows)
}

/// How much each search brings back, in words.
fn setting(record: &RecoveryRecord) -> String {
    let snippets = many(record.snippets, "snippet", "snippets");
    let tokens = record.snippet_tokens;
    format!("BM25, {snippets} of at most about {tokens} tokens")
}

/// Lost items that a search over removed text finds.
pub(super) fn recovery(material: &Material<'_>) -> Section {
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
