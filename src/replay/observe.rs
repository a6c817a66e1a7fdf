//! Observers: each watches one cell and writes its part of the record.
//!
//! The loop knows none of them by name. A new measurement is one file here and one line where
//! observers are made.

use std::fmt::Debug;
use std::sync::Arc;

use self::action_support::{ActionEntities, ActionSupportObserver};
use self::changes::Changes;
use self::counter_error::CounterErrors;
use self::health::Health;
use self::lost_before_read::{AGENTS_BLOCKED_AT, LostBeforeRead};
use self::messages::Messages;
use self::prompt_cache::{CachePlan, Compared, PromptCaches};
use self::recovery::{RecoveryArm, RecoveryPlan};
use self::survival::{SurvivalObserver, SurvivalPlan};
use self::trail::{ArtifactTrailObserver, TrailPlan};
use self::unsupported::{SaidNames, UnsupportedEntities};
use self::validity::Validity;
use super::Replayed;
use crate::bill::Scale;
use crate::context::{Applied, CacheEffect, Context, Entry};
use crate::model::{Request, Response};
use crate::patterns::PatternsError;
use crate::probe::grade::GradingRules;
use crate::probe::judge::Brief;
use crate::probe::{Item, Probe, Selection};
use crate::record::{CellRecord, ProbeText};
use crate::script::Letters;
use crate::session::wire::RuleSet;
use crate::session::{Message, Session};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};

pub mod action_support;
pub mod changes;
pub mod counter_error;
pub mod health;
pub mod messages;
mod prelude;
pub mod prompt_cache;
pub mod recovery;
pub mod snapshot;
mod sources;
pub mod survival;
pub mod trail;
pub mod lost_before_read;
pub mod unsupported;
pub mod validity;

/// Watches one cell.
///
/// The calls come in the order in which things happen: entries as they are appended, patches as
/// they are applied, prompts as they are sent. Following appended entries and patches is enough
/// to know the context at any time; an observer should not walk it on every call.
pub trait Observer: Debug + Send {
    /// An entry came into the context: it was appended, or written by a patch.
    fn entered(&mut self, _entry: &Entry) {}

    /// A patch took an entry out of the context.
    fn left(&mut self, _entry: &Entry) {}

    /// An entry was appended at the end of the context.
    fn appended(&mut self, entry: &Entry) {
        self.entered(entry);
    }

    /// A message that is about to be appended was changed: the patch counts entries from the
    /// message itself. [`Observer::appended`] follows, with the changed message.
    fn shortened(&mut self, _applied: &Applied) {}

    /// The strategy asked a model. The calls for the resulting patches follow, and so do those for
    /// the patches that it applied before it asked.
    fn asked(&mut self, _asked: &BilledRequest) {}

    /// A patch was applied. Write-time edits are part of the appended entry and not seen here.
    fn patched(&mut self, applied: &Applied) {
        applied.change.removed.iter().for_each(|entry| self.left(entry));
        applied.written().for_each(|entry| self.entered(entry));
    }

    /// The provider leaves hidden thinking of these entries out from now on; `context` has them as
    /// they are sent.
    fn thinking_left_out(&mut self, _context: &Context, _entries: &[usize], _cache: CacheEffect) {}

    /// A prompt was sent and answered.
    fn called(&mut self, _view: &CallView<'_>) {}

    /// The cell is over; the record says already how it ended and how far it came.
    fn finish(self: Box<Self>, _record: &mut CellRecord) {}
}

/// A request of the strategy, as it was sent and billed.
#[derive(Debug, Clone)]
pub struct BilledRequest {
    /// Its number among the cell's `model_calls`.
    pub number: usize,
    /// Its cost.
    pub usage: Usage,
    /// The request.
    pub request: Request,
    /// Before or after this call of the agent.
    pub call: usize,
    /// The answer; `None` if the call failed.
    pub answer: Option<Response>,
}

/// A prompt as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct CallView<'a> {
    /// Number of the call, from 0.
    pub call: usize,
    /// Index of the message that answered it: the full history is everything before.
    pub before: usize,
    /// The session.
    pub session: &'a Session,
    /// The messages that were sent.
    pub context: &'a Context,
    /// Size of system prompt and tool definitions, as counted.
    pub fixed: Size,
    /// How counted sizes become billed ones.
    pub scale: Scale,
    /// The recorded answer.
    pub response: &'a Message,
    /// The lowest entry of the context that the strategy still means to change, if it knows.
    pub edge: Option<usize>,
}

impl CallView<'_> {
    /// Tokens of the prompt, as billed.
    pub fn prompt(&self) -> Tokens {
        self.scale.prompt(self.fixed + self.context.size())
    }
}

/// The plans that the observers of all cells of one session share.
#[derive(Debug)]
pub struct ObserverPlans {
    pub(super) plan: Arc<SurvivalPlan>,
    entities: Arc<ActionEntities>,
    trail: Arc<TrailPlan>,
    said: Arc<SaidNames>,
    /// The rules by which answers are graded.
    pub(super) rules: GradingRules,
    letters: Letters,
    pub(super) api: RuleSet,
    pub(super) cache: Option<Arc<CachePlan>>,
    pub(super) recovery: Option<Arc<RecoveryPlan>>,
}

impl ObserverPlans {
    /// Prepares to watch a session that is asked those of these probes that are selected.
    pub fn new(
        session: &Arc<Session>,
        counts: &CountedTexts,
        probes: Vec<Probe>,
        selection: &Selection,
    ) -> Result<Self, PatternsError> {
        let rules = GradingRules::new(&probes);
        let plan = Arc::new(SurvivalPlan::new(session, probes.into(), selection)?);
        let entities = Arc::new(ActionEntities::new(session, counts)?);
        Ok(Self {
            plan,
            entities,
            trail: Arc::new(TrailPlan::new(session)),
            said: Arc::new(SaidNames::new(session)),
            rules,
            letters: health::letters_of(session),
            api: RuleSet::default(),
            cache: None,
            recovery: None,
        })
    }

    /// The probes.
    pub fn probes(&self) -> &[Probe] {
        &self.plan.probes
    }

    /// All items, by call, then by probe.
    pub fn items(&self) -> &[Item] {
        &self.plan.items
    }

    /// Every item's question, and its answer at the call at which it is asked.
    pub fn texts(&self, session: &Session) -> Vec<ProbeText> {
        let texts = self.items().iter().map(|item| {
            let probe = &self.probes()[item.probe];
            let brief = Brief::of(probe, self.probes(), session.calls()[item.call]);
            ProbeText::of(&probe.id, item.percent, &probe.question, brief)
        });
        texts.collect()
    }
}

/// The observers of one cell: a new measurement is one line here.
pub fn observers<'a>(watched: &ObserverPlans, replayed: &Replayed) -> Vec<Box<dyn Observer + 'a>> {
    let messages = watched.plan.messages;
    let mut observers: Vec<Box<dyn Observer + 'a>> = vec![
        Box::new(SurvivalObserver::new(watched.plan.clone())),
        Box::new(ActionSupportObserver::new(watched.entities.clone())),
    ];
    if matches!(replayed, Replayed::Full | Replayed::Strategy(..)) {
        observers.push(Box::new(ArtifactTrailObserver::new(watched.trail.clone())));
    }
    match replayed {
        Replayed::Full => {
            observers.push(Box::new(CounterErrors::default()));
        }
        Replayed::Strategy(strategy, window) => {
            let blocked_at = strategy.blocks_agents_at().unwrap_or(AGENTS_BLOCKED_AT);
            observers.push(Box::new(Validity::new(watched.api).with_room(messages)));
            observers.push(Box::new(LostBeforeRead::new(*window, blocked_at)));
            observers.push(Box::new(Changes::default()));
            if let Some(plan) = &watched.recovery {
                observers.push(Box::new(RecoveryArm::new(plan.clone())));
            }
            observers.push(Box::new(Health::new(watched.letters)));
            observers.push(Box::new(UnsupportedEntities::new(watched.said.clone())));
        }
        // The floor sends no messages: there is nothing to check.
        Replayed::Empty => {}
    }
    if let (Some(plan), Replayed::Full | Replayed::Strategy(..)) = (&watched.cache, replayed) {
        let compared = match replayed {
            Replayed::Full => Some(Compared::Unedited),
            Replayed::Strategy(strategy, _) if strategy.replays_recording() => {
                Some(Compared::Compacted)
            }
            Replayed::Strategy(..) | Replayed::Empty => None,
        };
        observers.push(Box::new(PromptCaches::new(plan.clone(), compared)));
    }
    if matches!(replayed, Replayed::Full) {
        observers.push(Box::new(Messages::with_room(messages)));
    }
    observers
}

#[cfg(test)]
mod tests;
