//! A provider that refuses for a while, and whole runs through it: paid once, and the same bytes in the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proctor::metric::cached_calls::by_purpose;
use proctor::model::cassette;
use proctor::record::journal::RecordedRun;
use proctor::units::Tokens;
use tempfile::TempDir;

use crate::live::KEY;
use crate::live::server::{Reply, Server};
use crate::models::is_wrong;

/// A reader, a judge and a summariser behind one address, which is no part of the scenario.
const SCENARIO: &str = "name = \"storm\"\ncontrols = false\n\
    [models]\n\
    summariser = { kind = \"openai\", model = \"writer-x\" }\n\
    reader = { kind = \"openai\", model = \"reader-x\" }\n\
    judge = { kind = \"openai\", model = \"judge-x\" }\n\
    judging = \"all\"\n\
    [window]\nmode = \"fit\"\nfraction = 0.4\n\
    [[sessions]]\nsynthetic = { family = \"code-review\", rounds = 6, seed = 3 }\n\
    [[sessions]]\nsynthetic = { family = \"code-review\", rounds = 6, seed = 4 }\n\
    [[strategies]]\npreset = \"claude-code\"\nset = { summarize.when = { tokens_over = 0 } }\nname = \"claude-code\"\n";

/// What each of the three says: nothing but the request decides, and what it costs.
fn says(body: &str) -> Reply {
    let prompt = (body.len() / 4) as u64;
    if body.contains("judge-x") {
        let word = if is_wrong(body) { "incorrect" } else { "correct" };
        Reply::openai(&format!("{{\"verdict\": \"{word}\"}}"), prompt, 6)
    } else if body.contains("writer-x") {
        Reply::openai("<summary>The user wants the review to go on.</summary>", prompt, 11)
    } else {
        Reply::openai("an answer", prompt, 2)
    }
}

/// A refusal, with this header beside the server's own clock.
fn refusal(header: Option<(&str, &str)>) -> Reply {
    let limited =
        Reply::status(429, r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#)
            .with_header("Date", "Wed, 21 Oct 2015 07:28:00 GMT");
    match header {
        Some((name, value)) => limited.with_header(name, value),
        None => limited,
    }
}

/// A server that plays `refused` for as many requests as it says, from the one of this number on.
fn storming(from: usize, refused: usize, refusals: Vec<Reply>) -> Server {
    let asked = AtomicUsize::new(0);
    Server::answering(move |body| {
        let at = asked.fetch_add(1, Ordering::Relaxed);
        match at.checked_sub(from) {
            Some(at) if at < refused => refusals[at % refusals.len()].clone(),
            _ => says(body),
        }
    })
}

fn folder(scenario: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("storm.toml"), scenario).unwrap();
    folder
}

/// What the run said on its way; it must end with this exit code.
#[track_caller]
fn run(server: &Server, folder: &Path, arguments: &[&str], exit: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["PROCTOR_COUNTER", "PROCTOR_SEED", "PROCTOR_WINDOW"] {
        command.env_remove(name);
    }
    let output = command
        .current_dir(folder)
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", server.base_url())
        .args(["run", "storm.toml", "--out", "out", "--yes", "--anyway"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{said}");
    said
}

/// What tells how long something took.
const MEASURED: [&str; 2] = ["timings.jsonl", "call-times.jsonl"];

/// All files of the run by name, but the measured times.
fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let out = folder.join("out");
    let mut found = BTreeMap::new();
    let mut folders = vec![out.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&out).unwrap().display().to_string();
            if !MEASURED.contains(&&*name) {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Requests that brought an answer.
fn answered(server: &Server) -> usize {
    let requests = server.requests();
    requests.iter().filter(|asked| asked.was_answered).count()
}

/// The line that says what was paid in this process.
fn bill(said: &str) -> &str {
    let line = said.lines().find(|line| line.contains("asked now: "));
    line.unwrap_or_else(|| panic!("no bill in: {said}")).trim()
}

/// The run in fair weather.
struct Fair {
    files: BTreeMap<String, Vec<u8>>,
    answered: usize,
    bill: String,
}

fn fair() -> &'static Fair {
    static FAIR: OnceLock<Fair> = OnceLock::new();
    FAIR.get_or_init(|| {
        let server = Server::answering(says);
        let folder = folder(SCENARIO);
        let said = run(&server, folder.path(), &["-j", "4"], 0);
        let cells = RecordedRun::read(&folder.path().join("out")).unwrap().cells;
        assert_eq!(cells.len(), 6, "two sessions: full, empty and a strategy");
        let wrote = cells.iter().any(|cell| !cell.model_calls.is_empty());
        assert!(wrote, "summaries are asked for");
        Fair {
            files: results(folder.path()),
            answered: answered(&server),
            bill: bill(&said).to_owned(),
        }
    })
}

/// Holds a run that has ended equal to the one in fair weather, file by file.
#[track_caller]
fn check_same(folder: &Path) {
    let files = results(folder);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&files), names(&fair().files));
    for (name, bytes) in &files {
        assert!(*bytes == fair().files[name], "`{name}` differs");
    }
}

#[test]
fn refusals_that_pass_change_no_byte_of_a_run_and_nothing_of_its_bill() {
    let refusals = vec![
        refusal(None),
        refusal(Some(("retry-after-ms", "5"))),
        refusal(Some(("Retry-After", "0"))),
        refusal(Some(("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"))),
    ];
    // From the first request on, and in the middle, where summaries are written.
    for from in [0, 20] {
        let server = storming(from, 12, refusals.clone());
        let folder = folder(SCENARIO);
        let said = run(&server, folder.path(), &["-j", "4"], 0);
        assert_eq!(answered(&server), fair().answered, "none is paid twice");
        assert_eq!(server.requests().len(), fair().answered + 12);
        assert_eq!(bill(&said), fair().bill, "a refusal costs nothing");
        check_same(folder.path());
        let cells = RecordedRun::read(&folder.path().join("out")).unwrap().cells;
        assert!(cells.iter().all(|cell| cell.lost_calls.is_empty()));
    }
}

#[test]
fn a_time_that_is_named_is_kept_by_all_workers_in_every_spelling() {
    let named = [
        (("retry-after-ms", "400"), Duration::from_millis(400)),
        (("Retry-After", "1"), Duration::from_secs(1)),
        (("Retry-After", "Wed, 21 Oct 2015 07:28:01 GMT"), Duration::from_secs(1)),
    ];
    let refusals = named.map(|(header, _)| refusal(Some(header))).to_vec();
    let server = storming(4, 3, refusals);
    let one_at_once = SCENARIO.replace("[window]", "[models.pace]\nat_once = 1\n[window]");
    let folder = folder(&one_at_once);
    run(&server, folder.path(), &["-j", "4"], 0);
    assert_eq!(server.most_at_once(), 1, "four workers, and one request at once");
    let requests = server.requests();
    let refused = requests.windows(2).filter(|pair| !pair[0].was_answered);
    let pauses: Vec<Duration> = refused.map(|pair| pair[1].came - pair[0].came).collect();
    assert_eq!(pauses.len(), 3);
    for (pause, (header, least)) in pauses.into_iter().zip(named) {
        // The server's clock runs in another thread: a little before its time is in time.
        let slack = Duration::from_millis(20);
        assert!(pause + slack >= least, "{header:?}: {pause:?}");
    }
}

#[test]
fn a_run_that_refusals_stop_keeps_what_is_whole_and_goes_on_to_the_same_bytes() {
    for later in [
        ("Retry-After", "7200"),
        ("retry-after-ms", "7200000"),
        ("Retry-After", "Thu, 22 Oct 2015 07:28:00 GMT"),
    ] {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let asked = AtomicUsize::new(0);
        // More than a session, and in the middle of another.
        let before = fair().answered * 2 / 3;
        let server = Server::answering(move |body| {
            let at = asked.fetch_add(1, Ordering::Relaxed);
            if at < before || over.load(Ordering::Relaxed) {
                says(body)
            } else {
                refusal(Some(later))
            }
        });
        let folder = folder(SCENARIO);
        let said = run(&server, folder.path(), &["-j", "2"], 5);
        assert!(said.contains("outstanding"), "{said}");
        assert!(said.contains("rate limit"), "{said}");
        assert_eq!(answered(&server), before);
        let out = folder.path().join("out");
        let entries = cassette::read(&out.join("cassette.jsonl")).unwrap().entries;
        assert_eq!(entries.len(), before, "what was answered is kept");
        let paid: Tokens = entries.iter().map(|entry| entry.answer.usage.total()).sum();
        let expected = format!("asked now: {before} requests, {paid} tokens");
        assert!(bill(&said).contains(&expected), "{said}");
        // Cells that are there are whole: each is what it is in fair weather.
        let cells = RecordedRun::read(&out).unwrap().cells;
        assert!(!cells.is_empty() && cells.len() < 6, "{} cells", cells.len());
        let whole = String::from_utf8(fair().files["cells.jsonl"].clone()).unwrap();
        for line in fs::read_to_string(out.join("cells.jsonl")).unwrap().lines() {
            assert!(whole.lines().any(|other| other == line), "{line}");
        }
        let metered: Tokens = by_purpose(&cells).values().map(|kept| kept.paid).sum();
        assert!(metered <= paid, "no cell claims more than was paid");

        is_over.store(true, Ordering::Relaxed);
        run(&server, folder.path(), &["-j", "2"], 0);
        assert_eq!(answered(&server), fair().answered, "none is paid twice");
        check_same(folder.path());
    }
}

#[test]
fn refusals_use_up_no_budget_and_a_run_that_its_budget_stopped_goes_on_to_the_same_bytes() {
    // One worker asks: all refusals are of its first request, which is tried nine times.
    let storm = || storming(0, 6, vec![refusal(Some(("retry-after-ms", "1")))]);
    let server = storm();
    let stopped = folder(SCENARIO);
    let said = run(&server, stopped.path(), &["-j", "1", "--set", "models.budget.tokens=1"], 5);
    assert!(said.contains("stopped at its budget"), "{said}");
    let cells = RecordedRun::read(&stopped.path().join("out")).unwrap().cells;
    assert_eq!(cells.len(), 3, "one session, and the whole of it");
    let spent = bill(&said).split("requests, ").nth(1).unwrap();
    let spent: u64 = spent.split_whitespace().next().unwrap().parse().unwrap();
    run(&server, stopped.path(), &["-j", "1"], 0);
    assert_eq!(answered(&server), fair().answered, "none is paid twice");
    check_same(stopped.path());

    // One token more than the first session costs: were a refusal billed, the second would not begin.
    let limit = format!("models.budget.tokens={}", spent + 1);
    let whole = folder(SCENARIO);
    run(&storm(), whole.path(), &["-j", "1", "--set", &limit], 0);
    check_same(whole.path());
}
