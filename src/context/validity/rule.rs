//! The rules themselves. How bad it is to break one is read from the table of `docs/reference/validity.md`,
//! which also says what breaks it and where a provider says so.

use std::fmt;
use std::sync::LazyLock;

pub use crate::record::words::Level;
use crate::session::wire::RuleSet;

/// A rule that a prompt can break, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`docs/reference/validity.md` documents each")]
pub enum Rule {
    OrphanResult,
    UnansweredUse,
    ResultsNotFirst,
    ResultsReordered,
    DuplicateResult,
    DuplicateUse,
    InputNotObject,
    FirstNotUser,
    EmptyContent,
    EmptyText,
    ThinkingEdited,
    ThinkingDropped,
    ThinkingLast,
    CallChanged,
    Prefill,
    UserMessageAltered,
    OverlappingSummaries,
    NotASummary,
    NotSmaller,
    RewrittenTwice,
}

static PAGE: &str = include_str!("../../../docs/reference/validity.md");

/// The rows of the page's table: name, what breaks the rule, and a level for each API.
static ROWS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches(['|', ' ']).split(" | ").collect()).collect()
});

impl Rule {
    fn cell(self, column: usize) -> &'static str {
        ROWS.get(self as usize).and_then(|row| row.get(column)).copied().unwrap_or_default()
    }

    /// Its name in records and reports.
    pub fn name(self) -> &'static str {
        self.cell(0).trim_matches('`')
    }

    /// How bad it is to break it; none where the API takes it.
    pub fn level(self, rules: RuleSet) -> Option<Level> {
        match self.cell(2 + rules as usize).split(' ').next() {
            Some("rejected") => Some(Level::Rejected),
            Some("warning") => Some(Level::Warning),
            _ => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_rules_in_their_order_and_where_each_is_documented() {
        assert_eq!(ROWS.len(), Rule::RewrittenTwice as usize + 1);
        for (name, rule) in [
            ("orphan_result", Rule::OrphanResult),
            ("first_not_user", Rule::FirstNotUser),
            ("thinking_edited", Rule::ThinkingEdited),
            ("not_smaller", Rule::NotSmaller),
        ] {
            assert_eq!(rule.name(), name);
        }
        for row in ROWS.iter() {
            assert_eq!(row.len(), 2 + RuleSet::ALL.len(), "{row:?}");
            for level in &row[2..] {
                // A rejection has a documented source, and a level that is not a finding has none.
                let source = level
                    .split_once(" [")
                    .map(|(_, source)| format!("{}. ", source.trim_end_matches(']')));
                assert_eq!(source.is_none(), matches!(*level, "warning" | "–"), "{row:?}");
                let is_listed = |source: String| PAGE.lines().any(|line| line.starts_with(&source));
                assert!(source.is_none_or(is_listed), "{row:?}");
            }
        }
    }
}
