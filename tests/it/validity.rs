//! The incremental validity check says what a full check says, whatever happens to a context; and
//! the full check says of other tools' prompts what another checker said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use proctor::context::validity::{Checker, Rule, check};
use proctor::context::{Context, Entry, Origin};
use proctor::session::wire::RuleSet;
use proctor::session::{ContentBlock, JsonText, Message, Role, ToolClass, ToolResult, ToolUse};
use proptest::prelude::*;
use serde_json::Value;

use crate::contexts::{self, Happening};
use crate::shared;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn following_a_context_is_as_good_as_looking_at_it(
        happenings in contexts::happenings(),
        rules in prop::sample::select(&RuleSet::ALL[..]),
    ) {
        let counts = contexts::counts();
        let mut context = Context::default();
        let mut checker = Checker::new(rules);
        for happening in &happenings {
            match happening {
                Happening::Append(origin, message) => {
                    let entry = Entry::new(origin.clone(), Arc::from(message.clone()), &counts);
                    checker.append(&entry);
                    context.append(entry);
                }
                Happening::Patch(changes) => {
                    let edits = contexts::plan(&context, changes, &counts);
                    checker.patch(&contexts::apply(&mut context, edits).unwrap());
                }
                Happening::Look => {
                    prop_assert_eq!(checker.findings(), check(rules, context.entries()));
                }
            }
        }
        prop_assert_eq!(checker.findings(), check(rules, context.entries()));
    }
}

#[test]
fn shared_prompts_of_other_tools_break_the_rules_that_another_checker_found() {
    let Some(folder) = shared::folder("oracles/peers") else {
        return;
    };
    let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
    let parse = |path: &str| serde_json::from_str::<Value>(&read(path)).unwrap();
    let mut prompts = 0;
    for line in read("VALIDITY.jsonl").lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let name = |key: &str| expected[key].as_str().unwrap();
        let peer = parse(&format!("{}.{}.json", name("session"), name("peer")));
        let shape = match peer["session"].as_str().unwrap() {
            session if session.contains("anthropic") => "anthropic",
            _ => "openai",
        };
        let session = parse(&format!("sessions/{}.{shape}.json", name("session")));
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for call in peer["calls"].as_array().unwrap() {
            for rule in broken(&session["messages"], &call["prompt"]) {
                *found.entry(rule).or_default() += 1;
            }
            prompts += 1;
        }
        let rules = expected["rules"].as_object().unwrap();
        let rules: BTreeMap<&str, u64> =
            rules.iter().map(|(rule, count)| (rule.as_str(), count.as_u64().unwrap())).collect();
        assert_eq!(found, rules, "{line}");
    }
    assert!(prompts > 600, "only {prompts} prompts were checked");
}

/// The rules that a prompt breaks, by the other checker's names. Where we say "the first message is
/// not the user's", it counts a leading tool message too: in its shape that is a role of its own.
fn broken(messages: &Value, prompt: &Value) -> BTreeSet<&'static str> {
    let prompt = prompt.as_array().into_iter().flatten();
    let history: Vec<&Value> = messages.as_array().into_iter().flatten().collect();
    let at = |item: &Value| usize::try_from(item.as_u64()?).ok();
    let prompt: Vec<&Value> = prompt
        .map(|item| at(item).map_or(item, |at| history[at]))
        .filter(|message| message["role"] != "system")
        .collect();
    let counts = contexts::counts();
    let entries: Vec<Entry> = prompt
        .iter()
        .map(|json| Entry::new(Origin::Authored, Arc::new(message(json)), &counts))
        .collect();
    let mut broken: BTreeSet<&str> = check(RuleSet::Anthropic, &entries)
        .iter()
        .filter_map(|finding| match finding.rule {
            Rule::EmptyContent | Rule::EmptyText => Some("empty"),
            rule @ (Rule::OrphanResult | Rule::UnansweredUse | Rule::FirstNotUser) => {
                Some(rule.name())
            }
            _ => None,
        })
        .collect();
    if prompt.first().is_some_and(|first| first["role"] == "tool") {
        broken.insert("first_not_user");
    }
    broken
}

/// A message in Anthropic's, OpenAI's or the AI SDK's shape.
fn message(json: &Value) -> Message {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tool_use = |id: &Value| {
        ContentBlock::ToolUse(Box::new(ToolUse {
            id: text(id).into(),
            name: "tool".into(),
            class: ToolClass::Other,
            input: JsonText::string("x"),
        }))
    };
    let tool_result = |id: &Value| {
        ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: text(id).into(),
            content: Vec::new(),
            is_error: false,
        }))
    };
    let is_tool = json["role"] == "tool";
    let mut blocks = Vec::new();
    match &json["content"] {
        _ if is_tool && json.get("tool_call_id").is_some() => {
            blocks.push(tool_result(&json["tool_call_id"]));
        }
        Value::Array(parts) => {
            let block = |part: &Value| match part["type"].as_str().unwrap_or_default() {
                "tool_use" => tool_use(&part["id"]),
                "tool-call" => tool_use(&part["toolCallId"]),
                "tool_result" => tool_result(&part["tool_use_id"]),
                "tool-result" => tool_result(&part["toolCallId"]),
                _ => ContentBlock::Text(text(&part["text"]).into()),
            };
            blocks.extend(parts.iter().map(block));
        }
        // In OpenAI's shape an assistant that only calls tools has an empty content.
        content if content.as_str().is_some_and(|text| !text.is_empty()) => {
            blocks.push(ContentBlock::Text(text(content).into()));
        }
        _ => {}
    }
    let calls = json["tool_calls"].as_array().into_iter().flatten();
    blocks.extend(calls.map(|call| tool_use(&call["id"])));
    let role = if json["role"] == "assistant" { Role::Assistant } else { Role::User };
    Message::new(role, blocks)
}
