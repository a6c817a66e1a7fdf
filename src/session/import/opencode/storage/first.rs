//! The first messages of opencode, in the words of those that came after: their parts stand in them,
//! and what they say of themselves under `metadata`.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::super::super::conversations::Object;
use super::super::Stored;
use super::take_parts;

/// The message, with its parts apart from it.
pub(super) fn now(stored: Stored) -> Stored {
    let info: Option<&RawValue> = serde_json::from_str(&stored.info).ok();
    let Some(mut info) = info.and_then(Object::read) else {
        return stored;
    };
    if !stored.parts.is_empty() {
        return stored;
    }
    let Some(parts) = take_parts(&mut info) else {
        return stored;
    };
    let Some(mut about) = info.take_object("metadata") else {
        return Stored { parts, ..stored };
    };
    let mut tools = about.take_object("tool").unwrap_or_default();
    let parts = parts
        .iter()
        .map(|part| self::part(part, &mut tools).unwrap_or_else(|| part.clone()));
    let parts = parts.collect();
    let parts = with_ends(parts);
    let mut model = about.take_object("assistant").unwrap_or_default();
    let mut written = Json::default();
    written.add("id", info.take("id"));
    written.add("role", info.take("role"));
    written.add("time", about.take("time"));
    written.add("error", about.take("error"));
    for key in ["modelID", "tokens", "summary"] {
        written.add(key, model.take(key));
    }
    let info = written.done();
    Stored {
        id: stored.id.clone(),
        info,
        parts,
    }
}

/// The parts, with an end behind each call but the last: only where calls began was written down.
fn with_ends(parts: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut all: Vec<Arc<str>> = Vec::with_capacity(parts.len());
    for part in parts {
        let raw = serde_json::from_str::<&RawValue>(&part).ok();
        let kind = raw.and_then(Object::read).and_then(|it| it.text("type"));
        if kind.as_deref() == Some("step-start") && !all.is_empty() {
            all.push(r#"{"type":"step-finish"}"#.into());
        }
        all.push(part);
    }
    all
}

/// A part, where it has other names for what it says.
fn part(text: &Arc<str>, tools: &mut Object<'_>) -> Option<Arc<str>> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let mut part = Object::read(raw)?;
    let kind = part.take("type")?;
    let mut written = Json::default();
    match kind.get() {
        "\"reasoning\"" => {
            written.add("type", Some(kind));
            written.add("text", part.take("text"));
            written.add("metadata", part.take("providerMetadata"));
        }
        "\"file\"" => {
            written.add("type", Some(kind));
            written.add("mime", part.take("mediaType"));
            written.add("filename", part.take("filename"));
            written.add("url", part.take("url"));
        }
        "\"tool-invocation\"" => {
            let mut call = part.take_object("toolInvocation")?;
            let id = call.text("toolCallId");
            let mut about = id.and_then(|id| tools.take_object(&id)).unwrap_or_default();
            let is_error = about.take("error").is_some_and(|it| it.get() == "true");
            let result = call.take("result");
            let (status, said) = match (&result, is_error) {
                (None, _) => ("\"running\"", "output"),
                (Some(_), false) => ("\"completed\"", "output"),
                (Some(_), true) => ("\"error\"", "error"),
            };
            let mut state = Json::default();
            state.put("status", status);
            state.add("input", call.take("args"));
            state.add(said, result);
            state.add("time", about.take("time"));
            written.put("type", "\"tool\"");
            written.add("callID", call.take("toolCallId"));
            written.add("tool", call.take("toolName"));
            written.put("state", &state.done());
        }
        _ => return None,
    }
    Some(written.done())
}

/// An object that is written key by key, of values as they were recorded.
#[derive(Default)]
struct Json {
    text: String,
}

impl Json {
    fn add(&mut self, key: &str, value: Option<&RawValue>) {
        if let Some(value) = value {
            self.put(key, value.get());
        }
    }

    fn put(&mut self, key: &str, value: &str) {
        let between = if self.text.is_empty() { '{' } else { ',' };
        // Writing to a text cannot fail.
        let _ = write!(self.text, "{between}\"{key}\":{value}");
    }

    fn done(mut self) -> Arc<str> {
        if self.text.is_empty() {
            self.text.push('{');
        }
        self.text.push('}');
        self.text.into()
    }
}
