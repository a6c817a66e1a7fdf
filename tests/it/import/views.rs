//! What a recording says its model was shown, against what replay shows.

use std::path::Path;
use std::sync::{Arc, Mutex};

use proctor::model::scripted::Scripted;
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{NoClock, Replayed, replay_watched};
use proctor::session::{ContentBlock, Message, Role, import};
use proctor::units::Tokens;
use proctor::window::Window;
use serde_json::Value;

use super::fixture;
use crate::shared;
use crate::support::{cell, models, prepared, strategy};

/// A prompt, block by block: who says it, in answer to what, and the text.
type Prompt = Vec<(String, String)>;

/// Keeps every prompt that was sent.
#[derive(Debug)]
struct Sent(Arc<Mutex<Vec<Prompt>>>);

impl Observer for Sent {
    fn called(&mut self, view: &CallView<'_>) {
        let entries = view.context.entries().iter();
        let prompt = entries.flat_map(|entry| said(&entry.message)).collect();
        self.0.lock().unwrap().push(prompt);
    }
}

fn said(message: &Message) -> Prompt {
    let blocks = message.content().iter().zip(message.model_text());
    let part = |(block, text): (&ContentBlock, &Arc<str>)| match block {
        ContentBlock::ToolResult(result) => {
            (format!("result {}", result.tool_use_id), text.to_string())
        }
        ContentBlock::ToolUse(it) => (format!("use {}", it.id), text.to_string()),
        _ if message.role() == Role::User => ("user".to_owned(), text.to_string()),
        _ => ("assistant".to_owned(), text.to_string()),
    };
    blocks.map(part).collect()
}

/// The prompt as the file stores it, read without any importer; the system prompt left out.
fn stored(messages: &[Value]) -> Prompt {
    let mut prompt = Prompt::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        let texts: Vec<&str> = match &message["content"] {
            Value::String(text) => vec![text],
            Value::Array(parts) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
            other => panic!("content {other}"),
        };
        match role {
            "system" => {}
            "tool" => {
                let id = message["tool_call_ids"][0].as_str().unwrap();
                prompt.push((format!("result {id}"), texts.join("\n")));
            }
            _ => prompt.extend(
                texts
                    .iter()
                    .filter(|it| !it.is_empty())
                    .map(|text| (role.to_owned(), (*text).to_owned())),
            ),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let text = |at: &str| call.pointer(at).unwrap().as_str().unwrap();
            let said = format!("{} {}", text("/function/name"), text("/function/arguments"));
            prompt.push((format!("use {}", text("/id")), said));
        }
    }
    prompt
}

/// The stored prompt of each call, by the number of the call.
fn views(path: &Path) -> Vec<(usize, Prompt)> {
    let run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let steps = run["trajectory"].as_array().unwrap();
    let mut views = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if let Some(messages) = step["query"].as_array() {
            views.push((at, stored(messages)));
        }
        // What stands beside the last step was never sent.
        if let Some(messages) = step["messages"].as_array()
            && at + 1 < steps.len()
        {
            views.push((at + 1, stored(messages)));
        }
    }
    views
}

/// Replays the recording and returns how many of its stored prompts are what the strategy sends.
#[track_caller]
fn check(path: &Path, name: &str) -> (usize, usize) {
    let [session] = &import::load(path).unwrap()[..] else {
        panic!("{}: one run is one session", path.display());
    };
    let sent = Arc::new(Mutex::new(Vec::new()));
    let strategy = Box::new(strategy(name).build().unwrap());
    replay_watched(
        &prepared(session.clone()),
        cell(name),
        Replayed::Strategy(strategy, Window::new(Tokens(10_000_000))),
        &models(Scripted::new()),
        &NoClock,
        vec![Box::new(Sent(sent.clone()))],
    );
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), session.calls().len());
    let views = views(path);
    let equal = views.iter().filter(|(call, view)| sent[*call] == *view);
    (equal.count(), views.len())
}

#[test]
fn the_history_is_what_the_model_was_shown_where_nothing_was_masked() {
    let path = fixture("swe-agent/plain.traj");
    assert_eq!(check(&path, "none"), (4, 4));
    assert_eq!(check(&path, "recorded"), (4, 4));
}

#[test]
fn masked_observations_are_replayed_as_they_were_shown() {
    let path = fixture("swe-agent/masked.traj");
    let masking = "observation-masking[clear_results.keep_last=2,\
                   clear_results.keep_first_observation=false,\
                   clear_results.placeholder=\"Old environment output: ({lines} lines omitted)\"]";
    assert_eq!(check(&path, masking), (5, 5));
    assert_eq!(check(&path, "recorded"), (5, 5));
    // Two calls saw less than the whole history, and so the equality above says something.
    assert_eq!(check(&path, "none"), (3, 5));
    let [session] = &import::load(&path).unwrap()[..] else {
        panic!("one run is one session");
    };
    let at: Vec<usize> = session.compactions().iter().map(|it| it.at).collect();
    assert_eq!(at, [7, 9]);
}

#[test]
fn shared_stored_prompts_are_what_replay_sends() {
    let Some(folder) = shared::folder("sessions/swe-agent") else {
        return;
    };
    let (mut files, mut prompts) = (0, 0);
    for path in shared::files(&folder) {
        let stored = views(&path).len();
        if stored == 0 {
            continue;
        }
        for name in ["none", "recorded"] {
            assert_eq!(check(&path, name), (stored, stored), "{}", path.display());
        }
        files += 1;
        prompts += stored;
    }
    assert!(files >= 2 && prompts >= 30, "{prompts} prompts of {files} files");
}
