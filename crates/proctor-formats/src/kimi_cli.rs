//! Kimi CLI keeps a session in a folder (`~/.kimi/sessions/*/*/`): the context as the model has it,
//! and a log of what happened.
//!
//! `context.jsonl` holds chat messages, one per line, and records of the product's own beside them,
//! whose roles begin with an underscore. `wire.jsonl` is the log: see `wire`. A folder that holds
//! both is one session: its log, with the system prompt of its context.
//!
//! Rules of the context, beside those every importer shares:
//! - `_system_prompt` is the system prompt, where it was kept. `_usage` counts the tokens of the whole
//!   context and not those of a call, and `_checkpoint` a place to go back to: they are skipped.
//! - When the context is compacted or reverted, the product begins a new file, and the old one is kept
//!   under a numbered name: a file is what is left.

use super::prelude::*;

mod wire;

const SHAPE: ConversationShape = ConversationShape::of_messages("messages");

/// The two files of a session's folder.
const CONTEXT: &str = "context.jsonl";
const LOG: &str = "wire.jsonl";

pub(super) const IMPORTER: Importer = Importer::new("kimi-cli", Detect::By(detect), import)
    .in_folders(|folder| folder.has(CONTEXT) && folder.has(LOG), import_folder);

fn detect(head: &Head) -> bool {
    head.text.starts_with('{') && (head.any(20, "role^_") || wire::detect(head))
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    if file.heads().any(|head| wire::detect(&head)) {
        return wire::sessions(file, None, source);
    }
    conversations::sessions(SHAPE, file, source, |mut conversation, assembler| {
        let mut system = None;
        conversation.messages.retain(|raw| {
            let mut record = Object::read(raw).unwrap_or_default();
            let role = record.take_text("role");
            match role.as_deref().filter(|role| role.starts_with('_')) {
                None => return true,
                Some("_system_prompt") => system = record.take_text("content"),
                Some(role) => assembler.skip(role),
            }
            false
        });
        openai_chat::read(conversation, ChatDialect::Api, assembler);
        assembler.header.system = system.or(assembler.header.system.take());
    })
}

fn import_folder(folder: &Folder, files: &mut SessionFiles, source: &mut Source) -> Imported {
    let context = files.read(&folder.child(CONTEXT))?;
    // The file begins with the system prompt, and what is odd behind it is of no account here.
    let mut values = serde_json::Deserializer::from_str(&context.text).into_iter::<Object<'_>>();
    let first = values.next().and_then(std::result::Result::ok);
    let system = first
        .filter(|record| record.text("role").as_deref() == Some("_system_prompt"))
        .and_then(|mut record| record.take_text("content"));
    let mut log = files.read(&folder.child(LOG))?;
    log.id = files.session_id(folder);
    let sessions = wire::sessions(&log, system, source)?;
    if sessions.is_empty() {
        return import(&context, source);
    }
    Ok(sessions)
}
