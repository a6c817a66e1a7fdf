//! tau-bench writes all runs of an evaluation in one list: each has its task, its reward and its
//! `traj`, the messages of the chat API.
//!
//! Ids of calls recur from run to run; each run is a session of its own.

use super::prelude::*;

const SHAPE: Shape = Shape::of_messages("traj");

pub(super) const IMPORTER: Importer = Importer::new("tau-bench", detect, import);

fn detect(head: &Head) -> bool {
    // A long `info` may come before the messages.
    head.item_is("task_id traj | task_id reward info")
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, &|conversation, assembler| {
        openai_chat::read(conversation, Dialect::Api, assembler);
    })
}
