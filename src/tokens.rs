//! Counts tokens in text, each distinct text once.
//!
//! A [`TokenCounter`] counts one text and nothing else. [`CountedTexts`] remembers what it was
//! told, so that replaying a session through ten strategies tokenises it once. What is counted is
//! always [`Message::model_text`](crate::session::Message::model_text): no overhead per message
//! is added, because providers do not publish theirs.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Sub};
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;

mod chars;
mod o200k;

pub use chars::CharsPer4;
pub use o200k::O200k;

/// Tokens counted for one image.
///
/// Anthropic's documentation on vision gives about 1,600 tokens for the largest image that is not
/// scaled down; recordings do not say how large theirs were.
pub const IMAGE_TOKENS: Tokens = Tokens(1_600);

/// Counts the tokens of a text.
///
/// The empty text has no tokens. The count of a text never depends on what was counted before.
pub trait TokenCounter: Debug + Send + Sync {
    /// The name used in scenarios and reports: `o200k`, `chars/4`.
    fn name(&self) -> &'static str;

    /// The number of tokens in `text`.
    fn count(&self, text: &str) -> Tokens;
}

/// The counters a scenario can name, with one line each for `--help` and the docs.
pub const COUNTERS: &[(&str, &str)] = &[
    (
        "o200k",
        "exact byte-pair encoding of OpenAI's o200k vocabulary",
    ),
    ("chars/4", "characters divided by four, rounded up per text"),
];

/// The counter of that name, or `None` if there is none; [`COUNTERS`] lists them.
pub fn counter(name: &str) -> Option<Arc<dyn TokenCounter>> {
    match name {
        "o200k" => Some(Arc::new(O200k)),
        "chars/4" => Some(Arc::new(CharsPer4)),
        _ => None,
    }
}

/// How large a text, a message or a prompt is, in three measures at once.
///
/// Triggers may measure in another unit than the scenario counts in; keeping the three side by
/// side makes that free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Tokens, by the scenario's counter.
    pub tokens: Tokens,
    /// Unicode scalar values.
    pub chars: u64,
    /// Bytes of UTF-8.
    pub bytes: u64,
}

impl Add for Size {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            chars: self.chars + other.chars,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Size {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            tokens: self.tokens - other.tokens,
            chars: self.chars.saturating_sub(other.chars),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::default(), Add::add)
    }
}

/// The sizes of all texts seen so far, each counted once.
///
/// The key is the text itself, not a hash of it: hostile input cannot make two texts collide.
/// Shared between threads.
#[derive(Debug)]
pub struct CountedTexts {
    counter: Arc<dyn TokenCounter>,
    sizes: RwLock<HashMap<Arc<str>, Size, RandomState>>,
}

impl CountedTexts {
    /// An empty table for one counter.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            counter,
            sizes: RwLock::default(),
        }
    }

    /// The counter's name.
    pub fn counter_name(&self) -> &'static str {
        self.counter.name()
    }

    /// The counter.
    pub fn counter(&self) -> &Arc<dyn TokenCounter> {
        &self.counter
    }

    /// The size of `text`, counted now if it was never seen.
    pub fn size(&self, text: &Arc<str>) -> Size {
        if let Some(size) = self
            .sizes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(text)
        {
            return *size;
        }
        let size = self.measure(text);
        self.sizes
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(text.clone(), size);
        size
    }

    /// Counts all of `texts` in parallel.
    pub fn preload<'a>(&self, texts: impl IntoIterator<Item = &'a Arc<str>>) {
        let mut new: HashSet<Arc<str>, RandomState> = HashSet::default();
        {
            let known = self.sizes.read().unwrap_or_else(PoisonError::into_inner);
            for text in texts {
                if !known.contains_key(text) {
                    new.insert(text.clone());
                }
            }
        }
        let counted: Vec<(Arc<str>, Size)> = new
            .into_par_iter()
            .map(|text| {
                let size = self.measure(&text);
                (text, size)
            })
            .collect();
        self.sizes
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(counted);
    }

    fn measure(&self, text: &str) -> Size {
        Size {
            tokens: self.counter.count(text),
            chars: text.chars().count() as u64,
            bytes: text.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_counter_exists_and_counts_nothing_as_nothing() {
        for (name, _) in COUNTERS {
            let counter = counter(name).expect(name);
            assert_eq!(counter.name(), *name);
            assert_eq!(counter.count(""), Tokens::ZERO);
        }
        assert!(counter("words").is_none());
    }

    #[test]
    fn preloading_changes_no_count() {
        let texts: Vec<Arc<str>> = ["alpha", "beta", "alpha", "", "ünïcödé"]
            .map(Arc::from)
            .to_vec();
        let warm = CountedTexts::new(Arc::new(O200k));
        warm.preload(&texts);
        let cold = CountedTexts::new(Arc::new(O200k));
        for text in &texts {
            assert_eq!(warm.size(text), cold.size(text));
        }
        assert_eq!(
            cold.size(&texts[4]),
            Size {
                chars: 7,
                bytes: 11,
                ..cold.size(&texts[4])
            }
        );
    }
}
