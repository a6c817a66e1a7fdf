//! The lines of a Claude Code recording, read as leniently as they are useful.

use crate::prelude::*;

/// Types of records that do not belong to the conversation, like any `system` record that is neither a
/// compaction nor a command.
pub(super) const BOOKKEEPING: &str = include_str!("bookkeeping.txt");

/// Records with a name, each with its parent.
pub(super) type Parents = BTreeMap<Arc<str>, Text>;

/// The record above the one of this name.
pub(super) fn parent_of<'p>(uuid: &str, parents: &'p Parents) -> Option<&'p Arc<str>> {
    parents.get(uuid)?.as_ref()
}

/// One line. Keys that are not here do not belong to the conversation.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a", rename_all = "camelCase")]
pub(super) struct Record<'a> {
    pub(super) r#type: Text,
    pub(super) subtype: Text,
    /// The product's version.
    pub(super) version: Text,
    pub(super) uuid: Text,
    pub(super) parent_uuid: Text,
    logical_parent_uuid: Text,
    pub(super) agent_id: Text,
    pub(super) request_id: Text,
    pub(super) is_sidechain: Option<bool>,
    /// In a stream, the tool use that began the sub-agent.
    #[serde(rename = "parent_tool_use_id")]
    pub(super) parent_tool_use_id: Text,
    pub(super) is_meta: Option<bool>,
    /// In a stream, `isMeta` and `isCompactSummary` in one.
    pub(super) is_synthetic: Option<bool>,
    pub(super) is_compact_summary: Option<bool>,
    pub(super) is_api_error_message: Option<bool>,
    /// The kind of error of a failed call; in a stream, its only mark.
    pub(super) error: Option<&'a RawValue>,
    pub(super) timestamp: Option<&'a RawValue>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) attachment: Option<&'a RawValue>,
    /// The texts that an attachment was sent as.
    pub(super) rendered: Option<&'a RawValue>,
    pub(super) data: Option<&'a RawValue>,
    #[serde(alias = "compact_metadata")]
    pub(super) compact_metadata: Option<&'a RawValue>,
    pub(super) microcompact_metadata: Option<&'a RawValue>,
    pub(super) replacements: Option<&'a RawValue>,
    pub(super) session_id: Text,
    /// The same in a stream.
    #[serde(rename = "session_id")]
    pub(super) run: Text,
}

impl Record<'_> {
    /// Whether a sub-agent's conversation holds the record.
    pub(super) fn is_side(&self) -> bool {
        self.is_sidechain == Some(true) || self.parent_tool_use_id.is_some()
    }

    /// The name of the record above it.
    pub(super) fn parent(&self) -> Option<&Arc<str>> {
        self.parent_uuid.as_ref().or(self.logical_parent_uuid.as_ref())
    }
}

/// The `message` of a user or assistant record, as the provider's API has it.
#[derive(Deserialize)]
pub(super) struct ApiMessage<'a> {
    pub(super) id: Text,
    pub(super) model: Text,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) stop_reason: Text,
    pub(super) usage: Option<Value>,
}

/// The system prompt and the tools of a conversation, as newer versions attach them.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptSnapshot {
    pub(super) cli_prefix: Text,
    #[serde(default)]
    pub(super) system_prompt: Vec<Arc<str>>,
    #[serde(default)]
    pub(super) tools: Vec<SnapshotTool>,
}

/// A tool of a snapshot, with its whole definition.
#[derive(Clone, Deserialize)]
pub(super) struct SnapshotTool {
    pub(super) name: Arc<str>,
    pub(super) schema: Box<RawValue>,
}

/// The `compactMetadata` of a boundary, which a stream writes with underscores.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Text,
    #[serde(alias = "pre_tokens")]
    pub(super) pre_tokens: Option<Value>,
    #[serde(alias = "preserved_messages")]
    pub(super) preserved_messages: Option<PreservedRecords>,
    #[serde(alias = "preserved_segment")]
    pub(super) preserved_segment: Option<PreservedRecords>,
    /// The bill of the summary, which an agent wrote.
    #[serde(skip)]
    pub(super) usage: Option<Usage>,
}

/// The `microcompactMetadata` of a boundary: old results that were cleared.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MicrocompactMetadata {
    pub(super) pre_tokens: Option<Value>,
    pub(super) compacted_tool_ids: Vec<Arc<str>>,
    #[serde(rename = "clearedAttachmentUUIDs")]
    pub(super) cleared_attachments: Vec<Arc<str>>,
}

/// Records before a boundary that stayed in the context.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PreservedRecords {
    #[serde(alias = "anchor_uuid")]
    pub(super) anchor_uuid: Text,
    pub(super) uuids: Option<Vec<Arc<str>>>,
    #[serde(alias = "head_uuid")]
    pub(super) head_uuid: Text,
    #[serde(alias = "tail_uuid")]
    pub(super) tail_uuid: Text,
}
