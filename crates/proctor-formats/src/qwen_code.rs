//! Qwen Code keeps one record per line: records like Claude Code's with contents of Gemini's API.
//!
//! Rules of this format, beside those every importer shares:
//! - A record names the one before it. Where two name the same, the user went back: only the branch
//!   that the file ends in is kept. One whose parent is not in the file follows the line before it.
//! - The results of parallel calls are records of their own, and one message of the user's.
//! - A `chat_compression` holds all that the context became. What stands at its end stayed of the
//!   history; what stands before that, the product wrote.
//! - Its list was still growing when it was written: an answer that is recorded behind it is no part
//!   of it. A prompt in front of it that it does not hold was sent behind it.

use super::gemini_cli::ACKS;
use super::gemini_content::{blocks, usage_metadata};
use super::prelude::*;

/// How words begin that the product sends in the user's place.
const INJECTED: &str = "<task-notification|<system-reminder|This is the Qwen Code.";

/// The shapes of a record.
const RECORD: &str = "uuid parentUuid sessionId message/parts:l | \
     uuid parentUuid sessionId systemPayload:o";

pub(super) const IMPORTER: Importer = Importer::new("qwen-code", Detect::Any(50, RECORD), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    // A root begins a session.
    let sessions = file.sessions(source, |raw| {
        let record = Object::read(raw)?;
        let at_root = record.has("uuid") && record.text("parentUuid").is_none();
        record.text("sessionId").filter(|_| at_root)
    })?;
    let each = sessions.into_iter().map(|records| conversation(objects(records, source)));
    let conversations: Vec<Assembler> = each.collect();
    sessions_of(conversations, source, file)
}

/// The conversation of one session's records.
fn conversation(records: Vec<WholeRecord<'_>>) -> Assembler {
    let mut chat = QwenChat::default();
    let kept = branch(&records);
    for (at, (record, raw)) in records.into_iter().enumerate() {
        // A record without a name is in no branch, and in all of them.
        if kept.contains(&at) || !record.has("uuid") {
            chat.read(record, raw);
        } else {
            chat.assembler.skip("record of an abandoned branch");
        }
    }
    chat.compact(None);
    chat.assembler
}

/// The records of the branch that the file ends in.
fn branch(records: &[WholeRecord<'_>]) -> BTreeSet<usize> {
    let names = records.iter().map(|(record, _)| record.text("uuid"));
    branch_of(names, records.len().checked_sub(1), |at| {
        let (record, _) = &records[at];
        match record.text("parentUuid") {
            None if record.contains("parentUuid") => Parent::None,
            named => Parent::Named(named),
        }
    })
}

/// The status of a compaction that left a shorter context.
const COMPRESSED: u64 = 1;

/// A message of a context: who speaks, and the blocks.
type Said = (Role, Blocks);

/// A context that was compacted, as it was recorded, and the size that it had before.
type Compression = (Option<Tokens>, Vec<Said>);

#[derive(Default)]
struct QwenChat {
    assembler: Assembler,

    /// One that waits for the record behind it.
    compression: Option<Compression>,
    /// The bill of the last request, until its answer comes: that of a summary has none.
    answered: Option<Usage>,
    /// The bill of the last answer.
    billed: Option<Usage>,
}

impl QwenChat {
    fn read(&mut self, mut record: Object<'_>, raw: &RawValue) {
        let time = record.take_time("timestamp", &mut self.assembler);
        let kind = record.take_type();
        let subtype = record.take_text("subtype");
        let message = record.take_object("message");
        match (&*kind, message) {
            ("system", _) if subtype.as_deref() == Some("chat_compression") => {
                self.compact(None);
                self.compression = self.compression(record.inner("systemPayload"));
            }
            ("assistant", Some(message)) => self.model(record, message, time),
            ("user" | "tool_result" | "system", Some(message)) => {
                let typed = &*kind == "user"
                    && !matches!(subtype.as_deref(), Some("notification" | "cron"));
                self.user(record, message, time, typed);
            }
            ("system" | "assistant", None) => {
                self.learn_bill(record.inner("systemPayload").inner("uiEvent"));
                let what = subtype.as_deref().unwrap_or("without content");
                self.assembler.skip(&format!("{kind}/{what}"));
            }
            _ => {
                self.compact(None);
                self.assembler.hear_unknown("record", &kind, raw, time);
            }
        }
    }

    fn user(&mut self, mut record: Object<'_>, mut message: Object<'_>, time: When, typed: bool) {
        let mut said = blocks(Speaker::User, message.items("parts"), &mut self.assembler);
        let status = record.inner("toolCallResult").take_text("status");
        let failed = matches!(status.as_deref(), Some("error" | "cancelled"));
        for block in &mut said {
            if let ContentBlock::ToolResult(result) = block {
                result.is_error |= failed;
            }
        }
        self.compact(None);
        let tag = speaker(&said, |text: &str| {
            !typed || INJECTED.split('|').any(|item| text.starts_with(item))
        });
        self.assembler.hear(None, said, time, tag);
    }

    /// Keeps the bill of a request that the telemetry reports.
    fn learn_bill(&mut self, mut event: Object<'_>) {
        if event.take_text("event.name").is_some_and(|name| name.ends_with(".api_response")) {
            let keys = ["input", "cached_content", "output", "thoughts", "total"];
            let [prompt, cached, output, thoughts, total] =
                keys.map(|key| Tokens(event.take_as(&format!("{key}_token_count")).unwrap_or(0)));
            // Some count what was thought within the output, and some beside it.
            let beside = if total > prompt + output { thoughts } else { Tokens::ZERO };
            let uncached = Usage::uncached(prompt - cached, output + beside);
            self.answered = unless_zero(Usage { cache_read: cached, ..uncached });
        }
    }

    fn model(&mut self, mut record: Object<'_>, mut message: Object<'_>, time: When) {
        self.answered = None;
        let said = blocks(Speaker::Assistant, message.items("parts"), &mut self.assembler);
        self.compact(Some(&said));
        let source = &mut self.assembler.source;
        let billed = record.take("usageMetadata");
        let usage = billed.and_then(|raw| unless_zero(usage_metadata(raw, source)?));
        self.billed = usage;
        if let Some(window) = record.take_as("contextWindowSize") {
            self.assembler.header.context_window = Some(Tokens(window));
        }
        let (call, model) = (record.take_text("uuid"), record.take_text("model"));
        self.assembler.assistant(None, ModelRecord::of(said, time).by(call, model, usage));
    }

    fn compression(&mut self, mut payload: Object<'_>) -> Option<Compression> {
        let mut info = payload.inner("info");
        let status: Option<u64> = info.take_as("compressionStatus");
        if status.is_some_and(|status| status != COMPRESSED) && !payload.has("compressedHistory") {
            self.assembler.skip("compaction that failed");
            return None;
        }
        let pre_tokens = info.take_as("originalTokenCount").map(Tokens);
        let mut context: Vec<Said> = Vec::new();
        let unnamed = std::mem::take(&mut self.assembler.unnamed);
        for mut content in payload.objects("compressedHistory") {
            let role = role_of(content.take_text("role").as_deref() == Some("model"));
            let said = blocks(role.into(), content.items("parts"), &mut self.assembler);
            match context.last_mut() {
                // The history has one message where the user's role speaks twice.
                Some((Role::User, before)) if role == Role::User => before.extend(said),
                _ => context.push((role, said)),
            }
        }
        self.assembler.unnamed = unnamed;
        // A telemetry that comes behind its answer is that of the call before.
        let bill = self.answered.take();
        let bill = bill.filter(|own| Some(own.total()) != pre_tokens && Some(*own) != self.billed);
        self.assembler.summary_usage = bill;
        Some((pre_tokens, context))
    }

    /// Adds the compaction that waits, in front of the model's blocks that come next.
    fn compact(&mut self, next: Option<&[ContentBlock]>) {
        let Some((pre_tokens, mut context)) = self.compression.take() else {
            return;
        };
        let end = self.assembler.flush();
        if let (Some(next), Some((Role::Assistant, last))) = (next, context.last())
            && is_same(last, next)
        {
            context.pop();
        }
        let (last, newest) = (end.checked_sub(1), context.last());
        let sent_later = last.filter(|_| !self.holds(last, newest)).filter(|last| {
            let own = self.assembler.said(*last);
            own.is_some_and(|(role, own)| {
                let result = own.iter().any(ContentBlock::is_result);
                role == Role::User && (!result || self.holds(last.checked_sub(1), newest))
            })
        });
        let last = self.assembler.compactions().last().map_or(0, |one| one.at);
        let at = sent_later.unwrap_or(end).max(last);
        let (mut first, mut rest) = (at, &context[..]);
        while let Some((said, before)) = rest.split_last()
            && self.holds(first.checked_sub(1), Some(said))
        {
            (first, rest) = (first - 1, before);
        }
        let mut pieces = written(rest);
        super::kept_context::keep(first..at, &mut pieces);
        let after = match context[..] {
            [] => CompactedTo::Missing,
            _ => CompactedTo::Replaced(pieces),
        };
        self.assembler.compaction(at, None, pre_tokens, after);
    }

    /// Whether the message of the history is this one of a context.
    fn holds(&self, message: Option<usize>, said: Option<&Said>) -> bool {
        let own = message.and_then(|at| self.assembler.said(at));
        own.zip(said).is_some_and(|((role, own), (of, said))| role == *of && is_same(own, said))
    }
}

/// Whether two messages say the same, thoughts left out.
fn is_same(one: &[ContentBlock], other: &[ContentBlock]) -> bool {
    let said = |block: &&ContentBlock| !matches!(block, ContentBlock::Thinking(_));
    one.iter().filter(said).eq(other.iter().filter(said))
}

/// Whether the product acknowledges a summary in the model's role.
fn is_ack((role, blocks): &Said) -> bool {
    *role == Role::Assistant && ACKS.contains(&joined_texts(blocks).trim())
}

/// The messages that the product wrote. The summary is the message before the acknowledgement.
fn written(context: &[Said]) -> Vec<Recorded> {
    let before = context.iter().rposition(is_ack).and_then(|ack| ack.checked_sub(1));
    let summary = before.or_else(|| context.iter().position(|(role, _)| *role == Role::User));
    let pieces = context.iter().enumerate().map(|(at, said)| {
        let tag = match said.0 {
            Role::User if Some(at) == summary => Some(Tag::CompactSummary),
            Role::User => Some(Tag::Meta),
            Role::Assistant => is_ack(said).then_some(Tag::Synthetic),
        };
        Recorded::written(said.0, said.1.clone(), tag.as_slice())
    });
    pieces
        .filter(|piece| !matches!(piece, Recorded::Written(own) if own.content().is_empty()))
        .collect()
}
