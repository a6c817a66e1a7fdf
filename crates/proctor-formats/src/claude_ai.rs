//! Exports of claude.ai: `conversations.json`, a list of conversations with `chat_messages`.
//!
//! Anthropic documents no format. The shape is that of `brandtcormorant/claude-json-schema`, of what
//! `socketteer/Claude-Conversation-Exporter` saves, and of exports in public repositories.
//!
//! Rules of this format, beside those every importer shares:
//! - A message of the assistant's holds a whole turn: each result of a tool in it ends a call.
//! - Messages may form a tree. A conversation is the branch of `current_leaf_message_uuid`, or else of
//!   the last message.
//! - Calls and results of older exports have no ids, and are paired by their order.
//! - The text of an attachment was part of the prompt. Other files are only named, and counted.
//! - There is no bill, no system prompt, and in an export no model.

use super::prelude::*;

pub(super) const IMPORTER: Importer =
    Importer::new("claude-ai", Detect::Item("chat_messages:l"), import);

/// How the parent of a first message begins.
const ROOT: &str = "00000000-0000";

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::exported(file, source, |mut conversation| {
        let messages = conversation.take_list("chat_messages")?;
        let mut reading = ClaudeAiReading::default();
        reading.assembler.header.model = conversation.take_text("model");
        let leaf = conversation.take_text("current_leaf_message_uuid");
        for raw in branch(messages, leaf, &mut reading.assembler) {
            reading.message(raw);
        }
        Some(reading.assembler)
    })
}

/// The messages of the current branch; all of them where they form no whole tree.
fn branch<'a>(all: Vec<&'a RawValue>, leaf: Text, assembler: &mut Assembler) -> Vec<&'a RawValue> {
    let links = all.iter().map(|raw| {
        let mut message = Object::read(raw).unwrap_or_default();
        ["uuid", "parent_message_uuid"].map(|key| message.take_text(key))
    });
    let links: Vec<[Text; 2]> = links.collect();
    let names = links.iter().enumerate();
    let named = names.filter_map(|(at, [name, _])| Some((&**name.as_ref()?, at)));
    let places: BTreeMap<&str, usize> = named.collect();
    let last = all.len().checked_sub(1);
    let end = leaf.and_then(|leaf| places.get(&*leaf).copied()).or(last);
    let mut path = BTreeSet::new();
    climb(end, |at: usize| places.get(links[at][1].as_deref()?).copied(), &mut path);
    let mut parents = path.iter().filter_map(|at: &usize| links[*at][1].as_deref());
    if !parents.any(|parent| parent.starts_with(ROOT)) {
        return all;
    }
    assembler.skip_all(path.len()..all.len(), "message of another branch");
    all.into_iter().enumerate().filter_map(|(at, raw)| path.contains(&at).then_some(raw)).collect()
}

#[derive(Default)]
struct ClaudeAiReading {
    assembler: Assembler,
    /// Calls that were made without an id, and those that are not answered.
    unnamed: usize,
    open: VecDeque<Arc<str>>,
}

impl ClaudeAiReading {
    fn message(&mut self, raw: &RawValue) {
        let mut message = Object::read(raw).unwrap_or_default();
        let time = message.take_time("created_at", &mut self.assembler);
        let sender = message.take_text("sender");
        let parts = message.items("content");
        let text = message.take_words("text").filter(|_| parts.is_empty());
        match sender.as_deref() {
            Some("assistant") => {
                self.turn(&message.take_text("uuid").unwrap_or_default(), parts, text, time);
            }
            Some("human") => {
                let mut said = self.attachments(&mut message);
                said.extend(parts.iter().map(|raw| self.assembler.part(raw, Speaker::User)));
                said.extend(text.map(ContentBlock::Text));
                self.assembler.hear(None, said, time, [Tag::TypedUser]);
            }
            sender => self.assembler.hear_unknown_role("message", sender, raw, time),
        }
    }

    /// A turn of the assistant's: calls, and what the tools answered between them.
    fn turn(&mut self, name: &str, parts: Vec<&RawValue>, text: Text, time: When) {
        let mut said: Blocks = text.map(ContentBlock::Text).into_iter().collect();
        let mut calls = 0;
        for raw in parts {
            let mut part = Object::read(raw).unwrap_or_default();
            match part.take_text("type").as_deref() {
                Some("tool_use") => said.push(self.tool_use(raw, part)),
                Some("tool_result") => {
                    self.call(name, calls, &mut said, time);
                    calls += 1;
                    let result = self.result(part);
                    self.assembler.hear(None, vec![result], None, []);
                }
                Some("token_budget") => self.assembler.skip("token_budget"),
                _ => said.push(self.assembler.part(raw, Speaker::Assistant)),
            }
        }
        self.call(name, calls, &mut said, time);
    }

    /// Ends a call of the model's, if it said anything.
    fn call(&mut self, name: &str, place: usize, said: &mut Blocks, time: When) {
        if !said.is_empty() {
            let id = (!name.is_empty()).then(|| format!("{name}.{place}").into());
            let record = ModelRecord::of(std::mem::take(said), time);
            self.assembler.assistant(None, record.by(id, None, None));
        }
    }

    fn tool_use(&mut self, raw: &RawValue, mut part: Object<'_>) -> ContentBlock {
        let Some(name) = part.take_text("name") else {
            return self.assembler.unread("tool_use", raw);
        };
        let named = part.take_text("id");
        let id = named.unwrap_or_else(|| numbered("unnamed-call", &mut self.unnamed));
        self.open.push_back(id.clone());
        ContentBlock::tool_use(id, name, input(part.take("input")))
    }

    fn result(&mut self, mut part: Object<'_>) -> ContentBlock {
        let named = part.take_text("tool_use_id").or(self.open.front().cloned());
        let id = named.unwrap_or_else(|| "unnamed-result".into());
        self.open.retain(|open| *open != id);
        let told = part.take_blocks("content", Speaker::Tool, &mut self.assembler);
        ContentBlock::tool_result(id, told, part.take_flag("is_error"))
    }

    /// The texts of attached files.
    fn attachments(&mut self, message: &mut Object<'_>) -> Blocks {
        let mut texts = Vec::new();
        for mut file in message.objects("attachments") {
            match file.take_words("extracted_content") {
                Some(text) => texts.push(ContentBlock::Text(text)),
                None => self.assembler.skip("attachment without its text"),
            }
        }
        self.assembler.skip_all(message.items("files"), "file that is only named");
        texts
    }
}
