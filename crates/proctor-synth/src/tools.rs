//! The tools of the simulated agents, as they are sent with every call.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;

use super::workspace::WorkspaceKind;
use proctor_sessions::{JsonText, ToolClass, ToolSchema};

#[derive(Debug, Default, Deserialize)]
struct SharedTools {
    /// The names of the tools in each workspace.
    at_hand: BTreeMap<WorkspaceKind, Vec<String>>,
    tools: Vec<ToolEntry>,
}

#[derive(Debug, Deserialize)]
struct ToolEntry {
    class: ToolClass,
    definition: Value,
}

static TOOLS: LazyLock<SharedTools> = LazyLock::new(|| {
    let text = include_str!("../families/shared/tools.json");
    serde_json::from_str(text).unwrap_or_default()
});

fn tool(name: &str) -> Option<&'static ToolEntry> {
    TOOLS.tools.iter().find(|tool| tool.definition["name"] == name)
}

/// The class of a tool.
pub(crate) fn class(name: &str) -> ToolClass {
    tool(name).map_or(ToolClass::Other, |tool| tool.class)
}

/// The tools at hand in a workspace; `snip` is for sessions in phases.
pub(crate) fn schemas(workspace: WorkspaceKind, with_snip: bool) -> Vec<ToolSchema> {
    let all = TOOLS.at_hand.get(&workspace).into_iter().flatten();
    let names = all.filter(|name| with_snip || *name != "snip");
    let schema = |name: &String| {
        Some(ToolSchema {
            name: Arc::from(name.as_str()),
            definition: JsonText::of(&tool(name)?.definition),
        })
    };
    names.filter_map(schema).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_that_is_at_hand_is_defined() {
        assert_eq!(schemas(WorkspaceKind::Repository, true).len(), 10);
        assert_eq!(schemas(WorkspaceKind::HelpDesk, true).len(), 13);
    }
}
