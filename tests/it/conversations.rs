//! Long conversations with questions, from the benchmark's own file to graded answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proctor::metric::survival::Survival;
use proctor::probe::judge::NOT_IN_CONTEXT;
use proctor::probe::{GradeVerdict, Outcome, ProbeKind, Unscored};
use proctor::record::journal::RecordedRun;
use proctor::record::{CellRecord, Fate, ProbeRecord};
use serde_json::{Value, json};

/// Runs the program in a folder; it must succeed.
#[track_caller]
fn proctor(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["PROCTOR_COUNTER", "PROCTOR_SEED", "PROCTOR_WINDOW"] {
        command.env_remove(name);
    }
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Sittings of small talk, with one message told in one of them.
fn sittings(count: usize, told_in: usize, told: &str) -> Vec<Vec<String>> {
    let talk = |sitting: usize, turn: usize| {
        format!(
            "On walk {sitting}.{turn} we met nobody, the weather was fair, and we spoke about the garden, \
             the neighbours' fence, what to cook on Sunday and whether the train would be late again."
        )
    };
    let sitting = |at: usize| {
        let mut turns: Vec<String> = (0..4).map(|turn| talk(at, turn)).collect();
        if at == told_in {
            told.clone_into(&mut turns[2]);
        }
        turns
    };
    (0..count).map(sitting).collect()
}

/// A reader that says what it was told where the prompt still has it.
const READER: &str = "format = 'proctor-script'\nversion = 1\n\
     [[answer]]\npurpose = 'probe'\nasked = 'berth number'\nholds = 'KST-4471'\ntext = 'KST-4471'\n\
     [[answer]]\npurpose = 'probe'\nasked = 'rowing machine'\nholds = 'RX-2206'\ntext = 'RX-2206'\n\
     [[answer]]\npurpose = 'probe'\nasked = 'How many'\ntext = 'Three'\n\
     [[answer]]\npurpose = 'probe'\ntext = 'not in context'\n";

/// Runs the file through full history and a short tail; returns the cells of each, by question.
fn fates(folder: &Path, session: &str) -> BTreeMap<String, BTreeMap<String, CellRecord>> {
    std::fs::write(folder.join("reader.toml"), READER).unwrap();
    proctor(
        folder,
        &[
            "run",
            "--set",
            "models.reader={ kind = 'scripted', model = 'reader', script = 'reader.toml' }",
            "--session",
            session,
            "--strategy",
            "tail@1500",
            "--window",
            "4k",
            "--set",
            "counter=chars/4",
            "--out",
            "run",
        ],
    );
    let run = RecordedRun::read(&folder.join("run")).unwrap();
    let mut by_question: BTreeMap<String, BTreeMap<String, CellRecord>> = BTreeMap::new();
    for cell in run.cells {
        for probe in &cell.probes {
            let cells = by_question.entry(probe.probe.clone()).or_default();
            cells.insert(cell.strategy.clone(), cell.clone());
        }
    }
    std::fs::remove_dir_all(folder.join("run")).unwrap();
    by_question
}

/// Early facts are gone with the messages that the tail drops, and late ones stay; full history
/// answers both. The file's own words are what is asked.
#[track_caller]
fn check(file: &Value, early: (&str, &str), late: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("talks.json"), file.to_string()).unwrap();
    let asked = fates(folder.path(), "talks.json");
    let fate = |id: &str, strategy: &str| {
        let cell = &asked[id][strategy];
        let items = cell.probes.iter().filter(|it| it.probe == id);
        let last = items.max_by_key(|it| it.percent).unwrap();
        let answer = last.answer.as_ref().unwrap();
        (last.survival.fate, answer.text.clone().unwrap_or_default())
    };
    let (id, question) = early;
    let (found, answer) = fate(id, "full");
    assert_eq!(found, Fate::Kept);
    assert!(answer.contains("KST-4471"), "{answer}");
    let (found, answer) = fate(id, "tail@1500");
    assert_eq!(found, Fate::Lost);
    assert!(!answer.contains("KST-4471"), "{answer}");
    for strategy in ["full", "tail@1500"] {
        let (found, answer) = fate(late, strategy);
        assert_eq!(found, Fate::Kept, "{strategy}");
        assert!(answer.contains("RX-2206"), "{strategy}: {answer}");
    }
    let texts = &asked[id]["full"].probe_texts;
    assert!(texts.iter().any(|it| it.probe == id && it.question == question), "{texts:?}");

    // The native file with its questions beside it asks the same.
    proctor(folder.path(), &["sessions", "import", "talks.json", "-o", "native"]);
    let mut again = BTreeMap::new();
    for entry in std::fs::read_dir(folder.path().join("native")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".session.jsonl") {
            again.extend(fates(folder.path(), path.to_str().unwrap()));
        }
    }
    assert_eq!(again, asked);
}

const EARLY: &str = "I bought a boat for the lake, and its berth number is KST-4471.";
const LATE: &str = "My sister gave me a rowing machine of model RX-2206.";
const ASKED_EARLY: &str = "What is the berth number of the boat that was bought for the lake?";
const ASKED_LATE: &str = "Which model is the rowing machine from my sister?";

#[test]
fn the_questions_of_a_locomo_file_are_asked_and_graded() {
    let mut talk = json!({"speaker_a": "Ada", "speaker_b": "Grace"});
    let mut sittings = sittings(24, 0, EARLY);
    LATE.clone_into(&mut sittings[23][2]);
    for (at, turns) in sittings.into_iter().enumerate() {
        let number = at + 1;
        let turns = turns.into_iter().enumerate().map(|(turn, text)| {
            let speaker = ["Ada", "Grace"][turn % 2];
            json!({"speaker": speaker, "dia_id": format!("D{number}:{}", turn + 1), "text": text})
        });
        talk[format!("session_{number}")] = turns.collect();
        talk[format!("session_{number}_date_time")] =
            json!(format!("1:56 pm on {number} May, 2023"));
    }
    let file = json!([{
        "sample_id": "conv-1",
        "conversation": talk,
        "qa": [
            {"question": ASKED_EARLY, "answer": "KST-4471", "evidence": ["D1:3"], "category": 4},
            {"question": ASKED_LATE, "answer": "RX-2206", "evidence": ["D24:3"], "category": 4},
            {"question": "How many things were given or bought?", "answer": "Two", "evidence": ["D1:3", "D24:3"], "category": 1},
            {"question": "Does Grace sail?", "adversarial_answer": "Yes", "evidence": ["D1:3"], "category": 5},
        ],
    }]);
    check(&file, ("q1", ASKED_EARLY), "q2");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("talks.json"), file.to_string()).unwrap();
    let asked = fates(folder.path(), "talks.json");
    // Without a judge an open question is not graded, whatever the answer; its evidence is there or
    // not. What nobody said is graded by rule.
    for (strategy, fate, score) in [("full", Fate::Kept, 1.0), ("tail@1500", Fate::Partial, 0.5)] {
        let cell = &asked["q3"][strategy];
        let of = |id: &str| -> Vec<&ProbeRecord> {
            cell.probes.iter().filter(|it| it.probe == id).collect()
        };
        let [open] = of("q3")[..] else {
            panic!("asked once, when all of it was said");
        };
        assert_eq!((open.survival.fate, open.survival.score), (fate, score));
        assert_eq!(open.survival.lost_at.is_some(), fate == Fate::Partial);
        let verdict = open.answer.as_ref().unwrap().typed;
        let reason = Unscored::NeedsJudge;
        assert_eq!(verdict, GradeVerdict::Unscored { reason });
        let counted = Survival::of(cell);
        assert_eq!(counted.of_kind(ProbeKind::Open).mean(), Some(score));
        let planted: usize = ["q1", "q2"].map(|id| of(id).len()).iter().sum();
        assert_eq!(counted.planted().items, planted);
        assert_eq!(counted.decoys().items, 0, "nothing is found by chance");
        let untold = of("q4");
        assert!(!untold.is_empty());
        for item in untold {
            let answer = item.answer.as_ref().unwrap();
            let text = answer.text.clone().unwrap_or_default();
            let outcome = if text == NOT_IN_CONTEXT { Outcome::Right } else { Outcome::Invented };
            assert!(
                matches!(answer.typed, GradeVerdict::Scored { outcome: found, .. } if found == outcome),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn the_question_of_each_longmemeval_instance_is_asked_and_graded() {
    let instance = |id: &str, question: &str, answer: &str, told_in: usize, told: &str| {
        let sittings = sittings(24, told_in, told);
        let turns = |turns: Vec<String>| -> Value {
            let turns = turns.into_iter().enumerate().map(|(turn, text)| {
                let role = ["user", "assistant"][turn % 2];
                json!({"role": role, "has_answer": text == told, "content": text})
            });
            turns.collect()
        };
        json!({
            "question_id": id,
            "question_type": "single-session-user",
            "question": question,
            "answer": answer,
            "question_date": "2023/06/30 (Fri) 20:30",
            "haystack_dates": (1..=24).map(|day| format!("2023/05/{day:02} (Sat) 02:21")).collect::<Vec<_>>(),
            "haystack_session_ids": (1..=24).map(|at| format!("s{at}")).collect::<Vec<_>>(),
            "answer_session_ids": [format!("s{}", told_in + 1)],
            "haystack_sessions": sittings.into_iter().map(turns).collect::<Vec<_>>(),
        })
    };
    let file = json!([
        instance("early", ASKED_EARLY, "KST-4471", 0, EARLY),
        instance("late", ASKED_LATE, "RX-2206", 23, LATE),
    ]);
    check(&file, ("early", ASKED_EARLY), "late");
}
