//! The cursor over JSON: an importer takes the keys it knows out of an object, and counts the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The keys of a JSON object with their values as written; of duplicate keys, the last one.
/// `null` counts as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Object<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Object<'a> {
    /// Reads an object; none if the value is something else.
    pub fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// The value of a key, which stays.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.get(key).copied().filter(|raw| raw.get() != "null")
    }

    /// Whether there is such a key.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether there is such a key, even one of `null`.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether no key is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the value of a key out, even `null`.
    pub fn remove(&mut self, key: &str) -> Option<&'a RawValue> {
        self.0.remove(key)
    }

    /// The text under a key, which stays.
    pub fn text(&self, key: &str) -> Option<Arc<str>> {
        serde_json::from_str(self.get(key)?.get()).ok()
    }

    /// Takes the value of a key out.
    pub fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        self.0.remove(key).filter(|raw| raw.get() != "null")
    }

    /// Takes a value of a type out. One of another type stays, to be counted.
    fn take_typed<T: Deserialize<'a>>(&mut self, key: &str) -> Option<T> {
        let value = serde_json::from_str(self.0.get(key)?.get()).ok()?;
        self.0.remove(key);
        Some(value)
    }

    /// Takes a text out. A value that is not a text stays, to be counted.
    pub fn take_text(&mut self, key: &str) -> Option<Arc<str>> {
        self.take_typed(key)
    }

    /// Takes a text out, unless it is empty.
    pub fn take_words(&mut self, key: &str) -> Option<Arc<str>> {
        self.take_text(key).filter(|text| !text.is_empty())
    }

    /// Takes the type of a record out; `without type` where it has none.
    pub fn take_type(&mut self) -> Arc<str> {
        let kind = self.take_text("type");
        kind.unwrap_or_else(|| "without type".into())
    }

    /// Takes the text under the first of these keys that has one.
    pub fn first_text(&mut self, keys: &[&str]) -> Option<Arc<str>> {
        keys.iter().find_map(|key| self.take_text(key))
    }

    /// Takes the value under the first of these keys that is there.
    pub fn first(&mut self, keys: &[&str]) -> Option<&'a RawValue> {
        keys.iter().find_map(|key| self.take(key))
    }

    /// Takes a value out, parsed; `null` where there is none.
    pub fn value(&mut self, key: &str) -> Value {
        self.take_as(key).unwrap_or_default()
    }

    /// Takes a list out. A value that is not a list stays, to be counted.
    pub fn take_list(&mut self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.take_typed(key)
    }

    /// Takes an object out. A value that is not an object stays, to be counted.
    pub fn take_object(&mut self, key: &str) -> Option<Self> {
        self.take_typed(key)
    }

    /// Takes the object under a key out; an empty one where there is none.
    #[must_use]
    pub fn inner(&mut self, key: &str) -> Self {
        self.take_typed(key).unwrap_or_default()
    }

    /// Takes the items of a list out; none where there is no list.
    pub fn items(&mut self, key: &str) -> Vec<&'a RawValue> {
        self.take_typed(key).unwrap_or_default()
    }

    /// Takes the objects in a list out; of an item that is something else, an empty one.
    pub fn objects(&mut self, key: &str) -> impl Iterator<Item = Self> + use<'a> {
        self.items(key).into_iter().map(|raw| Self::read(raw).unwrap_or_default())
    }

    /// Takes a value out, whatever its type, and reads it.
    pub fn take_as<T: Deserialize<'a>>(&mut self, key: &str) -> Option<T> {
        serde_json::from_str(self.take(key)?.get()).ok()
    }

    /// Takes a value out, and says whether it is `true`.
    pub fn take_flag(&mut self, key: &str) -> bool {
        self.take_as(key) == Some(true)
    }

    /// Takes a value out, and says whether it is `false`.
    pub fn take_denial(&mut self, key: &str) -> bool {
        self.take_as(key) == Some(false)
    }

    /// The keys that were not taken, in their order.
    pub fn into_entries(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter()
    }
}
