//! The grader suite: answers of every kind, class and form whose verdict is known, graded by rules alone and
//! with a judge.
//!
//! The gate: rules never contradict what is known. They confirm, or leave the answer to a judge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proctor::model::scripted::response;
use proctor::model::{Purpose, Request};
use proctor::probe::ProbeExt as _;
use proctor::probe::grade::GradingRules;
use proctor::probe::judge::Judge;
use proctor::probe::{Fact, GradeVerdict, OTHER_ORDER, Outcome, Probe, ProbeKind, Unscored};
use proctor::session::ground_truth::{
    AllowedCall, ArtifactVerb, Handle, Importance, KeyValue, PlanItem, Revision, RuleForm,
    TouchedFile,
};
use proctor::step::{CallResult, Caller, drive};

use crate::goldens::golden;

const ANSWERS: &str = include_str!("grader_suite.tsv");

/// The classes, as a judge names them.
const CLASSES: [(&str, &str, Outcome); 6] = [
    ("right", "right", Outcome::Right),
    ("incomplete", "incomplete", Outcome::Partial),
    ("stale", "stale", Outcome::Stale),
    ("anothers", "another's", Outcome::Misbound),
    ("invented", "invented", Outcome::Invented),
    ("abstained", "abstained", Outcome::Abstained),
];

/// The forms that answers come in.
const STYLES: [&str; 6] = ["short", "wordy", "list", "units", "lead-in", "language"];

/// The message before which everything is asked.
const BEFORE: usize = 5;

struct Row {
    probe: &'static str,
    class: usize,
    style: &'static str,
    answer: String,
}

fn rows() -> Vec<Row> {
    let lines = ANSWERS.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [probe, class, style, answer] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("four columns: {line}");
            };
            let class = CLASSES.iter().position(|(name, ..)| *name == class);
            Row {
                probe,
                class: class.unwrap_or_else(|| panic!("a class: {line}")),
                style,
                answer: answer.replace("\\n", "\n").replace("||", OTHER_ORDER),
            }
        })
        .collect()
}

fn said(values: &[(&str, usize)]) -> Vec<Revision> {
    let values = values.iter();
    values.map(|(value, at)| Revision::new(*value, *at)).collect()
}

/// The probes of the suite, and some whose values are another's.
fn probes() -> Vec<Probe> {
    let text = str::to_owned;
    let value = |key: &str, value: &str| Fact::Recall { key: text(key), value: text(value) };
    let statement = |topic: &str, said: &str, form: RuleForm| Fact::Constraint {
        topic: text(topic),
        statement: text(said),
        form,
    };
    let files = |verb, paths: &[&str]| Fact::Artifact {
        verb,
        files: paths
            .iter()
            .map(|path| TouchedFile { path: text(path), message: 1, until: None })
            .collect(),
        optional: vec![TouchedFile { path: text("logs/out.log"), message: 2, until: None }],
    };
    let fault = |attempt: &str, code: &str, place: &str| Fact::Error {
        attempt: text(attempt),
        code: text(code),
        place: text(place),
    };
    let plan = |name: &str, items: &[(&str, Option<usize>)]| Fact::Continuation {
        plan: text(name),
        items: items
            .iter()
            .map(|(item, done)| PlanItem { item: text(item), done: *done })
            .collect(),
    };
    let numeric = |key: &str, unit: &str, values: &[(&str, usize)]| Fact::Numeric {
        key: text(key),
        unit: text(unit),
        values: said(values),
    };
    let rule = "Never touch the migrations folder on this branch.";
    let choice = RuleForm::Choice { foil: text("Leave tharin alone.") };
    let call = RuleForm::Call {
        task: text("Mend attic/velmor/a.md: which one call do you make?"),
        forbidden: text("attic/velmor"),
        allowed: None,
    };
    let pair = RuleForm::Call {
        task: text("Mend attic/fyrdos/a.md: which one call do you make?"),
        forbidden: text("attic/fyrdos"),
        allowed: Some(AllowedCall {
            task: text("Mend attic/kephal/a.md: which one call do you make?"),
            target: text("attic/kephal"),
        }),
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<KeyValue> {
        let pairs = pairs.iter();
        pairs.map(|(key, value)| KeyValue { key: text(key), value: text(value) }).collect()
    };
    let handle = |name: &str, started: usize, ended: Option<usize>| Handle {
        name: text(name),
        started,
        ended,
    };
    let one = |key: &str, value: &str| KeyValue { key: text(key), value: text(value) };
    let requests = [
        ("Mend the `parser`. File this under WO-1.", 1),
        ("Read the parcel ledger. File this under WO-2.", 4),
        ("Stop here.", 9),
    ];
    let all: Vec<(&str, &str, Fact)> = vec![
        (
            "recall",
            "Which port does the staging gateway use?",
            value("staging gateway port", "48213"),
        ),
        ("recall-2", "Which port does billing use?", value("billing port", "48214")),
        (
            "recall-3",
            "Which batch number has the coastal courier?",
            value("courier batch", "232931448"),
        ),
        (
            "constraint-open",
            "What did the user say about the migrations folder?",
            statement("migrations", rule, RuleForm::Open),
        ),
        (
            "constraint-2",
            "What did the user say about the linter?",
            statement("linter", "Run the linter before every commit.", RuleForm::Open),
        ),
        (
            "constraint-choice",
            "Which rule did the user set?",
            statement("velmor", "Leave velmor alone.", choice),
        ),
        ("constraint-call", "", statement("attic/velmor", "No edits under attic/velmor.", call)),
        (
            "artifact",
            "Which files were created?",
            files(ArtifactVerb::Created, &["src/a.rs", "b.rs"]),
        ),
        ("artifact-2", "Which files were changed?", files(ArtifactVerb::Modified, &["src/c.rs"])),
        (
            "decision",
            "Which wire format was chosen, and why?",
            Fact::Decision {
                key: text("wire format"),
                choice: text("velmor-tharin"),
                reason: text("it halves the traffic of the mirror link"),
                rejected: ["zelnim-fyrdos", "lunkep-wixhal"].map(text).into(),
            },
        ),
        (
            "update",
            "What is the signing key?",
            Fact::Update {
                key: text("signing key"),
                values: said(&[("k-11", 1), ("k-22", 3), ("k-33", 9)]),
            },
        ),
        (
            "numeric",
            "How many cases does the replay suite have?",
            numeric("replay suite", "cases", &[("7340192", 1), ("7351044", 3)]),
        ),
        (
            "numeric-2",
            "How long was the soak run?",
            numeric("soak run", "seconds", &[("5512345", 1)]),
        ),
        (
            "rejected-path",
            "Was a lock per shard tried? If so, say how it ended.",
            Fact::RejectedPath { approach: text("a lock per shard"), reason: text("E-4821937") },
        ),
        (
            "continuation",
            "Which steps of the velmor plan are left?",
            plan(
                "velmor",
                &[
                    ("Wire the parser.", Some(2)),
                    ("write the guide", Some(7)),
                    ("drop the shim", None),
                ],
            ),
        ),
        (
            "continuation-2",
            "Which steps of the garden plan are left?",
            plan("garden", &[("paint the fence", None)]),
        ),
        (
            "error",
            "How did the staging drill fail?",
            fault("staging drill", "F4821937", "src/glue/a.rs:117"),
        ),
        (
            "error-2",
            "How did the night drill fail?",
            fault("night drill", "F7777777", "src/glue/b.rs:9"),
        ),
        (
            "binding",
            "What is the canary port?",
            Fact::Binding {
                key: text("canary port"),
                value: text("n1a2b:3001"),
                others: pairs(&[("blue port", "n9f8e:3002"), ("green port", "n7d6c:3003")]),
            },
        ),
        (
            "order",
            "In which order did the steps of the rollout happen?",
            Fact::Order {
                sequence: text("rollout"),
                events: said(&[("abcle1", 1), ("dunesk2", 2), ("frogar3", 3), ("later4", 9)]),
            },
        ),
        (
            "last-request",
            "What did the user ask for last?",
            Fact::LastRequest { requests: said(&requests) },
        ),
        ("call-pair", "", statement("attic/fyrdos", "No edits under attic/fyrdos.", pair)),
        (
            "open-handle",
            "Which workers of the night import are still running?",
            Fact::OpenHandle {
                owner: text("night import"),
                handles: vec![
                    handle("wrk-48f1a2", 1, Some(3)),
                    handle("wrk-77c0d9", 2, None),
                    handle("wrk-1b3e55", 3, Some(8)),
                ],
            },
        ),
        (
            "obsolete",
            "Does it still hold that reports are sent to the halden desk?",
            Fact::Obsolete {
                withdrawn: one("reports", "Send reports to the halden desk."),
                withdrawal: text("Drop what I said of the halden desk."),
                standing: one("invoices", "Send invoices to the morwen desk."),
                standing_question: text(
                    "Does it still hold that invoices are sent to the morwen desk?",
                ),
            },
        ),
        (
            "indirect",
            "On which socket does the process that makes out bills listen?",
            Fact::Indirect { key: text("invoicing worker port"), value: text("51907") },
        ),
        (
            "two-step",
            "Which address has the machine that the search index runs on?",
            Fact::TwoStep {
                steps: pairs(&[
                    ("search index host", "hst-9c41"),
                    ("hst-9c41 address", "10.71.3.208"),
                ]),
            },
        ),
        (
            "act",
            "Write the one call that opens the case, with its release and its ticket.",
            Fact::Act { arguments: pairs(&[("release", "rel-1a77c"), ("ticket", "OPS-22871")]) },
        ),
        (
            "open",
            "When did Caroline go to the support group?",
            Fact::Open { answer: text("7 May 2023") },
        ),
        (
            "decoy",
            "What is the coastal courier change ticket?",
            Fact::Decoy { key: text("coastal courier change ticket"), value: text("CHG-10001") },
        ),
        ("unanswerable", "Which instrument does her sister play?", Fact::Unanswerable),
    ];
    all.into_iter()
        .map(|(id, question, fact)| Probe {
            id: text(id),
            fact,
            question: text(question),
            evidence: Vec::new(),
            until: None,
            importance: Importance::Normal,
        })
        .collect()
}

/// A judge that knows the class and replies in the shape of this number.
#[derive(Debug)]
struct Knows {
    class: usize,
    shape: usize,
}

impl Caller for Knows {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        let (_, word, _) = CLASSES[self.class];
        let reply = |request: &Request| {
            assert_eq!(request.purpose, Purpose::Judge);
            let text = match self.shape % 7 {
                0 => format!(r#"{{"reason": "it says so", "verdict": "{word}"}}"#),
                1 => format!("```json\n{{\"verdict\":\"{word}\"}}\n```"),
                2 => format!(r#"{{"Verdict": "{}", "confidence": 0.8}}"#, word.to_uppercase()),
                3 => format!("<think>\nright? stale?\n</think>\n{{\"verdict\": \"{word}\"}}"),
                4 => format!(
                    "Let me see.\n\n{{\"reason\": \"x\", \"verdict\": \"{word}\"}}\n\nDone."
                ),
                5 => format!("**Verdict:** {word}"),
                _ => format!("{word}."),
            };
            Ok(response(text))
        };
        requests.iter().map(reply).collect()
    }
}

/// How one class of one probe was graded.
#[derive(Default)]
struct Tally {
    answers: usize,
    confirmed: usize,
}

#[test]
fn rules_never_contradict_what_is_known_and_the_judge_decides_the_rest() {
    let (rows, probes) = (rows(), probes());
    let rules = GradingRules::new(&probes);
    let judge = Judge { probes: &probes, ..Judge::default() };
    let mut tallies: BTreeMap<(usize, usize), Tally> = BTreeMap::new();
    let mut contradicted = Vec::new();
    for (shape, row) in rows.iter().enumerate() {
        let at = probes.iter().position(|probe| probe.id == row.probe);
        let at = at.unwrap_or_else(|| panic!("a probe: {}", row.probe));
        let probe = &probes[at];
        let (class, _, expected) = CLASSES[row.class];
        let tally = tallies.entry((at, row.class)).or_default();
        tally.answers += 1;
        let typed = rules.verdict(probe, BEFORE, &row.answer);
        match typed {
            GradeVerdict::Unscored { reason } => assert_eq!(reason, Unscored::NeedsJudge),
            GradeVerdict::Scored { score, outcome } => {
                tally.confirmed += 1;
                // A foil's letter and a forbidden call are known to be wrong and no more.
                let is_closed = outcome == Outcome::Wrong && expected == Outcome::Invented;
                if (outcome != expected && !is_closed)
                    || ((score >= 1.0) != (expected == Outcome::Right))
                {
                    contradicted.push(format!(
                        "{} is {class}, by rule {outcome:?}: {:?}",
                        row.probe, row.answer
                    ));
                }
            }
        }
        // Whatever rules say, the judge's word is read and counts.
        let mut knows = Knows { class: row.class, shape };
        let judged = drive(judge.grade(probe, BEFORE, &row.answer), &mut knows);
        let score = if expected == Outcome::Right { 1.0 } else { 0.0 };
        let outcome = expected;
        assert_eq!(judged, GradeVerdict::Scored { score, outcome }, "{}", row.answer);
    }
    assert!(contradicted.is_empty(), "{}", contradicted.join("\n"));
    golden("tests/it/grader_suite.md", &table(&probes, &tallies));
}

/// The suite's table, as it is committed.
fn table(probes: &[Probe], tallies: &BTreeMap<(usize, usize), Tally>) -> String {
    let all: usize = tallies.values().map(|tally| tally.answers).sum();
    let confirmed: usize = tallies.values().map(|tally| tally.confirmed).sum();
    let mut out = format!(
        "The grader suite: {all} answers whose verdict is known. By rules alone {confirmed} are confirmed, {} \
         are left to a judge, and none is contradicted; with a judge that knows them all are graded as known, \
         whatever shape its reply has. Each cell: confirmed by rules, of how many answers.\n\n| probe |",
        all - confirmed
    );
    for (_, word, _) in CLASSES {
        let _ = write!(out, " {word} |");
    }
    out.push_str("\n|---|---|---|---|---|---|---|\n");
    for (at, probe) in probes.iter().enumerate() {
        let of = |class: usize| tallies.get(&(at, class));
        if (0..CLASSES.len()).all(|class| of(class).is_none()) {
            continue;
        }
        let _ = write!(out, "| {} |", probe.id);
        for class in 0..CLASSES.len() {
            let _ = match of(class) {
                Some(tally) => write!(out, " {} of {} |", tally.confirmed, tally.answers),
                None => write!(out, " – |"),
            };
        }
        out.push('\n');
    }
    out
}

#[test]
fn the_suite_has_every_kind_class_and_style() {
    let (rows, probes) = (rows(), probes());
    assert!(rows.len() >= 300, "{}", rows.len());
    let kind = |row: &Row| {
        let probe = probes.iter().find(|probe| probe.id == row.probe);
        probe.map(Probe::kind)
    };
    let kinds: BTreeSet<ProbeKind> = rows.iter().filter_map(kind).collect();
    for kind in ProbeKind::ALL {
        assert!(kinds.contains(&kind), "no answer of kind {}", kind.name());
        let of_kind = || {
            let probes = &probes;
            rows.iter().filter(move |row| {
                probes.iter().any(|probe| probe.id == row.probe && probe.kind() == kind)
            })
        };
        let styles: BTreeSet<&str> = of_kind().map(|row| row.style).collect();
        assert!(styles.is_subset(&STYLES.into()), "{styles:?}");
        assert!(styles.len() >= 4, "{}: {styles:?}", kind.name());
        let classes: BTreeSet<usize> = of_kind().map(|row| row.class).collect();
        let least = if kind.is_never_said() { 2 } else { 4 };
        assert!(classes.len() >= least, "{}: {classes:?}", kind.name());
    }
}
