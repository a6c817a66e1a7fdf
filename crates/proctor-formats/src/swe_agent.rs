//! SWE-agent keeps one run per file, a `.traj`: its `history` is the conversation, in the shape of
//! chat messages; `trajectory` repeats it step by step.
//!
//! Rules of this format, beside those every importer shares:
//! - A tool message names the calls it answers in a list.
//! - Where the agent was given no tools, actions are in the model's text, and their
//!   results in messages of the user's role, which are not typed. They become tool uses and their results,
//!   numbered in order; the text is cut where the action stood.
//! - Demonstrations are part of the prompt; they are not typed either.
//! - Where the steps store what the model was shown, the history without old observations, that is
//!   what the product's compaction left: `recorded` replays it.

use super::prelude::*;
use views::Steps;

mod views;

const SHAPE: ConversationShape = ConversationShape::of_messages("history");

/// The shapes of a file. The first step may be cut, and the history begins later. The model and the patch may fill all
/// that is seen.
const SHAPES: &str = "trajectory/0/action,trajectory/0/observation,trajectory/0/response | \
    history/0/role history/0/agent,history/0/message_type | \
    attempts/0/trajectory/0/action,attempts/0/trajectory/0/observation,attempts/0/trajectory/0/response | \
    attempts/0/history/0/role attempts/0/history/0/agent,attempts/0/history/0/message_type | \
    replay_config info/model_stats";

pub(super) const IMPORTER: Importer = Importer::new("swe-agent", Detect::First(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut steps = Vec::new();
    let mut runs = conversations::sessions(SHAPE, file, source, |mut conversation, assembler| {
        let run = conversation.around.take("trajectory");
        if run.is_some() {
            assembler.skip("key `trajectory`");
        }
        openai_chat::read(conversation, ChatDialect::SweAgent, assembler);
        if !assembler.is_empty() {
            steps.push(run.map(Steps::read));
        }
    })?;
    if steps.len() == runs.len() {
        for (session, steps) in runs.iter_mut().zip(steps) {
            let compactions = steps.unwrap_or_default().compactions(session);
            if !compactions.is_empty() {
                session.parts_mut().compactions = compactions;
                *session = checked(std::mem::take(session.parts_mut()), &file.path)?;
            }
        }
    }
    Ok(runs)
}
