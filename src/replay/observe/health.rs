//! Summary health: whether what a model wrote for a compaction is a summary at all.
//!
//! Seen is every answer of a model to a request for a summary, applied or not. A text is kept only
//! where something is wrong with it, so that a report can show it. How large a summary may be is
//! known from the patch that puts it in the place of something: what it stands for must be larger.

use std::collections::HashSet;

use super::prelude::*;
use super::{BilledRequest, Observer};
use crate::context::validity::summary::is_question;
use crate::model::{Purpose, Stop};
use crate::record::{Ailment, SummaryHealth, UnhealthySummary};
use crate::script::Letters;

/// The number of characters that are kept of a text.
const KEPT_CHARS: usize = 600;

/// An answer that begins like this goes on with the conversation instead of summing it up.
const CHAT: &str = "\
    sure,|sure!|of course|certainly|i'll |i will |i can |i'd be happy|let me |let's |okay,|ok,|great,|\
    here's what i'll";

/// A chat is short: a text of more lines that begins so holds information nevertheless.
const CHAT_LINES: usize = 6;

/// Looks at every summary.
#[derive(Debug)]
pub struct Health {
    /// Letters of what the user and the agent said in the session.
    session: Letters,
    found: SummaryHealth,
    /// The last summary, until a patch puts it into the context.
    pending: Option<UnhealthySummary>,
    /// The words of answers that no patch has put into the context so far.
    unread: Vec<HashSet<String>>,
}

impl Observer for Health {
    fn asked(&mut self, asked: &BilledRequest) {
        let summary = matches!(
            asked.request.purpose,
            Purpose::Compaction | Purpose::Recovery | Purpose::Background
        ) && matches!(asked.request.task, Task::Summarise { .. });
        let Some(answer) = asked.answer.as_ref().filter(|_| summary) else {
            return;
        };
        self.settle();
        self.found.summaries += 1;
        self.unread.push(words(&answer.text).map(str::to_owned).collect());
        let larger = asked.usage.output > asked.usage.prompt();
        self.pending = Some(UnhealthySummary {
            call: asked.call,
            ailments: ailments(&answer.text, answer.stop, larger, &self.session),
            text: answer.text.chars().take(KEPT_CHARS).collect(),
        });
    }

    fn patched(&mut self, applied: &Applied) {
        self.unread.retain(|words| !applied.written().any(|entry| may_hold(entry, words)));
        if let (Some(larger), Some(summary)) = (is_larger(applied), &mut self.pending) {
            if larger && !summary.ailments.contains(&Ailment::LargerThanSource) {
                summary.ailments.push(Ailment::LargerThanSource);
            }
            self.settle();
        }
    }

    fn finish(mut self: Box<Self>, record: &mut CellRecord) {
        self.settle();
        self.found.unread = self.unread.len();
        record.summary_health = self.found;
    }
}

/// The letters of all that the user and the agent said; what tools said is code, logs and data.
pub fn letters_of(session: &Session) -> Letters {
    let mut letters = Letters::default();
    for (_, text) in session.messages().iter().flat_map(|message| message.texts()) {
        letters.add(text);
    }
    letters
}

impl Health {
    /// Looks at the summaries of a session whose texts have these letters.
    pub fn new(session: Letters) -> Self {
        Self { session, found: SummaryHealth::default(), pending: None, unread: Vec::new() }
    }

    /// Keeps the last summary if something is wrong with it.
    fn settle(&mut self) {
        let summary = self.pending.take();
        let unhealthy = summary.filter(|summary| !summary.ailments.is_empty());
        self.found.unhealthy.extend(unhealthy);
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whether an answer of these words may stand in what a strategy wrote: in place of messages or beside them, or in a
/// message that it changed and that has half of the words.
fn may_hold(entry: &Entry, answer: &HashSet<String>) -> bool {
    if matches!(entry.origin, Origin::Derived(_) | Origin::Authored) {
        return true;
    }
    let texts = entry.message.model_text();
    let there: HashSet<&str> = texts.iter().flat_map(|text| words(text)).collect();
    2 * answer.iter().filter(|word| there.contains(word.as_str())).count() >= answer.len()
}

/// Whether what a patch wrote is larger than what it took out for it; nothing where it wrote no
/// summary. What it only moved or restored counts on neither side.
fn is_larger(applied: &Applied) -> Option<bool> {
    let mut summaries =
        applied.written().filter(|entry| matches!(entry.origin, Origin::Derived(_))).peekable();
    summaries.peek()?;
    let kept = applied.written().filter(|entry| {
        let mut removed = applied.change.removed.iter();
        removed.any(|removed| removed.message == entry.message)
    });
    Some(tokens(summaries) > tokens(applied.change.removed.iter()) - tokens(kept))
}

fn tokens<'e>(entries: impl Iterator<Item = &'e Entry>) -> Tokens {
    entries.map(|entry| entry.size().tokens).sum()
}

/// The ailments of a summary of a session with these letters, in the order of [`Ailment`].
fn ailments(text: &str, stop: Stop, is_larger: bool, session: &Letters) -> Vec<Ailment> {
    let mut letters = Letters::default();
    letters.add(text);
    let mut found = Vec::new();
    let trimmed = text.trim();
    if matches!(stop, Stop::Refusal | Stop::ContentFilter) {
        found.push(Ailment::Refused);
    } else if trimmed.is_empty() {
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
    if letters.are_foreign_to(session) {
        found.push(Ailment::OtherScript);
    }
    found
}

/// A text that is nothing but a call: JSON with a name and arguments, or markup that means one.
fn is_tool_call(text: &str) -> bool {
    let inner =
        text.trim_start_matches("```json").trim_start_matches("```").trim_end_matches("```").trim();
    let marked = ["<tool_call", "<function_call", "<invoke", "[TOOL_CALL"];
    let json = inner.starts_with('{') && inner.ends_with('}');
    let holds = |key: &str| inner.contains(&format!("\"{key}\""));
    let call = json && (holds("arguments") || holds("input") || holds("parameters"));
    marked.iter().any(|mark| text.starts_with(mark)) || (call && holds("name"))
}

fn is_chat(text: &str) -> bool {
    let lower = text.to_lowercase();
    CHAT.split('|').any(|opening| lower.starts_with(opening)) && text.lines().count() <= CHAT_LINES
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::{Context, Edit};
    use crate::session::{Message, Role};
    use crate::tokens::{CharsPer4, CountedTexts};

    /// A context of four entries of a hundred words of which the middle two are replaced by these
    /// texts: summaries, and the first entry once more.
    fn replaced(summary: &str, again: bool) -> Option<bool> {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let mut context = Context::default();
        for at in 0..4 {
            let text = format!("{at} {}", "words ".repeat(100));
            let message = Arc::new(Message::text(Role::User, text));
            context.append(Entry::new(Origin::Verbatim(at), message, &counts));
        }
        let from = usize::from(!again);
        let gone = context.entries()[from..3].to_vec();
        let mut with: Vec<Entry> = gone.iter().take(1 - from).cloned().collect();
        if !summary.is_empty() {
            let message = Arc::new(Message::text(Role::User, summary));
            with.push(Entry::new(Origin::derived_from(&gone), message, &counts));
        }
        let entries = from..3;
        let change = context.apply(vec![Edit::replacing(entries, with)]);
        is_larger(&Applied {
            call: 0,
            stage: "summarize".into(),
            reason: "full".to_owned(),
            change: change.unwrap(),
            is_still_over: false,
            prepared_at: None,
        })
    }

    #[test]
    fn a_summary_is_held_against_what_it_stands_for() {
        // Two entries of 150 tokens; all four are 600.
        assert_eq!(replaced(&"short ".repeat(50), false), Some(false));
        assert_eq!(replaced(&"longer ".repeat(200), false), Some(true));
        // A restored message is not a source.
        assert_eq!(replaced(&"longer ".repeat(200), true), Some(true));
        assert_eq!(replaced("", false), None);
    }

    #[test]
    fn what_is_no_summary_has_a_name() {
        use Ailment::{Chat, CutOff, Empty, LargerThanSource, Question, Refused, ToolCall};
        for (text, stop, larger, expected) in [
            ("## Done\n- src/a.rs was mended", Stop::End, false, &[][..]),
            ("  \n", Stop::End, false, &[Empty]),
            ("Which file should I look at first?", Stop::End, false, &[Question]),
            (r#"{"name":"read","arguments":{"path":"a"}}"#, Stop::End, false, &[ToolCall]),
            ("<tool_call>read</tool_call>", Stop::End, false, &[ToolCall]),
            ("anything", Stop::ToolUse, false, &[ToolCall]),
            ("I cannot help with that.", Stop::Refusal, false, &[Refused]),
            ("", Stop::ContentFilter, false, &[Refused]),
            ("Sure, I'll open the file now.", Stop::End, false, &[Chat]),
            ("## Done\n- half of", Stop::Length, false, &[CutOff]),
            ("## Done\n- all", Stop::End, true, &[LargerThanSource]),
            ("", Stop::Length, true, &[Empty, CutOff, LargerThanSource]),
            (r#"{"done": ["a"], "left": []}"#, Stop::End, false, &[]),
        ] {
            let found = ailments(text, stop, larger, &Letters::default());
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
