//! What a run would send, found out before anything is spent: the same replay, with the offline
//! model in place of a live one, no probes asked and no folder written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::followed::{Followed, Lead};
use super::models;
use super::{ArmIndex, Held, NotReady, Plan, ThreadClock, Unrun, Which, arrange, prepare};
use crate::model::offline::Offline;
use crate::model::{Request, Task};
use crate::probe::judge::{self, Judge, sentinel};
use crate::probe::{self, Probe};
use crate::record::{
    Arm, Asks, CellKey, CellRecord, ForecastCell, ModelEntry, ProbesDue, SentinelsDue,
};
use crate::replay::observe::{Asked, Observer};
use crate::replay::{CellName, Models, PreparedSession, Replay, Replayed, replay_watched};
use crate::tokens::CountedTexts;
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
        let fails_all = |why: &NotReady| fails(arms[0], Unrun::NotReady(why).to_string());
        let held = loaded.open(&self.scenario).map_err(|why| fails_all(&why))?;
        let due = Self::probes_due(&held, &loaded.probes);
        let prepared = prepare(self, &held, Vec::new()).map_err(NotReady::from);
        let mut cells = Vec::new();
        for arm in arms.iter().copied() {
            if matches!(arm.which, Which::Empty) {
                continue;
            }
            let prepared = prepared
                .as_ref()
                .map_err(|error| fails(arm, Unrun::NotReady(error).to_string()))?;
            let (record, asks) = self
                .forecast_cell(prepared, (session, &held), arm, &followed)
                .map_err(|why| fails(arm, why.to_string()))?;
            followed.over(&record.key(), Some(&record));
            // A second answer qualifies a probe; one of the summaries alone is never longer than that.
            let models = &self.scenario.models;
            let is_twice = match arm.which {
                Which::Full | Which::Empty => models.asking.qualifies,
                Which::Strategy(_) => models.asking.summaries,
            };
            let answers = u64::from(models.answers) + u64::from(is_twice);
            let verdicts = answers * u64::from(models.judgements);
            let due = due.iter();
            let due = due.map(|(call, due)| (*call, due.times(answers, verdicts)));
            let due: BTreeMap<usize, ProbesDue> = due.collect();
            let is_shown = record.arm == Arm::Reference && !due.is_empty();
            cells.push(ForecastCell {
                sentinels: if is_shown {
                    sentinels(&held.counts)
                } else {
                    SentinelsDue::default()
                },
                record,
                asks,
                probes: due,
            });
        }
        Ok(cells)
    }

    /// The judges, in the order of the scenario.
    pub fn judges(&self) -> Vec<ModelEntry> {
        models::judges(&self.scenario.models)
    }

    /// What readers and judges are asked at each call of a session.
    fn probes_due(held: &Held, probes: &[Probe]) -> BTreeMap<usize, ProbesDue> {
        let mut due: BTreeMap<usize, ProbesDue> = BTreeMap::new();
        for item in &probe::items(&held.session, probes) {
            let probe = &probes[item.probe];
            let before = held.session.calls()[item.call];
            let questions = judge::questions(None, &[], probe);
            let gold = judge::gold_in_words(&probe.gold, before);
            let gold = held.counts.size(&Arc::from(gold)).tokens;
            let at = due.entry(item.call).or_default();
            at.items += 1;
            for question in &questions {
                at.questions += 1;
                at.question_tokens += input(question, &held.counts);
                at.gold_tokens += gold;
            }
            // Rules confirm what is exact; which answers are is not known before.
            at.judged += 1;
            at.judge_tokens += input(&Judge { probes }.request(probe, before, ""), &held.counts);
            at.judged_gold += gold;
        }
        due
    }

    fn forecast_cell(
        &self,
        prepared: &PreparedSession,
        (session, held): (usize, &Held),
        arm: ArmIndex,
        followed: &Followed,
    ) -> Result<(CellRecord, Asks), Unrun<'_>> {
        let models = Models {
            summariser: Arc::new(Offline::new(held.counts.clone())),
            reader: None,
            judge: None,
            times: crate::replay::Times::default(),
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
                    match followed.lead(&key) {
                        Lead::Sizes(sizes) => spec = spec.beside(sizes),
                        Lead::NotMeasurable => {
                            let replay = Replay::not_measurable(prepared, name, &models);
                            return Ok((replay.record, Asks::new()));
                        }
                        Lead::Broken => return Err(Unrun::NothingToFollow),
                    }
                }
                let native = self.manifest.sessions[session].native_window;
                arrange(&spec, self, prepared, native)
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

/// Tokens of a request.
fn input(request: &Request, counts: &CountedTexts) -> Tokens {
    let blocks = request.messages.iter().flat_map(|message| message.blocks());
    let system = request.system.iter().map(|text| counts.size(text));
    let sizes = blocks.map(|block| counts.block(&block)).chain(system);
    sizes.map(|size| size.tokens).sum()
}

fn sentinels(counts: &CountedTexts) -> SentinelsDue {
    let mut due = SentinelsDue::default();
    for sentinel in sentinel::sentinels() {
        due.calls += 1;
        due.tokens += input(&sentinel.request(), counts);
    }
    due
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
