//! Live models against a scripted server on loopback: what real ones do wrong, byte by byte.

use std::sync::Arc;
use std::time::Duration;

use proctor::model::api::{Dialect, longest_bytes};
use proctor::model::http::pace::{PaceSetting, Pacer};
use proctor::model::http::{Connection, Engine, LiveModel, Notice, Waits};
use proctor::model::{CallFailure, Model, Purpose, Request, Response, Stop, Task};
use proctor::session::redact::Secret;
use proctor::session::wire::Provider;
use proctor::session::{Message, Role};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Tokens, Usage};

use server::{Reply, Server};

pub(crate) mod server;

/// A key as providers give them out; it must turn up nowhere.
pub(crate) const KEY: &str = "sk-live-0123456789abcdefghijklmnop";

pub(crate) fn question(text: &str) -> Request {
    Request {
        purpose: Purpose::Probe,
        task: Task::Answer,
        system: Some("You are a test.".into()),
        tools: None,
        messages: vec![Arc::new(Message::text(Role::User, text))],
        max_output: Tokens(64),
        model: None,
    }
}

/// Retries at once: tests do not wait.
fn quick() -> PaceSetting {
    PaceSetting {
        at_once: 64,
        retries: 4,
        pause: Duration::from_millis(1),
        ..PaceSetting::default()
    }
}

fn live(server: &Server, provider: Provider, pace: PaceSetting) -> LiveModel {
    let mut connection = Connection::to(server.base_url());
    connection.key = Some(Secret::new(KEY));
    connection.first_byte = Duration::from_millis(500);
    connection.between = Duration::from_millis(500);
    let dialect = Dialect::new(provider, "test-model");
    LiveModel::new(dialect, connection, Engine::start().unwrap(), Arc::new(Pacer::new(pace)))
        .unwrap()
}

/// What an OpenAI-compatible server that plays `replies` in turn makes of one request, and how
/// often it was asked.
#[track_caller]
fn check(replies: Vec<Reply>, expected: &Result<&str, CallFailure>, asked: usize) {
    let server = Server::playing(replies);
    let model = live(&server, Provider::OpenAi, quick());
    let answer = model.respond(&question("Which port?"));
    let text = answer.as_ref().map(|response| &*response.text);
    assert_eq!(text.map_err(Clone::clone), *expected);
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn passing_failures_are_sent_again_and_lasting_ones_are_not() {
    let good = || Reply::openai("48213", 100, 5);
    check(vec![good()], &Ok("48213"), 1);
    check(vec![Reply::status(500, "{}"), good()], &Ok("48213"), 2);
    check(vec![Reply::status(529, "{}"), good()], &Ok("48213"), 2);
    let limited = Reply::status(429, r#"{"error":{"message":"slow down"}}"#);
    check(vec![limited.clone(), limited.clone(), good()], &Ok("48213"), 3);
    let named = limited.clone().with_header("Retry-After", "0");
    check(vec![named, good()], &Ok("48213"), 2);
    let in_hours = limited.clone().with_header("Retry-After", "7200");
    check(vec![in_hours], &Err(CallFailure::RateLimited), 1);
    check(vec![limited], &Err(CallFailure::RateLimited), 5);
    check(vec![good().cut_after(220), good()], &Ok("48213"), 2);
    check(vec![good().cut_after(0), good()], &Ok("48213"), 2);
    check(vec![good().stalled_after(220), good()], &Ok("48213"), 2);
    check(vec![good().stalled_after(0), good()], &Ok("48213"), 2);
    let broken = Reply::stream("data: {\"choices\":[{\"delta\":\n\n");
    check(vec![broken.clone(), good()], &Ok("48213"), 2);
    check(vec![broken], &Err(CallFailure::Unreadable), 5);
    let quota = r#"{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"no money"}}"#;
    let spent = "HTTP 429: insufficient_quota: no money".to_owned();
    check(vec![Reply::status(429, quota)], &Err(CallFailure::Denied(spent)), 1);
    let too_long = r#"{"error":{"code":400,"message":"request (1618 tokens) exceeds the available context size (512 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":1618,"n_ctx":512}}"#;
    check(vec![Reply::status(400, too_long)], &Err(CallFailure::Overflow), 1);
    // What we reserve for the answer is no failure of the prompt: the answer gets what is left.
    let reserve = r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 4160 output tokens and your prompt contains at least 90 input tokens, for a total of at least 4250 tokens."}}"#;
    let reserve = Reply::status(400, reserve);
    check(vec![reserve.clone(), good()], &Ok("48213"), 2);
    check(vec![reserve], &Err(CallFailure::Overflow), 2);
}

#[test]
fn a_redirect_is_not_followed_for_the_key_would_go_with_it() {
    let elsewhere = Server::playing(vec![Reply::openai("stolen", 1, 1)]);
    let server = Server::playing(vec![
        Reply::status(307, "").with_header("Location", &elsewhere.base_url()),
    ]);
    let failure = live(&server, Provider::OpenAi, quick()).respond(&question("x"));
    let said = failure.unwrap_err().to_string();
    assert!(said.contains("HTTP 307") && said.contains("base URL"), "{said}");
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn a_key_is_sent_in_its_header_and_stands_in_no_error_and_no_debug_output() {
    let repeated =
        format!(r#"{{"error":{{"message":"bad key {KEY} (sk-live-***mnop)","type":"x"}}}}"#);
    for (provider, header) in [
        (Provider::OpenAi, format!("authorization: bearer {KEY}")),
        (Provider::Anthropic, format!("x-api-key: {KEY}")),
    ] {
        for status in [400, 401, 403, 404] {
            let server = Server::playing(vec![Reply::status(status, &repeated)]);
            let model = live(&server, provider, quick());
            let error = model.respond(&question("x")).unwrap_err();
            for shown in [format!("{error} {error:?}"), format!("{model:?}")] {
                assert!(!shown.contains("sk-live") && !shown.contains("ijklmnop"), "{shown}");
            }
            let sent = &server.requests()[0];
            assert!(sent.head.to_lowercase().contains(&header), "{}", sent.head);
            assert!(!sent.body.contains(KEY));
        }
    }
}

#[test]
fn a_key_that_is_cut_in_two_by_the_length_of_an_error_is_still_taken_out() {
    for before in 270..310 {
        let body = format!(r#"{{"error":{{"message":"{} {KEY}"}}}}"#, "x".repeat(before));
        let server = Server::playing(vec![Reply::status(400, &body)]);
        let error = live(&server, Provider::OpenAi, quick()).respond(&question("x"));
        let said = error.unwrap_err().to_string();
        assert!(!said.contains("sk-l"), "{before}: {said}");
    }
}

#[test]
fn a_pause_may_be_a_date_and_longer_than_our_own() {
    let good = || Reply::openai("48213", 100, 5);
    let limited = |date: &str| {
        Reply::status(429, "{}")
            .with_header("Date", "Wed, 21 Oct 2015 07:28:00 GMT")
            .with_header("Retry-After", date)
    };
    let now = limited("Wed, 21 Oct 2015 07:28:00 GMT");
    check(vec![now, good()], &Ok("48213"), 2);
    // Longer than anybody waits: given up at once, where a date that is not read is tried again.
    let tomorrow = limited("Thu, 22 Oct 2015 07:28:00 GMT");
    check(vec![tomorrow, good()], &Err(CallFailure::RateLimited), 1);
}

#[test]
fn anthropic_is_spoken_to_in_its_own_words() {
    let server = Server::playing(vec![Reply::anthropic("48213", [3, 10, 500, 7])]);
    let model = live(&server, Provider::Anthropic, quick());
    let answer = model.respond(&question("Which port?")).unwrap();
    let usage = Usage {
        input_uncached: Tokens(3),
        cache_write_5m: Tokens(10),
        cache_write_1h: Tokens(0),
        cache_read: Tokens(500),
        output: Tokens(7),
    };
    let expected =
        Response { text: "48213".into(), stop: Stop::End, usage, model: "test-model-1".into() };
    assert_eq!(answer, expected);
    let sent = &server.requests()[0];
    assert!(sent.head.starts_with("POST /v1/messages HTTP/1.1"), "{}", sent.head);
    assert!(sent.head.to_lowercase().contains("anthropic-version: 2023-06-01"));
    let times = model.take_times();
    assert_eq!(times.len(), 1);
    assert!(times[0].is_answered);
}

#[test]
fn a_schema_that_a_server_refuses_is_left_out_from_then_on() {
    let refusal = r#"{"error":{"message":"response_format json_schema is not supported","type":"invalid_request_error"}}"#;
    let verdict = r#"{"verdict": "right"}"#;
    let replies = vec![
        Reply::status(400, refusal),
        Reply::openai(verdict, 90, 5),
        Reply::openai(verdict, 90, 5),
        Reply::openai("48213", 90, 5),
    ];
    let server = Server::playing(replies);
    let dialect = Dialect { structured: true, ..Dialect::new(Provider::OpenAi, "test-model") };
    let connection = Connection::to(server.base_url());
    let engine = Engine::start().unwrap();
    let model = LiveModel::new(dialect, connection, engine, Arc::new(Pacer::new(quick()))).unwrap();
    let judged = Request { purpose: Purpose::Judge, task: Task::Judge, ..question("Is it right?") };
    for _ in 0..2 {
        assert_eq!(&*model.respond(&judged).unwrap().text, verdict);
    }
    model.respond(&question("Which port?")).unwrap();
    let has_schema = |asked: &server::Asked| asked.body.contains("json_schema");
    let sent: Vec<bool> = server.requests().iter().map(has_schema).collect();
    assert_eq!(sent, [true, false, false, false]);
    assert!(model.schema_refused().unwrap().contains("json_schema"));
}

#[test]
fn a_storm_of_refusals_loses_no_answer_and_takes_none_twice() {
    // Every request is refused until the server has refused 200 times.
    let server = Server::storming(200, Duration::ZERO);
    let pace = PaceSetting {
        at_once: 32,
        retries: 60,
        pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(20),
        ..PaceSetting::default()
    };
    let model = live(&server, Provider::OpenAi, pace);
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..48)
            .map(|at| {
                let model = &model;
                scope.spawn(move || model.respond(&question(&format!("number {at}?"))).unwrap())
            })
            .collect();
        asking.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let billed: Tokens = answers.iter().map(|answer| answer.usage.total()).sum();
    let requests = server.requests();
    let successes = requests.iter().filter(|request| request.was_answered).count();
    assert_eq!(successes, 48, "each is answered once");
    assert_eq!(billed, Tokens(48 * 105));
    assert_eq!(requests.len(), 248);
    let attempts: u32 = model.take_times().iter().map(|time| time.attempts).sum();
    assert_eq!(attempts, 248);
}

/// What came of the attempts at one request whose first answer dribbles in steadily, where an answer
/// may take `whole`; and how often was asked.
fn dribbled(
    first: Reply,
    whole: Duration,
) -> (Result<String, CallFailure>, Vec<CallFailure>, usize) {
    let server = Server::playing(vec![first, Reply::openai("48213", 100, 5)]);
    let mut connection = Connection::to(server.base_url());
    // No piece is waited for in vain: only the whole takes too long.
    connection.first_byte = Duration::from_secs(30);
    connection.between = Duration::from_secs(2);
    connection.whole = whole;
    let dialect = Dialect::new(Provider::OpenAi, "test-model");
    let model = LiveModel::new(
        dialect,
        connection,
        Engine::start().unwrap(),
        Arc::new(Pacer::new(quick())),
    )
    .unwrap();
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let answered = model.answer(&question("Which port?"), 0, &counts);
    let text = answered.answer.map(|response| response.text.to_string());
    (text, answered.failed, server.requests().len())
}

#[test]
fn an_answer_that_never_stops_coming_is_given_up_when_its_time_is_over() {
    let pause = Duration::from_millis(40);
    let half_a_minute = Reply::openai("an answer", 100, 5).dribbling(1, pause);
    let good = Ok("48213".to_owned());
    assert_eq!(
        dribbled(half_a_minute, Duration::from_secs(1)),
        (good.clone(), vec![CallFailure::Timeout], 2)
    );
    // As steadily, and within its time.
    let a_second = Reply::openai("an answer", 100, 5).dribbling(40, pause);
    assert_eq!(
        dribbled(a_second, Duration::from_mins(30)),
        (Ok("an answer".to_owned()), Vec::new(), 1)
    );
    // A refusal that never ends is a refusal, and not read to its end.
    let refusal = Reply::status(503, &"x".repeat(4_000)).dribbling(1, pause);
    assert_eq!(
        dribbled(refusal, Duration::from_mins(30)),
        (good, vec![CallFailure::Server("HTTP 503".to_owned())], 2)
    );
    let by_default = Connection::public(Provider::OpenAi).whole;
    assert_eq!(by_default, Duration::from_mins(30));
}

/// What came of a request that is no longer waited for once it has failed, or `pause` after it was sent.
fn stopped(first: Reply, pause: Option<Duration>) -> Result<String, CallFailure> {
    let waits = Waits::default();
    let (told, asked) = (waits.clone(), waits.clone());
    let server = Server::answering(move |_| {
        if let Some(pause) = pause {
            let asked = asked.clone();
            std::thread::spawn(move || {
                std::thread::sleep(pause);
                asked.set_ended(true);
            });
        }
        first.clone()
    });
    let mut connection = Connection::to(server.base_url());
    connection.notice = Some(Notice(Arc::new(move |_| told.set_ended(true))));
    connection.waits = waits;
    let pace = PaceSetting {
        pause: Duration::from_mins(10),
        longest_pause: Duration::from_mins(10),
        ..quick()
    };
    let dialect = Dialect::new(Provider::OpenAi, "test-model");
    let pacer = Arc::new(Pacer::new(pace));
    let model = LiveModel::new(dialect, connection, Engine::start().unwrap(), pacer).unwrap();
    let answer = model.respond(&question("Which port?"));
    // Later requests are not sent.
    let unsent = CallFailure::Stopped { was_sent: false };
    assert_eq!(model.respond(&question("Which?")), Err(unsent));
    assert_eq!(server.requests().len(), 1);
    answer.map(|response| response.text.to_string())
}

#[test]
fn a_stop_ends_what_has_not_begun_and_an_answer_that_has_is_read_to_its_end() {
    let answer = || Reply::openai("48213", 100, 5);
    // Nothing comes for five minutes.
    let unbegun = Err(CallFailure::Stopped { was_sent: true });
    let soon = Some(Duration::from_millis(300));
    assert_eq!(stopped(answer().stalled_after(0), soon), unbegun);
    // The next attempt would be in ten minutes.
    let unsent = Err(CallFailure::Stopped { was_sent: false });
    assert_eq!(stopped(Reply::status(500, ""), None), unsent);
    // Its headers are no answer yet.
    assert_eq!(stopped(answer().stalled_after(75), soon), unbegun);
    // It begins at once, and takes two seconds.
    let slow = answer().dribbling(20, Duration::from_millis(50));
    let later = Some(Duration::from_secs(1));
    assert_eq!(stopped(slow, later), Ok("48213".to_owned()));
}

#[test]
fn an_answer_is_no_longer_than_what_was_asked_for() {
    let words = |bytes: usize| Reply::openai(&"word ".repeat(bytes / 5), 100, 64);
    let most = longest_bytes(Tokens(64));
    let server = Server::playing(vec![words(most - 4_096), words(most + 1), words(10)]);
    let model = live(&server, Provider::OpenAi, quick());
    assert!(model.respond(&question("x")).is_ok());
    let failure = model.respond(&question("x")).unwrap_err().to_string();
    assert!(failure.contains("more than was asked for"), "{failure}");
    // It is not asked again: it would be paid again.
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_base_url_with_a_key_in_it_is_refused_and_not_repeated() {
    for url in [
        "https://user:sk-secret@host/v1",
        "https://host/v1?key=sk-secret",
        "ftp://sk-secret",
        "sk-secret",
    ] {
        let dialect = Dialect::new(Provider::OpenAi, "m");
        let engine = Engine::start().unwrap();
        let made =
            LiveModel::new(dialect, Connection::to(url), engine, Arc::new(Pacer::new(quick())));
        let said = made.unwrap_err().to_string();
        assert!(!said.contains("sk-secret"), "{said}");
    }
}
