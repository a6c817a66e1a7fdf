//! Which tools a stage looks at: by name, or by class, so that a preset written for one product
//! works on another's sessions.

use serde::Deserialize;

use crate::session::ToolUse;

/// A list of tools. Names are those of the product; `class:read` names a class.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct ToolList(Vec<String>);

impl ToolList {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the list names this tool; a result without a call belongs to no tool.
    pub(crate) fn name(&self, tool: Option<&ToolUse>) -> bool {
        tool.is_some_and(|tool| {
            self.0.iter().any(|name| match name.strip_prefix("class:") {
                Some(class) => tool.class.name() == class,
                None => *name == *tool.name,
            })
        })
    }

    /// Whether a stage that looks at the tools of the list looks at this one: an empty list allows
    /// all.
    pub(crate) fn allow(&self, tool: Option<&ToolUse>) -> bool {
        self.is_empty() || self.name(tool)
    }
}
