//! One cell: its session prepared, and replayed under its strategy.

use std::sync::Arc;

use super::dependencies::{Dependencies, Lead};
use super::loaded::{LoadedSession, NotReady, SessionTexts};
use super::queue::SessionState;
use super::thread_clock::ThreadClock;
use super::{Plan, native, prices};
use crate::model::price::Client;
use crate::patterns::PatternsError;
use crate::probe::Probe;
use crate::record::End;
use crate::record::order::{ArmIndex, ArmKind};
use crate::replay::observe::Observer;
use crate::replay::plumbing;
use crate::replay::{CellName, Models, PreparedSession, Replay, Replayed, failed, replay_watched};

/// A cell that was run, or why it was not.
pub(super) type CellResult<'a> = Result<Replay, CellError<'a>>;

/// Values that the cells of a run have in common.
pub(super) struct Cells<'a> {
    pub(super) plan: &'a Plan,
    pub(super) followed: Dependencies,
}

impl Cells<'_> {
    /// Runs a cell; again where its program failed, for what fails twice on a session is a result and no accident.
    pub(super) fn run_twice<'s>(
        &'s self,
        shared: &'s SessionState,
        arm: ArmIndex,
    ) -> CellResult<'s> {
        let first = self.run(shared, arm)?;
        let fails = first.unanswered.is_none() && matches!(first.record.end, End::Failed { .. });
        if fails && self.plan.is_of_program(&first.record.strategy) {
            return self.run(shared, arm);
        }
        Ok(first)
    }

    fn run<'s>(&'s self, shared: &'s SessionState, arm: ArmIndex) -> CellResult<'s> {
        let (plan, session) = (self.plan, shared.session);
        let loaded = &plan.sessions[session];
        let models = plan.models().ok_or(CellError::NotConnected)?;
        let made = shared.prepared.get_or_init(|| {
            let prepared = prepare(plan, loaded, loaded.probes.clone())?;
            let own = models.for_session(prepared.counts());
            Ok((prepared, own))
        });
        let (prepared, models) = made.as_ref().map_err(CellError::NotReady)?;
        replay_arm(plan, (session, prepared), arm, &self.followed, models, Vec::new())
    }
}

/// Replays one cell, watched by `more` observers in addition to the usual ones.
pub(super) fn replay_arm<'a>(
    plan: &Plan,
    (session, prepared): (usize, &PreparedSession),
    arm: ArmIndex,
    followed: &Dependencies,
    models: &Models,
    more: Vec<Box<dyn Observer + '_>>,
) -> CellResult<'a> {
    let name = CellName { strategy: plan.name_of(arm), repeat: arm.repeat };
    let replayed = match arm.kind {
        ArmKind::Full => Replayed::Full,
        ArmKind::Empty => Replayed::Empty,
        ArmKind::Strategy(at) => {
            let mut spec = plan.scenario.strategies[at].clone();
            if let Some(other) = plan.followed_cell(&plan.key(session, arm)) {
                match followed.wait_for(&other) {
                    Lead::Sizes(sizes) => spec = spec.with_sizes(sizes),
                    Lead::NotMeasurable => {
                        let why = "the strategy it follows is not measurable here".to_owned();
                        let end = End::NotMeasurable { call: 0, why };
                        return Ok(Replay::not_begun(prepared, name, models, end));
                    }
                    Lead::Broken => return Err(CellError::NothingToFollow),
                }
            }
            let own = plan.manifest.sessions[plan.sessions[session].place].native_window;
            let window = native::resolved(&plan.scenario.window, own, prepared);
            if let Err(error) = spec.check_window(window, &prepared.prompt_sizes()) {
                let why = error.to_string();
                let end = End::NotMeasurable { call: 0, why };
                return Ok(Replay::not_begun(prepared, name, models, end));
            }
            match spec.build() {
                Ok(strategy) => Replayed::Strategy(Box::new(strategy), window),
                Err(error) => {
                    return Ok(Replay::not_begun(prepared, name, models, failed(0, &error)));
                }
            }
        }
    };
    let mut replay = replay_watched(prepared, name, replayed, models, &ThreadClock, more);
    let record = &mut replay.record;
    if let (ArmKind::Strategy(at), Some(window), End::Completed) =
        (arm.kind, record.window, &record.end)
        && plan.is_of_program(&record.strategy)
        && !record.model_calls.is_empty()
        && let Ok(strategy) = plan.scenario.strategies[at].build()
    {
        record.plumbing = plumbing(prepared, Box::new(strategy), window);
    }
    Ok(replay)
}

/// A session as its cells share it, asked these probes.
pub(super) fn prepare(
    plan: &Plan,
    loaded: &LoadedSession,
    probes: Vec<Probe>,
) -> Result<PreparedSession, NotReady> {
    let mut prepared = prepare_texts(plan, &loaded.texts()?, probes)?;
    let own = plan.manifest.sessions[loaded.place].native_window;
    let setting = &plan.scenario.window;
    prepared.product_windows = native::product_windows(prepared.session(), own, setting);
    Ok(prepared)
}

/// The same of a session at hand.
pub(super) fn prepare_texts(
    plan: &Plan,
    texts: &SessionTexts,
    probes: Vec<Probe>,
) -> Result<PreparedSession, PatternsError> {
    let (scenario, prices) = (&plan.scenario, &plan.prices);
    let session = &texts.session;
    let agent = prices::model_of(&scenario.cache, session);
    let (own, counts) = (session.clone(), texts.counts.clone());
    let prepared = PreparedSession::selecting(own, counts, probes, &scenario.selection)?;
    let schemes = prices::schemes(scenario, prices, session);
    let mut prepared = prepared
        .billed(Arc::new(texts.bill(scenario)))
        .sent_to(scenario.provider)
        .searching_removed(scenario.recovery)
        .with_cache(schemes, scenario.cache.pacing_seconds);
    prepared.asking = scenario.models.asking;
    prepared.faults = Arc::new(scenario.faults.clone());
    prepared.limits = prices.limits(scenario.provider.provider(), agent);
    if let Some(cache) = prepared.cache() {
        cache.client = Client::of(&session.source().format);
        cache.shown = scenario.cache.breakpoints;
        let own = prices::of_session(&scenario.cache, prices, session);
        cache.prices = own.map(|own| (prices.clone(), own));
        cache.call_prices = prices::of_calls(&scenario.cache, prices, session);
    }
    Ok(prepared)
}

/// Why a cell was not run: a mistake in Proctor, or the consequence of one.
#[derive(Debug, thiserror::Error)]
pub(super) enum CellError<'a> {
    #[error("{0}")]
    NotReady(&'a NotReady),
    #[error("the cell it follows was not replayed")]
    NothingToFollow,
    #[error("its models were not connected")]
    NotConnected,
}
