//! The lists of words of `words.toml`: data, of several languages at once.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

/// A list of words, parted by white space.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "String")]
pub(crate) struct WordList(BTreeSet<String>);

impl From<String> for WordList {
    fn from(words: String) -> Self {
        Self(words.split_whitespace().map(str::to_owned).collect())
    }
}

impl WordList {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Words {
    pub(crate) around: WordList,
    pub(crate) turning: WordList,
    pub(crate) excepting: WordList,
    pub(crate) source: WordList,
    pub(crate) because: WordList,
    pub(crate) fault: WordList,
    pub(crate) letter: WordList,
    pub(crate) no_call: WordList,
    pub(crate) asking: WordList,
}

pub(crate) static WORDS: LazyLock<Words> =
    LazyLock::new(|| toml::from_str(include_str!("words.toml")).unwrap_or_default());
