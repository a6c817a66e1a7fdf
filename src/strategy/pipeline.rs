//! Stages in order, each with a trigger and guards: the strategy that presets describe.

use std::sync::Arc;
use std::time::Duration;

use super::guard::{Breaker, BreakerState, Guards, OnInflation, PostCheck};
use super::situation::Situation;
use super::trigger::{Condition, Trigger};
use super::{Compaction, Recovery, Stage, StageError, StageFailure, Strategy, StrategyError};
use crate::context::{Applied, Context, Entry, Patch, PatchError};
use crate::session::Tag;
use crate::step::Step;

/// Stages in order.
///
/// Before a call each stage whose trigger holds is asked once, in order, for a patch; later
/// triggers see what earlier stages freed, and which of them changed something. A stage that fails
/// leaves the context as it was. After a refusal only stages are asked that name `overflow` in their
/// trigger, or follow one that does. Write-time work is done as messages come in, whatever the
/// triggers say.
#[derive(Debug)]
pub struct Pipeline {
    slots: Vec<Slot>,
    retries: Retries,
    /// Recoveries since a person last typed something.
    in_turn: u32,
}

/// How often a refused prompt is recovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// At most so often,
    pub most: u32,
    /// counted over this.
    pub per: RetriesPer,
}

/// The span over which recoveries are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RetriesPer {
    /// One call.
    #[default]
    Call,
    /// All calls that answer what a person typed: one run of an agent's loop.
    Turn,
}

/// One stage in its place.
#[derive(Debug)]
pub struct Slot {
    pub(super) notes: Notes,
    stage: Box<dyn Stage>,
}

/// The pipeline's notes on a stage. The stage itself is lent out while it waits for a model, and
/// its notes are not.
#[derive(Debug)]
pub(super) struct Notes {
    /// The stage's name: its path in settings, and in logs.
    pub(super) name: Arc<str>,
    /// When it fires.
    pub(super) when: Trigger,
    guards: Guards,
    breaker: Breaker,
    last_fired: Option<usize>,
}

impl Slot {
    /// A stage that was never tried.
    pub fn new(name: Arc<str>, when: Trigger, guards: Guards, stage: Box<dyn Stage>) -> Self {
        let notes = Notes {
            name,
            when,
            guards,
            breaker: Breaker::new(guards.max_consecutive_failures),
            last_fired: None,
        };
        Self { notes, stage }
    }
}

impl Notes {
    fn is_ready(&self, state: &Compaction, cx: &Situation) -> bool {
        // The breaker stops automatic attempts; the model or a person may still ask for one.
        (self.is_closed() || self.when.condition.is_manual(cx))
            && self
                .when
                .holds(&state.context, cx, self.last_fired, &state.applied)
    }

    fn is_closed(&self) -> bool {
        self.breaker.state() != BreakerState::Open
    }

    /// Whether the stage works beside the calls: one that only answers refusals does not.
    fn works_beside(&self) -> bool {
        self.is_closed() && self.when.condition != Condition::Overflow
    }
}

impl Pipeline {
    /// A strategy of these stages. A refused prompt is recovered as often as `retries` says.
    pub fn new(slots: Vec<Slot>, retries: Retries) -> Self {
        Self {
            slots,
            retries,
            in_turn: 0,
        }
    }

    /// The stages' names and circuit breakers, in order.
    pub fn breakers(&self) -> impl Iterator<Item = (&str, Breaker)> {
        let notes = self.slots.iter().map(|slot| &slot.notes);
        notes.map(|notes| (&*notes.name, notes.breaker))
    }
}

impl Strategy for Pipeline {
    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        let is_typed = |entry: &Entry| entry.message.has_tag(Tag::TypedUser);
        if context.entries().iter().any(is_typed) {
            self.in_turn = 0;
        }
        let mut state = Compaction::unchanged(context);
        let slots = self.slots.iter_mut();
        for Slot { notes, stage } in slots.filter(|slot| slot.notes.works_beside()) {
            let [entry] = state.context.entries() else {
                break;
            };
            match stage.on_append(entry, cx) {
                Ok(patch) if patch.edits.is_empty() => {}
                planned => settle(&mut state, planned, PatchSource::Rules, notes, cx),
            }
        }
        // A write-time stage edits the entry; it cannot make it vanish or multiply.
        if state.context.entries().len() != 1 {
            let stage = state.applied.last().map_or("", |applied| &applied.stage);
            state.outcome = Err(StrategyError::ImpossiblePatch {
                stage: stage.into(),
                source: PatchError::NotOneEntry,
            });
        }
        state
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let state = Compaction::unchanged(context);
        run(&mut self.slots, Moment::BeforeCall, state, Vec::new(), cx)
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Recovery> {
        let attempt = match self.retries.per {
            RetriesPer::Call => cx.overflow.map_or(0, |overflow| overflow.attempt),
            RetriesPer::Turn => self.in_turn,
        };
        if attempt >= self.retries.most {
            return Step::Done(Recovery::GiveUp(Compaction::unchanged(context)));
        }
        self.in_turn += 1;
        let state = Compaction::unchanged(context);
        run(&mut self.slots, Moment::Overflow, state, Vec::new(), cx).map(|compacted| {
            if compacted.applied.is_empty() {
                Recovery::GiveUp(compacted)
            } else {
                Recovery::Retry(compacted)
            }
        })
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let state = Compaction::unchanged(context);
        run(&mut self.slots, Moment::AfterCall, state, Vec::new(), cx)
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        let stages = self.slots.iter();
        stages.filter_map(|slot| slot.stage.edge(context)).min()
    }

    fn replays_recording(&self) -> bool {
        self.slots.iter().any(|slot| slot.stage.replays_recording())
    }

    fn blocks_agents_at(&self) -> Option<f64> {
        let stages = self.slots.iter();
        let lines = stages.filter_map(|slot| slot.stage.blocks_agents_at());
        lines.min_by(f64::total_cmp)
    }

    fn program_cpu(&self) -> Duration {
        self.slots.iter().map(|slot| slot.stage.program_cpu()).sum()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    BeforeCall,
    Overflow,
    AfterCall,
}

/// `fired` holds the triggers of what was applied so far.
fn run<'a>(
    mut slots: &'a mut [Slot],
    moment: Moment,
    mut state: Compaction,
    mut fired: Vec<Trigger>,
    cx: &'a Situation,
) -> Step<'a, Compaction> {
    while let Some((Slot { notes, stage }, rest)) = slots.split_first_mut() {
        slots = rest;
        if state.outcome.is_err() {
            break;
        }
        let wanted = match moment {
            Moment::BeforeCall => notes.is_ready(&state, cx),
            Moment::Overflow => {
                notes.when.condition.answers_overflow() && notes.is_ready(&state, cx)
            }
            Moment::AfterCall => notes.works_beside(),
        };
        if !wanted {
            continue;
        }
        let step = match moment {
            Moment::BeforeCall | Moment::Overflow => stage.plan(&state.context, cx),
            Moment::AfterCall => stage.after_call(&state.context, cx),
        };
        match step {
            Step::Done(planned) => settle(&mut state, planned, PatchSource::Rules, notes, cx),
            asking @ Step::Ask(_) => {
                return asking.then(move |planned| {
                    settle(&mut state, planned, PatchSource::Model, notes, cx);
                    fired.resize_with(state.applied.len(), || notes.when.clone());
                    run(slots, moment, state, fired, cx)
                });
            }
        }
        fired.resize_with(state.applied.len(), || notes.when.clone());
    }
    // A restored entry after a summary may bring the context over its trigger again. A stage after
    // a call waits for no size.
    if moment != Moment::AfterCall {
        for (applied, when) in state.applied.iter_mut().zip(fired) {
            applied.is_still_over = when.is_over(&state.context, cx);
        }
    }
    Step::Done(state)
}

/// Whether a model was asked for a patch. One that was paid for and is not applied is a failed
/// attempt: without that, an impossible gain would be tried at every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatchSource {
    Rules,
    Model,
}

/// Applies what a stage planned, or takes note that it failed.
fn settle(
    state: &mut Compaction,
    planned: Result<Patch, StageError>,
    source: PatchSource,
    notes: &mut Notes,
    cx: &Situation,
) {
    let patch = match planned {
        Ok(patch) if patch.edits.is_empty() => {
            // A model answered, and what it said was of use: notes, for one.
            if source == PatchSource::Model {
                notes.breaker.succeeded();
            }
            return;
        }
        Ok(patch) => patch,
        Err(source @ StageError::NotMeasurable { .. }) => {
            state.outcome = Err(StrategyError::NotMeasurable {
                stage: notes.name.clone(),
                source,
            });
            return;
        }
        Err(source @ StageError::Program(_)) => {
            state.outcome = Err(StrategyError::Program {
                stage: notes.name.clone(),
                source,
            });
            return;
        }
        Err(error) => return fail(state, error, notes),
    };
    let change = match state.context.apply(patch.edits, &cx.counts) {
        Ok(change) => change,
        Err(source) => {
            state.outcome = Err(StrategyError::ImpossiblePatch {
                stage: notes.name.clone(),
                source,
            });
            return;
        }
    };
    let (before, after) = (change.before.tokens, change.after.tokens);
    let inflated = after > before && notes.guards.on_inflation == OnInflation::Discard;
    if inflated || before - after < notes.guards.min_gain_tokens {
        state.context.revert(&change);
        if inflated {
            fail(state, StageError::Inflation { before, after }, notes);
        } else if source == PatchSource::Model {
            fail(state, StageError::NoGain { before, after }, notes);
        }
        return;
    }
    if notes.guards.post_check == PostCheck::Discard && notes.when.is_over(&state.context, cx) {
        state.context.revert(&change);
        return fail(state, StageError::StillOver { after }, notes);
    }
    notes.breaker.succeeded();
    notes.last_fired = Some(cx.call);
    state.saved.extend(patch.saved);
    state.applied.push(Applied {
        call: cx.call,
        stage: notes.name.clone(),
        reason: patch.reason,
        change,
        is_still_over: false,
    });
}

fn fail(state: &mut Compaction, error: StageError, notes: &mut Notes) {
    notes.breaker.failed();
    state.failures.push(StageFailure {
        stage: notes.name.clone(),
        error,
    });
}
