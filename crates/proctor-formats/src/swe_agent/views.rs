//! Reads the prompt of each of SWE-agent's calls, if the file keeps it: the history with old
//! observations masked.
//!
//! Step i stores the prompt of its own call as `query`; earlier versions stored the prompt of the
//! next call as `messages`. Where a view is not what was seen before plus what was said since, the
//! product changed its context there: that is a compaction.

use crate::prelude::*;

/// The stored steps of one run.
#[derive(Default)]
pub(super) struct Steps(Vec<StoredStep>);

struct StoredStep {
    /// The model's text in it.
    response: Text,
    /// The prompt of its call: a list of messages.
    view: Option<Box<RawValue>>,
}

impl Steps {
    /// Reads the steps of a run; their defects do not concern the conversation.
    pub(super) fn read(raw: &RawValue) -> Self {
        let mut steps = Vec::new();
        let mut shown_next = None;
        for raw in items(raw).unwrap_or_default() {
            let mut step = Object::read(raw).unwrap_or_default();
            // A value that is no list says nothing.
            let [own, next] = ["query", "messages"]
                .map(|key| step.take(key).filter(|raw| raw.get().starts_with('[')));
            let earlier = std::mem::replace(&mut shown_next, next);
            steps.push(StoredStep {
                response: step.take_text("response"),
                view: own.or(earlier).map(ToOwned::to_owned),
            });
        }
        Self(steps)
    }

    /// The compactions that the views show, of a session without any.
    ///
    /// A step whose answer was refused and asked for again is in no history: where there are more
    /// steps than calls, the model's texts distinguish them.
    pub(super) fn compactions(self, session: &Session) -> Vec<RecordedCompaction> {
        let calls = session.calls();
        let even = self.0.len() == calls.len();
        let mut steps = self.0.iter();
        let mut compactions: Vec<RecordedCompaction> = Vec::new();
        for &at in calls {
            let message = session.message(at);
            let place = steps.clone().position(|step: &StoredStep| {
                even || step.response.as_deref().is_some_and(|response| is_said(response, message))
            });
            let step = place.and_then(|skipped| steps.nth(skipped));
            let view = step.and_then(|step| step.view.as_deref()).map(view_of).unwrap_or_default();
            let shown = kept_context::joined(pieces_of(&view, &session.messages()[..at]));
            let context = kept_context::context(&compactions, at).map(kept_context::joined);
            if view.is_empty() || context.as_ref() == Some(&shown) {
                continue;
            }
            compactions.push(RecordedCompaction {
                at,
                trigger: Some("history processors".into()),
                pre_tokens: None,
                usage: None,
                after: CompactedTo::Replaced(shown),
            });
        }
        compactions
    }
}

/// The messages of a prompt, made as those of the history are.
fn view_of(raw: &RawValue) -> Vec<Arc<Message>> {
    let conversation =
        Conversation { messages: items(raw).unwrap_or_default(), ..Conversation::default() };
    let mut assembler = Assembler::default();
    openai_chat::read(conversation, ChatDialect::SweAgent, &mut assembler);
    assembler.messages()
}

/// Whether a response is what the message says: all of it, or a text and an action cut out of it.
fn is_said(response: &str, message: &Message) -> bool {
    let said = joined_texts(message.content());
    let (response, said) = (response.trim(), said.trim());
    response == said
        || response.starts_with(said)
            && message.tool_uses().any(|(_, action)| {
                let input = action.input.value();
                input["command"].as_str().is_some_and(|command| response.contains(command.trim()))
            })
}

/// A view in terms of the history: the messages that it keeps, edits and adds.
fn pieces_of(view: &[Arc<Message>], history: &[Arc<Message>]) -> Vec<Recorded> {
    let mut pieces = Vec::new();
    let mut next = 0;
    for message in view {
        let rest = history.iter().enumerate().skip(next);
        let same = rest.clone().find(|(_, own)| is_same(own, message));
        let found = same.or_else(|| rest.clone().find(|(_, own)| is_edited(own, message)));
        let Some((at, own)) = found else {
            pieces.push(Recorded::Written(message.clone()));
            continue;
        };
        next = at + 1;
        let blocks = own.content().iter().zip(message.content()).enumerate();
        let changed = blocks.filter(|(_, (own, shown))| own != shown);
        let before = pieces.len();
        pieces.extend(changed.map(|(block, _)| Recorded::Edited {
            message: at,
            block,
            text: message.model_text()[block].clone(),
        }));
        if pieces.len() == before {
            Recorded::keep(at, &mut pieces);
        }
    }
    pieces
}

/// Whether two messages say the same.
fn is_same(one: &Message, two: &Message) -> bool {
    one.role() == two.role() && one.content() == two.content()
}

/// Whether a message is another one with the texts of the user's and of results replaced.
fn is_edited(own: &Message, shown: &Message) -> bool {
    let mut pairs = own.content().iter().zip(shown.content());
    own.role() == Role::User
        && shown.role() == Role::User
        && own.content().len() == shown.content().len()
        && pairs.all(|pair| match pair {
            (ContentBlock::ToolResult(own), ContentBlock::ToolResult(shown)) => {
                own.tool_use_id == shown.tool_use_id
            }
            (ContentBlock::Text(_), ContentBlock::Text(_)) => true,
            (own, shown) => own == shown,
        })
}
