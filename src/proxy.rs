//! A recording proxy: an agent's base URL points at it, and what the agent sends is passed on
//! unchanged, byte for byte, while each answered request is kept.
//!
//! The log keeps the body of each request and its answer; a streamed answer is put together
//! again as the API would have given it whole ([`stream`](crate::session::wire::stream)). Headers are never kept, and keys in bodies are blanked, so
//! no key is.
//! Nothing is interpreted: the log is read by the importer of its API, as any other request log.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::header::{HOST, HeaderMap};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::live::Live;
use crate::session::wire::stream::Api;
use crate::stop::StopToken;
use crate::units::Timestamp;

pub mod page;
mod pass;
mod relay;
mod under_way;

/// How long requests that are under way may take once the proxy is stopping.
const GRACE: Duration = Duration::from_secs(10);

/// How long requests that were told to stop may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long no connection is accepted after that failed.
const STUCK: Duration = Duration::from_millis(50);

/// Keeps what was answered.
pub trait ExchangeLog: Send {
    /// One request with its answer, as JSON objects.
    fn answered(&mut self, exchange: &ProxiedExchange) -> io::Result<()>;

    /// One request that brought no whole answer.
    fn failed(&mut self, failure: &Failure);

    /// A request was passed on that is not kept, because its path is that of no API.
    fn passed(&mut self) {}

    /// Connections cannot be accepted for a while. It is said once.
    fn stuck(&mut self, _: &io::Error) {}
}

/// Why a request brought no whole answer. Its words hold no text of the request or the answer, and no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The client went away before the end of its answer.
    #[error("the client went away")]
    ClientLeft,
    /// The API was not reached, or did not answer.
    #[error("{problem}: {cause}")]
    Connection {
        /// The API's scheme, host and port.
        address: String,
        /// How far the request came.
        problem: &'static str,
        /// The cause, in the words of the system.
        cause: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

/// One answered request.
#[derive(Debug)]
pub struct ProxiedExchange {
    /// When the request came.
    pub at: Timestamp,
    /// The API that was spoken to.
    pub api: Api,
    /// The body of the request, as it was sent but for the keys in it; `None` where it went through a strategy, whose
    /// own log keeps it.
    pub request: Option<Box<serde_json::value::RawValue>>,
    /// The answer: as it came, or put together from a stream.
    pub response: Box<serde_json::value::RawValue>,
    /// From the request's first byte to the first byte of the answer that went out, without the time that the API took:
    /// what the proxy and its strategy added.
    pub added: Duration,
}

/// A proxy that listens and has not begun to serve.
#[derive(Debug)]
pub struct Proxy {
    listener: std::net::TcpListener,
    address: SocketAddr,
    upstream: Url,
    grace: Duration,
}

impl Proxy {
    /// Listens at `listen` (port 0 for any that is free) for requests to `upstream`, the base URL
    /// of the API.
    pub fn bind(listen: SocketAddr, upstream: &str) -> Result<Self, ProxyError> {
        let wrong = |problem| ProxyError::Upstream { problem };
        let upstream = base(upstream).map_err(wrong)?;
        let (listener, address) = self::listen(listen)?;
        if leads_to(&upstream, address) {
            return Err(wrong("it is the address at which the proxy itself listens"));
        }
        Ok(Self { listener, address, upstream, grace: GRACE })
    }

    /// Gives requests under way this long once the proxy is stopping.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is requested, then lets what is under way finish for ten seconds, or as long as
    /// [`Proxy::with_grace`] says. What has not ended by then is told to the log as failed.
    ///
    /// `live` changes requests on their way. `now` is the clock for requests. The first error of the log ends it.
    pub fn serve<L: ExchangeLog + 'static>(
        self,
        log: L,
        live: Option<Arc<Live>>,
        now: fn() -> Timestamp,
        stop: &StopToken,
    ) -> Result<L, ProxyError> {
        let threads = runtime()?;
        let pass = Arc::new(pass::PassState {
            client: pass::client(usize::MAX)?,
            careful: pass::client(0)?,
            is_careful: AtomicBool::new(false),
            address: self.address,
            upstream: self.upstream,
            now,
            log: Mutex::new(log),
            live,
            error: watch::Sender::new(None),
            is_stopped: watch::Sender::new(false),
        });
        threads.block_on(async move {
            let answering = pass.clone();
            let answer = move |request| {
                let pass = answering.clone();
                async move { Ok::<_, Infallible>(pass.on(request).await) }
            };
            let stopped = async {
                tokio::select! {
                    () = stop.requested() => {}
                    () = pass.broken() => {}
                }
            };
            let accepting = pass.clone();
            let mut stuck = move |error: &_| accepting.tell(|log| log.stuck(error));
            let listener = (self.listener, self.address);
            let mut under_way = connections(listener, stopped, answer, &mut stuck).await?;
            drop(stuck);
            for patience in [self.grace, LAST_WORDS] {
                // Connections that are kept alive never end by themselves: what counts is that no
                // request is under way.
                drop(tokio::time::timeout(patience, pass.quiet()).await);
                pass.stop();
            }
            under_way.shutdown().await;
            pass.finish().await
        })
    }
}

/// The base URL of an API.
fn base(typed: &str) -> Result<Url, &'static str> {
    const BEGINNING: &str = "it must begin with `http://` or `https://`";
    let Ok(url) = Url::parse(typed) else {
        let http = typed.starts_with("http://") || typed.starts_with("https://");
        return Err(if http { "it is no URL" } else { BEGINNING });
    };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(BEGINNING);
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err("it must hold no key and no query");
    }
    if Api::of_path(url.path()).is_some() {
        return Err(
            "it must be the base of all requests, without the path of one, such as `/v1/messages`",
        );
    }
    Ok(url)
}

/// Whether requests to this URL come to a listener at this address.
fn leads_to(url: &Url, address: SocketAddr) -> bool {
    // Names are looked up only where the port is the same.
    if url.port_or_known_default() != Some(address.port()) {
        return false;
    }
    let named = url.socket_addrs(|| None).unwrap_or_default();
    named
        .iter()
        .map(SocketAddr::ip)
        .any(|ip| ip == address.ip() || address.ip().is_unspecified() && ip.is_loopback())
}

/// Whether a request that came to this address of loopback names it. A page of a foreign site could
/// otherwise have its own name point here.
fn is_named(address: SocketAddr, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let (port, ip) = (format!(":{}", address.port()), address.ip().to_string());
    // The port of HTTP is left out.
    let name = host.strip_suffix(&*port).or((port == ":80").then_some(host));
    let own = ["127.0.0.1", "localhost", "[::1]", &ip];
    name.is_some_and(|name| own.iter().any(|own| name.eq_ignore_ascii_case(own)))
}

/// Listens at an address; returns the one that was given, where the port was 0.
fn listen(listen: SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), ProxyError> {
    let bind = |source| ProxyError::Listen { listen, source };
    let listener = std::net::TcpListener::bind(listen).map_err(bind)?;
    listener.set_nonblocking(true).map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    Ok((listener, address))
}

fn runtime() -> Result<Runtime, ProxyError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // Each request that waits for a strategy has a thread for as long.
    builder.worker_threads(2).max_blocking_threads(8_192).enable_all();
    builder.build().map_err(ProxyError::Start)
}

/// Accepts a connection whose writes are sent at once.
///
/// The head, the body and the end of an answer are separate writes. Nagle's algorithm would hold each back
/// until the client acknowledges the one before, which clients delay by 40 ms.
#[expect(clippy::disallowed_methods, reason = "the one place that accepts connections")]
async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (socket, _) = listener.accept().await?;
    // A socket that refuses the option is served all the same, only slower.
    drop(socket.set_nodelay(true));
    Ok(socket)
}

/// Answers connections until `stopped` is over; returns those that are still open. `stuck` hears the first time that
/// none can be accepted.
async fn connections<A, B, F>(
    (listener, listen): (std::net::TcpListener, SocketAddr),
    stopped: impl Future<Output = ()>,
    answer: A,
    stuck: &mut (dyn FnMut(&io::Error) + Send),
) -> Result<JoinSet<()>, ProxyError>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
{
    let listener =
        TcpListener::from_std(listener).map_err(|source| ProxyError::Listen { listen, source })?;
    let (mut under_way, mut is_stuck) = (JoinSet::new(), false);
    let mut stopped = std::pin::pin!(stopped);
    loop {
        tokio::select! {
            () = &mut stopped => return Ok(under_way),
            Some(_) = under_way.join_next() => {}
            accepted = accept(&listener) => {
                let socket = match accepted {
                    Ok(socket) => socket,
                    // No file is left for it, mostly. It waits for its turn, and the next attempt would fail at once.
                    Err(error) => {
                        if !std::mem::replace(&mut is_stuck, true) {
                            stuck(&error);
                        }
                        tokio::time::sleep(STUCK).await;
                        continue;
                    }
                };
                let service = service_fn(answer.clone());
                under_way.spawn(async move {
                    let served = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                    drop(served);
                });
            }
        }
    }
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The address of the API is none. It is not repeated: it may hold a key.
    #[error("requests cannot be passed on to that URL: {problem}")]
    Upstream {
        /// The problem.
        problem: &'static str,
    },
    /// The address cannot be bound.
    #[error("cannot listen at {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The proxy could not be started.
    #[error("cannot start the proxy")]
    Start(#[source] io::Error),
    /// No client could be made: certificates or proxies of the system are at fault.
    #[error("cannot make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// The log could not be written.
    #[error("cannot write the log")]
    Log(#[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_never_its_own_upstream() {
        let leads = |host: &str, listen: [u8; 4]| {
            leads_to(&base(host).unwrap(), SocketAddr::from((listen, 8_787)))
        };
        for (upstream, listen, expected) in [
            ("http://127.0.0.1:8787", [127, 0, 0, 1], true),
            ("http://localhost:8787/v1", [127, 0, 0, 1], true),
            ("http://127.0.0.1:8787", [0, 0, 0, 0], true),
            ("http://127.0.0.1:8788", [127, 0, 0, 1], false),
            ("http://192.0.2.1:8787", [127, 0, 0, 1], false),
        ] {
            assert_eq!(leads(upstream, listen), expected, "{upstream}");
        }
    }

    #[test]
    fn an_accepted_connection_sends_small_writes_at_once() {
        let (listener, address) = listen(([127, 0, 0, 1], 0).into()).unwrap();
        runtime().unwrap().block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            let (client, accepted) = tokio::join!(TcpStream::connect(address), accept(&listener));
            assert!(accepted.unwrap().nodelay().unwrap());
            drop(client);
        });
    }
}
