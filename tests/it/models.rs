//! Live models through the program: paid once, kept, replayed, limited; keys nowhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use proctor::metric::cached_calls::by_purpose;
use proctor::model::Purpose;
use proctor::model::cassette;
use proctor::probe::judge::JudgeTask;
use proctor::probe::judge::known_answer::known_answers;
use proctor::record::journal::RecordedRun;
use proctor::units::Tokens;
use tempfile::TempDir;

use crate::live::KEY;
use crate::live::server::{Reply, Server};

/// A small session, a reader that always says the same and a judge that always agrees.
fn scenario(server: &Server, more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let url = server.base_url();
    let text = format!(
        "name = \"live\"\ncontrols = false\n\
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

/// Whether a judge is shown one of the wrong answers whose verdict is known.
pub(crate) fn is_wrong(body: &str) -> bool {
    known_answers(JudgeTask::Wide).iter().any(|known| {
        let shown = format!("<answer>\n{}\n</answer>", known.answer);
        let shown = serde_json::to_string(&shown).unwrap();
        !known.is_right && body.contains(shown.trim_matches('"'))
    })
}

pub(crate) fn reply(body: &str) -> Reply {
    if !body.contains("judge-x") {
        Reply::openai("an answer", 100, 5)
    } else if is_wrong(body) {
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
        .args(["run", "live.toml", "--out", "out", "--yes", "--anyway"])
        .args(arguments);
    if !arguments.contains(&"-j") {
        command.args(["-j", "4"]);
    }
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
    let cells = RecordedRun::read(&out).unwrap().cells;
    let metered = by_purpose(&cells);
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
    for (what, bytes) in
        [("files", files(folder.path())), ("output", [output.stdout, output.stderr].concat())]
    {
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
    let cells = RecordedRun::read(&out).unwrap().cells;
    let probes = by_purpose(&cells)[&Purpose::Probe];
    let answers = probes.distinct as u64;
    assert!(answers > 0 && probes.paid > Tokens(1000 * answers), "{probes:?}");
}

#[test]
fn a_run_from_recorded_answers_asks_nobody_and_says_the_same() {
    let server = both();
    let folder = scenario(&server, "cassette = \"kept.jsonl\"");
    run(folder.path(), &[], 0);
    let kept = fs::read(folder.path().join("kept.jsonl")).unwrap();
    let cells = |folder: &Path| RecordedRun::read(&folder.join("out")).unwrap().cells;
    let first = cells(folder.path());
    let asked = server.requests().len();
    drop(server);
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    // Nobody listens any more, and no key is needed.
    let output = command(folder.path(), &["--offline"]).env_remove("TEST_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
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
    fs::write(folder.path().join("live.toml"), text.replace("seed = 3", "seed = 5")).unwrap();
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
    assert_eq!(asked_later, after.len() - before.len(), "what was kept is not asked again");
    // Of what was under way when it was killed is lost what was: no more than may be under way at once.
    assert!(sent - before.len() <= 16, "{sent} sent, {} kept", before.len());
}

/// The finished run of this folder: its answers and its cells.
fn finished(folder: &Path) -> [Vec<u8>; 2] {
    ["out/cassette.jsonl", "out/cells.jsonl"].map(|name| fs::read(folder.join(name)).unwrap())
}

/// Some lines of a file are deleted, or are zeros after a power cut.
fn damage(path: &Path, is_hit: fn(usize) -> bool, is_zeroed: bool) {
    let bytes = fs::read(path).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let left = lines.flat_map(|(at, line)| match (is_hit(at), is_zeroed) {
        (false, _) => line.to_vec(),
        (true, true) => vec![0; line.len()],
        (true, false) => Vec::new(),
    });
    fs::write(path, left.collect::<Vec<u8>>()).unwrap();
}

#[test]
fn a_cell_without_the_answers_that_it_rests_on_is_outstanding_again() {
    let server = both();
    let folder = scenario(&server, "");
    let path = folder.path();
    run(path, &[], 0);
    let whole = finished(path);
    let cassette = path.join("out/cassette.jsonl");
    for is_zeroed in [false, true] {
        damage(&cassette, |at| at > 0 && at % 5 == 0, is_zeroed);
        if !is_zeroed {
            // From recorded answers alone nothing could be computed again, so nothing is given up.
            run(path, &["--replay", "strict"], 0);
            assert_eq!(finished(path)[1], whole[1]);
        }
        let sent = server.requests().len();
        let said = run(path, &[], 0).stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("recorded answers are gone"), "{said}");
        assert!(finished(path) == whole, "zeroed: {is_zeroed}");
        // Answers that qualify questions are kept beside the run too.
        let text = String::from_utf8_lossy(&whole[0]);
        let lost = text.lines().enumerate().skip(1);
        let lost = lost.filter(|(at, line)| at % 5 == 0 && !line.contains("\"qualification\""));
        assert_eq!(server.requests().len() - sent, lost.count(), "no other is asked for");
    }
    // A cell that a power cut took is computed again, from its answers.
    let sent = server.requests().len();
    damage(&path.join("out/cells.jsonl"), |at| at == 1, true);
    run(path, &[], 0);
    assert!(finished(path) == whole);
    assert_eq!(server.requests().len(), sent);
    // Without the cassette all is asked for again.
    fs::remove_file(&cassette).unwrap();
    run(path, &[], 0);
    assert!(finished(path) == whole);
}

#[test]
fn cells_of_a_run_that_keeps_no_answers_stand_and_are_not_paid_again() {
    let server = both();
    let folder = scenario(&server, "");
    let path = folder.path();
    run(path, &["--replay", "off"], 0);
    let cells = path.join("out/cells.jsonl");
    let (before, sent) = (fs::read(&cells).unwrap(), server.requests().len());
    run(path, &[], 0);
    assert!(fs::read(&cells).unwrap() == before);
    assert_eq!(server.requests().len(), sent);
    // All was paid, and nothing is kept.
    let asked = by_purpose(&RecordedRun::read(&path.join("out")).unwrap().cells);
    assert!(asked.values().all(|asked| asked.requests == 0 && asked.lost > 0));
}

/// What the first run of the scenario says, of which nothing is kept; and how often was asked.
#[track_caller]
fn outstanding(server: &Server, folder: &Path, exit: i32) -> (String, usize) {
    let output = command(folder, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{said}");
    let cells = RecordedRun::read(&folder.join("out")).unwrap().cells;
    assert!(
        cells.iter().all(|cell| cell.model_calls.is_empty()),
        "nothing that was not answered is a result"
    );
    (said, server.requests().len())
}

#[test]
fn a_provider_that_cannot_be_asked_leaves_cells_outstanding_and_makes_none_up() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let refused = Arc::new(AtomicUsize::new(401));
    let status = refused.clone();
    let server = Server::answering(move |body| {
        if !is_up.load(Ordering::Relaxed) {
            let status = u16::try_from(status.load(Ordering::Relaxed)).unwrap();
            return Reply::status(status, "{}");
        }
        if body.contains("judge-x") {
            Reply::openai("{\"verdict\": \"correct\"}", 11, 1)
        } else {
            Reply::openai("an answer", 100, 5)
        }
    });
    let folder = scenario(&server, "[models.pace]\nretries = 0\n");
    // A wrong key: whoever is asked next says the same.
    let (said, asked) = outstanding(&server, folder.path(), 5);
    assert!(said.contains("reader-x") && said.contains("HTTP 401"), "{said}");
    assert!(said.contains("outstanding"), "{said}");
    let workers = 4;
    assert!(asked <= workers, "{asked} requests");
    let before = asked;
    // A provider that is down: each cell asks once, and not all are begun.
    refused.store(500, Ordering::Relaxed);
    let (said, asked) = outstanding(&server, folder.path(), 5);
    assert!(said.contains("server error"), "{said}");
    assert!(asked - before <= 2 + workers, "{asked} requests");
    up.store(true, Ordering::Relaxed);
    // The judge that always agrees is unfit, and that is all that is said against this run.
    run(folder.path(), &[], 102);
    let cells = RecordedRun::read(&folder.path().join("out")).unwrap().cells;
    assert_eq!(cells.len(), 6, "two sessions: full, empty and a strategy");
    let judged = server.requests();
    let judged = judged.iter().filter(|asked| asked.body.contains("judge-x"));
    let known = [JudgeTask::Wide, JudgeTask::Narrow].map(|task| known_answers(task).len());
    assert_eq!(judged.count(), known.iter().sum::<usize>(), "it is asked no more");
}

/// A server that reads `window` tokens of a prompt at most, and answers all the same.
fn cutting(window: &Arc<AtomicUsize>, is_streaming: bool) -> Server {
    let window = window.clone();
    Server::answering(move |body| {
        // The body has a little more than the texts.
        let read = (body.len() / 4).min(window.load(Ordering::SeqCst));
        if is_streaming {
            return Reply::openai("an answer", read as u64, 5);
        }
        let usage = format!(r#"{{"prompt_tokens":{read},"completion_tokens":5}}"#);
        let message = r#"{"message":{"content":"an answer"},"finish_reason":"stop"}"#;
        let answer = format!(r#"{{"model":"m","choices":[{message}],"usage":{usage}}}"#);
        Reply::status(200, &answer)
    })
}

/// A run whose `role` is a server that cuts prompts stops, and keeps nothing that may rest on a cut one:
/// once the window is large enough, the same command makes the run that never met such a server.
#[track_caller]
fn check_cut(role: &str, preset: &str, most: usize, is_streaming: bool) {
    let window = Arc::new(AtomicUsize::new(most));
    let server = cutting(&window, is_streaming);
    let url = server.base_url();
    let session = |seed: u32, tokens: u32| {
        let family = "code-review";
        format!(
            "[[sessions]]\nsynthetic = {{ family = \"{family}\", seed = {seed}, tokens = {tokens} }}\n"
        )
    };
    let text = format!(
        "name = \"live\"\ncontrols = false\n[window]\nmode = \"fit\"\nfraction = 0.8\n\
         [probes]\npoints = [100]\n\
         [models]\n{role} = {{ kind = \"openai\", model = \"model-x\", base_url = \"{url}\" }}\n\
         {}{}[[strategies]]\npreset = \"{preset}\"\n",
        // Of the first session's prompts a little is cut, which proves nothing yet.
        session(3, 9_500),
        session(4, 20_000),
    );
    let make = |exit: i32| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("live.toml"), &text).unwrap();
        let output = run(folder.path(), &["-j", "1"], exit);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (folder, said)
    };
    let cells =
        |folder: &TempDir| fs::read_to_string(folder.path().join("out/cells.jsonl")).unwrap();
    let (folder, said) = make(5);
    for part in ["model-x: the server at http://127.0.0.1", &format!("read {most} "), "`num_ctx`"] {
        assert!(said.contains(part), "{said}");
    }
    // The first session was finished before the second one showed it.
    assert!(said.contains("finished cells were taken back"), "{said}");
    let doubtful = Tokens(most as u64 / 2);
    let entries = cassette::read(&folder.path().join("out/cassette.jsonl")).unwrap().entries;
    let largest = entries.iter().map(|entry| entry.answer.usage.prompt()).max();
    assert!(largest <= Some(doubtful), "{largest:?}");
    window.store(1_000_000, Ordering::SeqCst);
    run(folder.path(), &["-j", "1"], 0);
    let (whole, _) = make(0);
    assert_eq!(cells(&folder), cells(&whole));
}

#[test]
fn a_server_that_cuts_prompts_ends_the_run_and_leaves_no_answer_behind() {
    check_cut("reader", "observation-masking", 8_000, true);
    check_cut("reader", "observation-masking", 8_000, false);
    check_cut("summariser", "codex", 6_000, true);
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
        .args(["run", "live.toml", "--out", "one", "-j", "1", "--yes", "--anyway"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("stopped at its budget"), "{said}");
    let cells = RecordedRun::read(&folder.path().join("one")).unwrap().cells;
    assert_eq!(cells.len(), 3, "full, empty and the strategy of one session");
    fs::write(&path, limited.replace("tokens = 1", "tokens = 1\nleast_coverage = 0.9")).unwrap();
    fs::remove_dir_all(folder.path().join("one")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .env("TEST_KEY", KEY)
        .args(["run", "live.toml", "--out", "one", "-j", "1", "--yes", "--anyway"])
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
    assert!(said.contains("no price file knows what that costs"), "{said}");
    assert!(said.contains("`--yes` agrees to it"), "{said}");
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_key_that_is_not_there_is_named_before_anything_is_asked() {
    let server = both();
    let folder = scenario(&server, "");
    let output = command(folder.path(), &[]).env_remove("TEST_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("`TEST_KEY` is not set") && said.contains("`live.toml`: line 4"),
        "{said}"
    );
    assert_eq!(server.requests().len(), 0);
}

/// Tokens of what cassette entries cost, by purpose.
fn recorded(path: &Path) -> BTreeMap<Purpose, Tokens> {
    let mut sums = BTreeMap::new();
    for entry in cassette::read(path).unwrap().entries {
        *sums.entry(entry.purpose).or_default() += entry.answer.usage.total();
    }
    sums
}

#[test]
fn what_fails_or_cannot_be_read_is_on_the_bill_and_what_no_server_tells_is_counted() {
    let has_failed = AtomicBool::new(false);
    // No usage is told, the first request fails once, and of some verdicts nothing can be read.
    let server = Server::answering(move |body| {
        if !body.contains("judge-x") && !has_failed.swap(true, Ordering::Relaxed) {
            return Reply::status(500, "{}");
        }
        match reply(body) {
            _ if body.contains("judge-x") && body.len() % 3 == 0 => {
                Reply::openai("I would rather not say.", 0, 0)
            }
            _ if body.contains("judge-x") => Reply::openai("{\"verdict\": \"correct\"}", 0, 0),
            _ => Reply::openai("an answer", 0, 0),
        }
    });
    let folder = scenario(&server, "");
    // A judge that agrees with everything is unfit.
    let output = run(folder.path(), &[], 102);
    let out = folder.path().join("out");
    let metered = by_purpose(&RecordedRun::read(&out).unwrap().cells);
    let paid: BTreeMap<Purpose, Tokens> =
        metered.iter().map(|(of, kept)| (*of, kept.paid)).collect();
    assert_eq!(paid, recorded(&out.join("cassette.jsonl")));
    assert!(paid.values().all(|tokens| *tokens > Tokens::ZERO), "{paid:?}");
    let unreadable = metered[&Purpose::Judge].lost;
    assert!(unreadable > 0, "{metered:?}");
    let lost: usize = metered.values().map(|kept| kept.lost).sum();
    assert_eq!(lost, unreadable + 1, "and the attempt that failed: {metered:?}");
    let distinct: usize = metered.values().map(|kept| kept.distinct).sum();
    assert_eq!(server.requests().len(), distinct + lost);
    let total: Tokens = metered.values().map(|kept| kept.paid + kept.lost_tokens).sum();
    let said = String::from_utf8_lossy(&output.stderr);
    let asked = format!("asked now: {} requests, {total} tokens", distinct + lost);
    assert!(said.contains(&asked), "{said}");

    let hold = |arguments: &[&str], exit: i32| {
        let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
            .current_dir(folder.path())
            .args(["cache", "verify"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(exit), "{said}");
        said
    };
    let said = hold(&["--run", "out"], 0);
    let probes = &metered[&Purpose::Probe];
    let line = format!("probe: {} answers, {} tokens in both", probes.distinct, probes.paid);
    assert!(said.contains(&line), "{said}");
    // An answer that is gone, and one that cost something else, are told.
    let path = out.join("cassette.jsonl");
    let mut entries = cassette::read(&path).unwrap().entries;
    let at = entries.iter().position(|entry| entry.purpose == Purpose::Judge);
    entries.remove(at.unwrap());
    cassette::write_sorted(&folder.path().join("less.jsonl"), &entries).unwrap();
    let said = hold(&["less.jsonl", "--run", "out"], 3);
    assert!(said.contains("judge: the report has"), "{said}");
    assert!(said.contains("probe: ") && !said.contains("probe: the report"), "{said}");
}

#[test]
fn a_limit_of_tokens_holds_where_no_server_tells_them() {
    let server = Server::answering(|_| Reply::openai("an answer", 0, 0));
    let folder = scenario(&server, "");
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .env("TEST_KEY", KEY)
        .args(["run", "live.toml", "--out", "out", "-j", "1", "--yes", "--anyway"])
        .args(["--set", "models.budget.tokens=1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("stopped at its budget"), "{said}");
    let cells = RecordedRun::read(&folder.path().join("out")).unwrap().cells;
    assert_eq!(cells.len(), 3, "one session");
}

#[test]
fn an_attempt_of_the_summariser_that_failed_is_on_the_bill_of_the_strategy() {
    let has_failed = AtomicBool::new(false);
    let server = Server::answering(move |body| {
        if body.contains("writer-x") && !has_failed.swap(true, Ordering::Relaxed) {
            return Reply::status(503, "{}");
        }
        Reply::openai("<summary>The user wants the review to go on.</summary>", 900, 9)
    });
    let folder = tempfile::tempdir().unwrap();
    let url = server.base_url();
    let text = format!(
        "name = \"live\"\ncontrols = false\n[models]\nreader = \"none\"\n\
         summariser = {{ kind = \"openai\", model = \"writer-x\", base_url = \"{url}\", key = \"TEST_KEY\" }}\n\
         [window]\nmode = \"fit\"\nfraction = 0.4\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 8, seed = 3 }}\n\
         [[strategies]]\npreset = \"claude-code\"\nset = {{ summarize.when = {{ tokens_over = 0 }} }}\nname = \"claude-code\"\n"
    );
    fs::write(folder.path().join("live.toml"), text).unwrap();
    run(folder.path(), &[], 0);
    let cells = RecordedRun::read(&folder.path().join("out")).unwrap().cells;
    let strategy = cells.iter().find(|cell| !cell.model_calls.is_empty()).unwrap();
    let asked = &strategy.model_calls;
    assert_eq!(asked[0].failure.as_deref(), Some("server error (HTTP 503)"));
    assert!(asked[0].usage.prompt() > Tokens(1_000) && asked[0].key.is_none());
    assert_eq!(asked[1].failure, None);
    assert_eq!(asked[0].call, asked[1].call, "the same request, made again");
    assert_eq!(strategy.lost_calls.len(), 1);
    assert_eq!(strategy.lost_calls[0].usage, asked[0].usage);
    assert_eq!(asked.iter().filter(|call| call.failure.is_some()).count(), 1);
    assert_eq!(server.requests().len(), asked.len());
}

#[test]
fn requests_refused_for_the_same_reason_end_the_run_and_say_it() {
    let refusal =
        r#"{"error":{"type":"invalid_request_error","message":"`stop` is not supported"}}"#;
    let server = Server::answering(move |_| Reply::status(400, refusal));
    let folder = scenario(&server, "");
    let output = run(folder.path(), &[], 5);
    let said = String::from_utf8(output.stderr).unwrap();
    let reason = "HTTP 400: invalid_request_error: `stop` is not supported";
    for words in [reason, "given up after 1", "requests in a row"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // Of hundreds of questions those are asked that were under way.
    let asked = server.requests().len();
    assert!((3..40).contains(&asked), "{asked}");
    let cells = RecordedRun::read(&folder.path().join("out")).unwrap().cells;
    assert!(cells.is_empty(), "{} cells", cells.len());
}

#[test]
fn a_question_that_is_refused_alone_is_refused_by_the_provider_in_report_and_record() {
    let refused = AtomicBool::new(false);
    let server = Server::answering(move |body| {
        if body.contains("judge-x") || refused.swap(true, Ordering::Relaxed) {
            return reply(body);
        }
        Reply::status(422, r#"{"detail":"this one not"}"#)
    });
    let folder = scenario(&server, "");
    let output = run(folder.path(), &[], 104);
    let said = String::from_utf8(output.stderr).unwrap();
    let words = "1 refused by the provider (HTTP 422: this one not)";
    assert!(said.contains(words), "{said}");
    let lines = fs::read_to_string(folder.path().join("out/cells.jsonl")).unwrap();
    assert!(lines.contains(r#""refusal":"HTTP 422: this one not""#));
}

#[test]
fn a_server_that_is_not_there_is_named_and_soon_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = both();
    let folder = scenario(&server, "");
    let text = fs::read_to_string(folder.path().join("live.toml")).unwrap();
    let text = text.replace(&server.base_url(), &format!("http://{address}/v1"));
    fs::write(folder.path().join("live.toml"), text).unwrap();
    let output = run(folder.path(), &[], 5);
    let said = String::from_utf8(output.stderr).unwrap();
    let why = format!("no connection to the provider (http://{address}: ");
    for words in [&*why, "attempt 1, again in", "given up after 3"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// A server whose answers never begin once it has given `answered`.
fn going_silent(answered: usize) -> Server {
    let asked = AtomicUsize::new(0);
    Server::answering(move |body| {
        let is_silent = asked.fetch_add(1, Ordering::Relaxed) >= answered;
        if is_silent { reply(body).stalled_after(0) } else { reply(body) }
    })
}

#[test]
fn an_interrupted_run_does_not_wait_for_a_silent_server() {
    let server = going_silent(12);
    let folder = scenario(&server, "");
    let mut child = command(folder.path(), &[])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while server.requests().len() <= 12 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    crate::support::interrupt(&child);
    // Without the signal this would be five minutes, for each of nine attempts.
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    for words in ["stopped before an answer began", "the same command goes on"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let kept = cassette::read(&folder.path().join("out/cassette.jsonl"));
    assert!(!kept.unwrap().entries.is_empty());
}

#[test]
fn an_interrupt_gives_up_a_silent_cell_and_finishes_the_one_beside_it() {
    let asked = AtomicUsize::new(0);
    let server = Server::answering(move |body| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => reply(body).stalled_after(0),
        // It begins within half a second, and takes three.
        1 => reply(body).dribbling(100, Duration::from_millis(400)),
        _ => reply(body),
    });
    // Each cell asks one question.
    let folder = scenario(
        &server,
        "qualify = false\n[probes]\npoints = [100]\nitems = 1\nkinds = [\"recall\"]",
    );
    let path = folder.path().join("live.toml");
    let text = fs::read_to_string(&path).unwrap();
    let judge = text.lines().filter(|line| !line.starts_with("judg"));
    fs::write(&path, judge.collect::<Vec<_>>().join("\n")).unwrap();
    let mut child = command(folder.path(), &[])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while server.requests().len() < 6 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_secs(1));
    crate::support::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("5 of 6 cells are kept"), "{said}");
    assert_eq!(server.requests().len(), 6, "{said}");
    run(folder.path(), &[], 0);
    let mut bodies: Vec<String> = server.requests().into_iter().map(|it| it.body).collect();
    assert_eq!(bodies.len(), 7);
    // The silent request alone is sent again.
    let silent = bodies.remove(0);
    bodies.sort();
    bodies.dedup();
    assert_eq!((bodies.len(), bodies.contains(&silent)), (6, true));
}

#[test]
fn a_request_takes_no_longer_than_the_scenario_says() {
    for limit in ["first_byte_seconds = 1", "timeout_seconds = 1"] {
        let server = going_silent(0);
        let pace = format!("[models.pace]\nretries = 0\n{limit}");
        let folder = scenario(&server, &pace);
        let said = run(folder.path(), &[], 5).stderr;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("reader-x: timed out; given up after 1"), "{said}");
    }
}

#[test]
fn a_usage_that_cannot_be_is_counted_here_and_told() {
    let server = Server::answering(|body| {
        if body.contains("judge-x") {
            return reply(body);
        }
        Reply::openai("an answer", u64::MAX, u64::MAX)
    });
    let folder = scenario(&server, "");
    let said = String::from_utf8(run(folder.path(), &[], 0).stderr).unwrap();
    assert!(said.contains("reported an impossible usage"), "{said}");
    let kept = recorded(&folder.path().join("out/cassette.jsonl"));
    assert!(kept[&Purpose::Probe] < Tokens(1_000_000), "{kept:?}");
}
