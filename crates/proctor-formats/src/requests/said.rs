//! Recognises summaries and the product's own acknowledgements in logged messages.

use crate::gemini_cli::ACKS;
use crate::prelude::*;
use proctor_sessions::Tags;

/// A prompt may hold a shorter answer by chance, and two conversations may have the same.
pub(super) const LONG_CHARS: usize = 40;

/// Tags messages that the product wrote for the model as synthetic.
pub(super) fn tag_acknowledgements(session: &mut Session) {
    for message in &mut session.parts_mut().messages {
        if message.role() == Role::Assistant
            && message.details.usage.is_none()
            && ACKS.contains(&&*text(message))
        {
            Arc::make_mut(message).tags = Tags::from_iter([Tag::Synthetic]);
        }
    }
}

/// A message that the product wrote; a summary if it holds one that was asked for apart, or is the
/// user's and holds an answer of the model.
pub(super) fn written(own: &Arc<Message>, answers: &[Arc<str>], asked: &[Arc<str>]) -> Recorded {
    let mut message = own.clone();
    if holds_answer(own, answers) || asked.iter().any(|value| text(own).contains(&**value)) {
        tag_as_summary(&mut message);
    }
    Recorded::Written(message)
}

/// Tags a message of the user's as the summary that it is.
pub(super) fn tag_as_summary(message: &mut Arc<Message>) {
    let tags = &mut Arc::make_mut(message).tags;
    tags.set(Tag::TypedUser, false);
    tags.set(Tag::CompactSummary, true);
}

/// Whether a message of the user's holds an answer of the model.
pub(super) fn holds_answer(message: &Message, answers: &[Arc<str>]) -> bool {
    if message.role() != Role::User || answers.is_empty() {
        return false;
    }
    let said = text(message);
    answers.iter().any(|answer| said.contains(&**answer))
}

/// Whether the log says that a message is a summary, or it holds an answer of the model.
pub(super) fn sums_up(message: &Message, answers: &[Arc<str>]) -> bool {
    message.has_tag(Tag::CompactSummary) || holds_answer(message, answers)
}

/// The texts of an answer that a product may send back as a summary: all of it, or what it says between tags.
pub(super) fn summaries_in(answer: &Message) -> Vec<Arc<str>> {
    if answer.tool_uses().next().is_some() {
        return Vec::new();
    }
    let whole = text(answer);
    let mut texts = vec![whole.as_str()];
    let mut rest = whole.as_str();
    while let Some((_, opened)) = rest.split_once('<') {
        let element = opened.split_once('>').and_then(|(tag, inside)| {
            let (inner, behind) = inside.split_once(&format!("</{tag}>"))?;
            Some((inner.trim(), behind))
        });
        let (inner, behind) = element.unwrap_or(("", opened));
        texts.push(inner);
        rest = behind;
    }
    texts.retain(|text| text.chars().count() >= LONG_CHARS);
    texts.into_iter().map(Arc::from).collect()
}

/// The texts of a message.
pub(super) fn text(message: &Message) -> String {
    texts(message.content()).map(str::trim).collect::<Vec<&str>>().join("\n")
}

/// The texts of a message that are no notes of the client's.
pub(super) fn without_notes(message: &Message) -> Vec<&str> {
    texts(message.content()).map(str::trim).filter(|text| !Look::is_note(text)).collect()
}
