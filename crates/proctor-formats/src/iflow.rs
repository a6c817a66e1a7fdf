//! iFlow CLI writes records like Claude Code's, one per line, with differences.
//!
//! Rules of this format, beside those every importer shares:
//! - Records that follow each other without a user's between them are one call: while an answer
//!   comes in it is written piece by piece, and a tool use is in two pieces.
//! - The content of a result is an object of Gemini's: the model's text is the response in
//!   it; the text on the screen is beside it.
//! - All pieces of an answer have the same parent, so that the order of the file is the
//!   conversation.

use super::gemini_content::response;
use super::prelude::*;

/// The shape of a record; Claude Code's ids are nothing but hexadecimal digits and dashes.
const SHAPE: &str = "sessionId^session- uuid:s userType:w";

pub(super) const IMPORTER: Importer =
    Importer::new("iflow", Detect::Any(super::FOREIGN + 1, SHAPE), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut reading = IflowReading::default();
    for (record, raw) in file.records(source)? {
        reading.record(record, raw);
    }
    reading.assembler.session(file.id.clone(), &file.path)
}

#[derive(Default)]
struct IflowReading {
    assembler: Assembler,
    calls: u64,
    is_open: bool,
    uses: BTreeSet<Arc<str>>,
}

impl IflowReading {
    fn record(&mut self, mut record: Object<'_>, raw: &RawValue) {
        let time = record.take_time("timestamp", &mut self.assembler);
        let kind = record.take_type();
        let message = record.take_object("message");
        let unknown = match (&*kind, message) {
            ("user", Some(message)) => return self.user(message, time, record.take_flag("isMeta")),
            ("assistant", Some(message)) => return self.model(message, time),
            ("user" | "assistant", None) => "without a message",
            (kind, _) => kind,
        };
        self.assembler.hear_unknown("record", unknown, raw, time);
    }

    fn model(&mut self, mut message: Object<'_>, time: When) {
        self.calls += u64::from(!self.is_open);
        self.is_open = true;
        let mut blocks = message.take_blocks("content", Speaker::Assistant, &mut self.assembler);
        let before = blocks.len();
        blocks.retain(|block| {
            block.as_use().is_none_or(|tool_use| self.uses.insert(tool_use.id.clone()))
        });
        self.assembler.skip_all(blocks.len()..before, "tool use written again");
        let billed = message.take_usage("usage", CachedTokens::Apart, &mut self.assembler);
        // Most models are not billed, and written with zeros.
        let (call, model) = (format!("call-{}", self.calls), message.take_text("model"));
        let usage = billed.and_then(unless_zero);
        let record = ModelRecord::of(blocks, time).by(Some(call.into()), model, usage);
        self.assembler.assistant(None, record);
    }

    fn user(&mut self, mut message: Object<'_>, timestamp: When, is_meta: bool) {
        self.is_open = false;
        let raw = message.take("content");
        let blocks = match raw.and_then(items) {
            Some(items) => items.into_iter().map(|raw| self.item(raw)).collect(),
            None => self.assembler.blocks(raw, Speaker::User),
        };
        self.assembler.hear_user(blocks, timestamp, is_meta);
    }

    /// A block of the user's; a result holds an object.
    fn item(&mut self, raw: &RawValue) -> ContentBlock {
        let mut block = Object::read(raw).unwrap_or_default();
        let inner = block.take_object("content");
        let (Some(mut inner), Some(id)) = (inner, block.take_text("tool_use_id")) else {
            return self.assembler.part(raw, Speaker::User);
        };
        let part = inner.take_object("responseParts");
        let mut function = part.unwrap_or(inner).inner("functionResponse");
        let told = function.take("response");
        let content = match told {
            Some(told) => response(told),
            None => self.assembler.unread("tool_result", raw),
        };
        let failed = block.take_flag("is_error")
            || told.and_then(Object::read).is_some_and(|told: Object<'_>| told.has("error"));
        ContentBlock::tool_result(id, vec![content], failed)
    }
}
