//! Probes end to end, and the evaluator `survival` against published labels.

use std::sync::Arc;

use proctor::model::Model;
use proctor::model::offline::Offline;
use proctor::probe::grade::Rules;
use proctor::probe::judge::question;
use proctor::probe::survival::{PARAPHRASE, content_word_recall};
use proctor::probe::{Gold, Outcome, Probe, ProbeKind, Verdict};
use proctor::session::ground_truth::Importance;
use proctor::session::{Message, Role};
use proctor::tokens::{CharsPer4, CountedTexts};

#[derive(serde::Deserialize)]
struct Labelled {
    label: bool,
    sssc_message: String,
    compacted_summary: String,
}

/// Area under the ROC curve, as the share of pairs that are ordered right (Mann–Whitney U).
fn auc(scores: &[(f64, bool)]) -> f64 {
    let of = |label| {
        let scores = scores.iter().filter(move |(_, own)| *own == label);
        scores.map(|(score, _)| *score)
    };
    let mut won = 0.0;
    for kept in of(true) {
        for dropped in of(false) {
            won += match kept.total_cmp(&dropped) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    won / (of(true).count() * of(false).count()) as f64
}

/// Cohen's κ of `score >= threshold` against the label.
fn kappa(scores: &[(f64, bool)], threshold: f64) -> f64 {
    let share = |test: &dyn Fn(bool, bool) -> bool| {
        let hits = scores
            .iter()
            .filter(|(score, label)| test(*score >= threshold, *label));
        hits.count() as f64 / scores.len() as f64
    };
    let agreed = share(&|found, label| found == label);
    let (found, label) = (share(&|found, _| found), share(&|_, label| label));
    let chance = found * label + (1.0 - found) * (1.0 - label);
    (agreed - chance) / (1.0 - chance)
}

/// Published: AUC 0.984, κ 0.92 at thresholds from 0.30 to 0.33 (seen on the same sample), nothing
/// found verbatim. The stop list is our own, hence the tolerance of 0.01 and 0.05.
#[test]
fn shared_compint_content_word_recall_agrees_with_the_human() {
    let Some(folder) = crate::shared::folder("oracles/compint") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("labeled.jsonl")).unwrap();
    let labelled: Vec<Labelled> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(labelled.len(), 50);
    let scores: Vec<(f64, bool)> = labelled
        .iter()
        .map(|one| {
            let recall = content_word_recall(&one.sssc_message, &one.compacted_summary);
            (recall, one.label)
        })
        .collect();
    let (auc, kappa) = (auc(&scores), kappa(&scores, PARAPHRASE));
    assert!((auc - 0.984).abs() <= 0.01, "AUC {auc}");
    assert!((kappa - 0.92).abs() <= 0.05, "κ {kappa}");
    let verbatim = labelled
        .iter()
        .filter(|one| one.compacted_summary.contains(&one.sssc_message));
    assert_eq!(verbatim.count(), 0);
    // A rule against another rule's summary.
    let mismatched = (0..labelled.len()).filter(|&at| {
        let other = (1..labelled.len())
            .map(|step| &labelled[(at + step) % labelled.len()])
            .find(|other| other.sssc_message != labelled[at].sssc_message);
        let text = other.map_or("", |other| other.compacted_summary.as_str());
        content_word_recall(&labelled[at].sssc_message, text) >= 0.4
    });
    assert!(mismatched.count() <= 3);
}

/// Probe, prompt, reader, rules: the path of a model, with the reader that needs none.
#[test]
fn the_offline_reader_answers_what_the_context_says_and_abstains_otherwise() {
    let probe = |id: &str, kind, question: &str, gold| Probe {
        id: id.to_owned(),
        kind,
        question: question.to_owned(),
        gold,
        evidence: Vec::new(),
        importance: Importance::Normal,
    };
    let value = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let (key, port) = value("staging gateway port", "48213");
    let (absent, never) = value("nightly archive checksum", "9f31c07a");
    let probes = [
        probe(
            "p-recall-1",
            ProbeKind::Recall,
            "What is the staging gateway port?",
            Gold::Value { key, value: port },
        ),
        probe(
            "p-rule-1",
            ProbeKind::Constraint,
            "What did the user say about the migrations folder?",
            Gold::Statement {
                topic: "migrations folder".to_owned(),
                statement: "Never touch the migrations folder on this branch.".to_owned(),
            },
        ),
        probe(
            "p-decoy-1",
            ProbeKind::Decoy,
            "What is the nightly archive checksum?",
            Gold::Absent {
                key: absent,
                value: never,
            },
        ),
    ];
    let context = [
        "Never touch the migrations folder on this branch.\nThe rest is up to you.",
        "log line 1\nThe staging gateway port is 48213.\nlog line 2",
    ]
    .map(|text| Arc::new(Message::text(Role::User, text)));
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let reader = Offline::new(counts);
    let rules = Rules::new(&probes);
    for (probe, messages, outcome) in [
        (&probes[0], &context[..], Outcome::Right),
        (&probes[1], &context[..], Outcome::Right),
        (&probes[2], &context[..], Outcome::Right),
        (&probes[0], &context[..1], Outcome::Abstained),
        (&probes[1], &context[1..], Outcome::Abstained),
    ] {
        let request = question(None, messages, probe);
        for text in request.messages.iter().flat_map(|m| m.model_text()) {
            assert!(!text.contains(&probe.id));
        }
        let answer = reader.respond(&request).unwrap();
        let verdict = rules.verdict(probe, usize::MAX, &answer.text);
        let score = f64::from(u8::from(outcome == Outcome::Right));
        assert_eq!(verdict, Verdict::Scored { score, outcome }, "{}", probe.id);
    }
}
