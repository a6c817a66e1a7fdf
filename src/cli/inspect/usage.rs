//! What fills a window: tokens of a prompt by category.

use std::collections::BTreeMap;

use crate::context::{Entry, Origin};
use crate::replay::observe::snapshot::Snapshot;
use crate::session::{ContentBlock, Role, Session, ToolClass, ToolSchema};
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;

/// What a piece of a prompt is, in the order in which usage is listed.
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
        match self {
            Self::Head => "not in the recording".to_owned(),
            Self::System => "system prompt".to_owned(),
            Self::Tools => "tool definitions".to_owned(),
            Self::UserText => "user text".to_owned(),
            Self::AssistantText => "assistant text".to_owned(),
            Self::Thinking => "thinking".to_owned(),
            Self::ToolUses(class) => format!("tool uses: {}", class.name()),
            Self::ToolResults(class) => format!("tool results: {}", class.name()),
            Self::Other => "images and unknown blocks".to_owned(),
            Self::Summaries => "summaries and extracts".to_owned(),
            Self::Authored => "written by the strategy".to_owned(),
        }
    }
}

/// Classes of the session's tools, by the id of their use.
pub(super) type Classes<'a> = BTreeMap<&'a str, ToolClass>;

pub(super) fn classes(session: &Session) -> Classes<'_> {
    let uses = session
        .messages()
        .iter()
        .flat_map(|message| message.tool_uses());
    uses.map(|(_, tool)| (&*tool.id, tool.class)).collect()
}

/// Tokens of the prompt by category, as billed; together they are the prompt, to a rounding of each.
pub(super) fn usage(
    session: &Session,
    look: &Snapshot,
    counts: &CountedTexts,
    classes: &Classes<'_>,
) -> BTreeMap<Category, Tokens> {
    let mut usage: BTreeMap<Category, Tokens> = BTreeMap::new();
    let mut add = |category, tokens: Tokens| {
        if tokens > Tokens::ZERO {
            *usage.entry(category).or_default() += tokens;
        }
    };
    let scale = look.scale;
    add(Category::Head, scale.head);
    let texts_of_tools = session.tools().iter().map(ToolSchema::text);
    let system = session.system().into_iter();
    add(
        Category::System,
        scale.text(system.map(|text| counts.size(text)).sum()),
    );
    add(
        Category::Tools,
        scale.text(texts_of_tools.map(|text| counts.schema(text)).sum()),
    );
    // Each category is rounded once, by itself.
    let mut texts: BTreeMap<Category, Size> = BTreeMap::new();
    for entry in &look.entries {
        add(Category::Thinking, entry.message.hidden_thinking);
        let blocks = entry.message.content().iter().zip(entry.message.blocks());
        for (content, block) in blocks {
            let category = category(entry, content, classes);
            *texts.entry(category).or_default() += counts.block(&block);
        }
    }
    for (category, size) in texts {
        add(category, scale.text(size));
    }
    usage
}

/// Tokens of one block of an entry.
pub(super) fn block_tokens(entry: &Entry, at: usize, counts: &CountedTexts) -> Tokens {
    let block = entry.message.blocks().nth(at);
    block.map_or(Tokens::ZERO, |block| counts.block(&block).tokens)
}

fn category(entry: &Entry, block: &ContentBlock, classes: &Classes<'_>) -> Category {
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
        ContentBlock::ToolResult(result) => Category::ToolResults(
            classes
                .get(&*result.tool_use_id)
                .copied()
                .unwrap_or(ToolClass::Other),
        ),
        ContentBlock::Image(_) | ContentBlock::Opaque(_) => Category::Other,
    }
}
