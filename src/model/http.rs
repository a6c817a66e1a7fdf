//! Language models behind an API: the only code that waits, and the only asynchronous code.
//!
//! A caller drives its own request on the shared runtime, and blocks until the answer is there.
//! Requests to one provider share a [`Pacer`], which spaces them out, sends again what failed for a
//! passing reason, and keeps waiting apart from the time that answers take.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Url};
use tokio::sync::watch;

use super::api::{Dialect, THINKING};
use super::{CallFailure, Model, ModelKind, Purpose, Reply, Request, Stop, Task};
use crate::session::redact::Secret;
use crate::session::wire::Provider;
use crate::tokens::CountedTexts;
use crate::units::Usage;

mod attempt;
pub mod batch;
pub mod home;
pub mod pace;

use pace::Pacer;

pub(crate) use attempt::cause;

/// The runtime that all live models share.
#[derive(Debug)]
pub struct Engine(tokio::runtime::Runtime);

impl Engine {
    /// Starts the runtime, with one thread for what goes on between the calls.
    pub fn start() -> Result<Arc<Self>, HttpError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("proctor-http")
            .enable_all()
            .build();
        Ok(Arc::new(Self(runtime.map_err(HttpError::Start)?)))
    }
}

/// How a provider is reached.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The base URL: for OpenAI's API with `/v1`, for Anthropic's without.
    pub base_url: String,
    /// The key, where the server wants one.
    pub key: Option<Secret>,
    /// Certificates of a private authority, as PEM.
    pub authority: Option<Vec<u8>>,
    /// Until the first byte of an answer has come.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub between: Duration,
    /// From the request to the end of the answer, however steadily it comes.
    pub whole: Duration,
    /// Hears of failed requests.
    pub notice: Option<Notice>,
    /// Ends its waits.
    pub waits: Waits,
}

impl Connection {
    /// The public address of a provider.
    pub fn public(provider: Provider) -> Self {
        let base_url = match provider {
            Provider::Anthropic => "https://api.anthropic.com",
            Provider::OpenAi => "https://api.openai.com/v1",
        };
        Self::to(base_url)
    }

    /// A server at this base URL, without a key.
    pub fn to(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            authority: None,
            first_byte: Duration::from_mins(5),
            between: Duration::from_mins(2),
            whole: Duration::from_mins(30),
            notice: None,
            waits: Waits::default(),
        }
    }
}

/// How long one answer took. Measured: it never becomes part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTime {
    /// Whose call it was.
    pub purpose: Purpose,
    /// The model that was asked.
    pub model: Arc<str>,
    /// How often it was sent.
    pub attempts: u32,
    /// Spent waiting to be let through, and between attempts.
    pub waited: Duration,
    /// From the last attempt's start to its end.
    pub took: Duration,
    /// The tokens that the server reported.
    pub usage: Usage,
    /// Whether it was answered.
    pub is_answered: bool,
}

/// A language model behind an API.
#[derive(Debug)]
pub struct LiveModel {
    dialect: Dialect,
    engine: Arc<Engine>,
    wire: Wire,
    times: Mutex<Vec<CallTime>>,
    /// The server's words when it refused a JSON schema: verdicts are asked for in words from then on.
    schema_refused: OnceLock<String>,
    /// Whether a server on this machine was seen to use up the room for an answer before it wrote one.
    thinks: AtomicBool,
    refused: Mutex<Refusals>,
}

/// The refusals since the last answer.
#[derive(Debug, Default)]
struct Refusals {
    /// The reason of the last ones.
    why: String,
    /// How many were in a row for it.
    count: u32,
    /// Whether there was an answer before them.
    has_answered: bool,
}

/// After so many refusals for one reason, no other request will fare better: a model that never answered is asked in
/// a wrong way, one that did (the second number) refuses a question now and then.
const MOST_REFUSALS: [u32; 2] = [3, 50];

/// The words of refusals that are about what was asked: its size, or a policy.
const ABOUT_CONTENT: &str =
    "http 413|http 422|content_filter|policy|flagged|invalid_prompt|moderation|safety";

/// The words of refusals that are about the form of the answer.
const ABOUT_SCHEMA: &str = "schema|response_format|output_config|output_format|structured output";

/// Whether a refusal has one of these words, which `|` separates.
fn is_about(why: &str, words: &str) -> bool {
    let lower = why.to_ascii_lowercase();
    words.split('|').any(|word| lower.contains(word))
}

/// A failure without words that differ each time: ids of requests, counts.
fn in_general(why: &str) -> String {
    let words = why.split_whitespace();
    let same = words.filter(|word| word.len() <= 5 || !word.contains(|c: char| c.is_ascii_digit()));
    same.collect::<Vec<_>>().join(" ")
}

/// Hears of requests that failed, in words: each says whether it is sent again.
#[derive(Clone)]
pub struct Notice(pub Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notice")
    }
}

/// Whether models may be waited for: all that share it stop waiting together.
///
/// An answer that has begun is read to its end: it is paid for.
#[derive(Debug, Clone, Default)]
pub struct Waits(Arc<watch::Sender<bool>>);

impl Waits {
    /// Whether waits end at once from now on.
    pub fn set_ended(&self, is_ended: bool) {
        self.0.send_replace(is_ended);
    }

    fn is_ended(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for `future`; `None` where waits are ended first.
    async fn on<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut told = self.0.subscribe();
        tokio::select! {
            biased;
            _ = told.wait_for(|is_ended| *is_ended) => None,
            output = future => Some(output),
        }
    }
}

/// The client and settings that all calls to one model share.
#[derive(Debug)]
struct Wire {
    provider: Provider,
    client: Client,
    url: Url,
    headers: HeaderMap,
    connection: Connection,
    pacer: Arc<Pacer>,
    /// How often each failure happened, by whether the request was given up.
    told: Mutex<BTreeMap<(String, bool), u32>>,
}

impl Wire {
    /// Tells of a failed attempt: the first times that it fails so, then at every tenth and hundredth.
    fn tell(&self, model: &str, failure: &str, attempts: u32, pause: Option<Duration>) {
        let Some(Notice(tell)) = &self.connection.notice else {
            return;
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (in_general(failure), pause.is_none());
        let times = told.entry(key).or_default();
        *times += 1;
        let times = *times;
        drop(told);
        if times > 3 && !times.is_multiple_of(if times <= 100 { 10 } else { 100 }) {
            return;
        }
        let next = match pause {
            Some(pause) => format!("attempt {attempts}, again in {:.1} s", pause.as_secs_f64()),
            None => format!("given up after {attempts}"),
        };
        let often = match times {
            1..=3 => String::new(),
            _ => format!("; this happened {times} times"),
        };
        tell(&format!("{model}: {failure}; {next}{often}"));
    }

    /// Whether it leads to a server on this machine.
    fn is_at_home(&self) -> bool {
        self.pacer.slots().is_some()
    }

    /// The server's address, without what may be secret in it.
    fn address(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The beginning of what a server said, without the key. The key is taken out first: cut in two it
    /// would not be found.
    fn said(&self, text: &str) -> String {
        let key = self.connection.key.as_ref();
        let clean = key.map_or_else(|| text.to_owned(), |key| key.scrub(text));
        clean.chars().take(SAID_CHARS).collect()
    }
}

/// Characters of a server's message that errors repeat.
const SAID_CHARS: usize = 300;

impl LiveModel {
    /// A model that is reached through `connection`, at the pace of `pacer`. Opens no socket: that
    /// happens at the first request.
    pub fn new(
        dialect: Dialect,
        connection: Connection,
        engine: Arc<Engine>,
        pacer: Arc<Pacer>,
    ) -> Result<Self, HttpError> {
        let base = connection.base_url.trim_end_matches('/');
        // Anthropic's base URL is often written with its version.
        let base = match dialect.provider {
            Provider::Anthropic => base.strip_suffix("/v1").unwrap_or(base),
            Provider::OpenAi => base,
        };
        let url = Url::parse(&format!("{base}{}", dialect.path()))
            .map_err(|error| HttpError::BaseUrl(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            let problem = "it must begin with `http://` or `https://`";
            return Err(HttpError::BaseUrl(problem.to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            let problem = "it must hold no key and no query";
            return Err(HttpError::BaseUrl(problem.to_owned()));
        }
        let wire = Wire {
            provider: dialect.provider,
            client: client(connection.authority.as_deref())?,
            url,
            headers: headers(dialect.provider, connection.key.as_ref())?,
            connection,
            pacer,
            told: Mutex::default(),
        };
        Ok(Self {
            dialect,
            engine,
            wire,
            times: Mutex::new(Vec::new()),
            schema_refused: OnceLock::new(),
            thinks: AtomicBool::new(false),
            refused: Mutex::default(),
        })
    }

    /// How the model is spoken to.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// The server's words when it refused a JSON schema.
    pub fn schema_refused(&self) -> Option<String> {
        self.schema_refused.get().cloned()
    }

    /// How long the calls took that ended since this was last asked.
    pub fn take_times(&self) -> Vec<CallTime> {
        std::mem::take(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Model for LiveModel {
    fn name(&self) -> &str {
        &self.dialect.model
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Live
    }

    fn answer(&self, request: &Request, _: u32, _: &CountedTexts) -> Reply {
        self.barred(self.ask(request))
    }

    fn at_once(&self) -> usize {
        self.wire.pacer.at_once()
    }

    fn slots(&self) -> Option<usize> {
        self.wire.pacer.slots()
    }

    fn in_slot(&self, work: &mut dyn FnMut()) {
        let _slot = self.engine.0.block_on(self.wire.pacer.slot());
        work();
    }

    fn address(&self) -> Option<String> {
        Some(self.wire.address())
    }

    fn is_stopped(&self) -> bool {
        self.wire.connection.waits.is_ended()
    }
}

impl LiveModel {
    /// Sends a request until it is answered or given up. Where the server refuses the schema of a verdict,
    /// the verdict is asked for without one.
    fn ask(&self, request: &Request) -> Reply {
        let dialect = Dialect {
            structured: self.dialect.structured
                && request.task == Task::Judge
                && self.schema_refused.get().is_none(),
            ..self.dialect.clone()
        };
        let answered = self.send(&dialect, request);
        match &answered.answer {
            Err(CallFailure::Rejected(why))
                if dialect.structured && is_about(why, ABOUT_SCHEMA) =>
            {
                self.schema_refused.get_or_init(|| why.clone());
                let mut again = self.ask(request);
                again.failed.splice(0..0, answered.failed);
                again
            }
            _ => answered,
        }
    }

    /// Sends a request. A model at home gets room to think once it was seen to: for others such room would
    /// only be reserved, out of a small window. An answer that does not come even so is a refusal.
    fn send(&self, dialect: &Dialect, request: &Request) -> Reply {
        if !self.thinks.load(Ordering::SeqCst) {
            let answered = self.send_as(dialect, request);
            if !self.wire.is_at_home() || !is_without_answer(&answered) {
                return answered;
            }
            self.thinks.store(true, Ordering::SeqCst);
        }
        let dialect = Dialect { thinking: dialect.thinking.max(THINKING), ..dialect.clone() };
        let mut answered = self.send_as(&dialect, request);
        if is_without_answer(&answered) {
            let most = dialect.longest(request);
            answered.answer = Err(CallFailure::Rejected(format!(
                "it thinks for {most} tokens and does not answer; `thinking_tokens` gives it more room"
            )));
        }
        answered
    }

    fn send_as(&self, dialect: &Dialect, request: &Request) -> Reply {
        let sent = attempt::send(&self.wire, dialect, request);
        let (answered, time) = self.engine.0.block_on(sent);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(time);
        answered
    }

    /// The reply; where the last requests were all refused for the same reason, the refusal of any request.
    fn barred(&self, mut reply: Reply) -> Reply {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match &reply.answer {
            Ok(_) => {
                *refused = Refusals { has_answered: true, ..Refusals::default() };
            }
            // Where the content of one prompt was refused, other prompts may be answered.
            Err(CallFailure::Rejected(why)) if !is_about(why, ABOUT_CONTENT) => {
                let why = in_general(why);
                if refused.why != why {
                    refused.why.clone_from(&why);
                    refused.count = 0;
                }
                refused.count += 1;
                if refused.count >= MOST_REFUSALS[usize::from(refused.has_answered)] {
                    let why = format!("{why}; {} requests in a row", refused.count);
                    reply.answer = Err(CallFailure::Denied(why));
                }
            }
            Err(_) => {}
        }
        reply
    }
}

/// Whether a model used up the room for its answer before it wrote one.
fn is_without_answer(reply: &Reply) -> bool {
    let answer = reply.answer.as_ref();
    answer.is_ok_and(|response| response.stop == Stop::Length && response.text.trim().is_empty())
}

/// No redirects: a key goes to the address that was named and to no other.
fn client(authority: Option<&[u8]>) -> Result<Client, HttpError> {
    // Where one is installed already, it serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .pool_idle_timeout(Duration::from_secs(20));
    if let Some(pem) = authority {
        let certificates = Certificate::from_pem_bundle(pem).map_err(HttpError::Authority)?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(HttpError::Client)
}

fn headers(provider: Provider, key: Option<&Secret>) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if provider == Provider::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let Some(key) = key else {
        return Ok(headers);
    };
    let (name, value) = match provider {
        Provider::Anthropic => ("x-api-key", key.expose().to_owned()),
        Provider::OpenAi => (AUTHORIZATION.as_str(), format!("Bearer {}", key.expose())),
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| HttpError::Key)?;
    value.set_sensitive(true);
    headers.insert(reqwest::header::HeaderName::from_static(name), value);
    Ok(headers)
}

/// Why a live model cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The base URL is invalid. It is not repeated: it may hold a key.
    #[error("that base URL cannot be used: {0}")]
    BaseUrl(String),
    /// The key cannot be a header. It is not repeated.
    #[error("the key holds characters that are not allowed in a key")]
    Key,
    /// The certificates cannot be read.
    #[error("the certificates of the private authority cannot be read")]
    Authority(#[source] reqwest::Error),
    /// No client could be made.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// The runtime could not be started.
    #[error("cannot start the runtime of live models")]
    Start(#[source] std::io::Error),
}
