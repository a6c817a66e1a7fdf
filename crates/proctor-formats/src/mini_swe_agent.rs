//! mini-swe-agent keeps one run per file, a `.traj.json`: an object with `info` and `messages`, or,
//! in the oldest version, the messages alone.
//!
//! Messages have the shape of chat messages, with what the agent noted beside them (`extra`: the
//! API's answer, its time and cost); where the agent spoke to the responses API, they are its items
//! and whole responses. Only the task is typed. Where the agent was given no tools, actions are in
//! the model's text, one fenced block in each, and what came of them in messages of the user's
//! role: they become tool uses and their results.

use super::prelude::*;

const SHAPE: ConversationShape = ConversationShape::of_messages("messages");

/// The oldest version's report of a command's result.
const OBSERVED: &str = "<returncode>";

pub(super) const IMPORTER: Importer = Importer::new("mini-swe-agent", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    match head.first() {
        Some(Value::Array(messages)) => messages.iter().any(|message| {
            let content = message.get("content").and_then(Value::as_str);
            content.is_some_and(|text| text.trim_start().starts_with(OBSERVED))
        }),
        _ => head.is("trajectory_format^mini-swe-agent | messages/0/extra | messages/1/extra | \
             info/mini_version,info/model_stats,info/config !trajectory !history"),
    }
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, |mut conversation, assembler| {
        let info = conversation.around.take_object("info");
        if info.is_some() {
            assembler.skip("info");
        }
        let name = info.unwrap_or_default().inner("config").inner("model").take_text("model_name");
        conversation.around.take("trajectory_format");
        openai_chat::read(conversation, ChatDialect::MiniSweAgent, assembler);
        assembler.header.model = name.or(assembler.header.model.take());
    })
}
