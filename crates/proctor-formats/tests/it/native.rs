//! The native format: read to the letter, written byte for byte.

use std::sync::Arc;

use proctor_formats::{self as import, ImportError};
use proctor_sessions::units::{ApiCallId, Timestamp, Tokens, Usage};
use proctor_sessions::{
    CompactedTo, ContentBlock, Image, JsonText, Message, Opaque, Recorded, RecordedCompaction,
    ResumePoint, Role, Session, SessionParts, Source, Tag, Thinking, ToolClass, ToolResult,
    ToolSchema, ToolUse,
};
use proptest::prelude::*;

use super::{fixture, read, round_trip, written};

#[test]
fn a_native_file_is_written_as_it_was_read() {
    let path = fixture("native/every-block.session.jsonl");
    let sessions = import::load(&path).expect("a good file");
    let bytes = std::fs::read(&path).expect("the fixture is there");
    assert_eq!(String::from_utf8_lossy(&written(&sessions[0])), String::from_utf8_lossy(&bytes));
    assert_eq!(sessions[0].id(), "every-block");
}

#[test]
fn a_native_file_is_read_to_the_letter() {
    const HEAD: &str = r#"{"format":"proctor-session","version":1,"id":"a"}"#;
    let check = |lines: &[&str], expected: &str| {
        let error = read("native", (lines.join("\n") + "\n").as_bytes()).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&[""], "is empty");
    check(
        &[&HEAD.replace(":1,", ":7,")],
        "version 7 of the session format; this build reads up to 1",
    );
    check(&[&HEAD.replace("\"id\"", "\"ID\"")], "line 1, column 44: unknown field `ID`");
    check(
        &[&HEAD.replace("proctor", "doctor")],
        r#"the first line must have `"format":"proctor-session"`"#,
    );
    check(
        &[HEAD, r#"{"role":"user","content":[],"mood":1}"#],
        "line 2, column 34: unknown field `mood`",
    );
    check(
        &[HEAD, r#"{"role":"user","content":[{"type":"text","text":"a","name":"b"}]}"#],
        "line 2, column 1: block 0: unknown key `name` in a `text` block",
    );
    check(
        &[HEAD, r#"{"role":"user","content":[{"type":"image"}]}"#],
        "block 0: missing key `source`",
    );
    check(&[HEAD, r#"{"content":[]}"#], "missing key `role`");
    check(&[HEAD, HEAD], "line 2, column 9: unknown field `format`");
    let mut torn = format!("{HEAD}\n{{\"role\":");
    let error = read("native", torn.as_bytes()).expect_err("torn");
    assert!(matches!(error, ImportError::TornLine(_, 2)), "{error}");
    torn.truncate(HEAD.len());
    let error = read("native", torn.as_bytes()).expect_err("no message");
    assert!(matches!(error, ImportError::Session { .. }), "{error}");
}

fn words() -> impl Strategy<Value = Arc<str>> {
    "\\PC{0,6}|[a\n\r\t\u{0}\u{2028}\"\\\\]{0,6}".prop_map(Arc::from)
}

fn json() -> impl Strategy<Value = JsonText> {
    prop_oneof![
        Just("null"),
        Just("{ \"a\" : 1.0e5, \"a\":-0 }"),
        Just("{\n  \"a\": [true]\r\n}"),
        Just("\"\\ud83d \\/ \u{e9}\""),
        Just("123456789012345678901234567890"),
    ]
    .prop_map(|text| JsonText::parse(text).expect("these are JSON"))
}

fn part() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        words().prop_map(ContentBlock::Text),
        json().prop_map(|source| ContentBlock::Image(Image { source })),
        (words(), json())
            .prop_map(|(kind, json)| ContentBlock::Opaque(Box::new(Opaque { kind, json }))),
    ]
}

fn user_block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        part(),
        (words(), prop::collection::vec(part(), 0..3), any::<bool>()).prop_map(
            |(tool_use_id, content, is_error)| ContentBlock::ToolResult(Box::new(ToolResult {
                tool_use_id,
                content,
                is_error
            }))
        ),
    ]
}

fn model_block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        part(),
        (words(), prop::option::of(words())).prop_map(|(text, signature)| ContentBlock::Thinking(
            Box::new(Thinking { text, signature })
        )),
        (words(), words(), prop::sample::select(ToolClass::all().collect::<Vec<_>>()), json())
            .prop_map(|(id, name, class, input)| ContentBlock::ToolUse(Box::new(ToolUse {
                id,
                name,
                class,
                input
            }))),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let content = prop_oneof![
        prop::collection::vec(user_block(), 1..4).prop_map(|blocks| (Role::User, blocks)),
        prop::collection::vec(model_block(), 1..4).prop_map(|blocks| (Role::Assistant, blocks)),
    ];
    let tags = prop::sample::subsequence(vec![Tag::TypedUser, Tag::Meta, Tag::Orphan], 0..3);
    let time = prop_oneof![
        Just(None),
        any::<i64>().prop_map(Some),
        (-400_000_000_000_000_i64..300_000_000_000_000).prop_map(Some),
    ];
    (content, time, prop::option::of(any::<[u64; 5]>()), tags).prop_map(
        |((role, blocks), time, usage, tags)| {
            let mut message = Message::new(role, blocks).with_tags(tags);
            message.details.timestamp = time.map(Timestamp);
            message.details.reasoning = usage.map_or(Tokens::ZERO, |usage| Tokens(usage[4] / 2));
            message.details.usage = usage.map(|[a, b, c, d, e]| Usage {
                input_uncached: Tokens(a),
                cache_write_5m: Tokens(b),
                cache_write_1h: Tokens(c),
                cache_read: Tokens(d),
                output: Tokens(e),
            });
            message
        },
    )
}

pub(super) fn session() -> impl Strategy<Value = Session> {
    let messages = prop::collection::vec(message(), 1..6);
    let compactions = prop::collection::vec((any::<u8>(), 0..4, message(), words()), 0..3);
    let header = (
        prop::option::of(words()),
        prop::option::of(any::<u64>()),
        prop::collection::vec((words(), json()), 0..2),
        prop::collection::btree_map("\\PC{0,5}", any::<u64>(), 0..3),
        prop::option::of((any::<u8>(), prop::option::of(words()))),
    );
    (messages, compactions, header).prop_map(|(messages, compactions, header)| {
        let (system, window, tools, warnings, resumed) = header;
        let count = messages.len();
        let messages: Vec<Arc<Message>> = messages
            .into_iter()
            .enumerate()
            .map(|(at, mut message)| {
                if message.role() == Role::Assistant && at % 2 == 0 {
                    message.details.api_call = Some(ApiCallId(Arc::from(format!("call {at}"))));
                }
                Arc::new(message)
            })
            .collect();
        let mut compactions: Vec<RecordedCompaction> = compactions
            .into_iter()
            .map(|(at, kind, message, trigger)| {
                let at = usize::from(at) % (count + 1);
                let mut pieces = vec![Recorded::Written(Arc::new(message)), Recorded::Kept(0..at)];
                if at > 0 {
                    let text = trigger.clone();
                    pieces.push(Recorded::Edited { message: 0, block: 0, text });
                }
                RecordedCompaction {
                    at,
                    pre_tokens: (kind == 0).then_some(Tokens(u64::MAX)),
                    usage: (kind == 1).then_some(Usage::uncached(Tokens(9), Tokens(u64::MAX))),
                    after: match kind {
                        0 => CompactedTo::Missing,
                        1 => CompactedTo::Encrypted,
                        _ => CompactedTo::Replaced(pieces),
                    },
                    trigger: Some(trigger),
                }
            })
            .collect();
        compactions.sort_by_key(|compaction| compaction.at);
        Session::new(SessionParts {
            id: "made-up".to_owned(),
            model: system.as_deref().map(str::to_owned),
            system,
            tools: tools
                .into_iter()
                .map(|(name, definition)| ToolSchema { name, definition })
                .collect(),
            messages,
            compactions,
            context_window: window.map(Tokens),
            resumed: resumed
                .map(|(at, notes)| ResumePoint { at: usize::from(at) % (count + 1), notes }),
            source: Source { format: "made-up".to_owned(), warnings, ..Source::default() },
        })
        .expect("made to be valid")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn writing_and_reading_a_native_session_changes_nothing(session in session()) {
        let read = round_trip(&session);
        prop_assert_eq!(read.system(), session.system());
        prop_assert_eq!(read.model(), session.model());
        prop_assert_eq!(read.context_window(), session.context_window());
        prop_assert_eq!(read.resumed(), session.resumed());
    }

    #[test]
    fn no_bytes_make_an_importer_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        at in 0_usize..4000,
    ) {
        let good = std::fs::read(fixture("claude-code/compaction.jsonl")).unwrap_or_default();
        let at = at.min(good.len());
        let mut broken = good[..at].to_vec();
        broken.extend(&bytes);
        broken.extend(&good[(at + bytes.len() / 2).min(good.len())..]);
        for format in ["native", "claude-code"] {
            let _ = read(format, &broken);
            let _ = read(format, &bytes);
        }
    }
}
