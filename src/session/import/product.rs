//! What several products have in common: words of their records, and records that form a tree.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::assemble::Assembler;

/// Whether `word` is one of `words`, which are separated by white space.
pub(super) fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Adds a record and all records above it to `path`, up to one that is there already: a circle ends
/// where it began.
pub(super) fn climb<T: Ord + Copy>(
    from: Option<T>,
    parent: impl Fn(T) -> Option<T>,
    path: &mut BTreeSet<T>,
) {
    let mut at = from;
    while let Some(here) = at
        && path.insert(here)
    {
        at = parent(here);
    }
}

/// The cached tokens of a prompt, where its size includes them.
pub(super) fn cached_within(prompt: u64, cached: u64, assembler: &mut Assembler) -> u64 {
    if cached > prompt {
        assembler.warn("a usage counts more cached tokens than the prompt has");
    }
    cached.min(prompt)
}

/// A JSON object of values as they were recorded.
pub(super) fn json_object<'a>(
    entries: impl IntoIterator<Item = (impl AsRef<str>, &'a RawValue)>,
) -> String {
    let entries = entries.into_iter().map(|(key, value)| {
        let key = serde_json::Value::from(key.as_ref());
        format!("{key}:{}", value.get())
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}
