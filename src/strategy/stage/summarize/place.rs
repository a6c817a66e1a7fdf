//! What takes the place of what was summarised.

use std::sync::Arc;

use super::select::Selected;
use crate::context::{Context, Entry, Origin};
use crate::session::{Message, Role, Tag, wire};
use crate::strategy::{Situation, Trigger};
use crate::units::ContentHash;

/// Where a summary is put, and what stands around it.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) role: Role,
    pub(super) prefix: String,
    pub(super) acknowledgement: String,
    /// A message marks where the summary begins; the trigger tells it what to say.
    pub(super) boundary: Option<Trigger>,
    /// Where transcripts are put, if they are kept.
    pub(super) folder: Option<String>,
}

/// What is known before the summary is there.
#[derive(Debug)]
pub(super) struct Prepared {
    before: Vec<Entry>,
    origin: Origin,
    after: Vec<Entry>,
    /// Why, in words.
    pub(super) reason: String,
    /// Texts that are put aside.
    pub(super) saved: Vec<(String, Arc<str>)>,
}

impl Placement {
    /// Everything but the summary: boundary, the user's messages; acknowledgement, protected
    /// results.
    pub(super) fn prepare(
        &self,
        context: &Context,
        selected: Selected,
        cx: &Situation,
    ) -> Prepared {
        let replaced = &context.entries()[selected.replaced];
        let mut reason = format!("a summary in place of {} messages", replaced.len());
        for (kept, what) in [
            (&selected.user_messages, "of the user"),
            (&selected.protected, "of calls and results"),
        ] {
            if !kept.is_empty() {
                reason = format!("{reason}, {} {what} kept", kept.len());
            }
        }
        let mut before = Vec::new();
        if let Some(trigger) = &self.boundary {
            before.push(boundary(trigger, context, replaced, cx));
        }
        before.extend(selected.user_messages);
        let mut after = Vec::new();
        if !self.acknowledgement.is_empty() {
            let message = Message::text(Role::Assistant, self.acknowledgement.as_str());
            after.push(Entry::new(Origin::Authored, Arc::new(message), &cx.counts));
        }
        after.extend(selected.protected);
        Prepared {
            before,
            origin: Origin::derived_from(replaced),
            after,
            reason,
            saved: self
                .folder
                .iter()
                .map(|to| transcript(to, context))
                .collect(),
        }
    }

    /// What stands in the place of what was summarised.
    pub(super) fn with_summary(
        &self,
        prepared: &mut Prepared,
        summary: &str,
        cx: &Situation,
    ) -> Vec<Entry> {
        let text = format!("{}{summary}", self.prefix);
        let message = Message::text(self.role, text).with_tags([Tag::CompactSummary]);
        let mut with = std::mem::take(&mut prepared.before);
        let origin = prepared.origin.clone();
        with.push(Entry::new(origin, Arc::new(message), &cx.counts));
        with.append(&mut prepared.after);
        with
    }
}

/// All messages as JSON lines, under a name made of their content.
fn transcript(folder: &str, context: &Context) -> (String, Arc<str>) {
    let entries = context.entries().iter();
    let lines: Vec<String> = entries
        .map(|entry| wire::anthropic_json(&entry.message))
        .collect();
    let text: Arc<str> = (lines.join("\n") + "\n").into();
    let name = ContentHash::of(text.as_bytes()).hex(12);
    (format!("{folder}/transcript_{name}.jsonl"), text)
}

/// A message that says what made the stage fire, how large the prompt was, how many messages are summarised, and which
/// message of the session came last before it.
pub(in crate::strategy::stage) fn boundary(
    trigger: &Trigger,
    context: &Context,
    replaced: &[Entry],
    cx: &Situation,
) -> Entry {
    let cause = if cx.overflow.is_some() {
        "overflow"
    } else if trigger.is_manual(cx) {
        "manual"
    } else {
        "auto"
    };
    let last = context
        .entries()
        .iter()
        .rev()
        .find_map(|entry| match &entry.origin {
            Origin::Verbatim(at) | Origin::Edited { message: at, .. } | Origin::Restored(at) => {
                Some(*at)
            }
            Origin::Derived(ranges) => ranges.last().map(|range| range.end - 1),
            Origin::Authored => None,
        });
    let link = last.map_or_else(String::new, |last| format!("; after message {last}"));
    let (tokens, messages) = (cx.prompt(context), replaced.len());
    let text = format!(
        "[Conversation compacted: {cause}; {tokens} tokens before; {messages} messages{link}]"
    );
    let tags = [Tag::CompactBoundary, Tag::Meta];
    let message = Message::text(Role::User, text).with_tags(tags);
    Entry::new(Origin::Authored, Arc::new(message), &cx.counts)
}
