//! Rules in summaries that people labelled: whether each is kept, changed, lost or not known.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proctor::probe::survival::{Match, Survival};
use proctor::probe::{Fact, Probe};
use proctor::session::ground_truth::{Importance, RuleForm};

fn state(rule: &str, key: &str, text: &str) -> &'static str {
    let probe = Probe {
        id: "rule".to_owned(),
        importance: Importance::High,
        fact: Fact::Constraint {
            topic: key.to_owned(),
            statement: rule.to_owned(),
            form: RuleForm::Open,
        },
        question: String::new(),
        evidence: Vec::new(),
    };
    let survival = Survival::new(&[probe]).unwrap();
    let found = survival.find(&Arc::from(text));
    match found.first().map(|finding| finding.found) {
        Some(Match::Stated | Match::Kept) => "kept",
        Some(Match::Changed) => "changed",
        Some(Match::Unsure | Match::Unbound | Match::Bound) => "unsure",
        None => "lost",
    }
}

#[derive(serde::Deserialize)]
struct Labelled {
    label: String,
    invariant: String,
    after: Vec<Message>,
}

#[derive(serde::Deserialize)]
struct Message {
    role: String,
    content: String,
}

/// compaction-guard's 300 labelled summaries: tuned on every second one, and held on all. `.ci/run` fetches them.
#[test]
fn labelled_rules_of_compaction_guard() {
    let Some(folder) = std::env::var_os("PROCTOR_LABELLED_RULES") else {
        println!("skipped: PROCTOR_LABELLED_RULES names no folder");
        return;
    };
    let text = std::fs::read_to_string(Path::new(&folder).join("corpus.jsonl")).unwrap();
    let mut table: BTreeMap<(String, usize), BTreeMap<&str, usize>> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let one: Labelled = serde_json::from_str(line).unwrap();
        let after = one.after.iter().filter(|message| message.role != "system");
        let after: Vec<&str> = after.map(|message| &*message.content).collect();
        let found = state(&one.invariant, "", &after.join("\n"));
        if std::env::var_os("SHOW").is_some_and(|show| show.to_string_lossy().contains(&one.label))
            && at % 2 == 1
        {
            println!(
                "{at} {} {found} | {} || {}",
                one.label,
                one.invariant,
                after.join(" // ")
            );
        }
        *table
            .entry((one.label, at % 2))
            .or_default()
            .entry(found)
            .or_default() += 1;
    }
    for ((label, odd), counts) in &table {
        println!(
            "{label:14} {} {counts:?}",
            if *odd == 1 { "odd " } else { "even" }
        );
    }
    let count = |label: &str, states: &[&str]| -> usize {
        let own = table.iter().filter(|((known, _), _)| known == label);
        own.flat_map(|(_, counts)| states.iter().filter_map(|state| counts.get(state)))
            .sum()
    };
    assert_eq!(count("preserved", &["kept"]), 92);
    assert!(count("dropped", &["kept", "changed"]) == 0);
}
