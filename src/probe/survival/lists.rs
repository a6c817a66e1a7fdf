//! The lists of words of `words.toml`: data, of every language at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::script::is_unspaced;

/// What the words of a list say, by the name of the list. Those up to [`Self::Allow`] say it about the force of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    Forbid,
    Limit,
    Demand,
    Quantify,
    Compare,
    Amount,
    Modal,
    Weak,
    Except,
    Revoke,
    Permit,
    Allow,
    Done,
    Open,
    OpenHeading,
    NotYet,
    FormerBefore,
    FormerBehind,
    Turned,
    Denied,
    DeniedBehind,
    /// Words that say nothing about what a sentence is about.
    Stop,
    /// Words behind a number.
    Units,
    /// Numbers in words.
    Numbers,
    /// Pairs of words, each the opposite of the other.
    Opposites,
    /// States of an item that is done.
    Ticked,
}

impl Class {
    /// Whether its words are looked for in a sentence: the others are asked for word by word.
    fn is_cue(self) -> bool {
        !matches!(
            self,
            Self::Stop | Self::Units | Self::Numbers | Self::Opposites | Self::Ticked
        )
    }
}

/// A word, or several in a row, of a class in a sentence.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cue {
    pub(super) class: Class,
    pub(super) text: String,
    /// The number of words before it; of a cue in a script without spaces nothing.
    pub(super) at: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Lists {
    /// By their first word, the entries and their other words.
    entries: HashMap<String, Vec<(Class, Vec<String>)>>,
    /// Words of one meaning or of a pair, by their class.
    groups: Vec<(Class, Vec<String>)>,
    /// Entries in scripts without spaces, which are found inside a sentence.
    unspaced: Vec<(Class, String)>,
}

pub(super) static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let table: BTreeMap<Class, String> =
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
                let known = lists.entries.entry(first).or_default();
                known.push((*class, words.collect()));
            }
            if group.len() > 1 {
                lists.groups.push((*class, group));
            }
        }
    }
    lists
});

impl Lists {
    /// Whether this word alone is an entry of one of these lists.
    pub(super) fn has(&self, classes: &[Class], word: &str) -> bool {
        let mut entries = self.entries.get(word).into_iter().flatten();
        entries.any(|(class, rest)| rest.is_empty() && classes.contains(class))
    }

    /// The entry that this word of a list stands for.
    pub(super) fn stands_for<'a>(&'a self, class: Class, word: &'a str) -> Option<&'a str> {
        if !self.has(&[class], word) {
            return None;
        }
        Some(self.group(class, word).map_or(word, |group| &group[0]))
    }

    /// The entries of one meaning with this word; `None` if the list does not have it, or it has no other.
    pub(super) fn group(&self, class: Class, word: &str) -> Option<&[String]> {
        let mut groups = self.groups.iter().filter(|(own, _)| *own == class);
        let found = groups.find(|(_, group)| group.iter().any(|entry| entry == word));
        found.map(|(_, group)| group.as_slice())
    }

    /// Whether a text ends with an entry of a script without spaces.
    pub(super) fn ends(&self, class: Class, text: &str) -> bool {
        let mut entries = self.unspaced.iter().filter(|(own, _)| *own == class);
        entries.any(|(_, entry)| text.trim_end().ends_with(entry.as_str()))
    }

    /// The words of each pair, both ways round.
    pub(super) fn opposites(&self) -> impl Iterator<Item = [&str; 2]> {
        let groups = self.groups.iter();
        let groups = groups.filter(|(class, _)| *class == Class::Opposites);
        groups.flat_map(|(_, group)| [[&*group[0], &*group[1]], [&*group[1], &*group[0]]])
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
                found.push(Cue {
                    class: *class,
                    text: entry.clone(),
                    at: None,
                });
            }
        }
        found
    }
}
