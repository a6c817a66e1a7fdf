//! Remarks on the rows of a table.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::strategy_summary::Breakage;

/// A remark on a whole row. Files hold its words.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, derive_more::From)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub enum RowMark {
    /// The provider would have refused its prompts, or it ended early; with the reason, where the row is a
    /// strategy's of a comparison.
    Broken(Option<Breakage>),
    /// A setting of a sweep is broken, for this reason.
    BrokenSetting(String),
    /// No cell is recorded yet.
    NoCells,
    /// It changed no session.
    NeverFired,
    /// It could be measured in no session.
    NotMeasurable,
    /// It could not be measured in some sessions.
    NotMeasurableIn {
        /// So many sessions.
        some: usize,
        /// All of them.
        sessions: usize,
    },
    /// It ran in the recorded product's own window.
    OwnWindow {
        /// Prompts over the window of the run.
        over: usize,
        /// All prompts.
        calls: usize,
    },
    /// A remark that decides nothing.
    #[from(String, &str)]
    Note(String),
}

impl RowMark {
    /// Whether the row is never compared.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::BrokenSetting(_))
    }
}

impl fmt::Display for RowMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(None) => f.write_str("broken"),
            Self::Broken(Some(breakage)) => write!(f, "broken ({breakage})"),
            Self::BrokenSetting(why) => write!(f, "broken: {why}"),
            Self::NoCells => f.write_str("no cells yet"),
            Self::NeverFired => f.write_str("never fired"),
            Self::NotMeasurable => f.write_str("not measurable"),
            Self::NotMeasurableIn { some, sessions } => {
                write!(f, "not measurable in {some} of {sessions} sessions")
            }
            Self::OwnWindow { over, calls } => {
                write!(f, "in the product's own window: {over} of {calls} prompts over this one")
            }
            Self::Note(words) => f.write_str(words),
        }
    }
}

impl From<RowMark> for String {
    fn from(mark: RowMark) -> Self {
        mark.to_string()
    }
}
