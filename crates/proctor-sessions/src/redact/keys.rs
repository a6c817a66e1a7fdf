//! Keys in bodies: those for the MCP servers that a provider calls for the client.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::wire::object::Object;

/// The body with a `*` for each byte of a key: all else, and so its place, stays the same.
///
/// Anthropic's API takes `mcp_servers[].authorization_token`, OpenAI's responses API `authorization` and `headers` of
/// a tool of type `mcp`.
pub fn without_keys(body: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = [
        r#""authorization_token""#,
        r#""authorization""#,
        r#""headers""#,
    ];
    if !WORDS.iter().any(|word| body.contains(word)) {
        return body.into();
    }
    let Ok(mut around) = serde_json::from_str::<Object>(body) else {
        return body.into();
    };
    let mut bytes = body.as_bytes().to_vec();
    let items = ["mcp_servers", "tools"].map(|list| around.objects(list));
    for mut item in items.into_iter().flatten() {
        let headers: Option<BTreeMap<Cow<'_, str>, &RawValue>> = item.take_as("headers");
        let headers = headers.unwrap_or_default().into_values();
        let named = ["authorization_token", "authorization"].map(|name| item.take(name));
        for key in headers.chain(named.into_iter().flatten()) {
            // Borrowed from the body, so that its place there is known.
            let start = key.get().as_ptr() as usize - body.as_ptr() as usize;
            if key.get().starts_with('"') {
                bytes[start + 1..start + key.get().len() - 1].fill(b'*');
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// The same for a body that is known to be JSON.
pub fn value_without_keys(body: Box<RawValue>) -> Box<RawValue> {
    let changed = match without_keys(body.get()) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => RawValue::from_string(text).ok(),
    };
    changed.unwrap_or(body)
}
