//! The class of a tool, by its name: one table for the names of all products.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::ToolClass;

/// The class of the tool `name`; [`ToolClass::Other`] where the name is not in the table.
///
/// Case, `_`, `-`, `.` and spaces do not matter: `read_file`, `ReadFile` and `readFile` are one
/// name.
///
/// ```
/// use proctor_sessions::{ToolClass, tool_names::class_of};
///
/// assert_eq!(class_of("MultiEdit"), ToolClass::Edit);
/// assert_eq!(class_of("mcp__github__get_issue"), ToolClass::Mcp);
/// assert_eq!(class_of("frobnicate"), ToolClass::Other);
/// ```
pub fn class_of(name: &str) -> ToolClass {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("mcp__") {
        return ToolClass::Mcp;
    }
    let plain = lower.replace(['_', '-', '.', ' '], "");
    let known = NAMES.iter().find(|(_, names)| names.split_whitespace().any(|name| name == plain));
    known.map_or(ToolClass::Other, |(class, _)| *class)
}

/// Names in lower case and without separators, by class.
static NAMES: LazyLock<BTreeMap<ToolClass, String>> =
    LazyLock::new(|| toml::from_str(include_str!("tool_names.toml")).unwrap_or_default());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_tool_by_any_products_spelling() {
        for (name, class) in [
            ("Read", ToolClass::Read),
            ("read_file", ToolClass::Read),
            ("KillShell", ToolClass::Shell),
            ("container.exec", ToolClass::Shell),
            ("LS", ToolClass::Glob),
            ("google_web_search", ToolClass::WebSearch),
            ("WebFetch", ToolClass::WebFetch),
            ("apply_patch", ToolClass::Edit),
            ("file_editor", ToolClass::Edit),
            ("task_tracker", ToolClass::Todo),
            ("TaskCreate", ToolClass::Todo),
            ("Task", ToolClass::Agent),
            ("mcp__db__query", ToolClass::Mcp),
            ("", ToolClass::Other),
            ("mcpé", ToolClass::Other),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }

    #[test]
    fn the_table_holds_each_name_once_and_in_plain_spelling() {
        let mut all: Vec<&str> = NAMES.values().flat_map(|it| it.split_whitespace()).collect();
        assert!(all.iter().all(|name: &&str| name.bytes().all(|b| b.is_ascii_lowercase())));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
