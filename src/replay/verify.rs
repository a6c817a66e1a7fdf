//! Whether probes hold what they promise: that the full history answers them, and nothing else does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use crate::model::offline::Offline;
use crate::record::{CellRecord, Fate};

/// A probe that does not hold what it promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound {
    /// The probe's id.
    pub probe: String,
    /// Why, in words.
    pub problem: String,
}

/// Replays the session as `full` and as `empty`, and names every probe that does not survive in the
/// first at each point where it is asked, or stands in the second, and every decoy that is found;
/// in the order of their ids.
///
/// One that is never asked, because its answer comes after the last call, is named as well.
pub fn unsound(prepared: &PreparedSession) -> Vec<Unsound> {
    let models = Models {
        summariser: Arc::new(Offline::new(prepared.counts().clone())),
        reader: None,
        judge: None,
        times: crate::replay::Times::default(),
    };
    let cell = |strategy: &str, replayed| {
        let name = CellName {
            strategy: strategy.to_owned(),
            repeat: 0,
        };
        replay(prepared, name, replayed, &models, &NoClock).record
    };
    let full = cell("full", Replayed::Full);
    let empty = cell("empty", Replayed::Empty);
    let mut problems: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for probe in prepared.probes() {
        problems.insert(
            &probe.id,
            Some("it is never asked: nothing answers it before the last call".into()),
        );
    }
    let mut note = |record: &CellRecord, is_full: bool| {
        for item in &record.probes {
            let is_decoy = item.kind.is_never_said();
            let is_found = item.survival.fate == Fate::Survived;
            let is_lost = matches!(item.survival.fate, Fate::Lost | Fate::Reachable);
            let problem = match (is_full, is_decoy) {
                (true, false) if !is_found => {
                    Some("does not stand in the full history as it should")
                }
                (true, true) if !is_lost => Some("is a decoy, and its value is there"),
                (false, _) if !is_lost => Some("stands in the system prompt or the tools"),
                _ => None,
            };
            let Some(entry) = prepared
                .probes()
                .iter()
                .find(|probe| probe.id == item.probe)
            else {
                continue;
            };
            let known = problems.entry(&entry.id).or_default();
            let is_asked = known
                .as_ref()
                .is_some_and(|known| known.starts_with("it is never"));
            if is_asked {
                *known = None;
            }
            if let Some(problem) = problem
                && known.is_none()
            {
                let fate = format!("{:?}", item.survival.fate).to_lowercase();
                *known = Some(format!(
                    "{problem} at {} % of the session ({fate})",
                    item.percent
                ));
            }
        }
    };
    note(&full, true);
    note(&empty, false);
    problems
        .into_iter()
        .filter_map(|(probe, problem)| {
            Some(Unsound {
                probe: probe.to_owned(),
                problem: problem?,
            })
        })
        .collect()
}
