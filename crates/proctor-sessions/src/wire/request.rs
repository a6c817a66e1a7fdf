//! One request, read while it is on its way: its messages, each with the items of JSON that it is made of.

use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::Look;
use super::stream::Api;
use crate::{Message, ToolSchema};

/// A request to a model, without its answer.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// Where the list of messages is in the body.
    pub list: Range<usize>,
    /// The items of the list, as written.
    pub items: Vec<&'a RawValue>,
    /// How many of them, from the first, are the system prompt.
    pub leading: usize,
    /// The messages behind it.
    pub turns: Vec<WireTurn>,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The tools the agent was given.
    pub tools: Vec<ToolSchema>,
    /// The model that is asked.
    pub model: Option<Arc<str>>,
    /// The client's own name for the conversation.
    pub client: Option<Arc<str>>,
}

/// A message with the items it is made of.
#[derive(Debug, Clone)]
pub struct WireTurn {
    /// The places of the items.
    pub items: Range<usize>,
    /// The message.
    pub message: Arc<Message>,
    /// By what it is recognised in the next request.
    pub look: Look,
}

/// Why a request is passed on as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unread {
    /// It is no JSON object with a list of messages.
    #[error("no list of messages")]
    NoMessages,
    /// The provider has messages that are not in the request.
    #[error("it refers to messages that the provider keeps")]
    KeptByProvider,
    /// Items that cannot be told as a message.
    #[error("an item that is no message")]
    OddItem,
}

/// The reader of requests and answers: `proctor_formats::request::READER`.
#[derive(Debug, Clone, Copy)]
pub struct BodyReader {
    /// Reads the body of a request.
    pub request: for<'a> fn(Api, &'a str) -> Result<WireRequest<'a>, Unread>,
    /// Reads the model's answer to a request: the message, with its usage where the provider says it.
    pub answer: fn(Api, &str) -> Option<Message>,
}
