//! Which of several values stands last in a prompt, followed from appended entries and patches.
//!
//! Beside each entry of the context stands what it says about keys that were revised and plans. A
//! patch moves these notes as it moves the entries, so that no text is looked at again; only when
//! probes are asked is the last place of each value gathered.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::record::Fate;

/// Something with an order that stands in an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) slot: usize,
    pub(super) place: usize,
    /// Block and byte; the same for all that one compaction wrote in one go, but for sequences.
    pub(super) within: (usize, usize),
}

/// What each entry of the context mentions, in the order of the context.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Order(Vec<Box<[Mention]>>);

/// Where something stands last: entry (what is pinned comes before all), block, byte; and in which
/// place.
type Rank = (Option<usize>, (usize, usize), usize);

/// Where each value stands last in one prompt.
#[derive(Debug, Default)]
pub(super) struct Ranks(BTreeMap<usize, Rank>);

/// What the order says about one probe.
#[derive(Debug, PartialEq)]
pub(super) struct Last {
    pub(super) fate: Fate,
    pub(super) score: f64,
    pub(super) place: Option<usize>,
}

impl Order {
    pub(super) fn append(&mut self, mentions: Box<[Mention]>) {
        self.0.push(mentions);
    }

    /// Puts `with` in the place of these entries, counted before the edits that moved everything by
    /// `shift`; says by how much everything behind is moved now.
    pub(super) fn replace(
        &mut self,
        entries: &Range<usize>,
        with: Vec<Box<[Mention]>>,
        shift: isize,
    ) -> isize {
        let length = self.0.len();
        let start = entries.start.saturating_add_signed(shift).min(length);
        let end = entries
            .end
            .saturating_add_signed(shift)
            .clamp(start, length);
        let grown = signed(with.len()) - signed(entries.len());
        self.0.splice(start..end, with);
        shift + grown
    }

    /// The last place of everything, in the places that `region` names.
    pub(super) fn ranks(
        &self,
        pinned: impl Iterator<Item = usize>,
        region: impl Fn(usize) -> bool,
    ) -> Ranks {
        let mut ranks = BTreeMap::new();
        ranks.extend(pinned.map(|slot| (slot, (None, (0, 0), 0))));
        for (entry, mentions) in self.0.iter().enumerate() {
            for mention in mentions.iter().filter(|mention| region(mention.place)) {
                let rank = (Some(entry), mention.within, mention.place);
                let known = ranks.entry(mention.slot).or_insert(rank);
                *known = rank.max(*known);
            }
        }
        Ranks(ranks)
    }
}

impl Ranks {
    fn of(&self, slot: usize) -> Option<Rank> {
        self.0.get(&slot).copied()
    }

    /// What became of the newest of these values: it has survived where it stands and no older one
    /// stands after it. Stale is where only older ones are left, or where an older one has the last
    /// word; ambiguous where old and new stand in one text that gives them no order.
    pub(super) fn newest(&self, mut values: Range<usize>) -> Last {
        let newest = values.next_back().and_then(|slot| self.of(slot));
        let older = values.filter_map(|slot| self.of(slot)).max();
        let (fate, place) = match (newest, older) {
            (Some(new), Some(old)) if (old.0, old.1) > (new.0, new.1) => (Fate::Stale, Some(old.2)),
            (Some(new), Some(old)) if (old.0, old.1) == (new.0, new.1) => {
                (Fate::Ambiguous, Some(new.2))
            }
            (Some(new), _) => (Fate::Survived, Some(new.2)),
            (None, Some(old)) => (Fate::Stale, Some(old.2)),
            (None, None) => (Fate::Lost, None),
        };
        let score = if fate == Fate::Survived { 1.0 } else { 0.0 };
        Last { fate, score, place }
    }

    /// What became of these events, given in their order. The score is Kendall's
    /// `max(0, (C − D) / (n(n − 1)/2))`, C and D counted over the pairs of which both stand there:
    /// a pair that lost one of its events counts for nothing.
    pub(super) fn sequence(&self, events: Range<usize>) -> Last {
        let ranks: Vec<Option<Rank>> = events.map(|slot| self.of(slot)).collect();
        let present: Vec<Rank> = ranks.iter().copied().flatten().collect();
        let mut balance = 0_i64;
        for (at, earlier) in present.iter().enumerate() {
            for later in &present[at + 1..] {
                balance += match (earlier.0, earlier.1).cmp(&(later.0, later.1)) {
                    Ordering::Less => 1,
                    Ordering::Equal => 0,
                    Ordering::Greater => -1,
                };
            }
        }
        let pairs = ranks.len() * ranks.len().saturating_sub(1) / 2;
        let score = balance.max(0) as f64 / pairs.max(1) as f64;
        let fate = match present.len() {
            0 => Fate::Lost,
            whole if whole == ranks.len() && score >= 1.0 => Fate::Survived,
            1 => Fate::Partial,
            _ if balance <= 0 => Fate::Distorted,
            _ => Fate::Partial,
        };
        let place = present.iter().map(|rank| rank.2).min();
        Last { fate, score, place }
    }

    /// What became of a plan whose slots begin at `first`, an open and a done one per item; `done`
    /// says of each item whether it was done by now. The score is set F1 between the items whose
    /// last mention is open and those that are.
    pub(super) fn pending(&self, first: usize, done: impl Iterator<Item = bool>) -> Last {
        let (mut wanted, mut kept, mut outdated) = (0_usize, 0_usize, 0_usize);
        let mut place = None;
        for (at, is_done) in done.enumerate() {
            let (open, ticked) = (self.of(first + 2 * at), self.of(first + 2 * at + 1));
            let is_open = match (open, ticked) {
                (Some(open), Some(ticked)) => (open.0, open.1) > (ticked.0, ticked.1),
                (Some(_), None) => true,
                (None, _) => false,
            };
            wanted += usize::from(!is_done);
            if is_open {
                kept += usize::from(!is_done);
                outdated += usize::from(is_done);
                let here = open.map(|rank| rank.2);
                place = place.or(here).min(here);
            }
        }
        let score = 2.0 * kept as f64 / (wanted + kept + outdated).max(1) as f64;
        let fate = match (kept, outdated) {
            (0, 0) => Fate::Lost,
            (0, _) => Fate::Stale,
            (kept, 0) if kept == wanted => Fate::Survived,
            (kept, _) if kept == wanted => Fate::Stale,
            _ => Fate::Partial,
        };
        Last { fate, score, place }
    }
}

fn signed(length: usize) -> isize {
    isize::try_from(length).unwrap_or(isize::MAX)
}
