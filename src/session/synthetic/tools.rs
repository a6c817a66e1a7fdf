//! The system prompt and the tools of the simulated agent.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::session::ground_truth::ArtifactVerb;
use crate::session::{JsonText, ToolClass, ToolSchema};

/// A tool of the simulated agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Read,
    Grep,
    Glob,
    Bash,
    Edit,
    Write,
    TodoWrite,
    WebFetch,
    Compact,
    Snip,
    FindCustomer,
    ListOrders,
    GetOrder,
    ReadPolicy,
    ReadHistory,
    ChangeOrder,
    IssueRefund,
    AddNote,
    SendMessage,
    CountCases,
}

impl Tool {
    const REVIEW: [Self; 9] = [
        Self::Read,
        Self::Grep,
        Self::Glob,
        Self::Bash,
        Self::Edit,
        Self::Write,
        Self::TodoWrite,
        Self::WebFetch,
        Self::Compact,
    ];

    const DESK: [Self; 13] = [
        Self::FindCustomer,
        Self::ListOrders,
        Self::GetOrder,
        Self::ReadPolicy,
        Self::ReadHistory,
        Self::ChangeOrder,
        Self::IssueRefund,
        Self::AddNote,
        Self::SendMessage,
        Self::CountCases,
        Self::TodoWrite,
        Self::Compact,
        Self::Snip,
    ];

    /// The name the model uses, and the class.
    pub(crate) fn name(self) -> (&'static str, ToolClass) {
        match self {
            Self::Read => ("Read", ToolClass::Read),
            Self::Grep => ("Grep", ToolClass::Grep),
            Self::Glob => ("Glob", ToolClass::Glob),
            Self::Bash => ("Bash", ToolClass::Shell),
            Self::Edit => ("Edit", ToolClass::Edit),
            Self::Write => ("Write", ToolClass::Write),
            Self::TodoWrite => ("TodoWrite", ToolClass::Todo),
            Self::WebFetch => ("WebFetch", ToolClass::WebFetch),
            // The name that presets look for.
            Self::Compact => ("compact", ToolClass::Other),
            Self::Snip => ("snip", ToolClass::Other),
            Self::FindCustomer => ("find_customer", ToolClass::Other),
            Self::ListOrders => ("list_orders", ToolClass::Other),
            Self::GetOrder => ("get_order", ToolClass::Other),
            Self::ReadPolicy => ("read_policy", ToolClass::Other),
            Self::ReadHistory => ("read_history", ToolClass::Other),
            Self::ChangeOrder => ("change_order", ToolClass::Other),
            Self::IssueRefund => ("issue_refund", ToolClass::Other),
            Self::AddNote => ("add_note", ToolClass::Other),
            Self::SendMessage => ("send_message", ToolClass::Other),
            Self::CountCases => ("count_cases", ToolClass::Other),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Shows a file of the repository with line numbers. Paths are relative to the root. \
                 Give `offset` and `limit` for long files; without them the whole file is shown."
            }
            Self::Grep => {
                "Searches the repository for a pattern and prints `path:line:text`. `context` adds \
                 that many lines before and after each match."
            }
            Self::Glob => "Lists the paths that match a pattern, in alphabetical order.",
            Self::Bash => {
                "Runs a shell command in the root of the repository and returns what it printed. \
                 A command that exits with another status than 0 is reported as an error. Do not \
                 use it to read or change files: there are tools for that."
            }
            Self::Edit => {
                "Replaces one passage of a file. `old_string` must stand in the file exactly once; \
                 read the file first. Returns the changed lines with their numbers."
            }
            Self::Write => "Creates a file, or replaces one that exists. Returns its size.",
            Self::TodoWrite => {
                "Replaces the task list. Keep exactly one task in progress, and finish it before \
                 starting another."
            }
            Self::WebFetch => {
                "Fetches a page of documentation and returns it as Markdown. Only for public pages."
            }
            Self::Compact => {
                "Has the conversation so far replaced by a summary of it. `focus` says what the \
                 summary must keep. Use it between two pieces of work, when it has grown long."
            }
            Self::Snip => {
                "Marks the results of earlier tool uses as no longer needed. `results` lists the ids \
                 of these tool uses. What you may still want to quote does not belong here."
            }
            Self::FindCustomer => "Opens an account: since when, how many orders, which notes.",
            Self::ListOrders => "Lists the orders of an account with their totals and states.",
            Self::GetOrder => "Shows one order, and what happened to its parcel.",
            Self::ReadPolicy => "Prints the articles of the policy about one subject.",
            Self::ReadHistory => "Prints what happened in an account, the newest first.",
            Self::ChangeOrder => {
                "Changes the status of an order. What the carrier has is not changed by it."
            }
            Self::IssueRefund => "Pays back a part of an order's total, or all of it.",
            Self::AddNote => "Keeps a note in an account. Colleagues read it, customers do not.",
            Self::SendMessage => "Sends a message to a customer. It cannot be taken back.",
            Self::CountCases => "Counts the open cases about one subject, in all accounts.",
        }
    }

    /// What it does to the file it names, if it names one.
    pub(crate) fn verb(self) -> Option<ArtifactVerb> {
        match self {
            Self::Read => Some(ArtifactVerb::Read),
            Self::Edit => Some(ArtifactVerb::Modified),
            Self::Write => Some(ArtifactVerb::Created),
            Self::Grep
            | Self::Glob
            | Self::Bash
            | Self::TodoWrite
            | Self::WebFetch
            | Self::Compact
            | Self::Snip
            | Self::FindCustomer
            | Self::ListOrders
            | Self::GetOrder
            | Self::ReadPolicy
            | Self::ReadHistory
            | Self::ChangeOrder
            | Self::IssueRefund
            | Self::AddNote
            | Self::SendMessage
            | Self::CountCases => None,
        }
    }

    fn parameters(self) -> (Value, &'static [&'static str]) {
        let text = |about: &str| json!({"type": "string", "description": about});
        let number = |about: &str| json!({"type": "integer", "description": about});
        match self {
            Self::Read => (
                json!({
                    "file_path": text("the file, relative to the root"),
                    "offset": number("first line, counted from 1"),
                    "limit": number("how many lines"),
                }),
                &["file_path"],
            ),
            Self::Grep => (
                json!({
                    "pattern": text("what to look for"),
                    "path": text("only below this folder"),
                    "context": number("lines around each match"),
                }),
                &["pattern"],
            ),
            Self::Glob => (
                json!({"pattern": text("for example `src/**/*.ts`")}),
                &["pattern"],
            ),
            Self::Bash => (
                json!({
                    "command": text("the command"),
                    "description": text("what it does, in five to ten words"),
                    "timeout_seconds": number("when to give up; 120 by default"),
                }),
                &["command"],
            ),
            Self::Edit => (
                json!({
                    "file_path": text("the file, relative to the root"),
                    "old_string": text("the passage as it stands in the file"),
                    "new_string": text("what replaces it"),
                }),
                &["file_path", "old_string", "new_string"],
            ),
            Self::Write => (
                json!({
                    "file_path": text("the file, relative to the root"),
                    "content": text("the whole new content"),
                }),
                &["file_path", "content"],
            ),
            Self::TodoWrite => (
                json!({"todos": {"type": "array", "items": {"type": "object", "properties": {
                    "task": text("what is to be done"),
                    "status": {"type": "string", "enum": ["open", "in_progress", "done"]},
                }, "required": ["task", "status"]}}}),
                &["todos"],
            ),
            Self::WebFetch => (
                json!({"url": text("the address"), "prompt": text("what to look for")}),
                &["url"],
            ),
            Self::Compact => (json!({"focus": text("what must be kept")}), &["focus"]),
            Self::Snip => (
                json!({"results": {"type": "array", "items": {"type": "string"}}}),
                &["results"],
            ),
            Self::FindCustomer | Self::ListOrders | Self::ReadHistory => {
                (json!({"customer": text("the account")}), &["customer"])
            }
            Self::GetOrder => (json!({"order": text("the order")}), &["order"]),
            Self::ReadPolicy | Self::CountCases => {
                (json!({"subject": text("what it is about")}), &["subject"])
            }
            Self::ChangeOrder => (
                json!({"order": text("the order"), "status": text("its new status")}),
                &["order", "status"],
            ),
            Self::IssueRefund => (
                json!({"order": text("the order"), "amount": text("with two decimals")}),
                &["order", "amount"],
            ),
            Self::AddNote => (
                json!({"customer": text("the account"), "note": text("one sentence")}),
                &["customer", "note"],
            ),
            Self::SendMessage => (
                json!({"customer": text("the account"), "text": text("the whole message")}),
                &["customer", "text"],
            ),
        }
    }
}

/// The tools of the reviewing agent, as they are sent with every call.
pub(crate) fn schemas() -> Vec<ToolSchema> {
    definitions(&Tool::REVIEW)
}

/// These tools and `snip`.
pub(crate) fn schemas_with_snip() -> Vec<ToolSchema> {
    let mut tools = Tool::REVIEW.to_vec();
    tools.push(Tool::Snip);
    definitions(&tools)
}

/// The tools of an agent at a help desk.
pub(crate) fn schemas_of_desk() -> Vec<ToolSchema> {
    definitions(&Tool::DESK)
}

fn definitions(tools: &[Tool]) -> Vec<ToolSchema> {
    tools
        .iter()
        .map(|tool| {
            let (name, _) = tool.name();
            let (properties, required) = tool.parameters();
            ToolSchema {
                name: Arc::from(name),
                definition: JsonText::of(&json!({
                    "name": name,
                    "description": tool.description(),
                    "input_schema": {
                        "type": "object",
                        "properties": properties,
                        "required": required,
                    },
                })),
            }
        })
        .collect()
}

/// The system prompt of the reviewing agent.
pub(crate) const SYSTEM: &str = "\
You are a careful software engineer who reviews and repairs a repository together with its owner. \
The repository holds services in Rust (`crates/`), Python (`services/`) and TypeScript (`web/`).

How you work:
- Read before you judge. Quote file and line when you report something.
- Make the smallest change that removes the cause, not the symptom. Leave unrelated code alone.
- After each change, run the tests of the module you touched and say what came out.
- When a command fails, read its output to the end before you try again.
- Use several tools at once where the calls do not depend on each other.
- Keep the task list up to date when a request has more than two parts.

How you speak:
- One to four sentences before you use a tool, in plain words.
- End each piece of work with a short report: what was wrong, what you changed, what is open.
- If you are not certain, say what you would need to see in order to be.

What the owner tells you about the way of working applies to the whole session, not only to the \
current request. Ask if two of these wishes contradict each other.

The tools act on a checkout that belongs to you alone. Nothing you do there is published until the \
owner says so. Paths are relative to the root of the repository.";
