//! The state that all requests through the proxy share, and which of them are passed on.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use reqwest::Url;
use tokio::sync::{mpsc, oneshot, watch};

use super::relay::{HEADERS, cell_of};
use super::under_way::UnderWay;
use super::{ExchangeLog, Failure, ProxyError, is_named};
use crate::live::{Live, LiveCell};
use crate::model::http::cause;
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

/// Bytes of a request at most. Providers take 32 MB, with files in it 100 MB.
const LONGEST_REQUEST: usize = 128 << 20;

/// The body of an answer: as the API sends it, or the proxy's own words.
pub(super) type Piped = Either<Pieces, Full<Bytes>>;

/// The pieces of an answer, as they come from the API. The request is under way until they are with the client.
pub(super) struct Pieces {
    pub(super) pieces: mpsc::Receiver<io::Result<Bytes>>,
    pub(super) _under_way: watch::Receiver<bool>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.pieces.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Makes a client that talks to the API and keeps so many connections: no redirects, nothing unpacked, no time limit but
/// for the connection.
///
/// A request that finds its connection closed before a byte of it was written goes out on a new one, which the client
/// does by itself. No other request is repeated: the API may have processed it. So that an API rarely closes a
/// connection just as it is used again, none is kept for longer than 4 seconds without a request: Node.js and uvicorn
/// close theirs after 5.
pub(super) fn client(kept: usize) -> Result<reqwest::Client, ProxyError> {
    // Where one is installed already, it serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(4))
        .pool_max_idle_per_host(kept)
        .build()
        .map_err(ProxyError::Client)
}

/// State that all requests share.
#[derive(Debug)]
pub(super) struct PassState<L> {
    /// Keeps its connections.
    pub(super) client: reqwest::Client,
    /// Takes a new connection for each request.
    pub(super) careful: reqwest::Client,
    /// Whether the API has closed a connection instead of answering: it may close others without a word.
    pub(super) is_careful: AtomicBool,
    pub(super) address: SocketAddr,
    pub(super) upstream: Url,
    pub(super) now: fn() -> Timestamp,
    pub(super) log: Mutex<L>,
    /// The strategies, if requests pass through any.
    pub(super) live: Option<Arc<Live>>,
    /// How the log failed, if it did.
    pub(super) error: watch::Sender<Option<io::Error>>,
    /// Whether requests under way are to end; each of them listens until it has ended.
    pub(super) is_stopped: watch::Sender<bool>,
}

impl<L: ExchangeLog + 'static> PassState<L> {
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
        let log = pass.log.into_inner();
        match pass.error.send_replace(None) {
            Some(error) => Err(ProxyError::Log(error)),
            None => Ok(log.unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Passes one request on. That goes on by itself where the client goes away: what became of it is kept all the same.
    pub(super) async fn on(self: Arc<Self>, request: Request<Incoming>) -> Response<Piped> {
        let (client, answered) = oneshot::channel();
        tokio::spawn(UnderWay::begin(self).run(request, client));
        answered.await.unwrap_or_else(|_| refused(StatusCode::BAD_GATEWAY, "the proxy failed"))
    }

    /// The client for the next request.
    pub(super) fn client(&self) -> &reqwest::Client {
        if self.is_careful.load(Ordering::Relaxed) { &self.careful } else { &self.client }
    }

    /// The API was not reached, or did not answer.
    pub(super) fn unanswered(&self, error: &reqwest::Error) -> Failure {
        let problem = if error.is_connect() {
            "the API cannot be reached"
        } else {
            self.is_careful.store(true, Ordering::Relaxed);
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
    pub(super) fn place(&self, parts: &Parts) -> Result<(Url, LiveCell), Denial> {
        let (cell, path) = match &self.live {
            Some(live) => cell_of(live, &parts.uri, &parts.headers)
                .map_err(|why| (StatusCode::BAD_REQUEST, why))?,
            None => (LiveCell::default(), parts.uri.path().to_owned()),
        };
        below(&self.upstream, &path, parts.uri.query()).map(|url| (url, cell))
    }

    /// Tells the log something.
    pub(super) fn tell<T>(&self, tell: impl FnOnce(&mut L) -> T) -> T {
        tell(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Why a request is not passed on.
pub(super) type Denial = (StatusCode, &'static str);

/// Refuses what a web page sends: it could write into the log, and read what the API says to the agent.
pub(super) fn check(address: SocketAddr, parts: &Parts) -> Result<(), Denial> {
    const ANOTHER_HOST: &str = "the request is for another host: let the agent use the printed address, or listen at `0.0.0.0`";
    const WEB_PAGE: &str = "it comes from a page of the web, which may not use this address";
    if address.ip().is_loopback() && !is_named(address, &parts.headers) {
        return Err((StatusCode::MISDIRECTED_REQUEST, ANOTHER_HOST));
    }
    if parts.headers.get_all(ORIGIN).iter().all(is_of_this_machine) {
        Ok(())
    } else {
        Err((StatusCode::FORBIDDEN, WEB_PAGE))
    }
}

fn is_of_this_machine(header: &HeaderValue) -> bool {
    let origin = header.to_str().ok().and_then(|text| Url::parse(text).ok());
    origin.is_some_and(|origin| match origin.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback()),
        None => false,
    })
}

/// The address that a request is passed on to: below the base URL, so that no path leaves it.
fn below(upstream: &Url, path: &str, query: Option<&str>) -> Result<Url, Denial> {
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    // A URL reads a backslash as a slash: another path would be asked for.
    if path.contains('\\') || plain.split(['/', '\\']).any(|part| part == "..") {
        let why = "a path with `..` or a backslash is not passed on";
        return Err((StatusCode::BAD_REQUEST, why));
    }
    let mut url = upstream.clone();
    let base = upstream.path().trim_end_matches('/');
    url.set_path(&format!("{base}{path}"));
    url.set_query(query);
    Ok(url)
}

pub(super) async fn body_of(body: Incoming) -> Result<Bytes, Denial> {
    const TOO_LONG: Denial = (StatusCode::PAYLOAD_TOO_LARGE, "the request is longer than 128 MiB");
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
pub(super) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let values = headers.get_all("connection").iter().filter_map(|value| value.to_str().ok());
    let parts = values.flat_map(|value| value.split(','));
    let named: Vec<String> = parts.map(|name| name.trim().to_ascii_lowercase()).collect();
    let mut kept = headers.clone();
    for name in headers.keys() {
        let own = name.as_str();
        let ours = NOT_PASSED_ON.contains(&own) || HEADERS.contains(&own);
        if ours || named.iter().any(|named| named == own) {
            kept.remove(name);
        }
    }
    kept
}

/// Whether a body is packed, so that it cannot be read here.
pub(super) fn is_packed(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok());
    encoding.is_some_and(|encoding| !encoding.trim().eq_ignore_ascii_case("identity"))
}

/// An error of the proxy itself, in the shape of both APIs' errors.
pub(super) fn refused(status: StatusCode, why: &str) -> Response<Piped> {
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
