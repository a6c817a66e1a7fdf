//! Puts the summary in the place of the messages that it summarises.

use super::select::SummarySelection;
use crate::session::wire;
use crate::strategy::Trigger;
use crate::strategy::stage::prelude::*;
use crate::units::ContentHash;

/// The place of a summary, and the text around it.
#[derive(Debug, Deserialize)]
pub(super) struct SummaryPlacement {
    role: Role,
    prefix: String,
    acknowledgement: String,
    continue_with: String,
    /// The first and the newest message that a user typed.
    #[serde(skip)]
    requests: Option<[Arc<str>; 2]>,
    /// Whether a message marks where the summary begins.
    boundary: bool,
    /// The trigger that the boundary names.
    #[serde(skip)]
    pub(super) when: Trigger,
    /// Whether transcripts are kept, and where they are put.
    transcript: bool,
    folder: String,
}

impl SummaryPlacement {
    /// Remembers what the user typed, where it is said again behind a summary.
    pub(super) fn take_note_of(&mut self, entry: &Entry) {
        if !self.continue_with.contains("_request}") || !entry.is_typed() {
            return;
        }
        let mut texts = entry.message.texts();
        let Some((_, text)) = texts.next() else {
            return;
        };
        let first = self.requests.take().map(|[first, _]| first);
        self.requests = Some([first.unwrap_or_else(|| text.clone()), text.clone()]);
    }

    /// The message behind the summary, in front of what stays.
    fn continuation(&self, kept: &[Entry]) -> Option<String> {
        let text = &self.continue_with;
        let says_last = text.contains("{last_request}");
        if text.is_empty() || says_last && kept.iter().any(Entry::is_typed) {
            return None;
        }
        let Some([first, last]) = &self.requests else {
            return (!text.contains("_request}")).then(|| text.clone());
        };
        Some(own_prompt::filled(text, ["{", "}"], |name, _| match name {
            "first_request" => Some(first),
            "last_request" => Some(last),
            _ => None,
        }))
    }

    /// Everything but the summary: boundary, the user's messages; acknowledgement, protected
    /// results. The patch follows once the summary is there.
    pub(super) fn prepare<'a>(
        &'a self,
        context: &Context,
        selected: SummarySelection,
        cx: &'a Situation,
    ) -> impl FnOnce(&str) -> Patch + Send + use<'a> {
        let entries = selected.replaced;
        let replaced = &context.entries()[entries.clone()];
        let mut reason = format!("a summary in place of {} messages", replaced.len());
        for (kept, what) in [
            (&selected.user_messages, "of the user"),
            (&selected.protected, "of calls and results"),
        ] {
            if !kept.is_empty() {
                reason = format!("{reason}, {} {what} kept", kept.len());
            }
        }
        let marker = self.boundary.then(|| boundary(&self.when, context, replaced, cx));
        let mut with: Vec<Entry> = marker.into_iter().chain(selected.user_messages).collect();
        let acknowledgement = Some(self.acknowledgement.clone()).filter(|text| !text.is_empty());
        let continuation = self.continuation(&context.entries()[entries.end..]);
        let texts = [(Role::Assistant, acknowledgement), (Role::User, continuation)];
        let said = texts.into_iter().filter_map(|(role, text)| {
            let message = Arc::new(Message::text(role, text?));
            Some(Entry::new(Origin::Authored, message, &cx.counts))
        });
        let mut after: Vec<Entry> = said.chain(selected.protected).collect();
        let origin = Origin::derived_from(replaced);
        let saved =
            self.transcript.then(|| transcript(&self.folder, context)).into_iter().collect();
        move |summary| {
            let text = format!("{}{summary}", self.prefix);
            let message = Message::text(self.role, text).with_tags([Tag::CompactSummary]);
            with.push(Entry::new(origin, Arc::new(message), &cx.counts));
            with.append(&mut after);
            Patch { edits: vec![Edit::replacing(entries, with)], reason, saved }
        }
    }
}

/// All messages as JSON lines, under a name made of their content.
fn transcript(folder: &str, context: &Context) -> (String, Arc<str>) {
    let entries = context.entries().iter();
    let lines: Vec<String> = entries.map(|entry| wire::anthropic_json(&entry.message)).collect();
    let text: Arc<str> = (lines.join("\n") + "\n").into();
    let name = ContentHash::of(text.as_bytes()).hex(12);
    (format!("{folder}/transcript_{name}.jsonl"), text)
}

/// A message that says what made the stage fire, how large the prompt was, how many messages are summarised, and which
/// message of the session came last before it.
pub(crate) fn boundary(
    trigger: &Trigger,
    context: &Context,
    replaced: &[Entry],
    cx: &Situation,
) -> Entry {
    let cause = if cx.overflow.is_some() {
        "overflow"
    } else if trigger.condition.is_manual(cx) {
        "manual"
    } else {
        "auto"
    };
    let last = context.entries().iter().rev().find_map(|entry| entry.origin.newest());
    let link = last.map_or_else(String::new, |last| format!("; after message {last}"));
    let (tokens, messages) = (cx.prompt(context), replaced.len());
    let text = format!(
        "[Conversation compacted: {cause}; {tokens} tokens before; {messages} messages{link}]"
    );
    let tags = [Tag::CompactBoundary, Tag::Meta];
    let message = Message::text(Role::User, text).with_tags(tags);
    Entry::new(Origin::Authored, Arc::new(message), &cx.counts)
}
