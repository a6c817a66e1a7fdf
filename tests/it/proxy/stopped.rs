//! The end of the proxy: requests under way, and sessions that are written.

use super::*;

#[test]
fn a_request_that_outlasts_the_proxy_is_not_kept_and_the_log_is() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let echo = echo();
    let slow: Answer = Arc::new(move |request| {
        if request.contains("hello") {
            return echo(request);
        }
        if request.contains("silence") {
            asked.send(()).unwrap();
            std::thread::sleep(Duration::from_mins(1));
        }
        let mut answer = vec![STREAM.as_bytes().to_vec()];
        answer.extend((0..10_000).map(|_| chunk("event: ping\ndata: {\"type\":\"ping\"}\n\n")));
        answer
    });
    let upstream = format!("http://{}", api(slow));
    let proxy = Proxy::bind("127.0.0.1:0".parse().unwrap(), &upstream).unwrap();
    let mut open = Vec::new();
    let (kept, failed) = through_proxy(proxy.with_grace(Duration::ZERO), |proxy| {
        ask(proxy, &post("/v1/messages", &said("hello")));
        for text in ["a stream", "silence"] {
            let mut socket = TcpStream::connect(proxy).unwrap();
            let request = post("/v1/messages", &said(text));
            let request = request.replacen("host: x", &format!("host: {proxy}"), 1);
            socket.write_all(request.as_bytes()).unwrap();
            open.push(socket);
        }
        open[0].read_exact(&mut [0; 200]).unwrap();
        was_asked.recv().unwrap();
    });
    assert_eq!(kept.len(), 1);
    assert_eq!(failed, ["the proxy was stopped"; 2]);
    // The client hears that its stream broke.
    let mut rest = Vec::new();
    drop(open[0].read_to_end(&mut rest));
    assert!(!rest.ends_with(b"0\r\n\r\n"));
}

#[test]
fn an_answer_that_is_kept_reaches_its_client() {
    let completion = format!(
        r#"{{"id":"c","choices":[{{"message":{{"role":"assistant","content":"{}"}}}}]}}"#,
        "word ".repeat(1_000_000)
    );
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ";
    let answer = format!("{head}{}\r\n\r\n{completion}", completion.len()).into_bytes();
    let server = api(Arc::new(move |_| vec![answer.clone()]));
    let mut reading = None;
    let (kept, failed) = through(&format!("http://{server}"), |proxy| {
        let mut socket = TcpStream::connect(proxy).unwrap();
        let request = post("/v1/chat/completions", &said("hello"));
        let request = request.replacen("host: x", &format!("host: {proxy}"), 1);
        socket.write_all(request.as_bytes()).unwrap();
        socket.read_exact(&mut [0; 9]).unwrap();
        reading = Some(std::thread::spawn(move || {
            // It is slow, and the proxy is stopping meanwhile.
            std::thread::sleep(Duration::from_millis(300));
            let mut rest = String::new();
            socket.read_to_string(&mut rest).map(|_| rest)
        }));
    });
    assert_eq!((kept.len(), failed.len()), (1, 0));
    let heard = reading.unwrap().join().unwrap().unwrap();
    assert!(heard.ends_with(&completion), "{} bytes", heard.len());
}

#[test]
fn a_recording_of_many_sessions_says_how_many_of_them_are_written() {
    let completion = r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"hi"}}]}"#;
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ";
    let answer = format!("{head}{}\r\n\r\n{completion}", completion.len()).into_bytes();
    let out = tempfile::tempdir().unwrap();
    let server = api(Arc::new(move |_| vec![answer.clone()]));
    let (program, proxy) = recording(server, out.path());
    std::thread::scope(|clients| {
        for client in 0..8 {
            clients.spawn(move || {
                for task in (client..1_001).step_by(8) {
                    ask(proxy, &post("/v1/chat/completions", &said(&format!("task {task}"))));
                }
            });
        }
    });
    let said = recorded(program);
    let folder = out.path().display();
    let progress = format!("0 of 1001 sessions are written to `{folder}`; Ctrl-C leaves");
    assert!(said.contains(&progress), "{said}");
    assert!(said.contains("1001 requests in 1001 sessions; 0 failed"), "{said}");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1_002);
}
