//! The events of one conversation, the agent's or a sub-agent's, as messages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::ImportError;
use super::super::assemble::{Assembler, AssistantRecord, UserRecord, count};
use super::super::content;
use super::super::conversations::{Object, unknown_record};
use super::super::tool_names::class_of;
use super::{BOOKKEEPING, Event};
use crate::session::{
    CompactedTo, ContentBlock, JsonText, Message, Opaque, Recorded, RecordedCompaction, Role,
    Session, Tag, Thinking, ToolResult, ToolUse,
};
use crate::units::{ApiCallId, Timestamp, Tokens, Usage};

/// One conversation, growing event by event.
pub(super) struct Reading<'a> {
    pub(super) assembler: Assembler,
    /// What the provider reports, by its name for the call.
    usages: &'a BTreeMap<Arc<str>, Usage>,
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

impl<'a> Reading<'a> {
    /// A conversation whose messages all carry these tags.
    pub(super) fn new(tags: impl Into<Vec<Tag>>, usages: &'a BTreeMap<Arc<str>, Usage>) -> Self {
        Self {
            assembler: Assembler::new(tags),
            usages,
            model: None,
            uses: BTreeSet::new(),
            last: None,
            is_waiting: false,
            messages: 0,
            began: None,
            due: None,
        }
    }

    /// Reads the next event.
    pub(super) fn event(&mut self, event: &Event) {
        let time = event.time.unwrap_or_else(|()| {
            self.assembler.warn("a timestamp cannot be read");
            None
        });
        let mut data = event.data();
        match &*event.kind {
            "system.message" => self.system(data),
            "user.message" => self.user(data, time),
            "system.notification" => {
                let text = data.take_text("content");
                self.told(text, time, Tag::Meta);
            }
            "assistant.message" => self.model(data, time),
            "tool.execution_start" => self.started(data, time, None),
            // Nobody but the product could have written it into the conversation.
            "tool.user_requested" => self.started(data, time, Some(Tag::Synthetic)),
            "tool.execution_complete" => self.ended(data, time),
            "session.compaction_start" => self.began = Some(self.messages),
            "session.compaction_complete" => self.compacted(data),
            "session.truncation" => {
                let at = self.assembler.flush();
                let before = data.take("preTruncationTokensInMessages");
                self.assembler.compaction(RecordedCompaction {
                    at,
                    trigger: Some("truncation".into()),
                    pre_tokens: number(before),
                    after: CompactedTo::Missing,
                });
            }
            other => {
                if &*event.kind == "session.model_change" {
                    self.model = data.take_text("newModel").or(self.model.take());
                }
                let first = other.split('.').next().unwrap_or_default();
                if BOOKKEEPING.contains(&first) {
                    self.assembler.skip(other);
                } else {
                    let what = format!("event {other}");
                    let source = &mut self.assembler.source;
                    if let Some(kept) = unknown_record(&what, &event.raw, source) {
                        let timestamp = time;
                        self.assembler.user(None, UserRecord { timestamp, ..kept });
                    }
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
        for _ in data.take_list("attachments").into_iter().flatten() {
            self.assembler.skip("attachment, told in the text");
        }
        let is_continued = data
            .take("isAutopilotContinuation")
            .is_some_and(|it| it.get() == "true");
        // What the product says in the user's place names its source.
        let source = data.take_text("source");
        let is_typed = !is_continued && source.is_none_or(|source| &*source == "user");
        let tag = if is_typed { Tag::TypedUser } else { Tag::Meta };
        self.told(sent, time, tag);
    }

    fn told(&mut self, text: Option<Arc<str>>, timestamp: Option<Timestamp>, tag: Tag) {
        let text = text.filter(|text| !text.is_empty());
        let record = UserRecord {
            blocks: text.map(ContentBlock::Text).into_iter().collect(),
            timestamp,
            tags: vec![tag],
        };
        self.assembler.user(None, record);
    }

    fn model(&mut self, mut data: Object<'_>, timestamp: Option<Timestamp>) {
        let mut blocks = Vec::new();
        let signature = data.take_text("reasoningOpaque");
        let thought = data.take_text("reasoningText");
        if thought.is_some() || signature.is_some() {
            blocks.push(ContentBlock::Thinking(Thinking {
                text: thought.unwrap_or_default(),
                signature,
            }));
        }
        let said = data.take_text("content").filter(|text| !text.is_empty());
        blocks.extend(said.map(ContentBlock::Text));
        let mut is_waiting = false;
        for raw in data.take_list("toolRequests").into_iter().flatten() {
            is_waiting = true;
            let block = self.request(raw);
            blocks.push(block);
        }
        let reported = data.take_text("apiCallId");
        let usage = reported.and_then(|call| self.usages.get(&call)).copied();
        if usage.is_none() && data.take("outputTokens").is_some() {
            self.assembler
                .skip("output tokens without those of the prompt");
        }
        // Published logs have their ids replaced, and one that is not its own says nothing.
        let call = data.take_text("messageId");
        let call = call.filter(|id| !id.contains("REDACTED"));
        let model = data.take_text("model");
        self.said(AssistantRecord {
            call: call.map(ApiCallId),
            model,
            blocks,
            usage,
            timestamp,
            tags: Vec::new(),
        });
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
        let kind = "malformed tool request";
        count(&mut self.assembler.source.unknown, kind);
        ContentBlock::Opaque(Opaque {
            kind: kind.into(),
            json: JsonText::from(raw),
        })
    }

    fn tool_use(
        &mut self,
        id: Arc<str>,
        name: Arc<str>,
        arguments: Option<&RawValue>,
    ) -> ContentBlock {
        self.uses.insert(id.clone());
        ContentBlock::ToolUse(ToolUse {
            id,
            class: class_of(&name),
            name,
            input: match arguments.map(|raw| (raw, content::text(raw))) {
                // Some versions write them as JSON in a text.
                Some((_, Some(text))) => {
                    JsonText::parse(&text).unwrap_or_else(|_| JsonText::string(&text))
                }
                Some((raw, None)) => JsonText::from(raw),
                None => JsonText::of(&Value::Null),
            },
        })
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
            count(&mut self.assembler.source.unknown, "tool without a name");
            return;
        };
        if self.uses.contains(&id) {
            self.assembler.skip("tool.execution_start");
            return;
        }
        let use_ = self.tool_use(id, name, data.take("arguments"));
        let model = data.take_text("model");
        self.assembler
            .warn("a tool was carried out that no message asked for");
        self.said(AssistantRecord {
            model,
            blocks: vec![use_],
            timestamp,
            tags: tag.into_iter().collect(),
            ..AssistantRecord::default()
        });
        self.is_waiting = true;
    }

    fn ended(&mut self, mut data: Object<'_>, timestamp: Option<Timestamp>) {
        let Some(tool_use_id) = data.take_text("toolCallId") else {
            count(&mut self.assembler.source.unknown, "result without a tool");
            return;
        };
        let is_error = data.take("success").is_some_and(|it| it.get() == "false");
        let mut result = data.take_object("result").unwrap_or_default();
        let mut error = data.take_object("error").unwrap_or_default();
        let told = result
            .take_text("content")
            .or_else(|| error.take_text("message"));
        let block = ContentBlock::ToolResult(ToolResult {
            tool_use_id,
            content: told.map(ContentBlock::Text).into_iter().collect(),
            is_error,
        });
        let record = UserRecord {
            blocks: vec![block],
            timestamp,
            tags: Vec::new(),
        };
        self.assembler.user(None, record);
    }

    fn compacted(&mut self, mut data: Object<'_>) {
        let began = self.began.take();
        let is_newer = |began: &usize| *began < self.messages;
        let since = began.filter(is_newer).map(|began| name_of(began + 1));
        if data.take("success").is_some_and(|it| it.get() == "false") {
            self.assembler.skip("compaction that failed");
            return;
        }
        let done = Done {
            trigger: data.take_text("trigger"),
            pre_tokens: number(data.take("preCompactionTokens")),
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
        let at = self.assembler.flush();
        let kept = done.kept.and_then(|name| self.assembler.message_of(&name));
        let after = match done.summary {
            Some(summary) => {
                let summary = Message::text(Role::User, summary).with_tags([Tag::CompactSummary]);
                let mut pieces = vec![Recorded::Written(Arc::new(summary))];
                let kept = kept.filter(|first| *first < at);
                pieces.extend(kept.map(|first| Recorded::Kept(first..at)));
                CompactedTo::Replaced(pieces)
            }
            None => CompactedTo::Missing,
        };
        self.assembler.compaction(RecordedCompaction {
            at,
            trigger: done.trigger,
            pre_tokens: done.pre_tokens,
            after,
        });
    }

    pub(super) fn finish(
        mut self,
        id: String,
        path: &Path,
    ) -> Result<Option<Session>, ImportError> {
        self.take_effect();
        self.assembler.finish(id, path)
    }
}

/// Counters of `assistant.usage`, of which the input includes what the cache gave and took.
pub(super) fn usage(raw: &RawValue) -> Usage {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let counter = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
    let (read, written) = (counter("cacheReadTokens"), counter("cacheWriteTokens"));
    let cached = read.saturating_add(written);
    Usage {
        input_uncached: Tokens(counter("inputTokens").saturating_sub(cached)),
        cache_write_5m: Tokens(written),
        cache_write_1h: Tokens::ZERO,
        cache_read: Tokens(read),
        output: Tokens(counter("outputTokens")),
    }
}

/// The name of the model's message of this number, from 1.
fn name_of(message: usize) -> Arc<str> {
    format!("message {message}").into()
}

fn number(raw: Option<&RawValue>) -> Option<Tokens> {
    serde_json::from_str(raw?.get()).ok().map(Tokens)
}
