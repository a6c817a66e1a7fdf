//! Tokens of a prompt by category.

use std::collections::BTreeMap;

use crate::context::{Entry, Origin};
use crate::replay::observe::snapshot::Snapshot;
use crate::session::{ContentBlock, Role, Session, ToolClass, ToolSchema};
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;

/// The kind of a piece of a prompt, in the order in which usage is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    Head,
    System,
    Tools,
    UserText,
    AssistantText,
    Thinking,
    ToolUses(ToolClass),
    ToolResults(ToolClass),
    Other,
    Summaries,
    Authored,
}

impl Category {
    pub(super) fn name(self) -> String {
        let name = match self {
            Self::Head => "not in the recording",
            Self::System => "system prompt",
            Self::Tools => "tool definitions",
            Self::UserText => "user text",
            Self::AssistantText => "assistant text",
            Self::Thinking => "thinking",
            Self::ToolUses(class) => return format!("tool uses: {}", class.name()),
            Self::ToolResults(class) => return format!("tool results: {}", class.name()),
            Self::Other => "images and unknown blocks",
            Self::Summaries => "summaries and extracts",
            Self::Authored => "written by the strategy",
        };
        name.to_owned()
    }
}

/// Tokens of the prompt by category, as billed; together they are the prompt, to a rounding of each.
pub(super) fn usage(
    session: &Session,
    snapshot: &Snapshot,
    counts: &CountedTexts,
) -> BTreeMap<Category, Tokens> {
    let uses = session.messages().iter().flat_map(|message| message.tool_uses());
    let classes: BTreeMap<&str, ToolClass> =
        uses.map(|(_, tool)| (&*tool.id, tool.class)).collect();
    let mut sizes: BTreeMap<Category, Size> = BTreeMap::new();
    let mut thinking = Tokens::ZERO;
    for entry in &snapshot.entries {
        thinking += entry.message.details.hidden;
        for (content, block) in entry.message.content().iter().zip(entry.message.blocks()) {
            *sizes.entry(category(entry, content, &classes)).or_default() +=
                counts.block(&block).billed_by(entry.message.details.factor);
        }
    }
    let tools = session.tools().iter().map(ToolSchema::text).map(|text| counts.schema(text)).sum();
    let system = session.system().into_iter().map(|text| counts.size(text)).sum();
    let fixed = [(Category::System, system), (Category::Tools, tools)];
    let billed = [(Category::Head, snapshot.scale.head), (Category::Thinking, thinking)];
    // Each category is rounded once, by itself.
    let counted = fixed.into_iter().chain(sizes);
    let scaled = counted.map(|(category, size)| (category, snapshot.scale.text(size)));
    let mut usage: BTreeMap<Category, Tokens> = BTreeMap::new();
    for (category, tokens) in billed.into_iter().chain(scaled) {
        *usage.entry(category).or_default() += tokens;
    }
    usage.retain(|_, tokens| *tokens > Tokens::ZERO);
    usage
}

/// Tokens of one block of an entry.
pub(super) fn block_tokens(entry: &Entry, at: usize, counts: &CountedTexts) -> Tokens {
    let block = entry.message.blocks().nth(at);
    block.map_or(Tokens::ZERO, |block| counts.block(&block).tokens)
}

fn category(entry: &Entry, block: &ContentBlock, classes: &BTreeMap<&str, ToolClass>) -> Category {
    match &entry.origin {
        Origin::Derived(_) => return Category::Summaries,
        Origin::Authored => return Category::Authored,
        Origin::Verbatim(_) | Origin::Edited { .. } | Origin::Restored(_) => {}
    }
    match block {
        ContentBlock::Text(_) => match entry.message.role() {
            Role::User => Category::UserText,
            Role::Assistant => Category::AssistantText,
        },
        ContentBlock::Thinking(_) => Category::Thinking,
        ContentBlock::ToolUse(tool) => Category::ToolUses(tool.class),
        ContentBlock::ToolResult(result) => {
            let class = classes.get(&*result.tool_use_id).copied();
            Category::ToolResults(class.unwrap_or(ToolClass::Other))
        }
        ContentBlock::Image(_) | ContentBlock::Opaque(_) => Category::Other,
    }
}
