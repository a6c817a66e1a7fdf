//! Sentences as rules are compared by them: words, clauses, words of a list, and what is exact.

use std::collections::BTreeSet;

use super::anchors::{AnchorKind, TextAnchor, anchors, exact, tokens};
use super::lists::{Cue, LISTS, WordClass};
use super::quantity::DATE;
use super::rules::FORCES;
use super::words::{each_word, words_of};
use crate::script::first_chars;

/// Words are alike where so many letters, and so many tenths of the longer one, begin the same: `delete`, `deleting`; or
/// where one begins the other and has more letters, or the other only an ending more: `indent`, `indentation`.
const ALIKE_LETTERS: usize = 4;
const ALIKE_TENTHS: usize = 6;

/// Letters of an ending: `edit`, `editing`.
const LONGEST_ENDING: usize = 3;

/// Content words of a sentence that are looked at.
const MOST_WORDS: usize = 64;

/// Words between a negation and what it denies: `never really acceptable`.
pub(super) const DENIED_WITHIN: usize = 2;

/// Words of a clause in front that only says where or when.
const FRONT_WORDS: usize = 4;

/// A sentence, or a part of a rule, read.
#[derive(Debug)]
pub(super) struct Sentence {
    pub(super) words: Vec<String>,
    /// The number of the clause of each word.
    pub(super) clauses: Vec<usize>,
    pub(super) cues: Vec<Cue>,
    pub(super) anchors: Vec<TextAnchor>,
    /// Ids, paths and other words as they are written, each as one.
    exact: Vec<String>,
    /// The number of that of each word.
    tokens: Vec<Option<usize>>,
    /// The sign that parts each word from the one before.
    signs: Vec<Option<char>>,
    is_question: bool,
    /// Whether its language has lists.
    pub(super) is_known: bool,
}

impl Sentence {
    pub(super) fn read(text: &str) -> Self {
        let (mut words, mut clauses, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let (mut signs, mut starts, mut last) = (Vec::new(), Vec::new(), 0);
        let places = tokens(text);
        each_word(text, |word, place| {
            signs.push(sign(&text[last..place.start]));
            last = place.start;
            starts.push(last);
            words.push(word.to_owned());
            clauses.push(place.clause);
            let token = places.partition_point(|token| token.end <= place.start);
            let inside = places.get(token).is_some_and(|token| token.start <= place.start);
            owners.push(inside.then_some(token));
        });
        let mut read = Self {
            is_known: LISTS.know(text, &words),
            cues: LISTS.cues(text, &words),
            words,
            clauses,
            anchors: anchors(text, &starts),
            exact: exact(text, &places),
            tokens: owners,
            is_question: sign(&text[last..]).is_some_and(|sign| matches!(sign, '?' | '？')),
            signs,
        };
        // The month of May allows nothing.
        read.cues.retain(|cue| {
            let mut dates = read.anchors.iter().filter(|own| own.unit.as_deref() == Some(DATE));
            !dates.any(|date| {
                let end = date.at + words_of(&date.written).len();
                cue.at.is_some_and(|at| (date.at..end).contains(&at))
            })
        });
        read.bound_numbers();
        read
    }

    /// Its distinct words that say what it is about: they are no cues, and in none of these anchors.
    pub(super) fn content(&self, anchors: &[TextAnchor]) -> Vec<String> {
        let exact = exact_words(anchors.iter());
        let mut content: Vec<String> = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            if !self.is_cue(at)
                && !self.is_of_cue(word)
                && !has_digit(word)
                && !exact.contains(word)
                && !LISTS.has(&[WordClass::Stop, WordClass::Numbers, WordClass::Powers], word)
                && !anchors.iter().any(|anchor| anchor.counts(word))
                && !content.contains(word)
            {
                content.push(word.clone());
            }
        }
        content.truncate(MOST_WORDS);
        content
    }

    /// Whether what it says of a rule with this content may hold less far than that: it asks, or says when or where.
    pub(super) fn is_narrowed(&self, rule: &Self, content: &[String]) -> bool {
        let mut begins = self.new_cues(WordClass::Narrow, rule);
        let mut conditions = self.new_cues(WordClass::Restrict, rule);
        (self.is_question && !rule.is_question)
            || self.compounds(rule, content)
            || (!rule.has(WordClass::Forbid) && self.widens(rule))
            || begins.any(|cue| cue.at == Some(0) && self.is_fronted(content))
            || conditions.any(|cue| cue.at.is_none_or(|at| self.bears_on(at, content)))
    }

    /// Whether it has something else beside what is exact in a rule: `German or English`.
    fn widens(&self, rule: &Self) -> bool {
        let exact = exact_words(rule.anchors.iter());
        let others = exact_words(self.others(rule));
        self.words.windows(3).any(|words| {
            let [one, between, other] = [0, 1, 2].map(|at| &words[at]);
            let either = LISTS.has(&[WordClass::Either], between);
            let and = LISTS.has(&[WordClass::And], between);
            let new = others.contains(one) || others.contains(other);
            exact.contains(one) != exact.contains(other)
                && (either || (and && new))
                && !holds(&rule.words, words)
        })
    }

    /// Whether the clause of the word at this place has words of this content, or a comma parts it from one that has.
    fn bears_on(&self, at: usize, content: &[String]) -> bool {
        let start = self.clauses.partition_point(|other| *other < self.clauses[at]);
        self.concerns(self.clauses[at], content)
            || self.is_before(at, content)
            || (start > 0
                && self.is_joined(start)
                && self.concerns(self.clauses[start - 1], content))
    }

    /// Whether it has none, and a comma parts it from the next one, which has.
    fn is_before(&self, at: usize, content: &[String]) -> bool {
        let next = self.clauses.partition_point(|other| *other <= self.clauses[at]);
        !self.concerns(self.clauses[at], content)
            && self.is_joined(next)
            && self.concerns(self.clauses[next], content)
    }

    /// Whether its first clause is a few words that say nothing of this content, as the next one does: `On Fridays, …`.
    fn is_fronted(&self, content: &[String]) -> bool {
        let next = self.clauses.partition_point(|other| *other == self.clauses[0]);
        next <= FRONT_WORDS && self.is_before(0, content)
    }

    /// Whether a word of this content is there as the end of a longer one with a word that a rule has not: `force-push`.
    fn compounds(&self, rule: &Self, content: &[String]) -> bool {
        (1..self.words.len()).any(|at| {
            let [front, own] = [at - 1, at].map(|at| &self.words[at..=at]);
            let token = self.tokens[at].filter(|token| self.tokens[at - 1] == Some(*token));
            token.is_some_and(|token| {
                !self.exact[token].contains(|c: char| !c.is_alphabetic() && c != '-')
            }) && alike(own, content) > 0
                && alike(front, &rule.words) == 0
        })
    }

    fn is_joined(&self, at: usize) -> bool {
        matches!(self.signs.get(at), Some(Some(',' | '，' | '(' | '—')))
    }

    /// Whether what is said before the word at this place goes on there: no sign parts them, and no word that begins
    /// something else; or behind a comma it says where.
    pub(super) fn goes_on(&self, at: usize) -> bool {
        let mut cues = self.cues.iter().filter(|cue| cue.at == Some(at));
        match self.signs.get(at) {
            Some(None) => !cues.any(|cue| matches!(cue.class, WordClass::Along | WordClass::Whole)),
            Some(Some(',')) => cues.any(|cue| cue.class == WordClass::Narrow),
            _ => false,
        }
    }

    pub(super) fn has(&self, class: WordClass) -> bool {
        self.cues.iter().any(|cue| cue.class == class)
    }

    /// Whether it forbids, limits or demands.
    pub(super) fn has_force(&self) -> bool {
        self.cues.iter().any(|cue| FORCES.contains(&cue.class))
    }

    /// Whether a cue of this class is there, and not in the rule.
    pub(super) fn adds(&self, class: WordClass, rule: &Self) -> bool {
        self.new_cues(class, rule).next().is_some()
    }

    pub(super) fn new_cues(&self, class: WordClass, rule: &Self) -> impl Iterator<Item = &Cue> {
        self.cues.iter().filter(move |cue| cue.class == class).filter(|cue| !rule.says(cue))
    }

    /// Whether it has this cue, or the word in another form.
    pub(super) fn says(&self, cue: &Cue) -> bool {
        self.cues.iter().any(|known| known.text == cue.text)
            || (cue.is_word() && self.words.iter().any(|word| is_alike(word, &cue.text)))
    }

    /// Whether a word is one of a list, and says nothing of what the sentence is about.
    pub(super) fn is_empty(&self, at: usize) -> bool {
        LISTS.has(&[WordClass::Stop], &self.words[at]) || self.is_cue(at)
    }

    /// Whether two characters without a space are partly a cue.
    fn is_of_cue(&self, word: &str) -> bool {
        let mut unspaced = self.cues.iter().filter(|cue| cue.at.is_none());
        unspaced.any(|cue| word.contains(|c| cue.text.contains(c)))
    }

    pub(super) fn is_cue(&self, at: usize) -> bool {
        self.cues.iter().any(|cue| {
            cue.at == Some(at) && !matches!(cue.class, WordClass::Beyond | WordClass::Lapsed)
        })
    }

    /// Whether no comma or the like parts these words.
    pub(super) fn is_one_clause(&self, one: usize, other: usize) -> bool {
        self.clauses.get(one) == self.clauses.get(other)
    }

    /// Whether it has a number of this unit.
    pub(super) fn is_counted(&self, unit: &str) -> bool {
        self.anchors.iter().any(|anchor| anchor.counts(unit))
    }

    /// Whether a negation stands right before it.
    pub(super) fn denies(&self, denied: &Cue) -> bool {
        let mut negations = self.cues.iter().filter(|cue| cue.class == WordClass::Deny);
        negations.any(|cue| cue.is_right_before(denied, DENIED_WITHIN))
    }

    pub(super) fn names(&self, anchor: &TextAnchor) -> bool {
        let mut own = self.anchors.iter();
        own.any(|own| own.is_same(anchor) && (anchor.is_former || !own.is_former))
            || (anchor.kind != AnchorKind::Number && self.exact.contains(&anchor.text))
    }

    /// Its anchors that a rule has not.
    pub(super) fn others(&self, rule: &Self) -> impl Iterator<Item = &TextAnchor> {
        let anchors = self.anchors.iter();
        anchors.filter(|own| !rule.anchors.iter().any(|known| known.is_same(own)))
    }

    /// Where it has the words of a rule in a row, which are no part of a longer id, and no amount of another unit.
    pub(super) fn place_of(&self, rule: &Self) -> Option<usize> {
        let at = position(&self.words, &rule.words)?;
        let cut = self.is_inside_id(at) || self.is_inside_id(at + rule.words.len());
        let mut missing = rule.anchors.iter().filter(|own| !self.names(own));
        let next = self.signs.get(at + rule.words.len()).copied().flatten();
        let arrow = next.is_some_and(|sign| "→⇒>=".contains(sign));
        // In another unit, before an arrow or a newer amount, or joined by other signs: `16.9` for `16:9`.
        let otherwise = missing.any(|own| {
            self.anchors.iter().any(|other| {
                own.is_in_other_unit(other)
                    || (other.is_same(own) && (arrow || own.unit.is_some()))
                    || (own.kind == AnchorKind::Id
                        && other.at == at + own.at
                        && !other.text.starts_with(&own.text)
                        && !own.text.starts_with(&other.text))
            })
        });
        let [_, turned, unclear] = self.bounds(rule);
        (!cut && !otherwise && turned + unclear == 0).then_some(at)
    }

    /// Whether an id goes on from the word before this one.
    fn is_inside_id(&self, at: usize) -> bool {
        let token = self.tokens.get(at).copied().flatten();
        at > 0 && token.is_some() && token == self.tokens[at - 1]
    }
}

fn exact_words<'a>(anchors: impl Iterator<Item = &'a TextAnchor>) -> BTreeSet<String> {
    anchors.flat_map(|anchor| words_of(&anchor.written)).collect()
}

/// The first sign in a text that parts words: marks of emphasis and what joins words do not.
fn sign(text: &str) -> Option<char> {
    let mut others = text.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace());
    let dash = text.contains(" -").then_some('-');
    others.find(|c| !"'’*_`/-".contains(*c)).or(dash)
}

pub(crate) fn has_digit(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit())
}

/// Whether these words stand among those, in a row.
pub(super) fn holds(all: &[String], words: &[String]) -> bool {
    position(all, words).is_some()
}

/// Where they do.
pub(super) fn position(all: &[String], words: &[String]) -> Option<usize> {
    all.windows(words.len().max(1)).position(|own| own == words)
}

/// Whether one of these words begins as another does.
pub(super) fn begins_in(words: &[String], other: &str) -> bool {
    words.iter().any(|word| letters(word) == letters(other))
}

/// How many of these words are like one of those.
pub(super) fn alike(words: &[String], others: &[String]) -> usize {
    words.iter().filter(|word| others.iter().any(|other| is_alike(word, other))).count()
}

/// The letters that all words which are alike have in common.
fn letters(word: &str) -> &str {
    first_chars(word, ALIKE_LETTERS)
}

/// Whether a word is another one and an ending.
fn lengthens(long: &str, stem: &str) -> bool {
    let ending = long.strip_prefix(stem).map(str::len);
    let longest = match stem.len() {
        ALIKE_LETTERS => LONGEST_ENDING,
        letters if letters > ALIKE_LETTERS => usize::MAX,
        _ => 0,
    };
    ending.is_some_and(|ending| ending <= longest)
}

pub(super) fn is_alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let [short, long] = if one.len() < other.len() { [one, other] } else { [other, one] };
    // `merge`, `merging`; `retry`, `retries`.
    let stem = short.strip_suffix(['e', 'y']).unwrap_or(short);
    if lengthens(long, short) || lengthens(long, stem) {
        return true;
    }
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    common >= ALIKE_LETTERS
        && 10 * common >= ALIKE_TENTHS * one.chars().count().max(other.chars().count())
}
