//! What a recording says of a message beside its content.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::units::{ApiCallId, Factor, Timestamp, Tokens, Usage};

/// What a recording says of a message beside its content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// When it was sent or received.
    pub timestamp: Option<Timestamp>,
    /// The API call whose response this is: assistant messages only.
    pub api_call: Option<ApiCallId>,
    /// The tokens that the provider billed for that call.
    pub usage: Option<Usage>,
    /// Requests within that call, which were billed apart from `usage`.
    pub inner_requests: Vec<InnerRequest>,
    /// Tokens of that call's output that the provider counted as reasoning, where the product adds them
    /// to the size of its context.
    pub reasoning: Tokens,
    /// Indices of the blocks that the product added to a message that a person typed: reminders,
    /// lists of skills, output of commands. Sorted; no part of what the model reads.
    pub injected: Vec<usize>,
    /// The words behind `/compact`, on a message that ends a phase
    /// ([`Tag::PhaseEnd`](super::Tag::PhaseEnd)): a person asks the compaction at this point to keep this. The
    /// model does not read them.
    pub compact_hint: Option<Arc<str>>,
    /// The model that wrote it, where that is another than the session's: assistant messages only.
    pub model: Option<Arc<str>>,
    /// Billed tokens that no text shows: thinking whose words the recording leaves out, a document. Never
    /// recorded: set when the session is sized as billed.
    pub hidden: Tokens,
    /// Billed tokens for each counted one, where the session's bill shows it for this message. Never recorded.
    pub factor: Option<Factor>,
}

/// A request within a call of the agent. The provider made it, to an advisor or to the same model around a tool that runs
/// at the provider's; or the client did, and its answer is in no context: it was sent again, left out or asked beside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InnerRequest {
    /// Its kind, in the provider's word or in an importer's: `advisor_message`, `sent again`.
    pub kind: Arc<str>,
    /// The model that answered, where that is another than the call's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Its bill. An answer that is part of the call's own has no output here.
    pub usage: Usage,
}

static NONE: LazyLock<Details> = LazyLock::new(Details::default);

/// The details of a message; one that has none takes no memory for them.
#[derive(Debug, Clone, Default)]
pub struct MessageDetails(Option<Box<Details>>);

impl From<Details> for MessageDetails {
    fn from(details: Details) -> Self {
        Self((details != *NONE).then(|| Box::new(details)))
    }
}

impl Deref for MessageDetails {
    type Target = Details;

    fn deref(&self) -> &Details {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for MessageDetails {
    fn deref_mut(&mut self) -> &mut Details {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for MessageDetails {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
