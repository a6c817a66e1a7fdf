//! Checks whether a model's answer can replace the messages that it was to summarise.

use std::sync::Arc;

use super::StageError;
use crate::model::{Response, Stop};
use crate::step::CallResult;

/// The text of an answer. A history is never replaced by anything else.
pub(crate) fn text_of(answer: CallResult) -> Result<Arc<str>, StageError> {
    let Response { text, stop, .. } = answer?;
    match stop {
        Stop::ToolUse => Err(StageError::ToolCall),
        Stop::Refusal | Stop::ContentFilter => Err(StageError::Refused),
        Stop::End | Stop::Length if text.trim().is_empty() => Err(StageError::EmptySummary),
        Stop::End | Stop::Length => Ok(text),
    }
}
