//! The evidence: every probe item with its question, its value and its fate, what was lost first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::metric::survival::is_planted;
use crate::record::words::{GradeVerdict, HIGH_WEIGHT};
use crate::record::{Arm, Fate, ProbeRecord};
use crate::report::template::InternedRows;
use crate::report::{AskedItem, RenderError, Report, Row, asked_items, display};

/// Probe items that are part of the page.
pub(super) const MOST: usize = 20_000;

/// All items of a run, and its sessions.
pub(super) struct Evidence<'a> {
    /// What was lost first, decoys last.
    pub(super) items: Vec<AskedItem<'a>>,
    /// The sessions that lost most come first; losses of broken strategies do not count.
    pub(super) sessions: Vec<&'a str>,
}

impl<'a> Evidence<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let rows = report.compared().iter();
        let (broken, sound): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.is_broken());
        let [broken, sound] =
            [broken, sound].map(|rows| rows.iter().map(|row| &*row.name).collect::<BTreeSet<_>>());
        let mut items = asked_items(&report.records);
        items.retain(|AskedItem { cell, .. }| {
            broken.contains(&*cell.strategy) || sound.contains(&*cell.strategy)
        });
        items.sort_by_key(|AskedItem { cell, probe, .. }| {
            let decoy = !is_planted(probe.kind);
            // The worst first: that a decoy is there.
            let fate = probe.survival.fate as u8;
            let fate = if decoy { fate } else { u8::MAX - fate };
            let is_broken = broken.contains(&*cell.strategy);
            (cell.arm == Arm::Floor, decoy, fate, is_broken, probe.weight < HIGH_WEIGHT)
        });
        let mut losses: BTreeMap<&str, usize> = BTreeMap::new();
        for AskedItem { cell, .. } in items.iter().filter(|AskedItem { cell, probe, .. }| {
            cell.arm == Arm::Strategy
                && sound.contains(&*cell.strategy)
                && is_planted(probe.kind)
                && probe.survival.fate == Fate::Lost
        }) {
            *losses.entry(&cell.session).or_default() += 1;
        }
        let mut sessions: Vec<&str> = report.first_cells().map(|cell| &*cell.session).collect();
        sessions.dedup();
        let first = report.first_session.as_deref();
        sessions.sort_by_key(|session| {
            (first != Some(*session), Reverse(losses.get(session).copied()))
        });
        Self { items, sessions }
    }

    /// The items as data of the page.
    pub(super) fn data(&self) -> Result<String, RenderError> {
        InternedRows::data(self.items.iter().take(MOST).map(columns))
    }
}

/// One item as the texts of its columns.
fn columns(AskedItem { cell, probe, text }: &AskedItem<'_>) -> Vec<String> {
    let [question, gold] = text.map_or(["not recorded"; 2], |text| [&*text.question, &*text.gold]);
    let (said, verdict) = match &probe.answer {
        None => ("–".to_owned(), "not asked".to_owned()),
        Some(answer) => (
            answer.text.clone().unwrap_or("no answer".to_owned()),
            verdict(probe.verdict().unwrap_or(answer.typed)),
        ),
    };
    let mut kind = probe.kind.name().to_owned();
    if !is_planted(probe.kind) {
        kind += " (never planted)";
    }
    let lost_at = probe.survival.lost_at.as_ref();
    vec![
        question.to_owned(),
        gold.to_owned(),
        left(probe),
        cell.strategy.clone(),
        cell.session.clone(),
        kind,
        format!("{} %, call {}", probe.percent, probe.call),
        said,
        verdict,
        state(probe),
        lost_at.map_or_else(String::new, |at| at.call.to_string()),
    ]
}

/// The fate, for the filter: a decoy that is not there was never lost.
fn state(probe: &ProbeRecord) -> String {
    match (is_planted(probe.kind), probe.survival.fate) {
        (true, fate) => display::name_of(&fate),
        (false, Fate::Lost) => "decoy, not there (right)".to_owned(),
        (false, _) => "decoy, found (wrong)".to_owned(),
    }
}

/// The fate with its place and its cause.
fn left(probe: &ProbeRecord) -> String {
    let mut left = state(probe);
    if let Some(place) = probe.survival.place {
        let _ = write!(left, " in what is {}", format!("{place:?}").to_lowercase());
    }
    if let Some(said) = probe.survival.changed_to() {
        let _ = write!(left, " to \"{}\"", display::short_fact(said));
    }
    let lost = probe.survival.lost_at.as_ref();
    if let Some(lost) = lost.filter(|_| is_planted(probe.kind)) {
        let _ = write!(left, "; lost at call {} by {}", lost.call, lost.stage);
        if !lost.reason.is_empty() {
            let _ = write!(left, " ({})", lost.reason);
        }
    }
    left
}

fn verdict(verdict: GradeVerdict) -> String {
    match verdict.scored() {
        Some((score, outcome)) => format!("{}, {score:.2}", display::name_of(&outcome)),
        None => "not scored".to_owned(),
    }
}
