//! A page on this machine: one document, made again for each request, at one address. The request may name
//! the session that it is to show.
//!
//! It listens on loopback only. A request whose `Host` is another name is refused: a page of a foreign
//! site could otherwise have its own name point here, and read what is served.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::pass::Denial;
use super::{ProxyError, connections, is_named};
use crate::stop::StopToken;

/// Makes the page, with this session first where one is asked for, or says why it cannot.
pub type Render = dyn Fn(Option<&str>) -> Result<String, String> + Send + Sync;

/// A server that listens and has not begun to serve.
#[derive(Debug)]
pub struct PageServer {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl PageServer {
    /// Listens at a port of loopback; 0 for any that is free.
    pub fn bind(port: u16) -> Result<Self, ProxyError> {
        let (listener, address) = super::listen((Ipv4Addr::LOCALHOST, port).into())?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is requested.
    pub fn serve(self, render: Arc<Render>, stop: &StopToken) -> Result<(), ProxyError> {
        let address = self.address;
        super::runtime()?.block_on(async move {
            let answer = move |request| {
                let shared = render.clone();
                async move { Ok::<_, Infallible>(answer(address, &request, shared).await) }
            };
            let listener = (self.listener, address);
            let open = connections(listener, stop.requested(), answer, &mut |_| {}).await;
            open?.shutdown().await;
            Ok(())
        })
    }
}

async fn answer(
    address: SocketAddr,
    request: &Request<Incoming>,
    render: Arc<Render>,
) -> Response<Full<Bytes>> {
    if let Err((status, words)) = check(address, request) {
        return response(status, "text/plain; charset=utf-8", words.to_owned());
    }
    let mut query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    let session = query.find_map(|(name, value)| (name == "session").then(|| value.into_owned()));
    // To render is work of seconds, which must not hold up other connections.
    match tokio::task::spawn_blocking(move || render(session.as_deref())).await {
        Ok(Ok(page)) => response(StatusCode::OK, "text/html; charset=utf-8", page),
        Ok(Err(problem)) => failed(problem),
        Err(_) => failed("the page could not be made".to_owned()),
    }
}

fn failed(problem: String) -> Response<Full<Bytes>> {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    response(status, "text/plain; charset=utf-8", problem)
}

/// Refuses what is not a request of the one page by its own name.
fn check(address: SocketAddr, request: &Request<Incoming>) -> Result<(), Denial> {
    if !is_named(address, request.headers()) {
        return Err((StatusCode::MISDIRECTED_REQUEST, "another host is meant\n"));
    }
    if request.uri().path() != "/" {
        return Err((StatusCode::NOT_FOUND, "there is only one page, `/`\n"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "the page can only be read\n"));
    }
    Ok(())
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(CONTENT_TYPE, fixed(kind));
    headers.insert(CACHE_CONTROL, fixed("no-store"));
    headers.insert("x-content-type-options", fixed("nosniff"));
    headers.insert("cross-origin-resource-policy", fixed("same-origin"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, fixed("GET, HEAD"));
    }
    response
}
