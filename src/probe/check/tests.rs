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
        assert!(mistake.problem.contains(problem), "{to}: {}", mistake.problem);
    }
}

#[test]
fn every_mistake_names_its_line() {
    check("48213", "48213", &[]);
    check("\"48213\"", "\"48214\"", &[(7, "recall-01", "no message of `evidence` holds `48214`")]);
    check("the gateway port?", "48213?", &[(7, "recall-01", "gives away")]);
    check("[0]", "[7]", &[(7, "recall-01", "message 7 is named, and the session has 2")]);
    check(
        "[0]",
        "[]",
        &[
            (7, "recall-01", "`evidence` names no message"),
            (7, "recall-01", "no message of `evidence` holds"),
        ],
    );
    check("59999", "48213", &[(14, "decoy-01", "no decoy")]);
    check("\"decoy-01\"", "\"recall-01\"", &[(14, "recall-01", "another fact has the same id")]);
    check("\"decoy-01\"", "\"Decoy 1\"", &[(14, "Decoy 1", "an id is made of")]);
    check("\"session\": \"s\"", "\"session\": \"t\"", &[(1, "", "about session `t`")]);
    check("\"evidence\": [0],", "\"evidence\": [0]", &[(11, "", "expected `,` or `}`")]);
    check("\"kind\": \"recall\"", "\"kind\": \"remember\"", &[(8, "recall-01", "unknown variant")]);
    check(
        "\"importance\": \"normal\"",
        "\"importance\": null",
        &[
            (11, "recall-01", "invalid type: null, expected string or map"),
            (18, "decoy-01", "invalid type: null"),
        ],
    );
    let null = "\"fact\": null, \"was\": { \"kind\": \"decoy\"";
    let says = "invalid type: null, expected an object with a `kind`";
    check("\"fact\": { \"kind\": \"decoy\"", null, &[(15, "decoy-01", says)]);
    check("\"version\": 1", "\"version\": 9", &[(1, "", "newer than this build")]);
}

#[test]
fn a_fact_is_found_in_its_line() {
    let file = TruthFile::read(GOOD).unwrap();
    assert_eq!(file.line_of("decoy-01"), 14);
}

#[test]
fn known_answers_say_whether_they_hold_at_the_end() {
    let fact = |fact: serde_json::Value| PlantedFact {
        id: "a".to_owned(),
        fact: serde_json::from_value(fact).unwrap(),
        question: "Which?".to_owned(),
        evidence: vec![1],
        until: None,
        importance: crate::session::ground_truth::Importance::Normal,
    };
    let check = |given: serde_json::Value, expected: &[(&str, bool)]| {
        let known = known(&fact(given));
        let known: Vec<(&str, bool)> =
            known.iter().map(|(value, holds)| (&**value, *holds)).collect();
        assert_eq!(known, expected);
    };
    check(
        serde_json::json!({"kind": "update", "key": "k", "values": [{"value": "v1", "message": 1}, {"value": "v2", "message": 3}]}),
        &[("v1", false), ("v2", true)],
    );
    check(
        serde_json::json!({"kind": "continuation", "plan": "p", "items": [{"item": "a", "done": 3}, {"item": "b"}]}),
        &[("a", false), ("b", true)],
    );
    check(serde_json::json!({"kind": "open", "answer": "in May"}), &[("in May", true)]);
    check(serde_json::json!({"kind": "decoy", "key": "k", "value": "v"}), &[]);
}
