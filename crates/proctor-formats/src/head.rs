//! The beginning of a file, from which its format is detected.

use serde_json::Value;

use super::file::{notice, strip_bom};
use proctor_sessions::wire::json_bytes::{Mark, marks, mend_numbers, mend_surrogates};

/// How much of a file detection sees, long texts and deep values left out.
pub(super) const HEAD: usize = 64 * 1024;

/// How much of a file is read for that: a system prompt may be long, and stand before everything else.
pub(super) const READ: usize = 1 << 20;

/// So much of a text is seen.
const LONG: usize = 8 * 1024;

/// How deep JSON may be nested to be looked at.
const DEEPEST: usize = 60;

/// No role and no type is longer: a cut text of more bytes is certainly neither.
const KEYWORD: usize = 40;

/// The first bytes of a file, which may be cut anywhere.
pub(crate) struct Head {
    /// The text from the first character that is not white space.
    pub(crate) text: String,
    /// The JSON values in it; one that was cut is closed.
    pub(crate) values: Vec<Value>,
}

impl Head {
    /// The beginning of a file with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(strip_bom(&bytes[..bytes.len().min(READ)]));
        let text = text[notice(text.as_bytes())..].trim_start();
        let text = if text.starts_with(['{', '[']) {
            shortened(text)
        } else {
            text[..text.floor_char_boundary(HEAD)].to_owned()
        };
        Self { values: values(&text), text }
    }

    /// The first record.
    pub(crate) fn first(&self) -> Option<&Value> {
        self.values.first()
    }

    /// Whether it begins as JSON: behind the first brackets of TOML stands a name.
    pub(super) fn is_json(&self) -> bool {
        let inside = self.text.trim_start_matches(|c: char| c == '[' || c.is_ascii_whitespace());
        let literals = ["true", "false", "null"];
        self.text.starts_with('{')
            || self.text.starts_with('[')
                && (!inside.starts_with(char::is_alphabetic)
                    || literals.iter().any(|literal| inside.starts_with(literal)))
    }

    /// The first record in words, for an error about a file that is no recording.
    pub(super) fn in_words(&self) -> String {
        /// The keys that are named.
        const KEYS: usize = 5;
        let of = match self.first() {
            Some(Value::Array(items)) if items.is_empty() => return "an empty list".to_owned(),
            Some(Value::Array(_)) => "a list of values",
            Some(_) => "JSON",
            None => return "JSON that is cut or damaged where it begins".to_owned(),
        };
        let object = self.first_item().and_then(Value::as_object);
        let names = object.into_iter().flat_map(|object| object.keys());
        let keys = names.take(KEYS).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match &*keys {
            "" => format!("{of} that is cut, or without keys"),
            keys => format!("{of} with the keys {keys}"),
        }
    }

    /// The value at a JSON pointer in the first record.
    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        self.first()?.pointer(pointer)
    }

    /// Whether the first record has one of these shapes: see [`is_shaped`].
    pub(super) fn is(&self, shapes: &str) -> bool {
        self.first().is_some_and(|first| is_shaped(first, shapes))
    }

    /// The first records, or the first items of a file that is one list.
    pub(super) fn records(&self) -> &[Value] {
        match self.first() {
            Some(Value::Array(items)) => items,
            _ => &self.values,
        }
    }

    /// Whether one of the first records has one of these shapes.
    pub(super) fn any(&self, count: usize, shapes: &str) -> bool {
        self.records().iter().take(count).any(|record| is_shaped(record, shapes))
    }

    /// Whether the first record, or the first item of a file that is one list, has one of these shapes.
    pub(super) fn item_is(&self, shapes: &str) -> bool {
        self.first_item().is_some_and(|item| is_shaped(item, shapes))
    }

    /// The first record, or the first item of a file that is one list.
    pub(super) fn first_item(&self) -> Option<&Value> {
        self.records().first()
    }
}

/// Whether a value has one of these shapes, between which stands `|`. Of a shape all words hold:
/// - `a/b`: there is a value at this place; `a,b`: at one of these places; `!a`: at none of these;
/// - `a=x,y`: the text there is one of these; `a^x,y`: it begins as one of these;
/// - `a:s`, `a:w`, `a:n`, `a:l`, `a:o`: it is a text, one that is not empty, a number, a list, an object.
pub(super) fn is_shaped(value: &Value, shapes: &str) -> bool {
    shapes.split('|').map(str::split_whitespace).any(|mut words| {
        words.all(|word| match word.strip_prefix('!') {
            Some(word) => !holds(value, word),
            None => holds(value, word),
        })
    })
}

/// Whether a record has one of these keys, which are separated by spaces; `null` counts as absent.
pub(super) fn has_any(record: &Value, keys: &str) -> bool {
    keys.split(' ').any(|key| !record[key].is_null())
}

/// Whether one word of a shape holds.
fn holds(value: &Value, word: &str) -> bool {
    let (places, test) = word.split_at(word.find(['=', '^', ':']).unwrap_or(word.len()));
    let words = places.split(',');
    let mut found = words.filter_map(|place| value.pointer(&format!("/{place}")));
    found.any(|found| {
        let text = found.as_str();
        match test.split_at_checked(1) {
            Some(("=", words)) => words.split(',').any(|word| text == Some(word)),
            Some(("^", starts)) => {
                text.is_some_and(|text| starts.split(',').any(|start| text.starts_with(start)))
            }
            Some((_, "s")) => text.is_some(),
            Some((_, "w")) => text.is_some_and(|text| !text.is_empty()),
            Some((_, "n")) => found.is_number(),
            Some((_, "l")) => found.is_array(),
            Some((_, "o")) => found.is_object(),
            _ => true,
        }
    })
}

/// The JSON values that a text holds; one that was cut is closed. A line that cannot be read is left out where a record
/// stands on the next one.
pub(super) fn values(text: &str) -> Vec<Value> {
    let mut bytes = text.as_bytes().to_vec();
    mend_surrogates(&mut bytes);
    bytes.split_mut(|byte| *byte == b'\n').for_each(|line| {
        mend_numbers(line);
    });
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    loop {
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        found.extend(stream.by_ref().map_while(Result::ok));
        rest = rest[stream.byte_offset()..].trim_ascii_start();
        match super::behind_line(rest) {
            Some(next) if !found.is_empty() => rest = next,
            _ => break,
        }
    }
    // Only the last value is closed: the quotes and brackets of a line that cannot be read are not those of the others.
    let closed = close(&String::from_utf8_lossy(rest)).unwrap_or_default();
    let stream = serde_json::Deserializer::from_str(&closed).into_iter::<Value>();
    found.extend(stream.map_while(Result::ok));
    found
}

/// The beginning of a text of JSON, without the rest of long texts and with `null` for what is nested too deep.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    let (mut from, mut depth) = (0, 0_usize);
    for (at, mark) in marks(text.as_bytes()) {
        match mark {
            Mark::Open(_) => {
                depth += 1;
                if depth == DEEPEST + 1 {
                    out.push_str(&text[from..at]);
                    out.push_str("null");
                }
            }
            Mark::Close => {
                if depth == DEEPEST + 1 {
                    from = at + 1;
                }
                depth = depth.saturating_sub(1);
            }
            Mark::Text(behind) if depth <= DEEPEST => {
                let end = behind.map_or(text.len(), |behind| behind - 1);
                if end - at > LONG {
                    let cut = uncut(&text[..end], at + 1, at + 1 + LONG);
                    out.push_str(&text[from..cut]);
                    from = end;
                }
            }
            Mark::Comma | Mark::Colon | Mark::Text(_) => {}
        }
        if out.len() >= HEAD || depth <= DEEPEST && out.len() + at.saturating_sub(from) >= HEAD {
            break;
        }
    }
    if depth <= DEEPEST {
        let rest = &text[from..];
        out.push_str(&rest[..rest.floor_char_boundary(HEAD)]);
    }
    out.truncate(out.floor_char_boundary(HEAD));
    out
}

/// The first place from `least` on that cuts neither a character nor an escape of a text whose inside begins at `begin`.
fn uncut(text: &str, begin: usize, least: usize) -> usize {
    let mut escape_end = begin;
    for (at, length) in escapes(text, begin).take_while(|(at, _)| *at < least) {
        escape_end = at + length;
    }
    text.ceil_char_boundary(least.max(escape_end))
}

/// The escapes from `at` on, with their lengths.
fn escapes(text: &str, mut at: usize) -> impl Iterator<Item = (usize, usize)> {
    std::iter::from_fn(move || {
        let rest = text.as_bytes().get(at..)?;
        let place = at + memchr::memchr(b'\\', rest)?;
        let length = if text.as_bytes().get(place + 1) == Some(&b'u') { 6 } else { 2 };
        at = place + 2;
        Some((place, length))
    })
}

/// The text up to where its brackets can be closed, and closed; none if it is nested too deep.
fn close(text: &str) -> Option<String> {
    let mut open: Vec<u8> = Vec::new();
    // Where the text can be closed, and with what.
    let mut whole = (0, Vec::new());
    let (mut cut, mut key_follows) = (None, false);
    for (at, mark) in marks(text.as_bytes()) {
        match mark {
            Mark::Text(_) if key_follows => continue,
            Mark::Text(None) => cut = Some(at + 1).filter(|_| text.len() > at + KEYWORD),
            Mark::Text(Some(end)) => whole = (end, open.clone()),
            Mark::Colon => key_follows = false,
            Mark::Comma => {
                key_follows = open.last() == Some(&b'{');
                whole = (at, open.clone());
            }
            Mark::Open(bracket) => {
                open.push(bracket);
                key_follows = bracket == b'{';
                whole = (at + 1, open.clone());
            }
            Mark::Close => {
                open.pop();
                key_follows = false;
                whole = (at + 1, open.clone());
            }
        }
        if open.len() > DEEPEST {
            return None;
        }
    }
    let mut closed = text[..whole.0].to_owned();
    if let Some(begin) = cut {
        // A text is closed before an escape that may have been cut.
        let last = escapes(text, begin).last().map(|(at, _)| at);
        let end = last.filter(|at| at + 6 > text.len()).unwrap_or(text.len());
        closed.push_str(&text[whole.0..end]);
        closed.push('"');
        whole.1 = open;
    }
    closed.extend(whole.1.iter().rev().map(|bracket| if *bracket == b'{' { '}' } else { ']' }));
    Some(closed)
}
