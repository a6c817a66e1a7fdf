//! How prompts were sized: as billed or as counted, and how well that explains the bill.

use crate::record::{Factor, HiddenThinking, KnownBy, SessionEntry, Sizes};
use crate::report::build::Material;
use crate::report::figure::{self, many};
use crate::report::{Banner, BannerLevel, Cell, Column, Role, Section, Table, Value};
use crate::units::Tokens;

/// One line on the sizes of all sessions, and a warning where an average mixes both.
pub(crate) fn banners(material: &Material<'_>) -> Vec<Banner> {
    let sessions = &material.manifest.sessions;
    let is_billed = |entry: &&SessionEntry| entry.sizes.sizes == Sizes::Billed;
    let billed: Vec<&SessionEntry> = sessions.iter().filter(is_billed).collect();
    let counted: Vec<&SessionEntry> = sessions.iter().filter(|entry| !is_billed(entry)).collect();
    let mut parts = Vec::new();
    if !billed.is_empty() {
        let heads = billed.iter().filter_map(|entry| entry.sizes.head);
        let factors = billed.iter().filter_map(|entry| main_factor(entry));
        let middle = [
            median(heads.collect()).map(|head| format!("head {}", figure::tokens(head.0))),
            median(factors.collect()).map(|factor| format!("text ×{:.2}", factor.ratio())),
        ];
        let middle: Vec<String> = middle.into_iter().flatten().collect();
        let of = if billed.len() > 1 {
            format!(
                " (medians of {})",
                many(billed.len(), "session", "sessions")
            )
        } else {
            String::new()
        };
        parts.push(format!("billed; {}{of}", middle.join(", ")));
    }
    let heads: Vec<Tokens> = counted.iter().filter_map(|it| it.sizes.head).collect();
    let unknown = counted.len() - heads.len();
    if let Some(head) = median(heads.clone()) {
        parts.push(format!(
            "counted; head {} declared ({})",
            figure::tokens(head.0),
            many(heads.len(), "session", "sessions")
        ));
    }
    if unknown > 0 {
        parts.push(format!(
            "counted, head unknown ({})",
            many(unknown, "session", "sessions")
        ));
    }
    let mut banners = vec![Banner {
        level: BannerLevel::Note,
        text: format!("sizes: {}", parts.join("; ")),
    }];
    if !billed.is_empty() && !counted.is_empty() {
        banners.push(Banner {
            level: BannerLevel::Warning,
            text: format!(
                "averages mix sessions sized as billed ({}) and as counted ({}): see the table of sizes",
                billed.len(),
                counted.len()
            ),
        });
    }
    banners
}

/// The sizes of each session that carries usage, beside its bill.
pub(super) fn section(material: &Material<'_>) -> Section {
    let sessions = &material.manifest.sessions;
    let recorded: Vec<&SessionEntry> = sessions
        .iter()
        .filter(|entry| entry.sizes.fit.is_some() || !entry.sizes.warnings.is_empty())
        .collect();
    let rows = recorded
        .iter()
        .map(|entry| super::row(&entry.id, Role::Other, cells(entry)));
    let mut notes: Vec<String> = Vec::new();
    for entry in &recorded {
        for warning in &entry.sizes.warnings {
            notes.push(format!("{}: {warning}", entry.id));
        }
        for drop in &entry.sizes.drops {
            notes.push(format!(
                "{}: at call {} the bill fell from {} to {} tokens, and no recorded compaction explains it",
                entry.id, drop.call, drop.before, drop.after
            ));
        }
        if entry.native_window.known_by == KnownBy::Bill {
            notes.push(format!(
                "{}: a larger prompt was billed than its window holds by recording or model; its native window \
                 is taken as {}",
                entry.id, entry.native_window.tokens
            ));
        }
    }
    let rows: Vec<_> = rows.collect();
    Section {
        id: "sizes",
        title: "Sizes of prompts".to_owned(),
        about: "Prompts of the full history up to the first compaction, billed and replayed: the head is what \
                no recording holds (system prompt, tools), text × the billed tokens for each counted one. \
                Held out: the second half of the calls, replayed with what the first half tells, over \
                its bill."
            .to_owned(),
        audience: super::per_session::audience(rows.len()),
        table: Table {
            columns: vec![
                Column::new("session", "session", 0),
                Column::new("sizes", "sizes", 0),
                Column::new("head", "head", 0),
                Column::new("factor", "text ×", 0),
                Column::new("thinking", "hidden thinking", 2),
                Column::new("first", "first billed", 1),
                Column::new("first_replayed", "replayed", 1),
                Column::new("median", "median billed", 1),
                Column::new("median_replayed", "replayed", 1),
                Column::new("last", "last billed", 0),
                Column::new("last_replayed", "replayed", 0),
                Column::new("counted", "counted/billed", 1),
                Column::new("held_out", "held out", 0),
                Column::new("window", "native window", 2),
            ],
            rows,
        },
        notes,
    }
}

fn cells(entry: &SessionEntry) -> Vec<Cell> {
    let sizes = &entry.sizes;
    let fit = sizes.fit.as_ref();
    let tokens = |tokens: Option<Tokens>| match tokens {
        Some(tokens) => Cell::exact(Value::Tokens(tokens.0)),
        None => Cell::text("unknown"),
    };
    let factors: Vec<String> = sizes
        .factors
        .values()
        .map(|factor| format!("{:.2}", factor.ratio()))
        .collect();
    let share = |factor: Option<Factor>| Cell::share(factor.map(Factor::ratio));
    vec![
        Cell::text(sizes.sizes.name()),
        tokens(sizes.head),
        Cell::text(if factors.is_empty() {
            "1".to_owned()
        } else {
            factors.join(", ")
        }),
        Cell::text(sizes.thinking.map_or("none", HiddenThinking::name)),
        tokens(fit.map(|fit| fit.first.billed)),
        tokens(fit.map(|fit| fit.first.replayed)),
        tokens(fit.map(|fit| fit.median.billed)),
        tokens(fit.map(|fit| fit.median.replayed)),
        tokens(fit.map(|fit| fit.last.billed)),
        tokens(fit.map(|fit| fit.last.replayed)),
        share(fit.map(|fit| fit.counted)),
        share(fit.and_then(|fit| fit.held_out)),
        tokens(Some(entry.native_window.tokens)),
    ]
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
