//! Decisions that a model proposes of a recording: kept only where the recording bears them out.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor::probe::check::TruthFile;
use proctor::session::ground_truth::Fact;
use serde_json::json;

const SAID: &str = "For the exporter queue I take the bounded ring buffer, because the unbounded list ran \
                    out of memory in the load test.";
const GUESSED: &str = "The wire format is going to be plain JSON because everybody can read it.";

/// A recording in which two things are decided.
fn recording(folder: &Path) {
    let say = |role: &str, text: &str| json!({ "role": role, "content": text });
    let messages = [
        say("user", "Build the exporter, and tell me what you decide on the way."),
        say("assistant", SAID),
        say("user", "Fine. And what goes over the wire?"),
        say("assistant", GUESSED),
        say("user", "Go on."),
        say("assistant", "The exporter is built."),
    ];
    let text = json!({ "model": "m", "messages": messages }).to_string();
    fs::write(folder.join("talk.json"), text).unwrap();
}

fn proposal(question: &str, choice: &str, reason: &str, quote: &str) -> serde_json::Value {
    json!({
        "question": question, "key": "exporter queue wire format", "choice": choice,
        "reason": reason, "rejected": ["linked list"], "quote": quote,
    })
}

#[test]
fn a_decision_is_kept_that_stands_there_word_for_word_and_is_answered_only_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    recording(path);
    let which = "What was chosen for the exporter queue, and why?";
    let memory = "the unbounded list ran out of memory in the load test";
    let proposals = json!([
        proposal(which, "bounded ring buffer", memory, SAID),
        // The same once more; one that was never said; one that tells; one that anybody guesses.
        proposal(which, "bounded ring buffer", memory, SAID),
        proposal(
            which,
            "bounded ring buffer",
            memory,
            "We take the bounded ring buffer, as it is quicker."
        ),
        proposal("Why the bounded ring buffer?", "bounded ring buffer", memory, SAID),
        proposal(which, "lock-free queue", memory, SAID),
        proposal(
            "What goes over the wire, and why?",
            "plain JSON",
            "everybody can read it",
            GUESSED
        ),
    ]);
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let rule = |rest: String| format!("[[answer]]\n{rest}\n");
    let script = [
        "format = \"proctor-script\"\nversion = 1\n".to_owned(),
        rule(format!("asked = \"<part>\"\ntext = {}", quoted(&proposals.to_string()))),
        rule(
            "asked = \"over the wire\"\ntext = \"plain JSON, because everybody can read it\""
                .to_owned(),
        ),
        rule(format!(
            "holds = \"bounded ring buffer\"\ntext = {}",
            quoted(&format!("The bounded ring buffer: {memory}"))
        )),
        rule("text = \"not in context\"".to_owned()),
    ];
    fs::write(path.join("script.toml"), script.concat()).unwrap();
    let derive = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
            .current_dir(path)
            .args(["sessions", "facts", "talk.json", "--force", "-o", "t.json"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let truth = TruthFile::read(&fs::read_to_string(path.join("t.json")).unwrap()).unwrap();
        (said, truth.truth.facts)
    };
    let model = "{ kind = \"scripted\", model = \"proposer\", script = \"script.toml\" }";
    let (said, facts) = derive(&["--model", model]);
    for part in [
        "1 of 6 proposed decisions",
        "1 whose quotation stands nowhere",
        "1 whose choice, reason or key is not in the quotation",
        "1 whose question holds the choice",
        "1 proposed twice",
    ] {
        assert!(said.contains(part), "{said}\n\ndoes not say\n\n{part}");
    }
    let decided: Vec<_> = facts
        .iter()
        .filter_map(|fact| match &fact.fact {
            Fact::Decision { choice, .. } => Some((choice.as_str(), &fact.evidence[..])),
            _ => None,
        })
        .collect();
    assert_eq!(decided, [("bounded ring buffer", &[1][..])]);
    // Without a model none is proposed, and a file with one holds.
    let check = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(path)
        .args(["sessions", "facts", "--check", "t.json", "--session", "talk.json"])
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    let (_, without) = derive(&[]);
    assert!(!without.iter().any(|fact| matches!(fact.fact, Fact::Decision { .. })));
    assert_eq!(without.len() + 1, facts.len());
}

#[cfg(feature = "http")]
#[test]
fn a_model_that_cannot_be_asked_ends_the_command_and_no_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let nobody = "openai:proposer@http://127.0.0.1:9/v1";
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .args(["sessions", "facts", "talk.json", "-o", "t.json", "--yes"])
        .args(["--model", nobody])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("proposer could not be asked"), "{said}");
    assert!(!folder.path().join("t.json").exists());
}
