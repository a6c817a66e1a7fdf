//! Keys in bodies: a provider takes them for what it calls for the client, such as an MCP server or a search index, and a
//! gateway for the provider.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::patterns::PATTERNS;

/// Names of the conversation and of tool definitions, which hold no key for a provider.
const SAID: [&str; 16] = [
    "messages",
    "input",
    "contents",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "prompt",
    "function",
    "input_schema",
    "functionDeclarations",
    "function_declarations",
    "content",
    "choices",
    "output",
    "candidates",
];

/// Keys lie no deeper than this.
const LEVELS: usize = 12;

/// The body with a `*` for each byte of a key: all else, and so its place, stays the same.
///
/// A key is any text under a name that says so, as `authorization_token` of Anthropic's `mcp_servers[]`, in `headers`, as
/// of a tool of type `mcp`, or in the address of a server.
pub fn without_keys(body: &str) -> Cow<'_, str> {
    let mut found = Vec::new();
    if let Ok(around) = serde_json::from_str(body) {
        find("", around, (false, LEVELS), &mut found);
    }
    if found.is_empty() {
        return body.into();
    }
    let mut bytes = body.as_bytes().to_vec();
    for key in found {
        // Borrowed from the body, so that its place there is known.
        let start = key.as_ptr() as usize - body.as_ptr() as usize;
        bytes[start..start + key.len()].fill(b'*');
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

/// Finds the keys in a value of this name: any text, where it is in headers.
fn find<'a>(
    name: &str,
    value: &'a RawValue,
    (is_in_headers, levels): (bool, usize),
    found: &mut Vec<&'a str>,
) {
    let text = value.get();
    if let Some(text) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        let named = PATTERNS.as_ref().is_some_and(|patterns| patterns.names.is_of_secret(name));
        found.push(if is_in_headers || named { text } else { key_in_address(name, text) });
        found.pop_if(|key| key.is_empty());
    } else if levels == 0 {
        // Real requests do not nest so deep.
    } else if text.starts_with('{') {
        let inner: Option<BTreeMap<Cow<'_, str>, &RawValue>> = serde_json::from_str(text).ok();
        for (name, value) in inner.into_iter().flatten() {
            if !SAID.contains(&&*name) {
                let inside = is_in_headers || name.to_ascii_lowercase().ends_with("headers");
                find(&name, value, (inside, levels - 1), found);
            }
        }
    } else if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        for item in items {
            find(name, item, (is_in_headers, levels - 1), found);
        }
    }
}

/// The parts of a server's address that may be a key: the password and the query.
fn key_in_address<'a>(name: &str, text: &'a str) -> &'a str {
    let Some((_, rest)) = text.split_once("://") else {
        return "";
    };
    if !name.to_ascii_lowercase().ends_with("url") {
        return "";
    }
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    match (host.rsplit_once('@'), rest.split_once('?')) {
        // The rest of the text is blanked with a name and a password: the body keeps its length.
        (Some(_), _) => rest,
        (None, Some((_, query))) => query,
        (None, None) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "4f0c9a-nobodys-business";

    #[test]
    fn keys_of_all_kinds_are_blanked_and_nothing_else() {
        for (body, count) in [
            (r#"{"mcp_servers": [{"authorization_token": "KEY", "url": "https://x.example"}]}"#, 1),
            (
                r#"{"tools": [{"type": "mcp", "authorization": "KEY", "headers": {"x-a": ["KEY"], "b": "KEY"}}]}"#,
                3,
            ),
            (
                r#"{"data_sources": [{"parameters": {"authentication": {"type": "api_key", "key": "KEY"}}}]}"#,
                1,
            ),
            (
                r#"{"api_key": "KEY", "user_config": {"model_list": [{"litellm_params": {"apiKey": "KEY"}}]}}"#,
                2,
            ),
            (
                r#"{"extra_headers": {"Authorization": "Bearer KEY"}, "aws_session_token": "KEY"}"#,
                2,
            ),
            (
                r#"{"tools": [{"server_url": "https://x.example/mcp?api_key=KEY"}, {"server_url": "https://u:KEY@x.example/a?b"}]}"#,
                2,
            ),
            (
                r#"{"messages": [{"content": "api_key=KEY"}], "input": {"api_key": "KEY"}, "system": "KEY"}"#,
                0,
            ),
            (
                r#"{"prompt_cache_key": "KEY", "metadata": {"user_id": "KEY"}, "max_tokens": 5, "model": "KEY"}"#,
                0,
            ),
            (
                r#"{"tools": [{"name": "a", "input_schema": {"properties": {"api_key": {"type": "string", "default": "KEY"}}}}]}"#,
                0,
            ),
            (
                r#"{"tools": [{"type": "function", "parameters": {"properties": {"api_key": {"type": "string"}}, "required": ["api_key"]}}]}"#,
                0,
            ),
        ] {
            let body = body.replace("KEY", KEY);
            let kept = without_keys(&body);
            let left = |text: &str| text.matches(KEY).count();
            assert_eq!(left(&body) - left(&kept), count, "{kept}");
            assert_eq!(kept.len(), body.len());
            assert!(serde_json::from_str::<serde_json::Value>(&kept).is_ok(), "{kept}");
            assert!(count > 0 || kept == body, "{kept}");
        }
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(without_keys(&deep), deep);
    }
}
