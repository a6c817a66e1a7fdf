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
//! - Usage is recorded by response: beside the response, or in the statistics of the state; else it is
//!   the growth of what the session cost. The prompt's tokens include the cached ones.
//! - Later releases of version 1 name each event's parent: what the user went back from is left out.
//!   Events are then a tree, and the model sees the way from the root to the leaf.
//! - Times are without a zone; they are taken for UTC.

use super::prelude::*;
use view::{Summary, View};

mod v0;
mod v1;
mod view;

/// The state beside the events of version 1.
const STATE: &str = "base_state.json";

/// The shapes of an event.
const EVENT: &str = "action,observation:s !role | kind:s source:s";

const TOLD_BY_ACTION: &str = "a call is told by its action, not by the model's response";

pub(super) const IMPORTER: Importer =
    Importer::new("openhands", Detect::By(detect), import).in_folders(detect_folder, import_folder);

fn detect(head: &Head) -> bool {
    if let Some(Value::Array(events)) = head.first() {
        return events.first().is_some_and(|event| is_shaped(event, EVENT));
    }
    // The oldest rows pair events. Of a row whose history begins later, the evaluation is seen.
    let mut events = ["/history/0/0", "/history/0", ""].iter().filter_map(|at| head.at(at));
    events.any(|event| is_shaped(event, EVENT)) || head.is("instance_id test_result !messages")
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut sessions = Vec::new();
    for (events, mut around) in rows(&file.values(source)?, source)? {
        let mut reading = OpenhandsReading::default();
        reading.learn_usages(around.take("metrics").and_then(Object::read).unwrap_or_default());
        reading.events(&events);
        around.count_left("key", &mut reading.assembler);
        if reading.assembler.is_empty() {
            source.skip("row without events");
            continue;
        }
        reading.ends();
        sessions.extend(reading.assembler.finish(file.id.clone(), &file.path)?);
    }
    Ok(sessions)
}

fn detect_folder(folder: &Folder) -> bool {
    // A folder of files that are named by numbers may be any program's, unless it is `events`.
    folder.folder("events").is_some_and(|events| !event_paths(&events).is_empty())
        || folder.names().iter().any(|name| event_number(name).is_some())
}

fn import_folder(folder: &Folder, files: &mut SessionFiles, source: &mut Source) -> Imported {
    let mut reading = OpenhandsReading::default();
    let state = folder.child(STATE);
    if folder.has(STATE) {
        for value in &files.read(&state)?.values(source)? {
            reading.state(value.parse()?);
        }
    }
    let paths = event_paths(folder.folder("events").as_ref().unwrap_or(folder));
    let mut texts = Vec::with_capacity(paths.len());
    for path in &paths {
        texts.extend(files.value(path, source)?);
    }
    let events: Vec<&RawValue> =
        texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    reading.events(&events);
    reading.ends();
    reading.assembler.session(files.session_id(folder), folder.path())
}

/// The number in the name of an event's file: `event-00012-ID.json`, `event_000012_ID.json`.
fn event_number(name: &str) -> Option<u64> {
    let rest = name.strip_suffix(".json")?.strip_prefix("event")?.strip_prefix(['-', '_'])?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// The number that is the name of an older event's file: `12.json`.
fn plain_number(name: &str) -> Option<u64> {
    name.strip_suffix(".json")?.parse().ok()
}

/// The files of a folder that are events, by number.
fn event_paths(folder: &Folder) -> Vec<PathBuf> {
    let names = folder.names().iter();
    let numbered: BTreeSet<(u64, &String)> = names
        .filter_map(|name| Some((event_number(name).or_else(|| plain_number(name))?, name)))
        .collect();
    numbered.into_iter().map(|(_, name)| folder.child(name)).collect()
}

/// One session of a file: its events, and the keys around them.
type EventRow<'a> = (Vec<&'a RawValue>, Object<'a>);

/// The sessions of a file: rows with a `history`, lists of events, or one event per line. A value
/// that is none of these is counted, unless it is all there is.
fn rows<'a>(values: &[RecordLine<'a>], file: &mut Source) -> Result<Vec<EventRow<'a>>> {
    let mut rows = Vec::new();
    let mut loose = Vec::new();
    let mut problem = None;
    for value in values {
        match row(value) {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => loose.push(value.parse()?),
            Err(error) => {
                file.not_understood("value that is no row");
                problem = problem.or(Some(error));
            }
        }
    }
    rows.extend((!loose.is_empty()).then(|| (loose, Object::default())));
    match problem {
        Some(problem) if rows.is_empty() => Err(problem),
        _ => Ok(rows),
    }
}

/// A row, or none if the value is an event.
fn row<'a>(value: &RecordLine<'a>) -> Result<Option<EventRow<'a>>> {
    if value.text.starts_with('[') {
        return Ok(Some((value.parse()?, Object::default())));
    }
    let mut object: Object<'_> = value.parse()?;
    let Some(history) = object.remove("history") else {
        if object.contains("instance_id") {
            return Err(value.error("a row without `history`"));
        }
        return Ok(None);
    };
    // The oldest rows pair each action with what came of it.
    let pairs: Vec<&RawValue> = match history.get() {
        "null" => Vec::new(),
        text => value.parse_part(text)?,
    };
    let events = pairs.into_iter().flat_map(|raw| items(raw).unwrap_or_else(|| vec![raw]));
    Ok(Some((events.collect(), object)))
}

/// One session, growing event by event.
#[derive(Default)]
struct OpenhandsReading {
    assembler: Assembler,
    view: View,
    /// The provider's bills, by response.
    usages: BTreeMap<Arc<str>, Usage>,
    /// The cost of the session so far.
    spent: Usage,
    last_prompt: Option<Tokens>,
    events: usize,
    /// The current event of the session, if its state says so.
    leaf: Text,
    has_local_times: bool,
    pairs: PairedCalls,
}

/// An event while it is read.
struct AgentEvent<'a> {
    name: Arc<str>,
    time: When,
    /// The keys that were not read yet.
    keys: Object<'a>,
    raw: &'a RawValue,
}

/// Calls until they are answered, and responses until all of their calls are made.
#[derive(Debug, Default)]
struct PairedCalls {
    /// The tool use that an action made, by the action's name.
    uses: BTreeMap<Arc<str>, Arc<str>>,
    /// Calls that no result names, in order.
    open: VecDeque<Arc<str>>,
    taken: BTreeSet<Arc<str>>,
    /// Responses whose words were said.
    said: BTreeSet<Arc<str>>,
    /// Calls of responses for which no action was seen yet.
    unmade: BTreeSet<Arc<str>>,
    /// Commands that the user ran.
    commands: BTreeSet<Arc<str>>,
}

impl PairedCalls {
    /// The id of an action's call: the provider's, unless another call had it.
    fn id(&mut self, wanted: Text, action: &Arc<str>) -> Arc<str> {
        let id = match wanted.filter(|id| !id.is_empty()) {
            Some(id) if !self.taken.contains(&id) => id,
            Some(id) => format!("{id}-{action}").into(),
            None => format!("call-{action}").into(),
        };
        self.taken.insert(id.clone());
        self.uses.insert(action.clone(), id.clone());
        id
    }
}

impl OpenhandsReading {
    /// Reads events; those that the user went back from are counted.
    fn events(&mut self, events: &[&RawValue]) {
        let kept = branch(events, self.leaf.as_deref());
        for (at, raw) in events.iter().enumerate() {
            if kept.as_ref().is_some_and(|kept| !kept.contains(&at)) && !v1::is_bookkeeping(raw) {
                self.events += 1;
                self.assembler.skip("event of an abandoned branch");
            } else {
                self.event(raw);
            }
        }
    }

    fn event(&mut self, raw: &RawValue) {
        self.events += 1;
        let number = self.events;
        let mut keys = Object::read(raw).unwrap_or_default();
        let kind = keys.take_text("kind");
        let (own, numbered): (Text, String) = match kind {
            Some(_) => (keys.take_text("id"), format!("event {number}")),
            None => (keys.take("id").map(|id| id.get().into()), number.to_string()),
        };
        let event = AgentEvent {
            name: own.unwrap_or_else(|| numbered.into()),
            time: self.time(&mut keys),
            keys,
            raw,
        };
        match kind {
            Some(kind) => self.newer_event(&kind, event),
            None => self.older_event(event),
        }
    }

    fn ends(&mut self) {
        if self.has_local_times {
            self.assembler.warn("times are without a zone and were taken for UTC");
        }
        let what = "a call of a response was never made and is left out";
        self.assembler.warn_all(&self.pairs.unmade, what);
    }

    /// Adds an event of the user's or a tool's.
    fn hear(&mut self, event: &AgentEvent<'_>, blocks: Blocks, tag: Option<Tag>) {
        let name = &event.name;
        self.view.show(name, Role::User, &blocks, tag.as_slice());
        self.assembler.hear(Some(name), blocks, event.time, tag);
    }

    /// Adds an event that is the result of a tool use; without one it is the product's.
    fn hear_answer(&mut self, event: &AgentEvent<'_>, id: Text, blocks: Blocks, is_error: bool) {
        match id {
            Some(id) => {
                let result = ContentBlock::tool_result(id, blocks, is_error);
                self.hear(event, vec![result], None);
            }
            None => self.hear(event, blocks, Some(Tag::Meta)),
        }
    }

    /// Adds an event of the model's, which is this record.
    fn say(&mut self, event: &AgentEvent<'_>, record: ModelRecord) {
        self.view.show(&event.name, Role::Assistant, &record.blocks, &[]);
        self.assembler.assistant(Some(&event.name), record);
    }

    /// Adds an event that is in no message.
    fn silent(&mut self, event: &AgentEvent<'_>, kind: &str) {
        self.view.show(&event.name, Role::User, &[], &[]);
        self.assembler.skip(&format!("event {kind}"));
    }

    /// The time of an event, which names no zone.
    fn time(&mut self, event: &mut Object<'_>) -> When {
        let time = content::text(event.take("timestamp")?).and_then(|text| time_or_local(&text));
        let (time, is_local) = time_or_warn(time, &mut self.assembler.source)?;
        self.has_local_times |= is_local;
        Some(time)
    }

    /// Learns what responses cost.
    fn learn_usages(&mut self, mut metrics: Object<'_>) {
        for raw in metrics.items("token_usages") {
            let one = value(raw);
            if !one.is_object() {
                self.assembler.warn("a usage cannot be read");
            } else if let Some(response) = one["response_id"].as_str().filter(|id| !id.is_empty()) {
                let usage = usage_in(&one, CachedTokens::Within, &mut self.assembler.source);
                self.usages.insert(response.into(), usage);
            }
        }
    }

    /// The state of version 1: the model, and what responses cost.
    fn state(&mut self, raw: &RawValue) {
        let mut state = Object::read(raw).unwrap_or_default();
        let agent = state.take_object("agent");
        if let Some(mut llm) = agent.and_then(|mut agent| agent.take_object("llm")) {
            let header = &mut self.assembler.header;
            header.model = llm.take_text("model");
            header.context_window = llm.take_as("max_input_tokens").map(Tokens);
        }
        self.leaf = state.take_text("leaf_event_id");
        let mut stats = state.inner("stats");
        let older = stats.take_object("service_to_metrics");
        let metrics = stats.take_object("usage_to_metrics").or(older);
        for (_, raw) in metrics.unwrap_or_default().into_entries() {
            self.learn_usages(Object::read(raw).unwrap_or_default());
        }
        self.assembler.skip("state");
    }

    /// Remembers what a call cost, once.
    fn billed(&mut self, bill: Option<Usage>) -> Option<Usage> {
        let usage = bill.and_then(unless_zero)?;
        self.last_prompt = Some(usage.prompt());
        Some(usage)
    }

    /// Adds a condensation, whose keys hold the summary and its place.
    fn condensed(&mut self, forgotten: &[Arc<str>], keys: &mut Object<'_>) {
        // Without a place it is where the oldest version put it: first.
        let offset = keys.take_as("summary_offset").unwrap_or_default();
        let summary = keys.take_text("summary").map(|text| Summary { text, offset });
        let after = self.view.condense(forgotten, summary, &mut self.assembler);
        let response = keys.take_text("llm_response_id");
        let bill = response.and_then(|id| self.usages.get(&id).copied());
        self.assembler.summary_usage = bill.and_then(unless_zero);
        self.assembler.compacts(None, self.last_prompt.take(), after);
    }
}

/// The content of an observation, between the texts of the shell before and after it.
fn framed(mut blocks: Blocks, metadata: Option<Object<'_>>) -> Blocks {
    let mut texts = metadata.unwrap_or_default();
    let [prefix, suffix] = ["prefix", "suffix"].map(|key| texts.take_text(key).unwrap_or_default());
    if prefix.is_empty() && suffix.is_empty() {
        return blocks;
    }
    match &mut blocks[..] {
        [ContentBlock::Text(text)] => *text = format!("{prefix}{text}{suffix}").into(),
        _ => blocks.push(ContentBlock::Text(format!("{prefix}{suffix}").into())),
    }
    blocks
}

/// The parent of an event that begins the conversation anew.
const ROOT: &str = "__root__";

/// Events that cannot be the end of a branch.
const BESIDE: &str = "ConversationStateUpdateEvent ConversationErrorEvent";

/// The place of an event in the tree of events.
#[derive(Default, Deserialize)]
struct EventNode {
    kind: Text,
    id: Text,
    parent_id: Text,
}

/// The indices of the events between the root and `leaf`, by default the last event; none where no
/// event names its parent, and all are in one line.
fn branch(events: &[&RawValue], leaf: Option<&str>) -> Option<BTreeSet<usize>> {
    let nodes = events.iter().map(|raw| serde_json::from_str(raw.get()));
    let nodes: Vec<EventNode> = nodes.map(Result::unwrap_or_default).collect();
    if nodes.iter().all(|node| node.parent_id.is_none()) {
        return None;
    }
    let names = nodes.iter().map(|node| node.id.as_deref());
    let named = leaf.and_then(|leaf| names.clone().position(|name| name == Some(leaf)));
    let mut kinds = nodes.iter().map(|node| node.kind.as_deref().unwrap_or_default());
    let last = named.or_else(|| kinds.rposition(|kind| !is_one_of(BESIDE, kind)));
    // An event of an earlier release follows the one before it; so does one whose parent is missing.
    Some(branch_of(names, last, |at| match nodes[at].parent_id.as_deref() {
        Some(ROOT) => Parent::None,
        named => Parent::Named(named),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events are written as `id<parent`, or `id` alone.
    #[track_caller]
    fn check(events: &[&str], leaf: Option<&str>, expected: Option<&[usize]>) {
        let texts: Vec<String> = events
            .iter()
            .map(|event| match event.split_once('<') {
                Some((id, parent)) => format!(r#"{{"id":"{id}","parent_id":"{parent}"}}"#),
                None => format!(r#"{{"id":"{event}","parent_id":null}}"#),
            })
            .collect();
        let raws: Vec<&RawValue> =
            texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let expected = expected.map(|places| places.iter().copied().collect());
        assert_eq!(branch(&raws, leaf), expected, "{events:?}");
    }

    #[test]
    fn the_branch_is_the_way_from_the_root_to_the_leaf() {
        check(&["a", "b", "c"], None, None);
        check(&["a", "b<a", "c<b", "d<b"], None, Some(&[0, 1, 3]));
        check(&["a", "b<a", "c<b", "d<b"], Some("c"), Some(&[0, 1, 2]));
        // Earlier events name no parent and follow each other.
        check(&["a", "b", "c<b", "d<a"], None, Some(&[0, 3]));
        check(&["a", "b", "c<b"], None, Some(&[0, 1, 2]));
        check(&["a", "b<a", "c<__root__"], None, Some(&[2]));
        // An impossible link does not lose the other records, and ends.
        check(&["a", "b<x"], Some("nobody"), Some(&[0, 1]));
        check(&["a<b", "b<a"], None, Some(&[0, 1]));
    }
}
