//! Counts tool results that were altered before the first call that would have shown them, and
//! turns and sub-agents that a full window would have blocked.

use super::prelude::*;
use super::{CallView, Observer};
use crate::record::UnseenResults;
use crate::session::ToolClass;
use crate::window::{WarningFrom, Window};

/// The share of the effective window from which on Claude Code's collapse starts no sub-agent. It is
/// what counts where a strategy has no line of its own, so that strategies can be compared.
pub const AGENTS_BLOCKED_AT: f64 = 0.95;

/// Follows the messages that no call has shown yet.
#[derive(Debug)]
pub struct LostBeforeRead {
    window: Window,
    /// The share of the effective window from which on no sub-agent is started.
    agents_blocked_at: f64,
    /// Messages appended since the last call, by index: every version of each, the original
    /// included; `None` is a version that was removed. The last version is the current one.
    waiting: BTreeMap<usize, Versions>,
    /// Size of all messages, so far.
    messages: Size,
    /// The largest size of the messages at which something was typed since the last call.
    typed_at: Option<Size>,
    found: UnseenResults,
    blocked: Vec<usize>,
    blocked_agents: Vec<usize>,
}

type Versions = Vec<Option<Arc<Message>>>;

impl LostBeforeRead {
    /// Watches a strategy in this window, which starts no sub-agent from that share of it on.
    pub fn new(window: Window, agents_blocked_at: f64) -> Self {
        Self {
            window,
            agents_blocked_at,
            waiting: BTreeMap::new(),
            messages: Size::default(),
            typed_at: None,
            found: UnseenResults::default(),
            blocked: Vec::new(),
            blocked_agents: Vec::new(),
        }
    }

    /// Compares the current version of a message with the original.
    fn compare(&mut self, original: &Message, versions: &Versions) {
        let now = versions.last().and_then(Option::as_deref);
        for (block, content) in original.content().iter().enumerate() {
            if !matches!(content, ContentBlock::ToolResult(_)) {
                continue;
            }
            self.found.results += 1;
            let was = &original.model_text()[block];
            let is = now.and_then(|now| now.model_text().get(block));
            if is == Some(was) {
                continue;
            }
            self.found.altered += 1;
            // The file of an offloaded result is named by the hash of its content.
            let path = format!("{}.txt", ContentHash::of(was.as_bytes()).hex(12));
            self.found.reachable += u64::from(is.is_some_and(|is| is.contains(&path)));
            let known = versions.iter().flatten();
            let mut texts = known.filter_map(|version| version.model_text().get(block));
            self.found.saved += u64::from(texts.any(|text| text.contains(&path)));
        }
    }
}

impl Observer for LostBeforeRead {
    fn appended(&mut self, entry: &Entry) {
        if entry.message.has_tag(Tag::TypedUser) {
            self.typed_at = Some(self.messages);
        }
        self.messages += entry.size();
        if let Some(at) = entry.origin.message() {
            self.waiting.insert(at, vec![Some(entry.message.clone())]);
        }
    }

    fn patched(&mut self, applied: &Applied) {
        self.messages = applied.change.after;
        let removed = applied.change.removed.iter().map(|entry| (entry, None));
        let written = applied.written().map(|entry| (entry, Some(entry.message.clone())));
        for (entry, version) in removed.chain(written) {
            let at = entry.origin.message();
            if let Some(versions) = at.and_then(|at| self.waiting.get_mut(&at)) {
                versions.push(version);
            }
        }
    }

    fn called(&mut self, view: &CallView<'_>) {
        // An earlier session already showed the messages that a resumed one was loaded with.
        let waiting = self.waiting.split_off(&view.session.loaded());
        self.waiting.clear();
        for (at, waiting) in waiting {
            self.compare(view.session.message(at), &waiting);
        }
        let blocking = self.window.lines(WarningFrom::AutoCompact).blocking;
        if let Some(messages) = self.typed_at.take()
            && view.scale.prompt(view.fixed + messages) >= blocking
        {
            self.blocked.push(view.call);
        }
        let prompt = view.prompt();
        let mut uses = view.response.tool_uses();
        if prompt >= self.window.effective().fraction(self.agents_blocked_at)
            && uses.any(|(_, tool)| tool.class == ToolClass::Agent)
        {
            self.blocked_agents.push(view.call);
        }
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        record.unseen = self.found;
        record.blocked_turns = self.blocked;
        record.blocked_agents = self.blocked_agents;
    }
}
