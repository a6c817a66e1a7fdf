//! Export, import, and the messages are what they were: for all sessions the shape can carry.

use std::sync::Arc;

use proctor_formats as import;
use proctor_formats::export::{atif, export, otlp};
use proctor_formats::tool_names::class_of;
use proctor_sessions::units::{Timestamp, Usage};
use proctor_sessions::wire::Provider;
use proctor_sessions::{
    ContentBlock, Image, JsonText, Message, Opaque, Role, Session, SessionParts, Thinking,
    ToolResult, ToolSchema, ToolUse,
};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{fixture, read};

fn format_of(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "anthropic",
        Provider::OpenAi => "openai-chat",
    }
}

fn words() -> impl Strategy<Value = Arc<str>> {
    "\\PC{0,6}|[a\n\r\t\u{0}\u{2028}\"\\\\]{0,6}|\\{\"a\": 1\\}|7".prop_map(Arc::from)
}

fn json(provider: Provider) -> impl Strategy<Value = JsonText> {
    // Where arguments stand as JSON, line breaks and needless escapes are the file's; in a text they are
    // the model's.
    let lines = match provider {
        Provider::Anthropic => "{  \"a\": [true]}",
        Provider::OpenAi => "{\n  \"a\": [true]\r\n}",
    };
    let fixed = prop_oneof![
        Just("null"),
        Just("{ \"a\" : 1.0e5, \"a\":-0 }"),
        Just(lines),
        Just("\"\\u00e9 \\/ \u{e9}\""),
        Just("123456789012345678901234567890"),
    ];
    prop_oneof![
        fixed.prop_map(move |text| match provider {
            Provider::Anthropic =>
                JsonText::from(serde_json::from_str::<&RawValue>(text).expect("JSON")),
            Provider::OpenAi => JsonText::parse(text).expect("these are JSON"),
        }),
        words().prop_map(|text| JsonText::string(&text)),
    ]
}

fn object(kind: &str) -> JsonText {
    JsonText::parse(&format!("{{ \"type\":\"{kind}\", \"x\":1.0}}")).expect("an object")
}

/// Text, images and unknown blocks as the provider has them.
fn part(provider: Provider) -> impl Strategy<Value = ContentBlock> {
    let source = match provider {
        Provider::Anthropic => r#"{"type":"base64", "media_type":"image/png","data":"AA"}"#,
        Provider::OpenAi => r#"{"url" : "https://example.org/a.png"}"#,
    };
    let source = JsonText::parse(source).expect("an object");
    prop_oneof![
        4 => words().prop_map(ContentBlock::Text),
        1 => Just(ContentBlock::Image(Image { source })),
        1 => prop::sample::select(vec!["document", "refusal", "hologram"]).prop_map(|kind| {
            ContentBlock::Opaque(Box::new(Opaque { kind: kind.into(), json: object(kind) }))
        }),
    ]
}

fn parts(provider: Provider, least: usize) -> impl Strategy<Value = Vec<ContentBlock>> {
    prop::collection::vec(part(provider), least..3)
}

/// A message of the model's and the answer to it: every tool use is answered once.
fn round(provider: Provider) -> impl Strategy<Value = [Message; 2]> {
    let thinking = prop::collection::vec((words(), prop::option::of(words())), 0..2);
    let uses =
        prop::collection::vec((words(), json(provider), parts(provider, 0), any::<bool>()), 0..3);
    (thinking, parts(provider, 1), uses, parts(provider, 1), any::<u32>()).prop_map(
        move |(thinking, mut said, uses, mut answer, number)| {
            let mut content: Vec<ContentBlock> = thinking
                .into_iter()
                .map(|(text, signature)| {
                    ContentBlock::Thinking(Box::new(Thinking { text, signature }))
                })
                .collect();
            // A message that only calls tools has no content of its own.
            if !uses.is_empty() && number % 2 == 0 {
                said.clear();
                answer.clear();
            }
            content.extend(said);
            let mut results = Vec::new();
            for (at, (name, input, content_of_result, is_error)) in uses.into_iter().enumerate() {
                let id: Arc<str> = format!("call {number} {at}").into();
                content.push(ContentBlock::ToolUse(Box::new(ToolUse {
                    id: id.clone(),
                    class: class_of(&name),
                    name,
                    input,
                })));
                results.push(ContentBlock::ToolResult(Box::new(ToolResult {
                    tool_use_id: id,
                    content: content_of_result,
                    is_error: is_error && provider == Provider::Anthropic,
                })));
            }
            results.extend(answer);
            [Message::new(Role::Assistant, content), Message::new(Role::User, results)]
        },
    )
}

fn session(provider: Provider) -> impl Strategy<Value = Session> {
    let system = prop::option::of("[a\n\"]{1,5}".prop_map(Arc::from));
    let rounds = prop::collection::vec(round(provider), 1..4);
    (system, parts(provider, 1), rounds).prop_map(move |(system, first, rounds)| {
        let messages = std::iter::once(Message::new(Role::User, first))
            .chain(rounds.into_iter().flatten())
            .map(Arc::new);
        let definition = match provider {
            Provider::Anthropic => r#"{"name":"a", "input_schema":{}}"#,
            Provider::OpenAi => r#"{"type":"function", "function":{"name":"a","parameters":{}}}"#,
        };
        Session::new(SessionParts {
            id: "made-up".to_owned(),
            model: system.as_ref().map(|_| "some-model".to_owned()),
            system,
            tools: vec![ToolSchema {
                name: "a".into(),
                definition: JsonText::parse(definition).expect("an object"),
            }],
            messages: messages.collect(),
            ..SessionParts::default()
        })
        .expect("made to be valid")
    })
}

fn with_provider() -> impl Strategy<Value = (Provider, Session)> {
    prop::sample::select(&Provider::ALL[..])
        .prop_flat_map(|provider| session(provider).prop_map(move |session| (provider, session)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_exported_is_imported_as_it_was((provider, session) in with_provider()) {
        let exported = export(&session, provider);
        prop_assert!(exported.left_out.is_empty(), "{:?}", exported.left_out);
        let sessions = match read(format_of(provider), exported.json.as_bytes()) {
            Ok(sessions) => sessions,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{}", exported.json))),
        };
        prop_assert_eq!(sessions.len(), 1);
        let read = &sessions[0];
        prop_assert_eq!(read.system(), session.system());
        prop_assert_eq!(read.model(), session.model());
        prop_assert_eq!(read.tools(), session.tools());
        prop_assert_eq!(read.messages().len(), session.messages().len());
        for (read, message) in read.messages().iter().zip(session.messages()) {
            prop_assert_eq!(read.role(), message.role());
            prop_assert_eq!(read.content(), message.content());
        }
        prop_assert_eq!(export(read, provider).json, exported.json);
    }
}

#[test]
fn what_a_shape_cannot_carry_is_counted() {
    let path = fixture("native/every-block.session.jsonl");
    let session = &proctor_formats::load(&path).expect("a good file")[0];
    let counts = |provider| {
        let left_out = export(session, provider).left_out;
        let shown = left_out.iter().map(|(what, count)| format!("{what} {count}"));
        shown.collect::<Vec<_>>().join(", ")
    };
    let both = "API call id 2, compaction 2, context window 1, ";
    assert_eq!(counts(Provider::Anthropic), format!("{both}tag 1, time 2, usage 1"));
    let openai = format!("{both}failure of a tool 1, tag 1, time 2, usage 1");
    assert_eq!(counts(Provider::OpenAi), openai);
}

#[test]
fn images_and_tools_are_rewritten_for_the_other_provider() {
    let json = |path: &str, provider| {
        let session = proctor_formats::load(&fixture(path)).expect("a good file");
        export(&session[0], provider).json
    };
    let openai = json("anthropic/request.json", Provider::OpenAi);
    for part in [
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#,
        r#"{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}"#,
        r#"{"role":"tool","tool_call_id":"t1","content":"dry since Monday"}"#,
    ] {
        assert!(openai.contains(part), "{openai}");
    }
    let anthropic = json("openai-chat/completion.json", Provider::Anthropic);
    for part in [
        r#"{"type":"image","source":{"type":"url","url":"https://example.org/dough.png"}}"#,
        r#"{"name":"read_file","input_schema":{"type":"object"}}"#,
        r#""input":"{\"command\": \"cat"}"#,
    ] {
        assert!(anthropic.contains(part), "{anthropic}");
    }
}

/// What a trajectory holds of a session comes back: words, calls, results, times and bills.
#[test]
fn a_session_that_is_exported_as_a_trajectory_is_read_again() {
    for name in [
        "claude-code/split-calls.jsonl",
        "qwen-code/chat.jsonl",
        "factory-droid/session.jsonl",
        "atif/trajectory.json",
    ] {
        let sessions = import::load(&fixture(name)).expect("a good file");
        let mut parts = sessions[0].clone().into_parts();
        // One call is another model's.
        let answer = parts.messages.iter_mut().rfind(|message| message.role() == Role::Assistant);
        Arc::make_mut(answer.expect("an answer")).details.model = Some("another".into());
        let session = &Session::new(parts).expect("as good as before");
        let exported = atif(session);
        let read = super::read("atif", exported.json.as_bytes()).expect("a good trajectory");
        let read = &read[0];
        assert_eq!(read.system(), session.system(), "{name}");
        assert_eq!(read.calls().len(), session.calls().len(), "{name}");
        let bill = |session: &Session| -> Usage {
            session.messages().iter().filter_map(|it| it.details.usage).sum()
        };
        assert_eq!(bill(read).prompt(), bill(session).prompt(), "{name}");
        // Without a model of the session's, the first that is named counts as that.
        if session.model().is_some() {
            assert_eq!(models(read), models(session), "{name}");
        }
        let said = |session: &Session| -> Vec<String> {
            let texts = session.messages().iter().flat_map(|it| it.model_text().to_vec());
            texts.flat_map(|it| it.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
        };
        let (mut own, mut again) = (said(session), said(read));
        own.sort();
        again.sort();
        if !exported.left_out.contains_key("unknown block") {
            assert_eq!(own, again, "{name}");
        }
        let steps = |json: &str| serde_json::from_str::<Value>(json).expect("JSON")["steps"].take();
        if session.model().is_some() {
            assert_eq!(steps(&atif(read).json), steps(&exported.json), "{name}");
        }
    }
}

/// The model of each call.
fn models(session: &Session) -> Vec<Option<&str>> {
    let calls = session.calls().iter().map(|at| &session.message(*at).details);
    calls.map(|details| details.model.as_deref().or(session.model())).collect()
}

/// When each call was sent: the time of the last message before it, else of its answer. Time does not run backwards.
fn sent_at(session: &Session) -> Vec<Option<Timestamp>> {
    let firsts = session.calls().iter().map(|at| at + 1);
    let calls = std::iter::once(0).chain(firsts).zip(session.calls());
    let sent = calls.map(|(first, at)| {
        let (asked, answered) = session.messages()[first..=*at].split_at(at - first);
        let mut messages = asked.iter().rev().chain(answered);
        messages.find_map(|message| message.details.timestamp)
    });
    sent.scan(None, |latest, sent| {
        *latest = sent.max(*latest);
        Some(*latest)
    })
    .collect()
}

/// The texts of a message without their spaces: JSON is laid out anew.
fn dense(message: &Message) -> Vec<String> {
    let texts = message.model_text().iter();
    texts.map(|text| text.replace(' ', "")).collect()
}

/// What the spans of a trace hold of a session comes back: words, calls, results, bills, models and
/// compactions.
#[test]
fn a_session_that_is_exported_as_a_trace_is_read_again() {
    for (name, compactions) in [
        ("claude-code/split-calls.jsonl", 0),
        ("claude-code/compaction.jsonl", 1),
        ("qwen-code/chat.jsonl", 2),
        ("factory-droid/session.jsonl", 1),
        ("opencode/pruned-and-compacted.json", 2),
        ("anthropic/request.json", 0),
        ("otlp/traces.jsonl", 1),
        ("langchain/messages_to_dict.json", 0),
    ] {
        let sessions = import::load(&fixture(name)).expect("a good file");
        let session = &sessions[0];
        let exported = otlp(session).expect("small");
        let again = otlp(session).expect("small");
        assert_eq!(exported, again);
        let read = super::read("otlp", exported.json.as_bytes()).expect("a good trace");
        let [read] = &read[..] else {
            panic!("{name}: {} sessions", read.len());
        };
        let calls = |session: &Session| -> Vec<String> {
            let messages = session.calls().iter().map(|at| &session.messages()[*at]);
            let calls = messages.map(|it| {
                let usage = it.details.usage.unwrap_or_default();
                let model = it.details.model.as_deref().or(session.model());
                let cached = usage.cache_read;
                format!(
                    "{:?} {} {} {} {cached}",
                    dense(it),
                    model.unwrap_or_default(),
                    usage.prompt(),
                    usage.output
                )
            });
            calls.collect()
        };
        assert_eq!(calls(read), calls(session), "{name}");
        assert_eq!(read.system(), session.system(), "{name}");
        let tools = |session: &Session| -> Vec<Arc<str>> {
            session.tools().iter().map(|it| it.name.clone()).collect()
        };
        assert_eq!(tools(read), tools(session), "{name}");
        let end = session.calls().last().map_or(0, |last| last + 1);
        assert_eq!(read.messages().len(), end, "{name}");
        for (own, other) in session.messages()[..end].iter().zip(read.messages()) {
            assert_eq!(other.role(), own.role(), "{name}");
            // What a compaction left at its end is part of the user's next message.
            let is_same = own.content().len() == other.content().len() || compactions > 0;
            let told = dense(other);
            let is_told = dense(own).iter().all(|text| told.contains(text));
            assert!(is_same && is_told, "{name}: {other:?}");
        }
        assert_eq!(read.compactions().len(), compactions, "{name}");
        assert_eq!(sent_at(read), sent_at(session), "{name}");
    }
}

#[test]
fn a_tool_that_is_no_object_is_exported_in_a_trace_as_it_is() {
    for definition in [r#"[{"name":"a"}]"#, r#""a""#, r#"{"type":"web_search"}"#] {
        let lines = format!(
            "{{\"format\":\"proctor-session\",\"version\":1,\"id\":\"s\",\"tools\":[{{\"name\":\"a\",\"definition\":{definition}}}]}}\n\
             {{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"b\"}}]}}\n"
        );
        let sessions = read("native", lines.as_bytes()).expect("a session");
        let exported = otlp(&sessions[0]).expect("small");
        let quoted = definition.replace('"', "\\\"");
        assert!(exported.json.contains(&format!("[{quoted}]")), "{definition}");
    }
}
