//! One line per mistake.

use std::sync::Arc;

use super::*;
use crate::session::{Message, Role, SessionParts};

const GOOD: &str = r#"{
  "format": "proctor-ground-truth",
  "version": 1,
  "session": "s",
  "facts": [
    {
      "id": "recall-01",
      "fact": { "kind": "recall", "key": "gateway port", "value": "48213" },
      "question": "What is the gateway port?",
      "evidence": [0],
      "importance": "normal"
    },
    {
      "id": "decoy-01",
      "fact": { "kind": "decoy", "key": "mirror port", "value": "59999" },
      "question": "What is the mirror port?",
      "evidence": [],
      "importance": "normal"
    }
  ]
}
"#;

fn check(from: &str, to: &str, expected: &[(usize, &str, &str)]) {
    let texts = [(Role::User, "gateway port 48213"), (Role::Assistant, "ok")];
    let messages = texts.map(|(role, text)| Arc::new(Message::text(role, text)));
    let session = Session::new(SessionParts {
        id: "s".into(),
        messages: messages.into(),
        ..SessionParts::default()
    })
    .unwrap();
    assert!(GOOD.contains(from), "{from}");
    let found = match TruthFile::read(&GOOD.replace(from, to)) {
        Ok(file) => file.mistakes(&session),
        Err(mistake) => vec![mistake],
    };
    assert_eq!(found.len(), expected.len(), "{to}: {found:?}");
    for (mistake, (line, fact, problem)) in found.iter().zip(expected) {
        assert_eq!((mistake.line, &*mistake.fact), (*line, *fact), "{to}");
        assert!(
            mistake.problem.contains(problem),
            "{to}: {}",
            mistake.problem
        );
    }
}

#[test]
fn every_mistake_names_its_line() {
    check("48213", "48213", &[]);
    check(
        "\"48213\"",
        "\"48214\"",
        &[(7, "recall-01", "no message of `evidence` holds `48214`")],
    );
    check(
        "the gateway port?",
        "48213?",
        &[(7, "recall-01", "gives away")],
    );
    check(
        "[0]",
        "[7]",
        &[(7, "recall-01", "message 7 is named, and the session has 2")],
    );
    check(
        "[0]",
        "[]",
        &[
            (7, "recall-01", "`evidence` names no message"),
            (7, "recall-01", "no message of `evidence` holds"),
        ],
    );
    check("59999", "48213", &[(14, "decoy-01", "no decoy")]);
    check(
        "\"decoy-01\"",
        "\"recall-01\"",
        &[(14, "recall-01", "another fact has the same id")],
    );
    check(
        "\"decoy-01\"",
        "\"Decoy 1\"",
        &[(14, "Decoy 1", "an id is made of")],
    );
    check(
        "\"session\": \"s\"",
        "\"session\": \"t\"",
        &[(1, "", "about session `t`")],
    );
    check(
        "\"evidence\": [0],",
        "\"evidence\": [0]",
        &[(11, "", "expected `,` or `}`")],
    );
    check(
        "\"kind\": \"recall\"",
        "\"kind\": \"remember\"",
        &[(8, "", "unknown variant")],
    );
    check(
        "\"version\": 1",
        "\"version\": 9",
        &[(1, "", "newer than this build")],
    );
}

#[test]
fn a_fact_is_found_in_its_line() {
    let file = TruthFile::read(GOOD).unwrap();
    assert_eq!(file.line_of("decoy-01"), 14);
}
