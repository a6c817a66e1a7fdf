//! The rules of Anthropic, OpenAI and Gemini for a conversation, checked as it changes: those that
//! a provider enforces, and those that it lets pass.
//!
//! Anthropic combines consecutive messages of one role before it looks at them; such a combined
//! message is called a *turn* here, and [`OrphanResult`](Rule::OrphanResult) to
//! [`DuplicateResult`](Rule::DuplicateResult) are about turns. So are those of OpenAI's responses
//! and of Gemini, which know items and parts. OpenAI's chat completions combine nothing, and take
//! tool results as messages of their own, which must follow the message that asks for them.
//! A [`Checker`] follows a context; [`check`] says what is wrong with some entries.
//!
//! Two rules need no check: consecutive messages of one role are combined, and a Rust string is
//! always valid UTF-8. A strategy cannot lose the system prompt, which does not belong to a
//! context.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{Entry, Origin};
use crate::session::wire::RuleSet;
use crate::session::{Role, Tag};

mod checker;
mod rule;
pub(crate) mod summary;
pub(crate) mod short;

pub use checker::Checker;
pub use rule::{Level, Rule};

/// A rule that is broken, and by what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The thing that breaks the rule.
    pub subject: Subject,
}

impl Rule {
    fn broken_by(self, subject: Subject) -> Finding {
        Finding { rule: self, subject }
    }
}

/// The thing that breaks a rule. A subject names the origin of a thing, not its place now, so that
/// the same finding is recognised at the next call and in the full history.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The prompt as a whole.
    Prompt,
    /// The tool use of this id, or its result.
    ToolUse(Arc<str>),
    /// The session's message of this index, whole, edited or restored.
    Message(usize),
    /// The summary of the session's messages from the first index up to the second.
    Summary(usize, usize),
    /// A text of the strategy that represents no message.
    Authored,
    /// A stage of the strategy.
    Stage(Arc<str>),
}

impl Subject {
    /// The subject that an entry is.
    pub fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Verbatim(at) | Origin::Edited { message: at, .. } | Origin::Restored(at) => {
                Self::Message(*at)
            }
            Origin::Derived(ranges) => Self::Summary(
                ranges.first().map_or(0, |range| range.start),
                ranges.last().map_or(0, |range| range.end),
            ),
            Origin::Authored => Self::Authored,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt => f.write_str("prompt"),
            Self::ToolUse(id) => write!(f, "tool use {id}"),
            Self::Message(at) => write!(f, "message {at}"),
            Self::Summary(start, end) => write!(f, "summary of messages {start}..{end}"),
            Self::Authored => f.write_str("text of the strategy"),
            Self::Stage(name) => write!(f, "stage {name}"),
        }
    }
}

/// Whether the entry is a summary or an extract: it represents messages, and is not a placeholder
/// (those are tagged [`Tag::Meta`]).
pub fn is_summary(entry: &Entry) -> bool {
    matches!(entry.origin, Origin::Derived(_)) && !entry.message.has_tag(Tag::Meta)
}

/// All rules that these entries, sent to the API as they are, break.
///
/// Rules about more than the entries are not among them: `thinking_dropped`, `call_changed`,
/// `user_message_altered`, `not_a_summary`, `not_smaller` and `rewritten_twice` need the session or
/// the patches, and are the validity observer's.
pub fn check(rules: RuleSet, entries: &[Entry]) -> BTreeSet<Finding> {
    let mut checker = Checker::new(rules);
    for entry in entries {
        checker.append(entry);
    }
    checker.findings()
}

/// The findings at the beginning and the end of the prompt.
fn check_ends(
    rules: RuleSet,
    mut speakers: impl DoubleEndedIterator<Item = Role>,
) -> impl Iterator<Item = Finding> {
    let first = speakers.next();
    let last = speakers.next_back().or(first);
    let broken = [
        (first.is_none(), Rule::EmptyContent),
        (first == Some(Role::Assistant), Rule::FirstNotUser),
        (last == Some(Role::Assistant), Rule::Prefill),
    ];
    broken
        .into_iter()
        .filter(move |(is_broken, rule)| *is_broken && rule.level(rules).is_some())
        .map(|(_, rule)| rule.broken_by(Subject::Prompt))
}

fn duplicate_use(id: &Arc<str>) -> Finding {
    Rule::DuplicateUse.broken_by(Subject::ToolUse(id.clone()))
}

/// The ranges of messages that a summary represents; none for other entries.
fn summary_ranges(entry: &Entry) -> impl Iterator<Item = (usize, usize)> {
    let ranges = entry.origin.replaced().iter().map(|range| (range.start, range.end));
    ranges.filter(move |(start, end)| is_summary(entry) && start < end)
}

/// The first message that two of these ranges hold; they come in ascending order.
fn overlap(ranges: impl IntoIterator<Item = (usize, usize)>) -> Option<Finding> {
    let mut reached = 0;
    for (start, end) in ranges {
        if start < reached {
            return Some(Rule::OverlappingSummaries.broken_by(Subject::Message(start)));
        }
        reached = reached.max(end);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::short::{entries, lines};
    use super::*;
    use crate::session::{ContentBlock, JsonText, Message};

    fn check_entries(entries: &[Entry], expected: &[&str]) {
        check_with(RuleSet::Anthropic, entries, expected);
    }

    fn check_openai(text: &str, expected: &[&str]) {
        check_with(RuleSet::OpenAi, &entries(text), expected);
    }

    fn check_with(rules: RuleSet, entries: &[Entry], expected: &[&str]) {
        assert_eq!(lines(&check(rules, entries)), expected, "{entries:#?}");
    }

    fn check_text(text: &str, expected: &[&str]) {
        check_entries(&entries(text), expected);
    }

    fn check_origins(text: &str, origins: &[Origin], expected: &[&str]) {
        let mut entries = entries(text);
        for (entry, origin) in entries.iter_mut().zip(origins) {
            entry.origin = origin.clone();
        }
        check_entries(&entries, expected);
    }

    fn derived(range: Range<usize>) -> Origin {
        Origin::Derived(std::iter::once(range).collect())
    }

    #[test]
    fn pairs_within_turns_are_fine() {
        check_text("U(hi)", &[]);
        check_text("U(hi) U(there) A(look +1 +2) U(=2 =1 and) A(done) U(ok)", &[]);
        check_text("U(hi) A(~ +1) A(+2) U(=1) U(=2) U(go-on)", &[]);
    }

    #[test]
    fn a_result_answers_a_use_of_the_turn_before() {
        check_text("U(=1)", &["orphan_result: tool use 1"]);
        check_text("U(hi) A(ok) U(=1)", &["orphan_result: tool use 1"]);
        let late = ["orphan_result: tool use 1", "unanswered_use: tool use 1"];
        check_text("U(hi) A(+1) U(wait) A(ok) U(=1)", &late);
        check_text("U(hi) A(+1) A(=1) U(x)", &late);
    }

    #[test]
    fn a_use_has_its_result_in_the_next_turn() {
        check_text("U(hi) A(+1 +2) U(=1)", &["unanswered_use: tool use 2"]);
        check_text("U(+1) A(ok) U(x)", &["unanswered_use: tool use 1"]);
        let pending = ["unanswered_use: tool use 1", "prefill: prompt"];
        check_text("U(hi) A(+1)", &pending);
    }

    #[test]
    fn results_come_first_in_their_turn() {
        check_text("U(hi) A(+1) U(so =1)", &["results_not_first: tool use 1"]);
        check_text("U(hi) A(+1 +2) U(=1) U(so) U(=2)", &["results_not_first: tool use 2"]);
    }

    #[test]
    fn a_use_has_one_result_and_an_id_of_its_own() {
        check_text("U(hi) A(+1) U(=1) U(=1)", &["duplicate_result: tool use 1"]);
        check_text("U(hi) A(+1) U(=1) A(+1) U(=1)", &["duplicate_use: tool use 1"]);
    }

    #[test]
    fn the_input_of_a_tool_use_is_an_object() {
        let mut entries = entries("U(hi) A(+1) U(=1)");
        let mut message = Message::clone(&entries[1].message);
        let cleared =
            ContentBlock::tool_use("1".into(), "read".into(), JsonText::string("cleared"));
        message = message.with_content(vec![cleared]);
        entries[1].message = Arc::new(message);
        check_entries(&entries, &["input_not_object: tool use 1"]);
        check_with(RuleSet::OpenAi, &entries, &[]);
    }

    #[test]
    fn a_prompt_begins_and_ends_with_the_user() {
        check_text("A(hi) U(ok)", &["first_not_user: prompt"]);
        check_text("U(hi) A(ok)", &["prefill: prompt"]);
        check_entries(&[], &["empty_content: prompt"]);
    }

    #[test]
    fn nothing_is_empty() {
        check_text("U(hi _)", &["empty_text: message 0"]);
        check_text("U(hi) U()", &["empty_content: message 1"]);
        check_origins("U(_)", &[Origin::Authored], &["empty_text: text of the strategy"]);
        let summary = ["empty_text: summary of messages 2..5"];
        check_origins("U(_)", &[derived(2..5)], &summary);
    }

    #[test]
    fn thinking_stays_as_it_was() {
        let edited = |block| {
            let blocks = Arc::new(vec![block]);
            [Origin::Verbatim(0), Origin::Edited { message: 1, blocks }]
        };
        let text = "U(hi) A(~ ok) U(so)";
        check_origins(text, &edited(0), &["thinking_edited: message 1"]);
        check_origins(text, &edited(1), &[]);
    }

    #[test]
    fn openai_wants_each_result_right_behind_the_message_that_asks_for_it() {
        check_openai("U(hi) A(~ look +1 +2) U(=2 =1 and) A(done)", &[]);
        check_openai("U(hi) A(+1) U(and =1)", &[]);
        check_openai("U(hi) A(+1 +2) U(=1) U(=2) U(so)", &[]);
        let late = ["results_not_first: tool use 1"];
        check_openai("U(hi) A(+1) U(so) U(=1)", &late);
        check_openai("U(hi) A(+1 +2) U(=2 so) U(=1)", &late);
        let between = ["orphan_result: tool use 1", "unanswered_use: tool use 1"];
        check_openai("U(hi) A(+1) A(+2) U(=1 =2)", &between);
        check_openai("U(hi) A(+1) A(ok) U(=1)", &between);
        check_openai("U(=1)", &["orphan_result: tool use 1"]);
        check_openai("U(hi) A(+1)", &["unanswered_use: tool use 1"]);
        check_openai("A(+1) U(=1 =1)", &["duplicate_result: tool use 1"]);
        check_openai("A(+1) U(=1) A(+1) U(=1)", &["duplicate_use: tool use 1"]);
    }

    #[test]
    fn openai_takes_a_prompt_that_begins_or_ends_anywhere_and_empty_texts() {
        check_openai("A(hi _) U(_) A(ok)", &[]);
        check_openai("U()", &["empty_content: message 0"]);
        check_openai("U(hi) A(~)", &["empty_content: message 1"]);
        check_openai("", &["empty_content: prompt"]);
    }

    #[test]
    fn responses_and_gemini_mind_pairs_and_what_belongs_to_a_call() {
        let responses = RuleSet::OpenAiResponses;
        let check =
            |rules, text: &str, expected: &[&str]| check_with(rules, &entries(text), expected);
        check(responses, "U(hi) A(~ +1) U(so =1 _) A(ok)", &[]);
        check(responses, "U(hi) A(~) U(so)", &["thinking_last: message 1"]);
        check(responses, "U(hi) A(~) A(+1) U(=1)", &[]);
        check(responses, "U(=1)", &["orphan_result: tool use 1"]);
        let gemini = RuleSet::Gemini;
        check(gemini, "U(hi) A(~ +1 +2) U(=1 =2) A(~)", &["prefill: prompt"]);
        check(gemini, "U(hi) A(+1 +2) U(=2 =1)", &["results_reordered: tool use 1"]);
        check(gemini, "U(hi) A(+1 +2) U(=1)", &["unanswered_use: tool use 2"]);
        check(RuleSet::Anthropic, "U(hi) A(ok ~) U(so)", &["thinking_last: message 1"]);
        check(RuleSet::OpenAi, "U(hi) A(ok ~) U(so)", &[]);
    }

    #[test]
    fn summaries_do_not_overlap() {
        let text = "U(one) U(two) U(three)";
        check_origins(text, &[derived(0..3), derived(3..5), derived(5..6)], &[]);
        let message = ["overlapping_summaries: message 3"];
        check_origins(text, &[derived(0..4), derived(5..6), derived(3..5)], &message);
        let whole = ["overlapping_summaries: message 0"];
        check_origins(text, &[derived(0..3), derived(0..3)], &whole);
        let mut placeholder = entries(text);
        for entry in &mut placeholder {
            entry.origin = derived(0..3);
            entry.message = Arc::new(Message::clone(&entry.message).with_tags([Tag::Meta]));
        }
        check_entries(&placeholder, &[]);
    }
}
