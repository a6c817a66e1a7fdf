//! One request through the proxy: passed on as it came, answered as it was answered, kept.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use reqwest::{Client, Url};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, watch};

use super::relay::{Front, HEADERS, Relayed};
use super::{Exchange, Log, ProxyError, is_named};
use crate::live::LiveCell;
use crate::session::redact::value_without_keys;
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

/// Why an exchange has no end.
const STOPPED: &str = "the proxy was stopped";

/// Bytes of a request at most. Providers take 32 MB, with files in it 100 MB.
const LONGEST_REQUEST: usize = 128 << 20;

/// Bytes of an answer that are kept at most; a longer one is passed on all the same.
const LONGEST_ANSWER: usize = 64 << 20;

/// Bytes of a refusal that are read at most.
const LONGEST_REFUSAL: usize = 16 << 20;

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
        client: Client,
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
            None => Ok(pass.log.into_inner()),
        }
    }

    /// Passes one request on.
    pub(super) async fn on(self: Arc<Self>, request: Request<Incoming>) -> Response<Piped> {
        let mut stopping = self.is_stopped.subscribe();
        let at = (self.now)();
        let (parts, body) = request.into_parts();
        let place = check(self.address, &parts).and_then(|()| self.place(&parts));
        let read = match place {
            Ok((url, cell)) => body_of(body).await.map(|body| (url, cell, body)),
            Err(refusal) => Err(refusal),
        };
        let (url, cell, body) = match read {
            Ok(read) => read,
            Err((status, why)) => {
                self.keep(|log| log.failed(at, why)).await;
                return refused(status, why);
            }
        };
        let api = Api::of_path(parts.uri.path()).filter(|_| parts.method == Method::POST);
        let asked: Option<Box<RawValue>> = api.and_then(|_| serde_json::from_slice(&body).ok());
        let is_packed_request = is_packed(&parts.headers);
        let mut headers = passed_on(&parts.headers);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (mut body, mut relayed) = (body, None);
        if let Some(front) = &self.front {
            // The length is that of the body that is sent.
            headers.remove(CONTENT_LENGTH);
            (body, relayed) = Relayed::send(front, cell, api, &body, self.now).await;
        }
        let mut answer = loop {
            let request = self.client.request(parts.method.clone(), url.clone());
            let sent = request.headers(headers.clone()).body(body).send();
            let sent = tokio::select! {
                sent = sent => sent.map_err(|error| if error.is_connect() {
                    "the API cannot be reached"
                } else {
                    "the API did not answer"
                }),
                () = stopped(&mut stopping) => Err(STOPPED),
            };
            let mut answer = match sent {
                Ok(answer) => answer,
                Err(why) => {
                    if let Some(relayed) = &relayed {
                        relayed.answered(None, (self.now)());
                    }
                    self.keep(|log| log.failed(at, why)).await;
                    return refused(StatusCode::BAD_GATEWAY, why);
                }
            };
            let is_error = answer.status().is_client_error() || answer.status().is_server_error();
            let Some(relayed) = relayed.as_mut().filter(|_| is_error) else {
                break answer;
            };
            let status = answer.status();
            let mut said = Vec::new();
            let is_whole = loop {
                match answer.chunk().await {
                    Ok(Some(piece)) if said.len() + piece.len() <= LONGEST_REFUSAL => {
                        said.extend_from_slice(&piece);
                    }
                    Ok(None) => break true,
                    Ok(Some(_)) | Err(_) => break false,
                }
            };
            if !is_whole {
                relayed.answered(None, (self.now)());
                self.keep(|log| log.failed(at, BROKE_OFF)).await;
                return refused(StatusCode::BAD_GATEWAY, BROKE_OFF);
            }
            if let Some(shorter) = relayed.again(status, &said).await {
                body = shorter;
                continue;
            }
            relayed.answered(None, (self.now)());
            let why = format!("the API answered with status {}", status.as_u16());
            self.keep(|log| log.failed(at, &why)).await;
            let mut response = Response::new(Piped::Right(Full::from(said)));
            *response.status_mut() = status;
            *response.headers_mut() = passed_on(answer.headers());
            response.headers_mut().remove(CONTENT_LENGTH);
            return response;
        };
        let status = answer.status();
        let is_stream = answer
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"));
        let is_packed_answer = is_packed(answer.headers());
        let mut response = Response::builder().status(status);
        if let Some(headers) = response.headers_mut() {
            *headers = passed_on(answer.headers());
        }
        let (mut pipe, pieces) = Channel::new(PIECES);
        let pass = self;
        tokio::spawn(async move {
            let mut assembly = api.map(|api| (api, Assembly::new(api, is_stream)));
            let mut received = 0;
            let ended = loop {
                let piece = tokio::select! {
                    piece = answer.chunk() => piece,
                    () = stopped(&mut stopping) => break Err(STOPPED),
                };
                match piece {
                    Ok(Some(piece)) => {
                        received += piece.len();
                        if let Some((_, assembly)) = &mut assembly
                            && received <= LONGEST_ANSWER
                        {
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
                Some(_) if received > LONGEST_ANSWER => {
                    Err("the answer is longer than 64 MiB".to_owned())
                }
                Some(_) if status.is_success() && is_packed_answer => {
                    Err("the answer is packed, though it was asked for as it is".to_owned())
                }
                Some(request) if status.is_success() => {
                    let exchange = |response| Exchange {
                        at,
                        api,
                        request: value_without_keys(request),
                        response: value_without_keys(response),
                    };
                    let finish = || assembly.finish().map_err(|problem| problem.message());
                    // A client may leave when it has read the end of the answer, and not of the body.
                    let response = finish().or_else(|problem| ended.and(Err(problem)));
                    response.map(exchange).map_err(str::to_owned)
                }
                Some(_) => Err(format!("the API answered with status {}", status.as_u16())),
                None if is_packed_request => {
                    Err("the request is packed: let the client send it as it is".to_owned())
                }
                None => Err("the request is no JSON".to_owned()),
            });
            if let Some(relayed) = &relayed {
                let response = kept.as_ref().and_then(|kept| kept.as_ref().ok());
                let response = response.map(|exchange| exchange.response.get());
                relayed.answered(response, (pass.now)());
            }
            match kept {
                Some(Ok(exchange)) => pass.keep(|log| log.answered(&exchange)).await,
                Some(Err(why)) => pass.keep(|log| log.failed(at, &why)).await,
                None => {}
            }
            if let Err(why @ (BROKE_OFF | STOPPED)) = ended {
                pipe.abort(io::Error::other(why));
            } else {
                drop(pipe);
            }
            // Nothing of this request holds the log once it is no longer under way.
            drop(pass);
            drop(stopping);
        });
        response
            .body(Piped::Left(pieces))
            .unwrap_or_else(|_| refused(StatusCode::BAD_GATEWAY, "the answer cannot be passed on"))
    }

    /// Where a request is passed on to, and the cell that it belongs to.
    fn place(&self, parts: &Parts) -> Result<(Url, LiveCell), Refusal> {
        let (cell, path) = match &self.front {
            Some(front) => front.cell_of(&parts.uri, &parts.headers)?,
            None => (LiveCell::default(), parts.uri.path().to_owned()),
        };
        below(&self.upstream, &path, parts.uri.query()).map(|url| (url, cell))
    }

    async fn keep(&self, write: impl FnOnce(&mut L) -> io::Result<()>) {
        let mut log = self.log.lock().await;
        if let Err(error) = write(&mut log) {
            self.error.send_modify(|first| {
                first.get_or_insert(error);
            });
        }
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
fn refused(status: StatusCode, why: &'static str) -> Response<Piped> {
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
