//! Observers: each watches one cell and writes its part of the record.
//!
//! The loop knows none of them by name. A new measurement is one file here and one line where
//! observers are made.

use std::fmt::Debug;

use crate::context::{Applied, Context, Entry};
use crate::record::CellRecord;
use crate::session::{Message, Session};
use crate::tokens::Size;

pub mod action_support;
pub mod survival;
pub mod validity;

/// Watches one cell.
///
/// The calls come in the order in which things happen: entries as they are appended, patches as
/// they are applied, prompts as they are sent. Following appended entries and patches is enough
/// to know the context at any time; an observer should not walk it on every call.
pub trait Observer: Debug + Send {
    /// An entry was appended at the end of the context.
    fn appended(&mut self, entry: &Entry) {
        let _ = entry;
    }

    /// A patch was applied. Write-time edits are part of the appended entry and not seen here.
    fn patched(&mut self, applied: &Applied) {
        let _ = applied;
    }

    /// A prompt was sent and answered.
    fn called(&mut self, view: &CallView<'_>) {
        let _ = view;
    }

    /// The cell is over; the record says already how it ended and how far it came.
    fn finish(self: Box<Self>, record: &mut CellRecord);
}

/// A prompt as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct CallView<'a> {
    /// Number of the call, from 0.
    pub call: usize,
    /// Index of the message that answered it: the full history is everything before.
    pub before: usize,
    /// The session.
    pub session: &'a Session,
    /// The messages that were sent.
    pub context: &'a Context,
    /// Size of system prompt and tool definitions.
    pub fixed: Size,
    /// The recorded answer.
    pub response: &'a Message,
}
