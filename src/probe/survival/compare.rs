//! Whether two sentences that speak of one thing say the same of it: the same way round, and in the same order.

use std::ops::Range;

use super::anchors::{AnchorKind, TextAnchor};
use super::lists::{Cue, LISTS, WordClass};
use super::sentence::{DENIED_WITHIN, Sentence, alike, has_digit, is_alike};

/// The most words that stand in the place of another.
pub(super) const REPLACED_WITHIN: usize = 3;

/// Words behind `with` and `without` that say of what.
const OBJECT_WITHIN: usize = 4;

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
        let pairs = rule.turned_words(self);
        let [own, known] = [self.negations(content, &pairs), rule.negations(&[], &pairs)];
        let one_lost = own.count < known.count
            && (alike(content, &self.words) == content.len() || own.doubled < known.doubled);
        let one_added = own.doubled > known.doubled;
        let [denies, denied] = [own, known].map(|negations| negations.count > 0);
        if (denies && denied && (one_lost || one_added)) || self.crosses(rule) {
            return Polarity::Unclear;
        }
        let turning = pairs.iter().filter(|pair| rule.turns_same(self, pair));
        let turns = turning.count() + usize::from(denies != denied);
        let [same, turned, _] = self.bounds(rule);
        if turned > 0 && same > 0 {
            let even = turns.is_multiple_of(2);
            return if even { Polarity::Opposite } else { Polarity::Unclear };
        }
        if (turns + usize::from(turned > 0)).is_multiple_of(2) {
            return Polarity::Same;
        }
        // A ban may only be left out, and "only in a" is "not in b".
        let left_out = denied && !denies && !self.has_force();
        let limit_else = denies != denied
            && (self.adds(WordClass::Limit, rule) || rule.adds(WordClass::Limit, self));
        if left_out || limit_else { Polarity::Unclear } else { Polarity::Opposite }
    }

    /// Its negations, without those of an amount (`no more than 5`), without those of clauses about something else than
    /// these words, and without words of these pairs, which turn it already: `without` for `with`.
    fn negations(&self, content: &[String], pairs: &[[&str; 2]]) -> Negations {
        let bounds: Vec<&Cue> = self.cues.iter().filter(|cue| cue.class.is_bound()).collect();
        let forbids = self.cues.iter().filter(|cue| {
            cue.class == WordClass::Forbid
                && !pairs.iter().flatten().any(|word| *word == cue.text)
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

    /// Says of each number whether it is the most or the least, by its own words: those before it that no other such word
    /// parts from it, or those behind it in its clause. Entries without spaces are said of all numbers.
    pub(super) fn bound_numbers(&mut self) {
        let anchors = self.anchors.iter().enumerate();
        let numbers = anchors.filter(|(_, own)| own.kind == AnchorKind::Number);
        let mut places: Vec<(usize, usize)> =
            numbers.map(|(own, number)| (number.at, own)).collect();
        places.sort_unstable();
        let mut said: Vec<(usize, WordClass)> = Vec::new();
        for cue in self.cues.iter().filter(|cue| cue.class.is_bound()) {
            let class = if self.denies(cue) { cue.class.opposite() } else { cue.class };
            let bounded = if cue.at.is_some() { self.bounded(cue, &places) } else { &places };
            said.extend(bounded.iter().map(|(_, own)| (*own, class)));
        }
        for (at, own) in places {
            let mut classes = said.iter().filter(|(number, _)| *number == own);
            let first = classes.next().map(|(_, class)| *class);
            let bound = first.filter(|first| classes.all(|(_, class)| class == first));
            let mut beyond = self.cues.iter().filter(|cue| cue.class == WordClass::Beyond);
            let shifted = beyond.any(|cue| {
                cue.place().end == at && self.is_one_clause(at - 1, at) && !self.denies(cue)
            });
            let number = &mut self.anchors[own];
            number.is_shifted = shifted;
            number.bound = number.bound.or(bound);
        }
    }

    /// The number that a cue bounds, out of the numbers at these places, in their order.
    fn bounded<'n>(&self, cue: &Cue, numbers: &'n [(usize, usize)]) -> &'n [(usize, usize)] {
        let Range { start, end } = cue.place();
        let (before, behind) = numbers.split_at(numbers.partition_point(|(at, _)| *at < end));
        let next = behind.first().filter(|(at, _)| *at == end || self.is_one_clause(start, *at));
        let mut cues = self.cues.iter().filter(|cue| cue.class.is_bound());
        let own = next.filter(|(next, _)| {
            !cues.any(|cue| cue.at.is_some_and(|at| (end..*next).contains(&at)))
        });
        let last = before.last().filter(|(last, _)| self.is_one_clause(*last, start));
        own.or(last).or(next).map_or(&[], std::slice::from_ref)
    }

    /// Whether it has a word or a sign for the most or the least.
    pub(super) fn is_bounded(&self) -> bool {
        self.cues.iter().any(|cue| cue.class.is_bound())
            || self.anchors.iter().any(|anchor| anchor.bound.is_some())
    }

    /// How many numbers of a rule it bounds in the same way, in the other, and perhaps otherwise.
    pub(super) fn bounds(&self, rule: &Self) -> [usize; 3] {
        let mut counts = [0; 3];
        for known in rule.anchors.iter().filter(|own| own.kind == AnchorKind::Number) {
            let same = self.anchors.iter().filter(|own| own.is_same(known));
            let nearest = same.min_by_key(|own| (own.unit != known.unit, own.bound != known.bound));
            let Some(own) = nearest else { continue };
            match [own.bound, known.bound] {
                [None, None] => counts[2] += usize::from(own.is_shifted != known.is_shifted),
                [own, known] if own == known => counts[0] += 1,
                [Some(_), Some(_)] => counts[1] += 1,
                _ => counts[2] += 1,
            }
        }
        counts
    }

    /// Whether a number without a unit stands in it for one of a unit that another number has, or the other way round:
    /// `20 times in 5 minutes` for `5 times in 20 minutes`.
    pub(super) fn trades_units(&self, rule: &Self) -> bool {
        rule.anchors.iter().any(|known| {
            let mut same = self.anchors.iter().filter(|own| own.is_same(known)).peekable();
            same.peek().is_some()
                && same.all(|own| {
                    own.unit != known.unit && (self.measures(known) || rule.measures(own))
                })
        })
    }

    /// Whether it has a number of the unit of this one.
    fn measures(&self, number: &TextAnchor) -> bool {
        number.unit.is_some() && self.anchors.iter().any(|own| own.unit == number.unit)
    }

    /// Whether it has another number in place of one of a rule, for another case: `or 900 at night`. Such a number ends its
    /// clause or goes on with a place or a time; it is joined to what stands before, or begins a clause and goes on, or it
    /// is bounded as that of a rule which is said in other words. Of one that is said in its own it stands behind their end.
    pub(super) fn has_alternative(&self, rule: &Self, end: Option<usize>) -> bool {
        let first = end.unwrap_or(1);
        let mut numbers = self.others(rule).filter(|other| {
            other.kind == AnchorKind::Number && other.at >= first && !other.is_former
        });
        numbers.any(|other| {
            let mut known = rule.anchors.iter().filter(|own| {
                own.kind == AnchorKind::Number
                    && (own.is_like(other) || own.unit.is_none() || other.unit.is_none())
            });
            let last = other.at - 1;
            let behind = self.words.iter().skip(other.at + 1);
            // `20,000` is two words.
            let units = behind.take_while(|word| has_digit(word) || other.counts(word));
            let ends = other.at + 1 + units.count();
            let next = self.words.get(ends).filter(|_| self.is_one_clause(other.at, ends));
            let goes_on = next.map(|word| LISTS.has(&[WordClass::Narrow], word));
            let joined = LISTS.has(&[WordClass::And, WordClass::Either], &self.words[last])
                || (goes_on.is_some() && !self.is_one_clause(last, other.at));
            goes_on.unwrap_or(true)
                && known.any(|own| {
                    joined || (end.is_none() && other.bound.is_some() && own.bound == other.bound)
                })
        })
    }

    /// The words of which another sentence has the opposite, each with that: before and after.
    fn turned_words(&self, other: &Self) -> Vec<[&'static str; 2]> {
        let pairs = LISTS.opposites();
        pairs
            .filter(|[one, opposite]| self.has_only(one, opposite) && other.has_only(opposite, one))
            .collect()
    }

    /// Whether the words of such a pair turn the same thing round: `with pytest` is not turned by `without mocks`.
    fn turns_same(&self, other: &Self, [one, opposite]: &[&str; 2]) -> bool {
        let denies = [one, opposite].iter().any(|word| LISTS.has(&[WordClass::Deny], word));
        !denies || alike(&self.behind(one), &other.behind(opposite)) > 0
    }

    /// The next words behind the first of these, without those that say nothing.
    fn behind(&self, word: &str) -> Vec<String> {
        let words = self.words.iter().skip_while(|own| *own != word).skip(1).take(OBJECT_WITHIN);
        words.filter(|word| !LISTS.has(&[WordClass::Stop], word)).cloned().collect()
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
            // A rule is short: most words are not in it.
            let place = only_place(&rule.words, word).filter(|_| {
                !self.is_cue(own) && !has_digit(word) && only_place(&self.words, word).is_some()
            });
            let Some(there) = place else { continue };
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

    /// Whether the thing that a rule says of all has another word right before it in its clause: `paper forms` for `all forms`,
    /// and not `style: forms`.
    pub(super) fn parts_noun(&self, rule: &Self, all: usize) -> bool {
        let mut nouns = rule.words.iter().skip(all + 1);
        let noun = nouns.find(|word| !LISTS.has(&[WordClass::Stop], word));
        let Some(noun) = noun else { return true };
        (1..self.words.len()).filter(|at| is_alike(&self.words[*at], noun)).any(|at| {
            let before = (0..at).rev().find(|at| !LISTS.has(&[WordClass::Stop], &self.words[*at]));
            before.is_some_and(|before| {
                self.is_one_clause(before, at)
                    && !self.is_empty(before)
                    && alike(&self.words[before..=before], &rule.words) == 0
            })
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
    let mut places = (0..words.len()).filter(|at| is_alike(&words[*at], word));
    let first = places.next()?;
    places.next().is_none().then_some(first)
}
