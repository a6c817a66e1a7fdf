//! Logged requests in one shape, however proxies wrap them.
//!
//! A request or a response may be the body itself, hold it under `body`, or be under
//! `request_body` and `response_body`; one of a batch is under `body` or `params` beside its
//! `custom_id`. Each may be JSON or JSON in a string, and a response also the text of an event
//! stream or the list of its events. [`unwrapped`] makes one object of them: the keys of the
//! request with those of the log, and the `response`, whole.

use super::head;
use super::prelude::*;
use proctor_sessions::wire::stream::Assembly;

type Entries = BTreeMap<String, Box<RawValue>>;

/// One of these is in every log.
const MARKS: [&str; 3] = ["\"request", "\"response", "\"custom_id\""];

/// The value unwrapped, if it is a log, or a list of logs. The messages are under `key`: where the
/// log has that itself, the request beside it stays. Broken responses are counted in `source`.
pub(super) fn unwrapped(text: &str, key: &str, api: Api, source: &mut Source) -> Option<String> {
    if !MARKS.iter().any(|mark| text.contains(mark)) {
        return None;
    }
    let mut log = BodyLog { key, api, is_head: false, source };
    if !text.starts_with('[') {
        return log.unwrapped(text);
    }
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let items = items
        .into_iter()
        .map(|item| log.unwrapped(item.get()).unwrap_or_else(|| item.get().to_owned()));
    Some(format!("[{}]", items.collect::<Vec<_>>().join(",")))
}

/// A record of a head, unwrapped if it is a log. A body that was cut with the head is closed.
pub(super) fn seen(record: &Value) -> Value {
    let text = record.to_string();
    let events =
        [("chat.completion.chunk", Api::ChatCompletions), ("response.created", Api::Responses)];
    let api = events.into_iter().find(|(event, _)| text.contains(event));
    let mut log = BodyLog {
        key: "messages",
        api: api.map_or(Api::Messages, |(_, api)| api),
        is_head: true,
        source: &mut Source::default(),
    };
    let unwrapped =
        MARKS.iter().any(|mark| text.contains(mark)).then(|| log.unwrapped(&text)).flatten();
    unwrapped.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| record.clone())
}

/// How logs are unwrapped.
struct BodyLog<'l> {
    key: &'l str,
    api: Api,
    /// Whether strings may be cut.
    is_head: bool,
    source: &'l mut Source,
}

impl BodyLog<'_> {
    fn unwrapped(&mut self, text: &str) -> Option<String> {
        let mut log: Entries = serde_json::from_str(text).ok()?;
        if log.contains_key("role") {
            return None;
        }
        let mut requests = vec!["request", "request_body"];
        if log.contains_key("custom_id") {
            requests.extend(["body", "params"]);
        }
        let response = take_first(&mut log, &["response", "response_body"]);
        let request = take_first(&mut log, &requests);
        if request.is_none() && response.is_none() {
            return None;
        }
        if let Some(request) = request {
            let raw = body(&request);
            let body = self.in_string(raw).unwrap_or_else(|| raw.to_owned());
            match serde_json::from_str::<Entries>(body.get()) {
                Ok(body) if !log.contains_key(self.key) => {
                    log.extend(body);
                    // Google's own tools put Gemini's request beside the name of a project.
                    if self.api == Api::GenerateContent
                        && !log.contains_key(self.key)
                        && let Some(inner) = log.remove("request")
                    {
                        log.extend(serde_json::from_str::<Entries>(inner.get()).ok()?);
                    }
                }
                _ => drop(log.insert("request".to_owned(), body)),
            }
        }
        if let Some(response) = response {
            let raw = body(&response);
            let whole = raw.get().starts_with('{').then(|| raw.to_owned());
            log.insert("response".to_owned(), self.answer(raw).or(whole).unwrap_or(response));
        }
        serde_json::to_string(&log).ok()
    }

    /// The object that a string holds as JSON.
    fn in_string(&self, raw: &RawValue) -> Option<Box<RawValue>> {
        let text: String = serde_json::from_str(raw.get()).ok()?;
        if self.is_head {
            let first = head::values(&text).into_iter().next();
            return serde_json::value::to_raw_value(&first.filter(Value::is_object)?).ok();
        }
        let inner: Box<RawValue> = serde_json::from_str(text.trim()).ok()?;
        inner.get().starts_with('{').then_some(inner)
    }

    /// An answer that is not an object: JSON in a string, the text of a stream, a list of its
    /// events.
    fn answer(&mut self, raw: &RawValue) -> Option<Box<RawValue>> {
        if let Some(whole) = self.in_string(raw) {
            return Some(whole);
        }
        let mut assembly = Assembly::new(self.api, true);
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            if !is_stream(&text) {
                return None;
            }
            assembly.push(text.as_bytes());
        } else {
            let events: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            let mut is_done = false;
            for event in &events {
                // Each is an event, or the line in which one came.
                let line: String = serde_json::from_str(event.get())
                    .unwrap_or_else(|_| format!("data: {}", event.get().replace('\n', " ")));
                is_done |= line.contains("[DONE]") || line.contains("finish_reason\":\"");
                assembly.push(line.as_bytes());
                assembly.push(b"\n");
            }
            // The mark of the end is not an event, and is left out of lists.
            if is_done && self.api == Api::ChatCompletions {
                assembly.push(b"data: [DONE]\n");
            }
        }
        let (whole, problem) = assembly.so_far();
        if problem.is_some() {
            self.source.warn("a streamed answer broke off; what came of it is kept");
        }
        whole.or_else(|| serde_json::value::to_raw_value(&serde_json::json!({})).ok())
    }
}

/// Takes the value of the first of these keys that a log has; none if that is `null`.
fn take_first(log: &mut Entries, keys: &[&str]) -> Option<Box<RawValue>> {
    keys.iter().find_map(|key| log.remove(*key)).filter(|raw| raw.get() != "null")
}

/// The value under `body`, or else the whole.
fn body(raw: &RawValue) -> &RawValue {
    let object: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(raw.get()).ok();
    let body = object.and_then(|object| object.get("body").copied());
    body.filter(|body| body.get() != "null").unwrap_or(raw)
}

/// Whether a text is a stream of server-sent events.
fn is_stream(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let fields = ["data:", "event:", "id:", "retry:", ":"];
    lines.next().is_some_and(|line: &str| fields.iter().any(|field| line.starts_with(field)))
        && text.contains("data:")
}
