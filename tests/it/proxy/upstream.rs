//! The connection to the API: kept, closed, never there; and clients that do not wait for it.

use std::sync::mpsc;

use super::*;

const COMPLETION: &str =
    r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"hi"}}]}"#;

fn whole(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// The bodies that came, by connection.
type Connections = Arc<Mutex<Vec<Vec<String>>>>;

/// An API that answers so many requests on a connection and closes it then without a word; the address, the requests of
/// each connection, and a channel that says when one was closed.
fn closing_after(requests: usize) -> (SocketAddr, Connections, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Connections::default();
    let (closed, was_closed) = mpsc::channel();
    let kept = connections.clone();
    std::thread::spawn(move || {
        for (at, socket) in listener.incoming().enumerate() {
            let (mut socket, kept, closed) = (socket.unwrap(), kept.clone(), closed.clone());
            kept.lock().unwrap().push(Vec::new());
            std::thread::spawn(move || {
                for _ in 0..requests {
                    let request = read_request(&socket);
                    let Some((_, body)) = request.split_once("\r\n\r\n") else {
                        return;
                    };
                    kept.lock().unwrap()[at].push(body.to_owned());
                    socket.write_all(whole("200 OK", COMPLETION).as_bytes()).unwrap();
                }
                drop(socket);
                let _ = closed.send(());
            });
        }
    });
    (address, connections, was_closed)
}

fn completion(proxy: SocketAddr, number: usize) {
    let heard = ask(proxy, &post("/v1/chat/completions", &said(&format!("number {number}"))));
    assert!(heard.ends_with(COMPLETION), "{heard}");
}

#[test]
fn connections_to_the_api_are_used_again() {
    let (api, connections, _) = closing_after(100);
    let (kept, failed) = through(&format!("http://{api}"), |proxy| {
        (0..20).for_each(|number| completion(proxy, number));
    });
    assert_eq!((kept.len(), failed.len()), (20, 0), "{failed:?}");
    let connections = connections.lock().unwrap();
    assert_eq!(connections.iter().map(Vec::len).collect::<Vec<_>>(), [20]);
}

#[test]
fn a_request_whose_connection_was_closed_is_neither_lost_nor_processed_twice() {
    for requests in [1, 3] {
        let (api, connections, was_closed) = closing_after(requests);
        let (kept, failed) = through(&format!("http://{api}"), |proxy| {
            for number in 0..30 {
                completion(proxy, number);
                if number % requests == requests - 1 {
                    was_closed.recv().unwrap();
                }
            }
        });
        assert_eq!((kept.len(), failed.len()), (30, 0), "{failed:?}");
        let processed = connections.lock().unwrap().concat();
        let expected = (0..30).map(|number| said(&format!("number {number}")));
        assert_eq!(processed, expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_request_that_was_sent_is_not_sent_again() {
    let asked = Arc::new(Mutex::new(0));
    let counted = asked.clone();
    // The connection ends without an answer, or within its head.
    let upstream = api(Arc::new(move |request| {
        *counted.lock().unwrap() += 1;
        let is_begun = request.contains("begin");
        is_begun.then(|| b"HTTP/1.1 200 OK\r\n".to_vec()).into_iter().collect()
    }));
    let (kept, failed) = through(&format!("http://{upstream}"), |proxy| {
        for text in ["hello", "begin"] {
            let heard = ask(proxy, &post("/v1/messages", &said(text)));
            assert!(heard.starts_with("HTTP/1.1 502"), "{heard}");
        }
    });
    assert_eq!((kept.len(), *asked.lock().unwrap()), (0, 2));
    assert!(
        failed.iter().all(|why| why.starts_with("the API did not answer: connection")),
        "{failed:?}"
    );
}

/// The failures of one request to this address, and the answer that its client heard.
fn unreached(upstream: &str) -> (Vec<String>, String) {
    let mut heard = String::new();
    let (kept, failed) = through(upstream, |proxy| {
        heard = ask(proxy, &post("/v1/messages?key=secret", &said("hello")));
    });
    assert_eq!(kept, []);
    assert!(heard.starts_with("HTTP/1.1 502"), "{heard}");
    (failed, heard)
}

#[test]
fn an_api_that_is_not_there_is_said_to_be_with_the_cause() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let nobody = nobody.unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let without_tls = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = plain.accept().unwrap();
        socket.write_all(whole("200 OK", COMPLETION).as_bytes())
    });
    for (upstream, cause) in [
        (format!("http://{nobody}"), "refused"),
        (format!("https://{without_tls}"), "InvalidContentType"),
    ] {
        let (failed, heard) = unreached(&upstream);
        let [failed] = &failed[..] else { panic!("{failed:?}") };
        let (problem, words) = failed.split_once(": ").unwrap();
        assert_eq!(problem, "the API cannot be reached");
        assert!(words.contains(cause), "{failed}");
        assert!(heard.contains(&format!("proctor: {failed}")), "{heard}");
        for secret in ["secret", "127.0.0.1"] {
            assert!(!heard.contains(secret), "{heard}");
        }
    }
}

#[test]
fn an_error_in_an_answer_of_status_200_is_a_failure_with_its_type() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"sk-key"}}"#;
    let half = events("half");
    let (start, _) = half.split_at(200);
    let answers = [
        ("/v1/messages", format!("{start}\n\nevent: error\ndata: {error}\n\n"), "overloaded_error"),
        ("/v1/messages", error.to_owned(), "overloaded_error"),
        (
            "/v1/chat/completions",
            r#"data: {"error":{"code":"server_error","message":"sk-key"}}"#.to_owned() + "\n\ndata: [DONE]\n\n",
            "server_error",
        ),
        (
            "/v1/responses",
            r#"data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded"}}}"#.to_owned() + "\n\n",
            "rate_limit_exceeded",
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            r#"data: {"error":{"code":503,"status":"UNAVAILABLE"}}"#.to_owned() + "\r\n\r\n",
            "UNAVAILABLE",
        ),
        (
            "/v1beta/models/m:streamGenerateContent",
            r#"[{"error":{"code":503,"status":"UNAVAILABLE"}}]"#.to_owned(),
            "UNAVAILABLE",
        ),
        ("/v1/chat/completions", r#"{"error":"all is lost"}"#.to_owned(), ""),
    ];
    for (path, answer, kind) in answers {
        let given = answer.clone();
        let upstream = api(Arc::new(move |_| {
            if given.starts_with(['{', '[']) {
                return vec![whole("200 OK", &given).into_bytes()];
            }
            vec![STREAM.into(), chunk(&given), chunk("")]
        }));
        let (kept, failed) = through(&format!("http://{upstream}"), |proxy| {
            let heard = ask(proxy, &post(path, &said("hello")));
            assert!(heard.contains(&answer), "{heard}");
        });
        assert_eq!(kept, []);
        let reported = "the API reported an error in its answer";
        let expected = match kind {
            "" => reported.to_owned(),
            kind => format!("{reported}: {kind}"),
        };
        assert_eq!(failed, [expected], "{path}");
    }
}

#[test]
fn a_client_that_goes_away_before_its_answer_is_kept_as_such() {
    let (asked, was_asked) = mpsc::channel();
    let (answer, may_answer) = mpsc::channel::<()>();
    let may_answer = Mutex::new(may_answer);
    let slow = api(Arc::new(move |_| {
        asked.send(()).unwrap();
        let _ = may_answer.lock().unwrap().recv();
        Vec::new()
    }));
    let (kept, failed) = through(&format!("http://{slow}"), |proxy| {
        let mut socket = TcpStream::connect(proxy).unwrap();
        let request = post("/v1/messages", &said("hello"));
        let request = request.replacen("host: x", &format!("host: {proxy}"), 1);
        socket.write_all(request.as_bytes()).unwrap();
        was_asked.recv().unwrap();
    });
    assert_eq!((kept, failed), (vec![], vec!["the client went away".to_owned()]));
    drop(answer);
}
