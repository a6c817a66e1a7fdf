//! One request through the proxy: passed on as it came, answered as it was answered, kept.

use std::io;
use std::sync::{Arc, OnceLock};

use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use reqwest::{Client, Url};
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use super::{Exchange, Log, ProxyError};
use crate::session::wire::stream::{Api, Assembly};
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

/// Why an answer is not whole.
const BROKE_OFF: &str = "the answer broke off";

/// Pieces of an answer that wait for a slow client.
const PIECES: usize = 64;

/// The body of an answer: as the API sends it, or the proxy's own words.
pub(super) type Piped = Either<Channel<Bytes, io::Error>, Full<Bytes>>;

/// Makes the client that talks to the API: no redirects, nothing unpacked, no time limit but for
/// the connection.
///
/// Every request has a connection of its own: the API may close one that is kept just as it is used
/// again, and a request that is lost so cannot be repeated, for the API may have processed it.
pub(super) fn client() -> Result<Client, ProxyError> {
    // Where one is installed already, it serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(std::time::Duration::from_secs(30))
        .pool_max_idle_per_host(0)
        .build()
        .map_err(ProxyError::Client)
}

/// State that all requests share.
#[derive(Debug)]
pub(super) struct Pass<L> {
    client: Client,
    upstream: Url,
    now: fn() -> Timestamp,
    log: Mutex<L>,
    /// How the log failed, if it did.
    error: OnceLock<io::Error>,
    /// Shared by the requests under way.
    busy: Arc<()>,
}

impl<L: Log + 'static> Pass<L> {
    pub(super) fn new(client: Client, upstream: Url, now: fn() -> Timestamp, log: L) -> Arc<Self> {
        Arc::new(Self {
            client,
            upstream,
            now,
            log: Mutex::new(log),
            error: OnceLock::new(),
            busy: Arc::new(()),
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        Arc::strong_count(&self.busy) > 1
    }

    /// Whether the log has failed: nothing more can be kept.
    pub(super) fn is_broken(&self) -> bool {
        self.error.get().is_some()
    }

    /// Returns the log once no request writes to it.
    pub(super) fn finish(self: Arc<Self>) -> Result<L, ProxyError> {
        let pass = Arc::into_inner(self).ok_or(ProxyError::UnderWay)?;
        match pass.error.into_inner() {
            Some(error) => Err(ProxyError::Log(error)),
            None => Ok(pass.log.into_inner()),
        }
    }

    /// Passes one request on.
    pub(super) async fn on(self: Arc<Self>, request: Request<Incoming>) -> Response<Piped> {
        let busy = self.busy.clone();
        let at = (self.now)();
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            self.keep(|log| log.failed(at, "the request broke off"))
                .await;
            return refused(StatusCode::BAD_REQUEST, "the request broke off");
        };
        let body = body.to_bytes();
        let api = Api::of_path(parts.uri.path()).filter(|_| parts.method == Method::POST);
        let asked: Option<Box<RawValue>> = api.and_then(|_| serde_json::from_slice(&body).ok());
        let mut url = self.upstream.clone();
        let base = self.upstream.path().trim_end_matches('/');
        url.set_path(&format!("{base}{}", parts.uri.path()));
        url.set_query(parts.uri.query());
        let is_packed_request = is_packed(&parts.headers);
        let mut headers = passed_on(&parts.headers);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let sent = self
            .client
            .request(parts.method, url)
            .headers(headers)
            .body(body)
            .send()
            .await;
        let mut answer = match sent {
            Ok(answer) => answer,
            Err(error) => {
                let why = if error.is_connect() {
                    "the API cannot be reached"
                } else {
                    "the API did not answer"
                };
                self.keep(|log| log.failed(at, why)).await;
                return refused(StatusCode::BAD_GATEWAY, why);
            }
        };
        let status = answer.status();
        let is_stream = answer
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let is_packed_answer = is_packed(answer.headers());
        let mut response = Response::builder().status(status);
        if let Some(headers) = response.headers_mut() {
            *headers = passed_on(answer.headers());
        }
        let (mut pipe, pieces) = Channel::new(PIECES);
        let pass = self;
        tokio::spawn(async move {
            let mut assembly = api.map(|api| (api, Assembly::new(api, is_stream)));
            let ended = loop {
                match answer.chunk().await {
                    Ok(Some(piece)) => {
                        if let Some((_, assembly)) = &mut assembly {
                            assembly.push(&piece);
                        }
                        if pipe.send_data(piece).await.is_err() {
                            break Err("the client went away");
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(_) => break Err(BROKE_OFF),
                }
            };
            // The client hears of the end only when it is kept: who stops the proxy then loses
            // nothing.
            let kept = assembly.map(|(api, assembly)| match asked {
                Some(_) if status.is_success() && is_packed_answer => {
                    Err("the answer is packed, though it was asked for as it is".to_owned())
                }
                Some(request) if status.is_success() => {
                    let exchange = |response| Exchange {
                        at,
                        api,
                        request,
                        response,
                    };
                    let finish = || assembly.finish().map_err(|problem| problem.message());
                    let response = ended.and_then(|()| finish());
                    response.map(exchange).map_err(str::to_owned)
                }
                Some(_) => Err(format!("the API answered with status {}", status.as_u16())),
                None if is_packed_request => {
                    Err("the request is packed: let the client send it as it is".to_owned())
                }
                None => Err("the request is no JSON".to_owned()),
            });
            match kept {
                Some(Ok(exchange)) => pass.keep(|log| log.answered(&exchange)).await,
                Some(Err(why)) => pass.keep(|log| log.failed(at, &why)).await,
                None => {}
            }
            if ended == Err(BROKE_OFF) {
                pipe.abort(io::Error::other(BROKE_OFF));
            } else {
                drop(pipe);
            }
            drop(busy);
        });
        response
            .body(Piped::Left(pieces))
            .unwrap_or_else(|_| refused(StatusCode::BAD_GATEWAY, "the answer cannot be passed on"))
    }

    async fn keep(&self, write: impl FnOnce(&mut L) -> io::Result<()>) {
        let mut log = self.log.lock().await;
        if let Err(error) = write(&mut log) {
            self.error.get_or_init(|| error);
        }
    }
}

/// The headers without those that belong to the connection, named by it included.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all("connection").iter();
    let named = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let named: Vec<String> = named.map(|name| name.trim().to_ascii_lowercase()).collect();
    let is_passed_on =
        |name: &str| !NOT_PASSED_ON.contains(&name) && !named.iter().any(|it| it == name);
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
fn refused(status: StatusCode, why: &'static str) -> Response<Piped> {
    let text = serde_json::json!({
        "type": "error",
        "error": { "type": "proxy_error", "message": format!("proctor record: {why}") },
    });
    let mut response = Response::new(Piped::Right(Full::from(text.to_string())));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
