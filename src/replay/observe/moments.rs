//! Where compactions fall: at a turn of the user's, at the end of a phase, in a loop, with tool
//! calls in flight.

use std::collections::VecDeque;

use serde_json::Value;

use super::prelude::*;
use crate::record::CompactionMoment;
use crate::session::ToolClass;

/// Watches what is going on when patches are applied.
#[derive(Debug, Default)]
pub struct Moments {
    /// Tool calls of the last response that have no result yet.
    in_flight: BTreeSet<Arc<str>>,
    user_turn: bool,
    phase_end: bool,
    /// Items of the task list that were done when it was last written.
    done: usize,
    /// The tool calls of each of the last responses.
    calls: VecDeque<Option<ContentHash>>,
    /// Patches so far.
    events: usize,
    found: Vec<CompactionMoment>,
}

impl Moments {
    fn response(&mut self, message: &Message) {
        self.user_turn = false;
        self.phase_end = false;
        self.in_flight.clear();
        let mut parts: Vec<&[u8]> = Vec::new();
        for (_, tool) in message.tool_uses() {
            self.in_flight.insert(tool.id.clone());
            parts.extend([tool.name.as_bytes(), tool.input.as_str().as_bytes()]);
            if tool.class == ToolClass::Todo {
                let finished = done(&tool.input.value());
                self.phase_end |= finished > self.done;
                self.done = finished;
            }
        }
        let calls = (!parts.is_empty()).then(|| ContentHash::of_parts(parts));
        self.calls.push_back(calls);
        if self.calls.len() > CompactionMoment::LOOP {
            self.calls.pop_front();
        }
    }

    fn note(&mut self, answered: usize) {
        let first = self.calls.front().filter(|call| call.is_some());
        let in_loop = self.calls.len() == CompactionMoment::LOOP
            && first.is_some_and(|first| self.calls.iter().all(|call| call == first));
        let in_flight = self.in_flight.len().saturating_sub(answered);
        let moment = CompactionMoment {
            event: self.events,
            user_turn: self.user_turn,
            phase_end: self.phase_end,
            in_loop,
            in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
        };
        self.events += 1;
        let nothing = CompactionMoment { event: moment.event, ..CompactionMoment::default() };
        if moment != nothing {
            self.found.push(moment);
        }
    }
}

/// How many items of a task list are done: in the whole list, or in the update of one item.
fn done(input: &Value) -> usize {
    let lists = ["todos", "tasks", "items", "plan"].iter();
    let list = lists.filter_map(|name| input.get(name)?.as_array()).flatten();
    let finished = list.chain([input]).filter(|item| {
        let status = item.get("status").and_then(Value::as_str);
        matches!(status, Some("completed" | "done"))
    });
    finished.count()
}

impl Observer for Moments {
    fn appended(&mut self, entry: &Entry) {
        let message = &entry.message;
        if message.role() == Role::Assistant {
            return self.response(message);
        }
        for (_, result) in message.tool_results() {
            self.in_flight.remove(&result.tool_use_id);
        }
        self.user_turn |= message.has_tag(Tag::TypedUser);
        self.phase_end |= message.has_tag(Tag::PhaseEnd);
    }

    /// The message is not appended yet: its results are there all the same.
    fn shortened(&mut self, applied: &Applied) {
        let results = applied.change.removed.iter().flat_map(|entry| entry.message.tool_results());
        let answered =
            results.filter(|(_, result)| self.in_flight.contains(&result.tool_use_id)).count();
        self.note(answered);
    }

    fn patched(&mut self, _: &Applied) {
        self.note(0);
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        record.moments = self.found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, Edit, Origin};
    use crate::session::{ContentBlock, JsonText, ToolResult, ToolUse};
    use crate::tokens::{CharsPer4, CountedTexts};

    /// Checks a sequence of events, one character each: `?` a person types, `.` a phase ends, `a`
    /// to `z` a response that calls a tool with this argument, `+` and `-` one that writes the task
    /// list with one more item done or none, `!` the result, `|` a compaction.
    fn check(happens: &str, expected: &[(bool, bool, bool, u32)]) {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let mut observer = Moments::default();
        let mut id = 0;
        let mut done = 0;
        let append = |observer: &mut Moments, message: Message| {
            observer.appended(&Entry::new(Origin::Verbatim(0), Arc::new(message), &counts));
        };
        for what in happens.chars() {
            let tool = |id: usize, class, input: String| {
                ContentBlock::ToolUse(Box::new(ToolUse {
                    id: id.to_string().into(),
                    name: "tool".into(),
                    class,
                    input: JsonText::parse(&input).unwrap(),
                }))
            };
            let message = match what {
                '?' => Message::text(Role::User, "go on").with_tags([Tag::TypedUser]),
                '.' => Message::text(Role::User, "done").with_tags([Tag::PhaseEnd]),
                '!' => Message::new(
                    Role::User,
                    vec![ContentBlock::ToolResult(Box::new(ToolResult {
                        tool_use_id: id.to_string().into(),
                        content: Vec::new(),
                        is_error: false,
                    }))],
                ),
                '|' => {
                    let mut context = Context::default();
                    let message = Arc::new(Message::text(Role::User, "old"));
                    context.append(Entry::new(Origin::Verbatim(0), message, &counts));
                    let edit = Edit::Replace { entries: 0..1, with: Vec::new() };
                    observer.patched(&Applied {
                        call: 0,
                        stage: "own".into(),
                        reason: String::new(),
                        change: context.apply(vec![edit], &counts).unwrap(),
                        is_still_over: false,
                        prepared_at: None,
                    });
                    continue;
                }
                '+' | '-' => {
                    id += 1;
                    done += usize::from(what == '+');
                    let item = r#"{"status":"completed"}"#;
                    let input = format!(r#"{{"todos":[{}]}}"#, vec![item; done].join(","));
                    Message::new(Role::Assistant, vec![tool(id, ToolClass::Todo, input)])
                }
                argument => {
                    id += 1;
                    let input = format!("\"{argument}\"");
                    Message::new(Role::Assistant, vec![tool(id, ToolClass::Shell, input)])
                }
            };
            append(&mut observer, message);
        }
        let found = observer.found.iter();
        let found: Vec<_> =
            found.map(|it| (it.user_turn, it.phase_end, it.in_loop, it.in_flight)).collect();
        assert_eq!(found, expected, "{happens}");
    }

    #[test]
    fn a_compaction_falls_where_the_work_stands() {
        for (happens, expected) in [
            ("?a!|", &[][..]),
            ("a!?|", &[(true, false, false, 0)]),
            ("a!.|", &[(false, true, false, 0)]),
            ("+!|", &[(false, true, false, 0)]),
            ("+!-!|", &[]),
            ("a|", &[(false, false, false, 1)]),
            ("a!a!a!|", &[(false, false, true, 0)]),
            ("a!a!b!|a!a!|", &[]),
        ] {
            check(happens, expected);
        }
    }
}
