//! What strategies that follow another wait for: the sizes that the other one had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::record::{CellKey, CellRecord};
use crate::units::Tokens;

/// Sizes of all messages at the calls at which a strategy changed them.
pub(super) type Sizes = BTreeMap<usize, Tokens>;

/// What a cell leaves to those that follow it.
#[derive(Debug, Clone)]
pub(super) enum Lead {
    /// Its sizes.
    Sizes(Sizes),
    /// It is not measurable, and so nothing that follows it is.
    NotMeasurable,
    /// The cell broke: nobody will ever know its sizes.
    Broken,
}

/// The cells that others follow, and the sizes of those that are done.
///
/// A worker that takes a cell which follows another waits here. It never waits for long: in a
/// session all cells that are followed are taken before all cells that follow.
#[derive(Debug)]
pub(super) struct Followed {
    wanted: BTreeSet<CellKey>,
    known: Mutex<BTreeMap<CellKey, Lead>>,
    news: Condvar,
}

impl Followed {
    /// Waits for these cells; of some the records may be there already.
    pub(super) fn new<'a>(
        wanted: BTreeSet<CellKey>,
        done: impl IntoIterator<Item = &'a CellRecord>,
    ) -> Self {
        let known = done
            .into_iter()
            .filter(|record| wanted.contains(&record.key()))
            .map(|record| (record.key(), lead(record)))
            .collect();
        Self {
            wanted,
            known: Mutex::new(known),
            news: Condvar::new(),
        }
    }

    /// A cell is over: with its record, or broken.
    pub(super) fn over(&self, key: &CellKey, record: Option<&CellRecord>) {
        if !self.wanted.contains(key) {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), record.map_or(Lead::Broken, lead));
        self.news.notify_all();
    }

    /// What a cell left, once it is over.
    pub(super) fn lead(&self, key: &CellKey) -> Lead {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(lead) = known.get(key) {
                return lead.clone();
            }
            known = self
                .news
                .wait(known)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lead(record: &CellRecord) -> Lead {
    if record.end.is_measured() {
        Lead::Sizes(sizes(record))
    } else {
        Lead::NotMeasurable
    }
}

/// What was sent at each call at which something was changed. Where the session died at such a
/// call, nothing was sent: the size after the last change.
fn sizes(record: &CellRecord) -> Sizes {
    record
        .compactions
        .iter()
        .map(|event| {
            let sent = record.prompt_tokens.get(event.call);
            let size = sent.map_or(event.after, |prompt| *prompt - record.fixed_tokens);
            (event.call, size)
        })
        .collect()
}
