//! Recognises equal messages of two requests.

use crate::units::ContentHash;
use crate::{ContentBlock, Message};

/// Hashes of a message, by which two requests show that they hold the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The hash of all that it says, thoughts left out.
    pub whole: ContentHash,
    /// The same without its texts and arguments.
    pub shape: ContentHash,
    /// The hash of all that it says, without the ids of its calls and without a client's notes: a client may
    /// give a call another id, and put other notes behind a result, in a later request.
    pub form: ContentHash,
    /// It asks for tools.
    has_uses: bool,
    /// It asks for tools, or answers such a request.
    has_calls: bool,
}

impl Look {
    /// The hash of all that it says, thoughts left out.
    pub fn bytes(&self) -> &[u8] {
        self.whole.bytes()
    }

    /// Equal for the same message. An answer may look otherwise when it is sent back: the ids of tool calls are its own.
    pub fn key(&self) -> ContentHash {
        if self.has_uses { self.shape } else { self.whole }
    }

    /// Whether the other is the same message.
    pub fn is_like(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// Whether the message asks for tools or holds their results.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Whether a client wrote a text for the model: such notes come and go.
    pub fn is_note(text: &str) -> bool {
        text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
    }

    /// Looks at a message.
    pub fn of(message: &Message) -> Self {
        let mut whole = message.role().name().to_owned();
        let (mut shape, mut form) = (whole.clone(), whole.clone());
        let results = message.tool_results().next().is_some();
        for (block, text) in message.content().iter().zip(message.model_text()) {
            let mut id = String::new();
            let (name, said) = match block {
                ContentBlock::Thinking(_) => continue,
                ContentBlock::Text(text) => ("text".to_owned(), text.trim().to_owned()),
                ContentBlock::ToolUse(tool_use) => {
                    id = tool_use.id.to_string();
                    let name = format!("use {}", tool_use.name);
                    (name, tool_use.input.value().to_string())
                }
                ContentBlock::ToolResult(result) => {
                    id = result.tool_use_id.to_string();
                    ("result".to_owned(), text.to_string())
                }
                ContentBlock::Image(image) => {
                    ("image".to_owned(), image.source.value().to_string())
                }
                ContentBlock::Opaque(opaque) => (opaque.kind.to_string(), text.to_string()),
            };
            let note = matches!(block, ContentBlock::Text(_)) && (results || Self::is_note(&said));
            for part in [&mut whole, &mut shape] {
                part.extend(["\0", &name, " ", &id]);
            }
            whole.extend(["\0", &said]);
            if !note {
                form.extend(["\0", &name, "\0", &said]);
            }
        }
        let uses = message.tool_uses().next().is_some();
        Self {
            whole: ContentHash::of(whole.as_bytes()),
            shape: ContentHash::of(shape.as_bytes()),
            form: ContentHash::of(form.as_bytes()),
            has_uses: uses,
            has_calls: uses || results,
        }
    }
}
