//! Where samples come from: a run or a baseline, and whether two of them may be compared.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Sample;
use crate::metric::fidelity::{Mixed, ReaderId};
use crate::model::ModelKind;
use crate::record::{Arm, CellRecord, Manifest, ModelEntry};
use crate::units::ContentHash;

/// How the manifest names a reader where none is asked.
const NOBODY: &str = "none";

/// All strategies of a run, with what they were measured by.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What decides whether two sources may be compared.
    pub conditions: Conditions,
    /// The sessions with the hash of their content.
    pub sessions: BTreeMap<String, String>,
    /// The strategies, in the order of the run.
    pub strategies: Vec<Sample>,
}

/// What was measured, by whom.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The scenario's name.
    pub scenario: String,
    /// Version of Proctor.
    pub proctor: String,
    /// The token counter.
    pub counter: String,
    /// The window mode.
    pub window: String,
    /// Who writes summaries.
    pub summariser: ModelEntry,
    /// Who answers probes.
    pub reader: ModelEntry,
    /// Who judges answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<ModelEntry>,
    /// What goes wrong on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// Prices in force, one line per session that has any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, String>,
    /// Repeats of each cell.
    pub repeats: u32,
}

/// Something that differs between two sources and should not.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Mismatch {
    /// What: `counter`, `session review-1`.
    pub what: String,
    /// In the baseline.
    pub baseline: String,
    /// In the candidate.
    pub candidate: String,
}

impl Source {
    /// Reduces a run.
    pub fn of(manifest: &Manifest, cells: &[CellRecord]) -> Self {
        let references: BTreeMap<&str, &CellRecord> = cells
            .iter()
            .filter(|cell| cell.arm == Arm::Reference)
            .map(|cell| (cell.session.as_str(), cell))
            .collect();
        let strategies = manifest
            .strategies
            .iter()
            .map(|entry| {
                let own: Vec<&CellRecord> = cells
                    .iter()
                    .filter(|cell| cell.arm == Arm::Strategy && cell.strategy == entry.name)
                    .collect();
                let definition = ContentHash::of(entry.toml.as_bytes()).hex(16);
                let reader = manifest.reader.kind;
                Sample::of(&entry.name, definition, &own, &references, reader)
            })
            .collect();
        let sessions = &manifest.sessions;
        Self {
            conditions: Conditions {
                scenario: manifest.scenario.clone(),
                proctor: manifest.proctor.clone(),
                counter: manifest.counter.clone(),
                window: manifest.window.clone(),
                summariser: manifest.summariser.clone(),
                reader: manifest.reader.clone(),
                judge: manifest.judge.clone(),
                faults: manifest.faults.clone(),
                prices: sessions
                    .iter()
                    .filter_map(|session| {
                        let price = serde_json::to_string(session.price.as_ref()?).ok()?;
                        Some((session.id.clone(), price))
                    })
                    .collect(),
                repeats: manifest.repeats,
            },
            sessions: sessions
                .iter()
                .map(|session| (session.id.clone(), session.hash.clone()))
                .collect(),
            strategies,
        }
    }

    /// Whether nothing in it depends on chance: the same command gives the same numbers.
    pub fn is_deterministic(&self) -> bool {
        let conditions = &self.conditions;
        [
            Some(&conditions.summariser),
            Some(&conditions.reader),
            conditions.judge.as_ref(),
        ]
        .into_iter()
        .flatten()
        .all(|model| match model.kind {
            ModelKind::Deterministic | ModelKind::Scripted => true,
            ModelKind::Live => false,
        })
    }

    /// Whether answers to probes say anything about each other: only if one and the same reader gave
    /// them. Where nobody answered there is nothing to mix.
    pub fn same_reader(&self, candidate: &Self) -> Result<(), Mixed> {
        let reader = |source: &Self| {
            let ModelEntry { name, kind } = source.conditions.reader.clone();
            (name != NOBODY).then_some(ReaderId { kind, model: name })
        };
        match (reader(self), reader(candidate)) {
            (Some(own), Some(other)) => own.compare_with(&other),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// Leaves out what readers answered: the numbers of two readers make no difference.
    pub fn forget_answers(&mut self) {
        let sessions = self
            .strategies
            .iter_mut()
            .flat_map(|sample| sample.sessions.values_mut());
        for probe in sessions.flat_map(|session| session.probes.values_mut()) {
            probe.extract.clear();
            probe.accuracy.clear();
        }
    }

    /// The strategy of this name.
    pub fn strategy(&self, name: &str) -> Option<&Sample> {
        self.strategies
            .iter()
            .find(|sample| sample.strategy == name)
    }

    /// The strategy that stands where `name` stood: the same name; else the only one of the same name
    /// without overrides; else the only one there is.
    pub fn counterpart(&self, name: &str) -> Option<&Sample> {
        self.named(name).or(match self.strategies.as_slice() {
            [one] => Some(one),
            _ => None,
        })
    }

    /// The strategy of this name, or the only one of this name without overrides.
    pub fn named(&self, name: &str) -> Option<&Sample> {
        let base = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
        self.strategy(name).or_else(|| {
            let alike: Vec<&Sample> = self
                .strategies
                .iter()
                .filter(|sample| base(&sample.strategy) == base(name))
                .collect();
            match alike.as_slice() {
                [one] => Some(*one),
                _ => None,
            }
        })
    }

    /// Keeps one strategy only, [named](Self::named) so; false if there is none.
    pub fn keep(&mut self, name: &str) -> bool {
        let kept = self.named(name).cloned();
        self.strategies = kept.into_iter().collect();
        !self.strategies.is_empty()
    }

    /// Leaves out sessions that `other` does not have with the same content.
    pub fn keep_sessions_of(&mut self, other: &Self) {
        self.sessions
            .retain(|id, hash| other.sessions.get(id) == Some(hash));
        for sample in &mut self.strategies {
            sample
                .sessions
                .retain(|id, _| self.sessions.contains_key(id));
        }
    }

    /// What differs between the two that decides results, apart from the strategies themselves.
    pub fn mismatches(&self, candidate: &Self) -> Vec<Mismatch> {
        let (old, new) = (&self.conditions, &candidate.conditions);
        let model = |model: Option<&ModelEntry>| {
            model.map_or_else(
                || "none".to_owned(),
                |m| format!("{} ({:?})", m.name, m.kind),
            )
        };
        let faults = |faults: &Option<String>| faults.clone().unwrap_or_else(|| "none".to_owned());
        let pairs = [
            ("counter", old.counter.clone(), new.counter.clone()),
            ("window", old.window.clone(), new.window.clone()),
            (
                "summariser",
                model(Some(&old.summariser)),
                model(Some(&new.summariser)),
            ),
            ("reader", model(Some(&old.reader)), model(Some(&new.reader))),
            (
                "judge",
                model(old.judge.as_ref()),
                model(new.judge.as_ref()),
            ),
            ("faults", faults(&old.faults), faults(&new.faults)),
        ];
        let mut found: Vec<Mismatch> = pairs
            .into_iter()
            .filter(|(_, baseline, candidate)| baseline != candidate)
            .map(|(what, baseline, candidate)| Mismatch {
                what: what.to_owned(),
                baseline,
                candidate,
            })
            .collect();
        found.extend(maps("session", &self.sessions, &candidate.sessions));
        let shared = |prices: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let both =
                |id: &String| self.sessions.contains_key(id) && candidate.sessions.contains_key(id);
            let kept = prices.iter().filter(|(id, _)| both(id));
            kept.map(|(id, price)| (id.clone(), price.clone()))
                .collect()
        };
        found.extend(maps(
            "prices of",
            &shared(&old.prices),
            &shared(&new.prices),
        ));
        found
    }
}

fn maps(
    what: &str,
    baseline: &BTreeMap<String, String>,
    candidate: &BTreeMap<String, String>,
) -> Vec<Mismatch> {
    let mut ids: Vec<&String> = baseline.keys().chain(candidate.keys()).collect();
    ids.sort();
    ids.dedup();
    let said = |map: &BTreeMap<String, String>, id: &String| {
        map.get(id)
            .cloned()
            .unwrap_or_else(|| "not there".to_owned())
    };
    ids.into_iter()
        .filter(|id| baseline.get(*id) != candidate.get(*id))
        .map(|id| Mismatch {
            what: format!("{what} {id}"),
            baseline: said(baseline, id),
            candidate: said(candidate, id),
        })
        .collect()
}
