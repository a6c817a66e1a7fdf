//! Following a context is as good as looking at all of it; and a walk for the tests of observers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::action_support::{ActionEntities, ActionSupportObserver};
use super::trail::{ArtifactTrailObserver, TrailPlan};
use super::{CallView, Observer};
use crate::context::{Applied, Context, Edit, Entry, Origin, visited};
use crate::model::offline::Offline;
use crate::model::price::Prices;
use crate::record::Reread;
use crate::replay::{
    CellName, Models, NoClock, PreparedSession, Replayed, replay, replay_observed,
};
use crate::session::synthetic::{Length, Recipe, generate};
use crate::session::{
    ContentBlock, JsonText, Message, Role, Session, SessionParts, Tag, ToolClass, ToolResult,
    ToolUse,
};
use crate::settings::Place;
use crate::strategy::StrategySpec;
use crate::strategy::trigger::{Condition, Trigger};
use crate::tokens::{Block, CharsPer4, CountedTexts, Size, TokenCounter};
use crate::units::Tokens;
use crate::window::Window;

/// The comparisons so far.
#[derive(Debug, Default)]
struct Seen {
    calls: usize,
    patches: usize,
    rereads: Vec<Reread>,
}

/// Follows a cell, and at each call looks at the whole context as well.
#[derive(Debug)]
struct Recount {
    plan: Arc<TrailPlan>,
    entities: Arc<ActionEntities>,
    trail: ArtifactTrailObserver,
    support: ActionSupportObserver,
    seen: Arc<Mutex<Seen>>,
}

impl Observer for Recount {
    fn appended(&mut self, entry: &Entry) {
        self.trail.appended(entry);
        self.support.appended(entry);
    }

    fn patched(&mut self, applied: &Applied) {
        self.trail.patched(applied);
        self.support.patched(applied);
        self.seen.lock().unwrap().patches += 1;
    }

    fn called(&mut self, view: &CallView<'_>) {
        self.trail.called(view);
        self.support.called(view);
        let mut trail = ArtifactTrailObserver::new(self.plan.clone());
        let mut support = ActionSupportObserver::new(self.entities.clone());
        for entry in view.context.entries() {
            trail.appended(entry);
            support.appended(entry);
        }
        trail.called(view);
        support.called(view);
        let now = |trail: &ArtifactTrailObserver| {
            let mut now = trail.now().clone();
            // A verb of which nothing is left is as good as one that never was.
            now.retain(|_, counts| *counts != crate::record::TrailCounts::default());
            now
        };
        assert_eq!(now(&self.trail), now(&trail), "call {}", view.call);
        // Everything missing now was missed now, or before.
        let missing: Vec<Reread> = support.rereads().to_vec();
        let known = self.support.rereads();
        for reread in missing {
            let same = |it: &&Reread| it.message == reread.message && it.tokens == reread.tokens;
            assert!(known.iter().any(|it| same(&it)), "call {}: {reread:?}", view.call);
        }
        let mut seen = self.seen.lock().unwrap();
        seen.calls += 1;
        seen.rereads = known.to_vec();
    }
}

#[track_caller]
fn check(strategy: &str) {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let recipe = Recipe { length: Length::Rounds(60), ..Recipe::default() };
    let made = generate(&recipe, &counts).unwrap();
    let session = Arc::new(made.session);
    let prepared = PreparedSession::new(session.clone(), counts.clone(), Vec::new()).unwrap();
    let plan = Arc::new(TrailPlan::new(&session));
    let entities = Arc::new(ActionEntities::new(&session, &counts).unwrap());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let recount = Recount {
        trail: ArtifactTrailObserver::new(plan.clone()),
        support: ActionSupportObserver::new(entities.clone()),
        plan,
        entities,
        seen: seen.clone(),
    };
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    let spec = StrategySpec::named(strategy, &trigger, &Place::BuiltIn).unwrap();
    let window = Window::new(crate::units::Tokens(prepared.largest_prompt().0 * 6 / 10));
    let offline = Arc::new(Offline::new(counts));
    let models = Models {
        summariser: offline,
        reader: None,
        judge: None,
        times: crate::replay::Repetitions::default(),
    };
    let name = CellName { strategy: strategy.to_owned(), repeat: 0 };
    let replayed = Replayed::Strategy(Box::new(spec.build().unwrap()), window);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(recount)];
    replay_observed(&prepared, name, replayed, &models, &NoClock, observers);
    let seen = seen.lock().unwrap();
    assert!(seen.calls > 20 && seen.patches > 0, "{strategy}: {seen:?}");
    assert!(!seen.rereads.is_empty(), "{strategy} lost nothing");
}

#[test]
fn what_is_told_of_files_and_what_is_missing_is_the_same_as_by_looking_at_everything() {
    for strategy in ["observation-masking", "tail@4000", "random@4000", "learn-claude-code-s06"] {
        check(strategy);
    }
}

/// Shows `observer` every message and call of `session`. `edits` names what is changed before a call,
/// all at once where it names anything; `after` sees observer and context behind every message.
pub(super) fn walk<O: Observer>(
    session: &Session,
    counts: &CountedTexts,
    observer: &mut O,
    edits: impl Fn(usize, &Context) -> Vec<Edit>,
    after: impl Fn(&O, &Context),
) {
    let mut context = Context::default();
    for (at, message) in session.messages().iter().enumerate() {
        if let Ok(call) = session.calls().binary_search(&at) {
            let edits = edits(call, &context);
            if !edits.is_empty() {
                observer.patched(&Applied {
                    call,
                    stage: "test".into(),
                    reason: String::new(),
                    change: context.apply(edits).unwrap(),
                    is_still_over: false,
                    prepared_at: None,
                });
            }
            observer.called(&CallView {
                call,
                before: at,
                session,
                context: &context,
                fixed: Size::default(),
                scale: crate::bill::Scale::COUNTED,
                response: message,
                edge: None,
            });
        }
        let entry = Entry::new(Origin::Verbatim(at), message.clone(), counts);
        observer.appended(&entry);
        context.append(entry);
        after(observer, &context);
    }
}

/// Four characters to a token; counts how often a block is measured.
#[derive(Debug, Default)]
struct Measuring(AtomicU64);

impl TokenCounter for Measuring {
    fn name(&self) -> &'static str {
        "measuring"
    }

    fn count(&self, text: &str) -> Tokens {
        CharsPer4.count(text)
    }

    fn count_block(
        &self,
        block: &Block<'_>,
        count: &dyn Fn(&Arc<str>) -> Tokens,
        images: Tokens,
    ) -> Tokens {
        self.0.fetch_add(1, Ordering::Relaxed);
        count(block.text) + images
    }
}

/// So many rounds of an agent that reads a file in each.
fn rounds(count: usize) -> Session {
    let mut messages = vec![Message::text(Role::User, "go").with_tags([Tag::TypedUser])];
    for round in 0..count {
        let id: Arc<str> = round.to_string().into();
        messages.push(Message::new(
            Role::Assistant,
            vec![ContentBlock::ToolUse(Box::new(ToolUse {
                id: id.clone(),
                name: "Read".into(),
                class: ToolClass::Read,
                input: JsonText::parse(&format!(r#"{{"path":"src/file_{round}.rs"}}"#)).unwrap(),
            }))],
        ));
        let text = format!("fn number_{round}() {{}}\n").repeat(20);
        messages.push(Message::new(
            Role::User,
            vec![ContentBlock::ToolResult(Box::new(ToolResult {
                tool_use_id: id,
                content: vec![ContentBlock::Text(text.into())],
                is_error: false,
            }))],
        ));
    }
    messages.push(Message::text(Role::Assistant, "done"));
    Session::new(SessionParts {
        id: "rounds".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    })
    .unwrap()
}

/// What a cell costs.
#[derive(Debug)]
struct Work {
    /// Blocks measured, and entries and blocks moved, checked and added up.
    visited: u64,
    /// Bytes of its record.
    record: usize,
    /// Where it changed the context, and the sizes that it came to.
    sizes: BTreeMap<usize, Tokens>,
}

/// The work of a cell of this strategy; one that follows another cuts to these sizes.
fn work(strategy: &str, window: u64, count: usize, sizes: BTreeMap<usize, Tokens>) -> Work {
    let counter = Arc::new(Measuring::default());
    let counts = Arc::new(CountedTexts::new(counter.clone()));
    let session = Arc::new(rounds(count));
    let schemes = Prices::built_in().unwrap().schemes("anthropic", None);
    let prepared =
        PreparedSession::new(session, counts.clone(), Vec::new()).unwrap().with_cache(schemes, 30);
    let models = Models {
        summariser: Arc::new(Offline::new(counts)),
        reader: None,
        judge: None,
        times: crate::replay::Repetitions::default(),
    };
    let trigger = Trigger::of(Condition::window_fraction(0.8));
    let spec = StrategySpec::named(strategy, &trigger, &Place::BuiltIn).unwrap().with_sizes(sizes);
    let replayed = Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(window)));
    let name = CellName { strategy: strategy.to_owned(), repeat: 0 };
    let before = visited();
    let record = replay(&prepared, name, replayed, &models, &NoClock).record;
    assert_eq!(record.reached_calls, count + 1, "{strategy}");
    let sizes = record.compactions.iter().map(|event| (event.call, event.after)).collect();
    Work {
        visited: counter.0.load(Ordering::Relaxed) + visited() - before,
        record: serde_json::to_string(&record).unwrap().len(),
        sizes,
    }
}

#[test]
fn the_work_of_a_run_grows_with_its_calls_and_no_faster() {
    for (strategy, window) in
        [("none", 1_000_000), ("observation-masking", 1_000_000), ("codex", 10_000)]
    {
        let control = format!("tail@{strategy}");
        let [once, twice] = [200, 400].map(|count| {
            let own = work(strategy, window, count, BTreeMap::new());
            let control = work(&control, window, count, own.sizes.clone());
            [own, control]
        });
        for (once, twice) in once.iter().zip(&twice) {
            let grows = |once: u64, twice: u64| {
                assert!(twice * 2 < once * 5, "{strategy}: {once}, then {twice}");
            };
            grows(once.visited, twice.visited);
            grows(once.record as u64, twice.record as u64);
        }
    }
}
