//! Whether two sentences that speak of one thing say the same of it: the same way round, and in the same order.

use super::anchors::{AnchorKind, TextAnchor};
use super::lists::{Cue, LISTS, WordClass};
use super::sentence::{DENIED_WITHIN, Sentence, alike, has_digit, is_alike};

/// The most words that stand in the place of another.
pub(super) const REPLACED_WITHIN: usize = 3;

/// Which way round a sentence says a thing, seen from a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Polarity {
    Same,
    Opposite,
    Unclear,
}

/// The negations of a sentence, and how many of them share a clause with another.
#[derive(Debug, Clone, Copy)]
struct Negations {
    count: usize,
    doubled: usize,
}

/// A word that is in two sentences, once in each, and where it is there: before a certain word or behind it.
#[derive(Debug, Clone, Copy)]
struct Sides {
    is_before: bool,
    was_before: bool,
    is_content: bool,
}

impl Sentence {
    /// The way round in which it says what a rule with this content says. A negation turns it, and so does each word for
    /// which the other has the opposite.
    pub(super) fn polarity(&self, rule: &Self, content: &[String]) -> Polarity {
        let [own, known] = [self.negations(content), rule.negations(&[])];
        let one_lost = own.count < known.count
            && (alike(content, &self.words) == content.len() || own.doubled < known.doubled);
        let one_added = own.doubled > known.doubled;
        let [denies, denied] = [own, known].map(|negations| negations.count > 0);
        if (denies && denied && (one_lost || one_added)) || self.crosses(rule) {
            return Polarity::Unclear;
        }
        let turns = rule.turned_words(self)
            + usize::from(self.bound().zip(rule.bound()).is_some_and(|(a, b)| a != b))
            + usize::from(denies != denied);
        if turns.is_multiple_of(2) {
            return Polarity::Same;
        }
        // A ban may only be left out, and "only in a" is "not in b".
        let left_out = denied && !denies && !self.has_force();
        let limit_else = denies != denied
            && (self.adds(WordClass::Limit, rule) || rule.adds(WordClass::Limit, self));
        if left_out || limit_else { Polarity::Unclear } else { Polarity::Opposite }
    }

    /// Its negations, without those of an amount (`no more than 5`), and without those of clauses about something else
    /// than these words.
    fn negations(&self, content: &[String]) -> Negations {
        let bounds: Vec<&Cue> = self.cues.iter().filter(|cue| cue.class.is_bound()).collect();
        let forbids = self.cues.iter().filter(|cue| {
            cue.class == WordClass::Forbid
                && !bounds.iter().any(|bound| cue.is_right_before(bound, DENIED_WITHIN))
        });
        let places = forbids.map(|cue| cue.at.map(|at| self.clauses[at]));
        let mut clauses: Vec<Option<usize>> = places.collect();
        clauses.retain(|clause| clause.is_none_or(|clause| self.concerns(clause, content)));
        // Entries without spaces are parts of one another.
        clauses.dedup_by(|one, other| one.is_none() && other.is_none());
        let count = clauses.len();
        clauses.dedup();
        Negations { count, doubled: count - clauses.len() }
    }

    /// Whether a clause has one of these words, or says nothing by itself.
    pub(super) fn concerns(&self, clause: usize, content: &[String]) -> bool {
        let places = 0..self.words.len();
        let own = places.filter(|at| self.clauses[*at] == clause && !self.is_empty(*at));
        let said: Vec<String> = own.map(|at| self.words[at].clone()).collect();
        content.is_empty() || said.is_empty() || alike(&said, content) > 0
    }

    /// Whether its amounts are the most that is allowed, or the least; `None` where it has neither, or both.
    pub(super) fn bound(&self) -> Option<WordClass> {
        let words =
            self.cues.iter().filter(|cue| cue.class.is_bound()).map(|cue| match cue.class {
                WordClass::Upper if self.denies(cue) => WordClass::Lower,
                WordClass::Lower if self.denies(cue) => WordClass::Upper,
                class => class,
            });
        let signs = self.anchors.iter().filter_map(|anchor| anchor.bound);
        let mut bounds = words.chain(signs);
        let first = bounds.next()?;
        bounds.all(|bound| bound == first).then_some(first)
    }

    /// For how many words of it another sentence has the opposite: before for after.
    fn turned_words(&self, other: &Self) -> usize {
        let pairs = LISTS.opposites();
        pairs
            .filter(|[one, opposite]| self.has_only(one, opposite) && other.has_only(opposite, one))
            .count()
    }

    fn has_only(&self, one: &str, other: &str) -> bool {
        self.words.iter().any(|word| word == one) && !self.words.iter().any(|word| word == other)
    }

    /// Whether two words of a rule change sides at a word that parts it: `a and not b` for `b and not a`.
    fn crosses(&self, rule: &Self) -> bool {
        let known = rule.dividers();
        self.dividers().iter().any(|(kind, at)| {
            let same = known.iter().find(|(known, _)| known == kind);
            same.is_some_and(|(_, known)| self.swaps(*at, rule, *known))
        })
    }

    /// The words that part it, of those that it has once: those that forbid are one.
    fn dividers(&self) -> Vec<(&str, usize)> {
        let mut found: Vec<(&str, usize)> = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            if self.cues.iter().any(|cue| cue.class == WordClass::Forbid && cue.at == Some(at)) {
                found.push(("", at));
            } else if has_digit(word) || LISTS.has(&[WordClass::Divide], word) {
                found.push((word, at));
            }
        }
        let kinds: Vec<&str> = found.iter().map(|(kind, _)| *kind).collect();
        found.retain(|(kind, _)| kinds.iter().filter(|own| *own == kind).count() == 1);
        found
    }

    /// Whether a word is before this place and behind that of a rule, and another the other way round.
    fn swaps(&self, at: usize, rule: &Self, known: usize) -> bool {
        let mut moved: Vec<Sides> = Vec::new();
        for (own, word) in self.words.iter().enumerate() {
            let places = only_place(&self.words, word).and(only_place(&rule.words, word));
            let Some(there) = places.filter(|_| !self.is_cue(own)) else {
                continue;
            };
            moved.push(Sides {
                is_before: own < at,
                was_before: there < known,
                is_content: !LISTS.has(&[WordClass::Stop], word),
            });
        }
        moved.retain(|word| word.is_before != word.was_before);
        moved.iter().any(|word| word.is_before)
            && moved.iter().any(|word| word.was_before)
            && moved.iter().any(|word| word.is_content)
    }

    /// Whether it has two anchors of one kind in another order than a rule.
    pub(super) fn reorders(&self, rule: &Self) -> bool {
        let mut places: Vec<(&TextAnchor, usize)> = Vec::new();
        for known in rule.anchors.iter().filter(|own| own.kind != AnchorKind::Name) {
            let place = self.anchors.iter().position(|own| own.is_same(known));
            places.extend(place.map(|place| (known, place)));
        }
        places.iter().enumerate().any(|(at, (one, first))| {
            places[at + 1..].iter().any(|(other, then)| one.is_like(other) && then < first)
        })
    }

    /// Whether it has another word between two words of a rule in place of the one at `gone`: `mails to clients` for
    /// `mails to buyers`. The ends of clauses count as words.
    pub(super) fn replaces_word(&self, rule: &Self, gone: usize) -> bool {
        let known = &rule.words;
        let from = gone.saturating_sub(REPLACED_WITHIN);
        let to = known.len().min(gone + 1 + REPLACED_WITHIN);
        let before = known[from..gone].iter().rfind(|word| self.has_word(word));
        let behind = known[gone + 1..to].iter().find(|word| self.has_word(word));
        if before.is_none() && behind.is_none() {
            return false;
        }
        let starts = (0..self.words.len()).filter(|at| match before {
            Some(before) => *at > 0 && is_alike(&self.words[at - 1], before),
            None => *at == 0 || self.is_clause_end(*at),
        });
        let mut gaps = starts.flat_map(|at| (1..=REPLACED_WITHIN).map(move |count| at..at + count));
        gaps.any(|mut gap| {
            let closes = match (behind, self.words.get(gap.end)) {
                (Some(behind), Some(word)) => is_alike(word, behind),
                (Some(_), None) => false,
                (None, _) => self.is_clause_end(gap.end),
            };
            closes
                && gap
                    .clone()
                    .all(|at| self.is_empty(at) || alike(&self.words[at..=at], known) == 0)
                && gap.any(|at| !self.is_empty(at) && !has_digit(&self.words[at]))
        })
    }

    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|own| is_alike(own, word))
    }

    /// Whether a clause ends before the word at this place.
    fn is_clause_end(&self, at: usize) -> bool {
        at == self.words.len()
            || (at < self.words.len() && self.clauses[at] != self.clauses[at - 1])
    }
}

/// Where a word is, if it is there once.
fn only_place(words: &[String], word: &str) -> Option<usize> {
    let mut places = (0..words.len()).filter(|at| words[*at] == word);
    let first = places.next()?;
    places.next().is_none().then_some(first)
}
