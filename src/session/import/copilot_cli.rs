//! Copilot CLI keeps a log of events, one per line: `type`, `data`, `id`, `timestamp`. Its first
//! versions wrote one object, of which `chatMessages` are the messages as the API has them.
//!
//! Rules of this format, beside those every importer shares:
//! - What the model was sent of a user's message is its `transformedContent`.
//! - Calls stand in `toolRequests`, and once more where they are carried out. Those that only stand
//!   there are calls nobody else recorded: of a sub-agent, or of the user.
//! - What a sub-agent says and does names the tool call it came from (`parentToolCallId`, or
//!   `agentId` of newer versions): each is a session of its own.
//! - A compaction runs beside the work: what was said since it began stays. It takes effect with
//!   the next call.
//! - A rewind takes an event and all after it back.
//! - Each message says what the model wrote in tokens; what it read is told only where the events
//!   `assistant.usage` were kept.

use super::conversations::{self, Shape};
use super::openai_chat::{self, Dialect};
use super::prelude::*;
use super::product::is_one_of;

const FORMAT: &str = "copilot-cli";

/// The files of the first versions.
const FIRST: Shape = Shape::of_messages(FORMAT, "chatMessages");

/// Whether a file that begins so is of the first versions.
fn is_first(head: &Head) -> bool {
    let has = |key| head.first().is_some_and(|it| it.get(key).is_some());
    has("sessionId") && has("chatMessages")
}

/// Kinds of events that are no part of the conversation, by the first word of their name.
const BOOKKEEPING: &str = "session hook permission subagent skill command commands capabilities \
     elicitation external_tool exit_plan_mode user_input pending_messages mcp sampling abort \
     assistant tool system model";

pub(super) const IMPORTER: Importer = Importer::new(FORMAT, detect, import);

fn detect(head: &Head) -> bool {
    let is_event = |first: &Value| {
        let kind = first.get("type").and_then(Value::as_str);
        let named = kind.and_then(|kind| kind.split_once('.'));
        let events = ["session", "user", "assistant", "tool", "hook", "system"];
        first.get("data").is_some() && named.is_some_and(|(kind, _)| events.contains(&kind))
    };
    head.first().is_some_and(is_event) || is_first(head)
}

fn import(file: SourceFile) -> Result<Vec<Session>, ImportError> {
    if is_first(&Head::of(&file.bytes)) {
        return conversations::sessions(FIRST, file, |mut conversation, assembler| {
            let model = conversation.around.take_text("selectedModel");
            openai_chat::read(conversation, Dialect::Api, assembler);
            let model = model.map(|model| model.to_string());
            assembler.header.model = assembler.header.model.take().or(model);
        });
    }
    let text = file.text();
    let mut lines = text.lines();
    let mut log = Log::default();
    while let Some(line) = lines.next()? {
        log.collect(line.parse::<&RawValue>()?.to_owned());
    }
    let mut main = Reading::default();
    main.assembler.source = log.source;
    FORMAT.clone_into(&mut main.assembler.source.format);
    add_counts(&mut main.assembler.source, lines.source);
    let mut sides: Vec<Reading> = Vec::new();
    let mut agents: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for event in log.events {
        let Some(agent) = event.agent() else {
            main.event(&event, &log.usages);
            continue;
        };
        let at = *agents.entry(agent).or_insert_with(|| {
            let mut side = Reading::side();
            FORMAT.clone_into(&mut side.assembler.source.format);
            sides.push(side);
            sides.len() - 1
        });
        sides[at].event(&event, &log.usages);
    }
    let (id, path) = (&text.id, &text.path);
    let mut sessions = Vec::new();
    sessions.extend(main.finish(id.clone(), path)?);
    for (at, side) in sides.into_iter().enumerate() {
        sessions.extend(side.finish(format!("{id}-side-{}", at + 1), path)?);
    }
    some(sessions, path)
}

/// One event of the log.
struct Event {
    kind: Arc<str>,
    id: Option<Arc<str>>,
    time: Option<Arc<str>>,
    agent: Option<Arc<str>>,
    raw: Box<RawValue>,
}

impl Event {
    fn data(&self) -> Object<'_> {
        let event = Object::read(&self.raw);
        event.unwrap_or_default().inner("data")
    }

    /// The sub-agent whose event it is.
    fn agent(&self) -> Option<Arc<str>> {
        let named = self.agent.clone();
        named.or_else(|| self.data().take_text("parentToolCallId"))
    }
}

/// The events that were not taken back.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    /// What the provider reports, by its name for the call.
    usages: BTreeMap<Arc<str>, Usage>,
    source: Source,
}

impl Log {
    fn collect(&mut self, raw: Box<RawValue>) {
        let Some(mut event) = Object::read(&raw) else {
            return count(&mut self.source.unknown, "event that is no object");
        };
        let kind = event.take_text("type");
        let [id, time, agent] = ["id", "timestamp", "agentId"].map(|key| event.take_text(key));
        let event = Event {
            kind: kind.unwrap_or_else(|| "without type".into()),
            id,
            time,
            agent,
            raw,
        };
        let mut data = event.data();
        if &*event.kind == "session.snapshot_rewind" {
            let to = data.take_text("upToEventId");
            return self.rewind(to.as_ref());
        }
        if &*event.kind == "assistant.usage"
            && let Some(call) = data.take_text("apiCallId")
        {
            self.usages.insert(call, usage(data));
        }
        self.events.push(event);
    }

    fn rewind(&mut self, to: Option<&Arc<str>>) {
        let is_it = |event: &Event| event.id.as_ref() == to;
        match to.and_then(|_| self.events.iter().position(is_it)) {
            Some(at) => {
                self.events.truncate(at);
                count(&mut self.source.skipped, "rewind");
            }
            None => count(
                &mut self.source.warnings,
                "a rewind names an event that is not in the file",
            ),
        }
    }
}

/// One conversation, growing event by event.
#[derive(Default)]
struct Reading {
    assembler: Assembler,
    model: Option<Arc<str>>,
    /// The tool calls that were seen.
    uses: BTreeSet<Arc<str>>,
    /// The model's last message, and whether it waits for tools.
    last: Option<Arc<str>>,
    is_waiting: bool,
    messages: usize,
    /// A compaction is under way: how many messages of the model's there were when it began.
    began: Option<usize>,
    /// A compaction that takes effect with the next call.
    due: Option<Done>,
}

/// A compaction that was done.
struct Done {
    trigger: Option<Arc<str>>,
    pre_tokens: Option<Tokens>,
    summary: Option<Arc<str>>,
    /// The first message that stayed.
    kept: Option<Arc<str>>,
}

impl Reading {
    /// A sub-agent's conversation.
    fn side() -> Self {
        Self {
            assembler: Assembler::new([Tag::Sidechain]),
            ..Self::default()
        }
    }

    /// Reads the next event; `usages` are what the provider reports, by its name for the call.
    fn event(&mut self, event: &Event, usages: &BTreeMap<Arc<str>, Usage>) {
        let time = self.assembler.time(event.time.as_deref());
        let mut data = event.data();
        match &*event.kind {
            "system.message" => self.system(data),
            "user.message" => self.user(data, time),
            "system.notification" => {
                let text = data.take_text("content");
                self.told(text, time, Tag::Meta);
            }
            "assistant.message" => self.model(data, time, usages),
            "tool.execution_start" => self.started(data, time, None),
            // Nobody but the product could have written it into the conversation.
            "tool.user_requested" => self.started(data, time, Some(Tag::Synthetic)),
            "tool.execution_complete" => self.ended(data, time),
            "session.compaction_start" => self.began = Some(self.messages),
            "session.compaction_complete" => self.compacted(data),
            "session.truncation" => {
                let before = data.take_as("preTruncationTokensInMessages").map(Tokens);
                let trigger = Some("truncation".into());
                self.assembler
                    .compacts(trigger, before, CompactedTo::Missing);
            }
            other => {
                if &*event.kind == "session.model_change" {
                    self.model = data.take_text("newModel").or(self.model.take());
                }
                let first = other.split('.').next().unwrap_or_default();
                if is_one_of(BOOKKEEPING, first) {
                    self.assembler.skip(other);
                } else {
                    let what = format!("event {other}");
                    self.assembler.hear_unknown(&what, &event.raw, time);
                }
            }
        }
    }

    /// The prompt is recorded whenever a session is taken up again.
    fn system(&mut self, mut data: Object<'_>) {
        let text = data.take_text("content");
        match (&self.assembler.header.system, text) {
            (None, Some(text)) => self.assembler.header.system = Some(text),
            (Some(first), Some(text)) if *first == text => {
                self.assembler.skip("system prompt told again");
            }
            (Some(_), Some(_)) => self
                .assembler
                .warn("the system prompt changed; the first is kept"),
            (_, None) => self.assembler.warn("a system prompt is no text"),
        }
    }

    fn user(&mut self, mut data: Object<'_>, time: Option<Timestamp>) {
        let content = data.take_text("content");
        let sent = data.take_text("transformedContent").or(content);
        for _ in data.items("attachments") {
            self.assembler.skip("attachment, told in the text");
        }
        let is_continued = data.take_flag("isAutopilotContinuation");
        // What the product says in the user's place names its source.
        let source = data.take_text("source");
        let is_typed = !is_continued && source.is_none_or(|source| &*source == "user");
        let tag = if is_typed { Tag::TypedUser } else { Tag::Meta };
        self.told(sent, time, tag);
    }

    fn told(&mut self, text: Option<Arc<str>>, timestamp: Option<Timestamp>, tag: Tag) {
        let text = text.filter(|text| !text.is_empty());
        let blocks = text.map(ContentBlock::Text).into_iter().collect();
        self.assembler.hear(None, blocks, timestamp, [tag]);
    }

    fn model(
        &mut self,
        mut data: Object<'_>,
        timestamp: Option<Timestamp>,
        usages: &BTreeMap<Arc<str>, Usage>,
    ) {
        let mut blocks = Vec::new();
        let signature = data.take_text("reasoningOpaque");
        let thought = data.take_text("reasoningText");
        if thought.is_some() || signature.is_some() {
            let thought = thought.unwrap_or_default();
            blocks.push(ContentBlock::thinking(thought, signature));
        }
        let said = data.take_text("content").filter(|text| !text.is_empty());
        blocks.extend(said.map(ContentBlock::Text));
        let requests = data.items("toolRequests");
        let is_waiting = !requests.is_empty();
        blocks.extend(requests.into_iter().map(|raw| self.request(raw)));
        let reported = data.take_text("apiCallId");
        let usage = reported.and_then(|call| usages.get(&call)).copied();
        if usage.is_none() && data.take("outputTokens").is_some() {
            self.assembler
                .skip("output tokens without those of the prompt");
        }
        // Published logs have their ids replaced, and one that is not its own says nothing.
        let call = data.take_text("messageId");
        let call = call.filter(|id| !id.contains("REDACTED"));
        self.said(AssistantRecord::of(blocks, timestamp).by(call, data.take_text("model"), usage));
        self.is_waiting = is_waiting;
    }

    fn request(&mut self, raw: &RawValue) -> ContentBlock {
        let request = Object::read(raw).and_then(|mut request| {
            let id = request.take_text("toolCallId")?;
            Some((id, request.take_text("name")?, request.take("arguments")))
        });
        if let Some((id, name, arguments)) = request {
            return self.tool_use(id, name, arguments);
        }
        counted("malformed tool request", raw, &mut self.assembler)
    }

    fn tool_use(
        &mut self,
        id: Arc<str>,
        name: Arc<str>,
        arguments: Option<&RawValue>,
    ) -> ContentBlock {
        self.uses.insert(id.clone());
        // Some versions write them as JSON in a text.
        let input = match arguments.and_then(content::text) {
            Some(text) => JsonText::parse(&text).unwrap_or_else(|_| JsonText::string(&text)),
            None => input(arguments),
        };
        ContentBlock::tool_use(id, name, input)
    }

    /// Adds what the model says, after a compaction that is due.
    fn said(&mut self, mut record: AssistantRecord) {
        if record.blocks.is_empty() {
            self.assembler.skip("assistant record without content");
            return;
        }
        self.take_effect();
        self.messages += 1;
        let name = name_of(self.messages);
        record.model = record.model.or_else(|| self.model.clone());
        self.assembler.assistant(Some(&name), record);
        self.last = Some(name);
    }

    /// A tool is carried out that no message asked for.
    fn started(&mut self, mut data: Object<'_>, timestamp: Option<Timestamp>, tag: Option<Tag>) {
        let id = data.take_text("toolCallId");
        let Some((id, name)) = id.zip(data.take_text("toolName")) else {
            return self.assembler.unknown("tool without a name");
        };
        if self.uses.contains(&id) {
            self.assembler.skip("tool.execution_start");
            return;
        }
        let use_ = self.tool_use(id, name, data.take("arguments"));
        let model = data.take_text("model");
        self.assembler
            .warn("a tool was carried out that no message asked for");
        self.said(
            AssistantRecord::of(vec![use_], timestamp)
                .by(None, model, None)
                .tagged(tag),
        );
        self.is_waiting = true;
    }

    fn ended(&mut self, mut data: Object<'_>, timestamp: Option<Timestamp>) {
        let Some(id) = data.take_text("toolCallId") else {
            return self.assembler.unknown("result without a tool");
        };
        let is_error = data.take_denial("success");
        let told = data.inner("result").take_text("content");
        let told = told.or_else(|| data.inner("error").take_text("message"));
        let content = told.map(ContentBlock::Text).into_iter().collect();
        let block = ContentBlock::tool_result(id, content, is_error);
        self.assembler.hear(None, vec![block], timestamp, []);
    }

    fn compacted(&mut self, mut data: Object<'_>) {
        let began = self.began.take();
        let is_newer = |began: &usize| *began < self.messages;
        let since = began.filter(is_newer).map(|began| name_of(began + 1));
        if data.take_denial("success") {
            return self.assembler.skip("compaction that failed");
        }
        let done = Done {
            trigger: data.take_text("trigger"),
            pre_tokens: data.take_as("preCompactionTokens").map(Tokens),
            summary: data.take_text("summaryContent"),
            // Results that are awaited need their calls.
            kept: since.or_else(|| self.last.clone().filter(|_| self.is_waiting)),
        };
        self.due = Some(done);
        if !self.is_waiting {
            self.take_effect();
        }
    }

    fn take_effect(&mut self) {
        let Some(done) = self.due.take() else {
            return;
        };
        self.assembler.flush();
        let kept = done.kept.and_then(|name| self.assembler.message_of(&name));
        self.assembler
            .summarizes(done.trigger, done.pre_tokens, done.summary, kept);
    }

    fn finish(mut self, id: String, path: &Path) -> Result<Option<Session>, ImportError> {
        self.take_effect();
        self.assembler.finish(id, path)
    }
}

/// Counters of `assistant.usage`, of which the input includes what the cache gave and took.
fn usage(mut data: Object<'_>) -> Usage {
    let mut counter = |key: &str| data.take_as::<u64>(key).unwrap_or_default();
    let (read, written) = (counter("cacheReadTokens"), counter("cacheWriteTokens"));
    let cached = read.saturating_add(written);
    let uncached = counter("inputTokens").saturating_sub(cached);
    billed(uncached, written, read, counter("outputTokens"))
}

/// The name of the model's message of this number, from 1.
fn name_of(message: usize) -> Arc<str> {
    format!("message {message}").into()
}
