//! `generate --describe`: what families and recordings are like, side by side.

use std::path::Path;
use std::process::{Command, Output};

use proctor::session::session_profile::SessionProfile;
use proctor::session::synthetic::FAMILIES;
use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["sessions", "generate", "--describe"])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let mut all = arguments.to_vec();
    all.push("--json");
    let object: Value = serde_json::from_str(&text(&run(&all))).unwrap();
    assert_eq!(object["format"], "proctor-habits");
    object["rows"].as_array().unwrap().clone()
}

#[test]
fn all_families_are_described_in_tables_of_eighty_columns() {
    let text = text(&run(&["--rounds", "12", "--count", "1"]));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for family in FAMILIES.iter() {
        let lines = text.lines().filter(|it| it.starts_with(family.name));
        assert_eq!(lines.count(), 2, "{}", family.name);
    }
}

#[test]
fn recordings_stand_beside_families() {
    let found = rows(&[
        "debugging",
        "crates/proctor-formats/tests/fixtures/claude-code",
        "scenarios/recorded/walk-through.session.jsonl",
        "--rounds",
        "30",
    ]);
    assert_eq!(found.len(), 3);
    assert_eq!(found[0]["name"], "debugging");
    assert_eq!(found[0]["sessions"], 4);
    assert_eq!(found[0]["calls"], 120);
    assert!(found[1]["sessions"].as_u64().unwrap() >= 3);
    // It carries no times, so there are no gaps to tell of.
    assert_eq!(found[2]["sessions"], 1);
    assert_eq!(found[2]["requests"], 8);
    assert!(found[2]["gap_seconds"].is_null());
    assert!(found[2]["reread_share"].as_f64().is_some());
}

#[test]
fn families_stand_beside_what_was_recorded() {
    let shown = text(&run(&["ci-agent", "--rounds", "5", "--count", "1"]));
    let tables = shown.split("recorded sessions, for comparison:\n").skip(1);
    let products = ["claude-code ", "codex ", "opencode ", "pi "];
    for table in tables.clone() {
        for (line, product) in table.lines().zip(products) {
            assert!(line.starts_with(product), "{line}");
        }
    }
    assert_eq!(tables.count(), 2);
    // Whoever brings recordings sees these instead.
    let own = text(&run(&[
        "ci-agent",
        "crates/proctor-formats/tests/fixtures/claude-code",
        "--rounds",
        "5",
    ]));
    assert!(!own.contains("for comparison"));
}

/// The figures that families are held against, measured again.
#[test]
fn shared_recordings_are_what_families_are_held_against() {
    let Some(folder) = crate::shared::folder("sessions") else {
        return;
    };
    for (product, known) in proctor::session::session_profile::recorded().unwrap() {
        let found = rows(&[&folder.join(&product).display().to_string()]);
        let found: SessionProfile = serde_json::from_value(found[0].clone()).unwrap();
        let spread = |profile: &SessionProfile| {
            let spread = profile.result_bytes.unwrap();
            [spread.p50, spread.p90, spread.p99].map(|bytes| bytes as f64)
        };
        let shares = |profile: &SessionProfile| {
            let calls = profile.calls_per_request.unwrap() / 100.0;
            let seen = profile.observation_share.unwrap();
            [calls, seen, profile.reread_share.unwrap_or_default()]
        };
        for (new, old) in spread(&found).into_iter().zip(spread(&known)) {
            assert!((new / old - 1.0).abs() < 0.1, "{product}: {new} for {old}");
        }
        for (new, old) in shares(&found).into_iter().zip(shares(&known)) {
            assert!((new - old).abs() < 0.02, "{product}: {new} for {old}");
        }
    }
}

#[test]
fn what_a_control_asks_for_is_described() {
    for (asked, share) in [("40", 0.40), ("80", 0.80)] {
        let found =
            rows(&["ci-agent", "--rounds", "90", "--set", &format!("observation_percent={asked}")]);
        let seen = found[0]["observation_share"].as_f64().unwrap();
        assert!((seen - share).abs() < 0.04, "{asked}: {seen}");
    }
}

#[test]
fn what_is_no_family_and_no_file_is_refused() {
    let output = run(&["code-revue"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("`code-revue` is not a family, a file or a folder"), "{errors}");
    let output = run(&["src/main.rs"]);
    assert!(!output.status.success());
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs").exists());
}

/// Real sessions are read by the same command as the generated ones.
#[test]
fn shared_recordings_are_described() {
    let Some(folder) = crate::shared::folder("sessions/claude-code") else {
        return;
    };
    let found = rows(&[&folder.display().to_string()]);
    let of = |key: &str| found[0][key].as_f64().unwrap();
    assert!(of("sessions") >= 10.0);
    assert!(of("results") > 1_000.0);
    assert!((0.2..0.9).contains(&of("observation_share")));
    assert!(of("calls_per_request") > 5.0);
    assert!((0.0..0.5).contains(&of("parallel_share")));
}
