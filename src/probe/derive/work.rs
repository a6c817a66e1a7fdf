//! Derives facts about the agent's work: files, their order, plans, failures, counts.

use std::collections::{BTreeMap, BTreeSet};

use super::entities::class_of;
use super::{Proposal, Texts, messages_of, proposal, tokens};
use crate::probe::{Pattern, ask_points};
use crate::session::ground_truth::{ArtifactVerb, Fact, FileLog, PlanItem, Revision};
use crate::session::{Session, ToolClass, ToolUse};

/// The least and the most files whose order is asked for.
const EVENTS: std::ops::RangeInclusive<usize> = 4..=6;

/// The lines of a failing result that are looked at.
const FIRST_LINES: usize = 12;

/// A result: its message, whether it failed, the class of the tool and its command, the text.
type Answered<'a> = (usize, bool, Option<(ToolClass, String)>, &'a str);

/// The command line of a tool use, if it has one.
fn command_of(tool: &ToolUse) -> Option<String> {
    let input = tool.input.value();
    let names = ["command", "cmd", "script"];
    let command = names.iter().find_map(|key| input.get(key)?.as_str())?;
    Some(command.to_owned())
}

fn results<'s>(texts: &Texts<'s>) -> Vec<Answered<'s>> {
    let mut asked: BTreeMap<&str, (ToolClass, String)> = BTreeMap::new();
    let mut results = Vec::new();
    for (at, message) in texts.session.messages().iter().enumerate() {
        for (_, tool) in message.tool_uses() {
            let command = command_of(tool).unwrap_or_default();
            asked.insert(&tool.id, (tool.class, command));
        }
        for (block, result) in message.tool_results() {
            let text = &*message.model_text()[block];
            let tool = asked.get(&*result.tool_use_id).cloned();
            results.push((at, result.is_error, tool, text));
        }
    }
    results
}

/// `file:line`, as compilers and traces write it.
static PLACE: Pattern = Pattern::new(r"^[^:]*\.[^.:/]{1,4}:[0-9]{1,6}(?::|$)");

/// `E0308`, `TS2345`, `ValueError`, `NullPointerException`.
static CODE: Pattern =
    Pattern::new(r"^(?:[A-Z]{1,6}[0-9]{2,8}|[A-Za-z0-9]{3,}Error|[A-Za-z0-9]*Exception)$");

/// Failing results whose first lines hold a code and a place that occur nowhere else.
pub(super) fn errors(texts: &Texts<'_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (at, failed, _, text) in results(texts) {
        if !failed {
            continue;
        }
        let found = text.lines().take(FIRST_LINES).find_map(|line| {
            let code = tokens(line).find(|token| CODE.is_match(token))?;
            let place = tokens(line).find(|token| PLACE.is_match(token))?;
            Some((line, code, place))
        });
        let Some((line, code, place)) = found else {
            continue;
        };
        let Some(words) = texts.key_of(&line.replace(place, " "), code, 4) else {
            continue;
        };
        if !texts.is_unique(place) || !texts.is_unique(code) {
            continue;
        }
        let attempt = words.join(" ");
        let question = format!("With which code, at which file and line did it fail: {attempt}?");
        let fact = Fact::Error {
            attempt,
            code: code.to_owned(),
            place: place.to_owned(),
        };
        proposals.push(proposal(question, vec![at], fact));
    }
    proposals
}

/// The units in which test runners count.
const UNITS: [&str; 3] = ["passed", "failed", "tests"];

/// A count of fewer digits is guessed too easily.
const COUNT_DIGITS: usize = 2;

/// Replaces a count that a run did not report.
const NOT_REPORTED: &str = "not reported";

/// The last count of this unit in a text, and whether it is the only one: a run of several
/// programs reports one each.
pub(super) fn counted(text: &str, unit: &str) -> Option<(String, bool)> {
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut found: Vec<(String, bool)> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = tokens(line).collect();
        for at in words.iter().enumerate().filter(|(_, word)| **word == unit) {
            let Some(number) = at.0.checked_sub(1).and_then(|at| words.get(at)) else {
                continue;
            };
            if is_number(number) {
                // `1,234 passed` is one number: its parts are none.
                let is_part = at.0 >= 2 && words.get(at.0 - 2).is_some_and(is_number);
                found.push(((*number).to_owned(), !is_part));
            }
        }
    }
    let (last, is_whole) = found.last()?.clone();
    let is_only = is_whole && found.iter().all(|(number, _)| *number == last);
    Some((last, is_only))
}

/// Counts that test runners print, run after run.
///
/// Every run supersedes the one before it, even with a count that cannot be asked for (it is guessed
/// easily, occurs elsewhere too or is one of several), and with none at all.
pub(super) fn numbers(texts: &Texts<'_>) -> Vec<Proposal> {
    let mut series: BTreeMap<&str, Vec<Revision>> = BTreeMap::new();
    for (message, _, tool, text) in results(texts) {
        if tool.is_none_or(|(class, _)| class != ToolClass::Shell) {
            continue;
        }
        let counts = UNITS.map(|unit| (unit, counted(text, unit)));
        if counts.iter().all(|(_, count)| count.is_none()) {
            continue;
        }
        for (unit, count) in counts {
            let known = series.entry(unit).or_default();
            let (value, is_only) = count.unwrap_or((NOT_REPORTED.to_owned(), false));
            let last = known.last().map(|last| last.value.as_str());
            if last == Some(&value) || (last.is_none() && value == NOT_REPORTED) {
                continue;
            }
            let is_asked = is_only && value.len() >= COUNT_DIGITS && texts.is_unique(&value);
            known.push(Revision {
                unasked: !is_asked,
                value,
                message,
            });
        }
    }
    let mut proposals = Vec::new();
    for (unit, values) in series {
        if values.len() < 2 || values.iter().all(|said| said.unasked) {
            continue;
        }
        let evidence = messages_of(&values);
        let question = format!("What did the last test run report, as a number of: {unit}?");
        let (key, unit) = (unit.to_owned(), unit.to_owned());
        proposals.push(proposal(
            question,
            evidence,
            Fact::Numeric { key, unit, values },
        ));
    }
    proposals
}

/// A command that failed, and a later one of the same program that did not.
pub(super) fn rejected(texts: &Texts<'_>) -> Vec<Proposal> {
    let results = results(texts);
    let program = |command: &str| command.split_whitespace().next().map(str::to_owned);
    let mut proposals = Vec::new();
    for (index, (at, failed, tool, text)) in results.iter().enumerate() {
        let Some((ToolClass::Shell, command)) = tool else {
            continue;
        };
        let replaced = results[index + 1..].iter().any(|(_, failed, tool, _)| {
            let later = tool.as_ref().map_or("", |(_, command)| command);
            !failed && later != command && program(later) == program(command)
        });
        if !failed || !replaced {
            continue;
        }
        let reason = text.lines().take(FIRST_LINES).find_map(|line| {
            let reason = tokens(line).find(|token| class_of(token).is_some())?;
            texts.is_unique(reason).then_some((line, reason))
        });
        let words = reason.and_then(|(line, reason)| texts.key_of(line, reason, 4));
        let Some(((_, reason), words)) = reason.zip(words) else {
            continue;
        };
        let approach = words.join(" ");
        let question = format!("Was this tried, and how did it end: {approach}?");
        let reason = reason.to_owned();
        let fact = Fact::RejectedPath { approach, reason };
        proposals.push(proposal(question, vec![*at], fact));
    }
    proposals
}

/// The files that tool uses touched, and how; failed ones are left out.
pub(super) fn artifacts(texts: &Texts<'_>) -> Vec<Proposal> {
    use ArtifactVerb::{Created, Deleted, Modified, Read};

    let session = texts.session;
    let messages = session.messages().iter();
    let results = messages.flat_map(|message| message.tool_results());
    let failed = results.filter(|(_, result)| result.is_error);
    let failed: BTreeSet<&str> = failed.map(|(_, result)| &*result.tool_use_id).collect();
    let mut log = FileLog::default();
    for (at, message) in session.messages().iter().enumerate() {
        let done = message.tool_uses().map(|(_, tool)| tool);
        let done: Vec<&ToolUse> = done.filter(|tool| !failed.contains(&*tool.id)).collect();
        for (verb, path) in done.iter().copied().flat_map(texts.touched) {
            log.record(verb, &path, at);
        }
        let shell = done
            .into_iter()
            .filter(|tool| tool.class == ToolClass::Shell);
        for command in shell.filter_map(command_of) {
            log.record_command(&command, at);
        }
    }
    let asked = [
        (
            Read,
            "Which files did the agent look at without changing them?",
        ),
        (Created, "Which files are new, made by the agent?"),
        (
            Modified,
            "Which files that were there did the agent modify?",
        ),
        (Deleted, "Which files did the agent remove?"),
    ];
    let mut proposals = Vec::new();
    for (verb, question) in asked {
        let files = log.files(verb);
        if files.is_empty() {
            continue;
        }
        let mut evidence: Vec<usize> = files.iter().map(|file| file.message).collect();
        evidence.dedup();
        let optional = log.optional(verb);
        let fact = Fact::Artifact {
            verb,
            files,
            optional,
        };
        proposals.push(proposal(question, evidence, fact));
    }
    proposals
}

/// The order in which files were touched that are named at no other time. The question names
/// them; so of each stretch between two points at which probes are asked there is one of its own.
pub(super) fn order(texts: &Texts<'_>) -> Vec<Proposal> {
    let session = texts.session;
    let mut touched: Vec<(usize, String)> = Vec::new();
    for (message, said) in session.messages().iter().enumerate() {
        let mut touches = said.tool_uses().flat_map(|(_, tool)| (texts.touched)(tool));
        // Several at once have no order.
        if let (Some((_, path)), None) = (touches.next(), touches.next()) {
            touched.push((message, path));
        }
    }
    let counts = texts.frequencies(touched.iter().map(|(_, path)| &**path));
    let once = touched
        .iter()
        .filter(|(_, path)| counts.get(&**path) == Some(&1));
    let mut events: Vec<Revision> = once
        .map(|(message, path)| Revision::new(&**path, *message))
        .collect();
    let calls = session.calls();
    let mut proposals = Vec::new();
    for (_, call) in ask_points(calls.len()) {
        let so_far = events.partition_point(|event| event.message < calls[call]);
        // Too few are left for the next stretch.
        if so_far < *EVENTS.start() {
            continue;
        }
        let events = super::spread(events.drain(..so_far).collect(), *EVENTS.end());
        let mut names: Vec<&str> = events.iter().map(|event| event.value.as_str()).collect();
        names.sort_unstable();
        // The order in which they are named must not be the answer.
        if events.iter().map(|event| &event.value).eq(&names) {
            names.reverse();
        }
        let names = names.join(", ");
        let question = format!("In which order were these files first touched: {names}?");
        let (evidence, sequence) = (messages_of(&events), String::new());
        proposals.push(proposal(
            question,
            evidence,
            Fact::Order { sequence, events },
        ));
    }
    proposals
}

/// The tasks of a list, each with its state, however its tool spells them.
fn tasks(input: &serde_json::Value) -> impl Iterator<Item = (&str, &str)> {
    let mut lists = ["todos", "tasks", "items", "plan"].iter();
    let list = lists.find_map(|name| input.get(name)?.as_array());
    list.into_iter().flatten().filter_map(|task| {
        let mut names = ["content", "task", "text", "step", "title"].iter();
        let text = names.find_map(|name| task.get(name)?.as_str())?;
        let state = task.get("status").and_then(serde_json::Value::as_str);
        Some((text, state.unwrap_or_default()))
    })
}

/// The task list as the agent kept it: what stood on the last version, and when it was ticked off.
pub(super) fn plan(session: &Session) -> Vec<Proposal> {
    let mut cancelled: BTreeSet<String> = BTreeSet::new();
    let mut versions: Vec<(usize, Vec<(String, bool)>)> = Vec::new();
    for (at, message) in session.messages().iter().enumerate() {
        let lists = message
            .tool_uses()
            .filter(|(_, tool)| tool.class == ToolClass::Todo);
        let lists = lists.map(|(_, tool)| {
            let input = tool.input.value();
            let done = |state: &str| matches!(state, "completed" | "done");
            let items = tasks(&input).map(|(text, state)| {
                // An item with another state later is no longer cancelled.
                match state {
                    "cancelled" | "canceled" | "deleted" => cancelled.insert(text.to_owned()),
                    _ => cancelled.remove(text),
                };
                (text.to_owned(), done(state))
            });
            (at, items.collect::<Vec<_>>())
        });
        versions.extend(lists.filter(|(_, items)| !items.is_empty()));
    }
    let Some((_, last)) = versions.last().cloned() else {
        return Vec::new();
    };
    // Only the lists that hold the same items are versions of this plan.
    versions.retain(|(_, items)| {
        let has = |text: &String| items.iter().any(|(other, _)| other == text);
        last.iter().all(|(text, _)| has(text)) && items.len() == last.len()
    });
    let done_at = |text: &str| {
        let done = |(_, items): &&(usize, Vec<(String, bool)>)| {
            items.iter().any(|(other, done)| other == text && *done)
        };
        versions.iter().find(done).map(|(at, _)| *at)
    };
    // A cancelled item is neither done nor open.
    let kept = last.iter().filter(|(text, _)| !cancelled.contains(text));
    let items: Vec<PlanItem> = kept
        .map(|(text, _)| PlanItem {
            item: text.clone(),
            done: done_at(text),
        })
        .collect();
    if items.len() < 2 || items.iter().all(|item| item.done.is_some()) {
        return Vec::new();
    }
    let mut evidence: Vec<usize> = versions.iter().map(|(at, _)| *at).collect();
    evidence.dedup();
    let question = "Which items of the task list are not done yet?";
    let plan = "the task list".to_owned();
    vec![proposal(
        question,
        evidence,
        Fact::Continuation { plan, items },
    )]
}
