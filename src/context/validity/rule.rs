//! The rules themselves: a table with names, levels and where the provider says so.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The provider accepts it, but something is off.
    Warning,
    /// The provider documents an error.
    Rejected,
}

/// A rule that a prompt can break; [`RULES`] says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    missing_docs,
    reason = "`RULES` documents each, for programs and for readers"
)]
pub enum Rule {
    OrphanResult,
    UnansweredUse,
    ResultsNotFirst,
    DuplicateResult,
    DuplicateUse,
    FirstNotUser,
    EmptyContent,
    ThinkingEdited,
    Prefill,
    UserMessageAltered,
    OverlappingSummaries,
    NotASummary,
    NotSmaller,
}

/// What is to be known about a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleInfo {
    /// The rule.
    pub rule: Rule,
    /// Its name in records and reports.
    pub name: &'static str,
    /// How bad it is to break it.
    pub level: Level,
    /// What breaks it, in one line.
    pub doc: &'static str,
    /// The page of the provider's documentation that says so; nothing where the rule is ours.
    pub documented: Option<&'static str>,
}

const MESSAGES: Option<&str> = Some("Anthropic, Messages API reference: `messages`");
const TOOLS: Option<&str> = Some("Anthropic, Handle tool calls: formatting of tool results");
const THINKING: Option<&str> = Some("Anthropic, Extended thinking: preserving thinking blocks");

/// All rules, in the order of [`Rule`].
pub static RULES: [RuleInfo; 13] = [
    RuleInfo {
        rule: Rule::OrphanResult,
        name: "orphan_result",
        level: Level::Rejected,
        doc: "a tool result answers no tool use of the turn before",
        documented: TOOLS,
    },
    RuleInfo {
        rule: Rule::UnansweredUse,
        name: "unanswered_use",
        level: Level::Rejected,
        doc: "a tool use has no result in the next turn, or there is no next turn",
        documented: TOOLS,
    },
    RuleInfo {
        rule: Rule::ResultsNotFirst,
        name: "results_not_first",
        level: Level::Rejected,
        doc: "something else stands before a tool result in its turn (said of results that answer \
              a tool use; the others are orphans wherever they stand)",
        documented: TOOLS,
    },
    RuleInfo {
        rule: Rule::DuplicateResult,
        name: "duplicate_result",
        level: Level::Rejected,
        doc: "one turn holds two results of the same tool use",
        documented: TOOLS,
    },
    RuleInfo {
        rule: Rule::DuplicateUse,
        name: "duplicate_use",
        level: Level::Rejected,
        doc: "two tool uses of the prompt share an id",
        documented: TOOLS,
    },
    RuleInfo {
        rule: Rule::FirstNotUser,
        name: "first_not_user",
        level: Level::Rejected,
        doc: "the first message is not from the user",
        documented: MESSAGES,
    },
    RuleInfo {
        rule: Rule::EmptyContent,
        name: "empty_content",
        level: Level::Rejected,
        doc: "a prompt without messages, a message without blocks, or a text block that is empty \
              or only white space (an empty tool result is allowed)",
        documented: MESSAGES,
    },
    RuleInfo {
        rule: Rule::ThinkingEdited,
        name: "thinking_edited",
        level: Level::Rejected,
        doc: "the words of a thinking block were changed, and its signature no longer fits",
        documented: THINKING,
    },
    RuleInfo {
        rule: Rule::Prefill,
        name: "prefill",
        level: Level::Warning,
        doc: "the prompt ends with the assistant: older models continue it, newer ones refuse it",
        documented: MESSAGES,
    },
    RuleInfo {
        rule: Rule::UserMessageAltered,
        name: "user_message_altered",
        level: Level::Warning,
        doc: "what the user said last is not in the prompt word for word; tool results and text \
              the product injects are not what the user said",
        documented: None,
    },
    RuleInfo {
        rule: Rule::OverlappingSummaries,
        name: "overlapping_summaries",
        level: Level::Warning,
        doc: "two summaries stand for the same message",
        documented: None,
    },
    RuleInfo {
        rule: Rule::NotASummary,
        name: "not_a_summary",
        level: Level::Warning,
        doc: "a summary is only a question, or shares no identifier with the messages it stands \
              for (not decided where these have fewer than 20)",
        documented: None,
    },
    RuleInfo {
        rule: Rule::NotSmaller,
        name: "not_smaller",
        level: Level::Warning,
        doc: "a patch took something out, and the messages did not get smaller",
        documented: None,
    },
];

impl Rule {
    /// What is to be known about it.
    pub fn info(self) -> &'static RuleInfo {
        &RULES[self as usize]
    }

    /// Its name in records and reports.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// How bad it is to break it.
    pub fn level(self) -> Level {
        self.info().level
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}
