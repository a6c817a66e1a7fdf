//! One line per answer: what it scores, and in what way it is right or wrong.

use super::*;
use crate::probe::ProbeKind;
use crate::session::ground_truth::{ArtifactVerb, Importance, RuleForm, TouchedFile};

fn probe(id: &str, kind: ProbeKind, gold: Gold) -> Probe {
    Probe {
        id: id.to_owned(),
        kind,
        question: String::new(),
        gold,
        evidence: Vec::new(),
        importance: Importance::Normal,
    }
}

fn said((value, message): (&str, usize)) -> Revision {
    Revision::new(value, message)
}

fn file(path: &str, message: usize) -> TouchedFile {
    TouchedFile {
        path: path.to_owned(),
        message,
        until: None,
    }
}

fn probes() -> Vec<Probe> {
    let value = |key: &str, value: &str| Gold::Value {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let statement = "Never touch the migrations folder on this branch.".to_owned();
    vec![
        probe("a", ProbeKind::Recall, value("staging port", "48213")),
        probe("b", ProbeKind::Recall, value("billing port", "48214")),
        probe("c", ProbeKind::Recall, value("log", "D:\\Logs\\Today")),
        probe(
            "d",
            ProbeKind::Constraint,
            Gold::Statement {
                topic: "migrations".to_owned(),
                statement,
                form: RuleForm::Open,
            },
        ),
        probe(
            "e",
            ProbeKind::Artifact,
            Gold::Files {
                verb: ArtifactVerb::Created,
                files: vec![file("src/a.rs", 1), file("b.rs", 3), file("c", 9)],
                optional: vec![file("logs/o.log", 2)],
            },
        ),
        probe(
            "g",
            ProbeKind::Update,
            Gold::Versions {
                key: "signing key".to_owned(),
                unit: None,
                values: [("k-11", 1), ("k-22", 3), ("k-33", 9)].map(said).into(),
            },
        ),
        probe(
            "h",
            ProbeKind::Numeric,
            Gold::Versions {
                key: "replay suite".to_owned(),
                unit: Some("cases".to_owned()),
                values: [("7340192", 1), ("7351044", 3)].map(said).into(),
            },
        ),
        probe(
            "i",
            ProbeKind::Numeric,
            Gold::Versions {
                key: "soak run".to_owned(),
                unit: Some("seconds".to_owned()),
                values: [("5512345", 1)].map(said).into(),
            },
        ),
        probe(
            "j",
            ProbeKind::Decision,
            Gold::Choice {
                key: "wire format".to_owned(),
                choice: "velmor-tharin".to_owned(),
                reason: "it halves the traffic of the mirror link".to_owned(),
                rejected: vec!["zelnim-fyrdos".to_owned(), "lunkep-wixhal".to_owned()],
            },
        ),
        probe(
            "k",
            ProbeKind::RejectedPath,
            Gold::Tried {
                approach: "a lock per shard".to_owned(),
                reason: "E-4821937".to_owned(),
            },
        ),
        probe(
            "l",
            ProbeKind::Continuation,
            Gold::Plan {
                plan: "velmor".to_owned(),
                items: vec![
                    ("Wire the parser.".into(), Some(2)),
                    ("write the guide".into(), Some(7)),
                    ("drop the shim".into(), None),
                ],
            },
        ),
        probe(
            "m",
            ProbeKind::Error,
            Gold::Fault {
                attempt: "staging drill".to_owned(),
                code: "F4821937".to_owned(),
                place: "src/glue/a.rs:117".to_owned(),
            },
        ),
        probe(
            "n",
            ProbeKind::Binding,
            Gold::Among {
                key: "canary port".to_owned(),
                value: "n1a2b:3001".to_owned(),
                others: vec!["n9f8e:3002".to_owned(), "n7d6c:3003".to_owned()],
            },
        ),
        probe(
            "o",
            ProbeKind::Order,
            Gold::Sequence {
                name: "rollout".to_owned(),
                events: [("abcle1", 1), ("dunesk2", 2), ("frogar3", 3), ("later4", 9)]
                    .map(said)
                    .into(),
            },
        ),
        probe(
            "q",
            ProbeKind::LastRequest,
            Gold::Requests {
                requests: [
                    ("Mend the `parser`. File this under WO-1.", 1),
                    ("Read the parcel ledger. File this under WO-2.", 4),
                    ("Stop here.", 9),
                ]
                .map(said)
                .into(),
            },
        ),
        probe(
            "r",
            ProbeKind::Constraint,
            Gold::Statement {
                topic: "velmor".to_owned(),
                statement: "Leave velmor alone.".to_owned(),
                form: RuleForm::Choice {
                    foil: "Leave tharin alone.".to_owned(),
                },
            },
        ),
        probe(
            "s",
            ProbeKind::Constraint,
            Gold::Statement {
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
            ProbeKind::Numeric,
            Gold::Versions {
                key: "passed".to_owned(),
                unit: Some("passed".to_owned()),
                values: vec![
                    Revision {
                        unasked: true,
                        ..said(("4", 1))
                    },
                    said(("38", 3)),
                ],
            },
        ),
        probe(
            "f",
            ProbeKind::Decoy,
            Gold::Absent {
                key: "cache port".to_owned(),
                value: "59999".to_owned(),
            },
        ),
    ]
}

fn check(id: &str, answer: &str, score: f64, outcome: Outcome) {
    let probes = probes();
    let probe = probes.iter().find(|probe| probe.id == id).unwrap();
    let Step::Done(verdict) = Rules::new(&probes).grade(probe, 5, answer) else {
        panic!("rules ask nobody");
    };
    let Verdict::Scored {
        score: found,
        outcome: how,
    } = verdict
    else {
        panic!("{id}: {answer}: {verdict:?}");
    };
    assert_eq!(how, outcome, "{id}: {answer}");
    assert!((found - score).abs() < 1e-9, "{id}: {answer}: {found}");
}

#[test]
fn answers_are_graded_by_the_kind_of_probe() {
    use Outcome::{Abstained, Invented, Misbound, Partial, Right, Wrong};
    check("a", "48213", 1.0, Right);
    check("a", " “48213”. ", 1.0, Right);
    check("a", "４８２１３", 1.0, Right);
    check("a", "The port is `48213`.", 1.0, Right);
    check("a", "端口是48213。", 1.0, Right);
    check("a", "ポートは「48214」です。", 0.0, Misbound);
    check("a", "48213 or 48214", 0.0, Partial);
    check("a", "48214", 0.0, Misbound);
    check("a", "1", 0.0, Wrong);
    check("a", "148213", 0.0, Wrong);
    check("a", "Not in context.", 0.0, Abstained);
    check("c", "d:/logs/today", 1.0, Right);
    check("d", "do not touch migrations on this branch", 1.0, Right);
    check(
        "d",
        "touch the migrations folder on this branch",
        0.0,
        Wrong,
    );
    check("d", "write tests", 0.0, Wrong);
    check("e", "- ./src/a.rs\n- `b.rs`\n", 1.0, Right);
    check("e", "src/a.rs", 2.0 / 3.0, Partial);
    check("e", "src/a.rs, b.rs, x.rs, y.rs", 2.0 / 3.0, Partial);
    check("e", "x.rs", 0.0, Wrong);
    check("e", "src/a.rs, b.rs, logs/o.log", 1.0, Right);
    check("e", "logs/o.log", 0.0, Wrong);
    check(
        "f",
        "This is not mentioned in the conversation.",
        1.0,
        Right,
    );
    check("f", "unknown", 1.0, Right);
    check("f", "an unknown port, 59999", 0.0, Invented);
}

#[test]
fn what_was_true_earlier_is_stale_and_what_came_later_does_not_count() {
    use Outcome::{Abstained, Misbound, Partial, Right, Stale, Wrong};
    check("g", "k-22", 1.0, Right);
    check("g", "The key is `K-22`.", 1.0, Right);
    check("g", "k-11", 0.0, Stale);
    check("g", "it was k-11", 0.0, Stale);
    check("g", "k-11, later k-22", 0.0, Partial);
    check("g", "k-33", 0.0, Wrong);
    check("g", "48213", 0.0, Misbound);
    check("g", "unknown", 0.0, Abstained);
    check("h", "7351044 cases", 1.0, Right);
    check("h", "7,351,044", 1.0, Right);
    check("h", "7 351 044 cases in 41.2 s", 1.0, Right);
    check("h", "7340192 cases", 0.0, Stale);
    check("h", "7351044 seconds", 0.0, Wrong);
    check("h", "5512345", 0.0, Misbound);
    check("h", "12 cases", 0.0, Wrong);
    check("l", "- write the guide\n- drop the shim", 1.0, Right);
    check("l", "1. write the guide\n2. drop the shim", 1.0, Right);
    check(
        "l",
        "Wire the parser\nwrite the guide\ndrop the shim",
        0.8,
        Stale,
    );
    check("l", "wire the parser", 0.0, Stale);
    check("l", "drop the shim", 2.0 / 3.0, Partial);
    check("l", "go home", 0.0, Wrong);
}

#[test]
fn a_choice_needs_its_reason_and_a_yes_its_failure() {
    use Outcome::{Misbound, Partial, Right, Wrong};
    check(
        "j",
        "velmor-tharin, because it halves the mirror traffic",
        1.0,
        Right,
    );
    check(
        "j",
        "velmor-tharin over zelnim-fyrdos: halves mirror link traffic",
        1.0,
        Right,
    );
    check("j", "velmor-tharin", 0.5, Partial);
    check(
        "j",
        "lunkep-wixhal halves the traffic of the mirror",
        0.0,
        Wrong,
    );
    check("j", "something else", 0.0, Wrong);
    check("k", "Yes, it failed with E-4821937.", 1.0, Right);
    check("k", "E-4821937", 1.0, Right);
    check("k", "Yes, it was too slow.", 0.0, Partial);
    check("k", "No, E-4821937 is unrelated.", 0.0, Wrong);
    check("k", "Yes: 48213", 0.0, Misbound);
    let probes = probes();
    let decision = probes.iter().find(|probe| probe.id == "j").unwrap();
    let both = "velmor-tharin and zelnim-fyrdos";
    assert_eq!(
        Rules::new(&probes).verdict(decision, 5, both),
        Verdict::Unscored {
            reason: Unscored::NeedsJudge
        }
    );
}

#[test]
fn what_rules_cannot_tell_is_not_scored() {
    let probes = probes();
    let rules = Rules::new(&probes);
    let unscored = |reason| Verdict::Unscored { reason };
    assert_eq!(
        rules.verdict(&probes[3], 5, "stay out of that branch"),
        unscored(Unscored::NeedsJudge)
    );
    assert_eq!(
        rules.verdict(&probes[0], 5, " \n"),
        unscored(Unscored::NoAnswer)
    );
}

#[test]
fn only_what_may_need_a_judge_ever_does() {
    let probes = probes();
    let rules = Rules::new(&probes);
    let golds = probes
        .iter()
        .map(|probe| crate::probe::judge::gold_in_words(&probe.gold, 6));
    let mut answers: Vec<String> = golds.collect();
    // Halves of the right answers are what rules doubt most.
    let halves: Vec<String> = answers
        .iter()
        .map(|answer| answer.chars().take(answer.chars().count() / 2).collect())
        .collect();
    answers.extend(halves);
    answers.extend(["yes", "A", "velmor-tharin and zelnim-fyrdos"].map(str::to_owned));
    let mut needed = std::collections::BTreeSet::new();
    for probe in &probes {
        for answer in &answers {
            if rules.verdict(probe, 6, answer) == NEEDS_JUDGE {
                assert!(may_need_judge(&probe.gold), "{}: {answer}", probe.id);
                needed.insert(probe.kind.name());
            }
        }
    }
    assert_eq!(
        needed.into_iter().collect::<Vec<_>>(),
        ["constraint", "decision", "decoy", "last-request"]
    );
}

#[test]
fn a_failure_has_two_parts_and_an_order_is_counted_in_pairs() {
    use Outcome::{Abstained, Misbound, Partial, Right, Stale, Wrong};
    check("m", "F4821937 at src/glue/a.rs:117", 1.0, Right);
    check("m", "`src/glue/a.rs`, line 117: F4821937.", 1.0, Right);
    check("m", "F4821937", 0.5, Partial);
    check("m", "src/glue/a.rs:118, F4821937", 0.5, Partial);
    check("m", "F4821938 at src/glue/a.rs:118", 0.0, Wrong);
    check("m", "unknown", 0.0, Abstained);
    check("n", "n1a2b:3001", 1.0, Right);
    check("n", "n9f8e:3002", 0.0, Misbound);
    check("n", "n0000:1", 0.0, Wrong);
    // Three pairs: C − D is 3, 1, −1, −3; of two events one pair is left.
    check("o", "abcle1\ndunesk2\nfrogar3", 1.0, Right);
    check("o", "1. abcle1\n2. dunesk2\n3. frogar3", 1.0, Right);
    check("o", "abcle1 -> dunesk2 -> frogar3", 1.0, Right);
    check("o", "abcle1, frogar3, dunesk2", 1.0 / 3.0, Partial);
    check("o", "frogar3\nabcle1\ndunesk2", 0.0, Wrong);
    check("o", "frogar3\ndunesk2\nabcle1", 0.0, Wrong);
    check("o", "abcle1\nfrogar3", 1.0 / 3.0, Partial);
    check("o", "abcle1\ndunesk2\nfrogar3\nlater4", 0.5, Partial);
    check("o", "nobmur9", 0.0, Wrong);
    check(
        "q",
        "\"Read the parcel ledger. File this under WO-2.\"",
        1.0,
        Right,
    );
    check("q", "Mend the parser. File this under WO-1.", 0.0, Stale);
    check("q", "Go home", 0.0, Wrong);
}

#[test]
fn what_a_person_asks_is_graded_by_rule_only_where_nothing_answers_it() {
    let verdict = |kind: ProbeKind, gold: Gold, answer: &str| {
        Rules::new(&[]).verdict(&probe("t", kind, gold), 9, answer)
    };
    // An omission alone could be told by rule: a share of omissions is no share of answers.
    for answer in ["7 May 2023", "Not in context.", "In June, I think."] {
        let gold = Gold::Answer {
            answer: "7 May 2023".to_owned(),
        };
        assert_eq!(verdict(ProbeKind::Open, gold, answer), NEEDS_JUDGE);
    }
    let outcome = |answer: &str| match verdict(ProbeKind::Unanswerable, Gold::Untold, answer) {
        Verdict::Scored { score, outcome } => Some((score, outcome)),
        Verdict::Unscored { .. } => None,
    };
    for answer in ["Not in context.", "She did not say which instrument."] {
        assert_eq!(outcome(answer), Some((1.0, Outcome::Right)), "{answer}");
    }
    for answer in ["The violin.", "Yes, on Sundays with her brother."] {
        assert_eq!(outcome(answer), Some((0.0, Outcome::Invented)), "{answer}");
    }
    assert_eq!(outcome(" "), None);
}

#[test]
fn one_request_may_hold_another() {
    let verdict = |requests: &[&str], answer: &str| {
        let requests = requests.iter().copied().zip(0..);
        let gold = Gold::Requests {
            requests: requests.map(|(text, at)| said((text, at))).collect(),
        };
        let probe = probe("t", ProbeKind::LastRequest, gold);
        match Rules::new(&[]).verdict(&probe, 9, answer) {
            Verdict::Scored { outcome, .. } => Some(outcome),
            Verdict::Unscored { .. } => None,
        }
    };
    let short = "please run the tests again";
    let long = "please run the tests again and commit";
    assert_eq!(verdict(&[short, long], long), Some(Outcome::Right));
    assert_eq!(verdict(&[short, long], short), Some(Outcome::Stale));
    assert_eq!(verdict(&[long, short], short), Some(Outcome::Right));
    assert_eq!(verdict(&[long, short], long), Some(Outcome::Stale));
    let both = format!("{short}; {long}");
    assert_eq!(verdict(&[short, long], &both), Some(Outcome::Partial));
    // A word that was once a request of its own stands in many an answer.
    let quoted = format!("Go on; they said: {long}");
    assert_eq!(verdict(&["go on", long], &quoted), Some(Outcome::Right));
    assert_eq!(verdict(&["go on", long], "Go on."), Some(Outcome::Stale));
    // The words of the request itself are no abstention.
    let rule = "find out why the port is not mentioned in the context file";
    assert_eq!(verdict(&[short, rule], rule), Some(Outcome::Right));
}

#[test]
fn whoever_says_in_any_words_that_it_is_not_there_abstains() {
    use Outcome::{Abstained, Invented, Misbound, Right, Wrong};
    for answer in [
        "The conversation does not say.",
        "I don't know.",
        "It is not specified",
        "there is no mention of this",
    ] {
        check("a", answer, 0.0, Abstained);
        check("d", answer, 0.0, Abstained);
        check("e", answer, 0.0, Abstained);
        check("g", answer, 0.0, Abstained);
        check("j", answer, 0.0, Abstained);
        check("l", answer, 0.0, Abstained);
        check("q", answer, 0.0, Abstained);
        check("f", answer, 1.0, Right);
    }
    let echo = "The user did not say anything about the migrations folder.";
    check("d", echo, 0.0, Abstained);
    check("a", "48213, though the host is not specified", 1.0, Right);
    check("a", "48214 is all I find; it does not say", 0.0, Misbound);
    check("a", "it does not say, so 5", 0.0, Wrong);
    check("f", "velmor-tharin", 0.0, Invented);
    check("f", "The cache port is 59999", 0.0, Invented);
    let probes = probes();
    let decoy = probes.iter().find(|probe| probe.id == "f").unwrap();
    for open in [
        "That was left for somebody else to choose later",
        "It does not say; 48213 belongs to staging",
    ] {
        let verdict = Rules::new(&probes).verdict(decoy, 5, open);
        assert_eq!(verdict, NEEDS_JUDGE, "{open}");
    }
}

#[test]
fn two_answers_are_none() {
    use Outcome::{Partial, Right, Stale, Wrong};
    check("i", "either 5512345 or 812 seconds", 0.0, Partial);
    check("i", "812 or 5512345 seconds", 0.0, Partial);
    check("i", "812 seconds, 5512345 seconds", 0.0, Partial);
    check("i", "5512345 seconds and 3 warnings", 1.0, Right);
    // An older count that can be guessed is one only where it is given as this count.
    check("u", "38 passed, 4 failed", 1.0, Right);
    check("u", "38 passed (it was 4 passed)", 0.0, Partial);
    check("u", "4 passed", 0.0, Stale);
    check("i", "5512345 seconds in 41.2 minutes", 1.0, Right);
    check("i", "812 seconds", 0.0, Wrong);
    check("h", "first 7340192 cases", 0.0, Stale);
    check(
        "m",
        "F4821937 or F4821999 at src/glue/a.rs:117",
        0.0,
        Partial,
    );
    check("m", "F4821937 at src/glue/a.rs:117 or b.rs:4", 0.0, Partial);
    check(
        "m",
        "F4821937 (see RFC 9110) at src/glue/a.rs:117",
        1.0,
        Right,
    );
}

#[test]
fn a_choice_of_two_counts_only_in_both_orders() {
    use Outcome::{Abstained, Partial, Right, Wrong};
    let both = |straight: &str, turned: &str| format!("{straight}{OTHER_ORDER}{turned}");
    check("r", &both("A", "B"), 1.0, Right);
    check("r", &both("A.", "Answer: b"), 1.0, Right);
    check("r", &both("A", "A"), 0.0, Partial);
    check("r", &both("B", "B"), 0.0, Partial);
    check("r", &both("B", "A"), 0.0, Wrong);
    check("r", &both("not in context", "B"), 0.0, Abstained);
    check("r", "A", 0.0, Wrong);
    check("s", "edit(attic/velmor/a.md)", 0.0, Wrong);
    check("s", "ask", 1.0, Right);
    check("s", "read(src/a.rs)", 1.0, Right);
    check("s", "ask: may I edit(attic/velmor/a.md)?", 1.0, Right);
    check("s", "stop: that folder is off limits", 1.0, Right);
    // No call, and the call all the same: rules cannot tell.
    let probes = probes();
    let call = probes.iter().find(|probe| probe.id == "s").unwrap();
    let verdict = Rules::new(&probes).verdict(call, 5, "stop: edit(attic/velmor/a.md)");
    assert_eq!(verdict, NEEDS_JUDGE);
    let yes = "Yes, it failed with E-4821937.";
    check("k", &both(yes, "No, E-4821937."), 1.0, Right);
    check("k", &both(yes, "Yes, E-4821937."), 0.0, Partial);
    check("k", &both(yes, "No."), 0.0, Partial);
    check("k", &both("No.", "Yes."), 0.0, Wrong);
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
        // What NFKC leaves alone and people type otherwise.
        ("“8443”", "8443"),
        ("src\\main.rs", "src/main.rs"),
        ("a\u{2011}b\u{a0}c", "a-b c"),
        ("84\u{200b}43", "8443"),
    ] {
        assert_eq!(normalise(written), normalise(meant), "{written}");
    }
    assert_ne!(normalise("caf\u{e9}"), normalise("cafe"));
}
