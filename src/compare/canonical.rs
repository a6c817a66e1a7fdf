//! Canonical JSON for git: keys sorted, one probe per line, no times.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// Writes `value` with sorted keys. Objects are spread over lines, and what is inside an object of
/// `inline` keys is on the line of its own key, so that one changed probe is one changed line.
pub(super) fn write(value: &Value, inline: &dyn Fn(&[&str]) -> bool) -> String {
    let mut out = String::new();
    put(value, &mut Vec::new(), inline, &mut out);
    out.push('\n');
    out
}

fn put<'a>(
    value: &'a Value,
    path: &mut Vec<&'a str>,
    inline: &dyn Fn(&[&str]) -> bool,
    out: &mut String,
) {
    match value {
        Value::Object(map) => {
            let one_line = map.is_empty() || (0..=path.len()).any(|to| inline(&path[..to]));
            let (end, next, step) = if one_line { ("", " ", 0) } else { ("\n", "\n", 1) };
            let keys: BTreeMap<&String, &Value> = map.iter().collect();
            out.extend(["{", end]);
            for (at, (key, value)) in keys.iter().enumerate() {
                out.extend(if at > 0 { [",", next] } else { [""; 2] });
                let width = step * (path.len() + 1);
                let _ = write!(out, "{:width$}{}: ", "", Value::from(key.as_str()));
                path.push(key);
                put(value, path, inline, out);
                path.pop();
            }
            let width = step * path.len();
            let _ = write!(out, "{end}{:width$}}}", "");
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                put(item, path, inline, out);
            }
            out.push(']');
        }
        // `1.0` and `1` are the same number; the shorter one is written.
        Value::Number(number) if number.is_f64() => {
            let _ = write!(out, "{}", number.as_f64().unwrap_or_default());
        }
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_what_is_inline_takes_one_line() {
        let value = serde_json::json!({
            "b": { "probes": { "two": { "z": [1.0, 0.5], "a": true }, "one": { "x": null } } },
            "a": "text",
        });
        let inline = |path: &[&str]| path.len() == 3;
        assert_eq!(
            write(&value, &inline),
            "{\n \"a\": \"text\",\n \"b\": {\n  \"probes\": {\n   \"one\": {\"x\": null},\n   \
             \"two\": {\"a\": true, \"z\": [1, 0.5]}\n  }\n }\n}\n"
        );
        let back: Value = serde_json::from_str(&write(&value, &inline)).unwrap();
        assert_eq!(back["b"]["probes"]["two"]["z"][1], 0.5);
    }
}
