//! Which tools a stage looks at: by name, or by class, so that a preset written for one product
//! works on another's sessions.

use crate::session::ToolUse;

/// The tools a stage looks at. Names are those of the product; `class:read` names a class.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// Only these; none for all.
    pub only: Vec<String>,
    /// All but these.
    pub except: Vec<String>,
}

impl Tools {
    /// Only these; all, where none are named.
    pub(super) fn only(only: Vec<String>) -> Self {
        let except = Vec::new();
        Self { only, except }
    }

    /// Whether there is no choice to make.
    pub fn are_all(&self) -> bool {
        self.only.is_empty() && self.except.is_empty()
    }

    /// Whether the stage looks at this tool; a result without a call belongs to no tool.
    pub fn include(&self, tool: Option<&ToolUse>) -> bool {
        let names = |list: &[String]| {
            tool.is_some_and(|tool| {
                list.iter().any(|name| match name.strip_prefix("class:") {
                    Some(class) => tool.class.name() == class,
                    None => *name == *tool.name,
                })
            })
        };
        (self.only.is_empty() || names(&self.only)) && !names(&self.except)
    }
}
