//! pi keeps one entry per line: a `session` header, then messages, changes of model and
//! compactions.
//!
//! Rules of this format, beside those every importer shares:
//! - Newer versions give entries an `id` and a `parentId`: a tree, of which the branch that the
//!   file ends in is the conversation. Older ones are a list.
//! - A compaction keeps its summary, and says which entry is the first that stays: by its place in
//!   the file (older, the header is entry 0), by its id, or by writing what stays once more
//!   (`retainedTail`).
//! - Where the person went is an entry too (`leaf`), for the file may end there.
//! - A command that the user ran is shown to the model as a message of the user's.
//! - Usage counts the cached tokens apart.
//! - The newest versions write the system prompt and the tools as a message.
//!
//! `omp` (oh-my-pi) writes the same with a title in front and more bookkeeping: can1357/oh-my-pi,
//! `packages/coding-agent/src/session/`; November 2026.

use super::prelude::*;

/// Entries that do not belong to the conversation; oh-my-pi has more of them.
const BOOKKEEPING: &str = "session model_change thinking_level_change label session_info \
     active_tools_change leaf custom title title_change session_init mode_change \
     service_tier_change ttsr_injection mcp_tool_selection credential_pin";

/// The shapes of the header, in front of which oh-my-pi writes the title, and of a message where the header is cut off.
const SHAPES: &str = "type=session id:s cwd:s | \
     type=message id:s parentId:s timestamp:s message/role:s message/timestamp:n";

pub(super) const IMPORTER: Importer = Importer::new("pi", Detect::Any(2, SHAPES), import);

pub(super) fn import(file: &SourceText, source: &mut Source) -> Imported {
    let sessions = file.sessions(source, |raw| of_type(raw, "session")?.take_text("id"))?;
    let each = sessions.into_iter().map(|entries| conversation(entries, source));
    let conversations: Vec<Assembler> = each.collect();
    sessions_of(conversations, source, file)
}

/// The conversation of one session's entries.
fn conversation(raws: Vec<&RawValue>, source: &mut Source) -> Assembler {
    let read = raws.into_iter().filter_map(|raw| Some((lenient::record(raw, source)?, raw)));
    let entries: Vec<WholeEntry<'_>> = read.collect();
    let mut reading = PiReading::default();
    let kept = branch(&entries);
    for (at, (entry, raw)) in entries.into_iter().enumerate() {
        match &kept {
            // An entry without a name is in no branch, and in all of them.
            Some(kept)
                if !kept.contains(&at) && (entry.id.is_some() || entry.parent_id.is_some()) =>
            {
                reading.assembler.skip("entry of an abandoned branch");
            }
            _ => reading.entry(at, entry, raw),
        }
    }
    reading.assembler
}

/// One line of a file.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a", rename_all = "camelCase")]
struct PiEntry<'a> {
    r#type: Text,
    id: Text,
    parent_id: Text,
    timestamp: Text,
    model_id: Text,
    system_prompt: Text,
    message: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    summary: Text,
    first_kept_entry_index: Option<usize>,
    first_kept_entry_id: Text,
    target_id: Text,
    /// The messages that stayed, written once more: newer compactions name no entry.
    retained_tail: Option<Vec<&'a RawValue>>,
    tokens_before: Option<u64>,
}

/// An entry, and as it was written.
type WholeEntry<'a> = (PiEntry<'a>, &'a RawValue);

impl PiEntry<'_> {
    fn is(&self, kind: &str) -> bool {
        self.r#type.as_deref() == Some(kind)
    }
}

/// The entries of the branch that the file ends in; none where entries have no parents.
fn branch(entries: &[WholeEntry<'_>]) -> Option<BTreeSet<usize>> {
    if entries.iter().all(|(entry, _)| entry.parent_id.is_none()) {
        return None;
    }
    // The person may have gone back to the beginning: then the last entry has no parent either.
    let last = entries.iter().rposition(|(entry, _)| entry.id.is_some() && !entry.is("session"))?;
    // The header's name is the session's.
    let header = entries.iter().position(|(entry, _)| entry.is("session"));
    let numbered = entries.iter().enumerate();
    let names = numbered.map(|(at, (entry, _))| entry.id.as_deref().filter(|_| Some(at) > header));
    let mut kept = branch_of(names, Some(last), |at| {
        let (entry, _) = &entries[at];
        // Where the person went, if it is the last thing that was done.
        let target = entry.target_id.as_deref().filter(|_| entry.is("leaf"));
        match target.or(entry.parent_id.as_deref()) {
            None => Parent::None,
            named => Parent::Named(named),
        }
    });
    kept.extend(header);
    Some(kept)
}

#[derive(Default)]
struct PiReading {
    assembler: Assembler,
    model: Text,
    /// The entries that became messages, in order, by their names.
    said: Vec<(usize, Arc<str>)>,
    by_id: BTreeMap<Arc<str>, usize>,
    /// The messages as they were written, by their entries: it identifies the entries that stayed.
    written: Vec<(ContentHash, usize)>,
}

/// One message of the conversation.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a", rename_all = "camelCase")]
struct PiMessage<'a> {
    role: Text,
    content: Option<&'a RawValue>,
    model: Text,
    usage: Option<&'a RawValue>,
    tool_call_id: Text,
    is_error: Option<bool>,
    command: Text,
    output: Text,
    exclude_from_context: Option<bool>,
    /// Of the system prompt, by their names.
    sections: Option<serde_json::Map<String, Value>>,
    tools_added: Option<Vec<&'a RawValue>>,
}

impl PiReading {
    fn entry(&mut self, at: usize, entry: PiEntry<'_>, raw: &RawValue) {
        let time = self.assembler.time(entry.timestamp.as_deref());
        if let Some(id) = &entry.id {
            self.by_id.entry(id.clone()).or_insert(at);
        }
        match (entry.r#type.as_deref().unwrap_or("without type"), entry.message) {
            ("message", Some(message)) => {
                self.written.push((ContentHash::of(message.get().as_bytes()), at));
                self.message(at, message, time);
            }
            ("custom_message", _) if entry.content.is_some() => {
                let blocks = self.assembler.blocks(entry.content, Speaker::User);
                self.user(at, blocks, time, [Tag::Meta]);
            }
            ("compaction", _) => self.compaction(entry),
            ("branch_summary", _) => {
                let blocks = entry.summary.map(ContentBlock::Text).into_iter().collect();
                self.user(at, blocks, time, [Tag::Meta]);
            }
            (known, _) if is_one_of(BOOKKEEPING, known) => {
                self.assembler.skip(known);
                let system = &mut self.assembler.header.system;
                *system = system.take().or(entry.system_prompt);
                self.model = entry.model_id.or(self.model.take());
            }
            (other, _) => {
                let kept = unknown_record("entry", other, raw, &mut self.assembler.source);
                if let Some(kept) = kept {
                    self.user(at, vec![kept], time, [Tag::Meta]);
                }
            }
        }
    }

    fn message(&mut self, at: usize, raw: &RawValue, time: When) {
        let source = &mut self.assembler.source;
        let Some(said) = lenient::object::<PiMessage<'_>>(raw.get(), source) else {
            let block = counted("malformed message", raw, &mut self.assembler);
            return self.user(at, vec![block], time, [Tag::Meta]);
        };
        let assembler = &mut self.assembler;
        let (blocks, tag) = match said.role.as_deref() {
            Some("user") => (assembler.blocks(said.content, Speaker::User), Some(Tag::TypedUser)),
            // An extension adds these, or the product.
            Some("custom" | "hookMessage" | "developer") => {
                (assembler.blocks(said.content, Speaker::User), Some(Tag::Meta))
            }
            Some("assistant") => {
                let blocks = assembler.blocks(said.content, Speaker::Assistant);
                let usage = assembler.usage(said.usage, CachedTokens::Apart).and_then(unless_zero);
                let name = self.name(at, &blocks);
                let model = said.model.or_else(|| self.model.clone());
                let record = ModelRecord::of(blocks, time).by(None, model, usage);
                return self.assembler.assistant(Some(&name), record);
            }
            Some("system") => {
                assembler.skip("system prompt");
                let sections = said.sections.iter().flat_map(serde_json::Map::values);
                let sections: Vec<&str> = sections.filter_map(Value::as_str).collect();
                if assembler.header.system.is_none() && !sections.is_empty() {
                    assembler.header.system = Some(sections.join("\n\n").into());
                }
                for tool in said.tools_added.into_iter().flatten() {
                    assembler.define_tool(tool);
                }
                return;
            }
            Some("toolResult") => {
                let content = assembler.blocks(said.content, Speaker::User);
                let block = match said.tool_call_id {
                    Some(id) => ContentBlock::tool_result(id, content, said.is_error == Some(true)),
                    None => counted("tool result without a call", raw, assembler),
                };
                (vec![block], None)
            }
            Some("bashExecution") if said.exclude_from_context == Some(true) => {
                return assembler.skip("command that the model was not shown");
            }
            Some("bashExecution") => {
                let command = said.command.unwrap_or_default();
                let output = said.output.unwrap_or_default();
                let text = format!("$ {command}\n{output}");
                (vec![ContentBlock::Text(text.into())], Some(Tag::Meta))
            }
            _ => (vec![counted("message of unknown role", raw, assembler)], Some(Tag::Meta)),
        };
        self.user(at, blocks, time, tag);
    }

    fn user(&mut self, at: usize, blocks: Blocks, time: When, tags: impl IntoIterator<Item = Tag>) {
        let name = self.name(at, &blocks);
        self.assembler.hear(Some(&name), blocks, time, tags);
    }

    /// The name of an entry, which says these blocks.
    fn name(&mut self, at: usize, blocks: &[ContentBlock]) -> Arc<str> {
        let name: Arc<str> = format!("entry {at}").into();
        self.said.extend((!blocks.is_empty()).then(|| (at, name.clone())));
        name
    }

    /// The entry from which on all messages are those of a retained tail, word for word.
    fn first_of(&self, tail: &[&RawValue]) -> Option<usize> {
        let start = self.written.len().checked_sub(tail.len())?;
        let own = self.written.get(start..)?;
        let mut pairs = own.iter().zip(tail);
        let equal = pairs.all(|((hash, _), raw)| *hash == ContentHash::of(raw.get().as_bytes()));
        own.first().filter(|_| equal).map(|(_, at)| *at)
    }

    /// The summary, and the messages from the first kept entry on.
    fn compaction(&mut self, entry: PiEntry<'_>) {
        self.assembler.flush();
        let tail = entry.retained_tail.unwrap_or_default();
        let first = match (entry.first_kept_entry_id, entry.first_kept_entry_index) {
            _ if !tail.is_empty() => self.first_of(&tail),
            (Some(id), _) => self.by_id.get(&id).copied(),
            (None, index) => index,
        };
        // They are in the order of the file.
        let place = first.map(|first| self.said.partition_point(|(at, _)| *at < first));
        let said = place.and_then(|place| self.said.get(place));
        let kept = said.and_then(|(_, name)| self.assembler.message_of(name));
        if first.is_some() && kept.is_none() {
            self.assembler.warn("a compaction kept an entry that is not in the file");
        }
        let (before, has_summary) = (entry.tokens_before.map(Tokens), entry.summary.is_some());
        let compaction = self.assembler.summarizes(None, before, entry.summary, kept);
        if first.is_none() && has_summary {
            for message in rewritten(&tail) {
                self.assembler.compacted_to(compaction, Recorded::Written(message));
            }
        }
    }
}

/// The messages of a retained tail that is not the end of the history as it was: some were edited, or
/// what was between them is gone.
fn rewritten(tail: &[&RawValue]) -> Vec<Arc<Message>> {
    let mut reading = PiReading::default();
    for raw in tail {
        reading.message(0, raw, None);
    }
    reading.assembler.messages()
}
