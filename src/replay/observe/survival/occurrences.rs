//! Where the facts of a session stand in a prompt.

use super::order::Rank;
use crate::context::Context;
use crate::probe::survival::{Match, sentence_at};

/// The facts that a prompt holds.
pub(super) struct PromptOccurrences<'c> {
    pub(super) context: &'c Context,
    pub(super) slots: Vec<Occurrences>,
    /// Whether each message of the session is in it as it was. There may be a million.
    pub(super) is_verbatim: Vec<bool>,
}

impl PromptOccurrences<'_> {
    /// The occurrences of a slot; behind the slots those of messages as they were.
    pub(super) fn of(&self, slot: usize) -> Occurrences {
        let mut found = self.slots.get(slot).copied().unwrap_or_default();
        if slot >= self.slots.len() && self.is_verbatim[slot - self.slots.len()] {
            found.add(1, Match::Kept, (None, (0, 0)), (0, 0));
        }
        found
    }

    /// The sentence that speaks of something.
    pub(super) fn sentence(&self, mention: Option<Mention>) -> Option<String> {
        let Mention { entry, at: (block, byte), .. } = mention?;
        let text = self.context.entries().get(entry?)?.message.model_text().get(block)?;
        Some(sentence_at(text, byte).to_owned())
    }
}

/// Where something is said that is not the fact, or may not be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mention {
    pub(super) place: usize,
    pub(super) entry: Option<usize>,
    /// Block and byte.
    pub(super) at: (usize, usize),
}

/// A position in a prompt: the entry (what is pinned comes before all), block and byte.
pub(super) type PromptPosition = (Option<usize>, (usize, usize));

/// Where a slot is found in a prompt, by place, in the order of [`PlaceInPrompt::ALL`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Occurrences {
    /// The last position.
    pub(super) strong: [Option<PromptPosition>; 6],
    /// Where something else is said last, behind all that is strong.
    pub(super) changed: Option<Mention>,
    pub(super) unsure: [bool; 6],
    /// Where it is unsure last.
    pub(super) unsure_at: Option<Mention>,
}

impl Occurrences {
    pub(super) fn add(
        &mut self,
        place: usize,
        found: Match,
        position: PromptPosition,
        at: (usize, usize),
    ) {
        match found {
            Match::Kept | Match::Stated => {
                self.strong[place] = self.strong[place].max(Some(position));
                self.changed = None;
            }
            Match::Changed | Match::Overruled => {
                // What a prompt says later counts, where it is sure.
                if found == Match::Overruled {
                    self.strong = [None; 6];
                }
                let (entry, _) = position;
                self.changed = Some(Mention { place, entry, at });
            }
            Match::Unsure => {
                self.unsure[place] = true;
                self.unsure_at = Some(Mention { place, entry: position.0, at });
            }
        }
    }

    pub(super) fn is_strong(&self) -> bool {
        self.strong.iter().any(Option::is_some)
    }

    /// Whether it is in one of these places; `any` counts places where it is unsure.
    pub(super) fn is_in(&self, places: &[usize], any: bool) -> bool {
        places.iter().any(|at| self.strong[*at].is_some() || (any && self.unsure[*at]))
    }

    /// The last of these places.
    pub(super) fn last(&self, places: &[usize]) -> Option<Rank> {
        let ranks = places.iter().filter_map(|&place| {
            let position = self.strong[place]?;
            Some((position, place))
        });
        ranks.max()
    }
}
