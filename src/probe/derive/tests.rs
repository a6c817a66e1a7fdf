//! What is found in a small recording, and what is not.

use std::sync::Arc;

use super::*;
use crate::session::ground_truth::RuleForm;
use crate::session::{
    ContentBlock, JsonText, Message, Role, SessionParts, Tag, ToolClass, ToolResult,
};

fn uses(id: &str, class: ToolClass, input: &str) -> Message {
    let tool = ToolUse {
        id: id.into(),
        name: class.name().into(),
        class,
        input: JsonText::parse(input).unwrap(),
    };
    Message::new(Role::Assistant, vec![ContentBlock::ToolUse(tool)])
}

fn result(id: &str, text: &str, is_error: bool) -> Message {
    let result = ToolResult {
        tool_use_id: id.into(),
        content: vec![ContentBlock::Text(text.into())],
        is_error,
    };
    Message::new(Role::User, vec![ContentBlock::ToolResult(result)])
}

fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

fn session() -> Session {
    let todo = |state: &str| {
        format!(
            r#"{{"todos":[{{"content":"mend the parser","status":"{state}"}},{{"content":"write the guide","status":"pending"}}]}}"#
        )
    };
    let read = |path: &str| format!(r#"{{"file_path":"{path}"}}"#);
    let mut messages = vec![
        typed("Please mend the flaky parser today.\nNever touch the vendored grammar files here."),
        uses("1", ToolClass::Read, &read("conf/alpha.toml")),
        result(
            "1",
            "listen_port = n5a1:20311\nthe gateway fingerprint is 4f8a1c2d9",
            false,
        ),
        uses("2", ToolClass::Read, &read("conf/beta.toml")),
        result("2", "listen_port = n7b3:20599", false),
        uses("3", ToolClass::Shell, r#"{"command":"make check"}"#),
        result(
            "3",
            "failure TS2345 around lexer state src/lex.ts:118\n3 files",
            true,
        ),
        uses("4", ToolClass::Todo, &todo("pending")),
        result("4", "noted", false),
        uses("5", ToolClass::Shell, r#"{"command":"make test"}"#),
        result("5", "summary: 38 passed", false),
        uses("6", ToolClass::Todo, &todo("completed")),
        result("6", "noted", false),
        uses("7", ToolClass::Edit, &read("src/lex.ts")),
        result("7", "done", false),
        uses("8", ToolClass::Shell, r#"{"command":"make test all"}"#),
        result("8", "summary: 41 passed", false),
    ];
    for at in 0..4 {
        messages.push(uses(
            &format!("w{at}"),
            ToolClass::Write,
            &read(&format!("out/page{at}.md")),
        ));
        messages.push(result(&format!("w{at}"), "written", false));
    }
    messages.push(Message::text(Role::Assistant, "All of it is finished."));
    messages.push(typed("Now write the release note, please."));
    messages.push(Message::text(Role::Assistant, "Done."));
    Session::new(SessionParts {
        id: "small".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    })
    .unwrap()
}

/// As the tools of the session above are meant.
fn touched(tool: &ToolUse) -> Vec<(ArtifactVerb, String)> {
    let verb = match tool.class {
        ToolClass::Read => ArtifactVerb::Read,
        ToolClass::Write => ArtifactVerb::Created,
        ToolClass::Edit => ArtifactVerb::Modified,
        _ => return Vec::new(),
    };
    let path = tool.input.value()["file_path"].as_str().map(str::to_owned);
    path.map(|path| (verb, path)).into_iter().collect()
}

fn found(id: &str) -> Option<Fact> {
    let truth = derive(&session(), &touched);
    let mut facts = truth.facts.into_iter();
    facts.find(|fact| fact.id == id).map(|fact| fact.fact)
}

#[test]
fn every_deterministic_kind_is_found() {
    let revision = |value: &str, message| crate::session::ground_truth::Revision {
        value: value.to_owned(),
        message,
    };
    assert_eq!(
        found("recall-01"),
        Some(Fact::Recall {
            key: "gateway fingerprint".to_owned(),
            value: "4f8a1c2d9".to_owned(),
        })
    );
    let Some(Fact::Binding { key, value, others }) = found("binding-01") else {
        panic!("no binding");
    };
    assert_eq!((&*key, &*value), ("listen_port", "n5a1:20311"));
    assert_eq!(others[0].value, "n7b3:20599");
    let Some(Fact::Error { code, place, .. }) = found("error-01") else {
        panic!("no error");
    };
    assert_eq!((&*code, &*place), ("TS2345", "src/lex.ts:118"));
    assert_eq!(
        found("numeric-01"),
        Some(Fact::Numeric {
            key: "passed".to_owned(),
            unit: "passed".to_owned(),
            values: vec![revision("38", 10), revision("41", 16)],
        })
    );
    let Some(Fact::Continuation { items, .. }) = found("continuation-01") else {
        panic!("no plan");
    };
    assert_eq!((items[0].done, items[1].done), (Some(11), None));
    let Some(Fact::Constraint {
        statement, form, ..
    }) = found("constraint-01")
    else {
        panic!("no rule");
    };
    assert_eq!(statement, "Never touch the vendored grammar files here.");
    assert_eq!(form, RuleForm::Open);
    let Some(Fact::Order { events, .. }) = found("order-01") else {
        panic!("no order");
    };
    assert_eq!(events[0].value, "conf/alpha.toml");
    assert!(events.len() >= 4 && events.is_sorted_by(|a, b| a.message < b.message));
    let Some(Fact::LastRequest { requests }) = found("last-request-01") else {
        panic!("no request");
    };
    assert_eq!(requests[1].value, "Now write the release note, please.");
    assert!(found("artifact-01").is_some() && found("artifact-02").is_some());
    assert!(matches!(found("decoy-02"), Some(Fact::Decoy { .. })));
    assert_eq!(found("decision-01"), None);
}

#[test]
fn the_same_recording_gives_the_same_facts() {
    assert_eq!(derive(&session(), &touched), derive(&session(), &touched));
}

#[test]
fn proposals_are_spread_over_the_session() {
    let all: Vec<usize> = (0..100).collect();
    assert_eq!(spread(all.clone(), 4), [0, 25, 50, 75]);
    assert_eq!(spread(all, 200).len(), 100);
}
