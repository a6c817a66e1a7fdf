//! Dependencies between cells: a strategy that follows another one waits for the sizes that it had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::record::{CellKey, CellRecord};
use crate::units::Tokens;

/// Sizes of all messages at the calls at which a strategy changed them.
pub(super) type CallSizes = BTreeMap<usize, Tokens>;

/// The result of a cell for those that follow it.
#[derive(Debug, Clone)]
pub(super) enum Lead {
    /// Its sizes.
    Sizes(CallSizes),
    /// It is not measurable, and so nothing that follows it is.
    NotMeasurable,
    /// The cell broke: its sizes stay unknown.
    Broken,
}

/// The cells that others follow, and the sizes of those that are done.
///
/// A worker that takes a cell which follows another waits here. It never waits for long: in a
/// session all cells that are followed are taken before all cells that follow.
#[derive(Debug)]
pub(super) struct Dependencies(BTreeMap<CellKey, OnceLock<Lead>>);

impl Dependencies {
    /// Waits for these cells; of some the records may be there already.
    pub(super) fn new<'a>(
        wanted: BTreeSet<CellKey>,
        done: impl IntoIterator<Item = &'a CellRecord>,
    ) -> Self {
        let waiting = wanted.into_iter().map(|key| (key, OnceLock::new()));
        let followed = Self(waiting.collect());
        for record in done {
            followed.finish(&record.key(), Some(record));
        }
        followed
    }

    /// Notes how a cell ended: with its record, or broken.
    pub(super) fn finish(&self, key: &CellKey, record: Option<&CellRecord>) {
        if let Some(known) = self.0.get(key) {
            let lead = record.map_or(Lead::Broken, |record| {
                sizes_of(record).map_or(Lead::NotMeasurable, Lead::Sizes)
            });
            // A cell ends once.
            let _ = known.set(lead);
        }
    }

    /// Waits for a cell to end.
    pub(super) fn wait_for(&self, key: &CellKey) -> Lead {
        let known = self.0.get(key);
        known.map_or(Lead::Broken, |known| known.wait().clone())
    }
}

/// The sizes that a strategy had, for one that follows it; `None` where it was not measurable.
pub(crate) fn sizes_of(record: &CellRecord) -> Option<CallSizes> {
    if !record.end.is_measured() {
        return None;
    }
    // The size that was sent at each call at which the context was changed. Where the session died at
    // such a call, nothing was sent: the size after the last change.
    let size = record.compactions.iter().map(|event| {
        let sent = record.prompt_tokens.get(event.call);
        let size = sent.map_or(event.after, |prompt| *prompt - record.fixed_tokens);
        (event.call, size)
    });
    Some(size.collect())
}
