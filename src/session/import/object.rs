//! The cursor over JSON: an importer takes the keys it knows out of an object, and counts the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::Assembler;
use super::content::{self, Speaker};
use super::usage::{CachedTokens, usage};
use crate::session::ContentBlock;
use crate::units::{Timestamp, Usage};

/// The keys of a JSON object with their values as written; of duplicate keys, the last one.
/// `null` counts as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Object<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Object<'a> {
    /// Reads an object; none if the value is something else.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// The value of a key, which stays.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.get(key).copied().filter(|raw| raw.get() != "null")
    }

    /// Whether there is such a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether there is such a key, even one of `null`.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether no key is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the value of a key out, even `null`.
    pub(super) fn remove(&mut self, key: &str) -> Option<&'a RawValue> {
        self.0.remove(key)
    }

    /// The text under a key, which stays.
    pub(super) fn text(&self, key: &str) -> Option<Arc<str>> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Takes the value of a key out.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        self.0.remove(key).filter(|raw| raw.get() != "null")
    }

    /// Takes a value of a type out. One of another type stays, to be counted.
    fn take_typed<T: Deserialize<'a>>(&mut self, key: &str) -> Option<T> {
        let value = serde_json::from_str(self.0.get(key)?.get()).ok()?;
        self.0.remove(key);
        Some(value)
    }

    /// Takes a text out. A value that is not a text stays, to be counted.
    pub(super) fn take_text(&mut self, key: &str) -> Option<Arc<str>> {
        self.take_typed(key)
    }

    /// Takes a text out, unless it is empty.
    pub(super) fn take_words(&mut self, key: &str) -> Option<Arc<str>> {
        self.take_text(key).filter(|text| !text.is_empty())
    }

    /// Takes the type of a record out; `without type` where it has none.
    pub(super) fn take_type(&mut self) -> Arc<str> {
        let kind = self.take_text("type");
        kind.unwrap_or_else(|| "without type".into())
    }

    /// Takes the text under the first of these keys that has one.
    pub(super) fn first_text(&mut self, keys: &[&str]) -> Option<Arc<str>> {
        keys.iter().find_map(|key| self.take_text(key))
    }

    /// Takes the value under the first of these keys that is there.
    pub(super) fn first(&mut self, keys: &[&str]) -> Option<&'a RawValue> {
        keys.iter().find_map(|key| self.take(key))
    }

    /// Takes a value out, parsed; `null` where there is none.
    pub(super) fn value(&mut self, key: &str) -> Value {
        self.take_as(key).unwrap_or_default()
    }

    /// Takes a content out, and reads it.
    pub(super) fn take_blocks(
        &mut self,
        key: &str,
        speaker: Speaker,
        assembler: &mut Assembler,
    ) -> Vec<ContentBlock> {
        content::blocks(self.take(key), speaker, &mut assembler.source)
    }

    /// Takes the counters of a call out.
    pub(super) fn take_usage(
        &mut self,
        key: &str,
        cached: CachedTokens,
        assembler: &mut Assembler,
    ) -> Option<Usage> {
        usage(self.take(key)?, cached, &mut assembler.source)
    }

    /// Takes a list out. A value that is not a list stays, to be counted.
    pub(super) fn take_list(&mut self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.take_typed(key)
    }

    /// Takes an object out. A value that is not an object stays, to be counted.
    pub(super) fn take_object(&mut self, key: &str) -> Option<Self> {
        self.take_typed(key)
    }

    /// Takes the object under a key out; an empty one where there is none.
    pub(super) fn inner(&mut self, key: &str) -> Self {
        self.take_typed(key).unwrap_or_default()
    }

    /// Takes the items of a list out; none where there is no list.
    pub(super) fn items(&mut self, key: &str) -> Vec<&'a RawValue> {
        self.take_typed(key).unwrap_or_default()
    }

    /// Takes a value out, whatever its type, and reads it.
    pub(super) fn take_as<T: Deserialize<'a>>(&mut self, key: &str) -> Option<T> {
        serde_json::from_str(self.take(key)?.get()).ok()
    }

    /// Takes a value out, and says whether it is `true`.
    pub(super) fn take_flag(&mut self, key: &str) -> bool {
        self.take_as(key) == Some(true)
    }

    /// Takes a value out, and says whether it is `false`.
    pub(super) fn take_denial(&mut self, key: &str) -> bool {
        self.take_as(key) == Some(false)
    }

    /// Takes a time out; a value that is none is counted.
    pub(super) fn take_time(&mut self, key: &str, assembler: &mut Assembler) -> Option<Timestamp> {
        let time = time(self.take(key)?);
        if time.is_none() {
            assembler.warn("a timestamp cannot be read");
        }
        time
    }

    /// The keys that were not taken, in their order.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter()
    }

    /// Counts the keys that were not taken as not belonging to the conversation.
    pub(super) fn count_left(self, what: &str, assembler: &mut Assembler) {
        for (key, raw) in self.0 {
            if raw.get() != "null" {
                assembler.skip(&format!("{what} `{key}`"));
            }
        }
    }
}

/// An RFC 3339 time, or seconds or milliseconds since 1970.
pub(super) fn time(raw: &RawValue) -> Option<Timestamp> {
    // Seconds reach this in the year 5138, milliseconds did in 1973.
    const SECONDS_BELOW: f64 = 1e11;
    match serde_json::from_str(raw.get()).ok()? {
        Value::String(text) => {
            let time = text.parse::<jiff::Timestamp>().ok()?;
            Some(Timestamp(time.as_millisecond()))
        }
        Value::Number(number) => {
            let number = number.as_f64()?;
            let scale = if number.abs() < SECONDS_BELOW {
                1e3
            } else {
                1.0
            };
            let milliseconds = (number * scale).round();
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (milliseconds.abs() < 1e18).then_some(Timestamp(milliseconds as i64))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
