//! The rules themselves: a table with names, levels by provider, and where the provider says so.

use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::wire::Provider;

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
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
    EmptyText,
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
    /// What breaks it, in one line.
    pub doc: &'static str,
    /// What Anthropic makes of it.
    pub anthropic: Verdict,
    /// What OpenAI makes of it.
    pub openai: Verdict,
}

/// What one provider makes of a broken rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How bad it is; nothing where the provider takes it, or cannot be sent it.
    pub level: Option<Level>,
    /// Where the provider says so; nothing where the rule is ours.
    pub documented: Option<&'static str>,
}

/// It is no finding at all.
const NONE: Verdict = Verdict {
    level: None,
    documented: None,
};

/// The provider takes it, and we say that it is off.
const WARNING: Verdict = Verdict {
    level: Some(Level::Warning),
    documented: None,
};

const fn warning(documented: &'static str) -> Verdict {
    Verdict {
        level: Some(Level::Warning),
        documented: Some(documented),
    }
}

const fn rejected(documented: &'static str) -> Verdict {
    Verdict {
        level: Some(Level::Rejected),
        documented: Some(documented),
    }
}

const MESSAGES: &str = "Anthropic, Messages API reference: `messages`";
const TOOLS: &str = "Anthropic, Handle tool calls: formatting of tool results";
const THINKING: &str = "Anthropic, Extended thinking: preserving thinking blocks";
const CHAT: &str = "OpenAI, Chat Completions API reference: `messages`";
const TOOL_MESSAGES: &str = "OpenAI, error 400: \"messages with role 'tool' must be a response to a \
                             preceding message with 'tool_calls'\"";
const TOOL_CALLS: &str = "OpenAI, error 400: \"an assistant message with 'tool_calls' must be \
                          followed by tool messages responding to each 'tool_call_id'\"";
const TOOL_IDS: &str = "OpenAI, error 400: \"duplicate value for 'tool_call_id'\"";

/// All rules, in the order of [`Rule`], with both providers' levels side by side.
pub const RULES: [RuleInfo; 14] = [
    RuleInfo {
        rule: Rule::OrphanResult,
        name: "orphan_result",
        doc: "a tool result answers no tool use of the turn before; with OpenAI, of the message \
              before",
        anthropic: rejected(TOOLS),
        openai: rejected(TOOL_MESSAGES),
    },
    RuleInfo {
        rule: Rule::UnansweredUse,
        name: "unanswered_use",
        doc: "a tool use has no result in the next turn, or there is no next turn; with OpenAI, \
              its message must also be the last of its turn",
        anthropic: rejected(TOOLS),
        openai: rejected(TOOL_CALLS),
    },
    RuleInfo {
        rule: Rule::ResultsNotFirst,
        name: "results_not_first",
        doc: "something else stands before a tool result in its turn (said of results that answer \
              a tool use; the others are orphans wherever they stand); with OpenAI, in an earlier \
              message of the turn, for results become messages of their own",
        anthropic: rejected(TOOLS),
        openai: rejected(TOOL_CALLS),
    },
    RuleInfo {
        rule: Rule::DuplicateResult,
        name: "duplicate_result",
        doc: "one turn holds two results of the same tool use",
        anthropic: rejected(TOOLS),
        openai: rejected(TOOL_IDS),
    },
    RuleInfo {
        rule: Rule::DuplicateUse,
        name: "duplicate_use",
        doc: "two tool uses of the prompt share an id",
        anthropic: rejected(TOOLS),
        openai: WARNING,
    },
    RuleInfo {
        rule: Rule::FirstNotUser,
        name: "first_not_user",
        doc: "the first message is not from the user",
        anthropic: rejected(MESSAGES),
        openai: NONE,
    },
    RuleInfo {
        rule: Rule::EmptyContent,
        name: "empty_content",
        doc: "a prompt without messages, or a message without blocks; with OpenAI, also one that \
              only thinks",
        anthropic: rejected(MESSAGES),
        openai: rejected(CHAT),
    },
    RuleInfo {
        rule: Rule::EmptyText,
        name: "empty_text",
        doc: "a text block is empty or only white space (an empty tool result is allowed)",
        anthropic: rejected(MESSAGES),
        openai: NONE,
    },
    RuleInfo {
        rule: Rule::ThinkingEdited,
        name: "thinking_edited",
        doc: "the words of a thinking block were changed, and its signature no longer fits",
        anthropic: rejected(THINKING),
        openai: NONE,
    },
    RuleInfo {
        rule: Rule::Prefill,
        name: "prefill",
        doc: "the prompt ends with the assistant: older models continue it, newer ones refuse it",
        anthropic: warning(MESSAGES),
        openai: NONE,
    },
    RuleInfo {
        rule: Rule::UserMessageAltered,
        name: "user_message_altered",
        doc: "what the user said last is not in the prompt word for word; tool results and text \
              the product injects are not what the user said",
        anthropic: WARNING,
        openai: WARNING,
    },
    RuleInfo {
        rule: Rule::OverlappingSummaries,
        name: "overlapping_summaries",
        doc: "two summaries stand for the same message",
        anthropic: WARNING,
        openai: WARNING,
    },
    RuleInfo {
        rule: Rule::NotASummary,
        name: "not_a_summary",
        doc: "a summary is only a question, or shares no identifier with the messages it stands \
              for (not decided where these have fewer than 20)",
        anthropic: WARNING,
        openai: WARNING,
    },
    RuleInfo {
        rule: Rule::NotSmaller,
        name: "not_smaller",
        doc: "a patch took something out, and the messages did not get smaller",
        anthropic: WARNING,
        openai: WARNING,
    },
];

impl Rule {
    /// What is to be known about it.
    pub fn info(self) -> RuleInfo {
        RULES[self as usize]
    }

    /// Its name in records and reports.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// How bad it is to break it; none where the provider takes it.
    pub fn level(self, provider: Provider) -> Option<Level> {
        self.info().verdict(provider).level
    }
}

impl RuleInfo {
    /// What a provider makes of it.
    pub fn verdict(&self, provider: Provider) -> Verdict {
        match provider {
            Provider::Anthropic => self.anthropic,
            Provider::OpenAi => self.openai,
        }
    }
}

/// The rules as the Markdown of `docs/validity.md`.
pub fn rules_as_markdown() -> String {
    let mut text = "# What makes a prompt invalid\n\n\
        Every prompt that a strategy would send is checked against the rules below. `rejected`: the \
        provider documents an\nerror. `warning`: it takes the prompt, but something is off. `–`: no \
        finding. What the full history breaks at the same\ncall belongs to the session and is \
        subtracted. A scenario says `provider = \"openai\"` to have its prompts checked by OpenAI's\n\
        levels; the default is `anthropic`.\n\n\
        Anthropic combines consecutive messages of one role into one turn. OpenAI does not, and has \
        each tool result as a message\nof its own: the results of one message come before whatever \
        else it says.\n\n\
        | rule | what breaks it | Anthropic | OpenAI |\n|---|---|---|---|\n"
        .to_owned();
    let mut sources: Vec<&str> = Vec::new();
    for info in &RULES {
        let mut cells = Vec::new();
        for provider in Provider::ALL {
            let verdict = info.verdict(provider);
            let level = match verdict.level {
                Some(Level::Rejected) => "rejected",
                Some(Level::Warning) => "warning",
                None => "–",
            };
            cells.push(match verdict.documented {
                Some(source) => {
                    let known = sources.iter().position(|other| *other == source);
                    let number = known.unwrap_or_else(|| {
                        sources.push(source);
                        sources.len() - 1
                    });
                    format!("{level} [{}]", number + 1)
                }
                None => level.to_owned(),
            });
        }
        let cells = cells.join(" | ");
        let _ = writeln!(text, "| `{}` | {} | {cells} |", info.name, info.doc);
    }
    text.push_str("\nSources:\n\n");
    for (at, source) in sources.iter().enumerate() {
        let _ = writeln!(text, "{}. {source}", at + 1);
    }
    text
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}
