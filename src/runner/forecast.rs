//! What a run would send, found out before anything is spent: the same replay, with the offline
//! model in place of a live one, no probes asked and no folder written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::followed::Followed;
use super::models;
use super::{ArmIndex, Held, NotReady, Plan, Unrun, Which, prepare, replay_arm};
use crate::model::offline::Offline;
use crate::model::{Request, Task};
use crate::probe::judge::{self, Judge, sentinel};
use crate::probe::{Item, Probe, Selection};
use crate::record::{
    Arm, Asks, CellKey, CellRecord, ForecastCell, ModelEntry, ProbesDue, SentinelsDue,
};
use crate::replay::observe::{Asked, Observer};
use crate::replay::{Models, PreparedSession};
use crate::tokens::CountedTexts;
use crate::units::Tokens;

mod prompts;

use prompts::{AtPoints, Found, ReaderPrompts};

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
        let prepared = prepare(self, &held, Vec::new()).map_err(NotReady::from);
        let points = self
            .scenario
            .selection
            .ask_points(held.session.calls().len());
        let asked_at = Arc::new(points.into_iter().map(|(_, call)| call).collect());
        let scheme = prompts::scheme_of(self.scenario.models.reader.as_ref(), &self.prices);
        let asked = ReaderPrompts::new(&held.session, &held.counts, scheme);
        let asked = Arc::new(Mutex::new(asked));
        let mut cells = Vec::new();
        for arm in arms.iter().copied() {
            if matches!(arm.which, Which::Empty) {
                continue;
            }
            let prepared = prepared
                .as_ref()
                .map_err(|error| fails(arm, Unrun::NotReady(error).to_string()))?;
            let found = Found::default();
            let at_points = AtPoints {
                calls: Arc::clone(&asked_at),
                prompts: asked.clone(),
                found: found.clone(),
            };
            let (record, Seen { longest, sent }) = self
                .forecast_cell(prepared, (session, &held), arm, &followed, at_points)
                .map_err(|why| fails(arm, why.to_string()))?;
            followed.over(&record.key(), Some(&record));
            let prompts = std::mem::take(&mut *locked(&found));
            // The floor is asked behind the reference.
            let floor = (record.arm == Arm::Reference).then(|| {
                let prompt = locked(&asked).floor();
                (prompt, ProbesDue::default())
            });
            cells.push(ForecastCell {
                record,
                asks: longest,
                sent,
                prompts,
                floor,
                probes: BTreeMap::new(),
                paid: BTreeMap::new(),
                sentinels: SentinelsDue::default(),
            });
        }
        self.fill_in(
            &mut cells,
            (&held, &loaded.probes),
            &self.scenario.selection,
        );
        Ok(cells)
    }

    /// Asks what is selected in place of what was, of the same cells: no prompt is made again. Only
    /// points of the plan's own selection have prompts.
    pub fn ask_instead(
        &self,
        cells: &mut [ForecastCell],
        selection: &Selection,
    ) -> Result<(), ForecastError> {
        for own in cells.chunk_by_mut(|one, next| one.record.session == next.record.session) {
            let cell = own[0].record.key();
            let mut loaded = self.sessions.iter();
            let Some(loaded) = loaded.find(|loaded| loaded.id == cell.session) else {
                continue;
            };
            let held = loaded.open(&self.scenario).map_err(|why| ForecastError {
                why: Unrun::NotReady(&why).to_string(),
                cell,
            })?;
            self.fill_in(own, (&held, &loaded.probes), selection);
        }
        Ok(())
    }

    /// Says of the cells of one session what readers and judges are asked in them.
    fn fill_in(
        &self,
        cells: &mut [ForecastCell],
        (held, probes): (&Held, &[Probe]),
        selection: &Selection,
    ) {
        let due = Self::items_due(held, probes, selection);
        // A question that was put to the same prompt before is answered from the cassette.
        let mut asked: BTreeSet<(u64, usize, u32)> = BTreeSet::new();
        // Where all arms answer alike, the first answer is judged for all of them.
        let mut judged: BTreeSet<(usize, usize)> = BTreeSet::new();
        let models = &self.scenario.models;
        for cell in cells {
            let is_reference = cell.record.arm == Arm::Reference;
            // A second answer qualifies a probe; one of the summaries alone is never longer than that.
            let is_twice = if is_reference {
                models.asking.qualifies
            } else {
                models.asking.summaries
            };
            let answers = u64::from(models.answers) + u64::from(is_twice);
            let verdicts = answers * u64::from(models.judgements);
            let repeat = cell.record.repeat;
            cell.probes = BTreeMap::new();
            cell.paid = BTreeMap::new();
            for (item, due) in &due {
                let due = due.times(answers, verdicts);
                cell.probes.entry(item.call).or_default().add(due);
                let Some(prompt) = cell.prompts.get(&item.call) else {
                    continue;
                };
                if asked.insert((prompt.id, item.probe, repeat)) {
                    let mut paid = due;
                    if !judged.insert((item.probe, item.call)) {
                        paid.different = 0;
                    }
                    cell.paid.entry(item.call).or_default().add(paid);
                }
            }
            if let Some((prompt, floor)) = &mut cell.floor {
                *floor = ProbesDue::default();
                for (item, due) in &due {
                    if asked.insert((prompt.id, item.probe, repeat)) {
                        floor.add(due.times(answers, verdicts));
                    }
                }
            }
            cell.sentinels = if is_reference && !due.is_empty() {
                sentinels(&held.counts)
            } else {
                SentinelsDue::default()
            };
        }
    }

    /// The shortest prompt that the summariser's provider bills as written to its cache; nothing where
    /// writing costs what input costs.
    pub fn summaries_written_from(&self) -> Option<Tokens> {
        let scheme = prompts::scheme_of(Some(&self.scenario.models.summariser), &self.prices);
        scheme.rates.write.map(|_| scheme.minimum)
    }

    /// The judges, in the order of the scenario.
    pub fn judges(&self) -> Vec<ModelEntry> {
        models::judges(&self.scenario.models)
    }

    /// What readers and judges are asked of each item of a session, once.
    fn items_due(held: &Held, probes: &[Probe], selection: &Selection) -> Vec<(Item, ProbesDue)> {
        let items = selection.items(&held.session, probes).into_iter();
        let due = items.map(|item| {
            let probe = &probes[item.probe];
            let before = held.session.calls()[item.call];
            let questions = judge::questions(None, &[], probe);
            let gold = probe.fact.in_words(before);
            let gold = held.counts.size(&Arc::from(gold)).tokens;
            let mut due = ProbesDue {
                items: 1,
                ..ProbesDue::default()
            };
            for question in &questions {
                due.questions += 1;
                due.question_tokens += input(question, &held.counts);
                due.gold_tokens += gold;
            }
            // Rules confirm what is exact; which answers are is not known before.
            due.judged = 1;
            due.different = 1;
            due.judge_tokens = input(&Judge { probes }.request(probe, before, ""), &held.counts);
            due.judged_gold = gold;
            (item, due)
        });
        due.collect()
    }

    fn forecast_cell(
        &self,
        prepared: &PreparedSession,
        (session, held): (usize, &Held),
        arm: ArmIndex,
        followed: &Followed,
        at_points: AtPoints,
    ) -> Result<(CellRecord, Seen), Unrun<'_>> {
        let models = Models {
            summariser: Arc::new(Offline::new(held.counts.clone())),
            reader: None,
            judge: None,
            times: crate::replay::Times::default(),
        };
        let seen = Arc::new(Mutex::new(Seen::default()));
        let requests: Box<dyn Observer> = Box::new(Requests(seen.clone(), held.counts.clone()));
        let more = vec![requests, Box::new(at_points)];
        let replay = replay_arm(self, (session, prepared), arm, followed, &models, more)?;
        let seen = std::mem::take(&mut *locked(&seen));
        Ok((replay.record, seen))
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The requests that a strategy makes of a model, by the number of the call.
#[derive(Debug, Default)]
struct Seen {
    /// The longest answer that each may get.
    longest: Asks,
    /// Tokens that each sends.
    sent: Asks,
}

/// Notes the requests of a strategy.
#[derive(Debug)]
struct Requests(Arc<Mutex<Seen>>, Arc<CountedTexts>);

impl Observer for Requests {
    fn asked(&mut self, asked: &Asked) {
        // An answer that the recording holds is asked of nobody.
        if !matches!(asked.request.task, Task::Recorded { .. }) {
            let mut seen = locked(&self.0);
            seen.longest.insert(asked.number, asked.request.max_output);
            let sent = prompts::sent_tokens(&asked.request, &self.1);
            seen.sent.insert(asked.number, sent);
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}
