//! Stages in order, each with a trigger and guards: the strategy that presets describe.

use std::sync::Arc;
use std::time::Duration;

use super::external::{Hello, LoadedFiles, ProgramError};
use super::guard::{Guards, OnInflation};
use super::history::SeenHistory;
use super::situation::Situation;
use super::trigger::{Condition, Fired, Trigger};
use super::{Compaction, Stage, StageError, StageFailure, Strategy, StrategyError};
use crate::context::{Applied, Context, Entry, Patch, PatchError};
use crate::model::Purpose;
use crate::step::Step;
use crate::units::Tokens;
use crate::window::Window;

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
    /// The whole history, where its stages see that before each call: what they made of it for the call before is
    /// forgotten. After a refusal they go on with what was sent.
    pub(super) history: Option<SeenHistory>,
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

/// A patch that was planned ahead, for the context as it was then.
#[derive(Debug)]
struct PreparedPatch {
    patch: Patch,
    /// Before which call it was asked for.
    call: usize,
    entries: Vec<Entry>,
}

impl PreparedPatch {
    /// Whether the context begins with what the patch was planned for. What came since stays behind it.
    fn fits(&self, context: &Context) -> bool {
        let then = self.entries.iter();
        let now = context.entries();
        now.len() >= then.len()
            && then.zip(now).all(|(then, now)| Arc::ptr_eq(&then.message, &now.message))
    }
}

/// The pipeline's notes on a stage. The stage itself is lent out while it waits for a model, and
/// its notes are not.
#[derive(Debug)]
pub(super) struct Notes {
    /// The stage's name: its path in settings, and in logs.
    pub(super) name: Arc<str>,
    /// When it fires.
    pub(super) when: Trigger,
    /// When its request is made ahead, if it ever is; what it planned waits until it fires.
    pub(super) prepare_at: Option<Trigger>,
    prepared: Option<PreparedPatch>,
    guards: Guards,
    /// Attempts that failed in a row: at so many its circuit breaker is open.
    failures: u32,
    last_fired: Option<Fired>,
    /// How often it changed something since the user last typed.
    in_turn: u32,
}

impl Slot {
    /// A stage that was never tried.
    pub fn new(name: Arc<str>, when: Trigger, guards: Guards, stage: Box<dyn Stage>) -> Self {
        let notes = Notes {
            name,
            when,
            prepare_at: None,
            prepared: None,
            guards,
            failures: 0,
            last_fired: None,
            in_turn: 0,
        };
        Self { notes, stage }
    }

    /// Its triggers, by the key that sets each, with the stage's name.
    pub(super) fn triggers(&self) -> impl Iterator<Item = (&'static str, &str, &Trigger)> {
        let notes = &self.notes;
        let own = [("when", Some(&notes.when)), ("prepare_at", notes.prepare_at.as_ref())];
        own.into_iter().filter_map(|(key, trigger)| Some((key, &*notes.name, trigger?)))
    }

    /// Tokens of the newest messages that it leaves as they are, at least, where it has that many.
    pub(super) fn least_kept(&self, window: Window) -> Tokens {
        self.stage.least_kept(window)
    }
}

impl Notes {
    fn is_ready(&self, state: &Compaction, cx: &Situation) -> bool {
        // The breaker and the limit stop automatic attempts; the model or a person may still ask for one.
        (self.may_fire(cx) || self.when.condition.is_manual(cx))
            && self.when.holds(&state.context, cx, self.last_fired, &state.applied)
    }

    /// Whether what it will plan is to be asked for now.
    fn prepares(&mut self, state: &Compaction, cx: &Situation) -> bool {
        let Some(trigger) = &self.prepare_at else {
            return false;
        };
        self.prepared.take_if(|ahead| !ahead.fits(&state.context));
        self.prepared.is_none()
            && self.may_fire(cx)
            && trigger.holds(&state.context, cx, self.last_fired, &state.applied)
    }

    /// Whether it may be tried, and has not changed something as often as it may since the user last typed.
    fn may_fire(&self, cx: &Situation) -> bool {
        let this_turn = self.last_fired.is_some_and(|last| last.turn == cx.turn);
        let most = self.guards.max_per_turn;
        self.is_closed() && !(most > 0 && this_turn && self.in_turn >= most)
    }

    fn is_closed(&self) -> bool {
        let most = self.guards.max_consecutive_failures;
        most == 0 || self.failures < most
    }

    /// Whether the stage works beside the calls: one that only answers refusals does not.
    fn works_beside(&self) -> bool {
        self.is_closed() && self.when.condition != Condition::Overflow
    }
}

impl Pipeline {
    /// A strategy of these stages. A refused prompt is recovered as often as `retries` says.
    pub fn new(slots: Vec<Slot>, retries: Retries) -> Self {
        Self { slots, retries, in_turn: 0, history: None }
    }

    /// The stages' names in order, each with its failures in a row and whether its circuit breaker is open.
    pub fn breakers(&self) -> impl Iterator<Item = (&str, u32, bool)> {
        let notes = self.slots.iter().map(|slot| &slot.notes);
        notes.map(|notes| (&*notes.name, notes.failures, !notes.is_closed()))
    }

    /// The files that the programs of its stages consist of now, each with a hash.
    pub fn loaded_files(&self) -> LoadedFiles {
        self.slots.iter().map(|slot| &slot.stage).flat_map(|stage| stage.loaded_files()).collect()
    }

    /// Starts the programs among its stages. The first of them says its kind and the laws that it breaks on purpose.
    pub fn declared(&self) -> Result<Hello, ProgramError> {
        let stages = self.slots.iter().map(|slot| &slot.stage);
        let declared: Vec<Hello> =
            stages.filter_map(|stage| stage.declared()).collect::<Result<_, _>>()?;
        Ok(declared.into_iter().next().unwrap_or_default())
    }
}

impl Strategy for Pipeline {
    fn on_load(&mut self, loaded: &[Entry]) {
        if loaded.iter().any(Entry::is_typed) {
            self.in_turn = 0;
        }
        if let Some(history) = &mut self.history {
            for entry in loaded {
                history.append(entry);
            }
        }
        for slot in &mut self.slots {
            slot.stage.on_load(loaded);
        }
    }

    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        if context.entries().iter().any(Entry::is_typed) {
            self.in_turn = 0;
        }
        if let (Some(history), [entry]) = (&mut self.history, context.entries()) {
            history.append(entry);
        }
        let mut state = Compaction::unchanged(context);
        for Slot { notes, stage } in &mut self.slots {
            let [entry] = state.context.entries() else {
                break;
            };
            stage.take_note_of(entry);
            if !notes.works_beside() {
                continue;
            }
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

    fn on_rewrite(&mut self, messages: &[usize]) {
        if let Some(history) = &mut self.history {
            history.rewrite(messages);
        }
        for slot in &mut self.slots {
            slot.stage.on_rewrite(messages);
        }
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let slots = &mut self.slots;
        let Some(history) = &mut self.history else {
            let state = Compaction::unchanged(context);
            return run(slots, Hook::BeforeCall, state, Vec::new(), cx);
        };
        let (whole, sent) = history.whole(context);
        let state = Compaction::unchanged(whole);
        let left = run(slots, Hook::BeforeCall, state, Vec::new(), cx);
        left.map(move |left| history.as_sent(left, sent, cx))
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let attempt = match self.retries.per {
            RetriesPer::Call => cx.overflow.map_or(0, |overflow| overflow.attempt),
            RetriesPer::Turn => self.in_turn,
        };
        if attempt >= self.retries.most {
            return Step::Done(Compaction::unchanged(context));
        }
        self.in_turn += 1;
        if let Some(history) = &mut self.history {
            history.forgets();
        }
        let state = Compaction::unchanged(context);
        run(&mut self.slots, Hook::Overflow, state, Vec::new(), cx)
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let state = Compaction::unchanged(context);
        run(&mut self.slots, Hook::AfterCall, state, Vec::new(), cx)
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        self.slots.iter().filter_map(|slot| slot.stage.edge(context)).min()
    }

    fn replays_recording(&self) -> bool {
        self.slots.iter().any(|slot| slot.stage.replays_recording())
    }

    fn blocks_agents_at(&self) -> Option<f64> {
        self.slots.iter().filter_map(|slot| slot.stage.blocks_agents_at()).min_by(f64::total_cmp)
    }

    fn program_cpu(&self) -> Duration {
        self.slots.iter().map(|slot| slot.stage.program_cpu()).sum()
    }

    fn end(&mut self) -> Result<(), StrategyError> {
        self.slots.iter_mut().try_for_each(|Slot { notes, stage }| {
            stage.end().map_err(|source| StrategyError::Stage { stage: notes.name.clone(), source })
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    BeforeCall,
    Overflow,
    AfterCall,
}

/// `fired` holds the triggers of what was applied so far.
fn run<'a>(
    mut slots: &'a mut [Slot],
    moment: Hook,
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
            Hook::BeforeCall => notes.is_ready(&state, cx),
            // What was planned ahead is there.
            Hook::Overflow if notes.prepared.is_some() => true,
            Hook::Overflow => notes.when.condition.answers_overflow() && notes.is_ready(&state, cx),
            Hook::AfterCall => notes.works_beside(),
        };
        let ahead = match moment {
            Hook::BeforeCall | Hook::Overflow if wanted => {
                let ahead = notes.prepared.take();
                ahead.filter(|ahead| ahead.fits(&state.context))
            }
            Hook::BeforeCall if notes.prepares(&state, cx) => {
                let entries = state.context.entries().to_vec();
                let planned = stage
                    .plan(&state.context, cx)
                    .asking(|request| request.purpose = Purpose::Background);
                return planned.then(move |planned| {
                    match planned {
                        Err(error) => fail(&mut state, error, notes),
                        Ok(patch) if patch.edits.is_empty() => {}
                        Ok(patch) => {
                            let call = cx.call;
                            notes.prepared = Some(PreparedPatch { patch, call, entries });
                        }
                    }
                    run(slots, moment, state, fired, cx)
                });
            }
            _ => None,
        };
        let (step, source) = match (ahead, moment) {
            (Some(PreparedPatch { patch, call, .. }), _) => {
                (Step::Done(Ok(patch)), PatchSource::Ahead(call))
            }
            _ if !wanted => continue,
            (None, Hook::AfterCall) => (stage.after_call(&state.context, cx), PatchSource::Rules),
            (None, _) => (stage.plan(&state.context, cx), PatchSource::Rules),
        };
        // A stage that asks no model is settled in this loop: many of them take no stack.
        match step {
            Step::Done(planned) => settle(&mut state, planned, source, notes, cx),
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
    if moment != Hook::AfterCall {
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
    /// It was planned ahead, before this call.
    Ahead(usize),
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
                notes.failures = 0;
            }
            return;
        }
        Ok(patch) => patch,
        Err(source @ (StageError::NotMeasurable { .. } | StageError::Program(_))) => {
            let stage = notes.name.clone();
            state.outcome = Err(StrategyError::Stage { stage, source });
            return;
        }
        Err(error) => return fail(state, error, notes),
    };
    let change = match state.context.apply(patch.edits) {
        Ok(change) => change,
        Err(source) => {
            let stage = notes.name.clone();
            state.outcome = Err(StrategyError::ImpossiblePatch { stage, source });
            return;
        }
    };
    let (before, after) = (change.before.tokens, change.after.tokens);
    let inflated = after > before && notes.guards.on_inflation == OnInflation::Discard;
    let share = before.fraction(notes.guards.min_gain_fraction);
    if inflated || before - after < notes.guards.min_gain_tokens.max(share) {
        state.context.revert(&change);
        if inflated {
            fail(state, StageError::Inflation { before, after }, notes);
        } else if source != PatchSource::Rules {
            fail(state, StageError::NoGain { before, after }, notes);
        }
        return;
    }
    notes.failures = 0;
    let (call, turn) = (cx.call, cx.turn);
    let this_turn = notes.last_fired.is_some_and(|last| last.turn == turn);
    notes.in_turn = if this_turn { notes.in_turn + 1 } else { 1 };
    notes.last_fired = Some(Fired { call, turn });
    state.saved.extend(patch.saved);
    let prepared_at = match source {
        PatchSource::Rules | PatchSource::Model => None,
        PatchSource::Ahead(call) => Some(call),
    };
    let asked = prepared_at.map(|call| format!(", asked for before call {call}"));
    state.applied.push(Applied {
        call: cx.call,
        stage: notes.name.clone(),
        reason: patch.reason + &asked.unwrap_or_default(),
        change,
        is_still_over: false,
        prepared_at,
    });
}

fn fail(state: &mut Compaction, error: StageError, notes: &mut Notes) {
    notes.failures += 1;
    state.failures.push(StageFailure { stage: notes.name.clone(), error });
}
