//! Rules that the user set: whether a sentence still says one, by its anchors and its force.
//!
//! A rule has a *key* (what it is about), *anchors* (numbers, ids, paths, names: exact by nature) and a *force* (it
//! forbids, limits or demands). A sentence that has half of the key's words speaks of the rule: with all anchors and a
//! word of the same force it keeps it; with another value, a weaker word or a revoking one it changes it; else it is not
//! known. The later sentence decides. Nothing is guessed, and the words are data: `words.toml`.

use std::collections::BTreeSet;

use super::Match;
use super::anchors::{Anchor, AnchorKind, anchors};
use super::lists::{Class, Cue, LISTS};
use super::words::{each_word, sentences, words_of};
use crate::script::first_chars;

/// Words are alike where so many letters, and so many tenths of the longer one, begin the same: `delete`, `deleting`; or
/// where one begins the other and has more letters, or the other only an ending more: `indent`, `indentation`.
const ALIKE_LETTERS: usize = 4;
const ALIKE_TENTHS: usize = 6;

/// Letters of an ending: `edit`, `editing`.
const LONGEST_ENDING: usize = 3;

/// Content words of a rule that are looked at.
const MOST_WORDS: usize = 64;

/// Bytes of a sentence that are looked at: a minified file is one line of megabytes.
const LONGEST: usize = 2_048;

/// Words between a negation and what it denies: `never really acceptable`.
const DENIED_WITHIN: usize = 2;

/// Words in front of a rule's own words, and behind them, in which they are taken back: `the user withdrew the rule to …`,
/// `… is no longer needed`.
const TAKEN_BACK_WITHIN: [usize; 2] = [5, 3];

/// The classes that a rule itself may have, and a sentence that keeps it must have.
const FORCES: [Class; 3] = [Class::Forbid, Class::Limit, Class::Demand];

/// What two sentences that say the same rule have in common: the classes of their force, and their anchors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Marks {
    forces: BTreeSet<Class>,
    pub(crate) anchors: BTreeSet<String>,
}

impl Marks {
    pub(crate) fn has_force(&self) -> bool {
        !self.forces.is_empty()
    }

    /// Whether it forbids, and neither limits nor demands: no condition may lift it.
    pub(crate) fn only_forbids(&self) -> bool {
        self.forces.iter().eq([&Class::Forbid])
    }

    /// Both anchors where all marks but one anchor are the same.
    pub(crate) fn but_one<'m>(&'m self, other: &'m Self) -> Option<[&'m String; 2]> {
        let changed: Vec<&String> = self.anchors.symmetric_difference(&other.anchors).collect();
        let same = self.forces == other.forces && self.anchors.len() == other.anchors.len();
        changed.try_into().ok().filter(|_| same)
    }
}

/// The force and the anchors of a sentence.
pub(crate) fn marks(sentence: &str) -> Marks {
    let read = Sentence::read(sentence);
    Marks {
        forces: FORCES
            .into_iter()
            .filter(|class| read.has(*class))
            .collect(),
        anchors: read.anchors.into_iter().map(|anchor| anchor.text).collect(),
    }
}

/// How a sentence that has a rule's own words holds it.
pub(super) fn stated(sentence: &str, rule: &str) -> Match {
    let [sentence, rule] = [sentence, rule].map(Sentence::read);
    let taken =
        position(&sentence.words, &rule.words).and_then(|at| sentence.takes_back(&rule, at));
    taken.unwrap_or(Match::Stated)
}

/// Whether a sentence begins with a word of force: `Never …`, `Do not …`, and not `I do not …`.
pub(crate) fn is_order(sentence: &str) -> bool {
    let read = Sentence::read(sentence);
    let forces = read.cues.iter().filter(|cue| FORCES.contains(&cue.class));
    let first = forces.map(|cue| cue.at.unwrap_or(0)).min();
    let is_front = |word: &String| word.len() > 1 && LISTS.has(&[Class::Stop], word);
    first.is_some_and(|at| at <= 1 && read.words[..at].iter().all(is_front))
}

/// A sentence, or a part of a rule, read.
#[derive(Debug)]
struct Sentence {
    words: Vec<String>,
    /// The number of the clause of each word.
    clauses: Vec<usize>,
    cues: Vec<Cue>,
    anchors: Vec<Anchor>,
    /// The first word behind a negation that follows a comma.
    contrast: Option<String>,
}

/// A sentence of a rule.
#[derive(Debug)]
struct Part {
    sentence: Sentence,
    /// The words that say what it is about, without those of force and without anchors.
    content: Vec<String>,
    /// Words whose half makes a sentence speak of it: those of the key, else the content.
    key: Vec<String>,
    /// Whether it has a key of its own.
    keyed: bool,
}

/// A rule that is searched for: the whole of it, and behind it its sentences, where it has several.
#[derive(Debug)]
pub(super) struct Rule(Vec<Part>);

/// How a text holds a rule, and where the sentence that decides begins.
pub(super) type RuleMatch = (Match, usize);

impl Rule {
    pub(super) fn new(statement: &str, key: &str) -> Self {
        let mut parts = vec![Part::new(statement, key)];
        let mut places = sentences(statement);
        places.retain(|place| statement[place.clone()].contains(char::is_alphanumeric));
        if places.len() > 1 {
            let texts = places.into_iter().map(|place| &statement[place]);
            parts.extend(texts.map(|text| Part::new(text, key)));
        }
        Self(parts)
    }

    /// How a text holds the whole rule, or all of its sentences.
    fn outcome(found: &[Option<RuleMatch>]) -> Option<RuleMatch> {
        let (whole, parts) = found.split_first()?;
        if parts.is_empty() || whole.is_some_and(|(found, _)| found >= Match::Kept) {
            return *whole;
        }
        let mut said = parts.iter().flatten();
        let changed = |(found, _): &&RuleMatch| found.changes();
        if let Some(changed) = said.clone().find(changed) {
            return Some(*changed);
        }
        let last = said.clone().max_by_key(|(_, at)| *at);
        if said.clone().count() == parts.len() && said.all(|(found, _)| *found >= Match::Kept) {
            return last.copied();
        }
        last.map(|(_, at)| (Match::Unsure, *at)).or(*whole)
    }
}

/// How `text` holds each rule.
pub(super) fn find(rules: &[Rule], text: &str) -> Vec<Option<RuleMatch>> {
    let mut found: Vec<Vec<Option<RuleMatch>>> =
        rules.iter().map(|rule| vec![None; rule.0.len()]).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    for place in sentences(text) {
        let words = words_of(&text[place.clone()]);
        let end = text.floor_char_boundary((place.start + LONGEST).min(place.end));
        let mut read = None;
        for (rule, known) in rules.iter().zip(&mut found) {
            // What says one sentence of a rule says nothing against another.
            let stated = |part: &Part| holds(&words, &part.sentence.words);
            let is_own = rule.0.iter().any(stated);
            for (part, known) in rule.0.iter().zip(known) {
                let Some(topical) = part.is_topic_of(&words).filter(|_| !is_own || stated(part))
                else {
                    continue;
                };
                let sentence = read.get_or_insert_with(|| Sentence::read(&text[place.start..end]));
                let this = part.judge(sentence, topical);
                let yields = known.is_some_and(|(known, _)| match this {
                    Match::Unsure => true,
                    Match::Changed => known == Match::Stated,
                    _ => false,
                });
                if !yields {
                    *known = Some((this, place.start));
                }
            }
        }
    }
    found.iter().map(|parts| Rule::outcome(parts)).collect()
}

impl Part {
    fn new(statement: &str, key: &str) -> Self {
        let sentence = Sentence::read(statement);
        let content = sentence.content(&sentence.anchors);
        let mut key = Sentence::read(key).content(&sentence.anchors);
        let keyed = !key.is_empty();
        if !keyed {
            key.clone_from(&content);
        }
        Self {
            sentence,
            content,
            key,
            keyed,
        }
    }

    /// Whether a sentence of these words has half of the key; `None` where it has nothing of the key, or less than half
    /// of it and no anchor.
    fn is_topic_of(&self, words: &[String]) -> Option<bool> {
        let common = alike(&self.key, words);
        let topical = 2 * common >= self.key.len();
        if topical && common > 0 {
            return Some(true);
        }
        let mut anchors = self.sentence.anchors.iter();
        let speaks = (topical || common > 0)
            && anchors.any(|anchor| {
                let first = words_of(&anchor.text).into_iter().next();
                first.is_some_and(|first| words.iter().any(|word| letters(word) == letters(&first)))
            });
        speaks.then_some(topical)
    }

    /// What a sentence that has words of the key makes of the rule.
    fn judge(&self, sentence: &Sentence, topical: bool) -> Match {
        let own = &self.sentence;
        if let Some(at) = position(&sentence.words, &own.words) {
            return sentence.takes_back(own, at).unwrap_or(Match::Stated);
        }
        let missing: Vec<&Anchor> = own
            .anchors
            .iter()
            .filter(|anchor| !sentence.names(anchor))
            .collect();
        // Another value counts where nearly all of the key is said: half of it may speak of something beside.
        let nearly_all = 4 * alike(&self.key, &sentence.words) >= 3 * self.key.len();
        let whole = if self.keyed { nearly_all } else { topical };
        let replaced = whole && sentence.replaces(&missing, own);
        if replaced || (whole && sentence.revokes(own)) {
            return Match::Overruled;
        }
        let is_turned = sentence.loosens(own) || sentence.turns(own);
        if whole && is_turned {
            return Match::Changed;
        }
        let restrictive = own.has(Class::Forbid) || own.has(Class::Limit);
        let forceful = !FORCES.into_iter().any(|class| own.has(class))
            || FORCES.into_iter().any(|class| sentence.has(class))
            || (!restrictive && sentence.has(Class::Quantify));
        let said = alike(&self.content, &sentence.words);
        let enough = !own.anchors.is_empty() || 3 * said >= 2 * self.content.len();
        let is_same = missing.is_empty() && !is_turned && sentence.denies_as(own);
        if topical && forceful && enough && is_same {
            return Match::Kept;
        }
        // All is there but what is exact and what is strong.
        if said == self.content.len() && !missing.is_empty() && !forceful {
            return Match::Changed;
        }
        Match::Unsure
    }
}

impl Sentence {
    fn read(text: &str) -> Self {
        let (mut words, mut clauses) = (Vec::new(), Vec::new());
        each_word(text, |word, place| {
            words.push(word.to_owned());
            clauses.push(place.clause);
        });
        Self {
            cues: LISTS.cues(text, &words),
            words,
            clauses,
            anchors: anchors(text),
            contrast: contrast(text),
        }
    }

    /// Its distinct words that say what it is about: they are no cues, and in none of these anchors.
    fn content(&self, anchors: &[Anchor]) -> Vec<String> {
        let exact: BTreeSet<String> = anchors
            .iter()
            .flat_map(|anchor| words_of(&anchor.text))
            .collect();
        let mut content: Vec<String> = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            if !self.cues.iter().any(|cue| cue.at == Some(at))
                && !word.contains(|c: char| c.is_ascii_digit())
                && !exact.contains(word)
                && !LISTS.has(&[Class::Stop, Class::Numbers], word)
                && !anchors.iter().any(|anchor| anchor.counts(word))
                && !content.contains(word)
            {
                content.push(word.clone());
            }
        }
        content.truncate(MOST_WORDS);
        content
    }

    fn has(&self, class: Class) -> bool {
        self.cues.iter().any(|cue| cue.class == class)
    }

    /// Whether a cue of this class, which the rule has not, is there and fits.
    fn adds(&self, class: Class, rule: &Self, fits: impl Fn(&Cue) -> bool) -> bool {
        let cues = self.cues.iter().filter(|cue| cue.class == class);
        let mut new = cues.filter(|cue| rule.cues.iter().all(|known| known.text != cue.text));
        new.any(fits)
    }

    fn revokes(&self, rule: &Self) -> bool {
        [Class::Revoke, Class::Permit]
            .into_iter()
            .any(|class| self.adds(class, rule, |cue| !self.denies(cue)))
    }

    /// Whether its words take back, weaken or turn round what a rule says.
    fn loosens(&self, rule: &Self) -> bool {
        let limits = self.has(Class::Limit);
        // "Never more than 5" is a limit.
        let amounts = limits || self.has(Class::Amount);
        self.adds(Class::Weak, rule, |cue| !self.denies(cue))
            || (!rule.has(Class::Limit) && self.adds(Class::Except, rule, |cue| !self.denies(cue)))
            || self.revokes(rule)
            || (!limits
                && !self.has(Class::Forbid)
                && self.adds(Class::Allow, rule, |cue| !self.denies(cue)))
            || (!limits
                && ![Class::Forbid, Class::Compare]
                    .into_iter()
                    .any(|class| self.has(class) && rule.has(class))
                && self.adds(Class::Modal, rule, |_| true))
            || (!amounts && !rule.has(Class::Forbid) && self.adds(Class::Forbid, rule, |_| true))
    }

    /// How it holds a rule whose own words it has, from word `at` on, where it takes the rule back: by a word of
    /// revocation before them or behind, or by one of weakness or exception right behind.
    fn takes_back(&self, rule: &Self, at: usize) -> Option<Match> {
        let end = at + rule.words.len();
        let [before, behind] = TAKEN_BACK_WITHIN;
        let before = at.saturating_sub(before)..at;
        let behind = end..end + behind;
        let cues = self.cues.iter().filter(|cue| !self.denies(cue));
        let taken = cues.filter_map(|cue| {
            let place = cue.at?;
            match cue.class {
                Class::Revoke if before.contains(&place) || behind.contains(&place) => {
                    Some(Match::Overruled)
                }
                Class::Except if behind.contains(&place) => Some(Match::Changed),
                Class::Weak if behind.contains(&place) && self.is_one_clause(at, place) => {
                    Some(Match::Changed)
                }
                _ => None,
            }
        });
        taken.max()
    }

    /// Whether no comma or the like parts these words.
    fn is_one_clause(&self, one: usize, other: usize) -> bool {
        self.clauses.get(one) == self.clauses.get(other)
    }

    /// Whether a word of it is the opposite of one of a rule that forbids as it does: after for before, least for most.
    fn turns(&self, rule: &Self) -> bool {
        let only = |sentence: &Self, [one, other]: [&str; 2]| {
            sentence.words.iter().any(|word| word == one)
                && !sentence.words.iter().any(|word| word == other)
        };
        self.has(Class::Forbid) == rule.has(Class::Forbid)
            && LISTS
                .opposites()
                .any(|[one, other]| only(rule, [one, other]) && only(self, [other, one]))
    }

    /// Whether it denies what a rule denies behind a comma: `in the vault, not in the environment`.
    fn denies_as(&self, rule: &Self) -> bool {
        let Some(denied) = rule.contrast.as_ref() else {
            return true;
        };
        let mut negations = self.cues.iter().filter(|cue| cue.class == Class::Forbid);
        negations.any(|cue| {
            let behind = self.words.iter().skip(cue.at.map_or(0, |at| at + 1));
            let said = behind.filter(|word| !LISTS.has(&[Class::Stop], word));
            said.take(DENIED_WITHIN + 1)
                .any(|word| is_alike(word, denied))
        })
    }

    /// Whether it has another anchor of the same kind in place of one of these of a rule.
    fn replaces(&self, missing: &[&Anchor], rule: &Self) -> bool {
        let others = self
            .anchors
            .iter()
            .filter(|own| !rule.anchors.contains(own));
        let kinds: Vec<AnchorKind> = others.map(|other| other.kind).collect();
        missing.iter().any(|anchor| kinds.contains(&anchor.kind))
    }

    fn names(&self, anchor: &Anchor) -> bool {
        self.anchors.iter().any(|own| own.is_same(anchor))
            || (anchor.kind != AnchorKind::Number && holds(&self.words, &words_of(&anchor.text)))
    }

    /// Whether a negation stands right before it.
    fn denies(&self, denied: &Cue) -> bool {
        let Some(at) = denied.at else { return false };
        let before = at.saturating_sub(DENIED_WITHIN)..at;
        let mut negations = self.cues.iter().filter(|cue| cue.class == Class::Forbid);
        negations.any(|cue| cue.at.is_some_and(|at| before.contains(&at)))
    }
}

/// What a sentence denies behind a comma, in contrast to what it says before: `in the vault, not in the image`. A clause in
/// front that only says when a rule holds is none.
fn contrast(text: &str) -> Option<String> {
    let mut clauses = text.split(", ").map(words_of);
    let first = clauses.next()?.into_iter().next()?;
    if LISTS.has(&[Class::Stop], &first) {
        return None;
    }
    clauses.find_map(|words| {
        let [denial, next, rest @ ..] = words.as_slice() else {
            return None;
        };
        let is_contrast = LISTS.has(&[Class::Forbid], denial) && LISTS.has(&[Class::Stop], next);
        let mut said = rest.iter().filter(|word| !LISTS.has(&[Class::Stop], word));
        is_contrast.then(|| said.next().cloned())?
    })
}

/// Whether these words stand among those, in a row.
fn holds(all: &[String], words: &[String]) -> bool {
    position(all, words).is_some()
}

/// Where they do.
fn position(all: &[String], words: &[String]) -> Option<usize> {
    let mut rows = all.windows(words.len().max(1));
    rows.position(|own| own == words)
}

/// How many of these words are like one of those.
fn alike(words: &[String], others: &[String]) -> usize {
    let found = words
        .iter()
        .filter(|word| others.iter().any(|other| is_alike(word, other)));
    found.count()
}

/// The letters that all words which are alike have in common.
fn letters(word: &str) -> &str {
    first_chars(word, ALIKE_LETTERS)
}

fn is_alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let [short, long] = if one.len() < other.len() {
        [one, other]
    } else {
        [other, one]
    };
    let ending = long.strip_prefix(short).map(str::len);
    let longest = match short.len() {
        ALIKE_LETTERS => LONGEST_ENDING,
        letters if letters > ALIKE_LETTERS => usize::MAX,
        _ => 0,
    };
    if ending.is_some_and(|ending| ending <= longest) {
        return true;
    }
    let common = one
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    common >= ALIKE_LETTERS
        && 10 * common >= ALIKE_TENTHS * one.chars().count().max(other.chars().count())
}
