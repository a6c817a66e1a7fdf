//! Whether probes hold what they promise: that the full history answers them, and nothing else does.

use std::collections::BTreeSet;

use super::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use crate::record::{Fate, ProbeRecord};

/// A probe that does not hold what it promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsoundProbe {
    /// The probe's id.
    pub probe: String,
    /// Why, in words.
    pub problem: String,
}

/// Replays the session as `full` and as `empty`, and names every probe that does not survive in the
/// first at each point where it is asked, or is in the second, and every decoy that is found; in
/// the order of their ids.
///
/// One that is never asked, because its answer comes after the last call, is named as well.
pub fn unsound(prepared: &PreparedSession) -> Vec<UnsoundProbe> {
    let models = Models::offline(prepared.counts());
    let cell = |strategy: &str, replayed| {
        let name = CellName::first(strategy);
        replay(prepared, name, replayed, &models, &NoClock).record
    };
    let full = cell("full", Replayed::Full);
    let empty = cell("empty", Replayed::Empty);
    let items = || {
        let full = full.probes.iter().map(|item| (item, true));
        full.chain(empty.probes.iter().map(|item| (item, false)))
    };
    let ids: BTreeSet<&String> = prepared.probes().iter().map(|probe| &probe.id).collect();
    let unsound = |probe: &String| {
        let mut own = items().filter(|(item, _)| item.probe == *probe).peekable();
        let problem = match own.peek() {
            None => Some("it is never asked: nothing answers it before the last call".to_owned()),
            Some(_) => own.find_map(|(item, is_full)| problem(item, is_full)),
        };
        let (probe, problem) = (probe.clone(), problem?);
        Some(UnsoundProbe { probe, problem })
    };
    ids.into_iter().filter_map(unsound).collect()
}

/// Why an item is not as it should be under full history, or under none.
fn problem(item: &ProbeRecord, is_full: bool) -> Option<String> {
    let is_found = item.survival.fate == Fate::Kept;
    let is_lost = matches!(item.survival.fate, Fate::Lost | Fate::Reachable);
    let problem = match (is_full, item.kind.is_never_said()) {
        (true, false) if !is_found => "does not stand in the full history as it should",
        (true, true) if !is_lost => "is a decoy, and its value is there",
        (false, _) if !is_lost => "stands in the system prompt or the tools",
        _ => return None,
    };
    let fate = format!("{:?}", item.survival.fate).to_lowercase();
    Some(format!(
        "{problem} at {} % of the session ({fate})",
        item.percent
    ))
}
