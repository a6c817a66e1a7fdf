//! Cline and Roo keep a task's conversation as a list of Anthropic's messages with a few keys
//! more; newer versions of Cline as an object with `system_prompt` and `messages`.
//!
//! Rules of this format, beside those every importer shares:
//! - Where the agent was given no tools, calls are in the model's text and results in the user's,
//!   which are not typed: see `tags`. A person's typed text is in tags such as `<task>`.
//! - Cline notes in what it showed the user which messages it left out of the context from then on.
//! - Roo never deletes: what was summarised names its summary (`condenseParent`), what was cut off
//!   names its marker (`truncationParent`). Summaries and markers are where they take effect in
//!   the list, which is not when they were written: see `hidden`.
//! - The newer versions' input of a call includes the cached tokens. The older ones keep usage, and
//!   when a compaction happened, in what they showed the user: a file of its own in the task's
//!   folder.

use super::prelude::*;
use hidden::HiddenMessages;
use shown::TaskRecords;
use std::ffi::OsStr;
use tags::Calls;

mod hidden;
mod shown;
mod tags;

/// The conversation in a task's folder, and what the user was shown.
const HISTORY: &str = "api_conversation_history.json";
const SHOWN: &str = "ui_messages.json";

/// How the newer versions name the conversation in a session's folder.
const MESSAGES: &str = ".messages.json";

/// Tags around what a person typed, where results are text too.
const TYPED: &str = "<task> <feedback> <answer> <user_message> <user_feedback>";

pub(super) const IMPORTER: Importer = Importer::new("cline", Detect::By(detect), import)
    .with_folders(|folder| conversation(folder).is_some(), folder_of, import_folder);

fn detect(head: &Head) -> bool {
    if head.text.starts_with('[') {
        let mut marks = ["\"ts\":", "\"isSummary\":", "<environment_details>"].iter();
        let mut keys = ["\"role\"", "\"content\""].iter();
        return keys.all(|key| head.text.contains(key)) && marks.any(|key| head.text.contains(key));
    }
    head.is("updated_at agent sessionId | messages/0/ts messages/0/metrics,messages/0/modelInfo | \
         messages/1/ts messages/1/metrics,messages/1/modelInfo")
}

fn import(file: &SourceText, source: &mut Source) -> Imported {
    task(file, source, None, &TaskRecords::default())
}

fn folder_of(path: &Path) -> Option<Folder> {
    let parent = path.parent().filter(|_| path.ends_with(HISTORY))?;
    // A path of one part is in the current folder.
    let beside = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Folder::open(beside).ok().filter(|folder| folder.has(SHOWN))
}

fn import_folder(folder: &Folder, files: &mut SessionFiles, source: &mut Source) -> Imported {
    let Some(name) = conversation(folder) else {
        return Err(ImportError::Directory(folder.path().to_owned()));
    };
    let shown = if folder.has(SHOWN) {
        TaskRecords::read(&folder.child(SHOWN))?
    } else {
        TaskRecords::default()
    };
    task(&files.read(&folder.child(name))?, source, folder.path().file_name(), &shown)
}

/// The file in a folder that holds a conversation, if the folder is one task.
fn conversation(folder: &Folder) -> Option<&str> {
    if folder.has(HISTORY) {
        return Some(HISTORY);
    }
    let mut found = folder.names().iter().map(String::as_str).filter(|name: &&str| {
        let id = name.strip_suffix(MESSAGES);
        id.is_some_and(|id| folder.has(&format!("{id}.json")))
    });
    let name = found.next()?;
    found.next().is_none().then_some(name)
}

/// Reads a task; one in a folder has the folder's name.
fn task(
    file: &SourceText,
    source: &mut Source,
    folder: Option<&OsStr>,
    shown: &TaskRecords,
) -> Imported {
    let mut assembler = Assembler::default();
    for value in file.values(source)? {
        let raw: &RawValue = value.parse()?;
        let messages = match Object::read(raw) {
            Some(mut object) => {
                assembler.header.system = object.take_text("system_prompt");
                let messages = object.take_list("messages");
                messages.ok_or_else(|| value.error("missing key `messages`"))?
            }
            None => value.parse()?,
        };
        read(&messages, shown, &mut assembler);
    }
    let hash = file.id.rsplit('-').next().unwrap_or_default();
    let id = match folder {
        Some(name) => format!("{}-{hash}", to_valid_id(&name.to_string_lossy(), 60)),
        None => file.id.clone(),
    };
    assembler.session(id, &file.path)
}

/// Reads the messages of one task.
fn read(messages: &[&RawValue], shown: &TaskRecords, assembler: &mut Assembler) {
    let mut hidden = HiddenMessages::of(messages, shown);
    let usages = shown.usages(&hidden.marks, assembler);
    let mut calls = Calls::default();
    for (at, raw) in messages.iter().enumerate() {
        hidden.take_effect(at, assembler);
        let mut object = Object::read(raw).unwrap_or_default();
        if hidden.marks[at].is_written() {
            hidden.write(at, &mut object, assembler);
            continue;
        }
        message(raw, object, &hidden::name(at), usages.get(&at).copied(), &mut calls, assembler);
    }
    hidden.take_effect(messages.len(), assembler);
}

fn message(
    raw: &RawValue,
    mut object: Object<'_>,
    name: &Arc<str>,
    shown: Option<Usage>,
    calls: &mut Calls,
    assembler: &mut Assembler,
) {
    let timestamp = object.take_time("ts", assembler);
    let Some(role) = object.take_as("role") else {
        // Proof of reasoning that only the provider can read.
        if object.take_text("type").as_deref() == Some("reasoning") {
            return assembler.skip("encrypted reasoning");
        }
        return keep_unread("of unknown role", raw, assembler);
    };
    let mut blocks = blocks_of(object.take("content"), role, assembler);
    if role == Role::User {
        let author = speaker_of(&blocks);
        calls.answer(&mut blocks);
        let answers = blocks.iter().any(ContentBlock::is_result);
        let tag = author.filter(|tag| !answers || *tag != Tag::Meta);
        return assembler.hear(Some(name), blocks, timestamp, tag);
    }
    calls.call(&mut blocks);
    let model = object.inner("modelInfo").first_text(&["id", "modelId"]);
    let own = object.take("metrics").filter(|_| shown.is_none());
    let usage = shown.or_else(|| usage_of(own?, assembler));
    let record = ModelRecord::of(blocks, timestamp).by(object.take_text("id"), model, usage);
    assembler.assistant(Some(name), record);
}

/// Who wrote a message of the user's: a person, or the product with what came of a call.
fn speaker_of(blocks: &[ContentBlock]) -> Option<Tag> {
    if texts(blocks).any(|text| TYPED.split(' ').any(|tag| text.contains(tag))) {
        return Some(Tag::TypedUser);
    }
    let first = texts(blocks).next();
    speaker(blocks, |_| first.is_some_and(|first| first.starts_with('[')))
}

/// The input includes what was read from the cache and written to it.
fn usage_of(raw: &RawValue, assembler: &mut Assembler) -> Option<Usage> {
    let metrics = value(raw);
    if metrics.get("tokens").is_some() {
        assembler.skip("usage that does not tell what was read from the cache");
        return None;
    }
    unless_zero(usage_in(&metrics, CachedTokens::Within, &mut assembler.source))
}

/// The blocks of a message's `content`: a text, or a list.
fn blocks_of(content: Option<&RawValue>, role: Role, assembler: &mut Assembler) -> Blocks {
    let speaker: Speaker = role.into();
    let source = &mut assembler.source;
    let mut blocks = content::blocks_by(content, speaker, source, |raw, source| {
        own(raw).unwrap_or_else(|| content::part(raw, speaker, source))
    });
    blocks.retain(|block| !matches!(block, ContentBlock::Text(text) if text.is_empty()));
    blocks
}

/// A block of a kind of their own; none if it is Anthropic's.
fn own(raw: &RawValue) -> Option<ContentBlock> {
    let mut block = Object::read(raw)?;
    match &*block.take_text("type")? {
        // A file that was attached: its path, and its content.
        "file" => {
            let (path, text) = (block.take_text("path")?, block.take_text("content")?);
            Some(ContentBlock::Text(format!("{path}\n{text}").into()))
        }

        "tool_result" => {
            let id = block.take_text("tool_use_id")?;
            let content = block.take("content")?;
            let rows = items(content)?;
            let mut objects = rows.iter().filter_map(|raw| Object::read(raw));
            // Newer versions answer in rows of their own, which the model is sent as JSON.
            if rows.is_empty() || objects.any(|object| object.text("type").is_some()) {
                return None;
            }
            let content = vec![ContentBlock::Text(content.get().into())];
            Some(ContentBlock::tool_result(id, content, block.take_flag("is_error")))
        }
        _ => None,
    }
}
