//! Logged requests as proxies write them: bodies in strings, answers as the events they came in.
//!
//! A request or a response may be the body itself, hold it under `body`, or stand under
//! `request_body` and `response_body`; each may be JSON or JSON in a string, and a response also
//! the text of an event stream or the list of its events. All are laid out as a `request` object
//! with its `response` object, so that the importers see one shape.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::head;
use crate::session::wire::stream::{Api, Assembly};

/// The two keys of a log's line, by whoever wrote it.
const KEYS: [(&str, &str); 2] = [("request", "response"), ("request_body", "response_body")];

/// The value with its bodies laid out, where it has any; `warn` is told what is wrong with them.
pub(super) fn laid_out(text: &str, api: Api, warn: &mut dyn FnMut(&str)) -> Option<String> {
    if !text.contains("\"request") && !text.contains("\"response") {
        return None;
    }
    if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let mut is_changed = false;
        let items: Vec<Cow<'_, str>> = items
            .into_iter()
            .map(|item| match object(item.get(), api, warn) {
                Some(changed) => {
                    is_changed = true;
                    changed.into()
                }
                None => item.get().into(),
            })
            .collect();
        return is_changed.then(|| format!("[{}]", items.join(",")));
    }
    object(text, api, warn)
}

/// The same for one object.
fn object(text: &str, api: Api, warn: &mut dyn FnMut(&str)) -> Option<String> {
    let mut object: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
    let (request, response) = KEYS
        .into_iter()
        .find(|(one, two)| object.contains_key(*one) || object.contains_key(*two))?;
    let asked = object.get(request).and_then(|raw| in_string(body(raw)));
    let told = object
        .get(response)
        .and_then(|raw| answer(body(raw), api, warn));
    if asked.is_none() && told.is_none() && request == "request" {
        return None;
    }
    let asked = asked.or_else(|| object.get(request).map(|raw| raw.get().to_owned()));
    let told = told.or_else(|| object.get(response).map(|raw| raw.get().to_owned()));
    object.remove(request);
    object.remove(response);
    let mut parts: Vec<String> = Vec::new();
    for (key, raw) in object {
        parts.push(format!("{}:{}", Value::from(&*key), raw.get()));
    }
    for (key, value) in [("request", asked), ("response", told)] {
        parts.extend(value.map(|value| format!("\"{key}\":{value}")));
    }
    Some(format!("{{{}}}", parts.join(",")))
}

/// What stands under `body`, or else the whole.
fn body(raw: &RawValue) -> &RawValue {
    let object: Option<BTreeMap<Cow<'_, str>, &RawValue>> = serde_json::from_str(raw.get()).ok();
    let body = object.and_then(|object| object.get("body").copied());
    body.filter(|body| body.get() != "null").unwrap_or(raw)
}

/// The object that a string holds as JSON.
fn in_string(raw: &RawValue) -> Option<String> {
    let text: String = serde_json::from_str(raw.get()).ok()?;
    let inner: &RawValue = serde_json::from_str(text.trim()).ok()?;
    inner.get().starts_with('{').then(|| inner.get().to_owned())
}

/// An answer that is no object: JSON in a string, the text of a stream, a list of its events.
fn answer(raw: &RawValue, api: Api, warn: &mut dyn FnMut(&str)) -> Option<String> {
    if let Some(whole) = in_string(raw) {
        return Some(whole);
    }
    let mut assembly = Assembly::new(api, true);
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
            let line: Option<String> = serde_json::from_str(event.get()).ok();
            let line = line.unwrap_or_else(|| format!("data: {}", event.get().replace('\n', " ")));
            is_done |= line.contains("[DONE]") || line.contains("finish_reason\":\"");
            assembly.push(line.as_bytes());
            assembly.push(b"\n");
        }
        // The mark of the end is no event, and is left out of lists.
        if is_done && api == Api::ChatCompletions {
            assembly.push(b"data: [DONE]\n");
        }
    }
    let (whole, problem) = assembly.so_far();
    if problem.is_some() {
        warn("a streamed answer broke off; what came of it is kept");
    }
    Some(whole.map_or_else(|| "{}".to_owned(), |whole| whole.get().to_owned()))
}

/// Whether a text is a stream of server-sent events.
pub(super) fn is_stream(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_field = |line: &str| {
        ["data:", "event:", "id:", "retry:", ":"]
            .iter()
            .any(|field| line.starts_with(field))
    };
    lines.next().is_some_and(is_field) && text.contains("data:")
}

/// A value of a head with its bodies laid out, to be looked at. A body that was cut with the head is
/// closed.
pub(super) fn seen(value: &Value) -> Option<Value> {
    let mut value = value.clone();
    for at in ["/request/body", "/request", "/request_body"] {
        if let Some(asked) = value.pointer_mut(at)
            && let Some(inner) = asked.as_str().map(head::values)
            && let Some(inner) = inner.into_iter().next().filter(Value::is_object)
        {
            *asked = inner;
            return seen(&value).or(Some(value));
        }
    }
    let text = value.to_string();
    let apis = [Api::ChatCompletions, Api::Responses];
    let api = apis.into_iter().find(|api| value_names(&text, *api));
    let laid_out = laid_out(&text, api.unwrap_or(Api::Messages), &mut |_| {})?;
    serde_json::from_str(&laid_out).ok()
}

/// Whether events of that API stand in the text.
fn value_names(text: &str, api: Api) -> bool {
    let mark = match api {
        Api::Messages => "message_start",
        Api::ChatCompletions => "chat.completion.chunk",
        Api::Responses => "response.created",
    };
    text.contains(mark)
}
