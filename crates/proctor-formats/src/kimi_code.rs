//! Kimi Code keeps a session in a folder (`~/.kimi-code/sessions/*/*/`), with a journal of each agent
//! in it (`agents/main/wire.jsonl`): a `metadata` record with the version of the protocol (1.4 and
//! 1.5 are known), then a record an event.
//!
//! Rules of this format, beside those every importer shares:
//! - `context.append_message` is a message of the context; its `origin` says whether a person wrote
//!   it. `turn.prompt` says the same again. The parts of a call are loop events with its `stepUuid`.
//! - The model reads the `note` of a result behind its output.
//! - A compaction leaves the newest messages that a person wrote, by their number, and then the
//!   summary. One of an older shape, without that number, also left what came last; its messages
//!   are not counted as they are here, so that they are left out with a warning.
//! - `context.undo` takes back turns: what was said in them is left out.
//! - `usage.record` repeats the bill of a step, unless the step has none. That of a compaction is
//!   no call's.
//!
//! Source: MoonshotAI/kimi-code, `packages/agent-core-v2/src/agent/contextMemory/` (`contextEvents.ts` at
//! 61e9f67606, `loopEventFold.ts` at 026c6ee3ea, `compactionHandoff.ts` at 07c4d3541b); November 2026.

use super::prelude::*;

/// The first parts of the types of records that say nothing to the model.
const BOOKKEEPING: &str = "agent cron file_history forked full_compaction goal interaction \
     interruptionReminder mcp metadata permission plan plan_mode plugin profile prompt runtime \
     staleGuard swarm_mode task token_counting tools tower_mode turn";

/// The journals of a session's folder.
const AGENTS: &str = "agents";
const MAIN: &str = "main";
const JOURNAL: &str = "wire.jsonl";

pub(super) const IMPORTER: Importer = Importer::new("kimi-code", Detect::By(detect), import)
    .in_folders(|folder| main(folder).is_some(), import_folder);

fn main(folder: &Folder) -> Option<Folder> {
    let main = folder.folder(AGENTS)?.folder(MAIN)?;
    main.has(JOURNAL).then_some(main)
}

/// The shape of a record of the context: the header may be lost.
const APPENDED: &str = "type=context.append_message,context.append_loop_event time";

fn detect(head: &Head) -> bool {
    let mut kinds = head.values.iter().take(50).filter_map(|kind| kind.get("type")?.as_str());
    let header = head.is("type=metadata protocol_version:s");
    head.text.starts_with('{')
        && (header && kinds.any(|kind| kind.contains('.')) || head.any(20, APPENDED))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut agent = JournalAgent::default();
    let records = kept_records(file, source)?;
    agent.assembler.is_side = !records.is_empty()
        && records.iter().all(|(record, _)| record.text("agentId").is_some_and(|id| &*id != MAIN));
    agent.read(records);
    agent.assembler.session(file.id.clone(), &file.path)
}

fn import_folder(folder: &Folder, files: &mut SessionFiles, source: &mut Source) -> Imported {
    let Some(agents) = folder.folder(AGENTS) else {
        return Ok(Vec::new());
    };
    let others =
        agents.names().iter().filter(|name| *name != MAIN).filter_map(|name| agents.folder(name));
    let (mut texts, mut chains) = (Vec::new(), Vec::new());
    for journal in main(folder).into_iter().chain(others).filter(|journal| journal.has(JOURNAL)) {
        texts.push(files.read(&journal.child(JOURNAL))?);
    }
    for (at, text) in texts.iter().enumerate() {
        let mut agent = JournalAgent::default();
        match kept_records(text, source) {
            Ok(records) => agent.read(records),
            // A journal that was just begun.
            Err(ImportError::Empty(_)) if at > 0 => continue,
            Err(error) => return Err(error),
        }
        chains.push(agent.assembler);
    }
    let Some(mut text) = texts.into_iter().next() else {
        return Ok(Vec::new());
    };
    text.id = files.session_id(folder);
    with_side_chains(chains, source, &text)
}

/// The records of a journal, without those that were taken back.
fn kept_records<'a>(file: &'a SourceText, source: &mut Source) -> Result<Vec<WholeRecord<'a>>> {
    let mut kept: Vec<WholeRecord<'a>> = Vec::new();
    for (mut record, raw) in file.records(source)? {
        if record.text("type").as_deref() != Some("context.undo") {
            kept.push((record, raw));
            continue;
        }
        let turns: usize = record.take_as("count").unwrap_or_default();
        let places = kept.iter().enumerate().rev().take_while(|(_, (record, _))| {
            let kind = record.text("type");
            kind.is_none_or(|kind| !is_one_of("context.apply_compaction context.clear", &kind))
        });
        let mut begins = places.filter(|(_, (record, _))| {
            let message = record.get("message").and_then(Object::read);
            message.is_some_and(|one| one.text("role").as_deref() == Some("user") && is_typed(&one))
        });
        let first = turns.checked_sub(1).and_then(|before| begins.nth(before));
        let Some((first, _)) = first else {
            source.warn("a turn was taken back that is not in the file");
            continue;
        };
        for _ in kept.drain(first..) {
            source.warn("abandoned branch: a record the user went back from is left out");
        }
    }
    Ok(kept)
}

/// Whether a person wrote the message of the user's.
fn is_typed(message: &Object<'_>) -> bool {
    let origin = message.get("origin").and_then(Object::read).unwrap_or_default();
    origin.text("trigger").as_deref() == Some("user-slash")
        || matches!(origin.text("kind").as_deref(), None | Some("user"))
}

/// One agent, growing record by record.
#[derive(Default)]
struct JournalAgent {
    assembler: Assembler,
    /// The user's messages that are still in the context.
    typed: Vec<Blocks>,
    /// The model that was asked last, and whether that was for a summary.
    model: Text,
    is_summary: bool,
    /// The last step, and who began the compaction.
    step: Text,
    trigger: Text,
}

impl JournalAgent {
    fn read(&mut self, records: Vec<WholeRecord<'_>>) {
        for (record, raw) in records {
            self.record(record, raw);
        }
    }

    fn record(&mut self, mut record: Object<'_>, raw: &RawValue) {
        let kind = record.take_type();
        let time = record.take_time("time", &mut self.assembler);
        match &*kind {
            "context.append_message" => match record.take_object("message") {
                Some(message) => self.message(message, raw, time),
                None => self.assembler.hear_unknown("record", &kind, raw, time),
            },
            "context.append_loop_event" => self.event(record.inner("event"), raw, time),
            "context.apply_compaction" => self.compaction(record),
            "context.clear" => {
                self.typed.clear();
                let after = CompactedTo::Replaced(Vec::new());
                self.assembler.compacts(Some("clear".into()), None, after);
            }
            "micro_compaction.apply" => {
                self.assembler.warn("a compaction says nothing of what it cleared");
            }
            "llm.request" => {
                self.model = record.take_text("model").or(self.model.take());
                self.is_summary = record.take_text("kind").as_deref() == Some("compaction");
                self.assembler.skip(&kind);
            }
            "llm.tools_snapshot" => {
                self.assembler.header.tools.clear();
                record.header(&mut self.assembler);
                self.assembler.skip(&kind);
            }
            "usage.record" => {
                if self.is_summary {
                    self.assembler.summary_usage = self.usage(record);
                } else if record.text("usageScope").as_deref() == Some("turn") {
                    self.bill(record);
                }
                self.assembler.skip(&kind);
            }
            "config.update" | "profile.bind" | "context.update_token_count" => {
                let header = &mut self.assembler.header;
                header.system = record.take_text("systemPrompt").or(header.system.take());
                self.assembler.skip(&kind);
            }
            "full_compaction.begin" => {
                self.trigger = record.first_text(&["trigger", "source"]);
                self.assembler.skip(&kind);
            }
            other => match other.split_once('.').map_or(other, |(first, _)| first) {
                first if is_one_of(BOOKKEEPING, first) => self.assembler.skip(other),
                _ => self.assembler.hear_unknown("record", other, raw, time),
            },
        }
    }

    /// A message of the context that no step wrote.
    fn message(&mut self, mut message: Object<'_>, raw: &RawValue, time: When) {
        match message.take_text("role").as_deref() {
            Some(role @ ("user" | "system")) => {
                let said = message.take_blocks("content", Speaker::User, &mut self.assembler);
                let typed = role == "user" && is_typed(&message);
                self.typed.extend(typed.then(|| said.clone()));
                let tag = if typed { Tag::TypedUser } else { Tag::Meta };
                self.assembler.hear(None, said, time, [tag]);
            }
            Some("assistant") => {
                let mut said =
                    message.take_blocks("content", Speaker::Assistant, &mut self.assembler);
                for raw in message.items("toolCalls") {
                    let call = Object::read(raw).unwrap_or_default();
                    said.push(self.call(call, "id", "arguments", raw));
                }
                self.assembler.assistant(None, ModelRecord::of(said, time));
            }
            Some("tool") if message.has("toolCallId") => {
                let id = message.take_text("toolCallId").unwrap_or_default();
                self.result(id, message, "content", time);
            }
            _ => keep_unread("of unknown role", raw, &mut self.assembler),
        }
    }

    /// What happened in a step.
    fn event(&mut self, mut event: Object<'_>, raw: &RawValue, time: When) {
        let kind = event.take_type();
        let part = event.get("part");
        match (&*kind, part) {
            ("step.begin", _) => self.step = event.take_text("uuid"),
            ("step.end", _) => {
                self.step = event.take_text("uuid").or(self.step.take());
                self.bill(event);
            }
            ("content.part", Some(part)) => {
                let block = self.assembler.part(part, Speaker::Assistant);
                self.say(event, block, time);
            }
            ("tool.call", _) => {
                let block = self.call(event.clone(), "toolCallId", "args", raw);
                self.say(event, block, time);
            }
            ("tool.result", _) if event.has("toolCallId") => {
                let id = event.take_text("toolCallId").unwrap_or_default();
                self.result(id, event.inner("result"), "output", time);
            }
            _ => self.assembler.hear_unknown("event", &kind, raw, time),
        }
    }

    /// Adds a block to its step.
    fn say(&mut self, mut event: Object<'_>, block: ContentBlock, time: When) {
        if block.as_text().is_some_and(|text| text.trim().is_empty()) {
            return self.assembler.skip("empty text");
        }
        let step = event.take_text("stepUuid").or_else(|| self.step.clone());
        let part = ModelRecord::of(vec![block], time).by(step, self.model.clone(), None);
        self.assembler.assistant(None, part);
    }

    fn usage(&mut self, mut record: Object<'_>) -> Option<Usage> {
        record.take_usage("usage", CachedTokens::Apart, &mut self.assembler).and_then(unless_zero)
    }

    /// Adds the bill of the last step.
    fn bill(&mut self, record: Object<'_>) {
        if let Some(usage) = self.usage(record) {
            let part = ModelRecord::default().by(self.step.clone(), None, Some(usage));
            self.assembler.assistant(None, part);
        }
    }

    fn call(&mut self, mut call: Object<'_>, id: &str, args: &str, raw: &RawValue) -> ContentBlock {
        let mut function = call.inner("function");
        let name = call.take_text("name").or_else(|| function.take_text("name"));
        let given = call.take(args).or_else(|| function.take(args));
        let Some((id, name)) = call.take_text(id).zip(name) else {
            return self.assembler.unread("tool call", raw);
        };
        let input = match given.and_then(content::text) {
            Some(text) => arguments_in(&text, &mut self.assembler),
            None => input(given),
        };
        ContentBlock::tool_use(id, name, input)
    }

    /// The result of a tool as the model reads it.
    fn result(&mut self, id: Arc<str>, mut result: Object<'_>, key: &str, time: When) {
        let mut told = result.take_blocks(key, Speaker::Tool, &mut self.assembler);
        told.extend(result.take_words("note").map(ContentBlock::Text));
        self.assembler.hear_result(id, told, result.take_flag("isError"), time);
    }

    fn compaction(&mut self, mut record: Object<'_>) {
        let summary = record.first_text(&["contextSummary", "summary"]).or_else(|| {
            let said =
                record.inner("summary").take_blocks("content", Speaker::User, &mut self.assembler);
            (!said.is_empty()).then(|| joined_texts(&said).into())
        });
        let count: Option<usize> = record.take_as("keptUserMessageCount");
        let first: usize = record.take_as("keptHeadUserMessageCount").unwrap_or_default();
        if count.is_none() {
            self.assembler.warn("a compaction left the newest messages, which are not told apart");
        }
        let typed = std::mem::take(&mut self.typed);
        // Of many the first and the last stay.
        let last = typed.len().saturating_sub(count.unwrap_or_default().saturating_sub(first));
        let kept = typed.into_iter().enumerate().filter(|(at, _)| *at < first || *at >= last);
        self.typed = kept.map(|(_, said)| said).collect();
        let said = self.typed.iter().filter(|typed| !typed.is_empty()).cloned();
        let pieces = said.map(|said| Recorded::written(Role::User, said, &[Tag::TypedUser]));
        let after = summary.map_or(CompactedTo::Missing, |summary| {
            CompactedTo::Replaced(pieces.chain([Recorded::summary(summary)]).collect())
        });
        let size = record.take_as("tokensBefore").map(Tokens);
        self.assembler.compacts(self.trigger.take(), size, after);
    }
}
