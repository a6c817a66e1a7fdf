//! Files of many conversations are read one at a time, and say the same.

use std::path::Path;

use proctor::session::Session;
use proctor::session::import::glance::glance;
use proctor::session::import::listed::listed;
use proctor::session::import::rows::{FORMATS, rows};
use proctor::session::import::{self, Importer, Recording};
use serde_json::{Value, json};

use super::{fixture, written};
use crate::shared;

/// Expects what is read one at a time to be what is read at once; says how many sessions it was.
#[track_caller]
fn check(path: &Path, importer: &'static dyn Importer) -> usize {
    let Some(mut rows) = rows(path, Some(importer)).unwrap() else {
        return 0;
    };
    let whole = import::load_with_truth(path, Some(importer));
    let mut read: Vec<Recording> = Vec::new();
    while let Some(recording) = rows.next_session() {
        read.push(recording);
    }
    let ended = rows.finish();
    match (whole, ended) {
        (Ok(whole), Ok(first)) => {
            read.insert(0, first);
            assert_eq!(whole.len(), read.len(), "{}", path.display());
            for (one, other) in whole.iter().zip(&read) {
                let [expected, got] = [one, other].map(|it| {
                    let session = String::from_utf8(written(&it.session)).unwrap();
                    let truth = serde_json::to_string(&it.truth).unwrap();
                    format!("{session}{truth}{}", it.left_out)
                });
                assert_eq!(expected, got, "{}", path.display());
            }
            read.len()
        }
        (Err(expected), Err(got)) => {
            assert_eq!(expected.to_string(), got.to_string(), "{}", path.display());
            0
        }
        (whole, ended) => panic!("{}: {whole:?} and {ended:?}", path.display()),
    }
}

/// The conversations of a file, and the file with others in their place.
fn conversations(format: &str, bytes: &[u8]) -> (Vec<Value>, impl Fn(&[Value]) -> Vec<String>) {
    let values = serde_json::Deserializer::from_slice(bytes).into_iter();
    let values: Vec<Value> = values.collect::<Result<_, _>>().unwrap();
    let key = match format {
        "tau2" => Some("simulations"),
        "inspect" => Some("samples"),
        _ => None,
    };
    let found = match (key, &values[..]) {
        (Some(key), [log]) => log[key].as_array().cloned().unwrap_or_default(),
        (None, [Value::Array(list)]) => list.clone(),
        (_, values) => values.to_vec(),
    };
    let file = move |new: &[Value]| {
        if let Some(key) = key {
            let mut log = values[0].clone();
            log[key] = json!(new);
            return vec![log.to_string(), format!("{log:#}")];
        }
        let lines: Vec<String> = new.iter().map(Value::to_string).collect();
        vec![
            json!(new).to_string(),
            format!("\u{feff}{:#}\r\n", json!(new)),
            lines.join("\n"),
            lines.join("\r\n\r\n") + "\n",
        ]
    };
    (found, file)
}

/// A conversation in which nobody says anything.
fn silent(conversation: &Value) -> Value {
    let mut silent = conversation.clone();
    for key in [
        "conversation",
        "haystack_sessions",
        "history",
        "messages",
        "traj",
    ] {
        match silent.get_mut(key) {
            Some(list @ Value::Array(_)) => *list = json!([]),
            Some(object @ Value::Object(_)) => *object = json!({}),
            _ => {}
        }
    }
    silent
}

#[test]
fn a_file_says_the_same_one_conversation_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let importer = import::importer(format.name).unwrap();
        let mut read = 0;
        for path in shared::files(&fixture(format.name)) {
            check(&path, importer);
            let bytes = std::fs::read(&path).unwrap();
            let (found, file) = conversations(format.name, &bytes);
            // A voice run holds none.
            let Some(first) = found.first() else {
                continue;
            };
            let quiet = silent(first);
            let two = [&found[..], &found[..]].concat();
            let mixed = [vec![quiet.clone()], two.clone(), vec![quiet.clone(); 2]].concat();
            let odd = [two.clone(), vec![json!({"odd": [1]})]].concat();
            let changed = folder.path().join("changed.json");
            for conversations in [
                two,
                mixed,
                odd,
                vec![quiet.clone(), first.clone()],
                vec![quiet; 3],
            ] {
                for text in file(&conversations) {
                    let half = text.replacen("the", "\\ud83d", 1);
                    let cut = text.trim_end();
                    let cut = &cut[..cut.floor_char_boundary(cut.len() - 3)];
                    for text in [text.as_str(), half.as_str(), cut] {
                        std::fs::write(&changed, text).unwrap();
                        read += check(&changed, importer);
                    }
                    let torn = [text.as_bytes(), b"\n\xff"].concat();
                    std::fs::write(&changed, torn).unwrap();
                    check(&changed, importer);
                }
            }
        }
        assert!(read > 0, "no conversation of {}", format.name);
    }
}

#[test]
fn requests_with_their_answers_are_read_at_once() {
    for name in ["anthropic.jsonl", "streamed.jsonl"] {
        let path = fixture("request-log").join(name);
        assert!(rows(&path, None).unwrap().is_none(), "{name}");
    }
    let one = fixture("opencode/pruned-and-compacted.json");
    assert!(rows(&one, None).unwrap().is_none());
}

#[test]
fn a_list_of_requests_says_the_same_request_by_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.json");
    let mut read = 0;
    for name in ["anthropic.jsonl", "calls.jsonl", "streamed.jsonl"] {
        let text = std::fs::read_to_string(fixture("request-log").join(name)).unwrap();
        let requests: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let odd = [&requests[..], &[json!({"role": "user", "content": "a"})]].concat();
        let other = [&requests[..], &[json!({"request": {"model": "m"}})]].concat();
        let number = [&requests[..], &[json!(7)]].concat();
        for list in [requests, odd, other, number] {
            let [compact, wide] = [json!(list).to_string(), format!("{:#}", json!(list))];
            let cut = compact[..compact.len() - 9].to_owned();
            let half = compact.replacen("the", "\\ud83d", 1);
            for text in [compact, wide, cut, half] {
                std::fs::write(&path, text).unwrap();
                let whole = import::load(&path);
                let Some(listed) = listed(&path, None).unwrap() else {
                    continue;
                };
                let of = |session: &Session| String::from_utf8(written(session)).unwrap();
                let expected: Vec<String> = whole.unwrap().iter().map(of).collect();
                let got: Vec<String> = listed.iter().map(|it| of(&it.session)).collect();
                assert_eq!(got, expected, "{name}");
                read += 1;
            }
        }
    }
    assert!(read > 5, "{read} lists");
    let lines = fixture("request-log/anthropic.jsonl");
    assert!(listed(&lines, None).unwrap().is_none());
}

#[test]
fn shared_conversations_of_evaluations_say_the_same_one_at_a_time() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let mut read = 0;
    for path in shared::files(&folder) {
        let format = glance(&path).ok().map(|it| it.format);
        if let Some(importer) = format.and_then(import::importer) {
            read += check(&path, importer);
        }
    }
    assert!(read > 10, "{read} conversations");
}
