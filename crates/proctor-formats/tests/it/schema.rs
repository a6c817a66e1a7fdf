//! The JSON Schema of the native format against the format itself.

use proctor_formats::native as native_format;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::native::session;
use super::{fixture, read, written};

fn check(line: &str) -> Option<String> {
    let line = serde_json::from_str(line).expect("JSON");
    let validator = jsonschema::validator_for(&native_format::schema()).expect("a schema");
    let first = validator.iter_errors(&line).next();
    first.map(|error| format!("{}: {error}", error.instance_path()))
}

#[test]
fn the_schema_takes_every_kind_of_line_and_no_others() {
    let path = fixture("native/every-block.session.jsonl");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    for line in text.lines() {
        assert_eq!(check(line), None, "{line}");
    }
    let head = r#"{"format":"proctor-session","version":1,"id":"a"}"#;
    for (good, bad) in [
        (head.to_owned(), head.replace("\"id\"", "\"ID\"")),
        (head.to_owned(), head.replace(":1", ":2")),
        (message(json!([])), message(json!([])).replace("user", "tool")),
        (message(json!([])), message(json!({}))),
        (
            message(json!([{"type": "text", "text": "a"}])),
            message(json!([{"type": "text", "text": "a", "name": "b"}])),
        ),
        (message(json!([{"type": "image", "source": null}])), message(json!([{"type": "image"}]))),
        (
            message(json!([{"type": "image", "source_text": "1"}])),
            message(json!([{"type": "image", "source": 1, "source_text": "1"}])),
        ),
    ] {
        for (line, is_good) in [(good, true), (bad, false)] {
            assert_eq!(check(&line).is_none(), is_good, "{line}: {:?}", check(&line));
            let file = if line.contains("format") {
                let body = message(json!([{"type": "text", "text": "a"}]));
                format!("{line}\n{body}\n")
            } else {
                // An empty message is refused, but for another reason than its shape.
                let full = line.replace(":[]", r#":[{"type":"text","text":"a"}]"#);
                format!("{head}\n{full}\n")
            };
            assert_eq!(read("native", file.as_bytes()).is_ok(), is_good, "{file}");
        }
    }
}

fn message(content: impl Into<Value>) -> String {
    let mut message = json!({"role": "user"});
    message["content"] = content.into();
    message.to_string()
}

#[test]
fn the_example_of_the_documentation_can_be_read() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference/session-format.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let example = page.split("```jsonl\n").nth(1).expect("an example");
    let example = example.split("```").next().expect("its end");
    for line in example.lines() {
        assert_eq!(check(line), None, "{line}");
    }
    let sessions = read("native", example.as_bytes()).expect("a good file");
    assert_eq!(sessions[0].calls().len(), 3);
    assert_eq!(sessions[0].compactions().len(), 1);
    assert_eq!(String::from_utf8_lossy(&written(&sessions[0])), example);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn whatever_is_written_fits_the_schema(session in session()) {
        let bytes = written(&session);
        // Half of a surrogate pair, kept as it was recorded, is JSON that no text can hold.
        let text = String::from_utf8_lossy(&bytes).replace("\\ud83d", "\\ufffd");
        for line in text.lines() {
            prop_assert_eq!(check(line), None, "{}", line);
        }
    }
}
