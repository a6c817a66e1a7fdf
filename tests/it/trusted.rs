//! Live models behind a proxy and behind a private authority: reached, and the key seen by nobody else.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor::model::api::Dialect;
use proctor::model::http::pace::{PaceSetting, Pacer};
use proctor::model::http::{Connection, Engine, LiveModel};
use proctor::model::{CallFailure, Model};
use proctor::session::wire::Provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::live::server::{Reply, Server};
use crate::live::{KEY, question};

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls");
    fixtures.join(name)
}

/// Listens on loopback until it is dropped; what `serve` returns of each connection is kept.
struct Listener {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Listener {
    fn new(serve: impl Fn(TcpStream, &Mutex<Vec<String>>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, stopped, serve) = (heads.clone(), stop.clone(), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(stream), kept, serve) = (stream, kept.clone(), serve.clone()) else {
                    continue;
                };
                drop(stream.set_read_timeout(Some(Duration::from_secs(20))));
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { address, heads, stop, thread: Some(thread) }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// A server that speaks TLS with the committed certificate, and gives one answer to everything.
    fn tls() -> Self {
        let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        Self::new(move |stream, heads| {
            let connection = ServerConnection::new(config.clone()).unwrap();
            // A client that does not trust it goes away.
            let mut stream = StreamOwned::new(connection, stream);
            let Some(head) = head_of(&mut stream) else {
                return;
            };
            heads.lock().unwrap().push(head);
            let reply = Reply::openai("an answer", 100, 5);
            drop(stream.write_all(&reply.bytes()));
            stream.conn.send_close_notify();
            drop(stream.flush());
        })
    }

    /// A proxy that leads every tunnel to this address, whatever it is asked for.
    fn tunnel(to: SocketAddr) -> Self {
        Self::new(move |mut stream, heads| {
            let Some(head) = head_of(&mut stream) else {
                return;
            };
            heads.lock().unwrap().push(head);
            drop(stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n"));
            let Ok(mut server) = TcpStream::connect(to) else {
                return;
            };
            let (mut from, mut back) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
            let up = std::thread::spawn(move || {
                drop(std::io::copy(&mut from, &mut server));
                drop(server.shutdown(std::net::Shutdown::Write));
            });
            drop(std::io::copy(&mut back, &mut stream));
            drop(stream.shutdown(std::net::Shutdown::Both));
            drop(up.join());
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The head of a request, its body read and thrown away.
fn head_of(stream: &mut impl Read) -> Option<String> {
    let mut reader = BufReader::with_capacity(1, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, length)| length.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(head)
}

/// Runs a small session whose reader is at this address, with these variables and no others that speak
/// of proxies.
#[track_caller]
fn run(base_url: &str, authority: bool, environment: &[(&str, String)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let authority = if authority {
        fs::copy(fixture("authority.pem"), folder.path().join("ca.pem")).unwrap();
        ", authority = \"ca.pem\""
    } else {
        ""
    };
    let text = format!(
        "name = \"trusted\"\ncounter = \"chars/4\"\n[models]\nqualify = false\n\
         reader = {{ kind = \"openai\", model = \"m\", base_url = \"{base_url}\", key = \"TEST_KEY\"{authority} }}\n\
         [[sessions]]\nsynthetic = {{ family = \"code-review\", rounds = 4, seed = 3 }}\n\
         [[strategies]]\npreset = \"none\"\n"
    );
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    for (name, value) in environment {
        command.env(name, value);
    }
    let output = command
        .current_dir(folder.path())
        .env("TEST_KEY", KEY)
        .args(["run", "s.toml", "--out", "out", "--yes", "--anyway"])
        .output()
        .unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains(KEY));
    let cells = fs::read_to_string(folder.path().join("out/cells.jsonl")).unwrap();
    assert!(cells.contains("\"an answer\""), "nobody answered: {said}");
    assert!(!cells.contains(KEY));
    output
}

#[test]
fn a_private_authority_is_trusted_where_it_is_named_and_nowhere_else() {
    let server = Listener::tls();
    let base_url = format!("https://{}", server.address);
    run(&base_url, true, &[]);
    let heads = server.heads();
    assert!(!heads.is_empty());
    assert!(heads.iter().all(|head| head.contains(&format!("Bearer {KEY}"))), "{heads:?}");
    let made = |authority: Option<Vec<u8>>| {
        let mut connection = Connection::to(&*base_url);
        connection.authority = authority;
        let pace = PaceSetting { retries: 0, ..PaceSetting::default() };
        let dialect = Dialect::new(Provider::OpenAi, "m");
        LiveModel::new(dialect, connection, Engine::start().unwrap(), Arc::new(Pacer::new(pace)))
    };
    let before = server.heads().len();
    let untrusted = made(None).unwrap().respond(&question("who is there?"));
    assert!(
        matches!(&untrusted, Err(CallFailure::Network(why)) if why.contains("https://127.0.0.1")),
        "{untrusted:?}"
    );
    assert_eq!(server.heads().len(), before, "nothing was said to it");
    let authority = fs::read(fixture("authority.pem")).unwrap();
    let trusted = made(Some(authority)).unwrap().respond(&question("who is there?"));
    assert_eq!(&*trusted.unwrap().text, "an answer");
    let Err(refused) =
        made(Some(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n".to_vec()))
    else {
        panic!("that is no certificate");
    };
    assert!(refused.to_string().contains("private authority"), "{refused}");
}

#[test]
fn a_proxy_leads_to_the_server_and_never_sees_the_key() {
    let server = Listener::tls();
    let proxy = Listener::tunnel(server.address);
    // Nobody else knows the name: only through the proxy is it reached.
    let base_url = format!("https://model.test:{}", server.address.port());
    let variable = format!("http://{}", proxy.address);
    run(&base_url, true, &[("HTTPS_PROXY", variable)]);
    let heads = proxy.heads();
    assert!(!heads.is_empty());
    for head in &heads {
        assert!(head.starts_with("CONNECT model.test:"), "{head}");
        assert!(!head.contains(KEY), "{head}");
    }
    let asked = server.heads();
    assert!(asked.iter().all(|head| head.contains(KEY)) && !asked.is_empty());
}

#[test]
fn a_proxy_for_plain_addresses_is_asked_for_them_and_no_proxy_is_respected() {
    let server = Server::answering(|_| Reply::openai("an answer", 100, 5));
    let variable = ("HTTP_PROXY", server.base_url());
    run("http://model.test/v1", false, std::slice::from_ref(&variable));
    let asked = server.requests();
    assert!(!asked.is_empty());
    for request in asked {
        let line = request.head.lines().next().unwrap().to_owned();
        assert_eq!(line, "POST http://model.test/v1/chat/completions HTTP/1.1");
    }
    // Nobody listens at port 9: whoever went there would not be answered.
    let nobody = "http://127.0.0.1:9".to_owned();
    let environment = [
        ("HTTP_PROXY", nobody.clone()),
        ("HTTPS_PROXY", nobody),
        ("NO_PROXY", "127.0.0.1".to_owned()),
    ];
    run(&server.base_url(), false, &environment);
    let tls = Listener::tls();
    run(&format!("https://{}", tls.address), true, &environment);
}
