//! Notes about positions in a context, while they hold.

use std::ops::Range;

use crate::context::Context;

/// A stage's notes on the entries that it has read, so that it reads each once.
///
/// Once entries are replaced, all positions change, and the notes start afresh.
#[derive(Debug, Default)]
pub(crate) struct PositionNotes<T> {
    notes: T,
    /// [`Context::replacements`] when the notes were begun.
    replacements: u64,
    /// The number of entries that were read.
    read: usize,
}

impl<T: Default> PositionNotes<T> {
    /// The notes, begun anew if entries were replaced since they were taken.
    pub(crate) fn up_to_date(&mut self, context: &Context) -> &mut T {
        if self.replacements != context.replacements() {
            self.notes = T::default();
            self.replacements = context.replacements();
            self.read = 0;
        }
        &mut self.notes
    }

    /// The notes, and the entries that came into the context since this was asked last.
    pub(crate) fn with_new(&mut self, context: &Context) -> (&mut T, Range<usize>) {
        self.up_to_date(context);
        let entries = context.entries().len();
        let read = std::mem::replace(&mut self.read, entries);
        (&mut self.notes, read..entries)
    }

    /// The notes, if no entry was replaced since they were taken.
    pub(crate) fn current(&self, context: &Context) -> Option<&T> {
        (self.replacements == context.replacements()).then_some(&self.notes)
    }
}
