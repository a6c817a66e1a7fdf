//! Language models behind an API: the only code that waits, and the only asynchronous code.
//!
//! One runtime lives on a thread of its own; whoever calls blocks on a channel until its answer is
//! there. Requests to one provider share a [`Pacer`], which spaces them out, sends again what
//! failed for a passing reason, and keeps waiting apart from the time that answers take.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Url};

use super::api::Dialect;
use super::secret::Secret;
use super::{Answered, CallFailure, Model, ModelKind, Purpose, Request, Response, Task};
use crate::session::wire::Provider;
use crate::tokens::CountedTexts;

mod attempt;
pub mod batch;
pub mod pace;

use pace::{PaceSetting, Pacer};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The runtime that all live models share.
#[derive(Debug)]
pub struct Engine {
    work: Option<tokio::sync::mpsc::UnboundedSender<Work>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Engine {
    /// Starts the runtime on a thread of its own.
    pub fn start() -> Result<Arc<Self>, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HttpError::Start)?;
        let (work, mut waiting) = tokio::sync::mpsc::unbounded_channel::<Work>();
        let thread = std::thread::Builder::new()
            .name("proctor-http".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    let mut under_way = tokio::task::JoinSet::new();
                    loop {
                        tokio::select! {
                            next = waiting.recv() => match next {
                                Some(work) => { under_way.spawn(work); }
                                None => break,
                            },
                            Some(_) = under_way.join_next() => {}
                        }
                    }
                    // Every call that was sent is awaited: it is paid for.
                    while under_way.join_next().await.is_some() {}
                });
            })
            .map_err(HttpError::Start)?;
        Ok(Arc::new(Self {
            work: Some(work),
            thread: Some(thread),
        }))
    }

    /// Runs a future to its end; the caller waits. Nothing where the runtime is gone.
    fn wait_for<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done, answer) = mpsc::sync_channel(1);
        let work: Work = Box::pin(async move {
            // Whoever asked waits for it: sending cannot fail.
            drop(done.send(future.await));
        });
        self.work.as_ref()?.send(work).ok()?;
        answer.recv().ok()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
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
    /// From the last attempt's start to the first piece of the answer that was written.
    pub first_token: Option<Duration>,
    /// From the last attempt's start to its end.
    pub took: Duration,
    /// Whether it was answered.
    pub is_answered: bool,
}

/// A language model behind an API.
pub struct Live {
    dialect: Dialect,
    engine: Arc<Engine>,
    wire: Arc<Wire>,
    times: Mutex<Vec<CallTime>>,
    /// The server's words when it refused a JSON schema: verdicts are asked for in words from then on.
    schema_refused: Mutex<Option<String>>,
}

/// What every call to one model needs.
#[derive(Debug)]
struct Wire {
    provider: Provider,
    client: Client,
    url: Url,
    headers: HeaderMap,
    key: Option<Secret>,
    first_byte: Duration,
    between: Duration,
    whole: Duration,
    pacer: Arc<Pacer>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("dialect", &self.dialect)
            .field("url", &self.wire.url.as_str())
            .finish_non_exhaustive()
    }
}

impl Live {
    /// A model that is reached through `connection`, at the pace of `pacer`. Opens no socket: that
    /// happens at the first request.
    pub fn new(
        dialect: Dialect,
        connection: Connection,
        engine: Arc<Engine>,
        pacer: Arc<Pacer>,
    ) -> Result<Self, HttpError> {
        let invalid = |problem: String| HttpError::BaseUrl { problem };
        let base = connection.base_url.trim_end_matches('/');
        // Anthropic's base URL is often written with its version.
        let base = match dialect.provider {
            Provider::Anthropic => base.strip_suffix("/v1").unwrap_or(base),
            Provider::OpenAi => base,
        };
        let url = Url::parse(&format!("{base}{}", dialect.path()))
            .map_err(|error| invalid(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(invalid(
                "it must begin with `http://` or `https://`".to_owned(),
            ));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(invalid("it must hold no key and no query".to_owned()));
        }
        let wire = Wire {
            provider: dialect.provider,
            client: client(connection.authority.as_deref())?,
            url,
            headers: headers(dialect.provider, connection.key.as_ref())?,
            key: connection.key,
            first_byte: connection.first_byte,
            between: connection.between,
            whole: connection.whole,
            pacer,
        };
        Ok(Self {
            dialect,
            engine,
            wire: Arc::new(wire),
            times: Mutex::new(Vec::new()),
            schema_refused: Mutex::new(None),
        })
    }

    /// How the model is spoken to.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// The server's words when it refused a JSON schema; nothing where it did not.
    pub fn schema_refused(&self) -> Option<String> {
        let refused = self.schema_refused.lock();
        refused.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long the calls took that ended since this was last asked.
    pub fn take_times(&self) -> Vec<CallTime> {
        std::mem::take(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Model for Live {
    fn name(&self) -> &str {
        &self.dialect.model
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Live
    }

    fn respond(&self, request: &Request) -> Result<Response, CallFailure> {
        self.ask(request).answer
    }

    fn answer(&self, request: &Request, _: u32, _: &CountedTexts) -> Answered {
        self.ask(request)
    }

    fn at_once(&self) -> usize {
        self.wire.pacer.at_once()
    }
}

impl Live {
    /// Sends a request until it is answered or given up. Where the server refuses the schema of a verdict,
    /// the verdict is asked for without one.
    fn ask(&self, request: &Request) -> Answered {
        let is_schema = self.dialect.structured && request.task == Task::Judge;
        if !is_schema {
            return self.send(&self.dialect, request);
        }
        let in_words = Dialect {
            structured: false,
            ..self.dialect.clone()
        };
        if self.schema_refused().is_some() {
            return self.send(&in_words, request);
        }
        let answered = self.send(&self.dialect, request);
        match &answered.answer {
            Err(CallFailure::Rejected(why)) if names_schema(why) => {
                let refused = self.schema_refused.lock();
                let mut refused = refused.unwrap_or_else(PoisonError::into_inner);
                refused.get_or_insert_with(|| why.clone());
                drop(refused);
                let mut again = self.send(&in_words, request);
                again.failed.splice(0..0, answered.failed);
                again
            }
            _ => answered,
        }
    }

    fn send(&self, dialect: &Dialect, request: &Request) -> Answered {
        let body = dialect.body(request);
        let wire = self.wire.clone();
        let sent = attempt::send(wire, body, request.max_output);
        let Some(sent) = self.engine.wait_for(sent) else {
            return Answered::once(Err(CallFailure::Network));
        };
        let time = sent.time;
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(CallTime {
            purpose: request.purpose,
            model: Arc::from(self.dialect.model.as_str()),
            attempts: time.attempts,
            waited: time.waited,
            first_token: time.first_token,
            took: time.took,
            is_answered: sent.answer.is_ok(),
        });
        Answered {
            failed: sent.failed,
            ..Answered::once(sent.answer)
        }
    }
}

/// Whether a refusal is about the form of the answer.
fn names_schema(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    let names = [
        "schema",
        "response_format",
        "output_config",
        "output_format",
        "structured output",
    ];
    names.iter().any(|name| why.contains(name))
}

/// A pacer for one provider.
pub fn pacer(setting: PaceSetting) -> Arc<Pacer> {
    Arc::new(Pacer::new(setting))
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
    /// The base URL is none. It is not repeated: it may hold a key.
    #[error("that base URL cannot be used: {problem}")]
    BaseUrl {
        /// What is wrong with it.
        problem: String,
    },
    /// The key cannot be a header. It is not repeated.
    #[error("the key holds characters that no key has")]
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
