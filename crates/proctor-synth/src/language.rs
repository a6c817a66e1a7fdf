//! The languages of synthetic sessions.
//!
//! The words of the generator are English. A translation is a table of its templates and words, so
//! a session and its translation are drawn alike: same rounds, same calls, same planted facts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::grammar;

/// The language in which the user and the agent speak, and in which facts are planted.
///
/// Code, logs, commands, ids and the names of tools stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Language {
    /// English, without a table.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Simplified Chinese.
    #[serde(rename = "zh")]
    Chinese,
}

/// Each English template or word, a tab, and its translation; a line feed is written as `\n`.
type Translations = LazyLock<HashMap<String, String>>;

static CHINESE: Translations = LazyLock::new(|| read(include_str!("language/zh.tsv")));

fn read(table: &str) -> HashMap<String, String> {
    let lines = table.lines().filter_map(|line| line.split_once('\t'));
    let whole = |text: &str| text.replace("\\n", "\n");
    lines.map(|(english, translation)| (whole(english), whole(translation))).collect()
}

impl Language {
    /// All of them, English first.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// The code of ISO 639-1, as in scenarios.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    fn table(self) -> Option<&'static HashMap<String, String>> {
        match self {
            Self::English => None,
            Self::Chinese => Some(&CHINESE),
        }
    }

    /// The words in this language; English where the table does not have them.
    pub(crate) fn say(self, english: &str) -> &str {
        self.table().and_then(|table| table.get(english)).map_or(english, String::as_str)
    }

    /// The template in this language, its slots filled with values in this language.
    pub(crate) fn fill(self, template: &str, slots: &[(&str, &str)]) -> String {
        let mut slots = Cow::Borrowed(slots);
        if self != Self::English {
            for (_, value) in slots.to_mut() {
                *value = self.say(value);
            }
        }
        grammar::fill(self.say(template), &slots)
    }

    /// The separator of two sentences.
    pub(crate) fn gap(self) -> &'static str {
        match self {
            Self::English => " ",
            Self::Chinese => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn slots(template: &str) -> BTreeSet<&str> {
        template.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)).collect()
    }

    #[test]
    fn a_translation_has_the_slots_of_its_template_and_is_no_other_word() {
        for language in Language::ALL {
            let mut words = BTreeSet::new();
            for (english, translation) in language.table().into_iter().flatten() {
                assert_eq!(slots(english), slots(translation), "{english}");
                assert!(words.insert(translation), "two words in one: {translation}");
            }
        }
    }
}
