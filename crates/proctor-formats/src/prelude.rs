//! The imports of nearly every importer.

pub(super) use super::assemble::{Assembler, ModelRecord, add_counts};
pub(super) use super::common::{
    Blocks, Text, When, counted, cut, flat_call, in_utc, input_or_empty, items, joined_texts,
    texts, time_or_local, value,
};
pub(super) use super::conversations::{
    self, Conversation, ConversationShape, LATE_SYSTEM, keep_unread, name, unknown_record,
};
pub(super) use super::counted::{Counted as _, time, time_or_warn};
pub(super) use super::error::{Imported, Result};
pub(super) use super::file::{
    MAX_FILE, RecordLine, SourceFile, SourceText, WholeRecord, objects, session_id, session_name,
};
pub(super) use super::head::{Head, has_any, is_shaped};
pub(super) use super::lenient;
pub(super) use super::openai_chat::parts::{UNNAMED, Unnamed, arguments, arguments_in};
pub(super) use super::openai_chat::{self, ChatDialect};
pub(super) use super::product::{
    Parent, branch_of, by_session, climb, is_one_of, joined_with_side_chains, json_object,
    numbered, of_type, place_of, role_of, sessions_of, speaker, speaker_of, with_side_chains,
};
pub(super) use super::usage::{
    CachedTokens, Iterations, billed, count_in, counters, unless_zero, usage, usage_in,
};
pub(super) use super::{
    Detect, Folder, ImportError, Importer, Recording, SessionFiles, checked, compressed,
    kept_context,
};
pub(super) use proctor_sessions::tool_names::class_of;
pub(super) use proctor_sessions::units::{
    ApiCallId, ContentHash, Timestamp, Tokens, Usage, to_valid_id,
};
pub(super) use proctor_sessions::wire::content::{self, Speaker, input};
pub(super) use proctor_sessions::wire::object::Object;
pub(super) use proctor_sessions::wire::stream::Api;
pub(super) use proctor_sessions::wire::{Look, images};
pub(super) use proctor_sessions::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session,
    SessionError, SessionParts, Source, Tag, ToolClass, ToolSchema, ToolUse, count,
};
pub(super) use serde::Deserialize;
pub(super) use serde_json::value::RawValue;
pub(super) use serde_json::{Map, Value, json};
pub(super) use sha2::{Digest, Sha256};
pub(super) use std::borrow::Cow;
pub(super) use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub(super) use std::ops::Range;
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
