//! `proctor record`: listens as a proxy in front of a model's API, and keeps the sessions.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments of `proctor record`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Base URL of the API, such as `https://api.anthropic.com`, or a server of your own
    #[arg(long, value_name = "URL")]
    upstream: String,
    /// Address to listen at; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Folder for the log and the sessions
    #[arg(short, long, value_name = "DIR")]
    #[arg(default_value = ".", help_heading = "Output")]
    output: PathBuf,
}

#[cfg(feature = "http")]
pub(super) use with_http::{ENDING, KeepExchange, RequestTally, keep_private, listen, now, run};

#[cfg(feature = "http")]
mod with_http {
    use std::fs::File;
    use std::io::{self, Write};
    use std::net::SocketAddr;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use serde::Serialize;
    use serde_json::value::RawValue;

    use super::Args;
    use crate::cli::interrupt::stop_on_interrupt;
    use crate::cli::{CliError, Exit, Result, cannot, make_folder, print, say, write_session};
    use crate::proxy::{ExchangeLog, Failure, ProxiedExchange, Proxy, ProxyError};

    use crate::session::wire::stream::Api;
    use crate::session::{Session, import};
    use crate::units::{Timestamp, many};

    /// Said at the first Ctrl-C.
    pub(crate) const ENDING: &str =
        "ending: requests under way have ten seconds; once more to leave at once";

    /// Lets nobody else read the files and folders that are made from now on: they hold what agents said.
    pub(crate) fn keep_private() {
        #[cfg(unix)]
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    }

    pub(crate) fn run(args: &Args) -> Result<Exit> {
        keep_private();
        make_folder(&args.output)?;
        let proxy = listen(args.listen, &args.upstream)?;
        let log = Requests::begin(&args.output)?;
        let stop = stop_on_interrupt(ENDING);
        print(&format!("listening at http://{}\n", proxy.address()))?;
        say!(
            "passing on to {}; requests are kept in `{}`; Ctrl-C ends",
            args.upstream,
            log.files[0].1.display()
        );
        proxy.serve(RequestTally::of(log), None, now, &stop).map_err(unwritten)?.end()
    }

    /// A log that cannot be written is no error of the program's own.
    fn unwritten(error: ProxyError) -> anyhow::Error {
        match error {
            ProxyError::Log(_) => {
                let hint =
                    "make room; `proctor sessions import` of the log writes the sessions so far";
                let problem = crate::cli::chain(&error.into());
                CliError::new(Exit::NotWritten, problem).with_hint(hint).into()
            }
            other => other.into(),
        }
    }

    /// A proxy in front of an API.
    pub(crate) fn listen(address: SocketAddr, upstream: &str) -> Result<Proxy> {
        let proxy = Proxy::bind(address, upstream).map_err(|error| {
            let hint = match &error {
                ProxyError::Listen { .. } => {
                    "as in `--listen 127.0.0.1:8787`, an address of this machine"
                }
                _ => "as in `--upstream https://api.anthropic.com`",
            };
            CliError::new(Exit::Usage, crate::cli::chain(&error.into())).with_hint(hint)
        })?;
        if !address.ip().is_loopback() {
            say("warning: everybody who reaches this address can use it");
        }
        Ok(proxy)
    }

    pub(crate) fn now() -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }

    /// Keeps an answered request.
    pub(crate) trait KeepExchange: Send {
        fn keep(&mut self, exchange: &ProxiedExchange) -> io::Result<()>;
    }

    /// Counts the requests by how they ended, says why one failed, and has those that were answered kept.
    pub(crate) struct RequestTally<K> {
        log: K,
        pub(crate) answered: usize,
        failed: usize,
        passed: usize,
        left: usize,
        /// The time that the proxy added to each answered request.
        added: Vec<Duration>,
    }

    impl<K> RequestTally<K> {
        pub(crate) fn of(log: K) -> Self {
            Self { log, answered: 0, failed: 0, passed: 0, left: 0, added: Vec::new() }
        }

        /// How many requests failed or lost their clients, and on a line of its own how long the others were delayed.
        pub(crate) fn rest(&mut self) -> String {
            let left = match self.left {
                0 => String::new(),
                1 => "; 1 client went away before its answer".to_owned(),
                left => format!("; {left} clients went away before their answers"),
            };
            let rest = format!("{} failed{left}", self.failed);
            if self.added.is_empty() {
                return rest;
            }
            self.added.sort_unstable();
            let [median, most] = [50, 95].map(|percent| self.percentile(percent));
            format!(
                "{rest}\nproctor delayed half of the answers by at most {median:.1} ms, and 95 % by at most {most:.1} ms"
            )
        }

        /// The added time that so many of 100 requests had at most, in milliseconds; the times are sorted.
        fn percentile(&self, percent: usize) -> f64 {
            let at = (self.added.len() * percent).div_ceil(100).saturating_sub(1);
            1_000.0 * self.added[at].as_secs_f64()
        }
    }

    impl<K: KeepExchange> ExchangeLog for RequestTally<K> {
        fn answered(&mut self, exchange: &ProxiedExchange) -> io::Result<()> {
            self.log.keep(exchange)?;
            self.answered += 1;
            self.added.push(exchange.added);
            Ok(())
        }

        fn failed(&mut self, failure: &Failure) {
            let address = match failure {
                // A person who stops an agent need not read of each request.
                Failure::ClientLeft => {
                    self.left += 1;
                    return;
                }
                Failure::Connection { address, .. } => format!(" (`{address}`)"),
                _ => String::new(),
            };
            self.failed += 1;
            say!("a request failed: {failure}{address}");
        }

        fn passed(&mut self) {
            self.passed += 1;
        }

        fn stuck(&mut self, error: &io::Error) {
            say!("warning: connections wait, because none can be accepted: {error}");
        }
    }

    /// The log: a file of requests with their answers, one per line, each written at once.
    struct Requests {
        folder: PathBuf,
        /// The logs, one for each API that was spoken to: the first is there from the beginning.
        files: Vec<(Option<Api>, PathBuf, File)>,
    }

    #[derive(Serialize)]
    struct LogLine<'a> {
        timestamp: String,
        request: Option<&'a RawValue>,
        response: &'a RawValue,
    }

    impl Requests {
        /// Makes a file that is not there yet, named after the time, which only its owner can read.
        fn begin(folder: &Path) -> Result<Self> {
            let at = time(now()).replace([':', '-'], "");
            let path = folder.join(format!("recorded-{at}.jsonl"));
            let file = File::create_new(&path).map_err(cannot(Exit::NotWritten, "make", &path))?;
            Ok(Self { folder: folder.to_owned(), files: vec![(None, path, file)] })
        }

        /// The log of that API. A program may speak to several, and each has a file of its own.
        fn file_of(&mut self, api: Api) -> io::Result<(&Path, &mut File)> {
            let mut files = self.files.iter();
            let known = files.position(|(its, ..)| its.is_none_or(|its| its == api));
            let at = known.unwrap_or(self.files.len());
            if known.is_none() {
                let (suffix, _) = names(api);
                let path = self.files[0].1.with_extension(format!("{suffix}.jsonl"));
                let file = File::create_new(&path).map_err(|error| at_path(&path, &error))?;
                let shown = path.display();
                say!("another API: its requests are kept in `{shown}`");
                self.files.push((Some(api), path, file));
            }
            let (its, path, file) = &mut self.files[at];
            *its = Some(api);
            Ok((path.as_path(), file))
        }
    }

    impl RequestTally<Requests> {
        /// Writes the sessions that the logs hold.
        fn end(mut self) -> Result<Exit> {
            let rest = self.rest();
            let Requests { folder, files } = self.log;
            if self.passed > 0 {
                let requests = many(self.passed, "request was", "requests were");
                say!(
                    "{requests} passed on and not kept: no session is made of calls to such paths"
                );
            }
            if self.answered == 0 {
                for (_, path, _) in &files {
                    drop(std::fs::remove_file(path));
                }
                say(&format!("nothing was recorded: 0 requests were answered, {rest}"));
                return Ok(Exit::NothingSelected);
            }
            let (mut sessions, mut unread) = (Vec::new(), Vec::new());
            for (api, path, _) in &files {
                let (_, format) = names(api.unwrap_or(Api::Messages));
                // The API is known, so that the format need not be found out.
                let read = match import::importer(format) {
                    Some(importer) => import::load_as(path, importer),
                    None => import::load(path),
                };
                match read {
                    Ok(read) => {
                        warn(path, &read);
                        sessions.extend(read);
                    }
                    Err(error) => unread.push(error),
                }
            }
            for error in unread {
                if sessions.is_empty() {
                    return Err(error.into());
                }
                let why = crate::cli::chain(&error.into());
                say!("warning: a log could not be read, and its requests are in no session: {why}");
            }
            for (written, session) in sessions.iter().enumerate() {
                // Each is waited for until it is on disk.
                if written % 1_000 == 0 && written + 1_000 < sessions.len() {
                    let (all, folder) = (sessions.len(), folder.display());
                    say!(
                        "{written} of {all} sessions are written to `{folder}`; Ctrl-C leaves, and \
                         `proctor sessions import` of the log writes all"
                    );
                }
                let path = write_session(&folder, session, false)?;
                let (messages, calls) = (session.messages().len(), session.calls().len());
                print(&format!("{}: {messages} messages, {calls} calls\n", path.display()))?;
            }
            say(&format!("{} requests in {} sessions; {rest}", self.answered, sessions.len()));
            Ok(Exit::Done)
        }
    }

    /// The same error with the path that it is about.
    fn at_path(path: &Path, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
    }

    /// Says what of a log was mended or left out.
    fn warn(path: &Path, sessions: &[Session]) {
        for (what, count) in sessions.iter().flat_map(|session| &session.source().warnings) {
            let shown = path.display();
            say!("warning: `{shown}`: {}: {count}", what);
        }
    }

    /// The suffix of an API's log, and the format that reads it.
    fn names(api: Api) -> (&'static str, &'static str) {
        match api {
            Api::Messages => ("messages", "anthropic"),
            Api::ChatCompletions => ("chat", "openai-chat"),
            Api::Responses => ("responses", "openai-responses"),
            Api::GenerateContent => ("contents", "gemini"),
        }
    }

    impl KeepExchange for Requests {
        fn keep(&mut self, exchange: &ProxiedExchange) -> io::Result<()> {
            let mut line = serde_json::to_vec(&LogLine {
                timestamp: time(exchange.at),
                request: exchange.request.as_deref(),
                response: &exchange.response,
            })?;
            // A request may be written over several lines; a line of the log is one line.
            line.retain(|byte| !matches!(byte, b'\n' | b'\r'));
            line.push(b'\n');
            let (path, file) = self.file_of(exchange.api)?;
            file.write_all(&line).map_err(|error| at_path(path, &error))
        }
    }

    fn time(at: Timestamp) -> String {
        jiff::Timestamp::from_millisecond(at.0)
            .map_or_else(|_| at.0.to_string(), |at| at.to_string())
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::*;

        #[test]
        fn a_full_disk_is_an_error_with_its_path() {
            let path = PathBuf::from("/dev/full");
            let file = File::options().write(true).open(&path).unwrap();
            let mut log = Requests { folder: PathBuf::new(), files: vec![(None, path, file)] };
            let exchange = ProxiedExchange {
                at: Timestamp(0),
                api: Api::Messages,
                request: None,
                response: RawValue::from_string("{}".to_owned()).unwrap(),
                added: Duration::ZERO,
            };
            let error = log.keep(&exchange).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(error.to_string().starts_with("`/dev/full`: "), "{error}");
        }
    }
}
