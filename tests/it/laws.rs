//! The laws of `strategy::law`, over generated sessions: what a strategy declares to break is
//! exactly what breaks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proctor::context::{Context, Entry, Origin};
use proctor::model::CallFailure;
use proctor::model::scripted::{Scripted, When, response};
use proctor::record::{CellRecord, End, Level};
use proctor::replay::observe::validity::Validity;
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{NoClock, PreparedSession, Replayed, replay_observed};
use proctor::session::import::{self, tool_names::class_of};
use proctor::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session, Tag,
    Thinking, ToolUse,
};
use proctor::settings::Table;
use proctor::step::{Answer, Caller, drive};
use proctor::strategy::law::Law;
use proctor::strategy::preset::PRESETS;
use proctor::strategy::situation::Situation;
use proctor::strategy::stage::STAGES;
use proctor::strategy::trigger::Trigger;
use proctor::strategy::{Strategy, StrategySpec};
use proctor::units::Tokens;
use proctor::window::Window;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::shared;
use crate::support::{
    cell, models, prepared, said, session, session_with, strategy, tool_result, tool_use, typed,
};

const WINDOW: u64 = 6_000;

/// A valid session: parallel calls, empty and huge results, typed messages, `compact` calls.
fn random_session(seed: u64) -> Session {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut below = move |limit: u64| random.next_u64() % limit;
    let mut messages = vec![typed("Begin with this.")];
    let rounds = 1 + below(40);
    for round in 0..rounds {
        let mut uses = Vec::new();
        let mut results = Vec::new();
        for n in 0..=below(3) {
            let id = format!("t{round}-{n}");
            let name =
                ["Read", "Bash", "Edit", "compact"][usize::try_from(below(12) / 3).unwrap().min(3)];
            let name = if name == "compact" && below(4) > 0 {
                "Read"
            } else {
                name
            };
            uses.push(tool_use(&id, name, &format!("argument {round} {n}")));
            let words = [0, 1, 10, 200, 1_500][usize::try_from(below(5)).unwrap()];
            results.push(tool_result(
                &id,
                &format!("wörd{} ", below(1_000)).repeat(words),
            ));
        }
        messages.push(Message::new(Role::Assistant, uses));
        messages.push(Message::new(Role::User, results));
        if below(5) == 0 {
            messages.push(said(&format!("Part {round} is done.")));
            messages.push(typed(&format!("Then do part {round} again.")));
        }
    }
    messages.push(said("Everything is done."));
    session(messages)
}

/// A valid session of other things: files read again, changed and written, thinking, task lists,
/// sub-agents, marked results, results in messages of their own, and responses that came in parts.
fn varied_session(seed: u64) -> Session {
    let mut random = ChaCha8Rng::seed_from_u64(1_000 + seed);
    let mut below = move |limit: u64| usize::try_from(random.next_u64() % limit).unwrap();
    let mut messages = vec![typed("Begin with this.")];
    let mut asked: Vec<String> = Vec::new();
    for round in 0..2 + below(40) {
        let mut parts: Vec<Vec<ContentBlock>> = vec![Vec::new()];
        let mut results = Vec::new();
        if below(3) == 0 {
            let text = format!("thought {round} ").repeat(1 + 20 * below(6)).into();
            let signature = Some("signed".into());
            parts[0].push(ContentBlock::Thinking(Thinking { text, signature }));
        }
        for n in 0..=below(3) {
            let id = format!("v{round}-{n}");
            let path = format!("src/file_{}.rs", below(4));
            let body = format!("fn lïne_{}() {{}}\n", below(2)).repeat([1, 20, 120][below(3)]);
            let (name, input, result) = match below(9) {
                0..=3 => ("Read", json!({ "file_path": path }), body),
                4 => (
                    "Edit",
                    json!({ "file_path": path, "old_string": "a", "new_string": body }),
                    "Done.".to_owned(),
                ),
                5 => (
                    "Write",
                    json!({ "file_path": path, "content": body }),
                    "Written.".to_owned(),
                ),
                6 => (
                    "TodoWrite",
                    json!({ "todos": [{ "task": format!("step {round}"), "status": "open" }] }),
                    "Noted.".to_owned(),
                ),
                7 => (
                    "Task",
                    json!({ "prompt": body }),
                    "The other agent is done.".to_owned(),
                ),
                _ => ("snip", json!({ "results": asked }), "Marked.".to_owned()),
            };
            let class = class_of(name);
            // A response that came in parts has its tool uses in all of them.
            if n > 0 && below(3) == 0 {
                parts.push(Vec::new());
            }
            let part = parts.last_mut().unwrap();
            let (name, input) = (name.into(), JsonText::of(&input));
            part.push(ContentBlock::ToolUse(ToolUse {
                id: id.as_str().into(),
                name,
                class,
                input,
            }));
            results.push(tool_result(&id, &result));
            asked.push(id);
        }
        // Only the first part of a response is preceded by a call.
        for (at, part) in parts.into_iter().enumerate() {
            let message = Message::new(Role::Assistant, part);
            messages.push(if at == 0 {
                message
            } else {
                message.with_tags([Tag::Synthetic])
            });
        }
        if below(2) == 0 {
            messages.push(Message::new(Role::User, results));
        } else {
            messages.extend(
                results
                    .into_iter()
                    .map(|result| Message::new(Role::User, vec![result])),
            );
        }
        if below(4) == 0 {
            messages.push(said(&format!("Part {round} is done.")));
            messages.push(typed(&format!("Then do part {round} again.")));
        }
    }
    messages.push(said("Everything is done."));
    let compactions = recorded(&messages, &mut below);
    session_with(messages, compactions)
}

/// What a careless product left of two thirds of the messages: a note of some length, and the last
/// few from anywhere on.
fn recorded(messages: &[Message], below: &mut impl FnMut(u64) -> usize) -> Vec<RecordedCompaction> {
    let at = messages.len() * 2 / 3;
    let note = "What was said. ".repeat([1, 4_000][below(2)]);
    let mut note = Message::text(Role::User, note);
    if below(2) == 0 {
        note = note.with_tags([Tag::CompactSummary]);
    }
    let kept = at.saturating_sub(below(4))..at;
    vec![RecordedCompaction {
        at,
        trigger: None,
        pre_tokens: None,
        after: CompactedTo::Replaced(vec![
            Recorded::Written(Arc::new(note)),
            Recorded::Kept(kept),
        ]),
    }]
}

/// The preset as it has something to do in these windows: thresholds that lie above them are lower.
fn early(name: &str) -> String {
    let over = "tokens_over = 2000";
    let overrides = match name {
        "aloop-deletion" => format!("drop_oldest.when={{ {over} }}"),
        "learn-claude-code-s08-unguarded" | "aloop-sliding-window" | "aloop-selective" => {
            format!("summarize.when={{ {over} }}")
        }
        "aloop-rfc005" => format!("truncate_output.max_tokens=300,summarize.when={{ {over} }}"),
        "codex" => "truncate_output.max_tokens=300".to_owned(),
        "claude-code" | "claude-code-snip-drop" | "claude-code-cached-micro" => {
            format!("offload_results.max_total_chars=4000,summarize.when={{ {over} }}")
        }
        "claude-code-session-memory" => format!(
            "offload_results.max_total_chars=4000,session_memory.when={{ {over} }},\
             session_memory.init_tokens=500,session_memory.update_every_tokens=400,\
             session_memory.min_tokens=600,session_memory.reserve_tokens=1000,\
             summarize.when={{ all = [{{ {over} }}, {{ unless = 'session_memory' }}] }}"
        ),
        "manual-phases" => format!(
            "offload_results.max_total_chars=4000,summarize.when={{ any = ['marker', {{ {over} }}] }}"
        ),
        "claude-code-collapse" | "claude-code-reactive-only" => {
            "offload_results.max_total_chars=4000".to_owned()
        }
        _ => return name.to_owned(),
    };
    format!("{name}[{overrides}]")
}

/// Strategies to put on trial: all presets and controls, and each stage on its own.
fn on_trial() -> Vec<StrategySpec> {
    let own = |name: &str, text: &str| {
        StrategySpec::of(name, Table::parse(name, text).unwrap(), &Trigger::always()).unwrap()
    };
    let mut specs: Vec<StrategySpec> = PRESETS
        .iter()
        .map(|(name, _)| strategy(&early(name)))
        .collect();
    specs.extend(
        [
            "tail@2000",
            "random@2000",
            "tail@observation-masking",
            "random@none",
        ]
        .map(strategy),
    );
    specs.push(own(
        "drop-rounds",
        "[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.5\n[overflow]\nstage = 'drop_oldest'",
    ));
    for pinned in [0, 2, 5] {
        specs.push(own(
            &format!("drop-rounds-{pinned}"),
            &format!("[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.5\npin_first = {pinned}"),
        ));
    }
    for (at, stages) in [
        // The results of one turn may be larger than what is protected.
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'clear_results'\nprotect_tokens = 500\nmin_gain_tokens = 400\nmin_chars = 40",
        "[[stage]]\nkind = 'clear_results'\nprotect_turns = 1\nkeep_last = 4\nmin_chars = 40\nmode = 'cache_edit'",
        "[[stage]]\nkind = 'clear_results'\nkeep_last = 4\nevery = 3\nmin_chars = 30\nexcept_tools = ['class:edit', 'compact']",
        "[[stage]]\nkind = 'clear_results'\nkeep_last = 4\nmin_chars = 40\nguards.min_gain_tokens = 1_000",
    ]
    .iter()
    .enumerate()
    {
        specs.push(own(&format!("clear-{at}"), stages));
    }
    specs.push(own(
        "dedupe",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'dedupe_reads'\nsupersede = true",
    ));
    let memory = "[[stage]]\nkind = 'session_memory'\ninit_tokens = 500\nupdate_every_tokens = 400\nmin_tokens = 600\nreserve_tokens = 1_000";
    specs.push(own(
        "memory",
        &format!("{memory}\nwhen = {{ tokens_over = 2_000 }}"),
    ));
    specs.push(own("memory-always", memory));
    // What is put back can be one thing too many again.
    specs.push(own(
        "restore",
        "breaks = ['idempotent_at_rest']\n[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.3\n[[stage]]\nkind = 'restore'\nmax_tokens_per_file = 300",
    ));
    specs.push(own(
        "collapse",
        "[[stage]]\nkind = 'collapse_groups'\ncommit_at = 0.5\ntarget = 0.3\nmax_output_tokens = 30",
    ));
    for knobs in [
        "unit = 'pair'",
        "unit = 'pair'\nfraction = 0.4",
        "fraction = 1",
    ] {
        specs.push(own(
            &format!("drop-{knobs}"),
            &format!("[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.5\n{knobs}"),
        ));
    }
    specs.push(own(
        "clear-inputs",
        "[[stage]]\nkind = 'clear_inputs'\nmax_chars = 40\nkeep_last = 2\n[[stage]]\nkind = 'clear_thinking'",
    ));
    specs.push(own(
        "digest",
        "[[stage]]\nkind = 'digest'\nwhen = { tokens_over = 2_000 }",
    ));
    specs.push(own(
        "digest-always",
        "[[stage]]\nkind = 'digest'\ncut = 'pair'\ntarget_tokens = 200",
    ));
    for method in ["lead", "textrank", "tfidf", "bm25_last_user", "atoms"] {
        specs.push(own(
            method,
            &format!("[[stage]]\nkind = 'extract'\nbudget_fraction = 0.3\nmethod = '{method}'"),
        ));
    }
    for marks in ["[]", "['tool', 'tag', 'read_then_edited']"] {
        specs.push(own(
            &format!("snip-{}", marks.len()),
            &format!("[[stage]]\nkind = 'snip'\nmarks = {marks}"),
        ));
    }
    specs.push(own(
        "drop-messages",
        "breaks = ['valid_context']\n[[stage]]\nkind = 'drop_oldest'\nunit = 'message'\npin_first = 0\nfit_fraction = 0.3",
    ));
    specs.push(own(
        "summarise-early",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'summarize'\nwhen = { tokens_over = 2_000 }",
    ));
    specs.push(own(
        "summarise-and-keep",
        "[[stage]]\nkind = 'summarize'\nwhen = { messages_over = 30 }\nkeep_last_messages = 4\ncut = 'round'",
    ));
    specs.push(own(
        "truncate",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'truncate_output'\nmax_tokens = 100\nexcept_tools = ['class:edit']",
    ));
    specs.push(own(
        "offload-each",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'offload_results'\nscope = 'each'\nmax_total_chars = 500\npreview_chars = 50\npreview_tail_chars = 20",
    ));
    specs.push(own(
        "offload-last",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'offload_results'\nmax_total_chars = 2000\npreview_chars = 100",
    ));
    let middle =
        "[[stage]]\nkind = 'drop_middle'\nmax_messages = 12\nguards.on_inflation = 'apply'";
    for cut in ["pair", "batch", "round"] {
        specs.push(own(
            &format!("middle-{cut}"),
            &format!("{middle}\ncut = '{cut}'"),
        ));
    }
    specs.push(own(
        "middle-none",
        &format!("breaks = ['valid_context']\n{middle}\ncut = 'none'"),
    ));
    // What breaks without a guard is repaired, either way; answers that are added make one message
    // too many again.
    for (name, knobs) in [
        ("repaired", ""),
        (
            "repaired-by-dropping",
            "missing_result = 'drop_call'\norphan_result = 'to_text'",
        ),
    ] {
        specs.push(own(
            name,
            &format!(
                "breaks = ['idempotent_at_rest']\n{middle}\ncut = 'none'\n[[stage]]\nkind = 'normalize'\n{knobs}"
            ),
        ));
    }
    specs.push(own(
        "merge",
        "breaks = ['keeps_last_user_message']\n[[stage]]\nkind = 'normalize'\nmerge_same_role = true",
    ));
    specs
}

/// Collects the laws that were broken in one cell.
#[derive(Debug)]
struct Police {
    broken: Arc<Mutex<BTreeSet<Law>>>,
    session: Arc<Session>,
}

impl Observer for Police {
    fn called(&mut self, view: &CallView<'_>) {
        let mut broken = self.broken.lock().unwrap();
        for entry in view.context.entries() {
            if !self.is_true(entry, view.before) {
                broken.insert(Law::TrueOrigins);
            }
        }
        let history = &self.session.messages()[..view.before];
        let newest = history
            .iter()
            .rposition(|message| message.role() == Role::User);
        let kept = |at: usize| {
            view.context
                .entries()
                .iter()
                .any(|entry| entry.origin == Origin::Verbatim(at))
        };
        if newest.is_some_and(|at| !kept(at)) {
            broken.insert(Law::KeepsLastUserMessage);
        }
    }

    fn finish(self: Box<Self>, _: &mut CellRecord) {}
}

impl Police {
    fn is_true(&self, entry: &Entry, before: usize) -> bool {
        let message = |at: usize| self.session.messages().get(at).filter(|_| at < before);
        match &entry.origin {
            Origin::Verbatim(at) => message(*at).is_some_and(|m| *m == entry.message),
            Origin::Edited {
                message: at,
                blocks,
            } => message(*at).is_some_and(|m| {
                let same = |block: usize| m.content()[block] == entry.message.content()[block];
                m.content().len() == entry.message.content().len()
                    && (0..m.content().len())
                        .all(|block| blocks.contains(&u32::try_from(block).unwrap()) != same(block))
            }),
            Origin::Derived(ranges) => {
                !ranges.is_empty()
                    && ranges
                        .iter()
                        .all(|range| range.start < range.end && range.end <= before)
                    && ranges.windows(2).all(|pair| pair[0].end < pair[1].start)
            }
            Origin::Restored(at) => message(*at).is_some(),
            Origin::Authored => entry.message.has_tag(Tag::Meta) || entry.size.tokens < Tokens(50),
        }
    }
}

/// Asks a strategy twice before each call, and compares the contexts before, between and after.
#[derive(Debug)]
struct Twice {
    inner: proctor::strategy::Pipeline,
    /// Stages that made the context larger on their own.
    grown: Arc<Mutex<BTreeSet<Arc<str>>>>,
    broken: Arc<Mutex<BTreeSet<Law>>>,
    answer: Answer,
}

struct Fixed<'a>(&'a Answer, usize);

impl Caller for Fixed<'_> {
    fn call(&mut self, requests: Vec<proctor::model::Request>) -> Vec<Answer> {
        // Requests that are made at once succeed or fail as one.
        self.1 += 1;
        requests.iter().map(|_| self.0.clone()).collect()
    }
}

impl Strategy for Twice {
    fn on_append(&mut self, entry: Entry, cx: &Situation) -> proctor::strategy::Appended {
        self.inner.on_append(entry, cx)
    }

    fn before_call<'a>(
        &'a mut self,
        context: Context,
        cx: &'a Situation,
    ) -> proctor::step::Step<'a, proctor::strategy::Compacted> {
        let mut caller = Fixed(&self.answer, 0);
        let before = context.clone();
        let mut first = drive(self.inner.before_call(context, cx), &mut caller);
        let mut broken = self.broken.lock().unwrap();
        // One placeholder may be larger than what it stands for.
        let allowance = Tokens(12);
        if caller.1 == 0 && first.context.size().tokens > before.size().tokens + allowance {
            broken.insert(Law::NeverLarger);
        }
        let applied = first.applied.iter();
        let grown =
            applied.filter(|applied| applied.change.after.tokens > applied.change.before.tokens);
        let mut noted = self.grown.lock().unwrap();
        noted.extend(grown.map(|applied| applied.stage.clone()));
        drop(noted);
        // Nothing may come of calls that all failed: a stage that asked has failed, and did nothing.
        let asking = first.failures.iter().map(|failure| &failure.stage);
        let acted = |stage: &Arc<str>| first.applied.iter().any(|applied| applied.stage == *stage);
        let made_up = caller.1 > 0 && first.failures.is_empty() || asking.into_iter().any(acted);
        if self.answer.is_err() && made_up {
            broken.insert(Law::SafeFailure);
        }
        let again = drive(
            self.inner.before_call(first.context.clone(), cx),
            &mut caller,
        );
        if !again.applied.is_empty() {
            broken.insert(Law::IdempotentAtRest);
            first.applied.extend(again.applied);
            first.context = again.context;
        }
        proctor::step::Step::Done(first)
    }

    fn on_overflow<'a>(
        &'a mut self,
        context: Context,
        cx: &'a Situation,
    ) -> proctor::step::Step<'a, proctor::strategy::Recovery> {
        self.inner.on_overflow(context, cx)
    }

    fn after_call<'a>(
        &'a mut self,
        context: Context,
        cx: &'a Situation,
    ) -> proctor::step::Step<'a, proctor::strategy::Compacted> {
        self.inner.after_call(context, cx)
    }
}

fn broken_by(spec: &StrategySpec, prepared: &PreparedSession, answer: &Answer) -> BTreeSet<Law> {
    observed(spec, prepared, answer).0
}

/// The laws that were broken, the stages that made the context larger on their own, and those that
/// changed something.
fn observed(
    spec: &StrategySpec,
    prepared: &PreparedSession,
    answer: &Answer,
) -> (BTreeSet<Law>, BTreeSet<Arc<str>>, BTreeSet<String>) {
    let grown = Arc::new(Mutex::new(BTreeSet::new()));
    let broken = Arc::new(Mutex::new(BTreeSet::new()));
    let once = |strategy: Box<dyn Strategy>| {
        let police = Police {
            broken: broken.clone(),
            session: prepared.session().clone(),
        };
        let answer = answer.clone();
        replay_observed(
            prepared,
            cell(spec.name()),
            Replayed::Strategy(strategy, Window::new(Tokens(WINDOW))),
            &models(Scripted::new().reply(When::always(), move |_| answer.clone())),
            &NoClock,
            vec![Box::new(police), Box::new(Validity::default())],
        )
    };
    let replay = once(Box::new(spec.build().unwrap()));
    let twice = Twice {
        inner: spec.build().unwrap(),
        grown: grown.clone(),
        broken: broken.clone(),
        answer: answer.clone(),
    };
    once(Box::new(twice));
    let mut broken = broken.lock().unwrap().clone();
    if replay
        .record
        .violations
        .iter()
        .any(|violation| violation.level == Level::Rejected)
    {
        broken.insert(Law::ValidContext);
    }
    // Deterministic: the same again.
    assert_eq!(once(Box::new(spec.build().unwrap())).record, replay.record);
    let grown = grown.lock().unwrap().clone();
    let events = replay.record.compactions.into_iter();
    (broken, grown, events.map(|event| event.stage).collect())
}

#[test]
fn strategies_break_exactly_the_laws_they_declare() {
    let mut wrong = Vec::new();
    for spec in on_trial() {
        let mut broken = BTreeSet::new();
        let sessions = (0..40)
            .map(random_session)
            .chain((0..40).map(varied_session));
        for session in sessions {
            let prepared = prepared(session);
            broken.extend(broken_by(
                &spec,
                &prepared,
                &Ok(response("a short summary")),
            ));
            broken.extend(broken_by(&spec, &prepared, &Err(CallFailure::Timeout)));
        }
        let declared: BTreeSet<Law> = spec.breaks().unwrap().into_iter().collect();
        if broken != declared {
            wrong.push(format!(
                "{} breaks {broken:?}, not {declared:?}",
                spec.name()
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_shortest_sessions_pass_through_every_strategy() {
    for spec in on_trial() {
        for messages in [
            vec![said("hello")],
            vec![typed("hello")],
            vec![typed("a"), said("b")],
        ] {
            let prepared = prepared(session(messages));
            broken_by(&spec, &prepared, &Ok(response("a short summary")));
        }
    }
}

/// A stage of this kind with something to do, and what has to happen before: knobs, and a stage
/// that leaves it work. A kind that is not named here works with its defaults.
fn at_work(kind: &str) -> (&'static str, &'static str) {
    let dropping =
        "[[stage]]\nkind = 'drop_oldest'\nfit_fraction = 0.3\nwhen = { rounds_every = 1 }\n";
    let breaking = "[[stage]]\nkind = 'drop_middle'\nmax_messages = 12\ncut = 'none'\n\
         when = { rounds_every = 1 }\nguards.on_inflation = 'apply'\n";
    match kind {
        "truncate_output" => ("max_tokens = 100", ""),
        "offload_results" => ("max_total_chars = 500\npreview_chars = 50", ""),
        "snip" => ("marks = ['tool', 'tag', 'read_then_edited']", ""),
        "drop_middle" => ("max_messages = 12\nguards.on_inflation = 'apply'", ""),
        "clear_results" => ("keep_last = 4\nmin_chars = 40", ""),
        "drop_oldest" => ("fit_fraction = 0.5", ""),
        "clear_inputs" => ("max_chars = 40\nkeep_chars = 10", ""),
        "extract" => ("budget_tokens = 2_000", ""),
        "summarize" => ("guards.on_inflation = 'apply'", ""),
        "session_memory" => (
            "init_tokens = 500\nupdate_every_tokens = 400\nmin_tokens = 600\nreserve_tokens = 1_000",
            "",
        ),
        "normalize" => ("guards.on_inflation = 'apply'", breaking),
        "restore" => (
            "max_tokens_per_file = 300\nguards.on_inflation = 'apply'",
            dropping,
        ),
        _ => ("", ""),
    }
}

#[test]
fn kinds_of_stages_break_exactly_the_laws_they_declare() {
    let mut wrong = Vec::new();
    for kind in STAGES {
        let (knobs, before) = at_work(kind.name);
        let text = format!("{before}[[stage]]\nkind = '{}'\n{knobs}", kind.name);
        let table = Table::parse("own.toml", &text).unwrap();
        let spec = StrategySpec::of("own", table, &Trigger::always()).unwrap();
        let mut broken = BTreeSet::new();
        let mut acted = BTreeSet::new();
        let sessions = (0..20)
            .map(random_session)
            .chain((0..20).map(varied_session));
        for session in sessions {
            let prepared = prepared(session);
            for answer in [Ok(response("a short summary")), Err(CallFailure::Timeout)] {
                let (laws, grown, changed) = observed(&spec, &prepared, &answer);
                acted.extend(changed);
                broken.extend(laws.into_iter().filter(|law| *law != Law::NeverLarger));
                // A summary may be longer than what it stands for: that is no work without a model.
                if grown.contains(kind.name) && !["summarize", "drop_middle"].contains(&kind.name) {
                    broken.insert(Law::NeverLarger);
                }
            }
        }
        let declared: BTreeSet<Law> = kind.breaks.iter().copied().collect();
        if broken != declared {
            wrong.push(format!("{} breaks {broken:?}, not {declared:?}", kind.name));
        }
        // A law that nothing was held against says nothing.
        if !acted.contains(kind.name) {
            wrong.push(format!("{} never did anything", kind.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn shared_recordings_pass_through_every_strategy() {
    let Some(folder) = shared::folder("sessions/claude-code") else {
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    for session in files.iter().flat_map(|file| import::load(file).unwrap()) {
        let prepared = prepared(session);
        for spec in on_trial() {
            let replay = replay_observed(
                &prepared,
                cell(spec.name()),
                Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(40_000))),
                &models(Scripted::new().reply(When::always(), |_| Ok(response("a summary")))),
                &NoClock,
                vec![Box::new(Validity::default())],
            );
            let may_break = spec.breaks().unwrap().contains(&Law::ValidContext);
            let mut violations = replay.record.violations.iter();
            let rejected = violations.find(|it| it.level == Level::Rejected && !may_break);
            let failed = matches!(replay.record.end, End::Failed { .. });
            if failed || rejected.is_some() {
                let (name, id) = (spec.name(), prepared.session().id());
                let end = &replay.record.end;
                wrong.push(format!("{name} on {id}: {end:?}, {rejected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
