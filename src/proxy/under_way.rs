//! One exchange: a request that is passed on, and its answer, which is passed on as it comes and kept.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use reqwest::Url;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::pass::{
    Denial, PassState, Pieces, Piped, body_of, check, is_packed, passed_on, refused,
};
use super::relay::Relayed;
use super::{ExchangeLog, Failure, LAST_WORDS, ProxiedExchange};
use crate::live::LiveCell;
use crate::session::redact::value_without_keys;
use crate::session::wire::stream::{Api, Assembly, StreamProblem};
use crate::units::Timestamp;

/// An answer that is not whole.
const BROKE_OFF: Failure = Failure::Other(Cow::Borrowed("the answer broke off"));

/// An exchange that has no end.
const STOPPED: Failure = Failure::Other(Cow::Borrowed("the proxy was stopped"));

/// Bytes of an answer that are kept at most; a longer one is passed on all the same.
const LONGEST_ANSWER: usize = 64 << 20;

/// Bytes of a refusal that are read at most.
const LONGEST_REFUSAL: usize = 16 << 20;

/// The keys that an answer keeps which reports an error: enough for its bill to be read.
const BILLED: [&str; 9] =
    ["id", "type", "object", "role", "model", "content", "choices", "output", "usage"];

/// Pieces of an answer that wait for a slow client.
const PIECES: usize = 64;

/// A request as it is passed on.
struct Outgoing {
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
pub(super) struct UnderWay<L> {
    /// When it came.
    at: Timestamp,
    came: Instant,
    /// How much of the time since then was the API's.
    waited: Duration,
    /// The cell that it belongs to.
    cell: LiveCell,
    relayed: Option<Relayed>,
    stopping: watch::Receiver<bool>,
    pass: Arc<PassState<L>>,
}

/// An end without an answer of the API that goes on to the client as it comes: why, and what the client hears.
type Unanswered = (Failure, Response<Piped>);

/// Takes the answer's head, and hears when the client goes away.
pub(super) type ClientPipe = oneshot::Sender<Response<Piped>>;

impl<L: ExchangeLog + 'static> UnderWay<L> {
    pub(super) fn begin(pass: Arc<PassState<L>>) -> Self {
        Self {
            at: (pass.now)(),
            came: Instant::now(),
            waited: Duration::ZERO,
            cell: LiveCell::default(),
            relayed: None,
            stopping: pass.is_stopped.subscribe(),
            pass,
        }
    }

    pub(super) async fn run(mut self, request: Request<Incoming>, mut client: ClientPipe) {
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
        self.pass.tell(|log| log.failed(failure));
    }

    /// Reads the request, and lets the strategy change it.
    async fn read(&mut self, request: Request<Incoming>) -> Result<Outgoing, Denial> {
        let (parts, body) = request.into_parts();
        check(self.pass.address, &parts)?;
        let (url, cell) = self.pass.place(&parts)?;
        self.cell.clone_from(&cell);
        let body = body_of(body).await?;
        let mut asked = Outgoing {
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
        if let Some(live) = &self.pass.live {
            // The length is that of the body that is sent.
            asked.headers.remove(CONTENT_LENGTH);
            if Api::is_compaction(parts.uri.path()) {
                live.pass("the provider compacts the conversation");
            } else {
                let sent = Relayed::send(live, cell, asked.api, &asked.body, self.pass.now);
                tokio::select! {
                    (body, relayed) = sent => (asked.body, self.relayed) = (body, relayed),
                    () = stopped(&mut self.stopping) => {}
                }
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
        asked: &mut Outgoing,
        client: &mut ClientPipe,
    ) -> Result<reqwest::Response, Unanswered> {
        loop {
            let answer = self.send_once(asked, client).await?;
            let status = answer.status();
            let failed = status.is_client_error() || status.is_server_error();
            let Some(relayed) = self.relayed.as_mut().filter(|_| failed) else {
                return Ok(answer);
            };
            let mut headers = passed_on(answer.headers());
            let read = async {
                let said = refusal(answer).await.ok_or(BROKE_OFF)?;
                let shorter = relayed.again(status, &said).await;
                Ok((said, shorter))
            };
            let read = tokio::select! {
                () = client.closed() => Err(Failure::ClientLeft),
                () = stopped(&mut self.stopping) => Err(STOPPED),
                read = read => read,
            };
            let (said, shorter) = read.map_err(ended)?;
            if let Some(shorter) = shorter {
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
        asked: &Outgoing,
        client: &mut ClientPipe,
    ) -> Result<reqwest::Response, Unanswered> {
        let (method, url) = (asked.method.clone(), asked.url.clone());
        let bare = self.pass.client().request(method, url).headers(asked.headers.clone());
        let request = bare.body(asked.body.clone());
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
    async fn relay(mut self, asked: Outgoing, mut answer: reqwest::Response, client: ClientPipe) {
        let status = answer.status();
        let kind = answer.headers().get(CONTENT_TYPE);
        let stream = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"));
        let packed = is_packed(answer.headers());
        let (pipe, pieces) = mpsc::channel(PIECES);
        let mut response =
            Response::new(Piped::Left(Pieces { pieces, _under_way: self.stopping.clone() }));
        *response.status_mut() = status;
        *response.headers_mut() = passed_on(answer.headers());
        let added = self.came.elapsed().saturating_sub(self.waited);
        // Where nobody takes it, the pipe is closed.
        drop(client.send(response));
        let mut assembly = asked.api.map(|api| Assembly::new(api, stream));
        if asked.api.is_none() && asked.method == Method::POST && !Api::is_count(asked.url.path()) {
            self.pass.tell(ExchangeLog::passed);
        }
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
            let request = match asked.kept {
                Some(kept) => kept.await.ok().flatten(),
                None => None,
            };
            let odd = match () {
                () if asked.is_packed => {
                    "the request is packed: let the client send it as it is".into()
                }
                () if request.is_none() && self.relayed.is_none() => {
                    "the request is no JSON".into()
                }
                () if received > LONGEST_ANSWER => "the answer is longer than 64 MiB".into(),
                () if !status.is_success() => status_words(status).into(),
                () if packed => "the answer is packed, though it was asked for as it is".into(),
                () => Cow::default(),
            };
            let (so_far, own) = assembly.so_far();
            let mut response = so_far.map(value_without_keys);
            let told = response.as_ref().and_then(|response| reported(response.get()));
            if let Some(StreamProblem::Reported(Value::Object(mut answer))) = told.clone() {
                // Its own words, whatever they are called, may repeat a key; the usage beside them is billed.
                answer.retain(|key, _| BILLED.contains(&key.as_str()));
                response = serde_json::value::to_raw_value(&answer).ok();
            }
            let problem = own.or(told);
            let failure = match problem {
                _ if !odd.is_empty() => Some(Failure::Other(odd)),
                Some(StreamProblem::Reported(event)) => {
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
                (None, Some(response)) => {
                    self.answered(&ProxiedExchange { at: self.at, api, request, response, added });
                }
                (failure, response) => {
                    let text = response.as_ref().map(|response| response.get());
                    self.failed(&failure.unwrap_or(BROKE_OFF), text);
                }
            }
        }
        // The client hears of the end only when it is kept: who stops the proxy then loses nothing.
        if let Some(error) = broken {
            drop(pipe.send(Err(error)).await);
        }
    }

    /// Keeps the answer.
    fn answered(&self, exchange: &ProxiedExchange) {
        let response = exchange.response.get();
        if let Some(relayed) = &self.relayed {
            relayed.answered(response, (self.pass.now)());
        } else if let Some(live) = &self.pass.live {
            live.answered_apart(&self.cell, exchange.api, response);
        }
        if let Err(error) = self.pass.tell(|log| log.answered(exchange)) {
            self.pass.error.send_modify(|first| {
                first.get_or_insert(error);
            });
        }
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
fn reported(response: &str) -> Option<StreamProblem> {
    let answer: Value =
        response.contains("\"error\"").then(|| serde_json::from_str(response).ok())??;
    (answer["type"] == "error" || answer.get("error").is_some_and(|error| !error.is_null()))
        .then_some(StreamProblem::Reported(answer))
}

/// A reported error with its type. Its own words are left out: they may repeat what was asked, or a key.
fn reported_words(event: &Value) -> String {
    let mut names = [&event["error"], &event["response"]["error"], event]
        .into_iter()
        .flat_map(|error| [&error["type"], &error["code"], &error["status"]]);
    let name = names.find_map(|name| name.as_str().filter(|name| is_word(name)));
    let kind = name.map(|name| format!(": {name}")).unwrap_or_default();
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
