//! A strategy that does again what another one did: so that what happened is measured as any replay is.

use std::collections::BTreeMap;

use crate::context::{Applied, Context};
use crate::model::Request;
use crate::step::Step;
use crate::strategy::{Compaction, Situation, StageFailure, Strategy};
use crate::walk::WalkMoment;
use std::sync::Arc;

/// The work of a strategy at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct StrategyWork {
    pub(super) applied: Vec<Applied>,
    pub(super) failures: Vec<StageFailure>,
    pub(super) saved: Vec<(String, Arc<str>)>,
    /// Its requests to its model.
    pub(super) requests: Vec<Request>,
}

impl StrategyWork {
    /// Applies the recorded edits again.
    fn apply(self, mut context: Context) -> Compaction {
        for applied in &self.applied {
            // A context that is another one is left as it is; the sizes then say so.
            drop(context.apply(applied.change.edits.clone()));
        }
        Compaction {
            applied: self.applied,
            failures: self.failures,
            saved: self.saved,
            ..Compaction::unchanged(context)
        }
    }
}

/// Plays the work of a strategy. Its answers to refusals are part of the work before their call.
#[derive(Debug)]
pub(super) struct PlayedStrategy(pub(super) BTreeMap<WalkMoment, StrategyWork>);

impl PlayedStrategy {
    fn play(&mut self, moment: WalkMoment, context: Context) -> Step<'_, Compaction> {
        let Some(mut work) = self.0.remove(&moment) else {
            return Step::Done(Compaction::unchanged(context));
        };
        let requests = std::mem::take(&mut work.requests);
        Step::ask_all(requests, move |_| Step::Done(work.apply(context)))
    }
}

impl Strategy for PlayedStrategy {
    fn on_append(&mut self, context: Context, _: &Situation) -> Compaction {
        let index = context.entries().first().and_then(|entry| entry.origin.message());
        match index.and_then(|index| self.0.remove(&WalkMoment::Append(index))) {
            Some(work) => work.apply(context),
            None => Compaction::unchanged(context),
        }
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.play(WalkMoment::Before(cx.call), context)
    }

    fn on_overflow<'a>(&'a mut self, context: Context, _: &'a Situation) -> Step<'a, Compaction> {
        Step::Done(Compaction::unchanged(context))
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.play(WalkMoment::After(cx.call), context)
    }

    /// The prompts were sent, whatever the window is taken to be.
    fn replays_recording(&self) -> bool {
        true
    }
}
