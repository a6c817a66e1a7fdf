//! Makes the situation that a strategy gets before each call.

use std::sync::Arc;

use super::{Cell, StrategyInWindow};
use crate::session::{Message, Tag};
use crate::strategy::situation::Situation;
use crate::units::{Timestamp, Tokens, Usage};
use crate::window::Window;

impl Cell<'_> {
    pub(super) fn situation(
        &self,
        call: usize,
        next: usize,
        before: usize,
        last_usage: Option<Usage>,
        arranged: &StrategyInWindow<'_>,
    ) -> Situation {
        let prepared = self.prepared;
        let session = &prepared.session;
        let messages = session.messages();
        let last = next.checked_sub(1).map(|last| &messages[last]);
        let tool_requests = last.map_or_else(Vec::new, |last| tools_of(last));
        // A compaction before message `at` falls due at the first call that follows it.
        let compactions = &prepared.compactions;
        let due = compactions.partition_point(|compaction| compaction.at <= before);
        let due = due.checked_sub(1).map(|last| &compactions[last]);
        let due = due.filter(|compaction| compaction.at >= next);
        let last = next.checked_sub(1);
        let new = &messages[last.unwrap_or(0)..before];
        let window = match arranged {
            Some((_, window)) => *window,
            None => Window::new(Tokens(u64::MAX)),
        };
        let typed_now = typed(&messages[next..before]);
        Situation {
            call,
            turn: self.turns + typed_now,
            has_typed: typed_now > 0,
            lot: prepared.lot,
            now: time_of_request(&messages[next..before]),
            window,
            product_window: prepared.product_window(call),
            system: session.system().cloned(),
            tools: prepared.tools.clone(),
            fixed: prepared.fixed,
            scale: self.scale,
            last_usage,
            last_messages: self.last_messages,
            appended: self.appended,
            past_reasoning: self.reasoning.past,
            last_answer: last.and_then(|last| messages[last].details.timestamp),
            phase_ended: new.iter().any(|message| message.has_tag(Tag::PhaseEnd)),
            was_asked: due.is_some_and(|compaction| compaction.is_manual()),
            compact_hint: new
                .iter()
                .rev()
                .find_map(|message| message.details.compact_hint.clone()),
            tool_requests,
            overflow: None,
            recorded: due.cloned(),
            notes: session.resumed().and_then(|resumed| resumed.notes.clone()),
            counts: prepared.counts.clone(),
        }
    }
}

/// How many of the messages a user typed.
pub(crate) fn typed(messages: &[Arc<Message>]) -> usize {
    let messages = messages.iter();
    messages
        .filter(|message| message.has_tag(Tag::TypedUser))
        .count()
}

/// Names of the tools that a response asks for.
pub(crate) fn tools_of(response: &Message) -> Vec<Arc<str>> {
    let tools = response.tool_uses();
    tools.map(|(_, tool)| tool.name.clone()).collect()
}

/// The newest time in what came in for a call: when its request was sent.
fn time_of_request(incoming: &[Arc<Message>]) -> Option<Timestamp> {
    incoming
        .iter()
        .filter_map(|message| message.details.timestamp)
        .max()
}
