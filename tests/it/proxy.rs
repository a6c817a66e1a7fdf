//! The recording proxy between a client and a server of this test's own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor::proxy::page::PageServer;
use proctor::proxy::{ExchangeLog, Failure, ProxiedExchange, Proxy};
use proctor::session::{ContentBlock, Session, import};
use proctor::stop::StopToken;
use proctor::units::Timestamp;
use serde_json::{Value, json};

mod front;
mod stopped;
mod upstream;

const KEY: &str = "key-that-is-nobodys-business";

/// What the server of the API answers: pieces, with a pause before each.
type Answer = Arc<dyn Fn(&str) -> Vec<Vec<u8>> + Send + Sync>;

/// A server that answers every request by `answer`, which is given head and body.
fn api(answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, answer) = (socket.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let request = read_request(&socket);
                for piece in answer(&request) {
                    std::thread::sleep(Duration::from_millis(5));
                    if socket.write_all(&piece).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn read_request(socket: &TcpStream) -> String {
    let mut reader = BufReader::new(socket);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return head;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {KEY}\r\nauthorization: Bearer {KEY}\r\n\
         accept-encoding: gzip\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn ask(proxy: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(proxy).unwrap();
    let request = request.replacen("host: x", &format!("host: {proxy}"), 1);
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

/// The body of an answer that came in chunks.
fn unchunked(answer: &str) -> String {
    let (_, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    let mut body = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&more[..size]);
        rest = &more[size..][2..];
        if size == 0 {
            break;
        }
    }
    body
}

/// Requests with their answers, and why others were not kept.
type Outcome = (Vec<(Value, Value)>, Vec<String>);

/// What was kept, and what was not.
#[derive(Debug, Default, Clone)]
struct Kept(Arc<Mutex<Outcome>>);

impl ExchangeLog for Kept {
    fn answered(&mut self, exchange: &ProxiedExchange) -> io::Result<()> {
        let value = |raw: &serde_json::value::RawValue| serde_json::from_str(raw.get()).unwrap();
        let request = exchange.request.as_deref().map_or(Value::Null, value);
        let pair = (request, value(&exchange.response));
        self.0.lock().unwrap().0.push(pair);
        Ok(())
    }

    fn failed(&mut self, failure: &Failure) {
        self.0.lock().unwrap().1.push(failure.to_string());
    }
}

/// Lets `clients` talk to a proxy in front of `upstream`; what was kept, and what was not.
fn through(upstream: &str, clients: impl FnOnce(SocketAddr)) -> Outcome {
    let proxy = Proxy::bind("127.0.0.1:0".parse().unwrap(), upstream).unwrap();
    through_proxy(proxy, clients)
}

fn through_proxy(proxy: Proxy, clients: impl FnOnce(SocketAddr)) -> Outcome {
    let address = proxy.address();
    let (kept, stop) = (Kept::default(), StopToken::default());
    let serving = {
        let (kept, stop) = (kept.clone(), stop.clone());
        std::thread::spawn(move || proxy.serve(kept, None, || Timestamp(0), &stop).map(drop))
    };
    clients(address);
    stop.request();
    serving.join().unwrap().unwrap();
    let mut kept = kept.0.lock().unwrap();
    std::mem::take(&mut *kept)
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A stream of Anthropic's, as the text of its events.
fn events(text: &str) -> String {
    let [start, end] = text.split_at(text.len() / 2).into();
    let deltas = [start, end].map(|part| {
        let delta = json!({"type": "text_delta", "text": part});
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    });
    let [first, second] = deltas;
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let message = json!({"id": format!("m-{text}"), "type": "message", "role": "assistant",
        "model": "some-model", "content": [], "usage": usage});
    let block = json!({"type": "text", "text": ""});
    [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        first,
        second,
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
    .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
    .concat()
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Streams the last text of the request back, in pieces of seven bytes.
fn echo() -> Answer {
    Arc::new(|request| {
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let text = messages.last().unwrap()["content"].as_str().unwrap();
        let stream = events(&format!("heard {text}"));
        let pieces = stream.as_bytes().chunks(7);
        let pieces = pieces.map(|piece| chunk(std::str::from_utf8(piece).unwrap()));
        let mut answer = vec![STREAM.as_bytes().to_vec()];
        answer.extend(pieces);
        answer.push(b"0\r\n\r\n".to_vec());
        answer
    })
}

fn said(text: &str) -> String {
    json!({"model": "some-model", "stream": true, "max_tokens": 9,
        "messages": [{"role": "user", "content": text}]})
    .to_string()
}

#[test]
fn a_stream_passes_unchanged_and_is_kept_whole() {
    let server = api(echo());
    let mut heard = String::new();
    let (kept, failed) = through(&format!("http://{server}"), |proxy| {
        heard = ask(proxy, &post("/v1/messages?beta=true", &said("hello")));
    });
    assert!(heard.starts_with("HTTP/1.1 200 OK\r\n"), "{heard}");
    assert_eq!(unchunked(&heard), events("heard hello"));
    assert_eq!(failed, Vec::<String>::new());
    let [(request, response)] = &kept[..] else { panic!("one request") };
    assert_eq!(request["messages"][0]["content"], "hello");
    assert_eq!(response["content"], json!([{"type": "text", "text": "heard hello"}]));
    assert_eq!(response["usage"], json!({"input_tokens": 9, "output_tokens": 5}));
}

#[test]
fn many_at_once_are_kept_each_with_its_own_answer() {
    let server = api(echo());
    let (kept, failed) = through(&format!("http://{server}/"), |proxy| {
        let ask_one = |n: usize| {
            std::thread::spawn(move || {
                ask(proxy, &post("/v1/messages", &said(&format!("number {n}"))))
            })
        };
        let asked: Vec<_> = (0..16).map(ask_one).collect();
        for (n, asked) in asked.into_iter().enumerate() {
            let heard = unchunked(&asked.join().unwrap());
            assert_eq!(heard, events(&format!("heard number {n}")));
        }
    });
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(kept.len(), 16);
    for (request, response) in kept {
        let asked = request["messages"][0]["content"].as_str().unwrap();
        assert_eq!(response["content"][0]["text"], format!("heard {asked}"));
    }
}

#[test]
fn what_is_no_answer_passes_and_is_not_kept() {
    let overloaded = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}";
    let error = format!(
        "HTTP/1.1 529 \r\nconnection: close\r\nretry-after: 7\r\ncontent-length: {}\r\n\r\n{overloaded}",
        overloaded.len()
    );
    let cut = [STREAM.as_bytes().to_vec(), chunk(&events("half")[..200])];
    let whole = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let answer: Answer = Arc::new(move |request: &str| {
        // Nothing of the client's encoding is asked for: what is packed could not be kept.
        let asked_for: Vec<String> = request
            .lines()
            .map(str::to_ascii_lowercase)
            .filter(|line| line.starts_with("accept-encoding"))
            .collect();
        assert_eq!(asked_for, ["accept-encoding: identity"], "{request}");
        assert!(request.contains(KEY));
        match request {
            cut_off if cut_off.contains("cut me off") => cut.to_vec(),
            listing if listing.starts_with("POST /v1/models") => vec![whole.into()],
            _ => vec![error.clone().into_bytes()],
        }
    });
    let server = api(answer);
    let (kept, failed) = through(&format!("http://{server}"), |proxy| {
        let heard = ask(proxy, &post("/v1/messages", &said("hello")));
        assert!(heard.starts_with("HTTP/1.1 529"), "{heard}");
        assert!(heard.contains("retry-after: 7\r\n") && heard.ends_with(overloaded));
        // The client hears that its stream broke: there is no last chunk.
        let heard = ask(proxy, &post("/v1/messages", &said("cut me off")));
        assert!(!heard.ends_with("0\r\n\r\n"), "{heard}");
        // Other requests are nobody's session.
        assert!(ask(proxy, &post("/v1/models", "{}")).ends_with("{}"));
    });
    assert_eq!(kept, []);
    assert_eq!(failed, ["the API answered with status 529", "the answer broke off"]);
}

#[test]
fn what_is_packed_passes_and_is_said_to_be_packed() {
    let answer: Answer = Arc::new(|_| {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n";
        vec![
            format!("{head}content-encoding: gzip\r\ncontent-length: 3\r\n\r\n").into_bytes(),
            b"abc".to_vec(),
        ]
    });
    let server = api(answer);
    let (kept, failed) = through(&format!("http://{server}"), |proxy| {
        let heard = ask(proxy, &post("/v1/messages", &said("hello")));
        assert!(heard.contains("content-encoding: gzip\r\n"), "{heard}");
        let packed =
            post("/v1/messages", "no JSON").replacen("\r\n", "\r\ncontent-encoding: zstd\r\n", 1);
        ask(proxy, &packed);
    });
    assert_eq!(kept, []);
    assert_eq!(
        failed,
        [
            "the answer is packed, though it was asked for as it is",
            "the request is packed: let the client send it as it is"
        ]
    );
}

#[test]
fn a_client_that_goes_away_ends_its_request() {
    let endless: Answer = Arc::new(|_| {
        let mut answer = vec![STREAM.as_bytes().to_vec()];
        answer.extend((0..10_000).map(|_| chunk("event: ping\ndata: {\"type\":\"ping\"}\n\n")));
        answer
    });
    let server = api(endless);
    let (kept, failed) = through(&format!("http://{server}"), |proxy| {
        let mut socket = TcpStream::connect(proxy).unwrap();
        let request = post("/v1/messages", &said("hello"));
        let request = request.replacen("host: x", &format!("host: {proxy}"), 1);
        socket.write_all(request.as_bytes()).unwrap();
        let mut some = [0; 100];
        socket.read_exact(&mut some).unwrap();
    });
    assert_eq!(kept, []);
    assert_eq!(failed, ["the client went away"]);
}

#[test]
fn a_page_of_the_web_and_a_path_out_of_the_api_are_refused() {
    let server = api(Arc::new(|request: &str| {
        let path = request.split(' ').nth(1).unwrap();
        let length = path.len();
        vec![
            format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{path}"
            )
            .into_bytes(),
        ]
    }));
    let (kept, failed) = through(&format!("http://{server}/base/"), |proxy| {
        let check = |path: &str, headers: &str, expected: &str| {
            let request = post(path, "{}").replacen("x-api-key", &format!("{headers}x-api-key"), 1);
            let heard = ask(proxy, &request);
            assert!(heard.starts_with(expected), "{path} {headers}: {heard}");
            heard
        };
        let page = "origin: https://page.example\r\n";
        check("/v1/models", page, "HTTP/1.1 403");
        check("/v1/models", "origin: null\r\n", "HTTP/1.1 403");
        check("/v1/models", "origin: http://localhost:3000\r\n", "HTTP/1.1 200");
        check("/v1/models", "host: rebound.example\r\n", "HTTP/1.1 421");
        for path in ["/../admin", "/v1/%2E%2e/../admin", "/v1/..%2fadmin", "/a\\..\\b", "/\\evil"] {
            check(path, "", "HTTP/1.1 400");
        }
        let heard = check("//elsewhere/v1/models", "", "HTTP/1.1 200");
        assert!(heard.ends_with("/base//elsewhere/v1/models"), "{heard}");
        // Refused before a byte of it has come.
        let huge = post("/v1/messages", "").replacen("length: 0", "length: 1000000000", 1);
        assert!(ask(proxy, &huge).starts_with("HTTP/1.1 413"));
    });
    assert_eq!((kept.len(), failed.len()), (0, 9), "{failed:?}");
}

#[test]
fn an_address_with_a_key_in_it_is_refused_and_not_repeated() {
    let listen = "127.0.0.1:0".parse().unwrap();
    for wrong in ["localhost:80", "ftp://x", "http://key@x", "http://x?key=1", ""] {
        let error = Proxy::bind(listen, wrong).unwrap_err().to_string();
        // What was given may hold a key.
        assert!(!error.contains("key@") && !error.contains("key=1"), "{error}");
    }
}

/// The program that records in front of a server, and where it listens.
fn recording(server: SocketAddr, folder: &Path) -> (Child, SocketAddr) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["record", "--upstream", &format!("http://{server}"), "-o"])
        .arg(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    // Else it could not say which files it writes.
    std::thread::spawn(move || lines.for_each(drop));
    let proxy = first.strip_prefix("listening at http://").unwrap();
    (program, proxy.parse().unwrap())
}

/// Ends the program, and returns its messages.
fn recorded(mut program: Child) -> String {
    crate::support::interrupt(&program);
    let mut said = String::new();
    let mut messages = program.stderr.take().unwrap();
    messages.read_to_string(&mut said).unwrap();
    assert_eq!(program.wait().unwrap().code(), Some(0), "{said}");
    said
}

/// The whole program: two requests of one conversation become one session.
#[test]
fn a_recorded_conversation_is_a_session_without_keys() {
    let echo = echo();
    let completion = r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"hi"}}]}"#;
    let server = api(Arc::new(move |request: &str| {
        if request.contains(":streamGenerateContent") {
            let event = |text: &str, end: Value| {
                let content = json!({"role": "model", "parts": [{"text": text}]});
                let event = json!({"candidates": [{"content": content, "finishReason": end}]});
                format!("data: {event}\r\n\r\n")
            };
            let stream = event("heard ", Value::Null) + &event("it", json!("STOP"));
            return vec![STREAM.as_bytes().to_vec(), chunk(&stream), b"0\r\n\r\n".to_vec()];
        }
        if request.starts_with("POST /v1/messages") {
            return echo(request);
        }
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ";
        vec![format!("{head}{}\r\n\r\n{completion}", completion.len()).into_bytes()]
    }));
    let out = tempfile::tempdir().unwrap();
    let (program, proxy) = recording(server, out.path());
    ask(proxy, &post("/v1/messages", &said("hello")));
    let second = json!({"model": "some-model", "max_tokens": 9,
    "mcp_servers": [{"type": "url", "url": "https://mcp.example", "name": "x", "authorization_token": KEY}],
    "tools": [{"type": "mcp", "server_label": "x", "authorization": KEY, "headers": {"x-key": format!("Bearer {KEY}")}}],
    "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "heard hello"}]},
        {"role": "user", "content": "and again"},
    ]});
    ask(proxy, &post("/v1/messages", &second.to_string()));
    // A program that speaks to another API as well has a log of it.
    ask(proxy, &post("/v1/chat/completions", &said("hello to you")));
    let contents = json!({"contents": [{"parts": [{"text": "one"}]}, {"role": "model", "parts": [{"text": "two"}]},
        {"parts": [{"text": "three"}]}, {"role": "model", "parts": [{"text": "four"}]}, {"parts": [{"text": "five"}]}]});
    let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
    ask(proxy, &post(path, &contents.to_string()));
    // A request that is nested too deep costs no other its session, nor does a log that no session can be made of.
    let deep = "[".repeat(200) + &"]".repeat(200);
    let deep = said("DEEP").replace("\"DEEP\"", &deep);
    ask(proxy, &post("/v1/chat/completions", &deep));
    ask(proxy, &post("/v1/responses", "{}"));
    // Of these, the second asks a model for nothing.
    ask(proxy, &post("/v1/embeddings", "{}"));
    ask(proxy, &post("/v1/messages/count_tokens", &said("hello")));
    let said = recorded(program);
    assert!(said.contains("1 request was passed on and not kept: "), "{said}");
    assert!(said.contains("6 requests in 3 sessions; 0 failed"), "{said}");
    let left_out = ".chat.jsonl`: line 2 is nested deeper than 127 levels and is left out: 1";
    assert!(said.contains(left_out), "{said}");
    let odd = "its requests are in no session: ";
    assert!(said.contains(odd) && said.contains(".responses.jsonl"), "{said}");
    let mut files: Vec<_> =
        std::fs::read_dir(out.path()).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 7);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains(KEY), "{}", file.display());
    }
    let ended = |end: &'static str| {
        let of_kind = files
            .iter()
            .map(|file| file.to_string_lossy().into_owned())
            .filter(move |file| file.ends_with(end));
        of_kind.collect::<Vec<String>>()
    };
    assert_eq!(ended(".chat.jsonl").len(), 1);
    let sessions: Vec<Session> = ended(".session.jsonl")
        .iter()
        .flat_map(|file| import::load(file.as_ref()).unwrap())
        .collect();
    let of = |wanted: usize| sessions.iter().find(|it| it.messages().len() == wanted);
    let other = of(2).unwrap();
    assert_eq!(other.message(0).content(), [ContentBlock::Text("hello to you".into())]);
    assert_eq!(ended(".contents.jsonl").len(), 1);
    let contents = of(6).unwrap();
    assert_eq!(contents.message(5).content(), [ContentBlock::Text("heard it".into())]);
    let session = of(4).unwrap();
    assert_eq!(session.messages().len(), 4);
    assert_eq!(session.calls(), [1, 3]);
    assert!(
        session.message(1).details.usage.is_some()
            && session.message(1).details.timestamp.is_some()
    );
}

#[test]
fn a_page_is_made_for_each_load_and_only_under_its_own_name() {
    let server = PageServer::bind(0).unwrap();
    let address = server.address();
    assert!(address.ip().is_loopback());
    let stop = StopToken::default();
    let stopping = stop.clone();
    let loads = Mutex::new(0);
    let render = move |session: Option<&str>| {
        let mut loads = loads.lock().unwrap();
        *loads += 1;
        match *loads {
            3 => Err("no longer there".to_owned()),
            load => Ok(format!("<p>load {load} {session:?}")),
        }
    };
    let serving = std::thread::spawn(move || server.serve(Arc::new(render), &stopping));
    let ask = |request: &str, host: &str| {
        let mut socket = TcpStream::connect(address).unwrap();
        let head = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let own = address.to_string();
    let local = format!("localhost:{}", address.port());
    for (request, host, status, body) in [
        ("GET /?session=a%20b/c", own.as_str(), 200, "<p>load 1 Some(\"a b/c\")"),
        ("GET /", "evil.example", 421, "another host"),
        ("GET /", "127.0.0.1", 421, "another host"),
        ("GET /run.json", &own, 404, "only one page"),
        ("POST /", &own, 405, "only be read"),
        ("GET /", &local, 200, "<p>load 2 None"),
        ("GET /", &own, 500, "no longer there"),
    ] {
        let answer = ask(request, host);
        let is_right = answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(body);
        assert!(is_right, "{request} {host}: {answer}");
    }
    stop.request();
    serving.join().unwrap().unwrap();
}
