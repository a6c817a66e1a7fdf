//! Counts against the reference on real sessions, and against what peers counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use proctor::model::scripted::Scripted;
use proctor::replay::{Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::{
    ContentBlock, JsonText, Message, Role, Session, SessionParts, ToolClass, ToolResult,
    ToolSchema, ToolUse, import,
};
use proctor::tokens::{Cl100k, Cl100kContent, CountedTexts, O200k, Reference, TokenCounter};
use proctor::units::Tokens;
use serde_json::Value;

use crate::shared::folder;
use crate::support;

#[test]
fn shared_counts_equal_the_reference_on_every_text_of_every_session() {
    let Some(folder) = folder("sessions/claude-code") else {
        return;
    };
    let mut texts: BTreeSet<Arc<str>> = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            for session in import::load(&path).unwrap() {
                texts.extend(session.texts().cloned());
            }
        }
    }
    assert!(texts.len() > 100, "{} texts", texts.len());
    for text in texts {
        let start: String = text.chars().take(200).collect();
        for (fast, slow) in [
            (O200k.count(&text), Reference::O200k.count(&text)),
            (Cl100k.count(&text), Reference::Cl100k.count(&text)),
        ] {
            assert_eq!(fast, slow, "{start}");
        }
    }
}

/// The session as the peers were given it.
fn anthropic_session(json: &Value) -> Session {
    let role = |message: &Value| match message["role"].as_str() {
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    };
    let text = |value: &Value| -> Arc<str> { value.as_str().unwrap().into() };
    let block = |block: &Value| match block["type"].as_str() {
        Some("text") => ContentBlock::Text(text(&block["text"])),
        Some("tool_use") => ContentBlock::ToolUse(ToolUse {
            id: text(&block["id"]),
            name: text(&block["name"]),
            class: ToolClass::Other,
            input: JsonText::of(&block["input"]),
        }),
        Some("tool_result") => ContentBlock::ToolResult(ToolResult {
            tool_use_id: text(&block["tool_use_id"]),
            content: vec![ContentBlock::Text(text(&block["content"]))],
            is_error: false,
        }),
        other => panic!("{other:?}"),
    };
    let messages = json["messages"].as_array().unwrap().iter();
    let messages = messages.map(|message| {
        let content = match &message["content"] {
            Value::String(text) => vec![ContentBlock::Text(text.as_str().into())],
            blocks => blocks.as_array().unwrap().iter().map(block).collect(),
        };
        Arc::new(Message::new(role(message), content))
    });
    let tools = json["tools"].as_array().unwrap().iter();
    Session::new(SessionParts {
        id: "long".to_owned(),
        system: Some(text(&json["system"])),
        tools: tools
            .map(|tool| ToolSchema {
                name: text(&tool["name"]),
                definition: JsonText::of(tool),
            })
            .collect(),
        messages: messages.collect(),
        ..SessionParts::default()
    })
    .unwrap()
}

#[test]
fn shared_the_full_history_costs_what_peers_say_it_costs() {
    let Some(folder) = folder("oracles/peers/sessions") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("long.anthropic.json")).unwrap();
    let session = anthropic_session(&serde_json::from_str(&text).unwrap());
    let counts = Arc::new(CountedTexts::new(Arc::new(Cl100kContent)));
    let prepared = PreparedSession::new(Arc::new(session), counts, Vec::new()).unwrap();
    let models: Models = support::models(Scripted::new());
    let name = support::cell("full");
    let replay = replay(&prepared, name, Replayed::Full, &models, &NoClock);
    let prompts = &replay.record.prompt_tokens;
    assert_eq!(prompts.len(), 170);
    assert_eq!(prompts.iter().copied().max(), Some(Tokens(321_639)));
    assert_eq!(prompts.iter().copied().sum::<Tokens>(), Tokens(27_760_349));
}
