//! One request through the proxy: passed on as it came, answered as it was answered, kept.

use std::borrow::Cow;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use reqwest::Url;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::relay::{Front, HEADERS, Relayed};
use super::{Exchange, Failure, LAST_WORDS, Log, ProxyError, is_named};
use crate::live::LiveCell;
use crate::model::http::cause;
use crate::session::redact::value_without_keys;
use crate::session::wire::stream::{Api, Assembly, Problem};
use crate::units::Timestamp;

/// Headers that belong to one connection; and what would have an answer packed, so that it could
/// not be kept.
const NOT_PASSED_ON: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "accept-encoding",
];

/// An answer that is not whole.
const BROKE_OFF: Failure = Failure::Other(Cow::Borrowed("the answer broke off"));

/// An exchange that has no end.
const STOPPED: Failure = Failure::Other(Cow::Borrowed("the proxy was stopped"));

/// Bytes of a request at most. Providers take 32 MB, with files in it 100 MB.
const LONGEST_REQUEST: usize = 128 << 20;

/// Bytes of an answer that are kept at most; a longer one is passed on all the same.
const LONGEST_ANSWER: usize = 64 << 20;

/// Bytes of a refusal that are read at most.
const LONGEST_REFUSAL: usize = 16 << 20;

/// Pieces of an answer that wait for a slow client.
const PIECES: usize = 64;

/// The body of an answer: as the API sends it, or the proxy's own words.
pub(super) type Piped = Either<Pieces, Full<Bytes>>;

/// The pieces of an answer, as they come from the API.
pub(super) struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Makes the client that talks to the API: no redirects, nothing unpacked, no time limit but for
/// the connection.
///
/// Connections are kept and used again. A request that finds its connection closed before a byte of it was written
/// goes out on a new one, which the client does by itself. No other request is repeated: the API may have processed
/// it. So that an API rarely closes a connection just as it is used again, none is kept for longer than 4 seconds
/// without a request: Node.js and uvicorn close theirs after 5.
pub(super) fn client() -> Result<reqwest::Client, ProxyError> {
    // Where one is installed already, it serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(4))
        .build()
        .map_err(ProxyError::Client)
}

/// State that all requests share.
#[derive(Debug)]
pub(super) struct Pass<L> {
    client: reqwest::Client,
    address: SocketAddr,
    upstream: Url,
    now: fn() -> Timestamp,
    log: Mutex<L>,
    /// The strategies, if requests pass through any.
    front: Option<Arc<Front>>,
    /// How the log failed, if it did.
    error: watch::Sender<Option<io::Error>>,
    /// Whether requests under way are to end; each of them listens until it has ended.
    is_stopped: watch::Sender<bool>,
}

impl<L: Log + 'static> Pass<L> {
    pub(super) fn new(
        client: reqwest::Client,
        address: SocketAddr,
        upstream: Url,
        now: fn() -> Timestamp,
        log: L,
        front: Option<Arc<Front>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            address,
            upstream,
            now,
            log: Mutex::new(log),
            front,
            error: watch::Sender::new(None),
            is_stopped: watch::Sender::new(false),
        })
    }

    /// Waits until no request is under way.
    pub(super) async fn quiet(&self) {
        self.is_stopped.closed().await;
    }

    /// Waits until the log fails: nothing more can be kept.
    pub(super) async fn broken(&self) {
        drop(self.error.subscribe().wait_for(Option::is_some).await);
    }

    /// Ends the requests under way: none is waited for any longer.
    pub(super) fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    /// Returns the log once no request writes to it; each has been told to stop, and no connection is left.
    pub(super) async fn finish(mut self: Arc<Self>) -> Result<L, ProxyError> {
        self.quiet().await;
        let pass = loop {
            match Arc::try_unwrap(self) {
                Ok(pass) => break pass,
                Err(shared) => self = shared,
            }
            tokio::task::yield_now().await;
        };
        match pass.error.send_replace(None) {
            Some(error) => Err(ProxyError::Log(error)),
            None => Ok(pass
                .log
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Passes one request on. That goes on by itself where the client goes away: what became of it is kept all the same.
    pub(super) async fn on(self: Arc<Self>, request: Request<Incoming>) -> Response<Piped> {
        let (client, answered) = oneshot::channel();
        let exchange = UnderWay {
            at: (self.now)(),
            came: Instant::now(),
            waited: Duration::ZERO,
            relayed: None,
            stopping: self.is_stopped.subscribe(),
            pass: self,
        };
        tokio::spawn(exchange.run(request, client));
        let answer = answered.await;
        answer.unwrap_or_else(|_| refused(StatusCode::BAD_GATEWAY, "the proxy failed"))
    }

    /// The API was not reached, or did not answer.
    fn unanswered(&self, error: &reqwest::Error) -> Failure {
        let problem = if error.is_connect() {
            "the API cannot be reached"
        } else {
            "the API did not answer"
        };
        // A certificate's problem names the host.
        let host = self.upstream.host_str().unwrap_or_default();
        Failure::Connection {
            address: self.upstream.origin().ascii_serialization(),
            problem,
            cause: cause(error).replace(host, "the host"),
        }
    }

    /// Where a request is passed on to, and the cell that it belongs to.
    fn place(&self, parts: &Parts) -> Result<(Url, LiveCell), Refusal> {
        let (cell, path) = match &self.front {
            Some(front) => front.cell_of(&parts.uri, &parts.headers)?,
            None => (LiveCell::default(), parts.uri.path().to_owned()),
        };
        below(&self.upstream, &path, parts.uri.query()).map(|url| (url, cell))
    }

    /// Writes to the log.
    pub(super) fn keep(&self, write: impl FnOnce(&mut L) -> io::Result<()>) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write(&mut log) {
            self.error.send_modify(|first| {
                first.get_or_insert(error);
            });
        }
    }
}

/// A request as it is passed on.
struct Asked {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    /// The API, where an answer is kept.
    api: Option<Api>,
    is_packed: bool,
    /// The request as it is kept: without keys; `None` where it is no JSON. Strategies keep their own.
    kept: Option<JoinHandle<Option<Box<RawValue>>>>,
}

/// A request between its first byte and the end of its answer.
struct UnderWay<L> {
    /// When it came.
    at: Timestamp,
    came: Instant,
    /// How much of the time since then was the API's.
    waited: Duration,
    relayed: Option<Relayed>,
    stopping: watch::Receiver<bool>,
    pass: Arc<Pass<L>>,
}

/// An end without an answer of the API that goes on to the client as it comes: why, and what the client hears.
type Unanswered = (Failure, Response<Piped>);

/// Takes the answer's head, and hears when the client goes away.
type Client = oneshot::Sender<Response<Piped>>;

impl<L: Log + 'static> UnderWay<L> {
    async fn run(mut self, request: Request<Incoming>, mut client: Client) {
        let sent = match self.read(request).await {
            Ok(mut asked) => {
                let answer = self.send(&mut asked, &mut client).await;
                answer.map(|answer| (asked, answer))
            }
            Err((status, why)) => Err((Failure::Other(why.into()), refused(status, why))),
        };
        match sent {
            Ok((asked, answer)) => self.relay(asked, answer, client).await,
            Err((failure, response)) => {
                self.failed(&failure, None);
                drop(client.send(response));
            }
        }
    }

    /// Keeps that there was no answer, or as much of one as came.
    fn failed(&self, failure: &Failure, response: Option<&str>) {
        if let Some(relayed) = &self.relayed {
            relayed.failed(response, (self.pass.now)());
        }
        self.pass.keep(|log| log.failed(self.at, failure));
    }

    /// Reads the request, and lets the strategy change it.
    async fn read(&mut self, request: Request<Incoming>) -> Result<Asked, Refusal> {
        let (parts, body) = request.into_parts();
        check(self.pass.address, &parts)?;
        let (url, cell) = self.pass.place(&parts)?;
        let body = body_of(body).await?;
        let mut asked = Asked {
            url,
            headers: passed_on(&parts.headers),
            body,
            api: Api::of_path(parts.uri.path()).filter(|_| parts.method == Method::POST),
            is_packed: is_packed(&parts.headers),
            kept: None,
            method: parts.method,
        };
        let identity = HeaderValue::from_static("identity");
        asked.headers.insert(ACCEPT_ENCODING, identity);
        if let Some(front) = &self.pass.front {
            // The length is that of the body that is sent.
            asked.headers.remove(CONTENT_LENGTH);
            let sent = Relayed::send(front, cell, asked.api, &asked.body, self.pass.now);
            tokio::select! {
                (body, relayed) = sent => (asked.body, self.relayed) = (body, relayed),
                () = stopped(&mut self.stopping) => {}
            }
        }
        if self.relayed.is_none() && asked.api.is_some() {
            // While the API works on it.
            let body = asked.body.clone();
            asked.kept = Some(tokio::task::spawn_blocking(move || {
                serde_json::from_slice(&body).ok().map(value_without_keys)
            }));
        }
        Ok(asked)
    }

    /// Sends the request, shorter ones too where it is refused as too long and the strategy has one.
    async fn send(
        &mut self,
        asked: &mut Asked,
        client: &mut Client,
    ) -> Result<reqwest::Response, Unanswered> {
        loop {
            let answer = self.send_once(asked, client).await?;
            let status = answer.status();
            let is_error = status.is_client_error() || status.is_server_error();
            let Some(relayed) = self.relayed.as_mut().filter(|_| is_error) else {
                return Ok(answer);
            };
            let mut headers = passed_on(answer.headers());
            let said = refusal(answer).await.ok_or_else(|| ended(BROKE_OFF))?;
            if let Some(shorter) = relayed.again(status, &said).await {
                asked.body = shorter;
                continue;
            }
            let failure = Failure::Other(status_words(status).into());
            let mut response = Response::new(Piped::Right(Full::from(said)));
            *response.status_mut() = status;
            headers.remove(CONTENT_LENGTH);
            *response.headers_mut() = headers;
            return Err((failure, response));
        }
    }

    async fn send_once(
        &mut self,
        asked: &Asked,
        client: &mut Client,
    ) -> Result<reqwest::Response, Unanswered> {
        let request = self
            .pass
            .client
            .request(asked.method.clone(), asked.url.clone());
        let request = request
            .headers(asked.headers.clone())
            .body(asked.body.clone());
        let begun = Instant::now();
        let sent = tokio::select! {
            biased;
            // Nothing is sent for a client that went away while the strategy worked.
            () = client.closed() => Err(Failure::ClientLeft),
            () = stopped(&mut self.stopping) => Err(STOPPED),
            sent = request.send() => sent.map_err(|error| self.pass.unanswered(&error)),
        };
        self.waited += begun.elapsed();
        sent.map_err(ended)
    }

    /// Passes the answer on as it comes, and keeps it.
    async fn relay(mut self, asked: Asked, mut answer: reqwest::Response, client: Client) {
        let status = answer.status();
        let kind = answer.headers().get(CONTENT_TYPE);
        let is_stream = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"));
        let is_packed_answer = is_packed(answer.headers());
        let (pipe, pieces) = mpsc::channel(PIECES);
        let mut response = Response::new(Piped::Left(Pieces(pieces)));
        *response.status_mut() = status;
        *response.headers_mut() = passed_on(answer.headers());
        let added = self.came.elapsed().saturating_sub(self.waited);
        // Where nobody takes it, the pipe is closed.
        drop(client.send(response));
        let mut assembly = asked.api.map(|api| Assembly::new(api, is_stream));
        let (mut received, mut patience) = (0, None);
        let ended = loop {
            let piece = tokio::select! {
                piece = answer.chunk() => piece,
                () = stopped(&mut self.stopping) => break Err(STOPPED),
                // The API's last words say what is billed.
                () = pipe.closed(), if patience.is_none() => {
                    patience = Some(Instant::now() + LAST_WORDS);
                    continue;
                }
                () = over(patience) => break Err(Failure::ClientLeft),
            };
            match piece {
                Ok(Some(piece)) => {
                    received += piece.len();
                    if let Some(assembly) = &mut assembly
                        && received <= LONGEST_ANSWER
                    {
                        assembly.push(&piece);
                    }
                    drop(pipe.send(Ok(piece)).await);
                }
                Ok(None) => break Ok(()),
                Err(_) => break Err(BROKE_OFF),
            }
        };
        let broken = match &ended {
            Err(failure @ Failure::Other(_)) => Some(io::Error::other(failure.to_string())),
            _ => None,
        };
        if let (Some(api), Some(assembly)) = (asked.api, assembly) {
            let is_kept_apart = self.relayed.is_some();
            let request = match asked.kept {
                Some(kept) => kept.await.ok().flatten(),
                None => None,
            };
            let odd = match () {
                () if asked.is_packed => {
                    "the request is packed: let the client send it as it is".into()
                }
                () if request.is_none() && !is_kept_apart => "the request is no JSON".into(),
                () if received > LONGEST_ANSWER => "the answer is longer than 64 MiB".into(),
                () if !status.is_success() => status_words(status).into(),
                () if is_packed_answer => {
                    "the answer is packed, though it was asked for as it is".into()
                }
                () => Cow::default(),
            };
            let (response, problem) = assembly.so_far();
            let response = response.map(value_without_keys);
            let problem = problem.or_else(|| reported(response.as_ref()?.get()));
            let failure = match problem {
                _ if !odd.is_empty() => Some(Failure::Other(odd)),
                Some(Problem::Reported(event)) => {
                    Some(Failure::Other(reported_words(&event).into()))
                }
                // A client may leave when it has read the end of the answer, and not of the body.
                Some(problem) => {
                    let odd = Failure::Other(problem.message().into());
                    Some(ended.err().unwrap_or(odd))
                }
                None => None,
            };
            match (failure, response) {
                (None, Some(response)) => self.answered(&Exchange {
                    at: self.at,
                    api,
                    request,
                    response,
                    added,
                }),
                (failure, response) => {
                    let response = response.as_ref().map(|response| response.get());
                    self.failed(&failure.unwrap_or(BROKE_OFF), response);
                }
            }
        }
        // The client hears of the end only when it is kept: who stops the proxy then loses nothing.
        if let Some(error) = broken {
            drop(pipe.send(Err(error)).await);
        }
    }

    /// Keeps the answer.
    fn answered(&self, exchange: &Exchange) {
        if let Some(relayed) = &self.relayed {
            relayed.answered(exchange.response.get(), (self.pass.now)());
        }
        self.pass.keep(|log| log.answered(exchange));
    }
}

/// The whole body of a refusal; `None` where it broke off or is too long.
async fn refusal(mut answer: reqwest::Response) -> Option<Vec<u8>> {
    let mut said = Vec::new();
    while let Some(piece) = answer.chunk().await.ok()? {
        if said.len() + piece.len() > LONGEST_REFUSAL {
            return None;
        }
        said.extend_from_slice(&piece);
    }
    Some(said)
}

/// The error that a whole answer reports, though its status is one of success.
fn reported(response: &str) -> Option<Problem> {
    let answer = response.contains("\"error\"");
    let answer: Value = answer.then(|| serde_json::from_str(response).ok())??;
    let is_error = answer["type"] == "error" || answer.get("error").is_some_and(|it| !it.is_null());
    is_error.then_some(Problem::Reported(answer))
}

/// A reported error with its type. Its own words are left out: they may repeat what was asked, or a key.
fn reported_words(event: &Value) -> String {
    let errors = [&event["error"], &event["response"]["error"], event];
    let mut names = errors
        .into_iter()
        .flat_map(|it| [&it["type"], &it["code"], &it["status"]]);
    let kind = names.find_map(|name| name.as_str().filter(|name| is_word(name)));
    let kind = kind.map(|kind| format!(": {kind}")).unwrap_or_default();
    format!("the API reported an error in its answer{kind}")
}

/// Whether a name is one word, as those of errors are.
fn is_word(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 60 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn status_words(status: StatusCode) -> String {
    format!("the API answered with status {}", status.as_u16())
}

/// Ends with an error of the proxy's own.
fn ended(failure: Failure) -> Unanswered {
    let response = refused(StatusCode::BAD_GATEWAY, &failure.to_string());
    (failure, response)
}

/// Waits until this moment, if there is one.
async fn over(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    drop(stopping.wait_for(|is_stopped| *is_stopped).await);
}

/// Why a request is not passed on.
pub(super) type Refusal = (StatusCode, &'static str);

/// Refuses what a web page sends: it could write into the log, and read what the API says to the agent.
fn check(address: SocketAddr, parts: &Parts) -> Result<(), Refusal> {
    const ANOTHER_HOST: &str = "the request is for another host: let the agent use the printed address, or listen at `0.0.0.0`";
    const WEB_PAGE: &str = "it comes from a page of the web, which may not use this address";
    if address.ip().is_loopback() && !is_named(address, &parts.headers) {
        return Err((StatusCode::MISDIRECTED_REQUEST, ANOTHER_HOST));
    }
    let is_of_this_machine = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|it| Url::parse(it).ok());
        origin.is_some_and(|origin| match origin.host_str() {
            Some("localhost" | "[::1]") => true,
            Some(host) => host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback()),
            None => false,
        })
    };
    if parts.headers.get_all(ORIGIN).iter().all(is_of_this_machine) {
        Ok(())
    } else {
        Err((StatusCode::FORBIDDEN, WEB_PAGE))
    }
}

/// The address that a request is passed on to: below the base URL, so that no path leaves it.
fn below(upstream: &Url, path: &str, query: Option<&str>) -> Result<Url, Refusal> {
    let plain = path.to_ascii_lowercase().replace("%2e", ".");
    let plain = plain.replace("%2f", "/").replace("%5c", "/");
    if plain.split(['/', '\\']).any(|part| part == "..") {
        return Err((StatusCode::BAD_REQUEST, "a path with `..` is not passed on"));
    }
    let mut url = upstream.clone();
    let base = upstream.path().trim_end_matches('/');
    url.set_path(&format!("{base}{path}"));
    url.set_query(query);
    Ok(url)
}

async fn body_of(body: Incoming) -> Result<Bytes, Refusal> {
    const TOO_LONG: Refusal = (
        StatusCode::PAYLOAD_TOO_LARGE,
        "the request is longer than 128 MiB",
    );
    if body.size_hint().lower() > LONGEST_REQUEST as u64 {
        return Err(TOO_LONG);
    }
    match Limited::new(body, LONGEST_REQUEST).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(TOO_LONG),
        Err(_) => Err((StatusCode::BAD_REQUEST, "the request broke off")),
    }
}

/// The headers without those that belong to the connection, named by it included.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all("connection").iter();
    let named = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let named: Vec<String> = named.map(|name| name.trim().to_ascii_lowercase()).collect();
    let is_passed_on = |name: &str| {
        !NOT_PASSED_ON.contains(&name)
            && !HEADERS.contains(&name)
            && !named.iter().any(|it| it == name)
    };
    let mut kept = headers.clone();
    for name in headers.keys() {
        if !is_passed_on(name.as_str()) {
            kept.remove(name);
        }
    }
    kept
}

/// Whether a body is packed, so that it cannot be read here.
fn is_packed(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING);
    let encoding = encoding.and_then(|encoding| encoding.to_str().ok());
    encoding.is_some_and(|encoding| !encoding.trim().eq_ignore_ascii_case("identity"))
}

/// An error of the proxy itself, in the shape of both APIs' errors.
fn refused(status: StatusCode, why: &str) -> Response<Piped> {
    let text = serde_json::json!({
        "type": "error",
        "error": { "type": "proxy_error", "message": format!("proctor: {why}") },
    });
    let mut response = Response::new(Piped::Right(Full::from(text.to_string())));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
