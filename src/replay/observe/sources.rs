//! Finds where a tool result can be read again: the file it was offloaded to, or the file it
//! showed; and the pointers of a context to either.

use super::prelude::*;
use crate::session::ToolUse;
use crate::strategy::files;

/// Digits of the hash in the name of a file in which a stage puts a text aside.
const DIGITS: usize = 12;

/// One tool result.
#[derive(Debug)]
pub(super) struct ResultSource {
    /// The message that holds it.
    pub(super) message: usize,
    /// The block of that message.
    pub(super) block: usize,
    /// The tool use that it answers.
    tool_use: Arc<str>,
    /// The hash under which a stage puts it aside.
    hash: String,
    /// Whether it is the content of a file.
    is_file: bool,
    /// The message that changed the file next.
    changed: Option<usize>,
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
        Self { session, tools, changes }
    }

    /// The tool result in a block of a message; `None` if there is none.
    pub(super) fn of(&self, message: usize, block: usize) -> Option<ResultSource> {
        let shown = self.session.messages().get(message)?;
        let (_, result) = shown.tool_results().find(|(at, _)| *at == block)?;
        let tool = self.tools.get(&*result.tool_use_id);
        let view = tool.and_then(|tool| files::view_of(tool));
        let changed = view.as_ref().and_then(|view| {
            self.changes.get(&view.path).into_iter().flatten().copied().find(|at| *at > message)
        });
        Some(ResultSource {
            message,
            block,
            tool_use: result.tool_use_id.clone(),
            hash: ContentHash::of(shown.model_text()[block].as_bytes()).hex(DIGITS),
            is_file: view.is_some(),
            changed,
        })
    }
}

/// How often a context points to tool results: by the tool uses that they answer, and by the names
/// of the files to which they were offloaded.
#[derive(Debug, Default)]
pub(super) struct Pointers {
    tool_uses: BTreeMap<Arc<str>, u32>,
    /// By hash; only texts that are not those of the session count.
    files: BTreeMap<String, u32>,
}

impl Pointers {
    pub(super) fn of(context: &Context) -> Self {
        let mut pointers = Self::default();
        for entry in context.entries() {
            pointers.count(entry, |count| *count += 1);
        }
        pointers
    }

    /// Changes the counts of what an entry points to.
    pub(super) fn count(&mut self, entry: &Entry, change: impl Fn(&mut u32)) {
        let texts = entry.message.model_text().iter();
        let blocks = entry.message.content().iter().zip(texts).enumerate();
        for (block, (content, text)) in blocks {
            if let ContentBlock::ToolUse(tool) = content {
                change(self.tool_uses.entry(tool.id.clone()).or_default());
            }
            if !entry.is_verbatim(block) {
                for hash in named_in(text) {
                    change(self.files.entry(hash.to_owned()).or_default());
                }
            }
        }
    }

    /// Whether a tool result can be read again before the message of index `before`: from the file
    /// it was offloaded to, or by its call from a file that has not changed since.
    pub(super) fn is_recoverable(&self, source: &ResultSource, before: usize) -> bool {
        self.files.get(&source.hash).is_some_and(|count| *count > 0)
            || (source.is_file
                && source.changed.is_none_or(|at| at >= before)
                && self.tool_uses.get(&source.tool_use).is_some_and(|count| *count > 0))
    }
}

/// The hashes of files that a text names: `<12 hexadecimal digits>.txt`, as stages write them.
fn named_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(".txt").filter_map(|(end, _)| {
        let hash = text.get(end.checked_sub(DIGITS)?..end)?;
        hash.chars().all(|c: char| matches!(c, '0'..='9' | 'a'..='f')).then_some(hash)
    })
}
