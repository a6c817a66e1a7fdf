//! What nearly every importer needs.

pub(super) use super::assemble::{
    Assembler, AssistantRecord, UserRecord, add_counts, count, uncached,
};
pub(super) use super::common::{
    all, billed, cannot_read, counted, counter, counters, flat_call, input, input_or_empty, items,
    joined_texts, mended, own_counters, result_content, some, text_part, time_or_local,
    unless_zero, value,
};
pub(super) use super::conversations::{
    Object, keep_unread, speaker_of, system_text, unknown_record,
};
pub(super) use super::documents::Documents;
pub(super) use super::lines::{Line, Lines, Strictness, head_lines, strip_bom};
pub(super) use super::{Folder, ImportError, Importer, SessionFiles, content, lenient, sketch};
pub(super) use crate::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, Role, Session, Source, Tag,
};
pub(super) use crate::units::{Timestamp, Tokens, Usage};
pub(super) use serde_json::Value;
pub(super) use serde_json::value::RawValue;
pub(super) use std::collections::{BTreeMap, BTreeSet};
pub(super) use std::io::BufRead;
pub(super) use std::path::Path;
pub(super) use std::sync::Arc;
