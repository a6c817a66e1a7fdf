//! The lists of words of `words.toml`: data, of every language at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use crate::script::is_unspaced;

/// What a word says. Those up to [`Self::Revoke`] say it about the force of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Forbid,
    Limit,
    Demand,
    Quantify,
    Compare,
    Modal,
    Weak,
    Revoke,
    Done,
    Open,
    OpenHeading,
    NotYet,
    FormerBefore,
    FormerBehind,
}

/// The classes with the names of their lists.
const CLASSES: [(&str, Class); 14] = [
    ("forbid", Class::Forbid),
    ("limit", Class::Limit),
    ("demand", Class::Demand),
    ("quantify", Class::Quantify),
    ("compare", Class::Compare),
    ("modal", Class::Modal),
    ("weak", Class::Weak),
    ("revoke", Class::Revoke),
    ("done", Class::Done),
    ("open", Class::Open),
    ("open_heading", Class::OpenHeading),
    ("not_yet", Class::NotYet),
    ("former_before", Class::FormerBefore),
    ("former_behind", Class::FormerBehind),
];

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
    /// Words that say nothing about what a sentence is about.
    pub(super) stop: HashSet<String>,
    /// Words behind a number.
    pub(super) units: HashSet<String>,
    /// By their first word, the cues and their other words.
    cues: HashMap<String, Vec<(Class, Vec<String>)>>,
    /// Cues in scripts without spaces, which are found inside a sentence.
    unspaced: Vec<(Class, String)>,
}

pub(super) static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let table: BTreeMap<String, String> =
        toml::from_str(include_str!("words.toml")).unwrap_or_default();
    let words = |name: &str| table.get(name).map_or("", |text| text).split_whitespace();
    let mut lists = Lists {
        stop: words("stop").map(str::to_owned).collect(),
        units: words("units").map(str::to_owned).collect(),
        ..Lists::default()
    };
    for (name, class) in CLASSES {
        for entry in words(name) {
            if entry.chars().all(is_unspaced) {
                lists.unspaced.push((class, entry.to_owned()));
                continue;
            }
            let mut parts = entry.split('_').map(str::to_owned);
            let first = parts.next().unwrap_or_default();
            let cues = lists.cues.entry(first).or_default();
            cues.push((class, parts.collect()));
        }
    }
    lists
});

impl Lists {
    /// Whether a word says what a text is about: it is no stop word, and neither forbids nor demands.
    pub(super) fn is_content(&self, word: &str) -> bool {
        let mut cues = self.cues.get(word).into_iter().flatten();
        let is_force = cues
            .any(|(class, rest)| rest.is_empty() && matches!(class, Class::Forbid | Class::Demand));
        !is_force && !self.stop.contains(word)
    }

    /// The cues in a text of these words, those of scripts without spaces last.
    pub(super) fn cues(&self, text: &str, words: &[String]) -> Vec<Cue> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            for (class, rest) in self.cues.get(word).into_iter().flatten() {
                if words[at + 1..].starts_with(rest) {
                    found.push(Cue {
                        class: *class,
                        text: [std::slice::from_ref(word), rest].concat().join("_"),
                        at: Some(at),
                    });
                }
            }
        }
        let unspaced = self.unspaced.iter();
        let unspaced = unspaced.filter(|(_, entry)| text.contains(entry));
        found.extend(unspaced.map(|(class, entry)| Cue {
            class: *class,
            text: entry.clone(),
            at: None,
        }));
        found
    }
}
