//! The words beside a value: the rest of a longer one, a withdrawal, or another value that its key names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::anchors::tokens;
use super::lists::{LISTS, WordClass};
use super::nearby::is_set_aside;
use super::order::{ValueState, heading_above, standing};
use super::quantity::{is_same_quantity, quantities};
use super::sentence::{Sentence, alike, is_alike};
use super::words::{WordPlace, each_word, sentences, words_of};
use super::{BINDING_BYTES, Match, SearchBy, SoughtPart, SurvivalSlots, around};

/// The keys of what is searched for, by their words.
#[derive(Debug, Default)]
pub(super) struct KeyWords {
    /// By word, the targets whose key has it.
    by_word: BTreeMap<String, BTreeSet<usize>>,
    /// The values of all targets.
    values: BTreeSet<String>,
}

impl KeyWords {
    /// Of values with keys of several words: one word alone stands in many sentences.
    pub(super) fn of(targets: &[SoughtPart]) -> Self {
        let mut keys = Self::default();
        for (at, target) in targets.iter().enumerate() {
            if target.is_value() && target.key.len() > 1 {
                for word in &target.key {
                    keys.by_word.entry(word.clone()).or_default().insert(at);
                }
                keys.values.insert(target.value.clone());
            }
        }
        keys
    }
}

/// The form of an id or a plain number, by which others of its kind are known: its runs of letters and digits, and what
/// joins them.
fn form(value: &str) -> String {
    let mut form = String::new();
    for part in value.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let own = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        let digits = own.bytes().filter(u8::is_ascii_digit).count();
        form.push_str(match digits {
            _ if own.is_empty() => "",
            0 => "a",
            digits if digits == own.len() => "9",
            _ => "x",
        });
        form.push_str(&part[own.len()..]);
    }
    form
}

/// Whether both are ids of one form, or numbers of nearly as many digits.
fn is_of_form(value: &str, other: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit())
        && form(value) == form(other)
        && (value.len().abs_diff(other.len()) <= 1 || value.contains(char::is_alphabetic))
}

/// Values of a text in their order, and the words around them, each with the value that it names.
struct ValuesInText<'t> {
    text: &'t str,
    places: Vec<Range<usize>>,
    sentences: Vec<Range<usize>>,
    /// A word names the value of this index, or all where its sentence has none.
    words: Vec<(String, Option<usize>)>,
}

impl<'t> ValuesInText<'t> {
    /// In a sentence that begins with words, they name the value behind them; in one that begins with a value, that before
    /// them. The value of a word's own clause comes first.
    fn read(text: &'t str, mut places: Vec<Range<usize>>) -> Self {
        places.sort_by_key(|place| place.start);
        let mut said: Vec<(WordPlace, String)> = Vec::new();
        let mut own: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut clauses: BTreeSet<(usize, usize)> = BTreeSet::new();
        each_word(text, |word, at| {
            match places.iter().position(|place| place.contains(&at.start)) {
                Some(value) => {
                    own.entry(at.sentence).or_default().push(value);
                    clauses.insert((value, at.clause));
                }
                None => said.push((at, word.to_owned())),
            }
        });
        let leading: BTreeSet<usize> = said
            .iter()
            .filter(|(at, word)| {
                let first = own.get(&at.sentence).map(|own| places[own[0]].start);
                first.is_some_and(|first| at.start < first) && !LISTS.has(&[WordClass::Stop], word)
            })
            .map(|(at, _)| at.sentence)
            .collect();
        let words = said.into_iter().map(|(at, word)| {
            let values = own.get(&at.sentence).map_or(&[][..], Vec::as_slice);
            let split = values.partition_point(|value| places[*value].start < at.start);
            let mut pair = [values[..split].last(), values[split..].first()];
            if leading.contains(&at.sentence) {
                pair.reverse();
            }
            let mut sides = pair.into_iter().flatten();
            let mut beside = sides.clone();
            let owner = beside.find(|value| clauses.contains(&(**value, at.clause)));
            (word, owner.or_else(|| sides.next()).copied())
        });
        Self { text, words: words.collect(), places, sentences: sentences(text) }
    }

    fn value(&self, at: usize) -> &str {
        &self.text[self.places[at].clone()]
    }

    /// How many of these words name the value of this index.
    fn naming(&self, at: usize, key: &[String]) -> usize {
        let named = key.iter().filter(|known| {
            let mut words = self.words.iter();
            words
                .any(|(word, owner)| owner.is_none_or(|owner| owner == at) && is_alike(word, known))
        });
        named.count()
    }

    /// How many of these words are in its sentence, or in the heading above.
    fn headed(&self, at: usize, key: &[String]) -> usize {
        let own = self.sentence(at);
        let heading = heading_above(&self.text[..own.start]).unwrap_or_default();
        alike(key, &[words_of(&self.text[own]), words_of(heading)].concat())
    }

    /// Whether all of these words name it, and it does hold.
    fn is_named(&self, at: usize, key: &[String]) -> bool {
        self.naming(at, key) == key.len() && self.standing(at, true) != ValueState::Former
    }

    /// Whether it is named by a key that is said to be an older one: `the old port`.
    fn is_of_former(&self, at: usize, key: &[String]) -> bool {
        self.words.windows(2).any(|words| {
            let [(front, _), (word, owner)] = words else {
                return false;
            };
            *owner == Some(at)
                && LISTS.has(&[WordClass::FormerKey], front)
                && key.iter().any(|known| is_alike(word, known))
        })
    }

    /// Whether its sentence has another word in the place of one of the key: `the production port` for `the staging port`.
    /// The heading above may have the right one.
    fn is_of_other(&self, at: usize, key: &[String]) -> bool {
        let own = self.sentence(at);
        let behind = &self.text[self.places[at].end..own.end];
        let end = behind.find(';').map_or(own.end, |end| self.places[at].end + end);
        let sentence = Sentence::read(&self.text[own.start..end]);
        let known = Sentence::read(&key.join(" "));
        let mut gone = (1..key.len())
            .filter(|next| sentence.has_word(&key[*next]) && !sentence.has_word(&key[next - 1]));
        let heading = words_of(heading_above(&self.text[..own.start]).unwrap_or_default());
        gone.any(|next| {
            alike(&key[next - 1..next], &heading) == 0 && sentence.replaces_word(&known, next - 1)
        })
    }

    /// Whether it is not the value itself that is given, `over 12,500`, or not it alone: `12,500, or 900 at night`. What
    /// limits as the key does (`limit: under 5`) says nothing against it.
    fn is_shifted(&self, at: usize, key: &[String]) -> bool {
        let sentence = Sentence::read(&self.text[self.sentence(at)]);
        let value = Sentence::read(self.value(at));
        let limits = LISTS.cues("", key);
        let mut own = sentence.anchors.iter().filter(|own| value.names(own)).peekable();
        sentence.has_alternative(&value, None)
            || (own.peek().is_some()
                && own.all(|own| {
                    own.is_shifted && !limits.iter().any(|cue| Some(cue.class) == own.bound)
                }))
    }

    fn standing(&self, at: usize, is_one_of: bool) -> ValueState {
        let sentence = self.sentence(at);
        let first = self.before(sentence.start);
        let own = &self.places[first..self.before(sentence.end)];
        standing(self.text, &sentence, own, at - first, is_one_of)
    }

    /// The number of values before a byte.
    fn before(&self, byte: usize) -> usize {
        self.places.partition_point(|place| place.start < byte)
    }

    /// The sentence around a value, which may hold what ends others: `2.5`.
    fn sentence(&self, at: usize) -> Range<usize> {
        let place = &self.places[at];
        let begun = self.sentences.partition_point(|own| own.start <= place.start);
        let ended = self.sentences.partition_point(|own| own.end < place.end);
        let start = begun.checked_sub(1).map_or(0, |own| self.sentences[own].start);
        start..self.sentences.get(ended).map_or(self.text.len(), |own| own.end)
    }
}

impl SurvivalSlots {
    /// How a text written by a compaction holds a value that is bound there: taken back, or beside another value that its
    /// key names, it is another; where it is not clear which of them the key names, it is not known. `is_one_of` says that
    /// the text has other values of the same fact.
    pub(super) fn said(
        &self,
        text: &str,
        place: &Range<usize>,
        target: &SoughtPart,
        is_one_of: bool,
    ) -> Match {
        let (values, at) = self.beside(text, place, target);
        let standing = values.standing(at, is_one_of);
        match standing {
            ValueState::Former => return Match::Changed,
            ValueState::Unclear => return Match::Unsure,
            ValueState::Lapsed if target.lapses => return Match::Unsure,
            ValueState::Current | ValueState::Plain
                if target.lapses && is_set_aside(text, place.start, &target.key) =>
            {
                return Match::Unsure;
            }
            ValueState::Current | ValueState::Plain | ValueState::Lapsed => {}
        }
        let (key, named) = (&target.key, values.naming(at, &target.key));
        if target.search == SearchBy::Event || key.len() < 2 {
            return Match::Kept;
        }
        let is_plain = standing == ValueState::Plain;
        if is_plain && (values.is_of_former(at, key) || values.is_shifted(at, key)) {
            return Match::Unsure;
        }
        let mut others: Vec<usize> = (0..values.places.len()).collect();
        others.retain(|other| *other != at && !self.is_version(target, values.value(*other)));
        if named == key.len() {
            let own = values.headed(at, key);
            let nearer =
                own < key.len() && others.iter().any(|other| values.headed(*other, key) > own);
            let unsure = nearer || values.is_of_other(at, key);
            return if unsure { Match::Unsure } else { Match::Kept };
        }
        let sentence = values.sentence(at);
        let mut beside = others.iter().filter(|other| {
            sentence.contains(&values.places[**other].start) && values.naming(**other, key) > named
        });
        match () {
            () if others.iter().any(|other| values.is_named(*other, key)) => Match::Changed,
            () if standing == ValueState::Current => Match::Kept,
            () if beside.next().is_some() || values.is_of_other(at, key) => Match::Unsure,
            () => Match::Kept,
        }
    }

    /// Whether another value in the sentence is said to have taken the place of this one.
    pub(super) fn is_former(&self, text: &str, place: &Range<usize>, target: &SoughtPart) -> bool {
        let (values, at) = self.beside(text, place, target);
        values.standing(at, true) == ValueState::Former
    }

    /// The values around one, and which of them it is.
    fn beside<'t>(
        &self,
        text: &'t str,
        place: &Range<usize>,
        target: &SoughtPart,
    ) -> (ValuesInText<'t>, usize) {
        let (around, own) = around(text, place);
        let mut places = self.others(around, target);
        places.retain(|other| other.end <= own.start || own.end <= other.start);
        places.push(own.clone());
        let values = ValuesInText::read(around, places);
        let at = values.before(own.start);
        (values, at)
    }

    /// Values in a text that may be meant in place of one: of its form, or known ones.
    fn others(&self, text: &str, target: &SoughtPart) -> Vec<Range<usize>> {
        let mut measured = quantities(text);
        if let Some(own) = &target.quantity {
            measured.retain(|(_, other)| own.is_like(other) && !own.is_said_by(other));
            return measured.into_iter().map(|(place, _)| place).collect();
        }
        measured.retain(|(_, other)| !other.is_plain());
        let mut places = tokens(text);
        places.retain(|place| {
            let token = text[place.clone()].to_lowercase();
            let mut amounts = measured.iter().map(|(amount, _)| amount);
            token != target.value
                && (self.keys.values.contains(&token)
                    || target.rejected.contains(&token)
                    || (is_of_form(&target.value, &token)
                        && !amounts.any(|amount| amount.contains(&place.start))))
        });
        places
    }

    /// Whether a text is another value of the same fact.
    fn is_version(&self, target: &SoughtPart, value: &str) -> bool {
        let mut own = self.targets.iter().filter(|own| own.probe == target.probe);
        own.any(|own| own.value == value.to_lowercase() || is_same_quantity(&own.value, value))
    }

    /// The slots whose whole key names another value of the same form in a sentence that has no value of their fact, with
    /// the place of the last such sentence.
    pub(super) fn replaced(&self, text: &str) -> BTreeMap<usize, usize> {
        let mut found = BTreeMap::new();
        for place in sentences(text) {
            let end = text.floor_char_boundary(place.end.min(place.start + BINDING_BYTES));
            let sentence = &text[place.start..end];
            let mut said: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
            each_word(sentence, |word, _| {
                for target in self.keys.by_word.get(word).into_iter().flatten() {
                    said.entry(*target).or_default().insert(word.to_owned());
                }
            });
            for (target, words) in said {
                let target = &self.targets[target];
                if words.len() == target.key.len() && self.is_replaced(sentence, target) {
                    found.insert(target.slot, place.start);
                }
            }
        }
        found
    }

    fn is_replaced(&self, sentence: &str, target: &SoughtPart) -> bool {
        let places = self.others(sentence, target);
        if places.is_empty() || target.search == SearchBy::Event {
            return false;
        }
        if self.hits(sentence).into_iter().any(|(hit, _)| {
            let hit = &self.targets[hit];
            hit.probe == target.probe && hit.is_value()
        }) {
            return false;
        }
        let values = ValuesInText::read(sentence, places);
        (0..values.places.len()).any(|at| values.is_named(at, &target.key))
    }
}

/// Whether what stands at this place is a part of a longer id or number: `rq-4417-old`, `2.14.0-rc1`, `-600`, `3,000`.
pub(super) fn goes_on(text: &str, place: &Range<usize>) -> bool {
    let value = &text[place.clone()];
    let mut before = text[..place.start].chars().rev();
    let mut behind = text[place.end..].chars();
    let (first, last) = (value.chars().next(), value.chars().next_back());
    joins(value, first, [before.next(), before.next()], true)
        || joins(value, last, [behind.next(), behind.next()], false)
}

/// Whether a value is a number and a unit, and so an amount of another thing in front of `/s`.
fn is_amount(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_digit()) && value.ends_with(char::is_alphabetic)
}

/// Whether a value goes on beyond its end, in front or behind, over the two characters there.
fn joins(value: &str, end: Option<char>, beyond: [Option<char>; 2], is_front: bool) -> bool {
    let ([Some(joint), beyond], Some(end)) = (beyond, end) else {
        return false;
    };
    let longer = beyond.is_some_and(char::is_alphanumeric);
    end.is_alphanumeric()
        && match joint {
            '-' | '.' if longer => true,
            // A folder, where the value is a path itself.
            '/' => longer && (value.contains('/') || (!is_front && is_amount(value))),
            '@' => longer && !is_front,
            ',' => end.is_ascii_digit() && beyond.is_some_and(|c| c.is_ascii_digit()),
            // A sign; behind a blank or a line's begin it may be that of an item.
            '-' | '−' => end.is_ascii_digit() && is_front,
            _ => false,
        }
}
