//! Redacts inside JSON without parsing it into values: numbers, spaces, order of keys and
//! duplicate keys stay as they were written, and only texts change.

use super::patterns::PATTERNS;
use super::{Class, JsonText, Redactor, is_replaced};
use crate::wire::json_bytes::{Mark, marks};

/// The JSON without its secrets, if it has any.
pub(super) fn redact(json: &JsonText, redactor: &mut Redactor) -> Option<JsonText> {
    let text = json.as_str();
    let mut changed = String::new();
    let mut copied = 0;
    // The key of the next value; items of a list have that of the list.
    let mut key: Option<String> = None;
    let mut found = marks(text.as_bytes()).peekable();
    while let Some((start, mark)) = found.next() {
        let Mark::Text(Some(end)) = mark else { continue };
        let value: String = serde_json::from_str(&text[start..end]).ok()?;
        let new = if found.next_if(|(_, mark)| *mark == Mark::Colon).is_some() {
            let new = redactor.changed(&value);
            key = Some(value);
            new
        } else if is_picture(key.as_deref(), &value) {
            None
        } else if let (Some(key), Some(patterns)) = (&key, &*PATTERNS)
            && patterns.names.is_secret(key, &value, true)
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

/// Whether a text is the data of a picture, which holds words only by chance.
fn is_picture(key: Option<&str>, value: &str) -> bool {
    key == Some("data")
        && value.len() > 256
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}
