//! The imports of nearly every stage.

pub(super) use crate::context::{BlockAt, CacheEffect, Context, Edit, Entry, Origin, Patch};
pub(super) use crate::model::Request;
pub(super) use crate::session::{ContentBlock, Message, Role, Tag, ToolClass, ToolResult, ToolUse};
pub(super) use crate::step::Step;
pub(super) use crate::strategy::own_prompt::{self, OwnPrompt, PromptValues};
pub(super) use crate::strategy::{
    Cut, Knobs, PendingEdits, PlannedPatch, PositionNotes, Situation, Stage, StageError,
    StageResult, ToolList, cut, files, truncate,
};
pub(super) use crate::tokens::Size;
pub(super) use crate::units::Tokens;
pub(super) use crate::window::Window;
pub(super) use serde::Deserialize;
pub(super) use serde_json::Value;
pub(super) use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub(super) use std::ops::Range;
pub(super) use std::sync::Arc;
