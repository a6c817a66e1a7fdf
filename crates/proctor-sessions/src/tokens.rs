//! Counts tokens in text, each distinct text of more than a few letters once.
//!
//! A [`TokenCounter`] counts one text, and says which texts of a block count. [`CountedTexts`]
//! remembers the counts, so that replaying a session through ten strategies tokenises it once. What
//! is counted is [`Message::model_text`](crate::Message::model_text), unless a counter has
//! its own rule: no overhead per message is added, because providers do not publish theirs.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::ops::Sub;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use derive_more::{Add, AddAssign, Sum};
use foldhash::fast::RandomState;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::units::{Factor, Tokens};

mod bpe;
mod content;
mod estimates;
mod images;
mod packed;

pub use bpe::{Cl100k, O200k, Vocabulary};
pub use content::Cl100kContent;
pub use estimates::{BytesPer4, CharsPer3, CharsPer4, Padded, TokenEstimate};
pub use images::{IMAGE_TOKENS, ImageRule, Picture, Pixels};
#[doc(hidden)]
pub use packed::PackedSize;

/// Counts the tokens of a text.
///
/// The empty text has no tokens. The count of a text never depends on what was counted before.
pub trait TokenCounter: Debug + Send + Sync {
    /// The name used in scenarios and reports: `o200k`, `chars/4`.
    fn name(&self) -> &'static str;

    /// The number of tokens in `text`.
    fn count(&self, text: &str) -> Tokens;

    /// The number of tokens in a block of a message: its model text and its images, which cost
    /// `images`, unless the counter has another rule. Every text is to be counted by `count`, which
    /// remembers.
    fn count_block(
        &self,
        block: &Block<'_>,
        count: &dyn Fn(&Arc<str>) -> Tokens,
        images: Tokens,
    ) -> Tokens {
        count(block.text) + images
    }

    /// Whether the count of any text that holds these two bytes side by side is the sum of the counts
    /// of its two parts. `false` where that is not certain.
    fn always_cuts(&self, _before: u8, _after: u8) -> bool {
        false
    }

    /// Whether the definitions of tools count.
    fn schemas(&self) -> Schemas {
        Schemas::Counted
    }
}

/// One block of a message, as counters see it.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Its kind.
    pub kind: BlockKind<'a>,
    /// The text that the model reads.
    pub text: &'a Arc<str>,
    /// The images in it.
    pub images: &'a [Picture],
}

/// The kind of a block.
#[derive(Debug, Clone, Copy)]
pub enum BlockKind<'a> {
    /// Plain text.
    Text,
    /// The model's visible reasoning.
    Thinking,
    /// The model asks for a tool.
    ToolUse {
        /// The tool's name.
        name: &'a Arc<str>,
        /// The arguments: JSON, as recorded.
        input: &'a str,
    },
    /// The answer to a tool use.
    ToolResult,
    /// A picture.
    Image,
    /// A file handed to the model: an opaque block of kind `document`.
    Document,
    /// A block of another unknown kind.
    Opaque,
}

/// Whether the definitions of tools are part of a prompt's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schemas {
    /// They count like any text.
    Counted,
    /// They count nothing.
    LeftOut,
}

/// The counters a scenario can name, with one line each for `--help` and the docs.
pub const COUNTERS: &[(&str, &str)] = &[
    ("o200k", "exact byte-pair encoding of OpenAI's o200k vocabulary"),
    ("cl100k", "exact byte-pair encoding of OpenAI's cl100k vocabulary"),
    (
        "cl100k-content",
        "cl100k of system text, text, tool names, compact arguments and results, and of nothing else",
    ),
    ("chars/4", "characters divided by four, rounded up per text"),
    ("chars/3", "characters divided by three, rounded up per text"),
    ("bytes/4", "bytes divided by four, rounded up per text"),
    (
        "padded",
        "characters divided by three, and 2,667 per image or document: chars/4 padded by a third",
    ),
];

/// The counter of that name, or `None` if there is none; [`COUNTERS`] lists them.
pub fn counter(name: &str) -> Option<Arc<dyn TokenCounter>> {
    match name {
        "o200k" => Some(Arc::new(O200k)),
        "cl100k" => Some(Arc::new(Cl100k)),
        "cl100k-content" => Some(Arc::new(Cl100kContent)),
        "chars/4" => Some(Arc::new(CharsPer4)),
        "chars/3" => Some(Arc::new(CharsPer3)),
        "bytes/4" => Some(Arc::new(BytesPer4)),
        "padded" => Some(Arc::new(Padded)),
        _ => None,
    }
}

/// How large a text, a message or a prompt is, in three measures at once.
///
/// Triggers may measure in another unit than the scenario counts in; keeping the three side by
/// side makes that free.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Add, AddAssign, Sum, Serialize, Deserialize,
)]
pub struct Size {
    /// Tokens, by the scenario's counter.
    pub tokens: Tokens,
    /// The part of `tokens` whose billed size is not known: a factor tells it.
    pub scaled: Tokens,
    /// The rest in the provider's tokens: texts by their bill, images by their dimensions.
    pub billed: Tokens,
    /// Unicode scalar values.
    pub chars: u64,
    /// Bytes of UTF-8.
    pub bytes: u64,
}

impl Size {
    /// Tokens that no text shows and the bill does.
    pub fn hidden(tokens: Tokens) -> Self {
        Self { tokens, billed: tokens, ..Self::default() }
    }

    /// The same text, of which a bill shows this factor.
    #[must_use]
    pub fn billed_by(self, factor: Option<Factor>) -> Self {
        match factor {
            None => self,
            Some(factor) => Self {
                scaled: Tokens::ZERO,
                billed: self.billed + factor.bill(self.scaled),
                ..self
            },
        }
    }
}

impl Sub for Size {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            tokens: self.tokens - other.tokens,
            scaled: self.scaled - other.scaled,
            billed: self.billed - other.billed,
            chars: self.chars.saturating_sub(other.chars),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Texts of at most so many bytes are in no table: to count or to search one again is as fast as to look it
/// up, and a session may have a million of them.
pub const SHORT_BYTES: usize = 16;

/// The sizes of all texts seen so far, each counted once; short ones each time anew.
///
/// The key is the text itself, not a hash of it: hostile input cannot make two texts collide.
/// Shared between threads.
#[derive(Debug)]
pub struct CountedTexts {
    counter: Arc<dyn TokenCounter>,
    images: ImageRule,
    sizes: RwLock<HashMap<Arc<str>, Size, RandomState>>,
    /// The same texts by other counters, as far as somebody asked.
    by_counter: Mutex<BTreeMap<&'static str, Arc<CountedTexts>>>,
}

impl CountedTexts {
    /// An empty table for one counter.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            counter,
            images: ImageRule::STANDARD,
            sizes: RwLock::default(),
            by_counter: Mutex::default(),
        }
    }

    /// The same, with images counted as this model's provider does.
    #[must_use]
    pub fn with_images_of(mut self, model: Option<&str>) -> Self {
        self.images = ImageRule::of(model);
        self
    }

    /// Sizes by the counter called `name`, or `None` if there is none: a table that this one keeps.
    pub fn by_counter(&self, name: &str) -> Option<Arc<Self>> {
        let named = counter(name)?;
        let mut tables = self.by_counter.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(named.name()).or_insert_with(|| {
            let mut table = Self::new(named);
            table.images = self.images;
            Arc::new(table)
        });
        Some(table.clone())
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
        if text.len() <= SHORT_BYTES {
            return self.measure(text);
        }
        let sizes = self.sizes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = sizes.get(text) {
            return *size;
        }
        drop(sizes);
        let size = self.measure(text);
        let mut sizes = self.sizes.write().unwrap_or_else(PoisonError::into_inner);
        sizes.insert(text.clone(), size);
        size
    }

    /// The size of a block, by the counter's rule; characters and bytes are those of its text.
    pub fn block(&self, block: &Block<'_>) -> Size {
        // Most counters ask for the block's own text and nothing else: one look-up is enough.
        let counted = Cell::new(None);
        let count = |text: &Arc<str>| {
            let size = self.size(text);
            if Arc::ptr_eq(text, block.text) {
                counted.set(Some(size));
            }
            size.tokens
        };
        let tokens = self.counter.count_block(block, &count, self.images(block));
        let own = counted.get().unwrap_or_else(|| self.size(block.text));
        // Beyond its text a block has images only.
        let billed = if block.images.is_empty() { Tokens::ZERO } else { tokens - own.tokens };
        Size { tokens, scaled: tokens - billed, billed, ..own }
    }

    /// The tokens of the images in a block.
    pub fn images(&self, block: &Block<'_>) -> Tokens {
        let images = block.images.iter();
        images.map(|picture| self.images.tokens(picture)).sum()
    }

    /// The size of a tool's definition; its tokens count where the counter's rule says so.
    pub fn schema(&self, definition: &Arc<str>) -> Size {
        let size = self.size(definition);
        match self.counter.schemas() {
            Schemas::Counted => size,
            Schemas::LeftOut => Size { tokens: Tokens::ZERO, scaled: Tokens::ZERO, ..size },
        }
    }

    /// Counts all of `texts` in parallel.
    pub fn preload<'a>(&self, texts: impl IntoIterator<Item = &'a Arc<str>>) {
        /// So many are counted before they are kept: enough for all threads.
        const AT_ONCE: usize = 1 << 14;
        let mut rest = texts.into_iter();
        loop {
            let known = self.sizes.read().unwrap_or_else(PoisonError::into_inner);
            let long = rest.by_ref().filter(|text| text.len() > SHORT_BYTES);
            let new: HashSet<&Arc<str>, RandomState> =
                long.filter(|text| !known.contains_key(*text)).take(AT_ONCE).collect();
            drop(known);
            if new.is_empty() {
                return;
            }
            let counted: Vec<(Arc<str>, Size)> =
                new.into_par_iter().map(|text| (text.clone(), self.measure(text))).collect();
            let mut sizes = self.sizes.write().unwrap_or_else(PoisonError::into_inner);
            sizes.extend(counted);
        }
    }

    fn measure(&self, text: &str) -> Size {
        let tokens = self.counter.count(text);
        Size {
            tokens,
            scaled: tokens,
            billed: Tokens::ZERO,
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
        let texts: Vec<Arc<str>> =
            ["alpha", "beta", "alpha", "", "ünïcödé"].map(Arc::from).to_vec();
        let warm = CountedTexts::new(Arc::new(O200k));
        warm.preload(&texts);
        let cold = CountedTexts::new(Arc::new(O200k));
        for text in &texts {
            assert_eq!(warm.size(text), cold.size(text));
        }
        assert_eq!(cold.size(&texts[4]), Size { chars: 7, bytes: 11, ..cold.size(&texts[4]) });
    }
}
