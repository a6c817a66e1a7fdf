//! OpenAI's responses API: requests, responses, logs of both, and bare lists of items.
//!
//! Rules of this format, beside those every importer shares:
//! - The prompt is `instructions` and leading messages of the system's or the developer's role.
//! - Items of an input name no call. What the model says belongs to one call until a tool or the
//!   user has spoken; the items of a response's output are one call.
//! - A compaction item represents the items before it, and only the provider can read it. It may be asked for apart.
//! - `input_tokens` includes what was read from the cache, and is split.
//! - A response that follows another (`previous_response_id`, or the same `conversation`) continues its conversation.

use super::conversations::is_compaction;
use super::prelude::*;
use items::{ResponsesItem, is_encrypted, item};

pub(super) mod items;

const SHAPE: ConversationShape = ConversationShape {
    of_message: "type",
    answer: Some("output"),
    ..ConversationShape::of_messages("input").of_api(Api::Responses)
};

pub(super) const IMPORTER: Importer =
    Importer::new("openai-responses", Detect::Api(Api::Responses), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, |conversation, assembler| {
        ResponsesReading::after(0, assembler).conversation(conversation);
    })
}

/// Reads the items of one conversation.
pub(super) struct ResponsesReading<'r> {
    assembler: &'r mut Assembler,
    /// Calls so far, and whether the model may still add to the last one.
    calls: u64,
    is_open: bool,
}

impl<'r> ResponsesReading<'r> {
    /// Reads on after `calls` responses.
    pub(super) fn after(calls: u64, assembler: &'r mut Assembler) -> Self {
        Self { assembler, calls, is_open: false }
    }

    /// Reads a request, with its response where there is one.
    pub(super) fn conversation(&mut self, conversation: Conversation<'_>) {
        let mut around = conversation.around;
        around.header(self.assembler);
        if let Some(raw) = around.take("instructions") {
            self.prompt(raw);
        }
        for raw in conversation.messages {
            self.item(raw, None);
        }
        let time = around.take_time("timestamp", self.assembler);
        around.take("previous_response_id");
        around.take("conversation");
        if let Some(mut response) = around.take_object("response") {
            if is_compaction(&response) {
                let usage = response.take_usage("usage", CachedTokens::Within, self.assembler);
                self.assembler.summary_usage = usage;
                self.assembler.compacts(None, None, CompactedTo::Encrypted);
                return around.count_left("key", self.assembler);
            }
            self.response(&mut response, time);
            response.count_left("response key", self.assembler);
        } else if around.has("output") {
            self.response(&mut around, time);
        }
        around.count_left("key", self.assembler);
    }

    /// Instructions: a text, or items.
    fn prompt(&mut self, raw: &RawValue) {
        if let Some(text) = content::text(raw) {
            return self.assembler.add_system(&[ContentBlock::Text(text)]);
        }
        for raw in super::common::items(raw).unwrap_or_default() {
            self.item(raw, None);
        }
    }

    /// Adds the model's answer.
    pub(super) fn response(&mut self, response: &mut Object<'_>, time: When) {
        let created = response.take_time("created_at", self.assembler);
        self.calls += 1;
        let id = response.take_text("id").or(Some(format!("call-{}", self.calls).into()));
        let usage = response.take_usage("usage", CachedTokens::Within, self.assembler);
        let model = response.take_text("model");
        let call = ModelRecord::of(Vec::new(), time.or(created)).by(id, model, usage);
        // The response repeats what it was asked with.
        for key in "object status tools instructions previous_response_id conversation".split(' ') {
            response.take(key);
        }
        for raw in response.items("output") {
            self.item(raw, Some(&call));
        }
        if call.usage.is_some() {
            self.assembler.answers(call);
        }
        self.is_open = false;
    }

    /// One item: of an output, with its call; or of an input.
    pub(super) fn item(&mut self, raw: &RawValue, call: Option<&ModelRecord>) {
        if let Some(text) = content::text(raw) {
            return self.heard(vec![ContentBlock::Text(text)], false);
        }
        let mut object = Object::read(raw).unwrap_or_default();
        let prompt = matches!(object.take_text("role").as_deref(), Some("system" | "developer"));
        if object.take_text("type").as_deref().is_some_and(is_encrypted) {
            // The items so far are compacted, in a form that only the provider can read.
            self.is_open = false;
            self.assembler.skip("compaction item");
            self.assembler.compacts(None, None, CompactedTo::Encrypted);
            return;
        }
        let first = self.assembler.is_empty() && call.is_none();
        match item(raw, self.assembler) {
            ResponsesItem::Nothing => {}
            ResponsesItem::Model(blocks) => self.said(blocks, call),
            ResponsesItem::Product(blocks) if first && prompt => self.assembler.add_system(&blocks),
            ResponsesItem::Product(blocks) => self.heard(blocks, true),
            ResponsesItem::Other(blocks) => self.heard(blocks, false),
        }
    }

    fn said(&mut self, blocks: Blocks, call: Option<&ModelRecord>) {
        let own = call.cloned().unwrap_or_else(|| {
            self.calls += u64::from(!self.is_open);
            self.is_open = true;
            ModelRecord::default().by(Some(format!("call-{}", self.calls).into()), None, None)
        });
        self.assembler.assistant(None, ModelRecord { blocks, ..own });
    }

    fn heard(&mut self, blocks: Blocks, is_products: bool) {
        self.is_open = false;
        self.assembler.hear_user(blocks, None, is_products);
    }
}
