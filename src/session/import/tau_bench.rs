//! tau-bench writes all runs of an evaluation in one list: each has its task, its reward and its
//! `traj`, the messages of the chat API.
//!
//! Ids of calls recur from run to run; each run is a session of its own.

use super::conversations::{self, Shape};
use super::openai_chat::{self, Dialect};
use super::prelude::*;

/// Reads results of tau-bench.
#[derive(Debug, Clone, Copy)]
pub(super) struct TauBench;

const FORMAT: &str = "tau-bench";

const SHAPE: Shape = Shape::of_messages(FORMAT, "traj");

impl Importer for TauBench {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let is_run = |value: &Value| {
            let has = |key: &str| value.get(key).is_some();
            // A long `info` may stand before the messages.
            has("task_id") && (has("traj") || has("reward") && has("info"))
        };
        match sketch::values(head).first() {
            Some(Value::Array(runs)) => runs.first().is_some_and(is_run),
            Some(run) => is_run(run),
            None => false,
        }
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        conversations::sessions(SHAPE, path, input, |conversation, assembler| {
            openai_chat::read(conversation, Dialect::Api, assembler);
        })
    }
}
