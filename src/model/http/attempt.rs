//! One request until it is answered or given up: sent, read, sent again.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::Wire;
use super::pace::{After, Retry};
use crate::model::api::Incoming;
use crate::model::{CallFailure, Response, overflow};
use crate::units::{ContentHash, Tokens};

/// How long a request took, over all its attempts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    pub(super) attempts: u32,
    pub(super) waited: Duration,
    pub(super) first_token: Option<Duration>,
    pub(super) took: Duration,
}

/// What became of a request.
pub(super) struct Sent {
    pub(super) answer: Result<Response, CallFailure>,
    /// What came of the attempts before the last one.
    pub(super) failed: Vec<CallFailure>,
    pub(super) time: Time,
}

/// What one attempt came to.
struct Failed {
    failure: CallFailure,
    retry: Retry,
}

impl Failed {
    fn soon(failure: CallFailure) -> Self {
        let retry = Retry::Soon;
        Self { failure, retry }
    }

    fn never(failure: CallFailure) -> Self {
        let retry = Retry::Never;
        Self { failure, retry }
    }
}

/// Of a message of the server, so many characters are repeated in errors.
const SAID_CHARS: usize = 300;

/// Of a body that says why a request was refused, so much is read.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Sends a request until it is answered, refused for good, or tried often enough.
pub(super) async fn send(wire: Arc<Wire>, body: String, max_output: Tokens) -> Sent {
    let mut time = Time::default();
    let mut before: Vec<CallFailure> = Vec::new();
    // Four bytes a token is near enough for a bucket that is corrected by what was billed.
    let expected = Tokens(body.len() as u64 / 4) + max_output;
    let place = ContentHash::of(&body);
    let body = Bytes::from(body);
    loop {
        let arrived = Instant::now();
        let pass = wire.pacer.enter(expected).await;
        time.waited += arrived.elapsed();
        let begun = Instant::now();
        let came = timeout(wire.whole, once(&wire, body.clone(), begun)).await;
        let came = came.unwrap_or_else(|_| Err(Failed::soon(CallFailure::Timeout)));
        time.took = begun.elapsed();
        time.attempts += 1;
        let failed = match came {
            Ok((response, first_token)) => {
                time.first_token = first_token;
                pass.answered(response.usage.total());
                return Sent {
                    answer: Ok(response),
                    failed: before,
                    time,
                };
            }
            Err(failed) => failed,
        };
        match pass.failed(failed.retry, time.attempts, place) {
            After::GiveUp => {
                return Sent {
                    answer: Err(failed.failure),
                    failed: before,
                    time,
                };
            }
            After::Wait(pause) => {
                before.push(failed.failure);
                tokio::time::sleep(pause).await;
                time.waited += pause;
            }
        }
    }
}

/// One attempt; whoever waits for it sets the limit of the whole.
async fn once(
    wire: &Wire,
    body: Bytes,
    begun: Instant,
) -> Result<(Response, Option<Duration>), Failed> {
    let request = wire.client.post(wire.url.clone());
    let sent = request.headers(wire.headers.clone()).body(body).send();
    let mut answer = match timeout(wire.first_byte, sent).await {
        Err(_) => return Err(Failed::soon(CallFailure::Timeout)),
        Ok(Err(error)) if error.is_timeout() => return Err(Failed::soon(CallFailure::Timeout)),
        Ok(Err(_)) => return Err(Failed::soon(CallFailure::Network)),
        Ok(Ok(answer)) => answer,
    };
    let status = answer.status().as_u16();
    if !answer.status().is_success() {
        let wait = retry_after(answer.headers());
        let mut said = Vec::new();
        let reading = async {
            while said.len() < REFUSAL_BYTES {
                match answer.chunk().await {
                    Ok(Some(bytes)) => said.extend_from_slice(&bytes),
                    Ok(None) | Err(_) => break,
                }
            }
        };
        // A refusal whose body does not come, or never ends, is refused all the same.
        drop(timeout(wire.between, reading).await);
        return Err(refused(wire, status, wait, &String::from_utf8_lossy(&said)));
    }
    let kind = answer.headers().get(CONTENT_TYPE);
    let is_stream = kind
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut incoming = Incoming::new(wire.provider, is_stream);
    let mut first_token = None;
    loop {
        if incoming.is_broken() {
            break;
        }
        match timeout(wire.between, answer.chunk()).await {
            Err(_) => return Err(Failed::soon(CallFailure::Timeout)),
            Ok(Err(_)) => return Err(Failed::soon(CallFailure::Cut)),
            Ok(Ok(None)) => break,
            Ok(Ok(Some(bytes))) => {
                if incoming.push(&bytes) && first_token.is_none() {
                    first_token = Some(begun.elapsed());
                }
            }
        }
    }
    match incoming.finish() {
        Ok(response) => Ok((response, first_token)),
        Err(failure @ CallFailure::Overflow) => Err(Failed::never(failure)),
        Err(failure @ CallFailure::RateLimited) => Err(Failed {
            failure,
            retry: Retry::Limited(None),
        }),
        Err(failure) => Err(Failed::soon(failure)),
    }
}

/// What a status that is no success means.
fn refused(wire: &Wire, status: u16, wait: Option<Duration>, said: &str) -> Failed {
    if overflow::refusal(status, said).is_some() {
        return Failed::never(CallFailure::Overflow);
    }
    let reason = reason(wire, status, said);
    match status {
        // What is spent does not come back by waiting.
        429 if said.contains("insufficient_quota") => Failed::never(CallFailure::Denied(reason)),
        300..=399 | 401..=404 => Failed::never(CallFailure::Denied(reason)),
        429 => Failed {
            failure: CallFailure::RateLimited,
            retry: Retry::Limited(wait),
        },
        503 | 529 => Failed {
            failure: CallFailure::Server,
            retry: Retry::Limited(wait),
        },
        408 => Failed::soon(CallFailure::Timeout),
        409 | 425 | 500..=599 => Failed::soon(CallFailure::Server),
        _ => Failed::never(CallFailure::Rejected(reason)),
    }
}

/// Status, kind and message, without the key. What a server says about keys is not repeated at all.
fn reason(wire: &Wire, status: u16, said: &str) -> String {
    match status {
        300..=399 => {
            return format!(
                "HTTP {status}: it points to another address; set the base URL to that"
            );
        }
        401 | 403 => {
            return format!("HTTP {status}: the key is missing, wrong or not allowed this");
        }
        _ => {}
    }
    let value: Value = serde_json::from_str(said).unwrap_or_default();
    let error = &value["error"];
    let kind = [&error["type"], &error["code"], &value["type"]];
    let kind = kind.into_iter().find_map(Value::as_str).unwrap_or_default();
    let message = [
        &error["message"],
        &value["message"],
        &value["detail"],
        error,
    ];
    let message = message.into_iter().find_map(Value::as_str);
    let mut reason = format!("HTTP {status}");
    for part in [kind, message.unwrap_or_default()] {
        if !part.is_empty() {
            // The key is taken out first: cut in two it would not be found.
            let clean = match &wire.key {
                Some(key) => key.scrub(part),
                None => part.to_owned(),
            };
            reason.push_str(": ");
            reason.extend(clean.chars().take(SAID_CHARS));
        }
    }
    reason
}

/// `Retry-After` in seconds or as a date (RFC 9110, 10.2.3), or `retry-after-ms`. A date counts from
/// the server's own clock where it tells the time.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let milliseconds = text("retry-after-ms").and_then(|ms| ms.trim().parse::<u64>().ok());
    if let Some(milliseconds) = milliseconds {
        return Some(Duration::from_millis(milliseconds));
    }
    let after = text(RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = httpdate::parse_http_date(after).ok()?;
    let now = httpdate::parse_http_date(text(DATE.as_str())?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}
