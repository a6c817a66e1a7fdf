//! The task of a request where neither its path nor a header names one: a harness has one base URL for all tasks.

use regex::Regex;
use serde::Deserialize;

use super::table::text;
use crate::session::Role;
use crate::session::wire::request::WireRequest;
use crate::units::to_valid_id;

/// A prompt is in one of the first messages: behind it are results of tools.
const FIRST_PROMPTS: usize = 4;

/// The longest id of a task.
const LONGEST_TASK: usize = 80;

/// How requests name their tasks.
#[derive(Debug, Default)]
pub struct TaskNames {
    /// Matches the name in a prompt: its first group, or all of it.
    pub pattern: Option<Regex>,
    /// The id and the prompt of each task, with one space between its words.
    pub prompts: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Body {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    proctor_task: String,
}

impl TaskNames {
    /// The task of a request: the one that its metadata names, else that of the first prompt that says one.
    pub(super) fn of(&self, body: &str, request: &WireRequest<'_>) -> Option<String> {
        if body.contains("\"proctor_task\"")
            && let Ok(Body { metadata }) = serde_json::from_str(body)
        {
            return Some(to_valid_id(&metadata.proctor_task, LONGEST_TASK));
        }
        if self.pattern.is_none() && self.prompts.is_empty() {
            return None;
        }
        let prompts = request.turns.iter().map(|turn| &turn.message);
        let mut prompts =
            prompts.filter(|message| message.role() == Role::User).take(FIRST_PROMPTS);
        prompts.find_map(|prompt| self.in_prompt(&text(prompt)))
    }

    fn in_prompt(&self, text: &str) -> Option<String> {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let prompts = self.prompts.iter().filter(|(_, prompt)| words.contains(prompt));
        // One prompt may begin as another does.
        let longest = prompts.max_by_key(|(_, prompt)| prompt.len());
        if let Some((task, _)) = longest {
            return Some(task.clone());
        }
        let found = self.pattern.as_ref()?.captures(text)?;
        let name = found.get(1).or_else(|| found.get(0))?;
        Some(to_valid_id(name.as_str(), LONGEST_TASK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::import::request::READER;
    use crate::session::wire::stream::Api;

    #[test]
    fn tasks_are_named_by_metadata_prompts_and_a_pattern() {
        let prompts = [
            ("long", "Fix the parser of dates, and its tests."),
            ("short", "Fix the parser of dates"),
        ];
        let prompts = prompts.map(|(task, prompt)| (task.to_owned(), prompt.to_owned()));
        let tasks =
            TaskNames { pattern: Regex::new(r"ticket (\S+)").ok(), prompts: prompts.into() };
        for (metadata, messages, expected) in [
            ("{}", r#"{"role": "user", "content": "Hello: fix it"}"#, None),
            (
                "{}",
                r#"{"role": "user", "content": "Do: Fix the\n  parser of dates now"}"#,
                Some("short"),
            ),
            (
                "{}",
                r#"{"role": "user", "content": "Fix the parser of dates, and its tests."}"#,
                Some("long"),
            ),
            (
                "{}",
                r#"{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "See ticket AB/7"}"#,
                Some("ab-7"),
            ),
            (
                r#"{"proctor_task": "Django #1"}"#,
                r#"{"role": "user", "content": "Fix the parser of dates"}"#,
                Some("django--1"),
            ),
            (
                r#"{"proctor_task": 7}"#,
                r#"{"role": "user", "content": "Fix the parser of dates"}"#,
                Some("short"),
            ),
        ] {
            let body =
                format!(r#"{{"model": "m", "metadata": {metadata}, "messages": [{messages}]}}"#);
            let request = (READER.request)(Api::ChatCompletions, &body).unwrap();
            assert_eq!(tasks.of(&body, &request).as_deref(), expected, "{body}");
        }
    }
}
