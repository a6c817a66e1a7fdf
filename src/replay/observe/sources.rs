//! Where a tool result can be read again: the file it was put aside in, or the file it showed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::session::{Session, ToolUse};
use crate::strategy::files;
use crate::units::ContentHash;

/// Digits of the hash in the name of a file in which a stage puts a text aside.
pub(super) const DIGITS: usize = 12;

/// One tool result.
#[derive(Debug)]
pub(super) struct Source {
    /// The message that holds it.
    pub(super) message: usize,
    /// The tool use that it answers.
    pub(super) tool_use: Arc<str>,
    /// The hash under which a stage puts it aside.
    pub(super) hash: String,
    /// Whether it is the content of a file.
    pub(super) is_file: bool,
    /// The message that changed the file next.
    pub(super) changed: Option<usize>,
}

impl Source {
    /// Whether the file it showed is the same before the message of this index.
    pub(super) fn is_unchanged(&self, before: usize) -> bool {
        self.is_file && self.changed.is_none_or(|at| at >= before)
    }

    /// The name of the file in which a stage puts it aside.
    pub(super) fn saved_as(&self) -> String {
        format!("{}.txt", self.hash)
    }
}

/// All tool uses of a session, and which files they changed when.
#[derive(Debug)]
pub(super) struct Places<'a> {
    session: &'a Session,
    tools: BTreeMap<&'a str, &'a ToolUse>,
    changes: BTreeMap<String, Vec<usize>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        let mut tools: BTreeMap<&str, &ToolUse> = BTreeMap::new();
        let mut changes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, message) in session.messages().iter().enumerate() {
            for (_, tool) in message.tool_uses() {
                tools.insert(&tool.id, tool);
                let written = files::written_by(tool).map(|(path, _)| path);
                for path in files::changed_by(tool).into_iter().chain(written) {
                    changes.entry(path).or_default().push(at);
                }
            }
        }
        Self {
            session,
            tools,
            changes,
        }
    }

    /// The tool result in a block of a message; nothing where there is none.
    pub(super) fn of(&self, message: usize, block: usize) -> Option<Source> {
        let shown = self.session.messages().get(message)?;
        let mut results = shown.tool_results();
        let (_, result) = results.find(|(at, _)| *at == block)?;
        let tool = self.tools.get(&*result.tool_use_id);
        let view = tool.and_then(|tool| files::view_of(tool));
        let changed = view.as_ref().and_then(|view| {
            let later = self.changes.get(&view.path).into_iter().flatten();
            later.copied().find(|at| *at > message)
        });
        Some(Source {
            message,
            tool_use: result.tool_use_id.clone(),
            hash: ContentHash::of(shown.model_text()[block].as_bytes()).hex(DIGITS),
            is_file: view.is_some(),
            changed,
        })
    }
}

/// The hashes of files that a text names: `<12 hexadecimal digits>.txt`, as stages write them.
pub(super) fn named_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(".txt").filter_map(|(end, _)| {
        let hash = text.get(end.checked_sub(DIGITS)?..end)?;
        let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        hash.chars().all(is_hex).then_some(hash)
    })
}
