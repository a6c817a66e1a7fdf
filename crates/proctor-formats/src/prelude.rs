//! The imports of nearly every importer.

pub(super) use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts};
pub(super) use super::common::{
    Blocks, When, counted, flat_call, input_or_empty, items, joined_texts, time_or_local, value,
};
pub(super) use super::conversations::{LATE_SYSTEM, keep_unread, system_text, unknown_record};
pub(super) use super::counted::Counted as _;
pub(super) use super::error::{Imported, Result};
pub(super) use super::file::{Line, SourceFile, SourceText};
pub(super) use super::head::{Head, is_shaped};
pub(super) use super::lenient;
pub(super) use super::product::{Parent, branch_of, climb, is_one_of, speaker, speaker_of};
pub(super) use super::usage::{
    CachedTokens, billed, counters, other_iterations, unless_zero, usage, usage_in,
};
pub(super) use super::{Folder, ImportError, Importer, SessionFiles};
pub(super) use proctor_sessions::units::{Timestamp, Tokens, Usage};
pub(super) use proctor_sessions::wire::content::{self, Speaker, input};
pub(super) use proctor_sessions::wire::object::Object;
pub(super) use proctor_sessions::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session,
    Source, Tag, count,
};
pub(super) use serde::Deserialize;
pub(super) use serde_json::Value;
pub(super) use serde_json::value::RawValue;
pub(super) use std::collections::{BTreeMap, BTreeSet};
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
