//! Requests on their way through a strategy: which cell they belong to, and what is sent in their place.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{StatusCode, Uri};

use crate::live::{Live, LiveCell, Ticket};
use crate::session::import::outcomes::task_id;
use crate::session::wire::stream::Api;
use crate::units::Timestamp;

/// How often a prompt that was refused as too long is shortened and sent again, at most.
const MOST_RECOVERIES: u32 = 3;

/// The last repeat.
const MOST_REPEATS: u32 = 9_999;

/// Headers that mean the same as the beginning of a path.
pub(super) const HEADERS: [&str; 3] = ["x-proctor-task", "x-proctor-strategy", "x-proctor-repeat"];

/// The cell that a request belongs to, and its path without the parts that say so: `/t/TASK`, `/s/STRATEGY` and
/// `/r/REPEAT` in front, in any order. A strategy is named, or numbered from 0; without one it is the first.
pub(super) fn cell_of(
    live: &Live,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(LiveCell, String), &'static str> {
    const NO_STRATEGY: &str = "there is no strategy of that name or number";
    const NO_REPEAT: &str = "a repeat is a number from 0 to 9999";
    const NOT_READ: &str = "`live` does not read Gemini's API: record the agent with `proctor record`, and replay it with `proctor run`";
    let mut rest = uri.path();
    if Api::of_path(rest) == Some(Api::GenerateContent) {
        return Err(NOT_READ);
    }
    let mut parts = HEADERS.map(|name| headers.get(name)?.to_str().ok());
    loop {
        let mut segments = rest.splitn(4, '/').skip(1);
        let at = match segments.next() {
            Some("t") => 0,
            Some("s") => 1,
            Some("r") => 2,
            _ => break,
        };
        let Some(value) = segments.next() else { break };
        parts[at] = Some(value);
        rest = &rest[2 + 1 + value.len()..];
    }
    let [task, strategy, repeat] = parts;
    let strategy = match strategy {
        None => 0,
        Some(typed) => {
            let named = live.settings().position(|setting| setting.spec.name() == typed);
            let numbered = typed.parse().ok().filter(|at| *at < live.settings().len());
            named.or(numbered).ok_or(NO_STRATEGY)?
        }
    };
    let number = repeat.map_or(Ok(0), str::parse).ok();
    let repeat = number.filter(|repeat| *repeat <= MOST_REPEATS);
    let cell = LiveCell { task: task.map(unescaped), strategy, repeat: repeat.ok_or(NO_REPEAT)? };
    let rest = if rest.is_empty() { "/" } else { rest };
    Ok((cell, rest.to_owned()))
}

/// The id of a task whose name is in a path or a header, with or without `%` escapes.
fn unescaped(name: &str) -> String {
    let one = name.replace(['&', '=', '+'], "-");
    let mut parts = form_urlencoded::parse(one.as_bytes());
    parts.next().map_or_else(|| task_id(name), |(name, _)| task_id(&name))
}

/// A request that a strategy has seen.
#[derive(Debug, Clone)]
pub(super) struct Relayed {
    live: Arc<Live>,
    ticket: Ticket,
    api: Api,
    /// The agent's own body.
    body: Arc<str>,
    recoveries: u32,
}

impl Relayed {
    /// The body to send in the place of this one. Waits for the strategy, on a thread that may wait.
    pub(super) async fn send(
        live: &Arc<Live>,
        cell: LiveCell,
        api: Option<Api>,
        body: &Bytes,
        now: fn() -> Timestamp,
    ) -> (Bytes, Option<Self>) {
        let at = now();
        let as_it_came = (body.clone(), None);
        let (Some(api), Ok(text)) = (api, std::str::from_utf8(body)) else {
            let why = api.map_or("another path", |_| "the body is packed, or no text");
            live.pass(why);
            return as_it_came;
        };
        let text: Arc<str> = text.into();
        let work = {
            let (live, text) = (live.clone(), text.clone());
            move || live.send(&cell, api, &text, at)
        };
        let Ok(sent) = tokio::task::spawn_blocking(work).await else {
            live.pass("the strategy panicked");
            return as_it_came;
        };
        let relayed = sent.ticket.map(|ticket| Self {
            live: live.clone(),
            ticket,
            api,
            body: text,
            recoveries: 0,
        });
        (sent.body.map_or_else(|| body.clone(), Bytes::from), relayed)
    }

    /// A shorter body, where the provider refused the last one as too long and the strategy has one.
    pub(super) async fn again(&mut self, status: StatusCode, said: &[u8]) -> Option<Bytes> {
        let said = String::from_utf8_lossy(said).into_owned();
        if self.recoveries == MOST_RECOVERIES {
            return None;
        }
        self.recoveries += 1;
        let own = self.clone();
        let shorter = tokio::task::spawn_blocking(move || {
            own.live.refused(own.ticket, own.api, &own.body, (status.as_u16(), &said))
        });
        shorter.await.ok()?.map(Bytes::from)
    }

    /// Takes note of the answer.
    pub(super) fn answered(&self, response: &str, at: Timestamp) {
        self.live.answered(self.ticket, Some(response), at);
    }

    /// Takes note that there was no whole answer; as much of it as came says what is billed.
    pub(super) fn failed(&self, response: Option<&str>, at: Timestamp) {
        match response {
            Some(response) => self.live.cut(self.ticket, response),
            None => self.live.answered(self.ticket, None, at),
        }
    }
}
