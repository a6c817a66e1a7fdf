//! When each part of a recorded session left the context of the product that recorded it.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::{CompactedTo, Recorded, Session};

/// The compaction that took each message, or a block of it, out of the recorded context.
///
/// A compaction of which the recording does not say what it left takes nothing.
#[derive(Debug)]
pub(super) struct Departures {
    /// By message, where the compaction happened.
    messages: Vec<Option<usize>>,
    /// The same of blocks whose text was replaced.
    blocks: BTreeMap<(usize, usize), usize>,
}

impl Departures {
    pub(super) fn of(session: &Session) -> Self {
        let mut departures = Self {
            messages: vec![None; session.messages().len()],
            blocks: BTreeMap::new(),
        };
        let (mut present, mut next): (Vec<usize>, usize) = (Vec::new(), 0);
        for compaction in session.compactions() {
            let at = compaction.at;
            present.extend(next..at);
            next = at;
            let kept = match &compaction.after {
                CompactedTo::Replaced(pieces) => departures.kept(pieces, at),
                CompactedTo::Encrypted => BTreeSet::new(),
                CompactedTo::Missing => continue,
            };
            let (stay, leave): (Vec<usize>, Vec<usize>) = present
                .into_iter()
                .partition(|message| kept.contains(message));
            present = stay;
            for message in leave {
                departures.messages[message] = Some(at);
            }
        }
        departures
    }

    /// The messages that are among the pieces; notes the blocks that were replaced.
    fn kept(&mut self, pieces: &[Recorded], at: usize) -> BTreeSet<usize> {
        let mut kept = BTreeSet::new();
        for piece in pieces {
            match piece {
                Recorded::Kept(range) => kept.extend(range.start..range.end.min(at)),
                Recorded::Edited { message, block, .. } => {
                    self.blocks.entry((*message, *block)).or_insert(at);
                    kept.insert(*message);
                }
                Recorded::Written(_) => {}
            }
        }
        kept
    }

    /// Where the compaction happened after which this block was not in the context any more.
    pub(super) fn at(&self, message: usize, block: usize) -> Option<usize> {
        let own = self.blocks.get(&(message, block)).copied();
        let whole = self.messages.get(message).copied().flatten();
        own.into_iter().chain(whole).min()
    }
}
