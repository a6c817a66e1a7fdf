//! How prompts were sized: as billed or as counted, and how well that explains the bill.

use super::prelude::*;
use crate::compare::NoteCode;
use crate::record::{Factor, HiddenThinking, KnownBy, Prediction, SessionEntry, Sizes};
use crate::report::display;

/// The sessions that are sized as billed, and those that are counted.
fn by_basis<'a>(material: &Material<'a>) -> (Vec<&'a SessionEntry>, Vec<&'a SessionEntry>) {
    material.manifest.sessions.iter().partition(|entry| entry.sizes.sizes == Sizes::Billed)
}

fn heads(entries: &[&SessionEntry]) -> Vec<Tokens> {
    entries.iter().filter_map(|entry| entry.sizes.head).collect()
}

/// The sizes of all sessions in one line.
pub(crate) fn line(material: &Material<'_>) -> String {
    let (billed, counted) = by_basis(material);
    let mut parts = Vec::new();
    if !billed.is_empty() {
        let factors = billed.iter().filter_map(|entry| main_factor(entry));
        let middle = [
            median(heads(&billed)).map(|head| format!("head {}", display::tokens(head.0))),
            median(factors.collect()).map(|factor| format!("text ×{:.2}", factor.ratio())),
        ];
        let of = match billed.len() {
            0 | 1 => String::new(),
            several => format!(" (medians of {})", many(several, "session", "sessions")),
        };
        let middle = display::joined(middle.into_iter().flatten(), ", ");
        parts.push(format!("billed; {middle}{of}"));
    }
    let declared = heads(&counted);
    let known = many(declared.len(), "session", "sessions");
    let unknown = counted.len() - declared.len();
    if let Some(head) = median(declared) {
        parts.push(format!("counted; head {} declared ({known})", display::tokens(head.0)));
    }
    if unknown > 0 {
        let sessions = many(unknown, "session", "sessions");
        parts.push(format!("counted, head unknown ({sessions})"));
    }
    format!("sizes: {}", parts.join("; "))
}

/// A warning where no size is known, and another where an average mixes both kinds.
pub(crate) fn banners(material: &Material<'_>) -> Vec<Banner> {
    let (billed, counted) = by_basis(material);
    let mut banners = Vec::new();
    if billed.is_empty() && !counted.is_empty() && heads(&counted).is_empty() {
        let sizes = line(material);
        let text = format!(
            "{sizes}: no session says how large its system prompt and tools are, so that prompts are smaller \
             here than they were billed (`window.head_tokens` sets a size)"
        );
        banners.push(BannerLevel::Warning.banner(NoteCode::SizesUnknown, text));
    }
    if !billed.is_empty() && !counted.is_empty() {
        let (billed, counted) = (billed.len(), counted.len());
        let text = format!(
            "averages mix sessions sized as billed ({billed}) and as counted ({counted}): see the table of sizes"
        );
        banners.push(BannerLevel::Warning.banner(NoteCode::SizesMixed, text));
    }
    banners
}

/// The sizes of each session that carries usage, next to its bill.
pub(super) fn section(material: &Material<'_>) -> Section {
    let sessions = material.manifest.sessions.iter();
    let recorded =
        sessions.filter(|entry| entry.sizes.fit.is_some() || !entry.sizes.warnings.is_empty());
    let rows = recorded.clone().map(|entry| super::row(&entry.id, Role::Other, cells(entry)));
    let notes = recorded.flat_map(|entry| {
        let drops = entry.sizes.drops.iter().map(|drop| {
            format!(
                "at call {} the bill fell from {} to {} tokens, and no recorded compaction explains it",
                drop.call, drop.before, drop.after
            )
        });
        let by_bill = (entry.native_window.known_by == KnownBy::Bill).then(|| {
            format!(
                "a larger prompt was billed than its window holds by recording or model; its native window \
                 is taken as {}",
                entry.native_window.tokens
            )
        });
        entry.sizes.warnings.iter().cloned().chain(drops).chain(by_bill).map(|note| format!("{}: {note}", entry.id))
    });
    let section = Section::new("sizes", rows).in_files_if_long();
    section.with_notes(notes)
}

fn cells(entry: &SessionEntry) -> Vec<Cell> {
    let sizes = &entry.sizes;
    let fit = sizes.fit.as_ref();
    let tokens =
        |tokens: Option<Tokens>| tokens.map_or_else(|| Cell::text("unknown"), Cell::tokens);
    let factors = sizes.factors.values().map(|one| format!("{:.2}", one.ratio()));
    let held_out = fit.map(|fit| &fit.held_out);
    vec![
        Cell::text(sizes.sizes.name()),
        tokens(sizes.head),
        Cell::listed(factors, ", ", "1"),
        Cell::text(sizes.thinking.map_or("none", HiddenThinking::name)),
        tokens(fit.map(|fit| fit.first)),
        tokens(fit.map(|fit| fit.median)),
        tokens(fit.map(|fit| fit.last)),
        Cell::share(fit.map(|fit| fit.counted.ratio())),
        predicted(held_out.and_then(|held_out| held_out.second_half)),
        predicted(held_out.and_then(|held_out| held_out.in_a_row)),
        predicted(held_out.and_then(|held_out| held_out.removal)),
        tokens(Some(entry.native_window.tokens)),
    ]
}

fn predicted(prediction: Option<Prediction>) -> Cell {
    Cell::text(prediction.map_or_else(String::new, |found| {
        format!("{:.3} ({:.3})", found.by_anchors.ratio(), found.by_factor.ratio())
    }))
}

/// The factor of the model that most calls of a session had, as far as its manifest tells: of
/// several, the first by name.
fn main_factor(entry: &SessionEntry) -> Option<Factor> {
    entry.sizes.factors.values().next().copied()
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    // Of an even number the lower: a value that a session has.
    values.get(values.len().checked_sub(1)? / 2).copied()
}
