//! Rules that the user set: whether a sentence still says one, by its anchors and its force.
//!
//! A rule has a *key* (what it is about), *anchors* (numbers, ids, paths, names: exact by nature) and a *force* (it
//! forbids, limits or demands). A sentence that has half of the key's words speaks of the rule: with all anchors and a
//! word of the same force it keeps it; with another value, a weaker word, the opposite or a revoking one it changes it;
//! else it is not known. So it is where a language has no words here, and where what is said is in another order. The
//! later sentence decides. Nothing is guessed, and the words are data: `words.toml`.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Match;
use super::anchors::{AnchorKind, TextAnchor};
use super::compare::Polarity;
use super::lists::{LISTS, WordClass};
use super::nearby::is_taken_back;
use super::sentence::{DENIED_WITHIN, Sentence, alike, begins_in, holds, position};
use super::words::{sentences, words_of};

/// Bytes of a sentence that are looked at: a minified file is one line of megabytes.
const LONGEST: usize = 2_048;

/// Words in front of a rule's own words, and behind them, in which they are taken back: `the user withdrew the rule to …`,
/// `… is no longer needed`.
const TAKEN_BACK_WITHIN: [usize; 2] = [5, 3];

/// Words around a rule's own words in which a word of revocation or doubt leaves open whether they hold.
const DOUBTED_WITHIN: usize = 12;

/// With fewer content words a rule is known by its anchors alone.
const LEAST_WORDS: usize = 2;

/// The classes that a rule itself may have, and a sentence that keeps it must have.
pub(super) const FORCES: [WordClass; 3] = [WordClass::Forbid, WordClass::Limit, WordClass::Demand];

/// What two sentences that say the same rule have in common: the classes of their force, and their anchors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleMarks {
    forces: BTreeSet<WordClass>,
    pub(crate) anchors: BTreeSet<String>,
}

impl RuleMarks {
    pub(crate) fn has_force(&self) -> bool {
        !self.forces.is_empty()
    }

    /// Whether it forbids, and neither limits nor demands: no condition may lift it.
    pub(crate) fn only_forbids(&self) -> bool {
        self.forces.iter().eq([&WordClass::Forbid])
    }

    /// Both anchors where all marks but one anchor are the same.
    pub(crate) fn but_one<'m>(&'m self, other: &'m Self) -> Option<[&'m String; 2]> {
        let changed: Vec<&String> = self.anchors.symmetric_difference(&other.anchors).collect();
        let same = self.forces == other.forces && self.anchors.len() == other.anchors.len();
        changed.try_into().ok().filter(|_| same)
    }
}

/// The force and the anchors of a sentence.
pub(crate) fn marks(sentence: &str) -> RuleMarks {
    let read = Sentence::read(sentence);
    let forces = FORCES.into_iter().filter(|class| read.has(*class));
    RuleMarks {
        forces: forces.collect(),
        anchors: read.anchors.into_iter().map(|anchor| anchor.text).collect(),
    }
}

/// How a text holds a rule whose own words it has at this place.
pub(super) fn stated(text: &str, place: &Range<usize>) -> Match {
    if is_taken_back(text, place.start, &words_of(&text[place.clone()])) {
        return Match::Overruled;
    }
    let sentence = Sentence::read(super::sentence_at(text, place.start));
    let rule = Sentence::read(&text[place.clone()]);
    match sentence.place_of(&rule) {
        Some(at) => sentence.states(&rule, at),
        // A long sentence is cut.
        None if position(&sentence.words, &rule.words).is_none() => Match::Stated,
        None => Match::Unsure,
    }
}

/// Whether a sentence begins with a word of force: `Never …`, `Do not …`, and not `I do not …`.
pub(crate) fn is_order(sentence: &str) -> bool {
    let read = Sentence::read(sentence);
    let forces = read.cues.iter().filter(|cue| FORCES.contains(&cue.class));
    let first = forces.map(|cue| cue.at.unwrap_or(0)).min();
    first.is_some_and(|at| {
        let mut front = read.words[..at].iter();
        at <= 1 && front.all(|word| word.len() > 1 && LISTS.has(&[WordClass::Stop], word))
    })
}

/// Whether a heading says that what is listed below it are rules.
pub(crate) fn heads_rules(heading: &str) -> bool {
    words_of(heading).iter().any(|word| LISTS.has(&[WordClass::RuleHeading], word))
        || LISTS.ends(WordClass::RuleHeading, heading.trim_end_matches([':', '：', '*']))
}

/// A sentence of a rule.
#[derive(Debug)]
struct RulePart {
    sentence: Sentence,
    /// The words that say what it is about, without those of force and without anchors.
    content: Vec<String>,
    /// Words whose half makes a sentence speak of it: those of the key, else the content.
    key: Vec<String>,
    /// Whether it has a key of its own.
    keyed: bool,
    /// The first word of each anchor.
    begins: Vec<String>,
}

/// A rule that is searched for: the whole of it, and behind it its sentences, where it has several.
#[derive(Debug)]
pub(super) struct SearchedRule(Vec<RulePart>);

/// How a text holds a rule, and where the sentence that decides begins.
pub(super) type RuleMatch = (Match, usize);

impl SearchedRule {
    pub(super) fn new(statement: &str, key: &str) -> Self {
        let mut parts = vec![RulePart::new(statement, key)];
        let mut places = sentences(statement);
        places.retain(|place| statement[place.clone()].contains(char::is_alphanumeric));
        if places.len() > 1 {
            let texts = places.into_iter().map(|place| &statement[place]);
            parts.extend(texts.map(|text| RulePart::new(text, key)));
        }
        Self(parts)
    }

    /// How a text holds the whole rule, or all of its sentences.
    fn outcome(found: &[Option<RuleMatch>]) -> Option<RuleMatch> {
        let (whole, parts) = found.split_first()?;
        if parts.is_empty() || whole.is_some_and(|(found, _)| found.is_kept()) {
            return *whole;
        }
        let mut said = parts.iter().flatten();
        if let Some(changed) = said.clone().find(|(found, _)| found.is_changed()) {
            return Some(*changed);
        }
        let last = said.clone().max_by_key(|(_, at)| *at);
        if said.clone().count() == parts.len() && said.all(|(found, _)| found.is_kept()) {
            return last.copied();
        }
        last.map(|(_, at)| (Match::Unsure, *at)).or(*whole)
    }
}

/// How `text` holds each rule.
pub(super) fn find(rules: &[SearchedRule], text: &str) -> Vec<Option<RuleMatch>> {
    let mut found: Vec<Vec<Option<RuleMatch>>> =
        rules.iter().map(|rule| vec![None; rule.0.len()]).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    for place in sentences(text) {
        let words = words_of(&text[place.clone()]);
        let first = text[place.clone()].find(char::is_alphanumeric);
        let first = place.start + first.unwrap_or(0);
        let end = text.floor_char_boundary((place.start + LONGEST).min(place.end));
        let mut read = None;
        for (rule, known) in rules.iter().zip(&mut found) {
            // What says one sentence of a rule says nothing against another.
            let own = rule.0.iter().any(|part| holds(&words, &part.sentence.words));
            for (part, known) in rule.0.iter().zip(known) {
                let meant = !own || holds(&words, &part.sentence.words);
                let Some(topical) = part.is_topic_of(&words).filter(|_| meant) else {
                    continue;
                };
                let sentence = read.get_or_insert_with(|| Sentence::read(&text[place.start..end]));
                let mut this = part.judge(sentence, topical);
                if this.is_kept() && is_taken_back(text, first, &part.sentence.words) {
                    this = Match::Overruled;
                }
                let yields = known.is_some_and(|(known, _)| match this {
                    Match::Unsure => true,
                    Match::Changed => known == Match::Stated || part.is_another(sentence),
                    _ => false,
                });
                if !yields {
                    *known = Some((this, place.start));
                }
            }
        }
    }
    found.iter().map(|parts| SearchedRule::outcome(parts)).collect()
}

impl RulePart {
    fn new(statement: &str, key: &str) -> Self {
        let sentence = Sentence::read(statement);
        let content = sentence.content(&sentence.anchors);
        let mut key = Sentence::read(key).content(&sentence.anchors);
        // A key in words that the rule has not says nothing of it.
        let keyed = alike(&key, &sentence.words) > 0;
        if !keyed {
            key.clone_from(&content);
        }
        let anchors = sentence.anchors.iter();
        let begins = anchors.filter_map(|anchor| words_of(&anchor.written).into_iter().next());
        Self { begins: begins.collect(), sentence, content, key, keyed }
    }

    /// Whether a sentence of these words has half of the key; `None` where it has nothing of the key, or less than half
    /// of it and no anchor.
    fn is_topic_of(&self, words: &[String]) -> Option<bool> {
        let common = alike(&self.key, words);
        if common > 0 && (2 * common >= self.key.len() || self.is_mostly_in(words)) {
            return Some(true);
        }
        let named = self.begins.iter().any(|begin| begins_in(words, begin))
            && (common > 0
                || self.is_mostly_in(words)
                || (self.is_short() && self.is_named_in(words)));
        named.then_some(self.key.is_empty())
    }

    /// Whether the words of one of its anchors are there in a row.
    fn is_named_in(&self, words: &[String]) -> bool {
        self.sentence.anchors.iter().any(|anchor| holds(words, &words_of(&anchor.written)))
    }

    /// Whether two thirds of what it is about are among these words.
    fn is_mostly_in(&self, words: &[String]) -> bool {
        3 * alike(&self.content, words) >= 2 * self.content.len()
    }

    /// Whether it is known by its anchors alone.
    fn is_short(&self) -> bool {
        self.content.len() < LEAST_WORDS
    }

    /// What a sentence that has words of the key makes of the rule.
    fn judge(&self, sentence: &Sentence, topical: bool) -> Match {
        let own = &self.sentence;
        if let Some(at) = sentence.place_of(own) {
            return sentence.states(own, at);
        }
        let missing = self.missing(sentence);
        // Another value counts where nearly all of the key is said: half of it may speak of something beside.
        let nearly_all = 4 * alike(&self.key, &sentence.words) >= 3 * self.key.len();
        let whole = if self.keyed { nearly_all } else { topical };
        let replaced = whole && self.is_replaced(&missing, sentence);
        // One word is not enough to speak of a rule without what it names.
        let speaks = whole && (missing.is_empty() || !self.is_short());
        let revoked = speaks && sentence.revokes(own);
        let another = self.is_another(sentence);
        let amended = replaced && self.is_amended(&missing, sentence);
        if nearly_all && !another && (revoked || amended) {
            return Match::Overruled;
        }
        if replaced || revoked {
            return Match::Changed;
        }
        if !own.is_known || !sentence.is_known {
            return Match::Unsure;
        }
        let polarity = sentence.polarity(own, &self.content);
        let loose = sentence.loosens(own);
        if speaks && (loose || polarity == Polarity::Opposite) {
            return Match::Changed;
        }
        let restrictive = own.has(WordClass::Forbid) || own.has(WordClass::Limit);
        let [bounded, turned, unclear] = sentence.bounds(own);
        let forceful = !own.has_force()
            || sentence.has_force()
            || (!restrictive && sentence.has(WordClass::Quantify))
            || (bounded > 0 && turned + unclear == 0);
        let enough = !own.anchors.is_empty() || self.is_mostly_in(&sentence.words);
        let excepted_else = own.has(WordClass::Except) != sentence.has(WordClass::Except);
        let same = missing.is_empty()
            && polarity == Polarity::Same
            && !(loose || excepted_else || another || sentence.reorders(own))
            && !(sentence.adds(WordClass::Doubt, own) || sentence.is_narrowed(own, &self.content))
            && !(unclear > 0 || sentence.trades_units(own) || sentence.has_alternative(own, None))
            && !(!own.anchors.is_empty() && sentence.is_bounded() && !own.is_bounded());
        if topical && forceful && enough && same {
            return Match::Kept;
        }
        // All is there but what is exact and what is strong.
        let all_said = alike(&self.content, &sentence.words) == self.content.len();
        if all_said && !missing.is_empty() && !forceful {
            return Match::Changed;
        }
        Match::Unsure
    }

    /// The anchors that a sentence has not.
    fn missing(&self, sentence: &Sentence) -> Vec<&TextAnchor> {
        self.sentence.anchors.iter().filter(|anchor| !sentence.names(anchor)).collect()
    }

    /// Whether a sentence speaks of something else as this one does: of another id, path or name, or it has another word in
    /// the place of one of its words.
    fn is_another(&self, sentence: &Sentence) -> bool {
        let own = &self.sentence;
        let mut missing = self.missing(sentence).into_iter();
        let mut gone = (0..own.words.len())
            .filter(|at| {
                let word = &own.words[*at];
                self.content.contains(word)
                    || own.is_counted(word)
                    || (LISTS.has(&[WordClass::Quantify], word)
                        && !own.has(WordClass::Forbid)
                        && !sentence.has(WordClass::Quantify))
            })
            .filter(|at| alike(&own.words[*at..=*at], &sentence.words) == 0)
            .filter(|at| !sentence.is_counted(&own.words[*at]));
        let mut others = sentence.others(own);
        (missing.any(|anchor| anchor.kind != AnchorKind::Number)
            && others.any(|other| other.kind != AnchorKind::Number))
            || gone.any(|at| {
                let quantifies = LISTS.has(&[WordClass::Quantify], &own.words[at]);
                sentence.replaces_word(own, at) && (!quantifies || sentence.parts_noun(own, at))
            })
    }

    /// Whether a sentence has another anchor of the same kind in place of one of these.
    fn is_replaced(&self, missing: &[&TextAnchor], sentence: &Sentence) -> bool {
        missing.iter().any(|anchor| {
            let mut others = sentence.others(&self.sentence);
            (anchor.kind != AnchorKind::Id || !self.is_short())
                && others.any(|other| other.differs_from(anchor))
        })
    }

    /// Whether only amounts are missing, and all that a sentence has instead are amounts of the same unit.
    fn is_amended(&self, missing: &[&TextAnchor], sentence: &Sentence) -> bool {
        let mut others = sentence.others(&self.sentence);
        missing.iter().map(|anchor| anchor.kind).all(|kind| kind == AnchorKind::Number)
            && others.all(|other| missing.iter().any(|anchor| anchor.is_like(other)))
    }
}

impl Sentence {
    fn revokes(&self, rule: &Self) -> bool {
        self.says_else(WordClass::Revoke, rule) || self.says_else(WordClass::Permit, rule)
    }

    /// Whether its words take back or weaken what a rule says.
    fn loosens(&self, rule: &Self) -> bool {
        let limits = self.has(WordClass::Limit) || (self.compares() && rule.compares());
        let demand_lost = rule.has(WordClass::Demand) && !self.has(WordClass::Demand);
        self.says_else(WordClass::Weak, rule)
            || (!rule.has(WordClass::Limit) && self.says_else(WordClass::Except, rule))
            || self.revokes(rule)
            || (!limits && !self.has(WordClass::Forbid) && self.says_else(WordClass::Allow, rule))
            || (!(self.has(WordClass::Forbid) && rule.has(WordClass::Forbid))
                && ((!limits && self.adds(WordClass::Modal, rule))
                    || (demand_lost && self.adds(WordClass::Wish, rule))))
    }

    fn compares(&self) -> bool {
        let bounds = [WordClass::Compare, WordClass::Upper, WordClass::Lower];
        bounds.into_iter().any(|class| self.has(class))
    }

    /// How it holds a rule whose own words it has, from word `at` on: it may take them back by a word of revocation before
    /// them or behind, weaken or turn them by one right beside them, or leave open whether they hold.
    fn states(&self, rule: &Self, at: usize) -> Match {
        let end = at + rule.words.len();
        let [before, behind] = TAKEN_BACK_WITHIN;
        let front = at.saturating_sub(DENIED_WITHIN)..at;
        let before = at.saturating_sub(before)..at;
        let behind = end..end + behind;
        let around = at.saturating_sub(DOUBTED_WITHIN)..end + DOUBTED_WITHIN;
        let own = at..end;
        let content = rule.content(&rule.anchors);
        let taken = self.cues.iter().filter(|cue| !self.denies(cue)).filter_map(|cue| {
            let place = cue.at.filter(|place| !own.contains(place))?;
            let beside = behind.contains(&place) && self.is_one_clause(end - 1, place);
            let fronted = front.contains(&place) && self.is_one_clause(at, place);
            match cue.class {
                WordClass::Revoke if before.contains(&place) || behind.contains(&place) => {
                    Some(Match::Overruled)
                }
                WordClass::Except if behind.contains(&place) => Some(Match::Changed),
                WordClass::Restrict | WordClass::Weak if beside => Some(Match::Changed),
                WordClass::Forbid | WordClass::Weak if fronted => Some(Match::Changed),
                WordClass::Modal if fronted && !rule.has(WordClass::Forbid) => Some(Match::Changed),
                WordClass::Revoke | WordClass::Doubt if around.contains(&place) => {
                    Some(Match::Unsure)
                }
                WordClass::Modal | WordClass::Permit
                    if around.contains(&place)
                        && !self.is_one_clause(at, place)
                        && self.concerns(self.clauses[place], &content) =>
                {
                    Some(Match::Unsure)
                }
                _ => None,
            }
        });
        let narrowed = self.goes_on(end)
            || self.has_alternative(rule, Some(end))
            || self.is_narrowed(rule, &content);
        let otherwise = if narrowed { Match::Unsure } else { Match::Stated };
        taken.max().unwrap_or(otherwise)
    }

    /// Whether a cue of this class that nothing denies is there, and not in the rule.
    fn says_else(&self, class: WordClass, rule: &Self) -> bool {
        self.new_cues(class, rule).any(|cue| !self.denies(cue))
    }
}
