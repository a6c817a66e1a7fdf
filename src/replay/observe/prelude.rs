//! The imports of nearly every observer.

pub(super) use super::Observer;
pub(super) use crate::context::{Applied, Context, Entry, Origin};
pub(super) use crate::model::Task;
pub(super) use crate::record::CellRecord;
pub(super) use crate::session::{ContentBlock, Message, Role, Session, Tag};
pub(super) use crate::tokens::{CountedTexts, Size};
pub(super) use crate::units::{ContentHash, Tokens};
pub(super) use std::collections::{BTreeMap, BTreeSet};
pub(super) use std::sync::Arc;
