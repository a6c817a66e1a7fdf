//! Recognises equal messages of two requests.

use crate::units::ContentHash;
use crate::{ContentBlock, Message};

/// The text of a message, and the part of it that remains when its texts change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The hash of all that it says, thoughts left out.
    pub whole: ContentHash,
    /// The same without its texts and arguments.
    pub shape: ContentHash,
    /// It asks for tools.
    has_uses: bool,
}

impl Look {
    /// The hash of all that it says, thoughts left out.
    pub fn bytes(&self) -> &[u8] {
        self.whole.bytes()
    }

    /// Equal for the same message. An answer may look otherwise when it is sent back: the ids of tool calls are its own.
    pub fn key(&self) -> ContentHash {
        if self.has_uses {
            self.shape
        } else {
            self.whole
        }
    }

    /// Whether the other is the same message.
    pub fn is_like(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// Looks at a message.
    pub fn of(message: &Message) -> Self {
        let mut whole = message.role().name().to_owned();
        let mut shape = whole.clone();
        for (block, text) in message.content().iter().zip(message.model_text()) {
            let (name, said) = match block {
                ContentBlock::Thinking(_) => continue,
                ContentBlock::Text(text) => ("text".to_owned(), text.trim().to_owned()),
                ContentBlock::ToolUse(tool_use) => {
                    let name = format!("use {} {}", tool_use.id, tool_use.name);
                    (name, tool_use.input.value().to_string())
                }
                ContentBlock::ToolResult(result) => {
                    (format!("result {}", result.tool_use_id), text.to_string())
                }
                ContentBlock::Image(image) => {
                    ("image".to_owned(), image.source.value().to_string())
                }
                ContentBlock::Opaque(opaque) => (opaque.kind.to_string(), text.to_string()),
            };
            for part in [&mut whole, &mut shape] {
                part.push('\0');
                part.push_str(&name);
            }
            whole.push('\0');
            whole.push_str(&said);
        }
        Self {
            whole: ContentHash::of(whole.as_bytes()),
            shape: ContentHash::of(shape.as_bytes()),
            has_uses: message.tool_uses().next().is_some(),
        }
    }
}
