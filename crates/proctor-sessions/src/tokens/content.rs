//! The counting rule that published comparisons of compaction share: content and nothing around it.

use std::sync::Arc;

use super::{Block, BlockKind, Cl100k, Schemas, TokenCounter};
use crate::units::Tokens;

/// Tokens of cl100k in the system text and, per block, in text, tool name, compact JSON arguments
/// and the content of tool results.
///
/// Nothing is counted for messages as such, for ids, tool definitions, thinking, images and blocks
/// of unknown kind. Compact JSON is written without white space, numbers and escapes in their
/// usual form.
#[derive(Debug, Clone, Copy)]
pub struct Cl100kContent;

impl TokenCounter for Cl100kContent {
    fn name(&self) -> &'static str {
        "cl100k-content"
    }

    fn count(&self, text: &str) -> Tokens {
        Cl100k.count(text)
    }

    fn count_block(
        &self,
        block: &Block<'_>,
        count: &dyn Fn(&Arc<str>) -> Tokens,
        _: Tokens,
    ) -> Tokens {
        match block.kind {
            BlockKind::Text | BlockKind::ToolResult => count(block.text),
            BlockKind::ToolUse { name, input } => count(name) + count(&compact(input)),
            BlockKind::Thinking | BlockKind::Image | BlockKind::Document | BlockKind::Opaque => {
                Tokens::ZERO
            }
        }
    }

    fn schemas(&self) -> Schemas {
        Schemas::LeftOut
    }
}

/// The same value without white space; a text that is not JSON stays as it is.
fn compact(json: &str) -> Arc<str> {
    serde_json::from_str::<serde_json::Value>(json)
        .map_or_else(|_| json.into(), |value| value.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Picture;

    #[test]
    fn a_tool_use_is_its_name_and_its_compact_arguments() {
        let (name, text) = (Arc::from("read_file"), Arc::from("whatever"));
        let count = |kind| {
            let block = Block { kind, text: &text, images: &[Picture::default()] };
            Cl100kContent.count_block(&block, &|text| Cl100k.count(text), Tokens(9))
        };
        let tool_use =
            BlockKind::ToolUse { name: &name, input: "{ \"path\" : \"a.rs\",\n \"limit\": 10 }" };
        let expected = Cl100k.count("read_file") + Cl100k.count(r#"{"path":"a.rs","limit":10}"#);
        assert_eq!(count(tool_use), expected);
        assert_eq!(count(BlockKind::ToolResult), Cl100k.count("whatever"));
        assert_eq!(count(BlockKind::Image), Tokens::ZERO);
        assert_eq!(compact("{ broken").as_ref(), "{ broken");
    }
}
