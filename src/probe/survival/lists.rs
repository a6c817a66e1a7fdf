//! The lists of words of `words.toml`: data, of every language at once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use serde::Deserialize;

use super::is_part;
use crate::script::is_unspaced;

/// A text is of a script without lists if more than one of so many letters is.
const LEAST_FOREIGN: usize = 5;

/// The meaning of the words of a list, by the name of the list. Those up to [`Self::Allow`] say it about the force of a rule; all
/// before [`Self::Stop`] are looked for in a sentence, the others are asked for word by word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WordClass {
    /// Each of these forbids, too.
    Deny,
    Forbid,
    Limit,
    Demand,
    Quantify,
    Compare,
    /// At most, and at least.
    Upper,
    Lower,
    Modal,
    /// Of these modal words those that weaken a limit, too.
    Wish,
    Weak,
    Except,
    Restrict,
    Narrow,
    Along,
    Whole,
    Doubt,
    Guess,
    Inactive,
    Refers,
    Revoke,
    Permit,
    Allow,
    Beyond,
    Lapsed,
    Done,
    Open,
    OpenHeading,
    NotYet,
    FormerBefore,
    FormerBehind,
    CurrentBefore,
    CurrentBehind,
    Denied,
    DeniedBehind,
    /// Right before a key: its value is an older one.
    FormerKey,
    /// Between two values of which one holds.
    Either,
    /// Words that say nothing about what a sentence is about.
    Stop,
    /// Words that may not change sides.
    Divide,
    /// Words of languages without lists.
    Foreign,
    /// Words behind a number.
    Units,
    /// Signs and codes of currencies.
    Signs,
    /// Words behind a number that multiply it.
    Powers,
    /// A unit, another one, and how many of the first that is.
    Scales,
    /// Between two parts of an amount.
    And,
    /// How a file and its line are written.
    Places,
    /// By their number.
    Months,
    /// Numbers in words.
    Numbers,
    /// Pairs of words, each the opposite of the other.
    Opposites,
    /// States of an item that is done.
    Ticked,
    /// Of a heading whose list is one of rules.
    RuleHeading,
}

impl WordClass {
    /// Whether its words say how much is meant.
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Self::Upper | Self::Lower)
    }

    /// The most for the least, and the other way round.
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Upper => Self::Lower,
            Self::Lower => Self::Upper,
            class => class,
        }
    }

    /// Whether its words are looked for in a sentence.
    fn is_cue(self) -> bool {
        self < Self::Stop
    }
}

/// A word, or several in a row, of a class in a sentence.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cue {
    pub(super) class: WordClass,
    pub(super) text: String,
    /// The number of words before it; of a cue in a script without spaces nothing.
    pub(super) at: Option<usize>,
}

impl Cue {
    /// Its words.
    pub(super) fn place(&self) -> Range<usize> {
        let at = self.at.unwrap_or(usize::MAX - 1);
        at..at + self.text.split('_').count()
    }

    /// Whether it is one word.
    pub(super) fn is_word(&self) -> bool {
        !self.text.contains('_')
    }

    /// Whether it stands at most so many words before another one.
    pub(super) fn is_right_before(&self, other: &Self, within: usize) -> bool {
        self.at.zip(other.at).is_some_and(|(at, other)| at < other && other <= at + within)
    }
}

#[derive(Debug, Default)]
pub(super) struct Lists {
    /// By their first word, the entries and their other words.
    entries: HashMap<String, Vec<(WordClass, Vec<String>)>>,
    /// The entries of a class, each with its other forms.
    groups: BTreeMap<WordClass, Vec<Vec<String>>>,
    /// Entries in scripts without spaces, which are found inside a sentence.
    unspaced: Vec<(WordClass, String)>,
}

pub(super) static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let table: BTreeMap<WordClass, String> =
        toml::from_str(include_str!("words.toml")).unwrap_or_default();
    let mut lists = Lists::default();
    for (class, entries) in &table {
        for entry in entries.split_whitespace() {
            if entry.chars().all(is_unspaced) {
                lists.unspaced.push((*class, entry.to_owned()));
                continue;
            }
            let group: Vec<String> = entry.split('/').map(str::to_owned).collect();
            for entry in &group {
                let mut words = entry.split('_').map(str::to_owned);
                let first = words.next().unwrap_or_default();
                let rest: Vec<String> = words.collect();
                let known = lists.entries.entry(first).or_default();
                if *class == WordClass::Deny {
                    known.push((WordClass::Forbid, rest.clone()));
                }
                known.push((*class, rest));
            }
            lists.groups.entry(*class).or_default().push(group);
        }
    }
    lists
});

impl Lists {
    /// Whether this word alone is an entry of one of these lists.
    pub(super) fn has(&self, classes: &[WordClass], word: &str) -> bool {
        let mut entries = self.entries.get(word).into_iter().flatten();
        entries.any(|(class, rest)| rest.is_empty() && classes.contains(class))
    }

    /// The entry that this word of a list stands for.
    pub(super) fn stands_for(&self, class: WordClass, word: &str) -> Option<&str> {
        if !self.has(&[class], word) {
            return None;
        }
        let mut groups = self.of(class);
        groups.find(|group| group.iter().any(|entry| entry == word))?.first().map(String::as_str)
    }

    /// The entries of a list, each with its other forms.
    pub(super) fn of(&self, class: WordClass) -> impl Iterator<Item = &[String]> {
        self.groups.get(&class).into_iter().flatten().map(Vec::as_slice)
    }

    /// Whether a text ends with an entry of a script without spaces.
    pub(super) fn ends(&self, class: WordClass, text: &str) -> bool {
        let mut entries = self.unspaced.iter().filter(|(own, _)| *own == class);
        entries.any(|(_, entry)| text.trim_end().ends_with(entry.as_str()))
    }

    /// The words of each pair, both ways round.
    pub(super) fn opposites(&self) -> impl Iterator<Item = [&str; 2]> {
        let pairs = self.of(WordClass::Opposites).filter_map(|pair| match pair {
            [one, other] => Some([[&**one, &**other], [&**other, &**one]]),
            _ => None,
        });
        pairs.flatten()
    }

    /// The cues in a text of these words, those of scripts without spaces last.
    pub(super) fn cues(&self, text: &str, words: &[String]) -> Vec<Cue> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            for (class, rest) in self.entries.get(word).into_iter().flatten() {
                if class.is_cue() && words[at + 1..].starts_with(rest) {
                    found.push(Cue {
                        class: *class,
                        text: [std::slice::from_ref(word), rest].concat().join("_"),
                        at: Some(at),
                    });
                }
            }
        }
        for (class, entry) in &self.unspaced {
            if class.is_cue() && text.contains(entry) {
                found.push(Cue { class: *class, text: entry.clone(), at: None });
            }
        }
        // "Needs no fewer than 2" revokes nothing.
        let bounds: Vec<usize> =
            found.iter().filter(|cue| cue.class.is_bound()).filter_map(|cue| cue.at).collect();
        found.retain(|cue| cue.class != WordClass::Revoke || !bounds.contains(&cue.place().end));
        // "No" is only a part of "no longer".
        for at in (0..found.len()).rev() {
            let mut others = found.iter().filter(|other| other.class <= WordClass::Allow);
            if others.any(|other| is_part(&found[at].place(), &other.place())) {
                found.remove(at);
            }
        }
        found
    }

    /// Whether the words of a text may be of a language that has lists here.
    pub(super) fn know(&self, text: &str, words: &[String]) -> bool {
        let letters: Vec<char> = text.chars().filter(|c| c.is_alphabetic()).collect();
        let foreign = letters.iter().filter(|c| !is_listed_script(**c)).count();
        if LEAST_FOREIGN * foreign > letters.len() {
            return false;
        }
        let mut counts = [0; 2];
        for word in words {
            let mut classes = self.entries.get(word).into_iter().flatten();
            let strange = self.has(&[WordClass::Foreign], word);
            let familiar = classes.any(|(class, _)| *class == WordClass::Stop || class.is_cue());
            counts[0] += usize::from(strange);
            counts[1] += usize::from(familiar && !strange);
        }
        match counts {
            [0 | 1, 0] => words.len() < 3 || !letters.into_iter().any(is_accented),
            [foreign, known] => foreign < 2 || foreign <= known,
        }
    }
}

/// Whether a letter is of a script in which words are listed: Latin or Chinese.
fn is_listed_script(c: char) -> bool {
    matches!(u32::from(c), ..0x250 | 0x1e00..=0x1eff | 0x3005..=0x3007 | 0x3400..=0x9fff | 0xf900..=0xfaff)
}

/// Whether a letter is Latin, and none that English has.
fn is_accented(c: char) -> bool {
    matches!(u32::from(c), 0xc0..0x250 | 0x1e00..=0x1eff)
}
