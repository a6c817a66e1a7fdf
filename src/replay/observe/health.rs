//! Summary health: whether what a model wrote for a compaction is a summary at all.
//!
//! Seen is every answer of a model to a request for a summary, applied or not. A text is kept only
//! where something is wrong with it, so that a report can show it.

use super::{Asked, Observer};
use crate::context::validity::summary::is_question;
use crate::model::{Purpose, Stop, Task};
use crate::record::{Ailment, CellRecord, SummaryHealth, UnhealthySummary};

/// Of a text that is kept, so many characters.
const KEPT_CHARS: usize = 600;

/// An answer that begins like this goes on with the conversation instead of summing it up.
const CHAT: &[&str] = &[
    "sure,",
    "sure!",
    "of course",
    "certainly",
    "i'll ",
    "i will ",
    "i can ",
    "i'd be happy",
    "let me ",
    "let's ",
    "okay,",
    "ok,",
    "great,",
    "here's what i'll",
];

/// A chat is short: a text of more lines that begins so tells something all the same.
const CHAT_LINES: usize = 6;

/// Looks at every summary.
#[derive(Debug, Default)]
pub struct Health {
    found: SummaryHealth,
}

impl Observer for Health {
    fn asked(&mut self, asked: &Asked) {
        let is_summary = matches!(
            asked.request.purpose,
            Purpose::Compaction | Purpose::Recovery | Purpose::Background
        ) && matches!(asked.request.task, Task::Summarise { .. });
        let Some(answer) = asked.answer.as_ref().filter(|_| is_summary) else {
            return;
        };
        self.found.summaries += 1;
        let source = asked.usage.prompt();
        let ailments = ailments(&answer.text, answer.stop, asked.usage.output > source);
        if !ailments.is_empty() {
            self.found.unhealthy.push(UnhealthySummary {
                call: asked.call,
                ailments,
                text: answer.text.chars().take(KEPT_CHARS).collect(),
            });
        }
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        record.summary_health = self.found;
    }
}

/// What is wrong with a summary, in the order of [`Ailment`].
fn ailments(text: &str, stop: Stop, is_larger: bool) -> Vec<Ailment> {
    let mut found = Vec::new();
    let trimmed = text.trim();
    if trimmed.is_empty() {
        found.push(Ailment::Empty);
    } else if is_tool_call(trimmed) || stop == Stop::ToolUse {
        found.push(Ailment::ToolCall);
    } else if is_question(&[trimmed.into()]) {
        found.push(Ailment::Question);
    } else if is_chat(trimmed) {
        found.push(Ailment::Chat);
    }
    if stop == Stop::Length {
        found.push(Ailment::CutOff);
    }
    if is_larger {
        found.push(Ailment::LargerThanSource);
    }
    found
}

/// A text that is nothing but a call: JSON with a name and arguments, or markup that means one.
fn is_tool_call(text: &str) -> bool {
    let inner = text.trim_start_matches("```json").trim_start_matches("```");
    let inner = inner.trim_end_matches("```").trim();
    let marked = ["<tool_call", "<function_call", "<invoke", "[TOOL_CALL"];
    let is_json = inner.starts_with('{') && inner.ends_with('}');
    let holds = |key: &str| inner.contains(&format!("\"{key}\""));
    let is_call = is_json && (holds("arguments") || holds("input") || holds("parameters"));
    marked.iter().any(|mark| text.starts_with(mark)) || (is_call && holds("name"))
}

fn is_chat(text: &str) -> bool {
    let lower = text.to_lowercase();
    CHAT.iter().any(|opening| lower.starts_with(opening)) && text.lines().count() <= CHAT_LINES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_summary_has_a_name() {
        use Ailment::{Chat, CutOff, Empty, LargerThanSource, Question, ToolCall};
        for (text, stop, larger, expected) in [
            ("## Done\n- src/a.rs was mended", Stop::End, false, &[][..]),
            ("  \n", Stop::End, false, &[Empty]),
            (
                "Which file should I look at first?",
                Stop::End,
                false,
                &[Question],
            ),
            (
                r#"{"name":"read","arguments":{"path":"a"}}"#,
                Stop::End,
                false,
                &[ToolCall],
            ),
            ("<tool_call>read</tool_call>", Stop::End, false, &[ToolCall]),
            ("anything", Stop::ToolUse, false, &[ToolCall]),
            ("Sure, I'll open the file now.", Stop::End, false, &[Chat]),
            ("## Done\n- half of", Stop::Length, false, &[CutOff]),
            ("## Done\n- all", Stop::End, true, &[LargerThanSource]),
            ("", Stop::Length, true, &[Empty, CutOff, LargerThanSource]),
            (r#"{"done": ["a"], "left": []}"#, Stop::End, false, &[]),
        ] {
            assert_eq!(ailments(text, stop, larger), expected, "{text:?}");
        }
    }
}
