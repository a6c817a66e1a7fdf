//! What a run would send, found out before anything is spent: the same replay, with the offline
//! model in place of a live one, no probes asked and no folder written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::followed::Followed;
use super::{ArmIndex, Plan, ThreadClock, Unrun, Which, arrange, prepare};
use crate::model::Task;
use crate::model::offline::Offline;
use crate::probe;
use crate::record::{Asks, CellKey, CellRecord, ForecastCell};
use crate::replay::observe::{Asked, Observer};
use crate::replay::{CellName, Models, PreparedSession, Replay, Replayed, replay_watched};
use crate::units::Tokens;

/// A cell that could not be forecast: a mistake in Proctor.
#[derive(Debug, thiserror::Error)]
#[error("`{cell}` cannot be forecast: {why}")]
pub struct ForecastError {
    cell: CellKey,
    why: String,
}

impl Plan {
    /// Replays every cell of a strategy, and the reference, as [`super::run`] would, and returns
    /// them in the order in which they are run.
    ///
    /// What is forecast is what `run` records for strategies that ask no live model: nothing here is
    /// estimated. Where a live model would write, the offline model writes instead, and
    /// [`ForecastCell::asks`] says how long the answer may be.
    pub fn forecast(&self) -> Result<Vec<ForecastCell>, ForecastError> {
        let sessions = (0..self.sessions.len()).into_par_iter();
        let cells: Vec<Vec<ForecastCell>> = sessions
            .map(|session| self.forecast_session(session))
            .collect::<Result<_, _>>()?;
        Ok(cells.into_iter().flatten().collect())
    }

    fn forecast_session(&self, session: usize) -> Result<Vec<ForecastCell>, ForecastError> {
        let loaded = &self.sessions[session];
        let fails = |arm: ArmIndex, why: String| ForecastError {
            cell: self.key(session, arm),
            why,
        };
        // Those that follow another stand behind all others.
        let arms = self.arms(session);
        let wanted: BTreeSet<CellKey> = arms
            .iter()
            .filter_map(|arm| Some(self.key(session, self.followed_by(*arm)?)))
            .collect();
        let followed = Followed::new(wanted, []);
        let items = probe::items(&loaded.session, &loaded.probes);
        let mut asked_at: BTreeMap<usize, u64> = BTreeMap::new();
        for item in &items {
            *asked_at.entry(item.call).or_default() += 1;
        }
        let prepared = prepare(self, loaded, Vec::new());
        let mut cells = Vec::new();
        for arm in arms {
            if matches!(arm.which, Which::Empty) {
                continue;
            }
            let prepared = prepared
                .as_ref()
                .map_err(|error| fails(arm, Unrun::Needles(error).to_string()))?;
            let (record, asks) = self
                .forecast_cell(prepared, session, arm, &followed)
                .map_err(|why| fails(arm, why.to_string()))?;
            followed.over(&record.key(), Some(&record));
            // A second answer qualifies a probe; one of the summaries alone is never longer than that.
            let asking = self.scenario.models.asking;
            let is_twice = match arm.which {
                Which::Full | Which::Empty => asking.qualifies,
                Which::Strategy(_) => asking.summaries,
            };
            let times = 1 + u64::from(is_twice);
            let asked = asked_at
                .iter()
                .map(|(call, probes)| (*call, probes * times));
            cells.push(ForecastCell {
                record,
                asks,
                probes: asked.collect(),
            });
        }
        Ok(cells)
    }

    fn forecast_cell(
        &self,
        prepared: &PreparedSession,
        session: usize,
        arm: ArmIndex,
        followed: &Followed,
    ) -> Result<(CellRecord, Asks), Unrun<'_>> {
        let models = Models {
            summariser: Arc::new(Offline::new(self.sessions[session].counts.clone())),
            reader: None,
            judge: None,
        };
        let name = CellName {
            strategy: self.name_of(arm),
            repeat: arm.repeat,
        };
        let replayed = match arm.which {
            Which::Full | Which::Empty => Ok(Replayed::Full),
            Which::Strategy(at) => {
                let mut spec = self.scenario.strategies[at].clone();
                if let Some(other) = self.followed_by(arm) {
                    let key = self.key(session, other);
                    spec = spec.beside(followed.sizes(&key).ok_or(Unrun::NothingToFollow)?);
                }
                arrange(&spec, self, prepared)
            }
        };
        let seen = Arc::new(Mutex::new(Asks::new()));
        let replay = match replayed {
            Ok(replayed) => {
                let ceilings: Box<dyn Observer> = Box::new(Ceilings(seen.clone()));
                let more = vec![ceilings];
                replay_watched(prepared, name, replayed, &models, &ThreadClock, more)
            }
            Err(error) => Replay::failed(prepared, name, &models, &error),
        };
        let asks = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((replay.record, asks))
    }
}

/// Notes how long each answer may be.
#[derive(Debug)]
struct Ceilings(Arc<Mutex<Asks>>);

impl Observer for Ceilings {
    fn asked(&mut self, asked: &Asked) {
        // An answer that the recording holds is asked of nobody.
        if !matches!(asked.request.task, Task::Recorded { .. }) {
            let longest: Tokens = asked.request.max_output;
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(asked.number, longest);
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}
