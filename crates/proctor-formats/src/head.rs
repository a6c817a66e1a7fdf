//! The beginning of a file, from which its format is detected.

use serde_json::Value;

use super::file::{notice, strip_bom};
use proctor_sessions::wire::json_bytes::mend_surrogates;

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
        let values = values(&text);
        Self { text, values }
    }

    /// The first record.
    pub(crate) fn first(&self) -> Option<&Value> {
        self.values.first()
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
        let keys = self.first_item().and_then(Value::as_object);
        let keys = keys.into_iter().flat_map(|object| object.keys());
        let keys = keys.take(KEYS).map(|key| format!("`{key}`"));
        let keys = keys.collect::<Vec<_>>().join(", ");
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

    /// Whether one of the first records has one of these shapes.
    pub(super) fn any(&self, count: usize, shapes: &str) -> bool {
        let mut records = self.values.iter().take(count);
        records.any(|record| is_shaped(record, shapes))
    }

    /// Whether the first record, or the first item of a file that is one list, has one of these shapes.
    pub(super) fn item_is(&self, shapes: &str) -> bool {
        self.first_item()
            .is_some_and(|item| is_shaped(item, shapes))
    }

    /// The first record, or the first item of a file that is one list.
    pub(super) fn first_item(&self) -> Option<&Value> {
        match self.first() {
            Some(Value::Array(items)) => items.first(),
            first => first,
        }
    }
}

/// Whether a value has one of these shapes, between which stands `|`. Of a shape all words hold:
/// - `a/b`: there is a value at this place; `a,b`: at one of these places; `!a`: at none of these;
/// - `a=x,y`: the text there is one of these; `a^x,y`: it begins as one of these;
/// - `a:s`, `a:w`, `a:n`, `a:l`, `a:o`: it is a text, one that is not empty, a number, a list, an object.
pub(super) fn is_shaped(value: &Value, shapes: &str) -> bool {
    let mut shapes = shapes.split('|').map(str::split_whitespace);
    shapes.any(|mut words| {
        words.all(|word| match word.strip_prefix('!') {
            Some(word) => !holds(value, word),
            None => holds(value, word),
        })
    })
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
                let mut starts = starts.split(',');
                text.is_some_and(|text| starts.any(|start| text.starts_with(start)))
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

/// The JSON values that a text holds; one that was cut is closed.
pub(super) fn values(text: &str) -> Vec<Value> {
    let mut closed = close(text).unwrap_or_default().into_bytes();
    mend_surrogates(&mut closed);
    let stream = serde_json::Deserializer::from_slice(&closed).into_iter::<Value>();
    stream.map_while(Result::ok).collect()
}

/// The beginning of a text of JSON, without the rest of long texts and with `null` for what is nested too deep.
fn shortened(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::new();
    // What is kept begins at `from`; where something is left out, nothing is kept until its end.
    let (mut from, mut is_left_out) = (0, false);
    let (mut depth, mut in_string, mut begins) = (0_usize, false, 0);
    let (mut escaped, mut escape_end) = (false, 0);
    for (at, byte) in bytes.iter().enumerate() {
        if !is_left_out && out.len() + (at - from) >= HEAD {
            let end = text.floor_char_boundary(at);
            out.push_str(&text[from..end]);
            return out;
        }
        let is_deep = depth > DEEPEST;
        let is_inside = in_string && !escaped && *byte != b'"' && at >= escape_end;
        if is_inside && at - begins > LONG && !is_left_out && text.is_char_boundary(at) {
            out.push_str(&text[from..at]);
            is_left_out = true;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => {
                escaped = true;
                escape_end = at
                    + if bytes.get(at + 1) == Some(&b'u') {
                        6
                    } else {
                        2
                    };
            }
            b'"' if in_string => {
                in_string = false;
                if is_left_out && !is_deep {
                    (from, is_left_out) = (at, false);
                }
            }
            _ if in_string => {}
            b'"' => (in_string, begins) = (true, at),
            b'{' | b'[' => {
                depth += 1;
                if depth == DEEPEST + 1 {
                    out.push_str(&text[from..at]);
                    out.push_str("null");
                    is_left_out = true;
                }
            }
            b'}' | b']' => {
                if depth == DEEPEST + 1 {
                    (from, is_left_out) = (at + 1, false);
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    if !is_left_out {
        out.push_str(&text[from..]);
    }
    out
}

/// The text up to where its brackets can be closed, and closed; none if it is nested too deep.
fn close(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut open: Vec<u8> = Vec::new();
    // Where the text can be closed, and with what.
    let mut whole = (0, Vec::new());
    let (mut in_string, mut begins, mut escaped, mut escape_at) = (false, 0, false, 0);
    let mut key_follows = false;
    for (at, byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => (escaped, escape_at) = (true, at),
                b'"' => {
                    in_string = false;
                    if !key_follows {
                        whole = (at + 1, open.clone());
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => (in_string, begins) = (true, at),
            b'{' | b'[' => {
                open.push(*byte);
                key_follows = *byte == b'{';
                whole = (at + 1, open.clone());
            }
            b'}' | b']' => {
                open.pop();
                key_follows = false;
                whole = (at + 1, open.clone());
            }
            b',' => {
                key_follows = open.last() == Some(&b'{');
                whole = (at, open.clone());
            }
            b':' => key_follows = false,
            _ => {}
        }
        if open.len() > DEEPEST {
            return None;
        }
    }
    let mut closed;
    if in_string && !key_follows && bytes.len() > begins + KEYWORD {
        // A text is closed before an escape that may have been cut.
        let recent = escape_at + 6 > bytes.len() && escape_at > whole.0;
        let end = if recent { escape_at } else { bytes.len() };
        closed = text.get(..end)?.to_owned();
        closed.push('"');
        whole.1 = open;
    } else {
        closed = text.get(..whole.0)?.to_owned();
    }
    for bracket in whole.1.iter().rev() {
        closed.push(if *bracket == b'{' { '}' } else { ']' });
    }
    Some(closed)
}
