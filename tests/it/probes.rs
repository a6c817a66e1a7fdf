//! Probes end to end, and the evaluator `survival` against published labels.

use proctor::probe::survival::{PARAPHRASE, content_word_recall};

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
