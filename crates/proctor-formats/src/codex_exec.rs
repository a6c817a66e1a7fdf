//! `codex exec --json` writes a run of Codex to its standard output, as events.
//!
//! Rules of this format, beside those every importer shares:
//! - An item is a message, a thought or a tool use with its result. Which items were of one call is
//!   not recorded: an item that begins when all uses before it are answered begins a call, and so does
//!   a message or thought behind a result, though a command may still run.
//! - Tools have the names of their items: those that the model called are not recorded. Neither is
//!   what the user asked, what a patch said, nor what a search found.
//! - Usage is that of a turn, which may be many calls, and of the turns before it. It is counted and
//!   given to none of them.
//! - Items of the first versions have their type under `item_type`.
//!
//! Source: openai/codex, `codex-rs/exec/src/exec_events.rs` at 08a1f30ca2.

use super::open_call::OpenCall;
use super::prelude::*;

/// The shapes of events.
const SHAPES: &str =
    "type=thread.started thread_id | type=item.started,item.updated,item.completed item/id";

pub(super) const IMPORTER: Importer = Importer::new("codex-exec", Detect::Any(20, SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let threads =
        file.sessions(source, |raw| of_type(raw, "thread.started")?.take_text("thread_id"))?;
    sessions_of(threads.into_iter().map(conversation), source, file)
}

/// The conversation of one thread's events.
fn conversation(events: Vec<&RawValue>) -> Assembler {
    let mut thread = Thread::default();
    for raw in events {
        thread.event(Object::read(raw).unwrap_or_default(), raw);
    }
    thread.call.ends(&mut thread.assembler);
    thread.assembler
}

#[derive(Default)]
struct Thread {
    assembler: Assembler,
    call: OpenCall,
    plans: usize,
}

impl Thread {
    fn event(&mut self, mut event: Object<'_>, raw: &RawValue) {
        let kind = event.take_type();
        let item = event.take("item");
        match (&*kind, item.and_then(Object::read), item) {
            ("item.started" | "item.updated" | "item.completed", Some(item), Some(raw)) => {
                self.item(&kind, item, raw);
            }
            ("turn.started", ..) => {
                self.call.ends(&mut self.assembler);
                self.assembler.warn("what the user asked is not recorded");
            }
            ("turn.completed", ..) => {
                self.call.ends(&mut self.assembler);
                if event.has("usage") {
                    self.assembler.skip("usage of a whole turn");
                }
            }
            ("thread.started" | "turn.failed" | "item.plan.delta" | "error", ..) => {
                self.assembler.skip(&kind);
            }
            _ => {
                self.call.ends(&mut self.assembler);
                self.assembler.hear_unknown("event", &kind, raw, None);
            }
        }
    }

    fn item(&mut self, event: &str, mut item: Object<'_>, raw: &RawValue) {
        let named = item.first_text(&["type", "item_type"]);
        let kind = named.as_deref().unwrap_or("untyped");
        let done = event == "item.completed";
        let read = match kind {
            "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call" => {
                return self.tool(event, kind, item, raw);
            }
            // A list is there once more when the turn ends.
            "todo_list" if done && self.plans > 0 => return,
            "todo_list" => {
                let id = numbered("todo_list", &mut self.plans);
                let plan = input(item.take("items"));
                let block = ContentBlock::tool_use(id.clone(), kind.into(), plan);
                self.call.says(block, &mut self.assembler);
                return self.call.answers(id, Vec::new(), false);
            }
            // What is not done is written again when it is.
            _ if !done => return self.assembler.skip("item in progress"),
            "error" => return self.assembler.skip("item error"),
            "agent_message" | "assistant_message" | "plan" => {
                item.take_text("text").map(ContentBlock::Text)
            }
            "reasoning" => item.take_text("text").map(|text| ContentBlock::thinking(text, None)),
            // The provider ran it itself.
            "web_search" => Some(content::kept(kind, raw)),
            _ => None,
        };
        let block = read.unwrap_or_else(|| self.assembler.unread_part("item", kind, raw));
        self.call.says(block, &mut self.assembler);
    }

    /// A tool use, when it begins and when it ends.
    fn tool(&mut self, event: &str, kind: &str, mut item: Object<'_>, raw: &RawValue) {
        let Some(id) = item.take_text("id") else {
            let kept = self.assembler.unread_part("item", kind, raw);
            return self.call.says(kept, &mut self.assembler);
        };
        let status = item.take_text("status");
        let result = match kind {
            "command_execution" => item.take("aggregated_output"),
            "mcp_tool_call" => item.inner("result").take("content"),
            _ => item.take("agents_states"),
        };
        let exit = item.take_as::<i64>("exit_code");
        let error = item.inner("error").take("message");
        if !self.call.waits_for(&id) {
            let server = item.take_text("server").zip(item.take_text("tool"));
            let name = server.map_or_else(
                || kind.into(),
                |(server, tool)| format!("mcp__{server}__{tool}").into(),
            );
            let arguments = match kind {
                "mcp_tool_call" => input(item.take("arguments")),
                _ => JsonText::parse(&json_object(item.into_entries()))
                    .unwrap_or_else(|_| input(None)),
            };
            let block = ContentBlock::tool_use(id.clone(), name, arguments);
            self.call.says(block, &mut self.assembler);
        }
        if event == "item.completed" {
            let failed = matches!(status.as_deref(), Some("failed" | "declined"))
                || error.is_some()
                || exit.is_some_and(|exit| exit != 0);
            let source = &mut self.assembler.source;
            let content = error.or(result).map(|raw| content::of_result(raw, source));
            self.call.answers(id, content.unwrap_or_default(), failed);
        }
    }
}
