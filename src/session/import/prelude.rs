//! What nearly every importer needs.

pub(super) use super::assemble::{
    Assembler, AssistantRecord, UserRecord, add_counts, count, uncached,
};
pub(super) use super::common::{
    all, billed, cannot_read, counted, counter, counters, flat_call, input, input_or_empty, items,
    joined_texts, own_counters, result_content, some, text_part, time_or_local, unless_zero, value,
};
pub(super) use super::conversations::{keep_unread, speaker_of, system_text, unknown_record};
pub(super) use super::file::{Line, SourceFile, SourceText};
pub(super) use super::head::Head;
pub(super) use super::object::Object;
pub(super) use super::{Folder, FolderFormat, ImportError, Importer, SessionFiles};
pub(super) use super::{content, lenient};
pub(super) use crate::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, Role, Session, Source, Tag,
};
pub(super) use crate::units::{Timestamp, Tokens, Usage};
pub(super) use serde_json::Value;
pub(super) use serde_json::value::RawValue;
pub(super) use std::collections::{BTreeMap, BTreeSet};
pub(super) use std::path::Path;
pub(super) use std::sync::Arc;
