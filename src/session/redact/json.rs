//! Redacts inside JSON without parsing it into values: numbers, spaces, order of keys and
//! duplicate keys stay as they were written, and only texts change.

use super::{Class, JsonText, Redactor, is_replaced, named};

/// The JSON without its secrets, if it has any.
pub(super) fn redact(json: &JsonText, redactor: &mut Redactor) -> Option<JsonText> {
    let text = json.as_str();
    let mut changed = String::new();
    let (mut copied, mut at) = (0, 0);
    // The name behind which the next value stands; names in lists are those of the list.
    let mut name: Option<String> = None;
    while let Some(found) = text[at..].find('"') {
        let start = at + found;
        let end = string_end(text, start)?;
        at = end;
        let literal = &text[start..end];
        let value: String = serde_json::from_str(literal).ok()?;
        let is_key = text[end..].trim_start().starts_with(':');
        let new = if is_key {
            let new = redactor.changed(&value);
            name = Some(value);
            new
        } else if is_picture(name.as_deref(), &value) {
            None
        } else if let Some(name) = &name
            && named::is_secret(name, &value, true)
            && !is_replaced(&value)
        {
            Some(redactor.name(&value, Class::Secret).to_string())
        } else {
            redactor.changed(&value)
        };
        if let Some(new) = new {
            changed.push_str(&text[copied..start]);
            changed.push_str(&serde_json::Value::String(new).to_string());
            copied = end;
        }
    }
    if copied == 0 {
        return None;
    }
    changed.push_str(&text[copied..]);
    JsonText::parse(&changed).ok()
}

/// Where the string literal that begins at `start` ends, its quotation mark included.
fn string_end(text: &str, start: usize) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether a text is the data of a picture, in which words stand by chance.
fn is_picture(name: Option<&str>, value: &str) -> bool {
    let is_data = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    name == Some("data") && value.len() > 256 && value.chars().all(is_data)
}
