//! Copilot Chat in VS Code: the editor keeps a chat as one object (`chatSessions/*.json`), or as a
//! log of changes to one (`*.jsonl`): see `changes`.
//!
//! Rules of this format, beside those every importer shares:
//! - A request holds the calls that answered it (`toolCallRounds`), and the results by the ids of
//!   their tool uses. A result may be in a later request. What the editor showed (`response`) is
//!   read only where there are no calls; it has no arguments and no results.
//! - The user's message is read as the model got it (`renderedUserMessage`), with what was attached.
//! - A summary names the last call that it covers. It is made for the call after the next, because
//!   the next made the prompt too large, or for the first call of a request.
//! - A request has counters of its own, of which the cached tokens are not known: they are counted
//!   as skipped. System prompt, tools and the calls of sub-agents are in no file.
//!
//! Source: microsoft/vscode, `src/vs/workbench/contrib/chat/common/model/objectMutationLog.ts` at
//! 047238f9fe; microsoft/vscode-copilot-chat, `src/extension/prompt/common/conversation.ts` at
//! 02ecb5d743, `toolCallRound.ts` at 35bfd52a71 and
//! `src/extension/prompts/node/agent/summarizedConversationHistory.tsx` at af2cc63ddb.

use super::prelude::*;

mod changes;

/// The vendor in the names of models.
const VENDOR: &str = "copilot/";

/// Keys of a request that are read, or say nothing of the conversation.
const REQUEST: &str = "requestId responseId agent isCanceled";

/// The shapes of a chat, and of a log of one; other programs keep the requests alone.
const SHAPES: &str = "requests:l responderUsername | requests:l sessionId creationDate | \
     requests:l requests/0/message requests/0/response | kind:n v/requests:l v/responderUsername | \
     kind:n v/requests:l v/sessionId v/creationDate | \
     kind:n v/requests:l v/requests/0/message v/requests/0/response";

pub(super) const IMPORTER: Importer = Importer::new("copilot-chat", Detect::First(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut conversations = Vec::new();
    for chat in changes::chats(file, source)? {
        let text = chat.to_string();
        let mut chat: Object<'_> = serde_json::from_str(&text).unwrap_or_default();
        let mut reading = CopilotChatReading::default();
        reading.chat(chat.items("requests"));
        chat.count_left("key", &mut reading.assembler);
        conversations.push(reading.assembler);
    }
    sessions_of(conversations, source, file)
}

#[derive(Default)]
struct CopilotChatReading<'a> {
    assembler: Assembler,
    /// Results that no call has asked for yet.
    results: BTreeMap<Arc<str>, &'a RawValue>,
    /// Summaries, by the last call that each covers.
    summaries: BTreeMap<Arc<str>, Arc<str>>,
    due: Option<Due>,
}

/// A summary that is not in the context yet.
struct Due {
    summary: Arc<str>,
    /// The first message that it does not cover.
    kept: usize,
    /// Calls that are made before it.
    calls: u8,
}

impl<'a> CopilotChatReading<'a> {
    fn chat(&mut self, requests: Vec<&'a RawValue>) {
        let mut read = Vec::new();
        for raw in requests {
            let Some(mut request) = Object::read(raw) else {
                keep_unread("malformed", raw, &mut self.assembler);
                continue;
            };
            // The user went back behind it.
            if request.take("shouldBeRemovedOnSend").is_some() {
                self.assembler.skip("request that was undone");
                continue;
            }
            let mut metadata = request.inner("result").inner("metadata");
            for (id, result) in metadata.inner("toolCallResults").into_entries() {
                if !Object::read(result).is_some_and(|object| object.has("content")) {
                    self.assembler.skip("result without content");
                    continue;
                }
                if self.results.insert(id.as_ref().into(), result).is_some() {
                    let what = "a tool use was answered twice; the first answer is left out";
                    self.assembler.warn(what);
                }
            }
            let mut summary = metadata.inner("summary");
            let covered = summary.take_text("toolCallRoundId");
            self.summaries.extend(covered.zip(summary.take_text("text")));
            read.push((request, metadata));
        }
        for (request, metadata) in read {
            self.request(request, metadata);
        }
        let unasked = std::mem::take(&mut self.results).into_iter();
        let results = unasked.map(|(id, raw)| self.result(id, raw)).collect();
        self.assembler.hear_results(results, None);
        self.compacts();
    }

    fn request(&mut self, mut request: Object<'a>, mut metadata: Object<'a>) {
        let time = request.take_time("timestamp", &mut self.assembler);
        let mut message = request.inner("message");
        let asked = message.take("text").or(request.take("message"));
        let global = self.rendered(metadata.items("renderedGlobalContext"));
        if self.assembler.is_empty() && !global.is_empty() {
            self.assembler.hear(None, global, time, [Tag::Meta]);
        }
        let mut said = self.rendered(metadata.items("renderedUserMessage"));
        if said.is_empty() {
            said = self.assembler.blocks(asked, Speaker::User);
        }
        self.assembler.hear(None, said, time, [Tag::TypedUser]);

        let named = metadata.take_words("resolvedModel");
        let model = named.or(request.take_text("modelId")).as_ref().map(plain);
        let shown = request.items("response");
        let rounds = metadata.items("toolCallRounds");
        if rounds.is_empty() {
            let part = ModelRecord::of(self.shown(shown), None).by(None, model.clone(), None);
            self.assembler.assistant(None, part);
        }
        let last = rounds.len().saturating_sub(1);
        for (at, raw) in rounds.into_iter().enumerate() {
            self.round(raw, model.as_ref(), at == last);
        }
        let counters = ["promptTokens", "outputTokens"].map(|key| metadata.take(key));
        self.assembler.skip_all(counters.iter().flatten(), "usage of a whole request");
        for key in REQUEST.split(' ') {
            request.remove(key);
        }
        request.count_left("request key", &mut self.assembler);
    }

    /// One call.
    fn round(&mut self, raw: &'a RawValue, model: Option<&Arc<str>>, is_last: bool) {
        match &mut self.due {
            Some(due) if due.calls > 0 => due.calls -= 1,
            _ => self.compacts(),
        }
        let Some(mut round) = Object::read(raw) else {
            let kept = self.assembler.unread_part("round", "malformed", raw);
            return self.assembler.assistant(None, ModelRecord::of(vec![kept], None));
        };
        let id = round.take_text("id");
        let time = round.take_time("timestamp", &mut self.assembler);
        let model = round.take_text("modelId").as_ref().map(plain).or(model.cloned());
        let mut blocks = Vec::from_iter(thinking(round.inner("thinking")));
        blocks.extend(round.take_words("response").map(ContentBlock::Text));
        let mut results = Vec::new();
        for raw in round.items("toolCalls") {
            let read = Object::read(raw).and_then(|mut call| {
                let (id, name) = call.take_text("id").zip(call.take_text("name"))?;
                let input = openai_chat::parts::arguments(&mut call, &mut self.assembler);
                Some(ContentBlock::tool_use(id, name, input))
            });
            let call = read.unwrap_or_else(|| self.assembler.unread("tool call", raw));
            let answer = call.as_use().and_then(|used| self.results.remove_entry(&used.id));
            results.extend(answer.map(|(id, raw)| self.result(id, raw)));
            blocks.push(call);
        }
        let usage = round.take_usage("usage", CachedTokens::Within, &mut self.assembler);
        let named = id.as_ref().and_then(|id| self.summaries.remove(id));
        let summary = named.or(round.take_text("summary"));
        let part = ModelRecord::of(blocks, time).by(id, model, usage.and_then(unless_zero));
        self.assembler.assistant(None, part);
        self.assembler.hear_results(results, None);
        if let Some(summary) = summary {
            self.compacts();
            let kept = self.assembler.flush();
            self.due = Some(Due { summary, kept, calls: u8::from(!is_last) });
        }
    }

    /// Puts the summary that is due in the context.
    fn compacts(&mut self) {
        if let Some(due) = self.due.take() {
            self.assembler.summarizes(None, None, Some(due.summary), Some(due.kept));
        }
    }

    /// The parts of a message as the model read it.
    fn rendered(&mut self, parts: Vec<&RawValue>) -> Blocks {
        let mut blocks = Vec::new();
        for raw in parts {
            let mut part = Object::read(raw).unwrap_or_default();
            let text = part.take_text("text").map(ContentBlock::Text);
            match text.or_else(|| part.take("imageUrl").map(content::image)) {
                Some(block) => blocks.push(block),
                // A mark of what may be read from the cache.
                None if part.has("cacheType") => {}
                None => blocks.push(self.assembler.unread("part", raw)),
            }
        }
        blocks
    }

    /// The answer as the editor showed it.
    fn shown(&mut self, parts: Vec<&RawValue>) -> Blocks {
        let (mut blocks, mut text) = (Vec::new(), String::new());
        for raw in parts {
            let mut part = Object::read(raw).unwrap_or_default();
            let kind = part.take_text("kind");
            let value = part.take_text("value");
            match (kind.as_deref(), value) {
                (None | Some("markdownContent"), Some(value)) => text.push_str(&value),
                (Some("markdownContent"), None) => {
                    text.push_str(&part.inner("content").take_text("value").unwrap_or_default());
                }
                (Some("inlineReference"), _) => {
                    text.push_str(&part.take_text("name").unwrap_or_default());
                }
                (Some("thinking"), Some(value)) => blocks.push(ContentBlock::thinking(value, None)),
                (Some("toolInvocationSerialized"), _) => {
                    self.assembler.warn("a call has neither its arguments nor its result");
                    blocks.push(content::kept("toolInvocationSerialized", raw));
                }
                (kind, _) => {
                    let what = format!("response part {}", kind.unwrap_or("without value"));
                    self.assembler.skip(&what);
                }
            }
        }
        blocks.extend((!text.is_empty()).then(|| ContentBlock::Text(text.into())));
        blocks
    }

    fn result(&mut self, id: Arc<str>, raw: &RawValue) -> ContentBlock {
        let mut result = Object::read(raw).unwrap_or_default();
        let source = &mut self.assembler.source;
        let parts = result.items("content").into_iter().map(|raw| {
            let mut part = Object::read(raw).unwrap_or_default();
            let text = part.take_text("value").or_else(|| {
                let mut text = String::new();
                written(value(part.take("value")?).get("node")?, &mut text);
                (!text.is_empty()).then(|| text.into())
            });
            match text {
                Some(text) => ContentBlock::Text(text),
                None => content::unread("result", "part", raw, source),
            }
        });
        ContentBlock::tool_result(id, parts.collect(), false)
    }
}

/// What the model thought: a text or pieces of one, and the form that only the provider can read.
fn thinking(mut thought: Object<'_>) -> Option<ContentBlock> {
    let sealed = thought.take_text("encrypted");
    let text = thought.take_text("text").unwrap_or_else(|| {
        let pieces = thought.items("text").into_iter().filter_map(content::text);
        pieces.collect::<Vec<_>>().concat().into()
    });
    (!text.is_empty() || sealed.is_some()).then(|| ContentBlock::thinking(text, sealed))
}

/// The name of a model without its vendor.
fn plain(model: &Arc<str>) -> Arc<str> {
    model.strip_prefix(VENDOR).map_or(model.clone(), Arc::from)
}

/// Writes the text of a part of a prompt, which is a tree of pieces and texts.
fn written(node: &Value, text: &mut String) {
    let mark = &node["lineBreakBefore"];
    let breaks = mark.as_bool() == Some(true) || mark.as_u64() == Some(1);
    if let Some(own) = node.get("text").and_then(Value::as_str) {
        if breaks && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(own);
    }
    node["children"].as_array().into_iter().flatten().for_each(|child| written(child, text));
}
