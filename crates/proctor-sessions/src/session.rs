//! One recorded session, and its parts.
//!
//! A [`Session`] is immutable once built, and every invariant is checked by [`Session::new`].
//! Code that holds one need not check again. The full history is always complete: a compaction
//! that the recorded product made is an event beside the messages, never one of them.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::compaction::{CompactedTo, Recorded, RecordedCompaction};
use crate::rendering::Rendering;
use crate::tokens::Block;
use crate::units::{Tokens, is_valid_id};
use crate::{
    ContentBlock, JsonText, MessageDetails, Source, Tag, Tags, Thinking, ToolResult, ToolUse,
};

/// One recorded conversation, complete.
///
/// Invariants, checked by [`Session::new`]:
/// - the id is valid (`units::is_valid_id`);
/// - there is at least one message, and no message is without content;
/// - tool uses and thinking are in assistant messages, tool results in user messages;
/// - a tool result holds only text, images and opaque blocks;
/// - each assistant message is one API call (unless the product wrote it: [`Tag::Synthetic`]), and
///   no two share an API-call id;
/// - compactions are ordered, and lie within the messages;
/// - a session that was resumed was resumed within its messages.
///
/// A tool result without a tool use, or a tool use that was never answered, is *not* an error: real
/// recordings have them. They are the session's own findings, and no strategy is blamed.
#[derive(Debug, Clone)]
pub struct Session {
    parts: SessionParts,
    calls: Vec<usize>,
}

/// The parts of a session; [`Session::new`] checks them.
#[derive(Debug, Clone, Default)]
pub struct SessionParts {
    /// Names the session in every table and file: file stem and 6 hex digits of its content.
    pub id: String,
    /// The system prompt, if it was recorded.
    pub system: Option<Arc<str>>,
    /// The tools the agent was given, if they were recorded.
    pub tools: Vec<ToolSchema>,
    /// The full history, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Compactions that the recorded product made, oldest first.
    pub compactions: Vec<RecordedCompaction>,
    /// The agent's model, as recorded.
    pub model: Option<String>,
    /// The model's context window, as recorded.
    pub context_window: Option<Tokens>,
    /// The format the session was read from, and what its importer could not use.
    pub source: Source,
    /// Set where the session goes on from an earlier one, whose calls are not made again.
    pub resumed: Option<ResumePoint>,
}

/// Where a session goes on from an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumePoint {
    /// The number of loaded messages; their calls were made before.
    pub at: usize,
    /// The notes that the earlier session left behind, for those who keep any. What they cover is
    /// not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Arc<str>>,
}

/// A tool that was offered to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSchema {
    /// The tool's name.
    pub name: Arc<str>,
    /// The whole definition as recorded: it is counted as part of every prompt.
    pub definition: JsonText,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the tools answering in the user's place.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name of the role, as in the APIs.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// New ids of calls by their own.
pub type CallIds = BTreeMap<Arc<str>, Arc<str>>;

/// One message of a conversation. Immutable; shared between the session and every context.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    role: Role,
    /// Tags that the importer or generator gave the message.
    pub tags: Tags,
    content: Box<[ContentBlock]>,
    /// `None` for a single block whose own text is what the model reads.
    rendering: Option<Box<Rendering>>,
    /// What the recording says of the message beside its content.
    pub details: MessageDetails,
}

impl Message {
    /// A message without timestamp, call, usage or tags.
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self {
            role,
            tags: Tags::default(),
            rendering: Rendering::of(&content),
            content: content.into(),
            details: MessageDetails::default(),
        }
    }

    /// A message of one text block.
    pub fn text(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self::new(role, vec![ContentBlock::Text(text.into())])
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The blocks, in order.
    pub fn content(&self) -> &[ContentBlock] {
        &self.content
    }

    /// The text that the model reads, block by block: the one rendering that is counted, hashed and
    /// searched. Same length as [`Message::content`].
    ///
    /// Text and thinking are themselves; a tool use is its name, a space and its arguments as
    /// recorded; a tool result is its parts joined by line feeds; an image is empty (it is counted
    /// by [`tokens::ImageRule`](crate::tokens::ImageRule)); an opaque block is its JSON,
    /// without the data of files in it (each page counts as an image).
    pub fn model_text(&self) -> &[Arc<str>] {
        if let Some(rendering) = &self.rendering {
            return &rendering.texts;
        }
        self.content.first().and_then(ContentBlock::own_text).map_or(&[], slice::from_ref)
    }

    /// The blocks as counters see them, in order.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let pictures = self.rendering.as_ref().map_or(&[][..], |rendering| &rendering.pictures);
        self.content.iter().zip(self.model_text()).enumerate().map(|(at, (content, text))| {
            content.counted_with(text, pictures.get(at).map_or(&[], Vec::as_slice))
        })
    }

    /// A message of these blocks in the place of this one: by the same speaker at the same time, with its
    /// tags, of its call, and billed as it was.
    #[must_use]
    pub fn with_content(&self, content: Vec<ContentBlock>) -> Self {
        let mut message = Self::new(self.role, content).with_tags(self.tags.iter());
        message.details.timestamp = self.details.timestamp;
        message.details.api_call.clone_from(&self.details.api_call);
        message.details.factor = self.details.factor;
        message
    }

    /// The message with its tags replaced.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = Tag>) -> Self {
        self.tags = tags.into_iter().collect();
        self
    }

    /// Whether the message carries the tag.
    pub fn has_tag(&self, tag: Tag) -> bool {
        self.tags.contains(tag)
    }

    /// The plain texts, each with the index of its block.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = (usize, &Arc<str>)> {
        self.content.iter().enumerate().filter_map(|(at, block)| match block {
            ContentBlock::Text(text) => Some((at, text)),
            _ => None,
        })
    }

    /// The tool uses, with the index of their block.
    pub fn tool_uses(&self) -> impl Iterator<Item = (usize, &ToolUse)> {
        self.content.iter().enumerate().filter_map(|(at, block)| Some((at, block.as_use()?)))
    }

    /// The tool results, with the index of their block.
    pub fn tool_results(&self) -> impl Iterator<Item = (usize, &ToolResult)> {
        self.content.iter().enumerate().filter_map(|(at, block)| Some((at, block.as_result()?)))
    }

    /// The same with other ids of its calls and results; `None` where these change nothing.
    pub fn with_call_ids(&self, ids: &CallIds) -> Option<Self> {
        self.content.iter().filter_map(ContentBlock::call_id).find(|id| ids.contains_key(*id))?;
        let mut content = self.content.to_vec();
        for block in &mut content {
            let new = block.call_id().and_then(|id| ids.get(id)).cloned();
            match (block, new) {
                (ContentBlock::ToolUse(tool_use), Some(new)) => tool_use.id = new,
                (ContentBlock::ToolResult(result), Some(new)) => result.tool_use_id = new,
                _ => {}
            }
        }
        Some(Self { details: self.details.clone(), ..self.with_content(content) })
    }

    /// The same message with the text of one block replaced.
    ///
    /// A tool result keeps its id and becomes one text. A tool use keeps its id and name, and
    /// `text` must then be JSON: where it is not, it is stored as a JSON string. Text and thinking
    /// blocks become `text`; images and opaque blocks become a text block. An index past the end
    /// changes nothing.
    #[must_use]
    pub fn with_block_text(&self, block: usize, text: &Arc<str>) -> Self {
        let mut edited = self.clone();
        let Some(slot) = edited.content.get_mut(block) else {
            return edited;
        };
        *slot = match &*slot {
            ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Opaque(_) => {
                ContentBlock::Text(text.clone())
            }
            ContentBlock::Thinking(thinking) => ContentBlock::Thinking(Box::new(Thinking {
                text: text.clone(),
                signature: thinking.signature.clone(),
            })),
            ContentBlock::ToolUse(tool_use) => ContentBlock::ToolUse(Box::new(ToolUse {
                input: JsonText::parse(text).unwrap_or_else(|_| JsonText::string(text)),
                ..(**tool_use).clone()
            })),
            ContentBlock::ToolResult(result) => ContentBlock::ToolResult(Box::new(ToolResult {
                content: vec![ContentBlock::Text(text.clone())],
                ..(**result).clone()
            })),
        };
        let new = slot.render();
        match &mut edited.rendering {
            Some(rendering) if edited.content.len() > 1 => rendering.replace(block, new),
            rendering => *rendering = Rendering::of(&edited.content),
        }
        edited
    }
}

impl Session {
    /// Checks the invariants of [`Session`].
    pub fn new(parts: SessionParts) -> Result<Self, SessionError> {
        if !is_valid_id(&parts.id) {
            return Err(SessionError::InvalidId { id: parts.id });
        }
        if parts.messages.is_empty() {
            return Err(SessionError::NoMessages);
        }
        let loaded = parts.resumed.as_ref().map_or(0, |resumed| resumed.at);
        if loaded > parts.messages.len() {
            return Err(SessionError::ResumedOutOfPlace {
                at: loaded,
                messages: parts.messages.len(),
            });
        }
        let mut calls = Vec::new();
        let mut seen = BTreeMap::new();
        for (at, message) in parts.messages.iter().enumerate() {
            check_message(at, message)?;
            if message.role() == Role::Assistant {
                // A message that the product wrote in the model's place is not a call; a loaded
                // message belongs to a call of an earlier session.
                if at >= loaded && !message.has_tag(Tag::Synthetic) {
                    calls.push(at);
                }
                if let Some(call) = &message.details.api_call
                    && let Some(earlier) = seen.insert(call.clone(), at)
                {
                    return Err(SessionError::SplitCall {
                        message: at,
                        earlier,
                        call: call.0.to_string(),
                    });
                }
            }
        }
        let mut last = 0;
        for compaction in &parts.compactions {
            let after = match &compaction.after {
                CompactedTo::Replaced(pieces) => &pieces[..],
                CompactedTo::Encrypted | CompactedTo::Missing => &[],
            };
            let inside = after.iter().all(|piece| match piece {
                Recorded::Kept(range) => range.start <= range.end && range.end <= compaction.at,
                Recorded::Edited { message, block, .. } => {
                    let edited = parts.messages.get(*message);
                    *message < compaction.at
                        && edited.is_some_and(|message| *block < message.content().len())
                }
                Recorded::Written(_) => true,
            });
            if compaction.at < last || compaction.at > parts.messages.len() || !inside {
                return Err(SessionError::CompactionOutOfPlace { at: compaction.at });
            }
            last = compaction.at;
        }
        Ok(Self { parts, calls })
    }

    /// Takes the session apart; [`Session::new`] makes one of the parts again.
    pub fn into_parts(self) -> SessionParts {
        self.parts
    }

    /// The parts.
    #[doc(hidden)]
    pub fn parts(&self) -> &SessionParts {
        &self.parts
    }

    /// The parts, to be completed by who reads the session: the calls stay the same, and so do the invariants.
    #[doc(hidden)]
    pub fn parts_mut(&mut self) -> &mut SessionParts {
        &mut self.parts
    }

    /// The session's name in tables and files.
    pub fn id(&self) -> &str {
        &self.parts.id
    }

    /// Whether it is the conversation of a sub-agent.
    pub fn is_side_chain(&self) -> bool {
        self.parts.messages.first().is_some_and(|message| message.has_tag(Tag::Sidechain))
    }

    /// The system prompt, if it was recorded.
    pub fn system(&self) -> Option<&Arc<str>> {
        self.parts.system.as_ref()
    }

    /// The tools the agent was given, if they were recorded.
    pub fn tools(&self) -> &[ToolSchema] {
        &self.parts.tools
    }

    /// The full history, oldest first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.parts.messages
    }

    /// One message. Panics past the end, as a slice does.
    pub fn message(&self, index: usize) -> &Arc<Message> {
        &self.parts.messages[index]
    }

    /// For each API call, in order, the index of the message that was its response. The call's
    /// full history is everything before that message. Messages that the product wrote in the
    /// model's place ([`Tag::Synthetic`]) and those that were loaded ([`ResumePoint`]) are history,
    /// and no calls.
    pub fn calls(&self) -> &[usize] {
        &self.calls
    }

    /// The number of the first call that this message, or a later one, answers: that of the next call behind all earlier
    /// messages.
    pub fn call_after(&self, message: usize) -> usize {
        self.calls.partition_point(|answer| *answer < message)
    }

    /// Compactions that the recorded product made, oldest first.
    pub fn compactions(&self) -> &[RecordedCompaction] {
        &self.parts.compactions
    }

    /// The agent's model, as recorded.
    pub fn model(&self) -> Option<&str> {
        self.parts.model.as_deref()
    }

    /// The model's context window, as recorded.
    pub fn context_window(&self) -> Option<Tokens> {
        self.parts.context_window
    }

    /// Where the session came from.
    pub fn source(&self) -> &Source {
        &self.parts.source
    }

    /// Where the session goes on from an earlier one, if it does.
    pub fn resumed(&self) -> Option<&ResumePoint> {
        self.parts.resumed.as_ref()
    }

    /// How many messages were loaded before the first call: 0, unless the session was resumed.
    pub fn loaded(&self) -> usize {
        self.resumed().map_or(0, |resumed| resumed.at)
    }

    /// The same session, resumed at another place.
    pub fn resume(self, resumed: ResumePoint) -> Result<Self, SessionError> {
        Self::new(SessionParts { resumed: Some(resumed), ..self.parts })
    }

    /// Every text a model reads: system prompt, tool definitions, messages. With repetitions.
    pub fn texts(&self) -> impl Iterator<Item = &Arc<str>> {
        let fixed = self.system().into_iter().chain(self.tools().iter().map(ToolSchema::text));
        fixed.chain(self.messages().iter().flat_map(|message| message.model_text()))
    }
}

impl ToolSchema {
    /// The definition as text: what is counted.
    pub fn text(&self) -> &Arc<str> {
        &self.definition.0
    }
}

fn check_message(at: usize, message: &Message) -> Result<(), SessionError> {
    if message.content().is_empty() {
        return Err(SessionError::NoContent { message: at });
    }
    for block in message.content() {
        let misplaced = match block {
            ContentBlock::ToolUse(_) | ContentBlock::Thinking(_) => message.role() == Role::User,
            ContentBlock::ToolResult(result) => {
                let nested = result.content.iter().any(|part| {
                    !matches!(
                        part,
                        ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Opaque(_)
                    )
                });
                if nested {
                    return Err(SessionError::NestedBlock {
                        message: at,
                        id: result.tool_use_id.to_string(),
                    });
                }
                message.role() == Role::Assistant
            }
            ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Opaque(_) => false,
        };
        if misplaced {
            return Err(SessionError::MisplacedBlock { message: at });
        }
    }
    Ok(())
}

/// Why some parts do not make a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The id cannot be printed and used as part of a file name.
    #[error(
        "session id `{id}` is not of the form `[a-z0-9][a-z0-9._@-]*` with at most 80 characters"
    )]
    InvalidId {
        /// The id.
        id: String,
    },
    /// There is nothing to replay.
    #[error("the session holds no message")]
    NoMessages,
    /// A message needs content.
    #[error("message {message} has no content")]
    NoContent {
        /// Index of the message, from 0.
        message: usize,
    },
    /// A block is in a message of the wrong role.
    #[error(
        "message {message} holds a block that its role cannot say: tool uses and thinking belong \
         to the assistant, tool results to the user"
    )]
    MisplacedBlock {
        /// Index of the message, from 0.
        message: usize,
    },
    /// A tool result holds something else than text, images and opaque blocks.
    #[error("message {message}: the result of tool use `{id}` holds another tool use or result")]
    NestedBlock {
        /// Index of the message, from 0.
        message: usize,
        /// The tool use that is answered.
        id: String,
    },
    /// One API call is spread over two messages.
    #[error(
        "messages {earlier} and {message} share the API call `{call}`: one call is one message, \
         so merge their blocks"
    )]
    SplitCall {
        /// Index of the later message, from 0.
        message: usize,
        /// Index of the earlier message, from 0.
        earlier: usize,
        /// The call.
        call: String,
    },
    /// More messages were loaded than there are.
    #[error(
        "the session is said to be resumed after {at} messages, and has {messages}: `resumed.at` \
         is at most that"
    )]
    ResumedOutOfPlace {
        /// How many were to be loaded.
        at: usize,
        /// How many there are.
        messages: usize,
    },
    /// A compaction does not lie within the messages.
    #[error("the compaction before message {at} is out of order or names messages after it")]
    CompactionOutOfPlace {
        /// Index of the message it precedes.
        at: usize,
    },
}
