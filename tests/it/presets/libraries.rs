//! Presets of libraries, held against prompts that the libraries made themselves.

use std::collections::BTreeMap;

use proctor::context::{Context, Entry};
use proctor::model::scripted::{Scripted, response};
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{NoClock, PreparedSession, Replayed, replay_observed};
use proctor::session::{ContentBlock, Role, import};
use proctor::settings::Place;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::units::Tokens;
use proctor::window::Window;
use serde_json::Value;
use std::sync::{Arc, Mutex};

use crate::shared;
use crate::support::{cell, models};

/// What a library made, the preset with the library's parameters, and how many of the 37 prompts of both sessions are
/// the library's, message by message.
///
/// A summary counts as one whatever it says: the library's is a fixed text. `scripts/check_adapters` holds the
/// libraries themselves against the same prompts: there all of them are equal.
const LIBRARIES: &[(&str, &str, usize)] = &[
    // All but those after the user typed again: SWE-agent's rule takes that for an observation, and masks it.
    ("sweagent-lastn-5", "swe-agent-last-5", 21),
    (
        "sweagent-lastn-3-polling4",
        "swe-agent-last-5[clear_results.keep_last=3,clear_results.every=4]",
        21,
    ),
    // The recorded run counts the system prompt, too, and fires one call earlier in one session.
    (
        "langchain-clear-tool-uses-approx1500-keep3",
        "langchain-edit[clear_results.when.tokens_over=1500]",
        36,
    ),
    (
        "langchain-clear-tool-uses-cl100k1500-keep5",
        "langchain-edit[clear_results.when={tokens_over=1500,counter=\"cl100k-content\"},clear_results.keep_last=5]",
        37,
    ),
    // LangChain's estimate has three tokens more for each message, so that it fires earlier.
    (
        "langchain-summarize-approx2000-keep6",
        "langchain-summarize[summarize.when={tokens_over=2000,counter=\"chars/4\",scope=\"messages\"},\
         summarize.keep_last_messages=6]",
        20,
    ),
    // `trim_messages` cuts between any two messages, here whole rounds go, and a word stands for them.
    (
        "langchain-trim-last-approx1500-nostart",
        "langchain-trim[select.when={tokens_over=1500},select.budget_fraction=0.0075]",
        12,
    ),
    // There each result is a message of its own; here those of one response are one message.
    ("aisdk-prune-4", "vercel-prune[drop_calls.keep_last_messages=4]", 33),
    ("aisdk-prune-10", "vercel-prune[drop_calls.keep_last_messages=10]", 26),
    // OpenHands counts each call and each result as an event, where several come in one message here; and its tokens
    // are those of the rendered events.
    (
        "openhands-llm-events-20",
        "openhands[summarize.when={messages_over=19},summarize.keep_last_messages=5]",
        18,
    ),
    (
        "openhands-llm-tokens-2500",
        "openhands-tokens[summarize.when={tokens_over=2500},summarize.keep_first_messages=3,\
         summarize.keep_last_tokens=1250,summarize.keep_last_fraction=0.0]",
        23,
    ),
];

/// A message in one text: who, what, which calls or whose result.
fn said(entry: &Entry) -> Vec<String> {
    let message = &entry.message;
    let (mut results, mut text, mut calls) = (Vec::new(), String::new(), Vec::new());
    for (block, words) in message.content().iter().zip(message.model_text()) {
        match block {
            ContentBlock::ToolResult(result) => {
                results.push(format!("result {}: {words}", result.tool_use_id));
            }
            ContentBlock::ToolUse(tool) => calls.push(tool.id.to_string()),
            ContentBlock::Thinking { .. } => {}
            _ => text.push_str(words),
        }
    }
    let role = match message.role() {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    results.extend(spoken(role, &text, &calls));
    results
}

fn spoken(role: &str, text: &str, calls: &[String]) -> Option<String> {
    if text.contains(SUMMARY) {
        return Some("summary".to_owned());
    }
    let is_said = !text.trim().is_empty() || !calls.is_empty();
    is_said.then(|| format!("{role} {calls:?}: {}", text.trim()))
}

/// What every summary says.
const SUMMARY: &str = "The user asked for a change; the agent read files";

/// The same of a message as OpenAI's chat API or the AI SDK has it.
fn wanted(message: &Value) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        parts => parts
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["text"].as_str())
            .collect(),
    };
    let role = message["role"].as_str().unwrap();
    let content = &message["content"];
    if role == "system" {
        return Vec::new();
    }
    if let Some(id) = message["tool_call_id"].as_str() {
        return vec![format!("result {id}: {}", text(content))];
    }
    let parts = content.as_array().into_iter().flatten();
    let (results, calls): (Vec<_>, Vec<_>) = parts
        .filter(|part| part["toolCallId"].is_string())
        .partition(|part| part["type"] == "tool-result");
    let mut all: Vec<String> = results
        .iter()
        .map(|part| {
            format!(
                "result {}: {}",
                part["toolCallId"].as_str().unwrap(),
                text(&part["output"]["value"])
            )
        })
        .collect();
    let calls = calls.iter().map(|part| &part["toolCallId"]);
    let calls =
        calls.chain(message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]));
    let calls: Vec<String> = calls.map(|id| id.as_str().unwrap().to_owned()).collect();
    all.extend(spoken(role, &text(content), &calls));
    all
}

/// The context of every call.
#[derive(Debug)]
struct Prompts(Arc<Mutex<Vec<Vec<String>>>>);

impl Observer for Prompts {
    fn appended(&mut self, _: &Entry) {}

    fn patched(&mut self, _: &proctor::context::Applied) {}

    fn called(&mut self, view: &CallView<'_>) {
        let context: &Context = view.context;
        let said = context.entries().iter().flat_map(said).collect();
        self.0.lock().unwrap().push(said);
    }
}

/// The prompts of a preset over a session.
fn prompts(spec: &StrategySpec, prepared: &PreparedSession) -> Vec<Vec<String>> {
    let seen = Arc::default();
    let summary = format!("{SUMMARY}, src/main.rs and tests/test_io.py.");
    let model = Scripted::new().reply(move |_| Ok(response(summary.as_str())));
    let window = Window::new(Tokens(200_000));
    let replayed = Replayed::Strategy(Box::new(spec.build().unwrap()), window);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(Prompts(Arc::clone(&seen)))];
    replay_observed(prepared, cell(spec.name()), replayed, &models(model), &NoClock, observers);
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn shared_presets_of_libraries_make_the_libraries_prompts() {
    let Some(folder) = shared::folder("oracles/peers") else {
        return;
    };
    let json = |path: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join(path)).unwrap()).unwrap()
    };
    let mut found = BTreeMap::new();
    for (peer, preset, _) in LIBRARIES {
        let spec = StrategySpec::parse(preset, &Trigger::always(), &Place::BuiltIn).unwrap();
        for session in ["small1", "small2"] {
            let messages = json(&format!("sessions/{session}.openai.json"))["messages"].clone();
            let path = folder.join(format!("sessions/{session}.anthropic.json"));
            let sessions = import::load(&path).unwrap();
            let prepared = crate::support::prepared(sessions.into_iter().next().unwrap());
            let ours = prompts(&spec, &prepared);
            let theirs = json(&format!("{session}.{peer}.json"))["calls"].clone();
            let theirs = theirs.as_array().unwrap();
            assert_eq!(ours.len(), theirs.len(), "{session}.{peer}");
            for (call, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                let items = theirs["prompt"].as_array().unwrap().iter();
                let items = items.map(|item| {
                    item.as_u64().map_or(item, |at| &messages[usize::try_from(at).unwrap()])
                });
                let theirs: Vec<String> = items.flat_map(wanted).collect();
                let is_same = *ours == theirs;
                *found.entry(*peer).or_insert(0) += usize::from(is_same);
                if !is_same {
                    let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
                    let short = |said: Option<&String>| {
                        said.map(|it| it.chars().take(90).collect::<String>())
                    };
                    println!(
                        "{session}.{peer} call {call}, message {at}: {:?}, not {:?}",
                        short(ours.get(at)),
                        short(theirs.get(at))
                    );
                }
            }
        }
    }
    let expected: BTreeMap<_, _> = LIBRARIES.iter().map(|(peer, _, same)| (*peer, *same)).collect();
    assert_eq!(found, expected);
}
