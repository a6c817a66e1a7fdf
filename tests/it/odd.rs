//! Sessions that no product would write, through every preset: each cell ends with a record that can be
//! kept, read and measured.

use std::sync::Arc;

use proctor::metric::CellSummary;
use proctor::metric::cost::SchemeCost;
use proctor::model::fault::{Fault, FaultSchedule, Faults};
use proctor::model::offline::Offline;
use proctor::model::price::Prices;
use proctor::probe::Asking;
use proctor::record::{CellRecord, End};
use proctor::replay::{Models, NoClock, PreparedSession, Repetitions, Replayed, replay};
use proctor::session::{
    CompactedTo, ContentBlock, Image, JsonText, Message, Opaque, Recorded, RecordedCompaction,
    ResumePoint, Role, Session, SessionParts, Tag, Thinking,
};
use proctor::strategy::preset::PRESETS;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Timestamp, Tokens, Usage};
use proctor::window::Window;

use crate::support::{answers, asks, cell, said, strategy, tool_result, tool_use, typed};

/// Windows in which nothing fits, little does, and everything.
const WINDOWS: [Window; 3] =
    [window(1, 5, 9), window(900, 0, 0), window(u64::MAX, u64::MAX, u64::MAX)];

const fn window(tokens: u64, max_output: u64, overflow_reserve: u64) -> Window {
    Window {
        tokens: Tokens(tokens),
        max_output: Tokens(max_output),
        overflow_reserve: Tokens(overflow_reserve),
    }
}

fn compaction(at: usize, trigger: &str, after: CompactedTo) -> RecordedCompaction {
    RecordedCompaction {
        at,
        trigger: Some(trigger.into()),
        pre_tokens: Some(Tokens(u64::MAX)),
        usage: None,
        after,
    }
}

fn at(mut message: Message, time: i64) -> Message {
    message.details.timestamp = Some(Timestamp(time));
    message
}

fn billed(text: &str, tokens: u64) -> Message {
    let tokens = Tokens(tokens);
    let mut message = said(text);
    message.details.usage = Some(Usage {
        input_uncached: tokens,
        cache_write_5m: tokens,
        cache_write_1h: tokens,
        cache_read: tokens,
        output: tokens,
    });
    message
}

/// Ends of time in both directions, and time that goes back.
fn times() -> Vec<Message> {
    vec![
        at(typed("a"), i64::MIN),
        at(asks("t", "Read", "a"), i64::MAX),
        at(answers("t", &"x".repeat(5_000)), -1),
        at(said("b"), i64::MIN),
        at(typed("c"), i64::MAX),
        at(said("d"), 0),
    ]
}

/// Bills that no sum of which fits, and some of nothing.
fn bills() -> Vec<Message> {
    let numbers = [1, u64::MAX, 0, 7, u64::MAX / 2, u64::MAX];
    let rounds = (0..18).map(|round| [typed("more"), billed("yes", numbers[round % 6])]);
    rounds.flatten().collect()
}

/// Results before their calls, twice, for nobody, and calls that nothing answers.
fn unpaired() -> Vec<Message> {
    let orphan = answers("nobody", &"orphan ".repeat(300)).with_tags([Tag::Orphan]);
    vec![
        orphan,
        said("x"),
        asks("a", "Read", "f"),
        asks("a", "compact", "f"),
        answers("a", &"one ".repeat(400)),
        answers("a", ""),
        asks("never", "snip", "a"),
        typed("go on"),
        said("y"),
        typed("again"),
        typed("and again"),
        said("z"),
        said("z"),
    ]
}

/// Blocks that hold nothing, or nothing to read.
fn bare() -> Vec<Message> {
    let json = |text: &str| JsonText::parse(text).unwrap();
    let image = || ContentBlock::Image(Image { source: json("{}") });
    let document = ContentBlock::Opaque(Box::new(Opaque {
        kind: "document".into(),
        json: json(r#"{"title":"é"}"#),
    }));
    let thinking = ContentBlock::Thinking(Box::new(Thinking { text: "".into(), signature: None }));
    vec![
        Message::new(Role::User, vec![image(), image(), document]).with_tags([Tag::TypedUser]),
        Message::new(Role::Assistant, vec![thinking]),
        typed(""),
        said("\u{200d}\u{feff}"),
        typed("\0"),
        said("\n"),
    ]
}

/// Many results of one response, marked, protected, failed, of files read again and again.
fn parallel() -> Vec<Message> {
    let names = ["Read", "Edit", "Task", "Bash", "TodoWrite", "mcp__a__b"];
    let ids = |count: usize| (0..count).map(|at| format!("p{at}"));
    let uses = ids(120).enumerate();
    let uses = uses.map(|(at, id)| tool_use(&id, names[at % 6], &format!("src/{}.rs", at % 7)));
    let results = ids(120).enumerate();
    let results = results.map(|(at, id)| tool_result(&id, &"é\n".repeat(at)));
    vec![
        typed("go"),
        Message::new(Role::Assistant, uses.collect()),
        Message::new(Role::User, results.collect()).with_tags([Tag::Snip, Tag::Protected]),
        said("done").with_tags([Tag::CompactSummary, Tag::PhaseEnd]),
        typed("more").with_tags([Tag::PhaseEnd, Tag::TypedUser, Tag::CompactBoundary]),
        asks("snip", "snip", "p1"),
        answers("snip", "Marked."),
        said("ok"),
    ]
}

fn sessions() -> Vec<Session> {
    let made = |name: &str, messages: Vec<Message>| SessionParts {
        id: name.to_owned(),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    };
    let two = || vec![typed("a"), said("b"), typed("c"), said("d")];
    let written = || Recorded::Written(Arc::new(said("what was said")));
    let parts = vec![
        made("only-typed", vec![typed("hello")]),
        made("only-said", vec![said("hello")]),
        made("only-injected", vec![said("x").with_tags([Tag::Synthetic])]),
        made("times", times()),
        made("bills", bills()),
        made("unpaired", unpaired()),
        made("bare", bare()),
        made("parallel", parallel()),
        SessionParts {
            system: Some("rule ".repeat(900).into()),
            context_window: Some(Tokens(0)),
            ..made("large-system", two())
        },
        SessionParts {
            resumed: Some(ResumePoint { at: 4, notes: Some("".into()) }),
            ..made("all-loaded", two())
        },
        SessionParts {
            compactions: vec![
                compaction(0, "manual", CompactedTo::Replaced(Vec::new())),
                compaction(1, "auto", CompactedTo::Encrypted),
                compaction(1, "auto", CompactedTo::Missing),
                compaction(3, "manual", CompactedTo::Replaced(Vec::new())),
                compaction(3, "manual", CompactedTo::Replaced(vec![written()])),
                compaction(4, "auto", CompactedTo::Replaced(vec![Recorded::Kept(4..4)])),
            ],
            ..made("compactions", two())
        },
    ];
    let parts = parts.into_iter();
    parts.map(|parts| Session::new(parts).unwrap()).collect()
}

fn prepared(session: Session) -> (PreparedSession, Models) {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let schemes = Prices::built_in().unwrap().schemes("anthropic", None);
    let faults = Faults {
        schedules: [Fault::SummaryError, Fault::SummaryInflates, Fault::StreamCut]
            .map(|fault| (fault, FaultSchedule::Probability(0.2)))
            .into(),
        ..Faults::default()
    };
    let offline = Arc::new(Offline::new(counts.clone()));
    let prepared = PreparedSession::new(Arc::new(session), counts, Vec::new()).unwrap();
    let mut prepared = prepared.with_cache(schemes, u64::MAX);
    prepared.faults = Arc::new(faults);
    prepared.asking = Asking::default();
    let models =
        Models { summariser: offline, reader: None, judge: None, times: Repetitions::default() };
    (prepared, models)
}

/// What is kept of a cell is what was measured, and every metric of it can be told.
fn check(cell: &CellRecord, full: &CellRecord) {
    let name = cell.key();
    let line = serde_json::to_string(cell).unwrap();
    let read: CellRecord = serde_json::from_str(&line).unwrap();
    assert_eq!(read, *cell, "{name}");
    let summary = CellSummary::of(cell, Some(full));
    let share = summary.completion.share();
    assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{name}");
    let savings = summary.savings.and_then(|savings| savings.share());
    let costs = summary.costs.iter().filter_map(SchemeCost::share);
    for value in savings.into_iter().chain(costs) {
        assert!(value.is_finite(), "{name}: {value}");
    }
    assert!(!matches!(cell.end, End::Failed { .. }), "{name}: {:?}", cell.end);
}

#[test]
fn what_no_product_would_write_is_measured_under_every_preset() {
    let presets = PRESETS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = presets.chain(["tail@300", "random@300"]).collect();
    for session in sessions() {
        let (prepared, models) = prepared(session);
        let full = replay(&prepared, cell("full"), Replayed::Full, &models, &NoClock).record;
        check(&full, &full);
        let calls = prepared.session().calls().len();
        assert_eq!((full.planned_calls, full.reached_calls), (calls, calls));
        for name in &names {
            for window in WINDOWS {
                let pipeline = strategy(name).build().unwrap();
                let replayed = Replayed::Strategy(Box::new(pipeline), window);
                let replay = replay(&prepared, cell(name), replayed, &models, &NoClock);
                check(&replay.record, &full);
            }
        }
    }
}
