//! tau-bench writes all runs of an evaluation in one list: each has its task, its reward and its
//! `traj`, the messages of the chat API.
//!
//! Ids of calls recur from run to run; each run is a session of its own.

use super::prelude::*;

const SHAPE: ConversationShape = ConversationShape::of_messages("traj");

/// The shapes of a run: a long `info` may come before the messages.
const SHAPES: &str = "task_id traj | task_id reward info";

pub(super) const IMPORTER: Importer = Importer::new("tau-bench", Detect::Item(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, |conversation, assembler| {
        openai_chat::read(conversation, ChatDialect::Api, assembler);
    })
}
