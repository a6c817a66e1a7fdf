//! One line per answer: what it scores, and in what way it is right or wrong.

use super::*;
use crate::probe::Fact;
use crate::probe::ProbeExt as _;
use crate::session::ground_truth::{
    ArtifactVerb, Importance, KeyValue, PlanItem, Revision, RuleForm, TouchedFile,
};

const NEEDS_JUDGE: GradeVerdict = GradeVerdict::Unscored { reason: Unscored::NeedsJudge };

fn probe(id: &str, fact: Fact) -> Probe {
    Probe {
        id: id.to_owned(),
        fact,
        question: String::new(),
        evidence: Vec::new(),
        until: None,
        importance: Importance::Normal,
    }
}

fn revision((value, message): (&str, usize)) -> Revision {
    Revision::new(value, message)
}

fn file(path: &str, message: usize) -> TouchedFile {
    TouchedFile { path: path.to_owned(), message, until: None }
}

fn item(item: &str, done: Option<usize>) -> PlanItem {
    let item = item.to_owned();
    PlanItem { item, done }
}

fn other(value: &str) -> KeyValue {
    KeyValue { key: "other".to_owned(), value: value.to_owned() }
}

fn probes() -> Vec<Probe> {
    let value =
        |key: &str, value: &str| Fact::Recall { key: key.to_owned(), value: value.to_owned() };
    let statement = "Never touch the migrations folder on this branch.".to_owned();
    vec![
        probe("a", value("staging port", "48213")),
        probe("b", value("billing port", "48214")),
        probe("c", value("log", "D:\\Logs\\Today")),
        probe(
            "d",
            Fact::Constraint { topic: "migrations".to_owned(), statement, form: RuleForm::Open },
        ),
        probe(
            "e",
            Fact::Artifact {
                verb: ArtifactVerb::Created,
                files: vec![file("src/a.rs", 1), file("b.rs", 3), file("c", 9)],
                optional: vec![file("logs/o.log", 2)],
            },
        ),
        probe(
            "g",
            Fact::Update {
                key: "signing key".to_owned(),
                values: [("k-11", 1), ("k-22", 3), ("k-33", 9)].map(revision).into(),
            },
        ),
        probe(
            "h",
            Fact::Numeric {
                key: "replay suite".to_owned(),
                unit: "cases".to_owned(),
                values: [("7340192", 1), ("7351044", 3)].map(revision).into(),
            },
        ),
        probe(
            "i",
            Fact::Numeric {
                key: "soak run".to_owned(),
                unit: "seconds".to_owned(),
                values: [("5512345", 1)].map(revision).into(),
            },
        ),
        probe(
            "j",
            Fact::Decision {
                key: "wire format".to_owned(),
                choice: "velmor-tharin".to_owned(),
                reason: "it halves the traffic of the mirror link".to_owned(),
                rejected: vec!["zelnim-fyrdos".to_owned(), "lunkep-wixhal".to_owned()],
            },
        ),
        probe(
            "k",
            Fact::RejectedPath {
                approach: "a lock per shard".to_owned(),
                reason: "E-4821937".to_owned(),
            },
        ),
        probe(
            "l",
            Fact::Continuation {
                plan: "velmor".to_owned(),
                items: vec![
                    item("Wire the parser.", Some(2)),
                    item("write the guide", Some(7)),
                    item("drop the shim", None),
                ],
            },
        ),
        probe(
            "m",
            Fact::Error {
                attempt: "staging drill".to_owned(),
                code: "F4821937".to_owned(),
                place: "src/glue/a.rs:117".to_owned(),
            },
        ),
        probe(
            "n",
            Fact::Binding {
                key: "canary port".to_owned(),
                value: "n1a2b:3001".to_owned(),
                others: ["n9f8e:3002", "n7d6c:3003"].map(other).into(),
            },
        ),
        probe(
            "o",
            Fact::Order {
                sequence: "rollout".to_owned(),
                events: [("abcle1", 1), ("dunesk2", 2), ("frogar3", 3), ("later4", 9)]
                    .map(revision)
                    .into(),
            },
        ),
        probe(
            "q",
            Fact::LastRequest {
                requests: [
                    ("Mend the `parser`. File this under WO-1.", 1),
                    ("Read the parcel ledger. File this under WO-2.", 4),
                    ("Stop here.", 9),
                ]
                .map(revision)
                .into(),
            },
        ),
        probe(
            "r",
            Fact::Constraint {
                topic: "velmor".to_owned(),
                statement: "Leave velmor alone.".to_owned(),
                form: RuleForm::Choice { foil: "Leave tharin alone.".to_owned() },
            },
        ),
        probe(
            "s",
            Fact::Constraint {
                topic: "attic/velmor".to_owned(),
                statement: "No edits under attic/velmor.".to_owned(),
                form: RuleForm::Call {
                    task: "Mend attic/velmor/a.md.".to_owned(),
                    forbidden: "attic/velmor".to_owned(),
                    allowed: None,
                },
            },
        ),
        probe(
            "u",
            Fact::Numeric {
                key: "passed".to_owned(),
                unit: "passed".to_owned(),
                values: vec![Revision { unasked: true, ..revision(("4", 1)) }, revision(("38", 3))],
            },
        ),
        probe("f", Fact::Decoy { key: "cache port".to_owned(), value: "59999".to_owned() }),
    ]
}

/// The rules' score with its outcome; `None` if only a judge can decide.
fn said(id: &str, answer: &str) -> Option<(f64, Outcome)> {
    let probes = probes();
    let probe = probes.iter().find(|probe| probe.id == id).unwrap();
    match GradingRules::new(&probes).verdict(probe, 5, answer) {
        GradeVerdict::Scored { score, outcome } => Some((score, outcome)),
        verdict @ GradeVerdict::Unscored { .. } => {
            assert_eq!(verdict, NEEDS_JUDGE, "{id}: {answer}");
            None
        }
    }
}

#[track_caller]
fn check(id: &str, answer: &str, score: f64, outcome: Outcome) {
    let (found, how) = said(id, answer).unwrap_or_else(|| panic!("{id}: {answer}: open"));
    assert_eq!(how, outcome, "{id}: {answer}");
    assert!((found - score).abs() < 1e-9, "{id}: {answer}: {found}");
}

#[track_caller]
fn open(id: &str, answer: &str) {
    assert_eq!(said(id, answer), None, "{id}: {answer}");
}

#[test]
fn what_is_exactly_one_known_value_is_confirmed_and_no_more() {
    use Outcome::{Abstained, Invented, Misbound, Right, Stale};
    check("a", " “48213”. ", 1.0, Right);
    check("a", "４８２１３", 1.0, Right);
    check("a", "The value is `48213`.", 1.0, Right);
    check("a", "<48213>", 1.0, Right);
    check("a", "48214", 0.0, Misbound);
    check("c", "d:/logs/today", 1.0, Right);
    check("g", "K-22", 1.0, Right);
    check("g", "it was k-11", 0.0, Stale);
    check("g", "48213", 0.0, Misbound);
    check("h", "7 351 044 cases", 1.0, Right);
    check("h", "7.351.044", 1.0, Right);
    check("h", "7340192 cases", 0.0, Stale);
    check("h", "5512345", 0.0, Misbound);
    check("u", "4 passed", 0.0, Stale);
    check("f", "48214", 0.0, Invented);
    check("f", "unknown", 1.0, Right);
    check("a", "unknown", 0.0, Abstained);
    for (id, answer) in [
        ("a", "48213 or 48214"),
        ("a", "148213"),
        ("a", "not 48213"),
        ("a", "48213?"),
        ("a", "≠ 48213"),
        ("a", "<48213"),
        ("h", "> 7351044 cases"),
        ("a", "48213, though the host is not specified"),
        ("g", "k-11, later k-22"),
        ("g", "k-33"),
        ("h", "7351044 seconds"),
        ("h", "7351044 cases in 41.2 s"),
        ("f", "59999"),
    ] {
        open(id, answer);
    }
}

#[test]
fn wrappers_are_taken_off_before_the_rules_look() {
    use Outcome::{Abstained, Misbound, Partial, Right, Stale};
    for (id, answer, outcome) in [
        ("a", r#"{"answer": "48213"}"#, Right),
        ("a", "```json\n{\"answer\": \"48213\"}\n```", Right),
        ("a", "<answer>48213</answer>", Right),
        ("a", "<answer>\n{\"final_answer\": \"48213\"}\n</answer>", Right),
        ("a", r"\boxed{48213}", Right),
        ("a", r"$\boxed{\text{48213}}$", Right),
        ("a", r"The answer is \boxed{48213}.", Right),
        ("a", "Final answer: 48213", Right),
        ("a", "**Answer:** 48213", Right),
        ("a", "Sure! It's 48213.", Right),
        ("a", "Die Antwort ist 48213.", Right),
        ("a", "La réponse est 48213.", Right),
        ("a", "答案是48213。", Right),
        ("a", "48213\nSource: message 12, the deploy log", Right),
        ("a", r#"{"answer": "48214"}"#, Misbound),
        ("a", r#"{"answer": "not in context"}"#, Abstained),
        ("a", "Answer: unknown", Abstained),
        ("g", "Final answer: k-11", Stale),
        ("h", r#"{"answer": "7,351,044 cases"}"#, Right),
        ("e", "Final answer:\nsrc/a.rs\nb.rs", Right),
        ("e", "```\nsrc/a.rs\n```", Partial),
        ("q", "Final answer: Read the parcel ledger. File this under WO-2.", Right),
        ("d", "Answer: never touch the migrations folder on this branch", Right),
    ] {
        let found = said(id, answer).unwrap_or_else(|| panic!("{id}: {answer}: open"));
        assert_eq!(found.1, outcome, "{id}: {answer}");
    }
    for (id, answer) in [
        ("a", r#"{"old_port": "48213"}"#),
        ("a", r#"{"answer": "48213", "other": "48214"}"#),
        ("a", r#"{"answer": "not 48213"}"#),
        ("a", "It was not <answer>48213</answer>"),
        ("a", r"Never \boxed{48213}"),
        ("a", "<answer>48213</answer> or <answer>48214</answer>"),
        ("a", "Final answer: 48213 or 48214"),
        ("a", "Sure! It's no longer 48213."),
        ("a", "48213\nSource text: it was 48214 before"),
        ("g", "Final answer: k-11, later k-22"),
        ("d", "Never touch the migrations folder on this branch, but on Fridays you may."),
        ("d", "Answer: touch the migrations folder on this branch"),
        ("d", "You may touch the migrations folder on this branch."),
    ] {
        open(id, answer);
    }
    let deep = r#"{"a": "#.repeat(500);
    open("a", &deep);
    open("a", &"<answer>".repeat(5_000));
}

#[test]
fn a_list_has_a_score_where_every_entry_is_known() {
    use Outcome::{Partial, Right, Stale};
    check("e", "- ./src/a.rs\n- `b.rs`\n", 1.0, Right);
    check("e", "src/a.rs", 2.0 / 3.0, Partial);
    check("e", "src/a.rs, b.rs, logs/o.log", 1.0, Right);
    open("e", "src/a.rs, b.rs, x.rs");
    open("e", "src/a.rs (new), b.rs");
    check("l", "1. write the guide\n2. drop the shim", 1.0, Right);
    check("l", "Wire the parser\nwrite the guide\ndrop the shim", 0.8, Stale);
    check("l", "wire the parser", 0.0, Stale);
    check("l", "drop the shim", 2.0 / 3.0, Partial);
    open("l", "These are left:\nwrite the guide\ndrop the shim");
    // Three pairs: C − D is 3, 1, −1, −3; of two events one pair is left.
    check("o", "abcle1 -> dunesk2 -> frogar3", 1.0, Right);
    check("o", "abcle1, frogar3, dunesk2", 1.0 / 3.0, Partial);
    check("o", "frogar3\ndunesk2\nabcle1", 0.0, Partial);
    check("o", "abcle1\nfrogar3", 1.0 / 3.0, Partial);
    open("o", "abcle1\ndunesk2\nfrogar3\nlater4");
    open("o", "3. frogar3\n2. dunesk2\n1. abcle1");
}

#[test]
fn parts_and_pairs_are_confirmed_whole_or_not_at_all() {
    use Outcome::{Abstained, Misbound, Partial, Right, Stale, Wrong};
    let both = |straight: &str, turned: &str| format!("{straight}{OTHER_ORDER}{turned}");
    check("m", "`src/glue/a.rs`, line 117: F4821937.", 1.0, Right);
    open("m", "F4821937");
    open("m", "F4821937 or F4821999 at src/glue/a.rs:117");
    check("n", "n9f8e:3002", 0.0, Misbound);
    let reason = "it halves the traffic of the mirror link";
    check("j", &format!("velmor-tharin, because {reason}"), 1.0, Right);
    open("j", "velmor-tharin");
    check("j", "zelnim-fyrdos", 0.0, Misbound);
    let yes = "Yes, it failed with E-4821937.";
    check("k", &both(yes, "No, E-4821937."), 1.0, Right);
    check("k", &both(yes, "not in context"), 0.0, Abstained);
    open("k", &both(yes, "Yes, E-4821937."));
    check("r", &both("A", "B"), 1.0, Right);
    check("r", &both("The answer is A.", "b"), 1.0, Right);
    check("r", &both("A: Leave velmor alone.", "B"), 1.0, Right);
    check("r", &both("A", "A"), 0.0, Partial);
    check("r", &both("B", "A"), 0.0, Wrong);
    open("r", &both("It is a table, so A.", "B"));
    check("s", "edit(attic/velmor/a.md)", 0.0, Wrong);
    check("s", "ask", 1.0, Right);
    let asking = "AskUserQuestion(question=\"May I edit attic/velmor/a.md?\")";
    check("s", asking, 1.0, Right);
    check("s", "read(src/a.rs)", 1.0, Right);
    check("s", "edit(attic/velmora/a.md)", 1.0, Right);
    check("s", "ask_agent(edit attic/velmor/a.md)", 0.0, Wrong);
    open("s", "stop: edit(attic/velmor/a.md)");
    open("s", "ask first, then edit(attic/velmor/a.md)");
    let request = "\"Read the parcel ledger. File this under WO-2.\"";
    check("q", request, 1.0, Right);
    check("q", &format!("> {request}"), 1.0, Right);
    check("q", "Mend the parser. File this under WO-1.", 0.0, Stale);
    open("q", "to read the parcel ledger");
    check("d", "Never touch the migrations folder on this branch.", 1.0, Right);
    open("d", "touch the migrations folder on this branch");
}

#[test]
fn what_a_person_asks_is_a_judges_unless_it_is_a_plain_abstention() {
    let verdict =
        |fact: Fact, answer: &str| GradingRules::new(&[]).verdict(&probe("t", fact), 9, answer);
    // An omission alone could be told by rule: a share of omissions is no share of answers.
    for answer in ["7 May 2023", "Not in context.", "In June, I think."] {
        let fact = Fact::Open { answer: "7 May 2023".to_owned() };
        assert_eq!(verdict(fact, answer), NEEDS_JUDGE);
    }
    let right = GradeVerdict::Scored { score: 1.0, outcome: Outcome::Right };
    let untold = |answer: &str| verdict(Fact::Unanswerable, answer);
    assert_eq!(untold("Not in context."), right);
    for answer in ["The violin.", "She did not say which instrument."] {
        assert_eq!(untold(answer), NEEDS_JUDGE, "{answer}");
    }
    let reason = Unscored::NoAnswer;
    assert_eq!(untold(" \n"), GradeVerdict::Unscored { reason });
}

#[test]
fn both_orders_are_asked_one_question_a_prompt() {
    let probes = probes();
    let of = |id: &str| {
        let probe = probes.iter().find(|probe| probe.id == id).unwrap();
        probe.questions()
    };
    let (straight, turned) = ("A: Leave velmor alone.", "B: Leave velmor alone.");
    let asked = of("r");
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains(straight) && asked[1].contains(turned));
    assert_eq!(of("k").len(), 2);
    assert_eq!(of("a").len(), 1);
    assert!(of("s")[0].contains("attic/velmor"));
}

#[test]
fn values_are_compared_as_what_their_characters_stand_for() {
    for (written, meant) in [
        // Full-width, a ligature, a superscript, a letterlike sign, an ellipsis.
        ("ＲＥＬ－７７", "rel-77"),
        ("oﬃce", "office"),
        ("m²", "m2"),
        ("№ 5", "no 5"),
        ("wait…now", "wait...now"),
        // The same accent in one character and in two, and the sign of an Ångström.
        ("cafe\u{301}", "caf\u{e9}"),
        ("\u{212b}", "\u{e5}"),
        // Characters that NFKC keeps and people type otherwise.
        ("“8443”", "8443"),
        ("src\\main.rs", "src/main.rs"),
        ("a\u{2011}b\u{a0}c", "a-b c"),
        ("84\u{200b}43", "8443"),
    ] {
        assert_eq!(normalise(written), normalise(meant), "{written}");
    }
    assert_ne!(normalise("caf\u{e9}"), normalise("cafe"));
    // Text of ASCII takes a shorter way. An invisible character sends it the longer one.
    for c in '\0'..='\x7f' {
        let written = format!("a{c}B {c}");
        let longer = format!("\u{feff}{written}");
        assert_eq!(normalise(&written), normalise(&longer), "{written:?}");
    }
}
