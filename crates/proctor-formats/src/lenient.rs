//! Reads records of which a key may be of an odd type.
//!
//! A record is read as it is described. Where that fails, each key that does not fit is left out
//! and counted, and the others are read: one odd key is not a reason to refuse a file.

use super::prelude::*;

use serde::de::value::MapDeserializer;

use super::file::NO_RECORD;

/// Reads an object whose keys are all optional, and counts what is left out in `source`; none if it
/// is not an object.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str, source: &mut Source) -> Option<T> {
    if let Ok(read) = serde_json::from_str(text) {
        return Some(read);
    }
    // Of duplicate keys, the last one counts.
    let mut entries: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(text).ok()?;
    entries.retain(|key, value| {
        let alone =
            MapDeserializer::<_, serde_json::Error>::new(std::iter::once((key.clone(), *value)));
        let fits = T::deserialize(alone).is_ok();
        if !fits {
            source.warn(&format!("the key `{key}` is of an odd type and is left out"));
        }
        fits
    });
    T::deserialize(MapDeserializer::<_, serde_json::Error>::new(entries.into_iter())).ok()
}

/// Reads a record that is an object whose keys are all optional; one that is other JSON is counted as
/// unknown.
pub(super) fn record<'a, T: Deserialize<'a>>(raw: &'a RawValue, source: &mut Source) -> Option<T> {
    let read = raw.get().starts_with('{').then(|| object(raw.get(), source)).flatten();
    if read.is_none() {
        source.not_understood(NO_RECORD);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Record<'a> {
        name: Option<String>,
        size: Option<u64>,
        #[serde(borrow)]
        rest: Option<&'a RawValue>,
    }

    /// Expects the keys `name`, `size` and `rest` as read, and the number of keys that were left
    /// out.
    #[track_caller]
    fn check(text: &str, expected: &str, odd: usize) {
        let mut source = Source::default();
        let read: Option<Record<'_>> = object(text, &mut source);
        let read = read.map(|it| {
            let rest = it.rest.map(RawValue::get);
            format!("{:?} {:?} {rest:?}", it.name, it.size)
        });
        assert_eq!(read.as_deref().unwrap_or("nothing"), expected, "{text}");
        assert_eq!(source.warnings.len(), odd, "{text}");
    }

    #[test]
    fn keys_of_an_odd_type_are_left_out_and_counted() {
        check(
            r#"{"name":"a","size":1,"rest":[ 2 ],"more":3}"#,
            r#"Some("a") Some(1) Some("[ 2 ]")"#,
            0,
        );
        check(r#"{"name":7,"size":1,"rest":[ 2 ]}"#, r#"None Some(1) Some("[ 2 ]")"#, 1);
        check(r#"{"name":7,"size":-1,"rest":{}}"#, r#"None None Some("{}")"#, 2);
        check(r#"{"name":"a","size":0,"size":1}"#, r#"Some("a") Some(1) None"#, 0);
        check("[]", "nothing", 0);
        check("7", "nothing", 0);
    }
}
