//! A server that plays what it was told to, down to the byte, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What is sent back.
#[derive(Clone)]
pub(crate) struct Reply {
    head: String,
    pub(crate) body: String,
    /// After so many bytes the connection is closed.
    cut: Option<usize>,
    /// After so many bytes nothing more comes, until the client has gone.
    stall: Option<usize>,
    /// So many bytes at a time, and a pause behind each.
    dribble: Option<(usize, Duration)>,
}

impl Reply {
    /// A status and a JSON body.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self {
            head: format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"),
            body: body.to_owned(),
            cut: None,
            stall: None,
            dribble: None,
        }
    }

    /// A stream of events.
    pub(crate) fn stream(events: &str) -> Self {
        Self {
            head: "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n".to_owned(),
            ..Self::status(200, events)
        }
    }

    /// A streamed answer of an OpenAI-compatible server.
    pub(crate) fn openai(text: &str, prompt: u64, output: u64) -> Self {
        Self::openai_cached(text, prompt, 0, output)
    }

    /// The same, with so much of the prompt read from the cache.
    pub(crate) fn openai_cached(text: &str, prompt: u64, read: u64, output: u64) -> Self {
        let text = serde_json::Value::from(text);
        let first = r#"{"model":"test-model-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
        Self::stream(&format!(
            "data: {first}\n\n\
             data: {{\"model\":\"test-model-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n\
             data: {{\"model\":\"test-model-1\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
             data: {{\"model\":\"test-model-1\",\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{output},\"prompt_tokens_details\":{{\"cached_tokens\":{read}}}}}}}\n\n\
             data: [DONE]\n\n"
        ))
    }

    /// A streamed answer of Anthropic's API; uncached, written, read and output tokens.
    pub(crate) fn anthropic(text: &str, usage: [u64; 4]) -> Self {
        let text = serde_json::Value::from(text);
        let [input, written, read, output] = usage;
        Self::stream(&format!(
            "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"model\":\"test-model-1\",\"usage\":{{\"input_tokens\":{input},\"cache_creation_input_tokens\":{written},\"cache_read_input_tokens\":{read},\"output_tokens\":1}}}}}}\n\n\
             event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}\n\n\
             event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"output_tokens\":{output}}}}}\n\n\
             event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
        ))
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.head = format!("{}{name}: {value}\r\n", self.head);
        self
    }

    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    pub(crate) fn stalled_after(mut self, bytes: usize) -> Self {
        self.stall = Some(bytes);
        self
    }

    pub(crate) fn dribbling(mut self, bytes: usize, pause: Duration) -> Self {
        self.dribble = Some((bytes, pause));
        self
    }

    /// All of it as it goes over the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let head = format!(
            "{}Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.head,
            self.body.len()
        );
        [head.as_bytes(), self.body.as_bytes()].concat()
    }

    fn send(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let bytes = self.bytes();
        if let Some((at_once, pause)) = self.dribble {
            for piece in bytes.chunks(at_once) {
                stream.write_all(piece)?;
                stream.flush()?;
                std::thread::sleep(pause);
            }
            return stream.shutdown(Shutdown::Both);
        }
        match (self.cut, self.stall) {
            (Some(at), _) => stream.write_all(&bytes[..at.min(bytes.len())])?,
            (None, Some(at)) => {
                stream.write_all(&bytes[..at.min(bytes.len())])?;
                // Ends when the client gives up.
                stream.set_read_timeout(Some(Duration::from_secs(20)))?;
                drop(stream.read(&mut [0]));
            }
            (None, None) => stream.write_all(&bytes)?,
        }
        stream.flush()?;
        stream.shutdown(Shutdown::Both)
    }
}

/// A request as it came.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether it got a success.
    pub(crate) was_answered: bool,
    pub(crate) came: Instant,
}

/// What is answered to the request of this number, by its head and its body.
type Play = Box<dyn Fn(usize, &str, &str) -> Reply + Send + Sync>;

/// Requests that have come and are not answered yet.
#[derive(Default)]
struct UnderWay {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Stops listening when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    under_way: Arc<UnderWay>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Plays these replies in turn; the last one for ever.
    pub(crate) fn playing(replies: Vec<Reply>) -> Self {
        Self::start(
            Duration::ZERO,
            Box::new(move |at, _, _| replies[at.min(replies.len() - 1)].clone()),
            0,
        )
    }

    /// Refuses so many requests, whichever they are, and answers all others after `latency`.
    pub(crate) fn storming(refusals: usize, latency: Duration) -> Self {
        Self::start(
            latency,
            Box::new(move |at, _, _| {
                if at < refusals {
                    Reply::status(429, r#"{"error":{"type":"rate_limit_error"}}"#)
                } else {
                    Reply::openai("an answer", 100, 5)
                }
            }),
            0,
        )
    }

    /// Answers what `play` makes of the body.
    pub(crate) fn answering(play: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::slow(Duration::ZERO, play)
    }

    /// The same, each answer after `latency`.
    pub(crate) fn slow(
        latency: Duration,
        play: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(latency, Box::new(move |_, _, body| play(body)), 0)
    }

    /// Answers what `play` makes of the head and the body.
    pub(crate) fn routing(play: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Duration::ZERO, Box::new(move |_, head, body| play(head, body)), 0)
    }

    /// Answers the first request, and no other until so many have been under way at once; after ten
    /// seconds it gives up waiting.
    pub(crate) fn holding(
        until: usize,
        play: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(Duration::ZERO, Box::new(move |_, _, body| play(body)), until)
    }

    fn start(latency: Duration, play: Play, until: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, stopped, play) = (asked.clone(), stop.clone(), Arc::new(play));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let under_way = Arc::<UnderWay>::default();
        let watched = under_way.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let (Ok(stream), kept, play) = (stream, kept.clone(), play.clone()) else {
                    continue;
                };
                let under_way = watched.clone();
                std::thread::spawn(move || {
                    // A client that goes away is its own business.
                    drop(serve(stream, latency, &kept, &under_way, &**play, until));
                });
            }
        });
        Self { address, asked, connections, under_way, stop, thread: Some(thread) }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// How many requests were under way at once, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.under_way.most.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn serve(
    stream: TcpStream,
    latency: Duration,
    kept: &Mutex<Vec<Asked>>,
    under_way: &UnderWay,
    play: &(dyn Fn(usize, &str, &str) -> Reply + Send + Sync),
    until: usize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, length)| length.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let now = under_way.now.fetch_add(1, Ordering::SeqCst) + 1;
    under_way.most.fetch_max(now, Ordering::SeqCst);
    let (reply, is_first) = {
        let mut kept = kept.lock().unwrap();
        let is_first = kept.is_empty();
        let reply = play(kept.len(), &head, &body);
        kept.push(Asked {
            head,
            body,
            was_answered: reply.head.starts_with("HTTP/1.1 200"),
            came: Instant::now(),
        });
        (reply, is_first)
    };
    let waited = Instant::now();
    while !is_first
        && under_way.most.load(Ordering::SeqCst) < until
        && waited.elapsed() < Duration::from_secs(10)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    if latency > Duration::ZERO {
        std::thread::sleep(latency);
    }
    // Before the client has the answer: what it sends next is not under way with this.
    under_way.now.fetch_sub(1, Ordering::SeqCst);
    reply.send(stream)
}
