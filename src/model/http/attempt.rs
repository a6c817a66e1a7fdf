//! One request until it is answered or given up: sent, read, sent again.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::pace::Retry;
use super::{CallTime, Wire};
use crate::model::api::{self, Dialect, IncomingAnswer};
use crate::model::{CallFailure, Reply, Request, Response, Task, overflow};
use crate::units::{ContentHash, Usage};

/// Why one attempt failed, and whether another is worth it.
struct AttemptFailure(CallFailure, Retry);

/// A failure that passes.
fn soon(failure: CallFailure) -> AttemptFailure {
    AttemptFailure(failure, Retry::Soon)
}

/// The run was stopped while an answer was waited for.
const STOPPED: AttemptFailure =
    AttemptFailure(CallFailure::Stopped { was_sent: true }, Retry::Never);

/// The body of a refusal is read up to this size.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Sends a request until it is answered, refused for good, or tried often enough.
pub(super) async fn send(wire: &Wire, dialect: &Dialect, request: &Request) -> (Reply, CallTime) {
    let mut time = CallTime {
        purpose: request.purpose,
        usage: Usage::default(),
        model: Arc::from(dialect.model.as_str()),
        attempts: 0,
        waited: Duration::ZERO,
        took: Duration::ZERO,
        is_answered: false,
    };
    let body = dialect.body(request);
    let mut failed: Vec<CallFailure> = Vec::new();
    let place = ContentHash::of(&body);
    let mut body = Bytes::from(body);
    let longest = api::longest_bytes(dialect.longest(request));
    let bounds = (longest, request.task == Task::Judge);
    let mut is_within = false;
    let waits = &wire.connection.waits;
    let answer = loop {
        let arrived = Instant::now();
        let pass = waits.on(wire.pacer.enter()).await;
        time.waited += arrived.elapsed();
        let Some(pass) = pass else {
            break Err(CallFailure::Stopped { was_sent: false });
        };
        let begun = Instant::now();
        let sent = once(wire, body.clone(), begun, bounds);
        let came = timeout(wire.connection.whole, sent).await;
        time.took = begun.elapsed();
        time.attempts += 1;
        let AttemptFailure(failure, retry) = match came {
            Ok(Ok(response)) => {
                time.is_answered = true;
                time.usage = response.usage;
                pass.answered();
                break Ok(response);
            }
            Ok(Err(failed)) => failed,
            Err(_) => soon(CallFailure::Timeout),
        };
        let mut pause = pass.failed(retry, time.attempts, place);
        // A server may close a connection that it kept while the request is on its way: that is not worth a word.
        if retry == Retry::Afresh && time.attempts == 1 {
            continue;
        }
        let mut told = failure.to_string();
        // The prompt fits, and what we reserve for its answer does not: that is no failure of the prompt.
        if let Retry::Within(room) = retry
            && !is_within
        {
            is_within = true;
            body = Bytes::from(dialect.body_within(request, room));
            pause = Some(Duration::ZERO);
            told = format!(
                "the window has room for the prompt and {room} tokens of an answer, not for more"
            );
        }
        wire.tell(&dialect.model, &told, time.attempts, pause);
        let Some(pause) = pause else {
            break Err(failure);
        };
        failed.push(failure);
        if waits.on(tokio::time::sleep(pause)).await.is_none() {
            break Err(CallFailure::Stopped { was_sent: false });
        }
        time.waited += pause;
    };
    let once = Reply::once(answer);
    (Reply { failed, ..once }, time)
}

/// One attempt; the caller limits its duration. An answer has at most `longest` bytes; a verdict of a server on
/// this machine, whose answers nobody bills, ends with its first JSON object.
async fn once(
    wire: &Wire,
    body: Bytes,
    begun: Instant,
    (longest, is_verdict): (usize, bool),
) -> Result<Response, AttemptFailure> {
    let request = wire.client.post(wire.url.clone());
    let sent = request.headers(wire.headers.clone()).body(body).send();
    let sent = timeout(wire.connection.first_byte, sent);
    let waits = &wire.connection.waits;
    let sent = waits.on(sent).await.ok_or(STOPPED)?;
    let mut answer = sent.map_err(|_| soon(CallFailure::Timeout))?.map_err(|error| {
        if error.is_timeout() {
            return soon(CallFailure::Timeout);
        }
        let failure = CallFailure::Network(format!("{}: {}", wire.address(), cause(&error)));
        let retry = match () {
            () if error.is_connect() => Retry::Unreachable,
            () if is_closed(&error) => Retry::Afresh,
            () => Retry::Soon,
        };
        AttemptFailure(failure, retry)
    })?;
    let status = answer.status().as_u16();
    if !answer.status().is_success() {
        let wait = retry_after(answer.headers());
        let mut said = Vec::new();
        let reading = async {
            while said.len() < REFUSAL_BYTES
                && let Ok(Some(bytes)) = answer.chunk().await
            {
                said.extend_from_slice(&bytes);
            }
        };
        // A refusal whose body does not come, or never ends, is refused all the same.
        drop(timeout(wire.connection.between, reading).await);
        return Err(refused(wire, status, wait, &String::from_utf8_lossy(&said)));
    }
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let streamed = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut incoming = IncomingAnswer::new(wire.provider, streamed, longest);
    incoming.ends_with_object = is_verdict && wire.is_at_home();
    let first_byte = wire.connection.first_byte.saturating_sub(begun.elapsed());
    // Some servers send their headers at once, and read the prompt then.
    let mut next = waits.on(timeout(first_byte, answer.chunk())).await;
    while !incoming.is_broken() && !incoming.is_enough() {
        let Some(piece) = next else {
            return Err(STOPPED);
        };
        let read = piece.map_err(|_| soon(CallFailure::Timeout))?;
        let Some(bytes) = read.map_err(|_| soon(CallFailure::Cut))? else {
            break;
        };
        incoming.push(&bytes);
        next = Some(timeout(wire.connection.between, answer.chunk()).await);
    }
    if incoming.is_too_long() {
        let failure = CallFailure::Server(format!(
            "the answer is longer than {longest} bytes, more than was asked for"
        ));
        return Err(AttemptFailure(failure, Retry::Never));
    }
    match incoming.finish() {
        Ok(response) => Ok(response),
        Err(failure) => {
            let retry = match failure {
                CallFailure::Overflow => Retry::Never,
                CallFailure::RateLimited => Retry::Limited(None),
                CallFailure::Unreadable => Retry::Unreadable,
                _ => Retry::Soon,
            };
            Err(AttemptFailure(failure, retry))
        }
    }
}

/// The causes of an error, the nearest first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (**cause).source())
}

/// Whether the connection ended before an answer began.
fn is_closed(error: &reqwest::Error) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_incomplete_message)
}

/// The last cause of an error, in words: `Connection refused (os error 111)`.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "it broke".to_owned(), ToString::to_string)
}

/// Classifies a status that is not a success.
fn refused(wire: &Wire, status: u16, wait: Option<Duration>, said: &str) -> AttemptFailure {
    if let Some(refusal) = overflow::refusal(status, said) {
        let retry = refusal.room().map_or(Retry::Never, Retry::Within);
        return AttemptFailure(CallFailure::Overflow, retry);
    }
    let why = reason(wire, status, said);
    match status {
        // Waiting does not bring back a spent quota.
        429 if said.contains("insufficient_quota") => {
            AttemptFailure(CallFailure::Denied(why), Retry::Never)
        }
        300..=399 | 401..=404 => AttemptFailure(CallFailure::Denied(why), Retry::Never),
        429 => AttemptFailure(CallFailure::RateLimited, Retry::Limited(wait)),
        503 | 529 => AttemptFailure(CallFailure::Server(why), Retry::Limited(wait)),
        408 => soon(CallFailure::Timeout),
        409 | 425 | 500..=599 => soon(CallFailure::Server(why)),
        _ => AttemptFailure(CallFailure::Rejected(why), Retry::Never),
    }
}

/// Status, kind and message, without the key. What a server says about keys is not repeated at all.
fn reason(wire: &Wire, status: u16, said: &str) -> String {
    let fixed = match status {
        300..=399 => "it points to another address; set the base URL to that",
        401 | 403 => "the key is missing, wrong or not allowed this",
        _ => "",
    };
    if !fixed.is_empty() {
        return format!("HTTP {status}: {fixed}");
    }
    let value: Value = serde_json::from_str(said).unwrap_or_default();
    let error = &value["error"];
    let kinds = [&error["type"], &error["code"], &value["type"]];
    let kind = kinds.into_iter().find_map(Value::as_str);
    let messages = [&error["message"], &value["message"], &value["detail"], error];
    let message = messages.into_iter().find_map(Value::as_str);
    let mut parts = vec![format!("HTTP {status}")];
    let said = [kind, message].map(|part| wire.said(part.unwrap_or_default()));
    parts.extend(said.into_iter().filter(|part| !part.is_empty()));
    parts.join(": ")
}

/// `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or `retry-after-ms`. A date counts from
/// the server's own clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let milliseconds = text_of(headers, "retry-after-ms").and_then(|ms| ms.trim().parse().ok());
    if let Some(milliseconds) = milliseconds {
        return Some(Duration::from_millis(milliseconds));
    }
    let after = text_of(headers, RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = httpdate::parse_http_date(after).ok()?;
    let now = httpdate::parse_http_date(text_of(headers, DATE.as_str())?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
