//! Whether probes hold what they promise: that the full history answers them, and nothing else does.

use std::collections::BTreeMap;

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
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, replayed) in [("full", Replayed::Full), ("empty", Replayed::Empty)] {
        let cell = CellName::first(name);
        let record = replay(prepared, cell, replayed, &models, &NoClock).record;
        for item in &record.probes {
            let known = found.entry(item.probe.clone()).or_default();
            *known = known.take().or_else(|| problem(item, name == "full"));
        }
    }
    for probe in prepared.probes() {
        let never = "it is never asked: nothing answers it before the last call";
        let of_probe = found.entry(probe.id.clone());
        of_probe.or_insert_with(|| Some(never.to_owned()));
    }
    let probes = found.into_iter();
    probes.filter_map(|(probe, found)| Some(UnsoundProbe { probe, problem: found? })).collect()
}

/// Why an item is not as it should be under full history, or under none.
fn problem(item: &ProbeRecord, is_full: bool) -> Option<String> {
    let kept = item.survival.fate == Fate::Kept;
    let lost = matches!(item.survival.fate, Fate::Lost | Fate::Reachable);
    let problem = match (is_full, item.kind.is_never_said()) {
        (true, false) if !kept => "does not stand in the full history as it should",
        (true, true) if !lost => "is a decoy, and its value is there",
        (false, _) if !lost => "stands in the system prompt or the tools",
        _ => return None,
    };
    let fate = format!("{:?}", item.survival.fate).to_lowercase();
    Some(format!("{problem} at {} % of the session ({fate})", item.percent))
}
