//! OpenHands keeps a session as events: what the user said, what the agent did (actions), what came
//! of it (observations).
//!
//! Version 0 writes `{action, args}` and `{observation, content, extras}`, in a trajectory (a
//! list), in the `history` of an evaluation's row, or as `events/N.json`; its oldest records have
//! no ids. Version 1 writes events with a `kind`, as `events/event-N-ID.json` beside a
//! `base_state.json`, or in lists and rows as before.
//!
//! Rules of this format, beside those every importer shares:
//! - Actions that name one response of the model are one message.
//! - A result is paired with the event it names as its cause; where it names none, by the call's
//!   id or by order.
//! - A condensation names the events that the model no longer sees, and its summary.
//! - Usage is told by response: beside the response, or in the statistics of the state; else it is
//!   the growth of what the session cost. The prompt's tokens include the cached ones.
//! - Later releases of version 1 name each event's parent: what the user went back from is left out.
//! - Times are without a zone; they are taken for UTC.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::assemble::{Assembler, add_counts, count, uncached};
use super::content;
use super::conversations::{Object, name, unknown_record};
use super::documents::Documents;
use super::lines::Line;
use super::sketch;
use super::{Folder, ImportError, Importer, SessionFiles};
use crate::session::{ContentBlock, RecordedCompaction, Session, Source};
use crate::units::{ApiCallId, Timestamp, Tokens, Usage};
use view::{Summary, View};

mod tree;
mod v0;
mod v1;
mod view;

/// Reads sessions of OpenHands.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenHands;

const FORMAT: &str = "openhands";

/// The state beside the events of version 1.
const STATE: &str = "base_state.json";

const LAST_CUT: &str = "the last event was cut and is left out";

impl Importer for OpenHands {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let is_event = |value: &serde_json::Value| {
            let text = |key: &str| value.get(key).is_some_and(serde_json::Value::is_string);
            (text("action") || text("observation")) && value.get("role").is_none()
                || text("kind") && text("source")
        };
        match sketch::values(head).first() {
            Some(serde_json::Value::Array(events)) => events.first().is_some_and(is_event),
            Some(row @ serde_json::Value::Object(_)) => {
                let has = |key: &str| row.get(key).is_some();
                let first = row.get("history").and_then(|history| match history.get(0) {
                    Some(serde_json::Value::Array(pair)) => pair.first(),
                    event => event,
                });
                // Of a row whose history begins later, the evaluation is seen.
                first.is_some_and(is_event)
                    || is_event(row)
                    || has("instance_id") && has("test_result") && !has("messages")
            }
            _ => false,
        }
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let documents = Documents::read(path, input)?;
        let (values, cut) = documents.values()?;
        let mut first = Source {
            warnings: documents.warnings.clone(),
            ..Source::default()
        };
        let rows = rows(&values, &mut first.unknown)?;
        if cut {
            count(&mut first.warnings, "the last line was cut and is left out");
        }
        let mut sessions = Vec::new();
        for row in rows {
            let mut reading = Reading::default();
            if let Some(mut metrics) = row.metrics {
                reading.learn_usages(metrics.take_list("token_usages"));
            }
            reading.events(&row.events);
            for (key, raw) in row.around {
                if raw.get() != "null" {
                    reading.assembler.skip(&format!("key `{key}`"));
                }
            }
            if reading.assembler.is_empty() {
                count(&mut first.skipped, "row without events");
                continue;
            }
            sessions.extend(reading.finish(documents.id.clone(), path)?);
        }
        let Some(session) = sessions.first_mut() else {
            return Err(ImportError::NoConversation {
                path: path.to_owned(),
            });
        };
        add_counts(&mut session.parts.source, first);
        name(&mut sessions, &documents.id);
        Ok(sessions)
    }

    fn detect_folder(&self, folder: &Folder) -> bool {
        let is_event = |name: &String| event_number(name).is_some();
        let is_plain = |name: &String| {
            let stem = name.strip_suffix(".json").unwrap_or_default();
            !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit())
        };
        let events = folder.folder("events");
        let in_events = |wanted: &dyn Fn(&String) -> bool| {
            let names = events.as_ref().map(Folder::names).unwrap_or_default();
            names.iter().any(wanted)
        };
        // A folder of files that are named by numbers may be anybody's, unless it is `events`.
        in_events(&is_event) || in_events(&is_plain) || folder.names().iter().any(is_event)
    }

    fn import_folder(
        &self,
        folder: &Folder,
        files: &mut SessionFiles,
    ) -> Result<Vec<Session>, ImportError> {
        let mut reading = Reading::default();
        let state = folder.child(STATE);
        if folder.has(STATE) {
            let documents = files.read(&state)?;
            for value in &documents.values()?.0 {
                reading.state(value.parse()?);
            }
        }
        let events = folder.folder("events");
        let paths = event_paths(events.as_ref().unwrap_or(folder));
        let mut documents = Vec::new();
        for (at, path) in paths.iter().enumerate() {
            match files.read(path) {
                Err(ImportError::Empty { .. }) if at + 1 == paths.len() => {
                    reading.assembler.warn(LAST_CUT);
                }
                read => documents.push(read?),
            }
        }
        let mut events: Vec<&RawValue> = Vec::new();
        for (at, one) in documents.iter().enumerate() {
            let values = match one.values() {
                Err(ImportError::TornLine { .. }) if at + 1 == paths.len() => {
                    reading.assembler.warn(LAST_CUT);
                    continue;
                }
                values => values?.0,
            };
            let warnings = one.warnings.clone();
            let source = Source {
                warnings,
                ..Source::default()
            };
            add_counts(&mut reading.assembler.source, source);
            for value in &values {
                events.push(value.parse()?);
            }
        }
        reading.events(&events);
        let session = reading.finish(files.session_id(folder), folder.path())?;
        let session = session.ok_or_else(|| ImportError::NoConversation {
            path: folder.path().to_owned(),
        })?;
        Ok(vec![session])
    }
}

/// The number in the name of an event's file: `event-00012-ID.json`, `event_000012_ID.json`.
fn event_number(name: &str) -> Option<u64> {
    let name = name.strip_suffix(".json")?;
    let rest = name
        .strip_prefix("event-")
        .or_else(|| name.strip_prefix("event_"))?;
    let end = rest.bytes().position(|byte| !byte.is_ascii_digit());
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

/// The files of a folder that are events, by number.
fn event_paths(folder: &Folder) -> Vec<PathBuf> {
    let plain = |name: &str| name.strip_suffix(".json")?.parse::<u64>().ok();
    let numbered =
        |name: &String| Some((event_number(name).or_else(|| plain(name))?, name.clone()));
    let mut names: Vec<(u64, String)> = folder.names().iter().filter_map(numbered).collect();
    names.sort_unstable();
    let paths = names.iter().map(|(_, name)| folder.child(name));
    paths.collect()
}

/// One session of a file.
#[derive(Default)]
struct Row<'a> {
    events: Vec<&'a RawValue>,
    metrics: Option<Object<'a>>,
    /// What else the row says.
    around: Vec<(String, &'a RawValue)>,
}

/// The sessions of a file: rows with a `history`, lists of events, or one event per line. A value
/// that is none of these is counted, unless it is all there is.
fn rows<'a>(
    values: &[Line<'a>],
    unknown: &mut BTreeMap<String, u64>,
) -> Result<Vec<Row<'a>>, ImportError> {
    let mut rows = Vec::new();
    let mut loose = Row::default();
    let mut problem = None;
    for value in values {
        match row(value) {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => loose.events.push(value.parse()?),
            Err(error) => {
                count(unknown, "value that is no row");
                problem = problem.or(Some(error));
            }
        }
    }
    if !loose.events.is_empty() {
        rows.push(loose);
    }
    match problem {
        Some(problem) if rows.is_empty() => Err(problem),
        _ => Ok(rows),
    }
}

/// A row, or none if the value is an event.
fn row<'a>(value: &Line<'a>) -> Result<Option<Row<'a>>, ImportError> {
    if value.text.starts_with('[') {
        let events = value.parse()?;
        return Ok(Some(Row {
            events,
            ..Row::default()
        }));
    }
    let mut object: BTreeMap<String, &RawValue> = value.parse()?;
    let Some(history) = object.remove("history") else {
        if object.contains_key("instance_id") {
            return Err(value.error("a row without `history`"));
        }
        return Ok(None);
    };
    // The oldest rows pair each action with what came of it.
    let items: Vec<&RawValue> = match history.get() {
        "null" => Vec::new(),
        text => value.parse_part(text)?,
    };
    let mut events = Vec::new();
    for item in items {
        match serde_json::from_str::<Vec<&RawValue>>(item.get()) {
            Ok(pair) => events.extend(pair),
            Err(_) => events.push(item),
        }
    }
    Ok(Some(Row {
        events,
        metrics: object.remove("metrics").and_then(Object::read),
        around: object.into_iter().collect(),
    }))
}

/// One session, growing event by event.
#[derive(Default)]
struct Reading {
    assembler: Assembler,
    view: View,
    /// What the provider billed, by response.
    usages: BTreeMap<Arc<str>, Usage>,
    /// What the session cost so far.
    spent: Usage,
    last_prompt: Option<Tokens>,
    events: usize,
    /// The event at which the session stands, where its state says so.
    leaf: Option<Arc<str>>,
    has_local_times: bool,
    older: v0::Pairs,
    newer: v1::Pairs,
}

impl Reading {
    /// Reads events; those that the user went back from are counted.
    fn events(&mut self, events: &[&RawValue]) {
        let branch = tree::branch(events, self.leaf.as_deref());
        for (at, raw) in events.iter().enumerate() {
            let is_left = branch.as_ref().is_some_and(|branch| !branch.contains(&at));
            if is_left && !v1::is_bookkeeping(raw) {
                self.events += 1;
                self.assembler.skip("event of an abandoned branch");
            } else {
                self.event(raw);
            }
        }
    }

    fn event(&mut self, raw: &RawValue) {
        self.events += 1;
        let Some(mut event) = Object::read(raw) else {
            let source = &mut self.assembler.source;
            if let Some(kept) = unknown_record("event malformed", raw, source) {
                let name = format!("event {}", self.events).into();
                self.view.user(&name, kept, &mut self.assembler);
            }
            return;
        };
        let kind = event.take_text("kind");
        match kind {
            Some(kind) => self.newer_event(&kind, event, raw),
            None => self.older_event(event, raw),
        }
    }

    fn finish(mut self, id: String, path: &Path) -> Result<Option<Session>, ImportError> {
        if self.has_local_times {
            self.assembler
                .warn("times are without a zone and were taken for UTC");
        }
        self.older.tell_left(&mut self.assembler);
        FORMAT.clone_into(&mut self.assembler.source.format);
        self.assembler.finish(id, path)
    }

    /// The time of an event, which names no zone.
    fn time(&mut self, event: &mut Object<'_>) -> Option<Timestamp> {
        let raw = event.take("timestamp")?;
        let text = content::text(raw);
        let local = text.as_deref().and_then(|text| {
            let time = text.parse::<jiff::civil::DateTime>().ok()?;
            time.to_zoned(jiff::tz::TimeZone::UTC).ok()
        });
        let time = text.as_deref().and_then(|text| text.parse().ok());
        self.has_local_times |= time.is_none() && local.is_some();
        let time: Option<jiff::Timestamp> = time.or(local.map(|local| local.timestamp()));
        if time.is_none() {
            self.assembler.warn("a timestamp cannot be read");
        }
        Some(Timestamp(time?.as_millisecond()))
    }

    /// Learns what responses cost.
    fn learn_usages(&mut self, list: Option<Vec<&RawValue>>) {
        for raw in list.into_iter().flatten() {
            let Some(mut one) = Object::read(raw) else {
                self.assembler.warn("a usage cannot be read");
                continue;
            };
            if let Some(response) = one.take_text("response_id").filter(|id| !id.is_empty()) {
                let usage = counters(one, &mut self.assembler);
                self.usages.insert(response, usage);
            }
        }
    }

    /// The state of version 1: the model, and what responses cost.
    fn state(&mut self, raw: &RawValue) {
        let mut state = Object::read(raw).unwrap_or_default();
        let agent = state.take_object("agent");
        if let Some(mut llm) = agent.and_then(|mut agent| agent.take_object("llm")) {
            let model = llm.take_text("model");
            self.assembler.header.model = model.map(|model| model.to_string());
            let window = llm.take("max_input_tokens");
            let window = window.and_then(|raw| serde_json::from_str(raw.get()).ok());
            self.assembler.header.context_window = window.map(Tokens);
        }
        self.leaf = state.take_text("leaf_event_id");
        let told = state.take_object("stats");
        let metrics = told.and_then(|mut told| {
            let older = told.take_object("service_to_metrics");
            told.take_object("usage_to_metrics").or(older)
        });
        for (_, raw) in metrics.unwrap_or_default().into_entries() {
            let mut metrics = Object::read(raw).unwrap_or_default();
            self.learn_usages(metrics.take_list("token_usages"));
        }
        self.assembler.skip("state");
    }

    /// Remembers what a call cost, once.
    fn billed(&mut self, usage: Option<Usage>) -> Option<Usage> {
        let usage = usage.filter(|usage| *usage != Usage::default())?;
        self.last_prompt = Some(usage.prompt());
        Some(usage)
    }

    fn condensed(&mut self, forgotten: &[Arc<str>], summary: Option<Summary>) {
        let after = self.view.condense(forgotten, summary, &mut self.assembler);
        let at = self.assembler.flush();
        self.assembler.compaction(RecordedCompaction {
            at,
            trigger: None,
            pre_tokens: self.last_prompt.take(),
            after,
        });
    }

    /// The summary of a condensation, and where it stands.
    fn summary(condensation: &mut Object<'_>) -> Option<Summary> {
        let offset = condensation.take("summary_offset");
        let offset = offset.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let text = condensation.take_text("summary")?;
        // Without a place it stands where the oldest version put it: first.
        let offset = offset.unwrap_or_default();
        Some(Summary { text, offset })
    }
}

/// The counters of one response. The prompt's include the cached ones.
fn counters(mut one: Object<'_>, assembler: &mut Assembler) -> Usage {
    let mut counter = |key: &str| {
        let raw = one.take(key);
        let value = raw.map(|raw| serde_json::from_str::<u64>(raw.get()));
        if matches!(value, Some(Err(_))) {
            assembler.warn("a usage counter is no count and was taken as zero");
        }
        value.and_then(Result::ok).unwrap_or_default()
    };
    let prompt = counter("prompt_tokens");
    let (read, written) = (counter("cache_read_tokens"), counter("cache_write_tokens"));
    let output = counter("completion_tokens");
    Usage {
        input_uncached: uncached(prompt, read.saturating_add(written), assembler),
        cache_write_5m: Tokens(written),
        cache_read: Tokens(read),
        output: Tokens(output),
        ..Usage::default()
    }
}

/// What an observation shows: its content between what the shell wrote before and after it.
fn framed(mut blocks: Vec<ContentBlock>, metadata: Option<Object<'_>>) -> Vec<ContentBlock> {
    let mut metadata = metadata.unwrap_or_default();
    let prefix = metadata.take_text("prefix").unwrap_or_default();
    let suffix = metadata.take_text("suffix").unwrap_or_default();
    if prefix.is_empty() && suffix.is_empty() {
        return blocks;
    }
    match &mut blocks[..] {
        [ContentBlock::Text(text)] => *text = format!("{prefix}{text}{suffix}").into(),
        _ => blocks.push(ContentBlock::Text(format!("{prefix}{suffix}").into())),
    }
    blocks
}

/// The name of the call that a response belongs to.
fn call_of(response: Option<&Arc<str>>) -> Option<ApiCallId> {
    let response = response.filter(|id| !id.is_empty());
    response.map(|id| ApiCallId(id.clone()))
}
