//! Copilot CLI keeps a log of events, one per line: `type`, `data`, `id`, `timestamp`. Its first
//! versions wrote one object, of which `chatMessages` are the messages as the API has them.
//!
//! Rules of this format, beside those every importer shares:
//! - What the model was sent of a user's message is its `transformedContent`.
//! - Calls are in `toolRequests`, and once more where they are carried out. Calls that are
//!   only there belong to a sub-agent or to the user.
//! - What a sub-agent says and does names the tool call it came from (`parentToolCallId`, or
//!   `agentId` of newer versions): each is a session of its own.
//! - A compaction runs beside the work: what was said since it began stays. It takes effect with
//!   the next call.
//! - A rewind takes an event and all after it back.
//! - Each message says what the model wrote in tokens; what it read is known only where the events
//!   `assistant.usage` were kept.

use super::prelude::*;

/// The files of the first versions.
const FIRST: ConversationShape = ConversationShape::of_messages("chatMessages");

/// Kinds of events that do not belong to the conversation, by the first word of their name.
const BOOKKEEPING: &str = "session hook permission subagent skill command commands capabilities \
     elicitation external_tool exit_plan_mode user_input pending_messages mcp sampling abort \
     assistant tool system model";

/// Where a message names its call: newer versions write several messages of one.
const CALL_NAMES: [&str; 3] = ["apiCallId", "serviceRequestId", "messageId"];

/// The shapes of a file of events, and of one of the first versions.
const SHAPES: &str =
    "data type^session.,user.,assistant.,tool.,hook.,system. | sessionId chatMessages";

pub(super) const IMPORTER: Importer = Importer::new("copilot-cli", Detect::First(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    if file.head().is("sessionId chatMessages") {
        return conversations::sessions(FIRST, file, source, |mut conversation, assembler| {
            let model = conversation.around.take_text("selectedModel");
            openai_chat::read(conversation, ChatDialect::Api, assembler);
            assembler.header.model = assembler.header.model.take().or(model);
        });
    }
    let sessions = file.sessions(source, |raw| {
        of_type(raw, "session.start")?.inner("data").take_text("sessionId")
    })?;
    let chains = sessions.into_iter().map(chains_of).collect();
    joined_with_side_chains(chains, source, file)
}

/// The conversations of one session's events: the main one, and those of sub-agents.
fn chains_of(events: Vec<&RawValue>) -> Vec<Assembler> {
    let mut log = CopilotLog::default();
    for raw in events {
        log.collect(raw);
    }
    let mut chains = vec![CopilotCliReading::default()];
    chains[0].assembler.source = log.source;
    let mut agents: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for event in log.events {
        let agent = event.agent.clone();
        let chain = agent.map_or(0, |agent| place_of(agent, &mut agents, &mut chains));
        chains[chain].event(event, &log.usages);
    }
    chains.into_iter().map(CopilotCliReading::end).collect()
}

/// One event of the log.
struct CopilotEvent<'a> {
    kind: Arc<str>,
    id: Text,
    time: Text,
    /// The sub-agent whose event it is.
    agent: Text,
    data: Object<'a>,
    raw: &'a RawValue,
}

/// The events that were not taken back.
#[derive(Default)]
struct CopilotLog<'a> {
    events: Vec<CopilotEvent<'a>>,
    /// The provider's bills, by its name for the call.
    usages: BTreeMap<Arc<str>, Usage>,
    source: Source,
}

impl<'a> CopilotLog<'a> {
    fn collect(&mut self, raw: &'a RawValue) {
        let Some(mut event) = Object::read(raw) else {
            return self.source.not_understood("event that is no object");
        };
        let [kind, id, time, agent] =
            ["type", "id", "timestamp", "agentId"].map(|key| event.take_text(key));
        let raw_data = event.get("data");
        let mut data = event.inner("data");
        match kind.as_deref() {
            Some("session.snapshot_rewind") => {
                return self.rewind(data.take_text("upToEventId").as_ref());
            }
            Some("assistant.usage") => {
                let source = &mut self.source;
                // The input includes the cached tokens.
                let billed = raw_data.and_then(|raw| usage(raw, CachedTokens::Within, source));
                self.usages.extend(data.text("apiCallId").zip(billed));
            }
            _ => {}
        }
        self.events.push(CopilotEvent {
            kind: kind.unwrap_or_else(|| "without type".into()),
            id,
            time,
            agent: agent.or_else(|| data.text("parentToolCallId")),
            data,
            raw,
        });
    }

    fn rewind(&mut self, to: Option<&Arc<str>>) {
        let mut events = self.events.iter();
        if let Some(at) = events.rposition(|event| to.is_some() && event.id.as_ref() == to) {
            self.events.truncate(at);
            self.source.skip("rewind");
        } else {
            self.source.warn("a rewind names an event that is not in the file");
        }
    }
}

/// One conversation, growing event by event.
#[derive(Default)]
struct CopilotCliReading {
    assembler: Assembler,
    model: Text,
    /// The tool calls that were seen.
    uses: BTreeSet<Arc<str>>,
    /// The model's messages so far, and whether the last one waits for tools.
    messages: usize,
    is_waiting: bool,
    /// A compaction is under way: the number of the model's messages when it began.
    began: Option<usize>,
    /// A compaction that takes effect with the next call.
    due: Option<CopilotCompaction>,
}

/// A compaction that was done.
struct CopilotCompaction {
    trigger: Text,
    pre_tokens: Option<Tokens>,
    usage: Option<Usage>,
    summary: Text,
    /// The first of the model's messages that stayed, by its number from 1.
    kept: Option<usize>,
}

impl CopilotCliReading {
    fn event(&mut self, event: CopilotEvent<'_>, usages: &BTreeMap<Arc<str>, Usage>) {
        let time = self.assembler.time(event.time.as_deref());
        let (kind, mut data) = (&*event.kind, event.data);
        match kind {
            "system.message" => self.system(data.take_text("content")),
            "user.message" => self.user(data, time),
            "system.notification" => {
                self.hear(data.take_text("content"), Vec::new(), time, Tag::Meta);
            }
            "assistant.message" => self.answer(data, time, usages),
            "tool.execution_start" => self.started(data, time, None),
            // Only the product could have written it into the conversation.
            "tool.user_requested" => self.started(data, time, Some(Tag::Synthetic)),
            "tool.execution_complete" => self.ended(data, time),
            "session.compaction_start" => self.began = Some(self.messages),
            "session.compaction_complete" => self.compacted(data),
            "session.truncation" => {
                let before = data.take_as("preTruncationTokensInMessages").map(Tokens);
                let (trigger, after) = (Some("truncation".into()), CompactedTo::Missing);
                self.assembler.compacts(trigger, before, after);
            }
            _ => {
                if kind == "session.model_change" {
                    self.model = data.take_text("newModel").or(self.model.take());
                }
                if is_one_of(BOOKKEEPING, kind.split('.').next().unwrap_or_default()) {
                    self.assembler.skip(kind);
                } else {
                    self.assembler.hear_unknown("event", kind, event.raw, time);
                }
            }
        }
    }

    /// The prompt is recorded whenever a session is taken up again.
    fn system(&mut self, text: Text) {
        let Some(text) = text else {
            return self.assembler.warn("a system prompt is no text");
        };
        match &self.assembler.header.system {
            None => self.assembler.header.system = Some(text),
            Some(first) if *first == text => self.assembler.skip("system prompt told again"),
            Some(_) => self.assembler.warn("the system prompt changed; the first is kept"),
        }
    }

    fn user(&mut self, mut data: Object<'_>, time: When) {
        let content = data.take_text("content");
        let sent = data.take_text("transformedContent").or(content);
        let mut pictures = Vec::new();
        for raw in data.items("attachments") {
            match Object::read(raw).and_then(|mut blob| images::attached(&mut blob)) {
                Some(picture) => pictures.push(picture),
                None => self.assembler.skip("attachment, told in the text"),
            }
        }
        let continued = data.take_flag("isAutopilotContinuation");
        // Text that the product writes in the user's place names its source.
        let source = data.take_text("source");
        let typed = !continued && source.is_none_or(|source| &*source == "user");
        let tag = if typed { Tag::TypedUser } else { Tag::Meta };
        self.hear(sent, pictures, time, tag);
    }

    fn hear(&mut self, text: Text, pictures: Blocks, time: When, tag: Tag) {
        let words = text.filter(|text| !text.is_empty()).map(ContentBlock::Text);
        let blocks = words.into_iter().chain(pictures).collect();
        self.assembler.hear(None, blocks, time, [tag]);
    }

    fn answer(&mut self, mut data: Object<'_>, time: When, usages: &BTreeMap<Arc<str>, Usage>) {
        let mut blocks = Vec::new();
        let signature = data.take_text("reasoningOpaque");
        let thought = data.take_text("reasoningText");
        if thought.is_some() || signature.is_some() {
            blocks.push(ContentBlock::thinking(thought.unwrap_or_default(), signature));
        }
        blocks.extend(data.take_words("content").map(ContentBlock::Text));
        let requests = data.items("toolRequests");
        self.is_waiting = !requests.is_empty();
        for raw in requests {
            let request = Object::read(raw);
            let tool_use = request.and_then(|request| self.tool_use(request, "name"));
            blocks
                .push(tool_use.unwrap_or_else(|| {
                    counted("malformed tool request", raw, &mut self.assembler)
                }));
        }
        let usage = data.text("apiCallId").and_then(|call| usages.get(&call)).copied();
        if usage.is_none() && data.take("outputTokens").is_some() {
            self.assembler.skip("output tokens without those of the prompt");
        }
        // Published logs have their ids replaced by one and the same.
        let mut names = CALL_NAMES.iter().filter_map(|key| data.text(key));
        let call = names.find(|name| !name.contains("REDACTED"));
        self.say(ModelRecord::of(blocks, time).by(call, data.take_text("model"), usage));
    }

    /// Reads a call, whose tool is named by the key `name`.
    fn tool_use(&mut self, mut request: Object<'_>, name: &str) -> Option<ContentBlock> {
        let id = request.take_text("toolCallId")?;
        let name = request.take_text(name)?;
        let arguments = request.take("arguments");
        // Some versions write them as JSON in a text.
        let input = match arguments.and_then(content::text) {
            Some(text) => JsonText::parse(&text).unwrap_or_else(|_| JsonText::string(&text)),
            None => input(arguments),
        };
        self.uses.insert(id.clone());
        Some(ContentBlock::tool_use(id, name, input))
    }

    /// Adds an answer of the model's, after a compaction that is due.
    fn say(&mut self, mut record: ModelRecord) {
        if record.blocks.is_empty() {
            return self.assembler.skip("assistant record without content");
        }
        self.take_effect();
        self.messages += 1;
        record.model = record.model.or_else(|| self.model.clone());
        self.assembler.assistant(Some(&name_of(self.messages)), record);
    }

    /// A tool is carried out; mostly an answer asked for it.
    fn started(&mut self, mut data: Object<'_>, time: When, tag: Option<Tag>) {
        let asked = data.text("toolCallId").is_some_and(|id| self.uses.contains(&id));
        if asked && data.has("toolName") {
            return self.assembler.skip("tool.execution_start");
        }
        let model = data.take_text("model");
        let Some(tool_use) = self.tool_use(data, "toolName") else {
            return self.assembler.unknown("tool without a name");
        };
        self.assembler.warn("a tool was carried out that no message asked for");
        self.say(ModelRecord::of(vec![tool_use], time).by(None, model, None).tagged(tag));
        self.is_waiting = true;
    }

    fn ended(&mut self, mut data: Object<'_>, time: When) {
        let Some(id) = data.take_text("toolCallId") else {
            return self.assembler.unknown("result without a tool");
        };
        let told = data.inner("result").take_text("content");
        let text = told.or_else(|| data.inner("error").take_text("message"));
        let content = text.map(ContentBlock::Text).into_iter().collect();
        self.assembler.hear_result(id, content, data.take_denial("success"), time);
    }

    fn compacted(&mut self, mut data: Object<'_>) {
        let began = self.began.take().filter(|began| *began < self.messages);
        if data.take_denial("success") {
            return self.assembler.skip("compaction that failed");
        }
        // Results that are awaited need their calls.
        let awaited = (self.is_waiting && self.messages > 0).then_some(self.messages);
        self.due = Some(CopilotCompaction {
            trigger: data.take_text("trigger"),
            pre_tokens: data.take_as("preCompactionTokens").map(Tokens),
            usage: data.take_usage(
                "compactionTokensUsed",
                CachedTokens::Within,
                &mut self.assembler,
            ),
            summary: data.take_text("summaryContent"),
            kept: began.map(|began| began + 1).or(awaited),
        });
        if !self.is_waiting {
            self.take_effect();
        }
    }

    fn take_effect(&mut self) {
        let Some(done) = self.due.take() else { return };
        self.assembler.flush();
        let kept = done.kept.map(name_of).and_then(|name| self.assembler.message_of(&name));
        self.assembler.summary_usage = done.usage;
        self.assembler.summarizes(done.trigger, done.pre_tokens, done.summary, kept);
    }

    fn end(mut self) -> Assembler {
        self.take_effect();
        self.assembler
    }
}

/// The name of the model's message of this number, from 1.
fn name_of(message: usize) -> Arc<str> {
    format!("message {message}").into()
}
