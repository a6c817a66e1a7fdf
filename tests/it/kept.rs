//! Rules in summaries that people labelled: whether each is kept, changed, lost or not known.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proctor::probe::survival::{Match, SurvivalSlots, WrittenBy};
use proctor::probe::{Fact, Probe};
use proctor::session::ground_truth::{Importance, RuleForm};

fn state(rule: &str, key: &str, text: &str) -> &'static str {
    let probe = Probe {
        id: "rule".to_owned(),
        until: None,
        importance: Importance::High,
        fact: Fact::Constraint {
            topic: key.to_owned(),
            statement: rule.to_owned(),
            form: RuleForm::Open,
        },
        question: String::new(),
        evidence: Vec::new(),
    };
    let survival = SurvivalSlots::new(&[probe]).unwrap();
    let found = survival.find(&Arc::from(text), WrittenBy::Compaction);
    match found.first().map(|finding| finding.found) {
        Some(Match::Stated | Match::Kept) => "kept",
        Some(Match::Changed | Match::Overruled) => "changed",
        Some(Match::Unsure) => "unsure",
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

/// compaction-guard's 300 labelled summaries, on every second of which the words were chosen. `.ci/run` fetches them.
#[test]
fn labelled_rules_are_told_apart() {
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
        let counts = table.entry((one.label, at % 2)).or_default();
        *counts.entry(found).or_default() += 1;
    }
    for ((label, odd), counts) in &table {
        let half = if *odd == 1 { "chosen on" } else { "others" };
        println!("{label:14} {half:10} {counts:?}");
    }
    let count = |labels: &[&str], states: &[&str]| -> usize {
        let own = table.iter().filter(|((label, _), _)| labels.contains(&&**label));
        own.flat_map(|(_, counts)| states.iter().filter_map(|state| counts.get(state))).sum()
    };
    assert_eq!(count(&["preserved"], &["kept"]), 92);
    assert_eq!(count(&["dropped"], &["lost"]), 40);
    assert!(count(&["mutated"], &["changed"]) >= 35);
    assert_eq!(count(&["mutated"], &["kept"]), 0);
    let gone = ["weakened", "contradicted"];
    assert!(count(&gone, &["changed"]) >= 60 && count(&gone, &["kept"]) <= 2);
    assert!(count(&["paraphrased"], &["kept"]) >= 20);
    assert!(count(&["paraphrased"], &["changed"]) <= 2);
    assert_eq!(count(&["paraphrased"], &["lost"]), 0);
}

/// One line for each way in which the same, or not the same, is written.
#[test]
fn what_is_exact_is_held_to_its_value_and_what_is_strong_to_its_force() {
    let mut wrong = Vec::new();
    for (rule, text, expected) in [
        ("Spend at most $1,000.", "- spend: at most 1000 dollars", "kept"),
        ("Spend at most $1,000.", "Spending is limited to 1k.", "kept"),
        ("Spend at most $1,000.", "Spend at most $10,000.", "changed"),
        ("Spend at most 50 % of it.", "Never spend more than 0.5 of it", "kept"),
        ("Spend at most 50 % of it.", "Spend at most 5 % of it.", "changed"),
        ("Use release 1.10 only.", "Only release 1.1 is used.", "changed"),
        ("Keep reports under 5 MB.", "Reports must stay under 5 GB.", "changed"),
        ("Keep reports under 5 MB.", "Reports stay under ５ MB.", "kept"),
        ("Never edit src/a.rs by hand.", "never edit ./src/a.rs by hand", "kept"),
        ("Never edit src/a.rs by hand.", "never edit src/b.rs by hand", "changed"),
        ("Never edit the lockfile.", "| lockfile | never edit |", "kept"),
        ("Never edit the lockfile.", r#"{"rules":["Never edit the lockfile."],"n":1}"#, "kept"),
        ("Never edit the lockfile.", "The lockfile may be edited.", "changed"),
        ("Never edit the lockfile.", "Try not to edit the lockfile.", "changed"),
        ("Never edit the lockfile.", "Editing the lockfile is never acceptable.", "kept"),
        ("Never edit the lockfile.", "Never\nedit the lockfile", "unsure"),
        ("Never edit the lockfile.", "The lockfile was edited.", "unsure"),
        (
            "Never edit the lockfile.",
            "Never edit the lockfile. The rule about the lockfile edit was lifted.",
            "changed",
        ),
        (
            "Never edit the lockfile.",
            "The lockfile may be edited. Later: never edit the lockfile.",
            "kept",
        ),
        ("Never edit the lockfile.", "Nothing was said.", "lost"),
        ("Deploy only on Tuesday.", "Deploys happen only on Thursday.", "changed"),
        ("最多退款 3 次。", "退款最多 3 次", "kept"),
        ("最多退款 3 次。", "退款最多 30 次", "changed"),
        ("不得修改配置文件。", "配置文件可以修改。", "changed"),
        ("不得修改配置文件。", "配置文件不得修改。", "kept"),
        ("Ship it.", "", "lost"),
        ("Keep queries under 45 seconds.", "Queries: under 45 s", "kept"),
        ("Retry at most twice.", "Retry at most 2 times.", "kept"),
        ("Retry at most twice.", "Retry at least twice.", "changed"),
        ("Run the tests before each commit.", "Run the tests after each commit.", "changed"),
        ("Indent with two spaces.", "Indentation: 4 spaces", "changed"),
        ("Sign each release.", "Sign each release, except betas.", "changed"),
        ("Sign each release.", "The user withdrew the rule to sign each release.", "changed"),
        ("Sign each release.", "Sign each release, without exception.", "kept"),
        (
            "Keep keys in the vault, not in the image.",
            "Keep keys in the image, not in the vault.",
            "unsure",
        ),
        (
            "Keep keys in the vault, not in the image.",
            "Keys: keep in the vault, never in the image.",
            "kept",
        ),
        ("Never push to main.", "Never push to main on Fridays.", "unsure"),
        ("Never push to main.", "If CI is red, never push to main.", "unsure"),
        ("Never push to main.", "Never push to main under any circumstances.", "kept"),
        ("Never push to main.", "Never push to main? Not decided yet.", "unsure"),
        ("Reply in German.", "Reply in German or English.", "unsure"),
        ("Always reply in German.", "User preference: replies are always in German.", "kept"),
        ("Always sign releases.", "Signing releases is only a preference.", "changed"),
        ("Always sign releases.", "The preference is to sign releases.", "changed"),
        ("Start the nightly job at 18:30.", "Nightly job starts at 6:30 pm.", "kept"),
        ("Start the nightly job at 18:30.", "Start the nightly job at 6:30 am.", "changed"),
        ("Pin React to 18.2.0.", "Pin React to >=18.2.0.", "unsure"),
        ("Use at most 3 retries.", "Retries ≤ 3", "kept"),
        ("The freeze starts on 2026-03-04.", "Freeze start: 4th of March 2026", "kept"),
        ("Import at most 10k rows.", "Import at most 10 rows.", "changed"),
        ("Keep the response time below 200 ms.", "Response time must stay under 0.2 s.", "kept"),
        ("The freeze starts on 2026-03-04.", "The freeze starts on 04.03.2026.", "kept"),
        ("The freeze starts on 2026-05-04.", "The freeze starts on May 4, 2026.", "kept"),
        ("The freeze starts on 2026-03-04.", "The freeze starts after 2026-03-04.", "unsure"),
        ("Files are limited to 20 MB.", "Files of more than 20 MB are refused.", "kept"),
        ("Files are limited to 20 MB.", "Files may be more than 20 MB.", "changed"),
        ("Calls must end within 9 minutes.", "Calls should end within 9 minutes.", "changed"),
        ("Never push to main.", "Never force-push to main.", "unsure"),
        ("Never push to main.", "It was wrongly believed: never push to main.", "unsure"),
        ("Always use double quotes.", "Always use single quotes.", "unsure"),
        ("Never store invalid records.", "Never store valid records.", "unsure"),
        ("The freeze starts on 2026-05-04.", "The freeze starts on the 4th of May 2026.", "kept"),
        ("Merge with the consent of Ida.", "Merge without the consent of Ida.", "changed"),
        ("Merge with the consent of Ida.", "Never merge without the consent of Ida.", "kept"),
        ("Builds must not fail on warnings.", "Builds must fail on warnings.", "changed"),
        ("Don't forget to sign the tag.", "Always sign the tag.", "kept"),
        ("Keep the dose below 1,5 g.", "Keep the dose below 15 g.", "changed"),
        ("Keep the dose below 1.5 g.", "Keep the dose below 1,5 g.", "kept"),
        ("Hold the cellar at -7 degrees.", "Hold the cellar at 7 degrees.", "changed"),
        ("Load at most 10,000 rows.", "Load at most 10,000 rows, or 20,000 on Sundays.", "unsure"),
        ("Keep batches at 50 items.", "- Keep batches at 50 items → 80 items", "changed"),
        ("Retry at most 3 times.", "Retry at most 3 times; currently 12 tests fail.", "kept"),
        ("Use a 16:9 crop.", "Use a 16.9 crop.", "unsure"),
        ("Review each patch before merging it.", "Merge each patch before reviewing it.", "unsure"),
        ("Retry at most 4 times.", "Retries: at most 4.", "kept"),
        ("All forms must be signed.", "Paper forms must be signed.", "unsure"),
        ("Do not add any packages.", "Do not add further packages.", "kept"),
        ("Run the tests with pytest.", "Run the tests using pytest, without mocks.", "kept"),
        ("All forms must be signed.", "Style: forms must be signed.", "kept"),
        (
            "Never drop rows with status lifted.",
            r#"{"rules": ["Never drop rows with status lifted."]}"#,
            "kept",
        ),
    ] {
        let found = state(rule, "", text);
        if found != expected {
            wrong.push(format!("{rule} | {text}: {found}, and not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
