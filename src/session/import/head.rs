//! The beginning of a file, from which its format is detected.

use serde_json::Value;

use super::file::strip_bom;

/// How much of a file detection sees.
pub(super) const HEAD: usize = 64 * 1024;

/// How deep JSON may be nested to be looked at.
const DEEPEST: usize = 60;

/// No role and no type is longer: a cut text of more bytes is certainly neither.
const KEYWORD: usize = 40;

/// The first bytes of a file, which may be cut anywhere.
#[derive(Debug)]
pub(crate) struct Head {
    /// The text from the first character that is not white space.
    pub(crate) text: String,
    /// The JSON values in it; one that was cut is closed.
    pub(crate) values: Vec<Value>,
}

impl Head {
    /// The beginning of a file with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(HEAD)];
        let text = String::from_utf8_lossy(strip_bom(head))
            .trim_start()
            .to_owned();
        let values = values(&text);
        Self { text, values }
    }

    /// The first record.
    pub(crate) fn first(&self) -> Option<&Value> {
        self.values.first()
    }

    /// The first record, or the first item of a file that is one list.
    pub(super) fn first_item(&self) -> Option<&Value> {
        match self.first() {
            Some(Value::Array(items)) => items.first(),
            first => first,
        }
    }
}

/// The JSON values that a text holds; one that was cut is closed.
pub(super) fn values(text: &str) -> Vec<Value> {
    let closed = close(text).unwrap_or_default();
    serde_json::Deserializer::from_str(&closed)
        .into_iter::<Value>()
        .map_while(Result::ok)
        .collect()
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
