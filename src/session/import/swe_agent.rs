//! SWE-agent keeps one run per file, a `.traj`: its `history` is the conversation, in the shape of
//! chat messages; `trajectory` repeats it step by step.
//!
//! Rules of this format, beside those every importer shares:
//! - A tool message names the calls it answers in a list.
//! - Where the agent was given no tools, actions stand in the model's text, and what came of them
//!   in messages of the user's role, which nobody typed. They are kept as they are: such a session
//!   has no tool results that could be cleared.
//! - Demonstrations are part of the prompt; nobody typed them either.

use std::io::BufRead;
use std::path::Path;

use super::conversations::{self, Shape};
use super::lines::strip_bom;
use super::openai_chat::{self, Dialect};
use super::{ImportError, Importer};
use crate::session::Session;

/// Reads trajectories of SWE-agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SweAgent;

const FORMAT: &str = "swe-agent";

const SHAPE: Shape = Shape::of_messages(FORMAT, "history");

impl Importer for SweAgent {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let head = String::from_utf8_lossy(strip_bom(head));
        let head = head.trim_start();
        let rest = head.strip_prefix('{').unwrap_or_default().trim_start();
        let starts = ["\"environment\"", "\"trajectory\""];
        starts.iter().any(|key| rest.starts_with(key))
            && head.contains("\"trajectory\"")
            && ["\"observation\"", "\"action\"", "\"response\""]
                .iter()
                .any(|key| head.contains(key))
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        conversations::sessions(SHAPE, path, input, |conversation, assembler| {
            openai_chat::read(conversation, Dialect::SweAgent, assembler);
        })
    }
}
