//! The forecast of a run: the same replay, with the offline model in place of a live one, no probes
//! asked and no folder written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::dependencies::Dependencies;
use super::{ArmIndex, ArmKind, CellError, LoadedSession, Plan, prepare, replay_arm};
use super::{loaded, models};
use crate::model::Request;
use crate::model::timing::ServerTiming;
use crate::probe::Specified as _;
use crate::probe::judge::{self, Judge, JudgeTask, known_answer};
use crate::probe::{Asking, Item, Selection};
use crate::record::{Arm, CellKey, ForecastCell, ModelEntry, ProbesDue, PromptDue, SentinelsDue};
use crate::replay::Models;
use crate::scenario::ModelSetting;
use crate::tokens::CountedTexts;
use crate::units::Tokens;

mod prompts;

use prompts::{PromptWatch, ReaderPrompts};

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
    /// For strategies that ask no live model, the cells are those that `run` records: nothing here is
    /// estimated. Where a live model would write, the offline model writes instead, and
    /// [`ForecastCell::asks`] says how long the answer may be.
    pub fn forecast(&self) -> Result<Vec<ForecastCell>, ForecastError> {
        let sessions = (0..self.sessions.len()).into_par_iter();
        let cells: Vec<Vec<ForecastCell>> =
            sessions.map(|session| self.forecast_session(session)).collect::<Result<_, _>>()?;
        Ok(cells.into_iter().flatten().collect())
    }

    /// How long calls of a model of the run itself take, where its server was timed or a price file says it.
    pub fn timing_of(&self, model: &str) -> Option<ServerTiming> {
        let mut homes = self.scenario.models.homes();
        let own = homes.find(|(live, _)| live.dialect.model == model);
        let priced = self.asked_prices.of(model).and_then(|(_, price)| price.latency);
        own.and_then(|(_, home)| home.timing).or(priced.map(ServerTiming::from))
    }

    fn forecast_session(&self, session: usize) -> Result<Vec<ForecastCell>, ForecastError> {
        let loaded = &self.sessions[session];
        let fails =
            |arm: ArmIndex, why: String| ForecastError { cell: self.key(session, arm), why };
        // Strategies that follow another come last.
        let arms = self.arms(session);
        let leads = arms.iter().filter_map(|arm| self.followed_cell(&self.key(session, *arm)));
        let followed = Dependencies::new(leads.collect(), []);
        let prepared = prepare(self, loaded, Vec::new())
            .map_err(|why| fails(arms[0], CellError::NotReady(&why).to_string()))?;
        let (texts, counts) = (prepared.session(), prepared.counts());
        let models = Models::offline(counts);
        // A smaller selection asks some of these.
        let all = Selection { items: None, ..self.scenario.selection.clone() };
        let mut asked: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for item in loaded.items(&all) {
            asked.entry(item.call).or_default().push(item.probe);
        }
        let scheme = prompts::scheme_of(self.scenario.models.reader.as_ref(), &self.asked_prices);
        let mut prompts = ReaderPrompts::new(texts, counts, scheme);
        let mut cells = Vec::new();
        for arm in arms.into_iter().filter(|arm| !matches!(arm.kind, ArmKind::Empty)) {
            let window = self.scenario.models.asking.window;
            let watch = Box::new(PromptWatch {
                prompts: &mut prompts,
                probes: &loaded.probes,
                asked: &asked,
                window: window.filter(|_| matches!(arm.kind, ArmKind::Full)),
            });
            let of = (session, &prepared);
            let replay = replay_arm(self, of, arm, &followed, &models, vec![watch]);
            let record = replay.map_err(|why| fails(arm, why.to_string()))?.record;
            followed.finish(&record.key(), Some(&record));
            let cell = std::mem::take(&mut prompts.found);
            // The floor is asked after the reference.
            let floor =
                (record.arm == Arm::Reference).then(|| (prompts.floor(), ProbesDue::default()));
            cells.push(ForecastCell { record, floor, ..cell });
        }
        self.fill_in(&mut cells, loaded, &self.scenario.selection);
        Ok(cells)
    }

    /// Replaces the selection of the same cells: no prompt is made again. Only points of the plan's
    /// own selection have prompts.
    pub fn ask_instead(&self, cells: &mut [ForecastCell], selection: &Selection) {
        for own in cells.chunk_by_mut(|one, next| one.record.session == next.record.session) {
            let mut loaded = self.sessions.iter();
            if let Some(loaded) = loaded.find(|loaded| loaded.id() == own[0].record.session) {
                self.fill_in(own, loaded, selection);
            }
        }
    }

    /// Says of the cells of one session what readers and judges are asked in them.
    fn fill_in(&self, cells: &mut [ForecastCell], loaded: &LoadedSession, selection: &Selection) {
        let Ok(counts) = loaded::counts_of(&self.scenario.counter, None) else {
            // The sessions were counted by it.
            return;
        };
        let due = items_due(loaded, selection, &counts);
        // A question that was put to the same prompt before is answered from the cassette.
        let mut asked: BTreeSet<(u64, usize, u32)> = BTreeSet::new();
        // Where all arms answer alike, the first answer is judged for all of them.
        let mut judged: BTreeSet<(usize, usize)> = BTreeSet::new();
        let models = &self.scenario.models;
        let reader = match &models.reader {
            Some(ModelSetting::Live(live)) => live.home,
            _ => None,
        };
        for cell in cells {
            let reference = cell.record.arm == Arm::Reference;
            // A second answer qualifies a probe; one of the summaries alone is never longer than that.
            let twice = if reference { models.asking.qualifies } else { models.asking.summaries };
            let answers = u64::from(models.answers) + u64::from(twice);
            let verdicts = answers * u64::from(models.judgements);
            let repeat = cell.record.repeat;
            cell.probes = BTreeMap::new();
            cell.paid = BTreeMap::new();
            // A cell that is not measurable is asked nothing from there on.
            let end = &cell.record.end;
            let stops = end.call().filter(|_| !end.is_measured());
            for (item, questions) in &due {
                if stops.is_some_and(|stops| item.call >= stops) {
                    continue;
                }
                let due = questions.times(answers, verdicts);
                *cell.probes.entry(item.call).or_default() += due;
                let prompt = match cell.evidence.get(&(item.call, item.probe)) {
                    Some(evidence) => *evidence,
                    None => cell.prompts.get(&item.call).copied(),
                };
                // A server refuses what its window does not hold, and reads nothing of it.
                let Some(prompt) = prompt.filter(|prompt: &PromptDue| {
                    let sent = prompt.tokens + due.question_tokens;
                    reader.is_none_or(|home| home.holds(sent))
                }) else {
                    continue;
                };
                if asked.insert((prompt.id, item.probe, repeat)) {
                    let mut paid = due;
                    if !judged.insert((item.probe, item.call)) {
                        paid.different = 0;
                    }
                    let prompts = cell.paid.entry(item.call).or_default();
                    match prompts.iter_mut().find(|(known, _)| known.id == prompt.id) {
                        Some((_, sum)) => *sum += paid,
                        None => prompts.push((prompt, paid)),
                    }
                }
            }
            if let Some((prompt, floor)) = &mut cell.floor {
                *floor = ProbesDue::default();
                for (item, due) in &due {
                    if asked.insert((prompt.id, item.probe, repeat)) {
                        *floor += due.times(answers, verdicts);
                    }
                }
            }
            cell.sentinels = if reference && !due.is_empty() {
                sentinels(&counts)
            } else {
                SentinelsDue::default()
            };
        }
    }

    /// The shortest prompt that the summariser's provider bills as written to its cache; `None`
    /// where writing costs what input costs.
    pub fn summaries_written_from(&self) -> Option<Tokens> {
        let scheme = prompts::scheme_of(Some(&self.scenario.models.summariser), &self.asked_prices);
        scheme.rates.write.map(|_| scheme.minimum)
    }

    /// The judges, in the order of the scenario.
    pub fn judges(&self) -> Vec<ModelEntry> {
        models::judges(&self.scenario.models)
    }
}

/// The questions to readers and judges of each item of a session, once.
fn items_due(
    loaded: &LoadedSession,
    selection: &Selection,
    counts: &CountedTexts,
) -> Vec<(Item, ProbesDue)> {
    let probes = &loaded.probes;
    let due = loaded.items(selection).into_iter().map(|item| {
        let probe = &probes[item.probe];
        let before = loaded.calls[item.call];
        // The narrow task sends less.
        let judge = Judge { probes, ..Judge::default() };
        let questions = judge::questions(None, &[], probe, Asking::default());
        let gold = counts.size(&Arc::from(probe.fact.spec().in_words(before))).tokens;
        let asked = questions.len() as u64;
        let question_tokens = questions.iter().map(|question| input(question, counts));
        let due = ProbesDue {
            items: 1,
            questions: asked,
            question_tokens: question_tokens.sum(),
            gold_tokens: Tokens(gold.0.saturating_mul(asked)),
            // Rules confirm exact answers; which those are is not known before.
            judged: 1,
            different: 1,
            judge_tokens: input(&judge.request(probe, before, ""), counts),
            judged_gold: gold,
        };
        (item, due)
    });
    due.collect()
}

/// Tokens of a request.
fn input(request: &Request, counts: &CountedTexts) -> Tokens {
    let blocks = request.messages.iter().flat_map(|message| message.blocks());
    let system = request.system.iter().map(|text| counts.size(text));
    blocks.map(|block| counts.block(&block)).chain(system).map(|size| size.tokens).sum()
}

fn sentinels(counts: &CountedTexts) -> SentinelsDue {
    let [(calls, tokens), (narrow_calls, narrow_tokens)] = [JudgeTask::Wide, JudgeTask::Narrow]
        .map(|task| {
            let known = known_answer::known_answers(task);
            let tokens = known.iter().map(|known| input(&known.request(), counts));
            (known.len() as u64, tokens.sum())
        });
    SentinelsDue { calls, tokens, narrow_calls, narrow_tokens }
}
