//! Canonical JSON for git: keys sorted, one probe per line, no times.

use std::fmt::Write as _;

use serde_json::Value;

/// Writes `value` with sorted keys. Objects are spread over lines, and what is inside an object of
/// `inline` keys stands on the line of its own key, so that one changed probe is one changed line.
pub(super) fn write(value: &Value, inline: &dyn Fn(&[&str]) -> bool) -> String {
    let mut out = String::new();
    spread(value, &mut Vec::new(), inline, &mut out);
    out.push('\n');
    out
}

fn spread<'a>(
    value: &'a Value,
    path: &mut Vec<&'a str>,
    inline: &dyn Fn(&[&str]) -> bool,
    out: &mut String,
) {
    let Value::Object(map) = value else {
        return on_one_line(value, out);
    };
    if map.is_empty() || inline(path) {
        return on_one_line(value, out);
    }
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort();
    out.push_str("{\n");
    for (at, key) in keys.iter().enumerate() {
        let _ = write!(
            out,
            "{:width$}{}: ",
            "",
            quoted(key),
            width = path.len() + 1
        );
        path.push(key);
        spread(&map[*key], path, inline, out);
        path.pop();
        out.push_str(if at + 1 < keys.len() { ",\n" } else { "\n" });
    }
    let _ = write!(out, "{:width$}}}", "", width = path.len());
}

fn on_one_line(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (at, key) in keys.iter().enumerate() {
                let _ = write!(out, "{}{}: ", if at > 0 { ", " } else { "" }, quoted(key));
                on_one_line(&map[*key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                on_one_line(item, out);
            }
            out.push(']');
        }
        // `1.0` and `1` are the same number; the shorter one is written.
        Value::Number(number) => match number.as_f64() {
            Some(real) if !number.is_u64() && !number.is_i64() => {
                let _ = write!(out, "{real}");
            }
            _ => {
                let _ = write!(out, "{number}");
            }
        },
        Value::Null | Value::Bool(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

fn quoted(key: &str) -> Value {
    Value::String(key.to_owned())
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
