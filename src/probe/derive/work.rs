//! Derives facts about the agent's work: values that it fetched again, what it started, its plan.
//!
//! Files that it opened again are none: of seven lists two readers held six and seven for what no user would miss, and
//! a path in a later tool call is what *actions* counts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::proposal;
use crate::probe::LazyPattern;
use crate::session::ground_truth::{Fact, Handle, PlanItem, PlantedFact};
use crate::session::{CompactedTo, Recorded, Session, ToolClass, ToolUse};

/// Bytes up to which a result is its value, and a command is named by a question.
const RESULT_BYTES: usize = 600;
const COMMAND_BYTES: usize = 160;

/// The shortest name of a handle.
const HANDLE_BYTES: usize = 3;

/// Classes of values that cannot be guessed, each with at least 20 bits. The first that fits counts.
static CLASSES: [(&str, LazyPattern); 4] = [
    ("id", LazyPattern::new("^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")),
    ("number", LazyPattern::new("^[0-9]{7,}$")),
    ("hash", LazyPattern::new("^(?:[a-z0-9]+:)?[0-9a-f]{7,64}$")),
    ("code", LazyPattern::new("^[A-Z]{2,6}[-_]*[0-9]{4,}$")),
];

/// How tools say that what they started has come to its end.
static ENDED: LazyPattern = LazyPattern::new(
    "<status>(?:completed|failed|killed)</status>|exited with code|exit code|\"success\": ?true",
);

/// Parts of the names of tools that end what was started.
const ENDING: [&str; 4] = ["kill", "stop", "close", "terminate"];

/// Flags in the input of tools that start something and do not wait for it.
const BACKGROUND: [&str; 3] = ["run_in_background", "is_background", "detach"];

/// A tool use and its result.
#[derive(Debug)]
pub(crate) struct AnsweredCall<'s> {
    pub(crate) tool: &'s ToolUse,
    input: Value,
    /// The message of the tool use, and message and block of the result.
    asked: usize,
    pub(crate) answered: (usize, usize),
    text: &'s str,
}

impl AnsweredCall<'_> {
    /// The command line, if there is one.
    fn command(&self) -> Option<&str> {
        let mut names = ["command", "cmd", "script"].iter();
        names.find_map(|key| self.input.get(key)?.as_str())
    }

    /// The values of the arguments that name something by its id.
    fn ids(&self) -> impl Iterator<Item = String> {
        let arguments = self.input.as_object().into_iter().flatten();
        let ids = arguments.filter(|(key, _)| key.to_lowercase().ends_with("id"));
        ids.filter_map(|(_, value)| match value {
            Value::String(id) => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        })
    }

    fn starts_in_background(&self) -> bool {
        BACKGROUND.iter().any(|flag| self.input.get(flag) == Some(&Value::Bool(true)))
    }

    /// Whether this call, which names a handle, leaves it ended.
    fn ends(&self, handle: &str, flagged: bool) -> bool {
        let name = self.tool.name.to_lowercase();
        ENDING.iter().any(|ending| name.contains(ending))
            || ENDED.is_match(self.text)
            // A tool that names what still runs names it no more.
            || (!flagged && !tokens(self.text).any(|token| token == handle))
    }
}

/// The answered tool uses, in the order of their results.
pub(crate) fn calls(session: &Session) -> Vec<AnsweredCall<'_>> {
    let mut asked: BTreeMap<&str, (usize, &ToolUse)> = BTreeMap::new();
    let mut calls = Vec::new();
    for (at, message) in session.messages().iter().enumerate() {
        for (_, tool) in message.tool_uses() {
            asked.insert(&tool.id, (at, tool));
        }
        for (block, result) in message.tool_results() {
            if let Some((asked, tool)) = asked.get(&*result.tool_use_id) {
                calls.push(AnsweredCall {
                    tool,
                    input: tool.input.value(),
                    asked: *asked,
                    answered: (at, block),
                    text: &message.model_text()[block],
                });
            }
        }
    }
    calls
}

/// Runs without white space, quotes and brackets, and without punctuation around them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let runs = text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|\\".contains(c));
    runs.map(|run| run.trim_matches(['.', ':', '!', '?', '*'])).filter(|token| !token.is_empty())
}

/// All facts about the agent's work.
pub(super) fn facts(session: &Session) -> Vec<PlantedFact> {
    let answered = calls(session);
    let mut facts = values_again(session, &answered);
    facts.extend(handles(session, &answered));
    facts.extend(plan(session));
    facts
}

/// The only value in a text that cannot be guessed, with its class.
fn only_value(text: &str) -> Option<(&str, &str)> {
    if text.len() > RESULT_BYTES {
        return None;
    }
    let found: BTreeSet<(&str, &str)> =
        tokens(text).filter_map(|token| Some((token, class_of(token)?))).collect();
    (found.len() == 1).then(|| found.first().copied())?
}

fn class_of(token: &str) -> Option<&'static str> {
    if !token.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    CLASSES.iter().find(|(_, pattern)| pattern.is_match(token)).map(|(class, _)| *class)
}

/// Where the compaction happened that took a block out of the context of the product that recorded it, or its whole
/// message. A compaction of which the recording does not say what it left takes nothing.
fn departure(session: &Session, (message, block): (usize, usize)) -> Option<usize> {
    let later = session.compactions().iter().filter(|compaction| compaction.at > message);
    let mut taking = later.filter(|compaction| match &compaction.after {
        CompactedTo::Missing => false,
        CompactedTo::Encrypted => true,
        CompactedTo::Replaced(pieces) => {
            let mut stays = false;
            for piece in pieces {
                match piece {
                    Recorded::Kept(range) => stays |= range.contains(&message),
                    Recorded::Edited { message: at, block: of, .. } if *at == message => {
                        if *of == block {
                            return true;
                        }
                        stays = true;
                    }
                    Recorded::Edited { .. } | Recorded::Written(_) => {}
                }
            }
            !stays
        }
    });
    taking.next().map(|compaction| compaction.at)
}

/// Values that the same command was run again for, after its first result had left the context.
fn values_again(session: &Session, calls: &[AnsweredCall<'_>]) -> Vec<PlantedFact> {
    let mut last: BTreeMap<(&str, &str), &AnsweredCall<'_>> = BTreeMap::new();
    let again = calls.iter().filter_map(|call| {
        let before = last.insert((&*call.tool.name, call.tool.input.as_str()), call)?;
        let (value, class) = only_value(before.text)?;
        let command = call.command()?;
        if only_value(call.text) != Some((value, class))
            || command.len() > COMMAND_BYTES
            || command.contains(value)
            || departure(session, before.answered)? > call.asked
        {
            return None;
        }
        let question = format!("Which {class} did `{}` print?", command.trim());
        let fact = Fact::Recall { key: String::new(), value: value.to_owned() };
        Some(PlantedFact {
            until: Some(call.asked),
            ..proposal(question, vec![before.answered.0], fact)
        })
    });
    again.collect()
}

/// Commands that were started in the background and ran on through a compaction of the recording, by the ids that later
/// calls name them by.
pub(crate) fn handles(session: &Session, calls: &[AnsweredCall<'_>]) -> Option<PlantedFact> {
    let mut uses: BTreeMap<String, Vec<&AnsweredCall<'_>>> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.tool.class == ToolClass::Shell) {
        for id in call.ids().filter(|id| id.len() >= HANDLE_BYTES) {
            uses.entry(id).or_default().push(call);
        }
    }
    let mut known = BTreeSet::new();
    let mut handles = Vec::new();
    for call in calls {
        let flagged = call.starts_in_background();
        if !flagged && call.tool.class != ToolClass::Shell {
            continue;
        }
        let started = call.answered.0;
        for token in tokens(call.text).filter(|token| uses.contains_key(*token)) {
            let mut later = uses[token].iter().filter(|later| later.asked >= started).peekable();
            if call.ids().any(|own| own == token) || later.peek().is_none() || !known.insert(token)
            {
                continue;
            }
            let ending = later.find(|later| later.ends(token, flagged));
            let ended = ending.map(|ending| ending.asked);
            let running = started + 1..=ended.unwrap_or(usize::MAX);
            if session.compactions().iter().any(|compaction| running.contains(&compaction.at)) {
                handles.push(Handle { name: token.to_owned(), started, ended });
            }
        }
    }
    let evidence: BTreeSet<usize> = handles.iter().map(|handle| handle.started).collect();
    let question =
        "Which commands that the agent started still run in the background? Give their ids.";
    let owner = String::new();
    let fact = Fact::OpenHandle { owner, handles };
    (!evidence.is_empty()).then(|| proposal(question, evidence.into_iter().collect(), fact))
}

/// The tasks of a list, each with its state, however its tool spells them.
fn tasks(input: &Value) -> impl Iterator<Item = (&str, &str)> {
    let mut lists = ["todos", "tasks", "items", "plan"].iter();
    lists.find_map(|name| input.get(name)?.as_array()).into_iter().flatten().filter_map(|task| {
        let mut names = ["content", "task", "text", "step", "title"].iter();
        let text = names.find_map(|name| task.get(name)?.as_str())?;
        let state = task.get("status").and_then(Value::as_str);
        Some((text, state.unwrap_or_default()))
    })
}

/// The items that a tool use puts on the task list.
pub(crate) fn items_of(tool: &ToolUse) -> Vec<String> {
    if tool.class != ToolClass::Todo {
        return Vec::new();
    }
    let list = tool.input.value();
    tasks(&list).map(|(item, _)| item.to_owned()).collect()
}

/// The task list as the agent kept it: the items of the last version, and when each was ticked off.
fn plan(session: &Session) -> Option<PlantedFact> {
    let mut versions: Vec<(usize, Value)> = Vec::new();
    for (at, message) in session.messages().iter().enumerate() {
        let uses = message.tool_uses().map(|(_, tool)| tool);
        let lists = uses.filter(|tool| tool.class == ToolClass::Todo);
        versions.extend(lists.map(|tool| (at, tool.input.value())));
    }
    versions.retain(|(_, list)| tasks(list).next().is_some());
    let (_, last) = versions.last()?;
    let kept: BTreeSet<&str> = tasks(last).map(|(item, _)| item).collect();
    let mut evidence = Vec::new();
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, list) in &versions {
        // Only the lists that hold the same items are versions of this plan.
        if tasks(list).map(|(item, _)| item).collect::<BTreeSet<_>>() == kept {
            evidence.push(*at);
            for (item, state) in tasks(list) {
                if matches!(state, "completed" | "done") {
                    done.entry(item).or_insert(*at);
                }
            }
        }
    }
    evidence.dedup();
    let items: Vec<PlanItem> = tasks(last)
        // A cancelled item is neither done nor open.
        .filter(|(_, state)| !matches!(*state, "cancelled" | "canceled" | "deleted"))
        .map(|(item, _)| PlanItem { item: item.to_owned(), done: done.get(item).copied() })
        .collect();
    if items.len() < 2 || items.iter().all(|item| item.done.is_some()) {
        return None;
    }
    let plan = "the task list".to_owned();
    let question = "Which items of the task list are not done yet?";
    Some(proposal(question, evidence, Fact::Continuation { plan, items }))
}
