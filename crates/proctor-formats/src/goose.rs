//! goose kept a session as a header and one message per line; newer versions export it as one
//! object with its `conversation`.
//!
//! Rules of this format, beside those every importer shares:
//! - Requests and responses of tools carry their value or their error, with a `status`.
//! - Texts for the user alone do not belong to the conversation: notices, requests for a
//!   confirmation, texts whose `audience` is the user.
//! - A compaction hides earlier messages from the agent (`agentVisible`), and writes messages that
//!   the user does not see (`userVisible`): a summary, and the agent's texts beside it. Who
//!   sees what is recorded as it was at the end; messages that the user does not see are taken to
//!   have been written at their places, and what was hidden by then as hidden with them.

use super::prelude::*;

#[cfg(feature = "sqlite")]
pub(super) mod database;

/// The shapes of messages, exports and headers.
const SHAPES: &str = "role created content | \
     working_dir message_count,extension_data,conversation | description message_count total_tokens";

pub(super) const IMPORTER: Importer =
    Importer::new("goose", Detect::Any(super::FOREIGN + 1, SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut reading = GooseReading::default();
    for (at, raw) in file.raw_lines(source)?.into_iter().enumerate() {
        let mut object = Object::read(raw).unwrap_or_default();
        let mut keys = ["role", "created", "content"].iter();
        if keys.all(|key| object.has(key)) {
            reading.message(raw, None);
        } else if let Some(messages) = object.take_list("conversation") {
            reading.header(object);
            for raw in messages {
                reading.message(raw, None);
            }
        } else if at == 0 || object.has("working_dir") {
            reading.header(object);
            reading.assembler.skip("header");
        } else {
            reading.assembler.hear_unknown("record", "without a message", raw, None);
        }
    }
    reading.compacted();
    reading.assembler.session(file.id.clone(), &file.path)
}

/// A piece of the context: a message of the session, or one that a compaction wrote.
enum GoosePiece {
    Said(Arc<str>),
    Written(Arc<Message>),
}

/// One session, growing message by message.
#[derive(Default)]
struct GooseReading {
    assembler: Assembler,
    /// Everything that was said or written, and whether the agent still sees it at the end.
    pieces: Vec<(GoosePiece, bool)>,
    /// Messages that a compaction wrote, until one follows that the user sees too.
    written: Vec<Arc<Message>>,
}

impl GooseReading {
    /// Reads the keys beside the messages.
    fn header(&mut self, mut header: Object<'_>) {
        if let Some(mut config) = header.take_object("model_config") {
            self.assembler.header.model = config.take_text("model_name");
        }
    }

    /// Reads a message, with what its call was billed where that is known.
    fn message(&mut self, raw: &RawValue, usage: Option<Usage>) {
        let mut object = Object::read(raw).unwrap_or_default();
        let Some(role) = object.take_as("role") else {
            return keep_unread("of unknown role", raw, &mut self.assembler);
        };
        let said = blocks(object.take("content"), role, &mut self.assembler);
        let timestamp = object.take_time("created", &mut self.assembler);
        let id = object.take_text("id");
        // Without metadata everybody sees a message.
        let mut metadata = object.inner("metadata");
        let [to_user, to_agent] =
            ["userVisible", "agentVisible"].map(|key| !metadata.take_denial(key));
        if said.is_empty() {
            return self.assembler.skip("message for the user alone");
        }
        if !to_user {
            let tag = if self.written.is_empty() { Tag::CompactSummary } else { Tag::Meta };
            let message = Arc::new(Message::new(role, said).with_tags([tag]));
            self.written.push(message.clone());
            return self.pieces.push((GoosePiece::Written(message), to_agent));
        }
        self.compacted();
        let name: Arc<str> = format!("message {}", self.pieces.len()).into();
        if role == Role::User {
            let tags = speaker_of(&said);
            self.assembler.hear(Some(&name), said, timestamp, tags);
        } else {
            self.assembler
                .assistant(Some(&name), ModelRecord::of(said, timestamp).by(id, None, usage));
        }
        self.pieces.push((GoosePiece::Said(name), to_agent));
    }

    /// Ends a compaction whose messages were collected.
    fn compacted(&mut self) {
        let written = std::mem::take(&mut self.written).len();
        if written == 0 {
            return;
        }
        self.assembler.flush();
        let mut after: Vec<Recorded> = Vec::new();
        let before = self.pieces.len() - written;
        for (place, (piece, is_visible)) in self.pieces.iter().enumerate() {
            match piece {
                // The model saw the messages of this compaction, even if they are hidden later.
                GoosePiece::Written(message) if *is_visible || place >= before => {
                    after.push(Recorded::Written(message.clone()));
                }
                GoosePiece::Said(name) if *is_visible => {
                    if let Some(message) = self.assembler.message_of(name) {
                        Recorded::keep_once(message, &mut after);
                    }
                }
                GoosePiece::Written(_) | GoosePiece::Said(_) => {}
            }
        }
        self.assembler.compacts(None, None, CompactedTo::Replaced(after));
    }
}

/// Parts that are shown to the user, or ask something of the user.
const FOR_THE_USER: &str = "toolConfirmationRequest systemNotification contextLengthExceeded \
     summarizationRequested conversationCompacted actionRequired";

/// The blocks of a message's `content` that the agent sees.
fn blocks(content: Option<&RawValue>, role: Role, assembler: &mut Assembler) -> Blocks {
    let Some(raw) = content else {
        return Vec::new();
    };
    let Some(items) = items(raw) else {
        return vec![assembler.unread_part("part", "content", raw)];
    };
    items.into_iter().filter_map(|raw| part(raw, role, assembler)).collect()
}

fn part(raw: &RawValue, role: Role, assembler: &mut Assembler) -> Option<ContentBlock> {
    let mut part = Object::read(raw).unwrap_or_default();
    let kind = part.take_text("type").unwrap_or_else(|| "untyped".into());
    let read = match (&*kind, role) {
        ("text", _) => {
            let text = part.take_text("text")?;
            if text.is_empty() || is_for_the_user(&mut part) {
                assembler.skip("text that the model was not shown");
                return None;
            }
            Some(ContentBlock::Text(text))
        }
        ("image", _) => images::attached(&mut part),
        ("thinking", Role::Assistant) => thinking(&mut part, "thinking"),
        ("reasoning", Role::Assistant) => thinking(&mut part, "text"),
        ("redactedThinking", _) => Some(content::kept("redacted_thinking", raw)),
        ("toolRequest" | "frontendToolRequest", Role::Assistant) => request(part, assembler),
        ("toolResponse", Role::User) => response(part, assembler),
        (known, _) if is_one_of(FOR_THE_USER, known) => {
            assembler.skip(&format!("part {known}"));
            return None;
        }
        _ => None,
    };
    Some(read.unwrap_or_else(|| assembler.unread_part("part", &kind, raw)))
}

/// Whether the audience of a part is the user alone.
fn is_for_the_user(part: &mut Object<'_>) -> bool {
    let audience = part.inner("annotations").items("audience");
    !audience.is_empty() && audience.iter().all(|one| one.get() == "\"user\"")
}

fn thinking(part: &mut Object<'_>, key: &str) -> Option<ContentBlock> {
    Some(ContentBlock::thinking(part.take_text(key)?, part.take_text("signature")))
}

fn request(mut part: Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let id = part.take_text("id")?;
    let raw = part.take("toolCall")?;
    let value = Object::read(raw).and_then(|mut call| call.take_object("value"));
    let (name, input) = if let Some(mut value) = value {
        (value.take_text("name")?, input(value.take("arguments")))
    } else {
        assembler.warn("a tool request could not be read by the product");
        ("unreadable".into(), JsonText::from(raw))
    };
    Some(ContentBlock::ToolUse(Box::new(ToolUse { id, class: class(&name), name, input })))
}

/// Extensions that come with the product; the tools of all others are those of MCP servers.
const BUNDLED: &str = "developer computercontroller memory platform subagent todo";

/// The class of a tool, by its name after that of its extension, as in `developer__shell`.
fn class(name: &str) -> ToolClass {
    match name.split_once("__") {
        Some((extension, tool)) if is_one_of(BUNDLED, extension) => class_of(tool),
        Some(_) => ToolClass::Mcp,
        None => class_of(name),
    }
}

fn response(mut part: Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let id = part.take_text("id")?;
    let mut result = part.take_object("toolResult")?;
    let mut is_error = result.take_text("status").as_deref() == Some("error");
    let mut content = Vec::new();
    if let Some(value) = result.take("value") {
        // Newer versions say beside the parts whether the tool failed.
        let parts = match Object::read(value) {
            Some(mut value) => {
                is_error |= value.take_flag("isError");
                value.take_list("content")
            }
            None => items(value),
        };
        content.extend(parts?.into_iter().filter_map(|raw| told(raw, assembler)));
    } else {
        content.extend(result.take_text("error").map(ContentBlock::Text));
    }
    Some(ContentBlock::tool_result(id, content, is_error))
}

/// A part of what a tool answered.
fn told(raw: &RawValue, assembler: &mut Assembler) -> Option<ContentBlock> {
    let mut part = Object::read(raw).unwrap_or_default();
    if is_for_the_user(&mut part) {
        assembler.skip("text that the model was not shown");
        return None;
    }
    let kind: Text = part.take_text("type");
    let read = match kind.as_deref() {
        Some("text") => part.take_text("text").map(ContentBlock::Text),
        Some("image") => images::attached(&mut part),
        Some("resource") => part.inner("resource").take_text("text").map(ContentBlock::Text),
        _ => None,
    };
    let kind = format!("of a response {}", kind.as_deref().unwrap_or("untyped"));
    Some(read.unwrap_or_else(|| assembler.unread_part("part", &kind, raw)))
}
