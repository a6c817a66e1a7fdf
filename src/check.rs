//! Checks a strategy: the laws that every strategy keeps, and every fault, over generated sessions.
//!
//! Sessions come from a seed, the shortest first. One that breaks a rule is made smaller, message by message, for as long
//! as it still does, so that a finding shows little more than its cause.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use crate::context::{Context, Entry, Origin};
use crate::model::fault::{Fault, FaultSchedule, Faults};
use crate::model::scripted::{Scripted, response};
use crate::model::{CallFailure, Request};
use crate::record::{CellRecord, End, Level};
use crate::replay::observe::changes::Changes;
use crate::replay::observe::validity::Validity;
use crate::replay::observe::{CallView, Observer};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay_observed};
use crate::session::{Message, Role, Session};
use crate::step::{Answer, Caller, Step, drive};
use crate::strategy::situation::Situation;
use crate::strategy::{Compaction, Strategy, StrategySpec};
use crate::tokens::{CharsPer4, CountedTexts};
use crate::units::Tokens;
use crate::window::Window;

mod sessions;

/// How a strategy is checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The window of all sessions.
    pub window: Tokens,
    /// The number of sessions to try.
    pub sessions: usize,
    /// Decides what happens in them.
    pub seed: u64,
    /// Rules that the strategy breaks on purpose, by name.
    pub allowed: BTreeSet<String>,
}

/// The outcome of one rule.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The rule's name.
    pub rule: String,
    /// The behaviour that it requires.
    pub expected: String,
    /// Sessions that were tried.
    pub sessions: usize,
    /// How it was broken.
    pub finding: Option<Finding>,
}

/// A session in which a rule is broken.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The behaviour that was seen.
    pub got: String,
    /// The number of the session: with the seed it gives the session as it was generated.
    pub number: usize,
    /// The smallest part of it that still breaks the rule.
    pub session: Arc<Session>,
}

/// The outcome of a check.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Rule by rule.
    pub rules: Vec<Checked>,
    /// Sessions in which the strategy changed something.
    pub changed: usize,
    /// Whether it asked a model.
    pub has_asked: bool,
}

/// A rule that is held against one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Runs,
    Deterministic,
    ValidContext,
    KeepsLastUserMessage,
    NeverLarger,
    IdempotentAtRest,
    SafeFailure,
    Survives(Fault),
}

impl Rule {
    fn all() -> impl Iterator<Item = Self> {
        let laws = [
            Self::Runs,
            Self::Deterministic,
            Self::ValidContext,
            Self::KeepsLastUserMessage,
            Self::NeverLarger,
            Self::IdempotentAtRest,
            Self::SafeFailure,
        ];
        laws.into_iter().chain(Fault::ALL.map(Self::Survives))
    }

    fn name(self) -> String {
        match self {
            Self::Runs => "runs".to_owned(),
            Self::Deterministic => "deterministic".to_owned(),
            Self::ValidContext => "valid_context".to_owned(),
            Self::KeepsLastUserMessage => "keeps_last_user_message".to_owned(),
            Self::NeverLarger => "never_larger".to_owned(),
            Self::IdempotentAtRest => "idempotent_at_rest".to_owned(),
            Self::SafeFailure => "safe_failure".to_owned(),
            Self::Survives(fault) => format!("survives_{}", fault.name()),
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Runs => "every line is answered, in time and in the protocol's form".to_owned(),
            Self::Deterministic => "the same session gives the same contexts".to_owned(),
            Self::ValidContext => {
                "a prompt that the provider accepts, wherever it accepts full history".to_owned()
            }
            Self::KeepsLastUserMessage => {
                "the newest message of the user, word for word".to_owned()
            }
            Self::NeverLarger => "without a model the context does not get larger".to_owned(),
            Self::IdempotentAtRest => {
                "asked twice in a row, it changes nothing the second time".to_owned()
            }
            Self::SafeFailure => "a model that fails leaves the context as it was".to_owned(),
            Self::Survives(fault) => format!("it goes on under the fault: {}", fault.doc()),
        }
    }

    /// The behaviour that breaks the rule, in words; `None` where it holds.
    fn broken(self, trial: &Trial<'_>) -> Option<String> {
        let good = || Ok(response("a short summary"));
        match self {
            Self::Runs => failure(&trial.play(good).record),
            Self::Deterministic => {
                let [first, second] =
                    [trial.play(good), trial.play(good)].map(|played| played.record);
                difference(&first, &second)
            }
            Self::ValidContext => {
                let record = trial.play(good).record;
                let mut violations = record.violations.iter();
                let found = violations.find(|violation| violation.level == Level::Rejected)?;
                Some(format!("call {}: {}", found.call, found.rule))
            }
            Self::KeepsLastUserMessage => {
                let call = trial.play(good).lost_user_at?;
                Some(format!("call {call}: it is not in the prompt as it was"))
            }
            Self::NeverLarger => {
                let record = trial.play(good).record;
                let asked: BTreeSet<usize> = record.model_calls.iter().map(|it| it.call).collect();
                let mut events = record.compactions.iter();
                let grown = events.find(|it| it.after > it.before && !asked.contains(&it.call))?;
                Some(format!(
                    "call {}: from {} to {} tokens",
                    grown.call, grown.before, grown.after
                ))
            }
            Self::IdempotentAtRest => {
                let call = trial
                    .replayed(Faults::default(), true, good)
                    .changed_again_at?;
                Some(format!("call {call}: it changed the context a second time"))
            }
            Self::SafeFailure => {
                let record = trial.play(|| Err(CallFailure::Timeout)).record;
                let asked: BTreeSet<usize> = record.model_calls.iter().map(|it| it.call).collect();
                let mut events = record.compactions.iter();
                let changed = events.find(|it| asked.contains(&it.call))?;
                Some(format!(
                    "call {}: from {} to {} tokens",
                    changed.call, changed.before, changed.after
                ))
            }
            Self::Survives(fault) => failure(&trial.under(fault, good).record),
        }
    }
}

/// The names of all rules.
pub fn rules() -> Vec<String> {
    Rule::all().map(Rule::name).collect()
}

/// Holds the strategy against every rule, over sessions that come from the seed.
///
/// A rule that is broken is not tried further. Where the strategy cannot even answer, the other rules say nothing.
pub fn check(spec: &StrategySpec, settings: &Settings) -> Outcome {
    let wanted = |rule: &Rule| !settings.allowed.contains(&rule.name());
    let mut rules: Vec<(Rule, Checked)> = Rule::all()
        .filter(wanted)
        .map(|rule| (rule, rule.unbroken()))
        .collect();
    let (mut changed, mut has_asked) = (0, false);
    for number in 0..settings.sessions {
        let Some(session) = sessions::generated(settings.seed, number) else {
            continue;
        };
        let trial = Trial::of(spec, &session, settings.window);
        let played = trial.play(|| Ok(response("a short summary")));
        changed += usize::from(!played.record.compactions.is_empty());
        has_asked |= !played.record.model_calls.is_empty();
        for (rule, checked) in &mut rules {
            if checked.finding.is_some() {
                continue;
            }
            checked.sessions += 1;
            checked.finding = rule.finding(spec, &session, number, settings);
            if *rule == Rule::Runs && checked.finding.is_some() {
                let rules = rules.into_iter().map(|(_, checked)| checked).collect();
                return Outcome {
                    rules,
                    changed,
                    has_asked,
                };
            }
        }
    }
    let rules = rules.into_iter().map(|(_, checked)| checked).collect();
    Outcome {
        rules,
        changed,
        has_asked,
    }
}

impl Rule {
    fn unbroken(self) -> Checked {
        Checked {
            rule: self.name(),
            expected: self.expected(),
            sessions: 0,
            finding: None,
        }
    }

    fn finding(
        self,
        spec: &StrategySpec,
        session: &Arc<Session>,
        number: usize,
        settings: &Settings,
    ) -> Option<Finding> {
        let holds =
            |session: &Arc<Session>| self.broken(&Trial::of(spec, session, settings.window));
        let got = holds(session)?;
        let (session, got) = sessions::smallest(session.clone(), got, holds);
        Some(Finding {
            got,
            number,
            session,
        })
    }
}

/// The reason why a cell failed.
fn failure(record: &CellRecord) -> Option<String> {
    match &record.end {
        End::Failed { call, error } => Some(format!("call {call}: {error}")),
        End::Completed | End::Died { .. } | End::NotMeasurable { .. } => None,
    }
}

/// Where two replays of the same part ways.
fn difference(first: &CellRecord, second: &CellRecord) -> Option<String> {
    if first == second {
        return None;
    }
    let mut pairs = first
        .prompt_tokens
        .iter()
        .zip(&second.prompt_tokens)
        .enumerate();
    let mut said = String::from("two replays differ");
    if let Some((call, (one, other))) = pairs.find(|(_, (one, other))| one != other) {
        let _ = write!(
            said,
            ": call {call} has a prompt of {one} tokens, and of {other}"
        );
    } else if let Some(at) =
        (0..first.changes.len()).find(|at| first.changes.get(*at) != second.changes.get(*at))
    {
        let call = first.compactions.get(at).map_or(0, |event| event.call);
        let _ = write!(said, ": the text that call {call} is sent");
    }
    Some(said)
}

/// A strategy and a session.
struct Trial<'a> {
    spec: &'a StrategySpec,
    session: Arc<Session>,
    window: Tokens,
}

/// Observations during a replay.
#[derive(Debug, Default)]
struct Seen {
    /// The first call whose prompt lacks the user's newest message.
    lost_user_at: Option<usize>,
    /// The first call before which a second question changed something.
    changed_again_at: Option<usize>,
}

struct Played {
    record: CellRecord,
    lost_user_at: Option<usize>,
    changed_again_at: Option<usize>,
}

impl<'a> Trial<'a> {
    fn of(spec: &'a StrategySpec, session: &Arc<Session>, window: Tokens) -> Self {
        Self {
            spec,
            session: session.clone(),
            window,
        }
    }

    fn play(&self, answer: impl Fn() -> Answer + Send + Sync + Copy + 'static) -> Played {
        self.replayed(Faults::default(), false, answer)
    }

    fn under(
        &self,
        fault: Fault,
        answer: impl Fn() -> Answer + Send + Sync + Copy + 'static,
    ) -> Played {
        let mut faults = Faults::default();
        let half = FaultSchedule::Probability(0.5);
        faults.schedules.insert(fault, half);
        self.replayed(faults, false, answer)
    }

    fn replayed(
        &self,
        faults: Faults,
        is_asked_twice: bool,
        answer: impl Fn() -> Answer + Send + Sync + Copy + 'static,
    ) -> Played {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watch = Watch {
            seen: seen.clone(),
            session: self.session.clone(),
        };
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let model = Scripted::new().reply(move |_| answer());
        let models = Models {
            summariser: Arc::new(model),
            ..Models::offline(&counts)
        };
        let name = CellName {
            strategy: self.spec.name().to_owned(),
            repeat: 0,
        };
        let prepared = PreparedSession::new(self.session.clone(), counts, Vec::new());
        let record = match (prepared, self.spec.build()) {
            (Ok(mut prepared), Ok(inner)) => {
                prepared.faults = Arc::new(faults);
                let inner: Box<dyn Strategy> = Box::new(inner);
                let seen = seen.clone();
                let strategy = if is_asked_twice {
                    Box::new(Twice { inner, seen })
                } else {
                    inner
                };
                let replayed = Replayed::Strategy(strategy, Window::new(self.window));
                let observers: Vec<Box<dyn Observer>> = vec![
                    Box::new(watch),
                    Box::new(Validity::default()),
                    Box::new(Changes::default()),
                ];
                replay_observed(&prepared, name, replayed, &models, &NoClock, observers).record
            }
            _ => CellRecord::default(),
        };
        let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        Played {
            record,
            lost_user_at: seen.lost_user_at,
            changed_again_at: seen.changed_again_at,
        }
    }
}

/// Looks at each prompt.
#[derive(Debug)]
struct Watch {
    seen: Arc<Mutex<Seen>>,
    session: Arc<Session>,
}

impl Observer for Watch {
    fn called(&mut self, view: &CallView<'_>) {
        let history = &self.session.messages()[..view.before];
        let is_user = |message: &Arc<Message>| message.role() == Role::User;
        let Some(newest) = history.iter().rposition(is_user) else {
            return;
        };
        let mut entries = view.context.entries().iter().rev();
        if !entries.any(|entry: &Entry| entry.origin == Origin::Verbatim(newest)) {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.lost_user_at.get_or_insert(view.call);
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}

/// Asks a strategy twice before each call. What the second question changes is left out of what happens next.
#[derive(Debug)]
struct Twice {
    inner: Box<dyn Strategy>,
    seen: Arc<Mutex<Seen>>,
}

/// A model that always says the same.
struct SameAnswer;

impl Caller for SameAnswer {
    fn call(&mut self, requests: Vec<Request>) -> Vec<Answer> {
        let answers = requests.iter().map(|_| Ok(response("a short summary")));
        answers.collect()
    }
}

impl Strategy for Twice {
    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        self.inner.on_append(context, cx)
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let first = drive(self.inner.before_call(context, cx), &mut SameAnswer);
        if first.outcome.is_ok() && !first.applied.is_empty() {
            let again = drive(
                self.inner.before_call(first.context.clone(), cx),
                &mut SameAnswer,
            );
            if !again.applied.is_empty() {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.changed_again_at.get_or_insert(cx.call);
            }
        }
        Step::Done(first)
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.inner.on_overflow(context, cx)
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.inner.after_call(context, cx)
    }
}
