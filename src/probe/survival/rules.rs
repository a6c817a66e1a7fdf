//! Rules that the user set: whether a sentence still says one, by its anchors and its force.
//!
//! A rule has a *key* (what it is about), *anchors* (numbers, ids, paths, names: exact by nature) and a *force* (it
//! forbids, limits or demands). A sentence that has half of the key's words speaks of the rule: with all anchors and a
//! word of the same force it keeps it; with another value, a weaker word or a revoking one it changes it; else it is not
//! known. The later sentence decides. Nothing is guessed, and the words are data: `words.toml`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::Match;
use super::anchors::{Anchor, AnchorKind, anchors, parts_of};
use super::lists::{Class, Cue, LISTS};
use super::words::each_word;

/// Words are alike where so many letters, and so many tenths of the longer one, begin the same: `delete`, `deleting`.
const ALIKE_LETTERS: usize = 4;
const ALIKE_TENTHS: usize = 6;

/// Content words of a rule that are looked at.
const MOST_WORDS: usize = 64;

/// Bytes of a sentence that are looked at: a minified file is one line of megabytes.
const LONGEST: usize = 2_048;

/// Words between a negation and what it denies: `never really acceptable`.
const DENIED_WITHIN: usize = 2;

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
}

/// The force and the anchors of a sentence.
pub(crate) fn marks(sentence: &str) -> Marks {
    let read = Sentence::read(sentence);
    let classes = read.cues.iter().map(|cue| cue.class);
    Marks {
        forces: classes.filter(|class| FORCES.contains(class)).collect(),
        anchors: read.anchors.into_iter().map(|anchor| anchor.text).collect(),
    }
}

/// A sentence, or a part of a rule, read.
#[derive(Debug)]
struct Sentence {
    words: Vec<String>,
    cues: Vec<Cue>,
    anchors: Vec<Anchor>,
}

/// A sentence of a rule.
#[derive(Debug)]
struct Part {
    sentence: Sentence,
    /// The words that say what it is about, without those of force and without anchors.
    content: Vec<String>,
    /// Words whose half makes a sentence speak of it: those of the key, else the content.
    key: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    /// The whole rule, and behind it its sentences, where it has several.
    parts: Vec<Part>,
}

/// The rules of a session, searched together.
#[derive(Debug)]
pub(super) struct Rules {
    all: Vec<Rule>,
    /// By the letters that words which are alike have in common: rule, part and word of the key.
    by_letters: HashMap<String, Vec<(usize, usize, usize)>>,
    /// For each first byte, whether a word that matters begins so.
    first: [bool; 256],
}

/// How a text holds a rule, and where the sentence that decides begins.
pub(super) type RuleMatch = (Match, usize);

impl Rules {
    /// Rules with their keys.
    pub(super) fn new<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut rules = Self {
            all: Vec::new(),
            by_letters: HashMap::new(),
            first: [false; 256],
        };
        for (statement, key) in given {
            let rule = Rule::new(statement, key);
            let index = rules.all.len();
            for (part, own) in rule.parts.iter().enumerate() {
                let anchors = own.sentence.anchors.iter().map(|anchor| &anchor.text);
                let words = own.key.iter().map(|word| (word, true));
                for (at, (word, _)) in words.chain(anchors.map(|text| (text, false))).enumerate() {
                    rules.note(word, (index, part, at));
                }
            }
            rules.all.push(rule);
        }
        rules
    }

    fn note(&mut self, word: &str, place: (usize, usize, usize)) {
        let mut first = None;
        each_word(word, |word, _| {
            first = first.take().or_else(|| Some(word.to_owned()));
        });
        let Some(first) = first else { return };
        self.first[usize::from(first.as_bytes()[0])] = true;
        let places = self
            .by_letters
            .entry(letters(&first).to_owned())
            .or_default();
        places.push(place);
    }

    /// How `text` holds each rule.
    pub(super) fn find(&self, text: &str) -> Vec<Option<RuleMatch>> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Vec<Option<RuleMatch>>> = self
            .all
            .iter()
            .map(|rule| vec![None; rule.parts.len()])
            .collect();
        let mut hits: BTreeMap<(usize, usize), BTreeSet<usize>> = BTreeMap::new();
        let mut sentence: (usize, Range<usize>) = (0, 0..0);
        each_word(text, |word, at| {
            if at.sentence != sentence.0 {
                self.close(text, &sentence.1, &mut hits, &mut found);
                sentence = (at.sentence, at.start..at.start);
            }
            sentence.1.end = at.start + word.len();
            if !self.first[usize::from(word.as_bytes()[0])] {
                return;
            }
            let places = self.by_letters.get(letters(word));
            for (rule, part, index) in places.into_iter().flatten() {
                let own = &self.all[*rule].parts[*part];
                if own
                    .key
                    .get(*index)
                    .is_none_or(|known| is_alike(known, word))
                {
                    hits.entry((*rule, *part)).or_default().insert(*index);
                }
            }
        });
        self.close(text, &sentence.1, &mut hits, &mut found);
        found.iter().map(|parts| Rule::outcome(parts)).collect()
    }

    /// Judges a sentence by the parts of rules that it may speak of.
    fn close(
        &self,
        text: &str,
        place: &Range<usize>,
        hits: &mut BTreeMap<(usize, usize), BTreeSet<usize>>,
        found: &mut [Vec<Option<RuleMatch>>],
    ) {
        let mut read = None;
        for ((rule, part), words) in std::mem::take(hits) {
            let own = &self.all[rule].parts[part];
            let of_key = words.iter().filter(|index| **index < own.key.len()).count();
            let has_anchor = words.len() > of_key;
            if 2 * of_key < own.key.len() && !(has_anchor && of_key > 0) {
                continue;
            }
            let sentence = read.get_or_insert_with(|| {
                let end = text.floor_char_boundary((place.start + LONGEST).min(place.end));
                // A sign behind the last word belongs to it: `5 %`.
                let end = text[end..]
                    .find(char::is_alphanumeric)
                    .map_or(text.len(), |more| end + more);
                Sentence::read(&text[place.start..end.max(place.start)])
            });
            let known = &mut found[rule][part];
            match own.judge(sentence, 2 * of_key >= own.key.len()) {
                Match::Unsure if known.is_some() => {}
                this => *known = Some((this, place.start)),
            }
        }
    }
}

impl Rule {
    fn new(statement: &str, key: &str) -> Self {
        let mut parts = vec![Part::new(statement, key)];
        let ends = |c: char| matches!(c, '.' | '!' | '?' | '。' | '！' | '？');
        let mut from = 0;
        let mut sentences = Vec::new();
        for (at, c) in statement.char_indices().filter(|(_, c)| ends(*c)) {
            let end = at + c.len_utf8();
            let is_over = statement[end..]
                .chars()
                .next()
                .is_none_or(|next| next.is_whitespace() || !c.is_ascii());
            if is_over {
                sentences.push(&statement[from..end]);
                from = end;
            }
        }
        sentences.push(&statement[from..]);
        sentences.retain(|text| text.chars().any(char::is_alphanumeric));
        if sentences.len() > 1 {
            parts.extend(sentences.into_iter().map(|text| Part::new(text, key)));
        }
        Self { parts }
    }

    /// What the whole rule, or all of its sentences, came to.
    fn outcome(found: &[Option<RuleMatch>]) -> Option<RuleMatch> {
        let (whole, parts) = found.split_first()?;
        if parts.is_empty() || whole.is_some_and(|(found, _)| found >= Match::Kept) {
            return *whole;
        }
        let changed = parts
            .iter()
            .flatten()
            .find(|(found, _)| *found == Match::Changed);
        if let Some(changed) = changed {
            return Some(*changed);
        }
        let last = parts.iter().flatten().max_by_key(|(_, at)| *at);
        if parts
            .iter()
            .flatten()
            .filter(|(found, _)| *found >= Match::Kept)
            .count()
            == parts.len()
        {
            return last.copied();
        }
        last.map(|(_, at)| (Match::Unsure, *at)).or(*whole)
    }
}

impl Part {
    fn new(statement: &str, key: &str) -> Self {
        let sentence = Sentence::read(statement);
        let of = |text: &str| {
            let read = Sentence::read(text);
            let mut words: Vec<String> = Vec::new();
            for (at, word) in read.words.iter().enumerate() {
                let is_cue = read.cues.iter().any(|cue| cue.at == Some(at));
                let is_anchor = word.chars().any(|c| c.is_ascii_digit())
                    || sentence
                        .anchors
                        .iter()
                        .any(|anchor| parts_of(&anchor.text).contains(word));
                if !is_cue && !is_anchor && !LISTS.stop.contains(word) && !words.contains(word) {
                    words.push(word.clone());
                }
            }
            words.truncate(MOST_WORDS);
            words
        };
        let content = of(statement);
        let key = Some(of(key)).filter(|key| !key.is_empty());
        Self {
            key: key.unwrap_or_else(|| content.clone()),
            sentence,
            content,
        }
    }

    /// What a sentence that has words of the key makes of the rule.
    fn judge(&self, sentence: &Sentence, is_topical: bool) -> Match {
        if sentence.holds(&self.sentence.words) {
            return Match::Stated;
        }
        let own = &self.sentence;
        let is_new = |cue: &&Cue| !own.cues.iter().any(|known| known.text == cue.text);
        let new = |class: Class| {
            sentence
                .cues
                .iter()
                .filter(is_new)
                .filter(move |cue| cue.class == class)
        };
        let has = |class: Class| sentence.cues.iter().any(|cue| cue.class == class);
        let asks = |class: Class| own.cues.iter().any(|cue| cue.class == class);
        let both = |class: Class| asks(class) && has(class);
        let is_limited = has(Class::Limit) || both(Class::Forbid) || both(Class::Compare);
        let is_revoked = new(Class::Revoke).any(|cue| {
            let is_allowance = cue.text.ends_with("allowed");
            !sentence.denies(cue) && !(is_allowance && (has(Class::Limit) || has(Class::Forbid)))
        });
        let is_loosened = new(Class::Modal).next().is_some() && !is_limited;
        // "Never more than 5" is a limit.
        let mut compared = sentence
            .cues
            .iter()
            .filter(|cue| cue.class == Class::Compare);
        let has_amount =
            has(Class::Limit) || compared.any(|cue| matches!(&*cue.text, "more" | "less"));
        let is_opposite =
            new(Class::Forbid).next().is_some() && !asks(Class::Forbid) && !has_amount;
        let missing: Vec<&Anchor> = own
            .anchors
            .iter()
            .filter(|anchor| !sentence.has(anchor))
            .collect();
        let is_other = missing.iter().any(|anchor| {
            let mut others = sentence
                .anchors
                .iter()
                .filter(|it| !own.anchors.contains(it));
            others.any(|other| other.kind == anchor.kind)
        });
        if is_other || is_revoked || is_loosened || is_opposite || new(Class::Weak).next().is_some()
        {
            return Match::Changed;
        }
        let is_restrictive = asks(Class::Forbid) || asks(Class::Limit);
        let is_forceful = !FORCES.into_iter().any(asks)
            || FORCES.into_iter().any(has)
            || (!is_restrictive && has(Class::Quantify));
        let said = self
            .content
            .iter()
            .filter(|word| sentence.words.iter().any(|it| is_alike(word, it)));
        let said = said.count();
        let (is_said, is_all) = (
            !own.anchors.is_empty() || 2 * said >= self.content.len(),
            said == self.content.len(),
        );
        if is_topical && missing.is_empty() && is_forceful && is_said {
            return Match::Kept;
        }
        // All is there but what is exact and what is strong.
        if is_all && !missing.is_empty() && !is_forceful {
            return Match::Changed;
        }
        Match::Unsure
    }
}

impl Sentence {
    fn read(text: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        each_word(text, |word, _| words.push(word.to_owned()));
        Self {
            cues: LISTS.cues(text, &words),
            words,
            anchors: anchors(text),
        }
    }

    /// Whether these words stand in it, in a row.
    fn holds(&self, words: &[String]) -> bool {
        !words.is_empty() && self.words.windows(words.len()).any(|own| own == words)
    }

    fn has(&self, anchor: &Anchor) -> bool {
        self.anchors.iter().any(|own| own.is_same(anchor))
            || (anchor.kind != AnchorKind::Number && self.holds(&parts_of(&anchor.text)))
    }

    /// Whether a negation stands right before it.
    fn denies(&self, denied: &Cue) -> bool {
        let Some(at) = denied.at else { return false };
        let before = at.saturating_sub(DENIED_WITHIN)..at;
        let mut negations = self.cues.iter().filter(|cue| cue.class == Class::Forbid);
        negations.any(|cue| cue.at.is_some_and(|at| before.contains(&at)))
    }
}

/// The letters that all words which are alike have in common.
fn letters(word: &str) -> &str {
    let end = word
        .char_indices()
        .nth(ALIKE_LETTERS)
        .map_or(word.len(), |(at, _)| at);
    &word[..end]
}

fn is_alike(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let common = one
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let longer = one.chars().count().max(other.chars().count());
    common >= ALIKE_LETTERS && 10 * common >= ALIKE_TENTHS * longer
}
