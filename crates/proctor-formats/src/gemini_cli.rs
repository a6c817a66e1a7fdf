//! Gemini CLI keeps one chat per file: a header and one record per line, or, in older versions,
//! one object with all `messages`.
//!
//! Rules of this format, beside those every importer shares:
//! - A record that is written again replaces the earlier one of its id: first come the words, then
//!   the tool calls. It keeps the place of the first.
//! - Calls and results are in the record of the model; the results are the user's next message.
//! - The input of a call includes what was read from the cache; thoughts are billed beside output.
//! - One that is written again with results masked masks them from there on: the first form is
//!   what was said.
//! - A chat that was saved as a checkpoint holds contents of the API's; see `checkpoint`.
//! - A sub-agent has a chat of its own.
//! - A chat that is resumed sets its context up again, and then all messages: that changes nothing.
//! - A chat that was compacted goes on with a snapshot of its state, which the product wrote; where
//!   all messages are set anew and hold one, they are what the compaction left.

use super::gemini_content::{answered, part, parts, response};
use super::kept_context::{Records, Shown};
use super::prelude::*;

mod checkpoint;

/// The request of the product where the model stopped too early.
const NUDGE: &str = "System: Please continue.";

/// The beginning of the product's own first message, which sets up the context.
const SETUP: &str = "This is the Gemini CLI.";

/// The shape of a chat's header.
const CHAT: &str = "sessionId projectHash startTime";

/// The shape of a record of the model's: the header may be lost.
const MODELS: &str = "id timestamp type=gemini content !uuid";

/// The shapes of a checkpoint.
const CHECKPOINT: &str =
    "history/0/parts:l history/0/role=user,model | !history 0/parts:l 0/role=user,model";

/// The shapes of a checkpoint in a file that is of this format: its first content may be odd, or longer than what is seen.
const CONTENTS: &str = "history:l | 0/parts,0/role";

pub(super) const IMPORTER: Importer = Importer::new("gemini-cli", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    head.item_is(CHAT) || head.is(CHECKPOINT) || head.text.starts_with('{') && head.any(20, MODELS)
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    if file.head().is(CONTENTS) {
        return checkpoint::import(file, source);
    }
    let chats = by_session(file.listed(source)?, |raw| {
        let header = Object::read(raw).filter(|record| record.has("startTime"));
        header?.take_text("sessionId")
    });
    let conversations = chats.into_iter().map(|records| conversation(records, file));
    sessions_of(conversations, source, file)
}

/// The conversation of one chat's records.
fn conversation(records: Vec<&RawValue>, file: &SourceText) -> Assembler {
    let mut chat = GeminiChat::default();
    for raw in records {
        if let Some(record) = lenient::record(raw, &mut chat.assembler.source) {
            chat.collect(record, raw);
        }
    }
    for step in std::mem::take(&mut chat.steps) {
        match step {
            GeminiStep::Said(record) => chat.read(record),
            GeminiStep::Compacted(records) => chat.compacted(records),
            GeminiStep::Masked(results) => {
                chat.assembler.replaces_results("tool output masked", None, results);
            }
            GeminiStep::Unknown(kind, raw) => {
                chat.assembler.hear_unknown("record", &kind, raw, None);
            }
        }
    }
    if chat.is_agents {
        // Its folder is named after the session that asked it.
        let folder = file.path.parent().and_then(Path::file_name);
        let main = &mut chat.assembler.source.main;
        *main = folder.map(|name| session_name(&name.to_string_lossy()));
        chat.assembler.is_side = true;
    }
    chat.assembler
}

/// The types of records that can be read.
const KNOWN: &str = "user gemini model info warning error";

/// A header, a record, or a change of the header.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a", rename_all = "camelCase")]
struct GeminiRecord<'a> {
    id: Text,
    kind: Text,
    r#type: Text,
    timestamp: Text,
    content: Option<&'a RawValue>,
    thoughts: Option<Vec<&'a RawValue>>,
    tokens: Option<&'a RawValue>,
    model: Text,
    tool_calls: Option<Vec<&'a RawValue>>,
    messages: Option<Vec<&'a RawValue>>,
    #[serde(rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Text,
}

#[derive(Default)]
struct GeminiChat<'a> {
    assembler: Assembler,
    steps: Vec<GeminiStep<'a>>,
    places: BTreeMap<Arc<str>, usize>,
    /// Whether the chat is a sub-agent's.
    is_agents: bool,
    /// The ids of messages that compactions left.
    left: BTreeSet<Arc<str>>,
    /// The id of the model's last message.
    last: Text,
    /// A list that sets up the context again, until it is known whether the chat is resumed or begun anew.
    set_up: Option<Vec<&'a RawValue>>,
    results: usize,
    /// The calls whose results stand in their records.
    answered: BTreeSet<Arc<str>>,
    records: Records,
    /// The masks of the results of these calls.
    masks: BTreeMap<Arc<str>, Arc<str>>,
    /// The kind of the last message.
    snapshot: LastSnapshot,
}

/// The part of a chat that a list of messages repeats.
enum Repeated {
    /// No more than what sets up the context.
    Nothing,
    /// All of it, to the model's last message.
    All,
}

fn id_of(record: &RawValue) -> Text {
    Object::read(record)?.text("id")
}

/// Whether the type of a record says that it is the model's.
fn is_models(kind: Option<&str>) -> bool {
    matches!(kind, Some("gemini" | "model"))
}

/// The texts in the place of the results of these calls.
type MaskedResults = Vec<(Arc<str>, Arc<str>)>;

/// A step of a chat.
enum GeminiStep<'a> {
    Said(GeminiRecord<'a>),
    /// The context after a compaction.
    Compacted(Vec<GeminiRecord<'a>>),
    Masked(MaskedResults),
    /// A record of a kind that is not known, as it was written.
    Unknown(Arc<str>, &'a RawValue),
}

impl<'a> GeminiChat<'a> {
    /// Takes the records in; one that was written again takes the place of the first.
    fn collect(&mut self, mut record: GeminiRecord<'a>, raw: &'a RawValue) {
        self.is_agents |= record.kind.as_deref() == Some("subagent");
        if let Some(id) = &record.rewind_to {
            return self.rewind(id);
        }
        let set = record.set.and_then(Object::read);
        if let Some(list) = set.and_then(|mut set| set.take_list("messages")) {
            self.assembler.skip("list of messages set anew");
            let masked = list.iter().any(|raw| raw.get().contains(MASK));
            match self.repeated(&list) {
                Some(Repeated::Nothing) if !masked => return self.set_up = Some(list),
                Some(Repeated::All) if !masked => return self.set_up = None,
                _ => self.set_up = None,
            }
            if !self.steps.is_empty() && list.iter().any(|raw| raw.get().contains(SNAPSHOT)) {
                self.left.extend(list.iter().filter_map(|raw| id_of(raw)));
                let records = list.into_iter().filter_map(|raw| self.record(raw)).collect();
                return self.steps.push(GeminiStep::Compacted(records));
            }
            // The list takes the place of all that was said; with results masked, it is all that
            // was said.
            if !masked || list.len() < self.places.len() {
                self.steps.clear();
                self.places.clear();
            }
            record.messages = Some(list);
        }
        self.collect_all(record.messages.take().unwrap_or_default());
        match record.r#type.as_deref() {
            Some(known) if is_one_of(KNOWN, known) => {}
            None if record.content.is_none() => return self.assembler.skip("header"),
            kind => {
                let name = kind.unwrap_or("without type").into();
                return self.steps.push(GeminiStep::Unknown(name, raw));
            }
        }
        if let Some(list) = self.set_up.take() {
            self.steps.clear();
            self.places.clear();
            self.collect_all(list);
        }
        if is_models(record.r#type.as_deref()) {
            self.last.clone_from(&record.id);
        }
        let place = record.id.as_ref().and_then(|id| self.places.get(id));
        if let Some(place) = place.copied() {
            if let Some(masked) = self.masked_in(place, &record) {
                match self.steps.last_mut() {
                    _ if masked.is_empty() => {}
                    Some(GeminiStep::Masked(results)) => results.extend(masked),
                    _ => self.steps.push(GeminiStep::Masked(masked)),
                }
                return;
            }
            self.steps[place] = GeminiStep::Said(record);
            return self.assembler.skip("earlier form of a record");
        }
        self.places.extend(record.id.clone().map(|id| (id, self.steps.len())));
        self.steps.push(GeminiStep::Said(record));
    }

    fn collect_all(&mut self, list: Vec<&'a RawValue>) {
        for raw in list {
            if let Some(message) = self.record(raw) {
                self.collect(message, raw);
            }
        }
    }

    /// The part of a chat that a list of messages repeats, if it has no other messages of the model's.
    fn repeated(&self, list: &[&RawValue]) -> Option<Repeated> {
        let (models, others): (Vec<&RawValue>, Vec<&RawValue>) = list.iter().partition(|raw| {
            let record = Object::read(raw).unwrap_or_default();
            is_models(record.text("type").as_deref())
        });
        let ends_chat = models.iter().any(|raw| id_of(raw) == self.last);
        let whole = ends_chat && models.iter().all(|raw| self.knows(raw));
        let compacted = self.steps.iter().any(|step| matches!(step, GeminiStep::Compacted(_)));
        let said = self.steps.iter().filter(
            |step| matches!(step, GeminiStep::Said(record) if is_models(record.r#type.as_deref())),
        );
        let ids: BTreeSet<Arc<str>> = models.iter().filter_map(|raw| id_of(raw)).collect();
        // Set up again as contents, records have neither bills nor the states of their calls.
        let as_contents = models.iter().any(|raw| raw.get().contains("\"functionCall\""))
            && ids.len() == said.count();
        if models.is_empty() && !self.steps.is_empty() && others.iter().all(|raw| self.knows(raw)) {
            Some(Repeated::Nothing)
        } else if (compacted || as_contents) && !models.is_empty() && whole {
            Some(Repeated::All)
        } else {
            None
        }
    }

    /// Whether a record has the id of a message that was said, or that a compaction left.
    fn knows(&self, record: &RawValue) -> bool {
        id_of(record).is_some_and(|id| self.places.contains_key(&id) || self.left.contains(&id))
    }

    /// The results that a rewritten record masks, if it does no more: the results that it cuts and
    /// that the record before it has whole.
    fn masked_in(&mut self, place: usize, new: &GeminiRecord<'_>) -> Option<MaskedResults> {
        let GeminiStep::Said(old) = &self.steps[place] else {
            return None;
        };
        let [old, new] = [&old.tool_calls, &new.tool_calls].map(|value| value.as_deref());
        let (old, new) = (old?, new?);
        if old.len() != new.len() || !new.iter().any(|raw| raw.get().contains(MASK)) {
            return None;
        }
        let mut masked = Vec::new();
        for (old, new) in old.iter().zip(new) {
            if old.get().contains(MASK) || !new.get().contains(MASK) {
                continue;
            }
            let call: GeminiCall<'_> = serde_json::from_str(new.get()).ok()?;
            let content = call.content(&mut Assembler::default()).unwrap_or_default();
            let text: Arc<str> = joined_texts(&content).into();
            let id = call.id.clone()?;
            // Each checkpoint masks the same results again.
            if self.masks.get(&id) != Some(&text) {
                self.masks.insert(id.clone(), text.clone());
                masked.push((id, text));
            }
        }
        Some(masked)
    }

    /// A record in a list of them.
    fn record(&mut self, raw: &'a RawValue) -> Option<GeminiRecord<'a>> {
        let record = lenient::object(raw.get(), &mut self.assembler.source);
        if record.is_none() {
            self.assembler.unknown("malformed record");
        }
        record
    }

    /// The person went back: the message of that id and all after it are gone.
    fn rewind(&mut self, id: &str) {
        match self.places.get(id).copied() {
            Some(at) => {
                self.steps.truncate(at);
                self.places.retain(|_, place| *place < at);
                self.assembler.skip("rewind");
            }
            None => self.assembler.warn("a rewind names a message that is not in the file"),
        }
    }

    fn read(&mut self, record: GeminiRecord<'_>) {
        let time = self.assembler.time(record.timestamp.as_deref());
        match record.r#type.as_deref() {
            Some("user") => self.user(&record, time),
            kind if is_models(kind) => self.model(record, time),
            Some(known @ ("info" | "warning" | "error")) => self.assembler.skip(known),
            // Others were warned of when they were collected.
            _ => {}
        }
    }

    fn user(&mut self, record: &GeminiRecord<'_>, timestamp: When) {
        if self.repeats_results(record.content) {
            return self.assembler.skip("result that stands with its call");
        }
        let blocks = parts(record.content, &mut self.assembler);
        let snapshot = blocks.iter().any(is_snapshot);
        if snapshot && !self.assembler.is_empty() {
            let summary = Recorded::written(Role::User, blocks, &[Tag::CompactSummary]);
            let after = CompactedTo::Replaced(vec![summary]);
            self.snapshot = LastSnapshot::Of(self.assembler.compacts(None, None, after));
            return;
        }
        self.snapshot = if snapshot { LastSnapshot::First } else { LastSnapshot::No };
        let tag = speaker_of(&blocks);
        self.hear(record.id.as_ref(), blocks, timestamp, tag);
    }

    /// Whether a message holds nothing but results that the records of their calls have.
    fn repeats_results(&self, content: Option<&RawValue>) -> bool {
        let parts = content.and_then(items).unwrap_or_default();
        let mut answered = parts.iter().map(|raw| {
            let result =
                Object::read(raw).and_then(|mut part| part.take_object("functionResponse"));
            result.and_then(|result| result.text("id"))
        });
        !parts.is_empty() && answered.all(|id| id.is_some_and(|id| self.answered.contains(&id)))
    }

    fn hear(&mut self, name: Option<&Arc<str>>, blocks: Blocks, time: When, tag: Option<Tag>) {
        self.records.note(name, &blocks);
        self.assembler.hear(name, blocks, time, tag);
    }

    /// All messages were set anew: they are the context after a compaction.
    fn compacted(&mut self, records: Vec<GeminiRecord<'_>>) {
        let at = self.assembler.flush();
        let mut shown = Vec::new();
        for record in records {
            match record.r#type.as_deref() {
                Some("user") => {
                    let blocks = parts(record.content, &mut self.assembler);
                    let tag = blocks.iter().any(is_snapshot).then_some(Tag::CompactSummary);
                    shown.push(Shown::of(record.id, Role::User, blocks, Vec::from_iter(tag)));
                }
                Some("gemini" | "model") => {
                    let (said, results) = self.said(&record);
                    let answers = record.id.as_ref().map(results_of);
                    shown.push(Shown::of(record.id, Role::Assistant, said, Vec::new()));
                    shown.push(Shown::of(answers, Role::User, results, Vec::new()));
                }
                Some(_) | None => {}
            }
        }
        shown.retain(|one| !one.blocks.is_empty());
        let after = CompactedTo::Replaced(self.records.pieces(&shown, at, &self.assembler));
        self.assembler.compacts(None, None, after);
    }

    /// The model's blocks in a record, and the results of its calls.
    fn said(&mut self, record: &GeminiRecord<'_>) -> (Blocks, Blocks) {
        let thoughts = record.thoughts.iter().flatten();
        let mut said: Blocks = thoughts.filter_map(|raw| thought(raw)).collect();
        said.extend(parts(record.content, &mut self.assembler));
        let mut results = Vec::new();
        for raw in record.tool_calls.iter().flatten() {
            let source = &mut self.assembler.source;
            let Some(call) = lenient::object::<GeminiCall<'_>>(raw.get(), source) else {
                said.push(counted("malformed tool call", raw, &mut self.assembler));
                continue;
            };
            self.results += 1;
            let id =
                call.id.clone().unwrap_or_else(|| format!("unnamed-call-{}", self.results).into());
            let name = call.name.clone().unwrap_or_else(|| "unnamed".into());
            said.push(ContentBlock::tool_use(id.clone(), name, input_or_empty(call.args)));
            if let Some(content) = call.content(&mut self.assembler) {
                let failed = matches!(call.status.as_deref(), Some("error" | "cancelled"));
                self.answered.insert(id.clone());
                results.push(ContentBlock::tool_result(id, content, failed));
            }
        }
        (said, results)
    }

    /// Adds the model's blocks, and the results of its calls.
    fn model(&mut self, record: GeminiRecord<'_>, timestamp: When) {
        let (said, results) = self.said(&record);
        let usage = record.tokens.and_then(|raw| usage_of(raw, &mut self.assembler));
        // The product answers for the model, so that it speaks in its turn.
        let ack = usage.is_none()
            && matches!(&said[..], [ContentBlock::Text(text)] if ACKS.contains(&text.trim()));
        let tag = match std::mem::take(&mut self.snapshot) {
            LastSnapshot::Of(compaction) if ack => {
                let written = Recorded::written(Role::Assistant, said, &[Tag::Synthetic]);
                return self.assembler.compacted_to(compaction, written);
            }
            LastSnapshot::First if ack => Some(Tag::Synthetic),
            LastSnapshot::Of(_) | LastSnapshot::First | LastSnapshot::No => None,
        };
        let name = record.id;
        self.records.note(name.as_ref(), &said);
        let answer = ModelRecord::of(said, timestamp).by(name.clone(), record.model, usage);
        self.assembler.assistant(name.as_ref(), answer.tagged(tag));
        if !results.is_empty() {
            self.hear(name.as_ref().map(results_of).as_ref(), results, None, None);
        }
    }
}

/// The name of the results that a record of the model's holds.
fn results_of(id: &Arc<str>) -> Arc<str> {
    format!("{id} results").into()
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct GeminiCall<'a> {
    id: Text,
    name: Text,
    args: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    status: Text,
}

impl GeminiCall<'_> {
    /// The result as the model got it: the text of the response, or the response as JSON; and the
    /// parts that came with it, such as an image.
    fn content(&self, assembler: &mut Assembler) -> Option<Blocks> {
        let raw = self.result.filter(|raw| raw.get() != "null")?;
        let Some(items) = items(raw) else {
            return Some(vec![response(raw)]);
        };
        let mut told = Vec::new();
        for raw in items {
            match Object::read(raw).and_then(|mut part| part.take_object("functionResponse")) {
                Some(function) => told.extend(answered(function, assembler)),
                None => told.push(part(raw, &mut assembler.source)),
            }
        }
        Some(told)
    }
}

fn thought(raw: &RawValue) -> Option<ContentBlock> {
    let mut thought = Object::read(raw)?;
    let parts = ["subject", "description"].map(|key| thought.take_text(key));
    let parts: Vec<Arc<str>> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| ContentBlock::thinking(parts.join("\n"), None))
}

/// The input includes what was read from the cache; what tools added to the prompt and what was
/// thought are counted apart.
fn usage_of(raw: &RawValue, assembler: &mut Assembler) -> Option<Usage> {
    let source = &mut assembler.source;
    let mut bill = usage(raw, CachedTokens::Within, source)?;
    let [thoughts, tool] = counters(&value(raw), ["/thoughts", "/tool"], source);
    bill.input_uncached += Tokens(tool);
    bill.output += Tokens(thoughts);
    Some(bill)
}

/// The beginning of the text that replaces a masked result.
const MASK: &str = "<tool_output_masked";

/// The tags in the message that a compaction leaves.
const SNAPSHOT: &str = "<state_snapshot>";
const SNAPSHOT_END: &str = "</state_snapshot>";

/// Acknowledgements that products of this family write as the model's answer to injected context.
pub(super) const ACKS: &[&str] =
    &["Got it. Thanks for the additional context!", "Got it. Thanks for the context!"];

/// Whether the last message was a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LastSnapshot {
    #[default]
    No,
    /// It was the first of all messages.
    First,
    /// It is what this compaction left.
    Of(usize),
}

/// Who wrote a message of the user's role.
fn speaker_of(blocks: &[ContentBlock]) -> Option<Tag> {
    if blocks.iter().any(is_snapshot) {
        return Some(Tag::CompactSummary);
    }
    speaker(blocks, |text| text == NUDGE || text.starts_with(SETUP))
}

/// Whether a text is what a compaction leaves.
fn is_snapshot(block: &ContentBlock) -> bool {
    block.as_text().is_some_and(|text| {
        let begins = text.trim_start().starts_with('<') || text.contains(SNAPSHOT_END);
        begins && text.contains(SNAPSHOT)
    })
}
