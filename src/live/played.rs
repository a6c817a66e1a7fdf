//! A strategy that does again what another one did: so that what happened is measured as any replay is.

use std::collections::BTreeMap;

use crate::context::{Applied, Context, Edit};
use crate::model::Request;
use crate::step::Step;
use crate::strategy::{Compaction, Situation, StageFailure, Strategy};
use crate::walk::Moment;
use std::sync::Arc;

/// The work of a strategy at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) applied: Vec<Applied>,
    pub(super) failures: Vec<StageFailure>,
    pub(super) saved: Vec<(String, Arc<str>)>,
    /// Its requests to its model.
    pub(super) requests: Vec<Request>,
}

impl Work {
    /// More of it at the same moment.
    pub(super) fn add(&mut self, more: Self) {
        self.applied.extend(more.applied);
        self.failures.extend(more.failures);
        self.saved.extend(more.saved);
        self.requests.extend(more.requests);
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.applied.is_empty()
            && self.failures.is_empty()
            && self.saved.is_empty()
            && self.requests.is_empty()
    }

    /// Applies the recorded edits again.
    fn apply(self, mut context: Context, cx: &Situation) -> Compaction {
        for applied in &self.applied {
            let edits = applied.change.edits.iter().map(|edit| Edit::Replace {
                entries: edit.entries.clone(),
                with: edit.with.clone(),
            });
            // A context that is another one is left as it is; the sizes then say so.
            drop(context.apply(edits.collect(), &cx.counts));
        }
        Compaction {
            applied: self.applied,
            failures: self.failures,
            saved: self.saved,
            ..Compaction::unchanged(context)
        }
    }
}

/// Plays the work of a strategy.
#[derive(Debug)]
pub(super) struct Played(pub(super) BTreeMap<Moment, Work>);

impl Played {
    fn play<'a>(
        &'a mut self,
        context: Context,
        cx: &'a Situation,
        moments: Vec<Moment>,
    ) -> Step<'a, Compaction> {
        let mut works = moments.into_iter().filter_map(|it| self.0.remove(&it));
        let Some(mut work) = works.next() else {
            return Step::Done(Compaction::unchanged(context));
        };
        for more in works {
            work.add(more);
        }
        let mut requests = std::mem::take(&mut work.requests).into_iter();
        ask(requests.by_ref().collect(), move || work.apply(context, cx))
    }
}

/// Asks one request after the other.
fn ask<'a, T: 'a>(mut requests: Vec<Request>, then: impl FnOnce() -> T + Send + 'a) -> Step<'a, T> {
    if requests.is_empty() {
        return Step::Done(then());
    }
    let first = requests.remove(0);
    Step::ask(first, move |_| ask(requests, then))
}

impl Strategy for Played {
    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        let index = context.entries().first();
        let index = index.and_then(|entry| entry.origin.message());
        match index.and_then(|index| self.0.remove(&Moment::Append(index))) {
            Some(work) => work.apply(context, cx),
            None => Compaction::unchanged(context),
        }
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let refused = self.0.keys().filter_map(|it| match it {
            Moment::Refused(call, _) if *call == cx.call => Some(*it),
            _ => None,
        });
        let moments = [Moment::Before(cx.call)].into_iter().chain(refused);
        self.play(context, cx, moments.collect())
    }

    fn on_overflow<'a>(&'a mut self, context: Context, _: &'a Situation) -> Step<'a, Compaction> {
        Step::Done(Compaction::unchanged(context))
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.play(context, cx, vec![Moment::After(cx.call)])
    }

    /// The prompts were sent, whatever the window is taken to be.
    fn replays_recording(&self) -> bool {
        true
    }
}
