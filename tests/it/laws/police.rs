//! Watches a strategy through a session, and notes each law that it breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use proctor::context::{Applied, Context, Entry, Origin};
use proctor::model::Request;
use proctor::model::scripted::Scripted;
use proctor::record::{CellRecord, Level, PutEntry};
use proctor::replay::observe::changes::Changes;
use proctor::replay::observe::messages::Messages;
use proctor::replay::observe::validity::Validity;
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{NoClock, PreparedSession, Replayed, replay_observed};
use proctor::session::{Role, Session, Tag};
use proctor::step::{CallResult, Caller, Step, drive};
use proctor::strategy::law::Law;
use proctor::strategy::situation::Situation;
use proctor::strategy::{Compaction, Pipeline, Strategy, StrategySpec};
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{cell, models};

/// The window of all trials.
pub(super) const WINDOW: Tokens = Tokens(6_000);

/// What a strategy did in one session.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The laws it broke.
    pub(super) broken: BTreeSet<Law>,
    /// Stages that made the context larger without a model.
    pub(super) grown: BTreeSet<String>,
    /// Stages that changed something.
    pub(super) changed: BTreeSet<String>,
    /// Whether a model was asked for anything.
    pub(super) has_asked: bool,
    /// Tokens of each entry of each prompt of the last replay.
    prompts: Vec<Vec<Tokens>>,
}

/// Replays the session, in which each request of the strategy gets `answer`.
pub(super) fn observed(
    spec: &StrategySpec,
    prepared: &PreparedSession,
    answer: &CallResult,
) -> Seen {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let once = |strategy: Box<dyn Strategy>| {
        let police = Police { seen: seen.clone(), session: prepared.session().clone() };
        let answer = answer.clone();
        let window = Window::new(WINDOW);
        replay_observed(
            prepared,
            cell(spec.name()),
            Replayed::Strategy(strategy, window),
            &models(Scripted::new().reply(move |_| answer.clone())),
            &NoClock,
            vec![Box::new(police), Box::new(Validity::default()), Box::new(Changes::default())],
        )
        .record
    };
    let record = once(Box::new(spec.build().unwrap()));
    let prompts = std::mem::take(&mut seen.lock().unwrap().prompts);
    assert_eq!(rebuilt(&record, &full_history(prepared)), prompts);
    // Deterministic: the same again.
    assert_eq!(once(Box::new(spec.build().unwrap())), record);
    once(Box::new(Twice {
        inner: spec.build().unwrap(),
        seen: seen.clone(),
        answer: answer.clone(),
    }));
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    let mut violations = record.violations.iter();
    if violations.any(|violation| violation.level == Level::Rejected) {
        seen.broken.insert(Law::ValidContext);
    }
    let events = record.compactions.into_iter();
    seen.changed.extend(events.map(|event| event.stage));
    seen
}

/// Full history, with its messages.
fn full_history(prepared: &PreparedSession) -> CellRecord {
    let models = models(Scripted::new());
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(Messages::default())];
    replay_observed(prepared, cell("full"), Replayed::Full, &models, &NoClock, observers).record
}

/// Tokens of each entry of each prompt, as the record of a cell and that of full history give them: what
/// the page of a report does when it shows a prompt entry by entry.
fn rebuilt(record: &CellRecord, full: &CellRecord) -> Vec<Vec<Tokens>> {
    let size = |at: usize| full.messages[at].tokens;
    let put = |entry: &PutEntry| match entry {
        PutEntry::Message(at) => size(*at),
        PutEntry::Entry(entry) => entry.tokens,
    };
    let (mut changes, mut shortened) = (record.changes.iter().peekable(), BTreeMap::new());
    let (mut entries, mut next) = (Vec::new(), 0);
    let mut prompts = Vec::new();
    for before in &full.answered_by[..record.reached_calls] {
        while let Some(change) = changes.next_if(|it| it.appended <= *before) {
            entries.extend(
                (next..change.appended).map(|at| shortened.remove(&at).unwrap_or(size(at))),
            );
            next = change.appended;
            if change.on_append {
                shortened.extend(change.edits.iter().map(|edit| (next, put(&edit.put[0]))));
                continue;
            }
            for edit in change.edits.iter().rev() {
                entries.splice(edit.at..edit.at + edit.taken, edit.put.iter().map(put));
            }
        }
        entries.extend((next..*before).map(|at| shortened.remove(&at).unwrap_or(size(at))));
        next = *before;
        prompts.push(entries.clone());
    }
    prompts
}

/// Looks at each prompt.
#[derive(Debug)]
struct Police {
    seen: Arc<Mutex<Seen>>,
    session: Arc<Session>,
}

impl Observer for Police {
    fn called(&mut self, view: &CallView<'_>) {
        let mut seen = self.seen.lock().unwrap();
        let entries = view.context.entries();
        let sizes = entries.iter().map(|entry| entry.size().tokens);
        seen.prompts.push(sizes.collect());
        if !entries.iter().all(|entry| self.is_true(entry, view.before)) {
            seen.broken.insert(Law::TrueOrigins);
        }
        let history = &self.session.messages()[..view.before];
        let newest = history.iter().rposition(|message| message.role() == Role::User);
        let kept = |at: usize| {
            let mut newest_first = entries.iter().rev();
            newest_first.any(|entry| entry.origin == Origin::Verbatim(at))
        };
        if newest.is_some_and(|at| !kept(at)) {
            seen.broken.insert(Law::KeepsLastUserMessage);
        }
    }
}

impl Police {
    fn is_true(&self, entry: &Entry, before: usize) -> bool {
        let message = |at: usize| self.session.messages().get(at).filter(|_| at < before);
        match &entry.origin {
            Origin::Verbatim(at) => message(*at).is_some_and(|m| *m == entry.message),
            Origin::Edited { message: at, blocks } => message(*at).is_some_and(|m| {
                let same = |block: usize| m.content()[block] == entry.message.content()[block];
                m.content().len() == entry.message.content().len()
                    && (0..m.content().len())
                        .all(|block| blocks.contains(&u32::try_from(block).unwrap()) != same(block))
            }),
            Origin::Derived(ranges) => {
                !ranges.is_empty()
                    && ranges.iter().all(|range| range.start < range.end && range.end <= before)
                    && ranges.windows(2).all(|pair| pair[0].end < pair[1].start)
            }
            Origin::Restored(at) => message(*at).is_some(),
            Origin::Authored => {
                entry.message.has_tag(Tag::Meta) || entry.size().tokens < Tokens(50)
            }
        }
    }
}

/// A model that always says the same. Requests that are made at once succeed or fail as one.
pub(super) struct Fixed<'a> {
    answer: &'a CallResult,
    /// How often it was asked.
    pub(super) asked: usize,
}

impl<'a> Fixed<'a> {
    pub(super) fn new(answer: &'a CallResult) -> Self {
        Self { answer, asked: 0 }
    }
}

impl Caller for Fixed<'_> {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        self.asked += 1;
        requests.iter().map(|_| self.answer.clone()).collect()
    }
}

/// Asks a strategy twice before each call, and compares the contexts before, between and after.
#[derive(Debug)]
struct Twice {
    inner: Pipeline,
    seen: Arc<Mutex<Seen>>,
    answer: CallResult,
}

impl Twice {
    /// Compares what came of a context with what it was.
    fn compare(&self, before: Tokens, after: &Compaction, asked: usize) {
        let mut seen = self.seen.lock().unwrap();
        seen.has_asked |= asked > 0;
        // A model that failed has written nothing.
        if asked == 0 || self.answer.is_err() {
            seen.note_growth(before, after.context.size().tokens, &after.applied);
        }
        // A stage that asked, and got nothing, has failed and did nothing.
        let failures = after.failures.iter();
        let mut failed = failures.map(|failure| &failure.stage);
        let acted = |stage: &Arc<str>| after.applied.iter().any(|applied| applied.stage == *stage);
        let made_up = asked > 0 && after.failures.is_empty() || failed.any(acted);
        if self.answer.is_err() && made_up {
            seen.broken.insert(Law::SafeFailure);
        }
    }
}

impl Seen {
    fn note_growth(&mut self, before: Tokens, after: Tokens, applied: &[Applied]) {
        if after > before {
            self.broken.insert(Law::NeverLarger);
        }
        let grown = applied
            .iter()
            .filter(|applied| applied.change.after.tokens > applied.change.before.tokens);
        self.grown.extend(grown.map(|applied| applied.stage.to_string()));
    }
}

impl Strategy for Twice {
    fn on_load(&mut self, loaded: &[Entry]) {
        self.inner.on_load(loaded);
    }

    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        let before = context.size().tokens;
        let appended = self.inner.on_append(context, cx);
        let mut seen = self.seen.lock().unwrap();
        seen.note_growth(before, appended.context.size().tokens, &appended.applied);
        drop(seen);
        appended
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let answer = self.answer.clone();
        let mut caller = Fixed::new(&answer);
        let before = context.size().tokens;
        let mut first = drive(self.inner.before_call(context, cx), &mut caller);
        self.compare(before, &first, caller.asked);
        let again = drive(self.inner.before_call(first.context.clone(), cx), &mut caller);
        if !again.applied.is_empty() {
            let mut seen = self.seen.lock().unwrap();
            seen.broken.insert(Law::IdempotentAtRest);
            first.applied.extend(again.applied);
        }
        // Stages keep places in the context that they saw last.
        first.context = again.context;
        Step::Done(first)
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let answer = self.answer.clone();
        let mut caller = Fixed::new(&answer);
        let before = context.size().tokens;
        let recovery = drive(self.inner.on_overflow(context, cx), &mut caller);
        self.compare(before, &recovery, caller.asked);
        Step::Done(recovery)
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let answer = self.answer.clone();
        let mut caller = Fixed::new(&answer);
        let before = context.size().tokens;
        let after = drive(self.inner.after_call(context, cx), &mut caller);
        self.compare(before, &after, caller.asked);
        Step::Done(after)
    }
}
