//! Live models against a real server on loopback: `scripts/real-server` builds it and runs these.
//!
//! The model behind it has random weights and says noise. Nothing here is about what it says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use proctor::model::api::Dialect;
use proctor::model::cassette;
use proctor::model::http::pace::{PaceSetting, Pacer};
use proctor::model::http::{Connection, Engine, LiveModel};
use proctor::model::{CallFailure, Model, ModelKind, Purpose, Request, Response, Stop};
use proctor::record::journal::RecordedRun;
use proctor::session::wire::Provider;
use proctor::units::Tokens;

use crate::live::question;

const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// The server with a window of 512 tokens, and the one with 32,768.
const SMALL: &str = "PROCTOR_REAL_SERVER_SMALL";
const LARGE: &str = "PROCTOR_REAL_SERVER_LARGE";

fn root(server: &str) -> String {
    std::env::var(server).unwrap_or_else(|_| panic!("{server}: scripts/real-server sets it"))
}

fn base_url(server: &str, provider: Provider) -> String {
    match provider {
        Provider::OpenAi => format!("{}/v1", root(server)),
        Provider::Anthropic => root(server),
    }
}

fn live(server: &str, provider: Provider) -> LiveModel {
    let connection = Connection::to(base_url(server, provider));
    let dialect = Dialect::new(provider, "noise");
    let pace = Arc::new(Pacer::new(PaceSetting::default()));
    LiveModel::new(dialect, connection, Engine::start().unwrap(), pace).unwrap()
}

/// Asks for `max_output` tokens about a text of `bytes` bytes that begins with `word`.
fn ask(
    model: &LiveModel,
    word: &str,
    bytes: usize,
    max_output: u64,
) -> Result<Response, CallFailure> {
    let mut text = word.to_owned();
    while text.len() < bytes {
        text.push_str(" and once more");
    }
    let request = Request { max_output: Tokens(max_output), ..question(&text) };
    model.respond(&request)
}

#[test]
#[ignore = "needs the server that scripts/real-server builds"]
fn real_server_an_answer_comes_with_its_usage() {
    for provider in BOTH {
        let model = live(LARGE, provider);
        let answer = ask(&model, "usage", 400, 24).unwrap();
        let usage = answer.usage;
        // A byte is a token, and the template adds the names of the roles.
        assert!((400..600).contains(&usage.prompt().0), "{provider:?}: {usage:?}");
        assert!((1..=24).contains(&usage.output.0), "{provider:?}: {usage:?}");
        let stop = if usage.output == Tokens(24) { Stop::Length } else { Stop::End };
        assert_eq!(answer.stop, stop, "{provider:?}");
        let times = model.take_times();
        assert_eq!((times.len(), times[0].attempts), (1, 1));
        assert!(times[0].is_answered);
    }
}

#[test]
#[ignore = "needs the server that scripts/real-server builds"]
fn real_server_a_prompt_that_was_sent_before_is_read_from_the_cache_and_no_token_counts_twice() {
    for (provider, word) in BOTH.into_iter().zip(["whale", "heron"]) {
        let model = live(LARGE, provider);
        let first = ask(&model, word, 3000, 4).unwrap().usage;
        let again = ask(&model, word, 3000, 4).unwrap().usage;
        assert_eq!(first.prompt(), again.prompt(), "{provider:?}");
        assert!(first.cache_read.0 < 100, "{provider:?}: {first:?}");
        assert!(again.cache_read.0 > 2900, "{provider:?}: {again:?}");
        // The same beginning and another end.
        let longer = ask(&model, word, 4000, 4).unwrap().usage;
        let read = longer.cache_read.0;
        assert!((2900..3300).contains(&read), "{provider:?}: {longer:?}");
    }
}

#[test]
#[ignore = "needs the server that scripts/real-server builds"]
fn real_server_a_prompt_that_is_too_long_is_recognised_and_not_sent_again() {
    for provider in BOTH {
        let model = live(SMALL, provider);
        assert_eq!(ask(&model, "long", 2000, 4), Err(CallFailure::Overflow));
        assert_eq!(model.take_times()[0].attempts, 1, "{provider:?}");
        ask(&model, "short", 100, 4).unwrap();
    }
}

#[test]
#[ignore = "needs the server that scripts/real-server builds"]
fn real_server_many_requests_at_once_are_all_answered() {
    let model = &live(LARGE, Provider::OpenAi);
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..32)
            .map(|at| scope.spawn(move || ask(model, &format!("{at}"), 300, 8).unwrap()))
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(answers.len(), 32);
    assert_eq!(model.take_times().len(), 32);
}

fn proctor(folder: &Path, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(["run", "real.toml", "--yes", "--anyway"])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs the server that scripts/real-server builds"]
fn real_server_a_run_meters_what_was_billed_and_its_recorded_answers_repeat_it() {
    for (provider, kind) in BOTH.into_iter().zip(["openai", "anthropic"]) {
        let folder = tempfile::tempdir().unwrap();
        let url = base_url(LARGE, provider);
        let text = format!(
            "name = \"real\"\n\
             [models]\n\
             reader = {{ kind = \"{kind}\", model = \"noise\", base_url = \"{url}\" }}\n\
             cassette = \"kept.jsonl\"\n\
             [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 2, seed = 3 }}\n\
             [[strategies]]\npreset = \"observation-masking\"\n\
             set = {{ clear_results.keep_last = 1 }}\n"
        );
        fs::write(folder.path().join("real.toml"), text).unwrap();
        let shown = proctor(folder.path(), &["--out", "one", "-o", "one.md"]);
        let cells = RecordedRun::read(&folder.path().join("one")).unwrap().cells;
        let mut recorded: BTreeMap<Purpose, Tokens> = BTreeMap::new();
        let entries = cassette::read(&folder.path().join("kept.jsonl")).unwrap().entries;
        for entry in &entries {
            *recorded.entry(entry.purpose).or_default() += entry.answer.usage.total();
        }
        let metered: BTreeMap<Purpose, Tokens> = proctor::metric::cached_calls::by_purpose(&cells)
            .iter()
            .map(|(of, kept)| (*of, kept.paid))
            .collect();
        assert_eq!(metered, recorded, "{kind}");
        assert!(entries.len() > 5, "{kind}: {} answers", entries.len());
        assert!(recorded[&Purpose::Probe] > Tokens(10_000), "{recorded:?}");
        println!("{kind}: {} answers, {recorded:?}", entries.len());
        proctor(folder.path(), &["--out", "two", "-o", "two.md", "--offline"]);
        let again = RecordedRun::read(&folder.path().join("two")).unwrap().cells;
        assert_eq!(again.len(), cells.len());
        assert!(shown.contains("noise"), "the report names its reader");
        let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("one.md"), read("two.md"), "{kind}");
    }
    assert_eq!(live(LARGE, Provider::OpenAi).kind(), ModelKind::Live);
}
