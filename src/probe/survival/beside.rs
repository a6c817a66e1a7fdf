//! What stands beside a value: more of a longer one, a denial, or the key of another value.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Match, Search, Survival, Target, around, order, words};

/// The keys of what is searched for, by their words.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// By word, the probes whose key has it.
    probes: BTreeMap<String, BTreeSet<usize>>,
    /// By probe, the words of its key.
    words: BTreeMap<usize, BTreeSet<String>>,
}

impl Keys {
    /// Of values with keys of several words: one word alone stands in many sentences.
    pub(super) fn of(targets: &[Target]) -> Self {
        let mut keys = Self::default();
        let values = targets.iter().filter(|target| {
            let is_value = matches!(
                target.search,
                Search::Value | Search::Event | Search::Version | Search::Count
            );
            is_value && target.key.len() > 1
        });
        for target in values {
            for word in &target.key {
                let known = keys.probes.entry(word.clone()).or_default();
                known.insert(target.probe);
            }
            let words = keys.words.entry(target.probe).or_default();
            words.extend(target.key.iter().cloned());
        }
        keys
    }
}

impl Survival {
    /// How a text holds a bound value, by the sentence around it: denied there, or beside the key of another value, it is not
    /// known to be the key's own; taken back, it is another.
    pub(super) fn said(&self, text: &str, place: &Range<usize>, target: &Target) -> Match {
        let (around, value) = around(text, place);
        if let Some(found) = order::taken_back(around, &value) {
            return found;
        }
        // The words of keys in its sentence: how many words they are away from it.
        let mut own_place: Option<words::Position> = None;
        let mut said: Vec<(String, words::Position)> = Vec::new();
        words::each_word(around, |word, at| {
            if value.contains(&at.start) {
                own_place.get_or_insert(at);
            } else if self.keys.probes.contains_key(word) {
                said.push((word.to_owned(), at));
            }
        });
        let Some(from) = own_place else {
            return Match::Bound;
        };
        said.retain(|(_, at)| at.sentence == from.sentence);
        let own: BTreeSet<&String> = target.key.iter().collect();
        let others: BTreeSet<usize> = said
            .iter()
            .flat_map(|(word, _)| &self.keys.probes[word])
            .copied()
            .filter(|other| *other != target.probe)
            .collect();
        let is_anothers = others.into_iter().any(|other| {
            let key: BTreeSet<&String> = self.keys.words[&other].iter().collect();
            let is_whole = key
                .iter()
                .all(|word| said.iter().any(|(said, _)| said == *word));
            // Only words that the two do not share tell them apart.
            let [ours, theirs] = [&own - &key, &key - &own];
            if !is_whole || ours.is_empty() || theirs.is_empty() {
                return false;
            }
            let [own_before, own_behind] =
                [true, false].map(|side| nearest(&said, &ours, from, side));
            let [before, behind] = [true, false].map(|side| nearest(&said, &theirs, from, side));
            match before {
                Some(before) => {
                    own_before.is_none_or(|own| before < own)
                        && own_behind.is_none_or(|own| own >= before)
                }
                None => {
                    own_before.is_none()
                        && own_behind.is_none_or(|own| behind.is_some_and(|at| at < own))
                }
            }
        });
        if is_anothers {
            Match::Unbound
        } else {
            Match::Bound
        }
    }
}

/// How many clauses and words the nearest of these words is away from a place, before it or behind.
fn nearest(
    said: &[(String, words::Position)],
    words: &BTreeSet<&String>,
    from: words::Position,
    is_before: bool,
) -> Option<(usize, usize)> {
    let places = said
        .iter()
        .filter(|(word, at)| words.contains(word) && (at.word < from.word) == is_before);
    let away = places.map(|(_, at)| {
        let clauses = at.clause.abs_diff(from.clause);
        (clauses, at.word.abs_diff(from.word))
    });
    away.min()
}

/// Whether what stands at this place is a part of a longer id or number: `rq-4417-old`, `2.14.0-rc1`, `-600`, `3,000`.
pub(super) fn goes_on(text: &str, place: &Range<usize>) -> bool {
    let value = &text[place.clone()];
    let mut before = text[..place.start].chars().rev();
    let mut behind = text[place.end..].chars();
    let before = [before.next(), before.next()];
    joins(value, value.chars().next(), before, true)
        || joins(
            value,
            value.chars().next_back(),
            [behind.next(), behind.next()],
            false,
        )
}

/// Whether a value goes on beyond its end, in front or behind, over the two characters there.
fn joins(value: &str, end: Option<char>, beyond: [Option<char>; 2], is_front: bool) -> bool {
    let ([Some(joint), beyond], Some(end)) = (beyond, end) else {
        return false;
    };
    let is_on = beyond.is_some_and(char::is_alphanumeric);
    end.is_alphanumeric()
        && match joint {
            '-' | '.' if is_on => true,
            // A folder, where the value is a path itself.
            '/' => is_on && value.contains('/'),
            '@' => is_on && !is_front,
            ',' => end.is_ascii_digit() && beyond.is_some_and(|c| c.is_ascii_digit()),
            // A sign; behind a blank or a line's begin it may be that of an item.
            '-' | '−' => end.is_ascii_digit() && is_front,
            _ => false,
        }
}
