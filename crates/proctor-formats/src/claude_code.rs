//! Claude Code keeps one JSON object per line, and splits what one API call says over several.
//!
//! The file is append-only, and its order is the order of what happened. Records of type `user`
//! and `assistant` are the conversation, `attachment` records hold text that was slipped into it,
//! a `system` record of subtype `compact_boundary` and the summary after it are a compaction, and one
//! of subtype `local_command` is a command's echo or output, which user records held before. All else
//! is bookkeeping: skipped, and counted by type.
//!
//! Rules of this format, beside those every importer shares:
//! - Records of one API call share `message.id` and `requestId`. Usage repeats and grows from one
//!   to the next, so the largest of each counter is the call's; but gateways estimate the prompt before
//!   they bill it, so a record with a `stop_reason` has the last word on that. Many files have only what
//!   was counted when the answer began: calls that wrote far more than that are counted.
//! - A result may stand before its tool use in the file: its parent says where it belongs.
//! - The summary of a compaction and the attachments right behind it are what the context became,
//!   and no messages of the history. Where a file *begins* with a compaction, the history before
//!   it is elsewhere: then the summary is the first message, for it is all that is left, and the
//!   compaction is recorded as having kept it.
//! - A new root in the middle is a cleared context, if the bill agrees: see `roots`.
//! - Old results are cleared without a summary: a `microcompact_boundary` names them, and a
//!   `content-replacement` says what was read in the place of a result that was too large. Both
//!   take effect at the next call; the results are whole in the file.
//! - Records that a resumed session copied have new names: they are recognised by their call or
//!   their time, and by what they say.
//! - Records of sub-agents (`isSidechain`) are conversations of their own, but for the request for a summary: its agent
//!   is `acompact-…`, in newer versions in a file of its own, and the summary is in the main session, with its bill.
//! - The stream of `claude -p --output-format stream-json` and of the Agent SDK holds the same
//!   records without parents, mostly without times, and at first without names; the prompt of `-p`
//!   is not among them. A sub-agent's records name the tool use that began it. Texts that the
//!   product wrote are `isSynthetic`; the one behind a boundary is the summary. A file may be one
//!   list of these records, as anthropics/claude-code-action writes it. Each run begins with `system/init`;
//!   one of another session than the run before it, which is not billed for that one's prompt too, begins a session.
//! - A failed call leaves a message in the model's place, which is not sent again.
//! - Two prompts with one parent, or two at the root, mean that the user went back and asked anew,
//!   if the earlier was answered. Only the branch that the file ends in is kept. Any other fork is
//!   parallel tool calls, or prompts that were typed in a row, and stays.

use super::file::COPIED;
use super::prelude::*;
use super::usage_check;
use attachments::{AttachmentUse, attached, rendered};
use chain::{Chain, ChainEntry, ClearedContent, RecordKind};
use records::{
    ApiMessage, BOOKKEEPING, CompactMetadata, MicrocompactMetadata, Parents, PromptSnapshot, Record,
};

mod attachments;
mod branches;
mod chain;
mod records;
mod roots;
mod summaries;

/// The beginnings of user records that the product wrote, one a line: echoes of commands, their
/// output, reminders.
const INJECTED: &str = include_str!("claude_code/injected.txt");

/// How the user record begins that the product writes when the user stops the model.
const INTERRUPTED: &str = "[Request interrupted by user";

pub(super) const IMPORTER: Importer = Importer::new("claude-code", Detect::By(detect), import);

fn detect(head: &Head) -> bool {
    // All else may stand behind a message of megabytes.
    // A page about the format holds such lines too.
    head.text.starts_with(['{', '['])
        && (head.records().iter().take(50).any(is_record) || head.is("parentUuid isSidechain"))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut recording = ClaudeTranscript::default();
    for raw in file.raw_lines(source)? {
        if let Some(record) = lenient::record(raw, source) {
            recording.read(record, raw);
        }
    }
    add_counts(source, std::mem::take(&mut recording.source));
    recording.read_summarisers(&file.path);
    recording.bill_summaries();
    results_behind_uses(&mut recording.entries);
    roots::confirm(&mut recording.entries);
    branches::leave_abandoned(&mut recording.entries, &recording.parents, source);
    recording.sessions(file, source)
}

/// Moves each result that was written before its parent, the tool use, behind it.
fn results_behind_uses(entries: &mut Vec<ChainEntry>) {
    let mut places: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        places.extend(entry.uuid.clone().map(|uuid| (uuid, at)));
    }
    let mut placed: Vec<(usize, ChainEntry)> = Vec::with_capacity(entries.len());
    for (at, entry) in entries.drain(..).enumerate() {
        let parent = match (&entry.said, &entry.parent) {
            (RecordKind::User(_, None), Some(parent)) => places.get(parent),
            _ => None,
        };
        placed.push((parent.map_or(0, |parent| 2 * parent + 1).max(2 * at), entry));
    }
    placed.sort_by_key(|(place, _)| *place);
    entries.extend(placed.into_iter().map(|(_, entry)| entry));
}

/// Whether a record looks like one of Claude Code's.
fn is_record(record: &Value) -> bool {
    // Other products' streams have neither sub-agents nor the names of answers.
    let streamed = has_any(record, "session_id")
        && (record.get("parent_tool_use_id").is_some() || record.pointer("/message/id").is_some());
    match record.get("type").and_then(Value::as_str) {
        Some("user" | "assistant" | "system" | "attachment") => {
            streamed || has_any(record, "uuid") && has_any(record, "sessionId message")
        }
        Some(kind) => {
            (kind == "content-replacement" || is_one_of(BOOKKEEPING, kind))
                && (streamed || has_any(record, "sessionId messageId leafUuid"))
        }
        None => false,
    }
}

/// The request and the name of a call.
type NamedCall = (Text, Arc<str>);

/// Everything one file says, before it is put together.
#[derive(Default)]
struct ClaudeTranscript {
    entries: Vec<ChainEntry>,
    /// Every record with a name, those without content included, and its parent.
    parents: Parents,
    /// A record without a parent that no entry has followed yet.
    root: Text,
    /// Side chains, by the names of their agents and records.
    chains: BTreeMap<Arc<str>, usize>,
    /// The number of side chains; chain 0 is the main conversation.
    side_chains: usize,
    /// Calls by message id: by which request, if it is known, and under which name.
    calls: BTreeMap<Arc<str>, NamedCall>,
    /// The hash of each text with its call or its time, and the record that holds it.
    said: BTreeMap<ContentHash, Text>,
    /// The bills of summaries, by the time of their answers.
    summaries: BTreeMap<When, Usage>,
    /// The system prompts and tools, by the place of their record.
    given: BTreeMap<usize, PromptSnapshot>,
    /// The newest version that a record names.
    version: Text,
    /// In a stream, the session of the run under way.
    run: Text,
    source: Source,
}

impl ClaudeTranscript {
    fn read(&mut self, mut record: Record<'_>, raw: &RawValue) {
        if self.sums_up(&record) {
            return self.source.skip("request for a summary");
        }
        self.version = record.version.take().or(self.version.take());
        let kind = record.r#type.clone().unwrap_or_else(|| "without type".into());
        let parent = record.parent().cloned();
        if let Some(uuid) = &record.uuid {
            if self.parents.contains_key(uuid) {
                return self.source.warn(COPIED);
            }
            self.parents.insert(uuid.clone(), parent.clone());
        }
        let repeated = self.repeats(&record, &kind);
        if let Some(earlier) = &repeated {
            self.source.warn(COPIED);
            // A record that follows the copy follows the original.
            if let (Some(uuid), Some(earlier)) = (&record.uuid, earlier) {
                self.parents.insert(uuid.clone(), Some(earlier.clone()));
            }
            if &*kind != "assistant" {
                return;
            }
        }
        let chain = self.chain_of(&record);
        if repeated.is_none() && roots::is_root(&record, &kind) {
            self.root.clone_from(&record.uuid);
        }
        let timestamp = record.timestamp.and_then(|raw| time_or_warn(time(raw), &mut self.source));
        let message = record.message.filter(|raw| raw.get().starts_with('{'));
        let said = match &*kind {
            "user" | "assistant" if message.is_none() => self.unknown("without a message", raw),
            "user" => self.user(&record, chain > 0),
            "assistant" => self.assistant(&record, timestamp, repeated.is_some()),
            "attachment" => self.attachment(&record, chain),
            "content-replacement" => self.replacements(&record),
            "system" => match record.subtype.as_deref() {
                Some("compact_boundary") => Some(RecordKind::Boundary(self.boundary(&record))),
                Some("microcompact_boundary") => {
                    Some(RecordKind::ClearedContent(self.cleared(&record)))
                }
                Some("local_command") => {
                    // The echo of a command or its output, which the model reads with the next prompt.
                    let blocks = content::blocks(record.content, Speaker::User, &mut self.source);
                    Some(RecordKind::User(blocks, Some(Tag::Meta)))
                }
                Some("init") => self.begins_run(record.run.take()),
                subtype => {
                    let kind = subtype.unwrap_or("without subtype");
                    return self.source.skip(&format!("system/{kind}"));
                }
            },
            known if is_one_of(BOOKKEEPING, known) => return self.source.skip(known),
            other => self.unknown(other, raw),
        };
        let Some(said) = said else { return };
        let entry = ChainEntry {
            uuid: record.uuid,
            parent,
            chain,
            session: record.session_id,
            timestamp,
            said,
        };
        if chain == 0 && entry.parent.is_none() && self.run.is_none() {
            self.warn_of_another(entry.session.as_deref());
        }
        // A new root comes before the first entry below it.
        if chain == 0
            && let Some(root) = self.root.take()
            && roots::begins(&entry, &root, &self.parents)
        {
            self.entries.push(ChainEntry {
                uuid: None,
                parent: None,
                chain,
                session: entry.session.clone(),
                timestamp,
                said: RecordKind::NewRoot(None),
            });
        }
        self.entries.push(entry);
    }

    /// Warns where another session begins than the first of the file, as in files that were joined.
    fn warn_of_another(&mut self, begun: Option<&str>) {
        let first = self.entries.iter().find_map(|entry| entry.session.as_deref());
        if let (Some(first), Some(begun)) = (first, begun)
            && first != begun
        {
            self.source.warn(&format!("records of another session follow: `{begun}`"));
        }
    }

    /// A run of the agent's begins. A file may hold several, one behind the other.
    fn begins_run(&mut self, session: Text) -> Option<RecordKind> {
        self.source.skip("system/init");
        let earlier = self.run.replace(session?)?;
        (self.run.as_ref() != Some(&earlier)).then_some(RecordKind::NewRun)
    }

    fn unknown(&mut self, kind: &str, raw: &RawValue) -> Option<RecordKind> {
        let kept = unknown_record("record", kind, raw, &mut self.source)?;
        Some(RecordKind::User(vec![kept], Some(Tag::Meta)))
    }

    /// Whether a record was copied from an earlier one of the file, and from which.
    fn repeats(&mut self, record: &Record<'_>, kind: &str) -> Option<Text> {
        let mut message = record.message.and_then(Object::read).unwrap_or_default();
        let (of, content) = match kind {
            "assistant" => (message.text("id")?, message.take("content")?),
            "user" => (record.timestamp?.get().into(), message.take("content")?),
            "system" => (record.timestamp?.get().into(), record.compact_metadata?),
            _ => return None,
        };
        let side = record.agent_id.as_deref().unwrap_or_default();
        let said = format!("{kind} {of} {side} {}", content.get());
        let hash = ContentHash::of(said.as_bytes());
        let earlier = self.said.get(&hash).cloned();
        if earlier.is_none() {
            self.said.insert(hash, record.uuid.clone());
        }
        earlier
    }

    /// The name of a call. Some of its records may not say its request.
    fn call(&mut self, id: Arc<str>, request: Option<&Arc<str>>) -> Arc<str> {
        if let Some((known, call)) = self.calls.get_mut(&id)
            && (known.is_none() || request.is_none() || known.as_ref() == request)
        {
            *known = known.take().or_else(|| request.cloned());
            return call.clone();
        }
        let call = request.map_or_else(|| id.clone(), |request| format!("{id}/{request}").into());
        self.calls.insert(id, (request.cloned(), call.clone()));
        call
    }

    /// Old results that are cleared before the next call.
    fn cleared(&mut self, record: &Record<'_>) -> ClearedContent {
        let raw = record.microcompact_metadata;
        let read = raw.and_then(|raw| lenient::object(raw.get(), &mut self.source));
        let metadata: MicrocompactMetadata = read.unwrap_or_default();
        let results = metadata.compacted_tool_ids.into_iter();
        ClearedContent {
            trigger: "microcompact",
            pre_tokens: metadata.pre_tokens.and_then(|one| one.as_u64()).map(Tokens),
            results: results.map(|id| (id, kept_context::CLEARED.into())).collect(),
            attachments: metadata.cleared_attachments,
        }
    }

    /// The texts that the model reads in the place of results from the next call on.
    fn replacements(&mut self, record: &Record<'_>) -> Option<RecordKind> {
        let list = items(record.replacements?).unwrap_or_default();
        let mut results = Vec::with_capacity(list.len());
        for raw in list {
            let mut one = Object::read(raw).unwrap_or_default();
            match one.take_text("toolUseId").zip(one.take_text("replacement")) {
                Some(result) => results.push(result),
                None => self.source.not_understood("replacement of a result"),
            }
        }
        Some(RecordKind::ClearedContent(ClearedContent {
            trigger: "content-replacement",
            pre_tokens: None,
            results,
            attachments: Vec::new(),
        }))
    }

    /// The conversation of a record.
    ///
    /// A side chain is recognised by its agent, or by the first record of it that was seen: parents
    /// are looked up among earlier records only, so that no cycle can be followed.
    fn chain_of(&mut self, record: &Record<'_>) -> usize {
        let agent = record.agent_id.as_ref().or(record.parent_tool_use_id.as_ref());
        if !record.is_side() {
            // A replacement in a side chain names its agent alone.
            let replaced = agent.filter(|_| record.replacements.is_some());
            return replaced.and_then(|agent| self.chains.get(agent)).copied().unwrap_or(0);
        }
        let name = agent.or(record.parent_uuid.as_ref());
        // A record whose parent is not in the file follows the one before it.
        let lost = agent.is_none() && name.is_some_and(|name| !self.parents.contains_key(name));
        let before =
            self.entries.last().map(|entry| entry.chain).filter(|chain| lost && *chain > 0);
        let known = name.and_then(|name| self.chains.get(name)).copied();
        let chain = known.or(before).unwrap_or_else(|| {
            self.side_chains += 1;
            self.side_chains
        });
        let names = [agent, record.uuid.as_ref()].into_iter().flatten();
        self.chains.extend(names.map(|name| (name.clone(), chain)));
        chain
    }

    /// The content of a record; `None` if it holds nothing readable.
    fn message<'a>(&mut self, of: &Record<'a>, by: Speaker) -> Option<(ApiMessage<'a>, Blocks)> {
        let message: ApiMessage<'_> = lenient::object(of.message?.get(), &mut self.source)?;
        let blocks = content::blocks(message.content, by, &mut self.source);
        Some((message, blocks))
    }

    fn user(&mut self, record: &Record<'_>, side: bool) -> Option<RecordKind> {
        let (_, blocks) = self.message(record, Speaker::User)?;
        if blocks.is_empty() {
            self.source.skip("user without content");
            return None;
        }
        let synthetic = record.is_synthetic == Some(true);
        let last = self.entries.last().map(|entry| &entry.said);
        let compacted = matches!(last, Some(RecordKind::Boundary(_)));
        if record.is_compact_summary == Some(true) || synthetic && compacted {
            return Some(RecordKind::Summary(blocks));
        }
        let tags = speaker_of(&blocks, synthetic || record.is_meta == Some(true), side);
        Some(RecordKind::User(blocks, tags))
    }

    /// A record that was copied may still report more usage of the call, and says nothing.
    fn assistant(&mut self, record: &Record<'_>, time: When, is_copy: bool) -> Option<RecordKind> {
        let (message, mut blocks) = self.message(record, Speaker::Assistant)?;
        if is_copy {
            blocks.clear();
        }
        let failed = record.is_api_error_message == Some(true);
        let synthetic = message.model.as_deref() == Some("<synthetic>");
        if synthetic && (failed || record.error.is_some()) {
            return Some(RecordKind::ApiError);
        }
        if synthetic || failed {
            return Some(RecordKind::Assistant(
                ModelRecord::of(blocks, time).tagged([Tag::Synthetic]),
            ));
        }
        let request = record.request_id.as_ref();
        let call = message.id.map(|id| self.call(id, request)).or_else(|| request.cloned());
        let billed = message.usage.filter(Value::is_object);
        let iterations = billed.as_ref().and_then(Iterations::of);
        let usage = billed.map(|value| usage_in(&value, CachedTokens::Apart, &mut self.source));
        let said = ModelRecord {
            iterations,
            is_last: message.stop_reason.is_some(),
            ..ModelRecord::of(blocks, time)
        };
        Some(RecordKind::Assistant(said.by(call, message.model, usage)))
    }

    fn attachment(&mut self, record: &Record<'_>, chain: usize) -> Option<RecordKind> {
        let attachment = record.attachment.map(value).unwrap_or_default();
        let kind = attachment["type"].as_str().unwrap_or("without type");
        let name = format!("attachment/{kind}");
        if kind == "prompt_snapshot"
            && let Some(raw) = record.attachment
            && let Some(given) = lenient::object::<PromptSnapshot>(raw.get(), &mut self.source)
        {
            let known = self.given.entry(chain).or_insert_with(|| given.clone());
            // The first ones have no tools.
            if known.tools.is_empty() {
                *known = given;
            }
        }
        let sent = record.rendered.map(value).unwrap_or_default();
        match rendered(kind, &sent).unwrap_or_else(|| attached(kind, &attachment)) {
            AttachmentUse::Seen(blocks, tag) => Some(RecordKind::Attachment(blocks, tag)),
            AttachmentUse::Hidden => {
                self.source.skip(&name);
                None
            }
            // Most attachments are read by the model.
            AttachmentUse::Unknown => {
                self.source.not_understood(&name);
                let block = content::kept(kind, record.attachment?);
                Some(RecordKind::Attachment(vec![block], Tag::Meta))
            }
        }
    }

    fn boundary(&mut self, record: &Record<'_>) -> CompactMetadata {
        let metadata = record.compact_metadata.map_or("{}", RawValue::get);
        serde_json::from_str(metadata).unwrap_or_else(|_| {
            self.source.warn("what a compaction says about itself cannot be read");
            CompactMetadata::default()
        })
    }

    /// Puts the conversations together, in the order of the file.
    fn sessions(mut self, file: &SourceText, source: &mut Source) -> Imported {
        let own = self.entries.iter().find_map(|entry| entry.session.clone());
        let (mut run, mut chains) = (0, BTreeMap::from([((0, 0), Chain::default())]));
        for entry in std::mem::take(&mut self.entries) {
            run += usize::from(matches!(entry.said, RecordKind::NewRun));
            let chain = chains.entry((run, entry.chain)).or_default();
            chain.add(entry, &self.parents);
        }
        for (chain, given) in std::mem::take(&mut self.given) {
            if let Some(chain) = chains.get_mut(&(0, chain)) {
                chain.give(given);
            }
        }
        let mut runs: Vec<Vec<Assembler>> = Vec::new();
        for ((number, _), chain) in chains {
            runs.resize_with(number + 1, Vec::new);
            runs[number].push(chain.end());
        }
        let mut sessions = joined_with_side_chains(runs, source, file)?;
        // Newer versions write sub-agents into files of their own, with the name of the main session.
        let apart = sessions.iter().all(|session| session.source().main.is_some());
        let main = own.filter(|_| apart).map(|name| session_name(&name));
        for session in &mut sessions {
            let source = &mut session.parts_mut().source;
            source.version = self.version.as_deref().map(str::to_owned);
            source.main = main.clone().or(source.main.take());
            usage_check::warn(session);
        }
        Ok(sessions)
    }
}

/// Who wrote a user record without the product's own mark; none for tool results alone.
fn speaker_of(blocks: &[ContentBlock], is_meta: bool, side: bool) -> Option<Tag> {
    if is_meta {
        return Some(Tag::Meta);
    }
    // In a side chain, the main agent writes the prompts.
    let typed = (!side).then_some(Tag::TypedUser);
    let mut injected = None;
    for block in blocks {
        let text = match block {
            ContentBlock::ToolResult(_) => return None,
            ContentBlock::Text(text) => text.trim_start(),
            _ => continue,
        };
        if text.starts_with(INTERRUPTED) {
            injected = Some(Tag::Synthetic);
        } else if INJECTED.lines().any(|start| text.starts_with(start)) {
            injected = injected.or(Some(Tag::Meta));
        } else {
            return typed;
        }
    }
    injected.or(typed)
}
