//! Which of several values comes last in a prompt.

use super::PromptPosition;
use crate::probe::kendall;
use crate::record::Fate;

/// Where something is last, and in which place.
pub(super) type Rank = (PromptPosition, usize);

/// The fate of one probe by order.
#[derive(Debug, PartialEq)]
pub(super) struct OrderFate {
    pub(super) fate: Fate,
    pub(super) score: f64,
    pub(super) place: Option<usize>,
    /// The older value that stands in place of the newest.
    pub(super) older: Option<usize>,
}

/// The fate of the newest of these values. It is kept if it is in the prompt and no older value
/// follows it. It is changed if only older values are left, or if an older one comes last. It is
/// unsure if old and new are in one text that gives them no order.
pub(super) fn newest(values: &[Option<Rank>]) -> OrderFate {
    let (newest, earlier) = values.split_last().unwrap_or((&None, &[]));
    let last_older = (0..).zip(earlier).filter_map(|(at, rank)| Some(((*rank)?, at))).max();
    let older = last_older.map(|(rank, _)| rank);
    let (fate, place) = match (*newest, older) {
        (Some(new), Some(old)) if old.0 > new.0 => (Fate::Changed, Some(old.1)),
        (Some(new), Some(old)) if old.0 == new.0 => (Fate::Unsure, Some(new.1)),
        (Some(new), _) => (Fate::Kept, Some(new.1)),
        (None, Some(old)) => (Fate::Changed, Some(old.1)),
        (None, None) => (Fate::Lost, None),
    };
    let older = last_older.filter(|_| fate == Fate::Changed);
    OrderFate {
        fate,
        score: if fate == Fate::Kept { 1.0 } else { 0.0 },
        place,
        older: older.map(|(_, at)| at),
    }
}

/// The fate of these events, given in their order. The score is Kendall's, counted over the pairs of
/// which both events are in the prompt: a pair that lost one of its events does not count.
pub(super) fn sequence(ranks: &[Option<Rank>]) -> OrderFate {
    let present: Vec<Rank> = ranks.iter().copied().flatten().collect();
    let positions: Vec<PromptPosition> = present.iter().map(|rank| rank.0).collect();
    let (balance, score) = kendall(&positions, ranks.len());
    let fate = match present.len() {
        0 => Fate::Lost,
        whole if whole == ranks.len() && score >= 1.0 => Fate::Kept,
        1 => Fate::Partial,
        _ if balance <= 0 => Fate::Changed,
        _ => Fate::Partial,
    };
    let place = present.iter().map(|rank| rank.1).min();
    OrderFate { fate, score, place, older: None }
}

/// The fate of a plan of two slots per item, an open and a done one; `done` says of each item
/// whether it was done by now. The score is set F1 between the items whose last mention is open and
/// those that are open.
pub(super) fn pending(ranks: &[Option<Rank>], done: impl Iterator<Item = bool>) -> OrderFate {
    let (mut wanted, mut kept, mut outdated, mut turned) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut place = None;
    for (slots, is_done) in ranks.chunks_exact(2).zip(done) {
        let (open, ticked) = (slots[0], slots[1]);
        wanted += usize::from(!is_done);
        turned += usize::from(!is_done && ticked.is_some());
        if open.map(|rank| rank.0) > ticked.map(|rank| rank.0) {
            kept += usize::from(!is_done);
            outdated += usize::from(is_done);
            let here = open.map(|rank| rank.1);
            place = place.or(here).min(here);
        }
    }
    let score = 2.0 * kept as f64 / (wanted + kept + outdated).max(1) as f64;
    let fate = match (kept, outdated) {
        (0, 0) if turned == 0 => Fate::Lost,
        (0, _) => Fate::Changed,
        (kept, 0) if kept == wanted => Fate::Kept,
        (kept, _) if kept == wanted => Fate::Changed,
        _ => Fate::Partial,
    };
    OrderFate { fate, score, place, older: None }
}
