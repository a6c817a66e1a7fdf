//! The proxy with strategies in it.

use proctor::live::{Live, Log, StrategySetting};
use proctor::model::offline::Offline;
use proctor::record::Sizes;
use proctor::session::import::request::READER;
use proctor::settings::Place;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

use super::*;

fn front(names: &[&str]) -> Arc<Live> {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let settings = names.iter().map(|name| StrategySetting {
        spec: StrategySpec::named(name, &Trigger::always(), &Place::BuiltIn).unwrap(),
        window: Window::new(Tokens(3_000)),
        sizes: Sizes::Counted,
        summariser: Arc::new(Offline::new(counts.clone())),
        counts: counts.clone(),
    });
    Arc::new(Live::new(settings.collect(), Duration::from_mins(1), READER))
}

/// Lets clients talk to a proxy with these strategies in it; it ends as soon as they are done.
fn serve(front: &Arc<Live>, upstream: Answer, clients: impl FnOnce(SocketAddr)) {
    let upstream = format!("http://{}", api(upstream));
    let proxy = Proxy::bind("127.0.0.1:0".parse().unwrap(), &upstream).unwrap();
    let proxy = proxy.with_grace(Duration::ZERO);
    let (address, stop) = (proxy.address(), StopToken::default());
    let serving = {
        let (front, stop) = (front.clone(), stop.clone());
        std::thread::spawn(move || {
            let kept = proxy.serve(Kept::default(), Some(front), || Timestamp(7), &stop);
            kept.map(drop)
        })
    };
    clients(address);
    stop.request();
    serving.join().unwrap().unwrap();
}

/// Strategies in front of an API that refuses prompts of more bytes than this; the bodies that it answered.
fn through_front(
    names: &[&str],
    limit: usize,
    clients: impl FnOnce(SocketAddr),
) -> (Arc<Live>, Vec<String>) {
    let front = front(names);
    let answered = Arc::new(Mutex::new(Vec::new()));
    let upstream = {
        let answered = answered.clone();
        Arc::new(move |request: &str| {
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            assert!(!head.contains("x-proctor"), "{head}");
            assert!(head.starts_with("POST /v1/messages "), "{head}");
            if body.len() > limit {
                let text = format!("prompt is too long: {} tokens > {limit} maximum", body.len());
                let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": text}});
                let error = error.to_string();
                return vec![
                    format!(
                        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{error}",
                        error.len()
                    )
                    .into_bytes(),
                ];
            }
            answered.lock().unwrap().push(body.to_owned());
            let stream = events("all is well");
            vec![STREAM.as_bytes().to_vec(), chunk(&stream), chunk("")]
        })
    };
    serve(&front, upstream, clients);
    let answered = answered.lock().unwrap().clone();
    (front, answered)
}

fn conversation(calls: usize) -> String {
    let mut messages =
        vec![json!({"role": "user", "content": "Find the mistake in the parser, please."})];
    for call in 0..calls {
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("t{call}"), "name": "read", "input": {}}]}));
        let text = format!("{call} {}", "words of a file\n".repeat(60));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("t{call}"), "content": text}]}));
    }
    json!({"model": "m", "stream": true, "messages": messages}).to_string()
}

#[test]
fn a_prompt_that_is_refused_is_shortened_and_sent_again() {
    let limit = 12_000;
    let (front, answered) = through_front(&["none", "claude-code-reactive-only"], limit, |proxy| {
        for calls in 0..20 {
            let body = conversation(calls);
            let answer =
                ask(proxy, &post("/t/fix/s/claude-code-reactive-only/r/2/v1/messages", &body));
            assert!(answer.starts_with("HTTP/1.1 200"), "{calls}: {answer}");
            assert_eq!(unchunked(&answer), events("all is well"));
            // Under `none` the agent is told what the provider says.
            let told = ask(proxy, &post("/t/fix/s/0/v1/messages", &body));
            let is_refused = body.len() > limit;
            assert_eq!(told.starts_with("HTTP/1.1 400"), is_refused, "{told}");
            assert_eq!(told.contains("prompt is too long"), is_refused);
        }
    });
    assert!(answered.iter().all(|body| body.len() <= limit));
    let finished = front.finished();
    let measured: Vec<_> =
        finished.iter().map(|it| (it.cell.strategy, it.cell.repeat, it.measured.calls)).collect();
    assert_eq!(measured[0], (1, 2, 20));
    assert!(!finished[0].measured.refused.is_empty());
    assert!(measured[1].2 < 20);
}

#[test]
fn paths_and_headers_say_what_a_request_belongs_to() {
    let (front, _) = through_front(&["none", "codex"], usize::MAX, |proxy| {
        let body = conversation(1);
        for (path, headers, status) in [
            ("/v1/messages", "", "200"),
            ("/s/codex/t/one/v1/messages", "", "200"),
            (
                "/v1/messages",
                "x-proctor-task: two\r\nx-proctor-strategy: 1\r\nx-proctor-repeat: 3\r\n",
                "200",
            ),
            ("/t/..%2fOne%20Two/v1/messages", "", "200"),
            ("/t/%ff%00/v1/messages", "", "200"),
            ("/s/2/v1/messages", "", "400"),
            ("/s/other/v1/messages", "", "400"),
            ("/r/first/v1/messages", "", "400"),
            ("/r/10000/v1/messages", "", "400"),
            ("/t/one/v1beta/models/m:generateContent", "", "400"),
        ] {
            let request =
                post(path, &body).replacen("content-type", &format!("{headers}content-type"), 1);
            let answer = ask(proxy, &request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        }
    });
    let finished = front.finished();
    let cells = finished.iter().map(|it| (it.session.id(), it.cell.strategy, it.cell.repeat));
    let cells: Vec<_> = cells.collect();
    let expected =
        [("live-0001", 0, 0), ("one", 1, 0), ("two", 1, 3), ("one-two", 0, 0), ("x", 0, 0)];
    assert_eq!(cells, expected);
}

#[test]
fn two_hundred_sessions_at_once_are_kept_apart() {
    let (front, answered) = through_front(&["observation-masking"], usize::MAX, |proxy| {
        std::thread::scope(|scope| {
            for session in 0..200 {
                scope.spawn(move || {
                    for calls in [0, 12, 14] {
                        let body =
                            conversation(calls).replace("mistake", &format!("mistake {session}"));
                        let answer = ask(proxy, &post("/v1/messages", &body));
                        assert_eq!(unchunked(&answer), events("all is well"));
                    }
                });
            }
        });
    });
    assert_eq!(answered.len(), 600);
    let finished = front.finished();
    assert_eq!(finished.len(), 200);
    assert!(finished.iter().all(|it| it.measured.calls == 3));
    assert_eq!(front.untouched(), std::collections::BTreeMap::new());
}

#[test]
fn a_refusal_that_never_ends_holds_nobody_up() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let refuse: Answer = Arc::new(move |_| {
        asked.send(()).unwrap();
        let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 900\r\n\r\n{";
        // The pieces behind the first never come.
        let mut answer = vec![head.as_bytes().to_vec()];
        answer.extend((0..60_000).map(|_| Vec::new()));
        answer
    });
    // One client waits, and one has gone.
    let mut waits = None;
    serve(&front(&["none"]), refuse, |proxy| {
        for is_gone in [true, false] {
            let mut socket = TcpStream::connect(proxy).unwrap();
            let request = post("/v1/messages", &said("hello"));
            let request = request.replacen("host: x", &format!("host: {proxy}"), 1);
            socket.write_all(request.as_bytes()).unwrap();
            was_asked.recv().unwrap();
            waits = (!is_gone).then_some(socket);
        }
    });
    let mut told = String::new();
    let read = waits.unwrap().read_to_string(&mut told);
    assert!(read.is_err() || told.contains("the proxy was stopped") || told.is_empty(), "{told}");
}

#[test]
fn an_error_is_logged_with_its_bill_and_without_its_words() {
    let error = json!({"message": KEY, "error": {"message": KEY}, "content": [], "usage": {"input_tokens": 7}});
    let error = error.to_string();
    let answer: Answer = Arc::new(move |_| {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ";
        vec![format!("{head}{}\r\n\r\n{error}", error.len()).into_bytes()]
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let front = front(&["none"]);
    front.keep(Log::new(std::fs::File::create(&path).unwrap()), true);
    serve(&front, answer, |proxy| {
        let heard = ask(proxy, &post("/v1/messages", &conversation(1)));
        assert!(heard.contains(KEY), "{heard}");
    });
    let logged = std::fs::read_to_string(&path).unwrap();
    assert!(logged.contains("input_tokens") && !logged.contains(KEY), "{logged}");
}
