//! Live models through the program: paid once, kept, replayed, limited; keys nowhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use proctor::metric::kept::kept;
use proctor::model::Purpose;
use proctor::model::cassette;
use proctor::record::journal::Run;
use proctor::units::Tokens;
use tempfile::TempDir;

use crate::live::KEY;
use crate::live::server::{Reply, Server};

/// A small session, a reader that always says the same and a judge that always agrees.
fn scenario(server: &Server, more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let url = server.base_url();
    let text = format!(
        "name = \"live\"\n\
         [models]\n\
         reader = {{ kind = \"openai\", model = \"reader-x\", base_url = \"{url}\", key = \"TEST_KEY\" }}\n\
         judge = {{ kind = \"openai\", model = \"judge-x\", base_url = \"{url}\", key = \"TEST_KEY\" }}\n\
         judging = \"all\"\n\
         {more}\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 6, seed = 3 }}\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 6, seed = 4 }}\n\
         [[strategies]]\npreset = \"observation-masking\"\n\
         set = {{ clear_results.keep_last = 1 }}\n"
    );
    fs::write(folder.path().join("live.toml"), text).unwrap();
    folder
}

/// Answers as the reader or as the judge, with one token more for the judge.
fn both() -> Server {
    Server::answering(reply)
}

fn reply(body: &str) -> Reply {
    // What of the answers whose verdict is known is wrong, and never stands in a right one.
    const WRONG: [&str; 5] = [
        "58231",
        "49177",
        "\\nnot in context\\n",
        "may be written without asking",
        "HBR-11111",
    ];
    if !body.contains("judge-x") {
        Reply::openai("an answer", 100, 5)
    } else if WRONG.iter().any(|part| body.contains(part)) {
        Reply::openai("{\"verdict\": \"incorrect\"}", 11, 1)
    } else {
        Reply::openai("{\"verdict\": \"correct\"}", 11, 1)
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["PROCTOR_COUNTER", "PROCTOR_SEED", "PROCTOR_WINDOW"] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .env("TEST_KEY", KEY)
        .args(["run", "live.toml", "--out", "out", "-j", "4", "--yes"])
        .args(arguments);
    command
}

#[track_caller]
fn run(folder: &Path, arguments: &[&str], exit: i32) -> Output {
    let output = command(folder, arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{said}");
    output
}

fn files(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.extend(fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn what_is_metered_is_what_the_cassette_holds_and_what_the_report_says() {
    let server = both();
    let folder = scenario(&server, "");
    let output = run(folder.path(), &["-o", "r.json"], 0);
    let out = folder.path().join("out");
    let entries = cassette::read(&out.join("cassette.jsonl")).unwrap().entries;
    let mut recorded: BTreeMap<Purpose, Tokens> = BTreeMap::new();
    for entry in &entries {
        *recorded.entry(entry.purpose).or_default() += entry.answer.usage.total();
    }
    let cells = Run::read(&out).unwrap().cells;
    let metered = kept(&cells);
    let paid: BTreeMap<Purpose, Tokens> =
        metered.iter().map(|(of, kept)| (*of, kept.paid)).collect();
    assert_eq!(paid, recorded);
    assert_eq!(
        recorded.keys().copied().collect::<Vec<_>>(),
        [Purpose::Probe, Purpose::Qualification, Purpose::Judge],
        "all three have an account of their own"
    );
    assert_eq!(server.requests().len(), entries.len(), "each is asked once");
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    assert!(report.contains("kept_answers") && report.contains("sentinels"));
    let said = String::from_utf8_lossy(&output.stderr);
    let total: Tokens = recorded.values().copied().sum();
    let asked = format!("asked now: {} requests, {total} tokens", entries.len());
    assert!(said.contains(&asked), "{said}");
    for (what, bytes) in [
        ("files", files(folder.path())),
        ("output", [output.stdout, output.stderr].concat()),
    ] {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(KEY), "the key stands in the {what}");
    }
}

#[test]
fn a_prompt_whose_tokens_the_server_does_not_tell_is_counted_here() {
    let server = Server::answering(|_| Reply::openai("an answer", 0, 5));
    let folder = scenario(&server, "");
    // A judge of which no verdict can be read is unfit.
    run(folder.path(), &[], 102);
    let out = folder.path().join("out");
    let cells = Run::read(&out).unwrap().cells;
    let probes = kept(&cells)[&Purpose::Probe];
    let answers = probes.distinct as u64;
    assert!(
        answers > 0 && probes.paid > Tokens(1000 * answers),
        "{probes:?}"
    );
}

#[test]
fn a_run_from_recorded_answers_asks_nobody_and_says_the_same() {
    let server = both();
    let folder = scenario(&server, "cassette = \"kept.jsonl\"");
    run(folder.path(), &[], 0);
    let kept = fs::read(folder.path().join("kept.jsonl")).unwrap();
    let cells = |folder: &Path| Run::read(&folder.join("out")).unwrap().cells;
    let first = cells(folder.path());
    let asked = server.requests().len();
    drop(server);
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    // Nobody listens any more, and no key is needed.
    let output = command(folder.path(), &["--offline"])
        .env_remove("TEST_KEY")
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(cells(folder.path()), first);
    assert_eq!(fs::read(folder.path().join("kept.jsonl")).unwrap(), kept);
    assert!(asked > 0);
}

#[test]
fn offline_reaches_no_server_and_says_what_is_not_recorded() {
    let server = both();
    let folder = scenario(&server, "cassette = \"kept.jsonl\"");
    run(folder.path(), &[], 0);
    let asked = server.requests().len();
    let text = fs::read_to_string(folder.path().join("live.toml")).unwrap();
    fs::write(
        folder.path().join("live.toml"),
        text.replace("seed = 3", "seed = 5"),
    )
    .unwrap();
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    for arguments in [&["--offline"][..], &["--replay", "strict"]] {
        let output = run(folder.path(), arguments, 105);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("holds no answer of reader-x"), "{said}");
        assert!(said.contains("the nearest that it holds"), "{said}");
    }
    assert_eq!(server.requests().len(), asked);
    assert_eq!(server.connections(), asked, "no connection was made beside");
}

#[test]
fn a_run_that_is_killed_pays_nothing_twice() {
    let server = Server::slow(Duration::from_millis(30), reply);
    let folder = scenario(&server, "");
    let mut child = command(folder.path(), &[])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while server.requests().len() < 12 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let path = folder.path().join("out/cassette.jsonl");
    let before = cassette::read(&path).unwrap().entries;
    let sent = server.requests().len();
    run(folder.path(), &[], 0);
    let after = cassette::read(&path).unwrap().entries;
    let asked_later = server.requests().len() - sent;
    assert_eq!(
        asked_later,
        after.len() - before.len(),
        "what was kept is not asked again"
    );
    // Of what was under way when it was killed at most one answer per worker is lost.
    assert!(
        sent - before.len() <= 4,
        "{sent} sent, {} kept",
        before.len()
    );
}

#[test]
fn a_budget_finishes_the_sessions_it_began_and_begins_no_other() {
    let server = both();
    let folder = scenario(&server, "");
    let text = fs::read_to_string(folder.path().join("live.toml")).unwrap();
    let limited = format!("{text}\n[models.budget]\ntokens = 1\n");
    let path = folder.path().join("live.toml");
    fs::write(&path, &limited).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .env("TEST_KEY", KEY)
        .args(["run", "live.toml", "--out", "one", "-j", "1", "--yes"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("stopped at its budget"), "{said}");
    let cells = Run::read(&folder.path().join("one")).unwrap().cells;
    assert_eq!(
        cells.len(),
        3,
        "full, empty and the strategy of one session"
    );
    fs::write(
        &path,
        limited.replace("tokens = 1", "tokens = 1\nleast_coverage = 0.9"),
    )
    .unwrap();
    fs::remove_dir_all(folder.path().join("one")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .env("TEST_KEY", KEY)
        .args(["run", "live.toml", "--out", "one", "-j", "1", "--yes"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(107));
}

#[test]
fn what_may_cost_more_than_anybody_agreed_to_is_not_begun() {
    let server = both();
    let folder = scenario(&server, "");
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .env("TEST_KEY", KEY)
        .args(["run", "live.toml", "--out", "out"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("no price file knows what that costs"),
        "{said}"
    );
    assert!(said.contains("`--yes` agrees to it"), "{said}");
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_key_that_is_not_there_is_named_before_anything_is_asked() {
    let server = both();
    let folder = scenario(&server, "");
    let output = command(folder.path(), &[])
        .env_remove("TEST_KEY")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("`TEST_KEY` is not set") && said.contains("`live.toml`: line 3"),
        "{said}"
    );
    assert_eq!(server.requests().len(), 0);
}
