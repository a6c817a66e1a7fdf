//! Controls: a run whose ceiling, floor or decoys are off measures nothing.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::metric::CellSummary;
use crate::record::Arm;
use crate::record::words::ProbeKind;
use crate::report::display;

/// Whether ceiling, floor and decoys are where they must be.
///
/// Full history holds every value that was planted: survival of exact-valued kinds (`recall`) is
/// 100 % under `full`. An empty context holds none: it is 0 % under `empty`. Values that were never
/// planted are in neither: decoys are 0 % under both. Kinds found by words or paths (`constraint`,
/// `artifact`) are no controls, because a system prompt may well hold some.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(tag = "controls", rename_all = "snake_case")]
pub enum Controls {
    /// They are.
    Passed {
        /// Items that were checked.
        items: usize,
    },
    /// Nothing was planted, or neither control was run yet.
    #[default]
    NotMeasured,
    /// They are not: no number of this run may be believed.
    Failed {
        /// The failed controls, by arm, session and kind.
        failures: Vec<ControlFailure>,
    },
}

/// A failed control.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ControlFailure {
    /// `full` or `empty`.
    pub arm: String,
    /// The session.
    pub session: String,
    /// The kind of items.
    pub kind: ProbeKind,
    /// How many items survived fully.
    pub survived: usize,
    /// How many there are.
    pub items: usize,
    /// Whether all were to survive; otherwise none was.
    pub expected_all: bool,
}

/// A run whose controls are off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run is invalid: {}", sentence(.failures))]
pub struct InvalidRun {
    /// The failed controls.
    pub failures: Vec<ControlFailure>,
}

impl Controls {
    /// Checks the cells of `full` and `empty`.
    pub fn of(cells: &[CellSummary]) -> Self {
        let mut items = 0;
        let mut failures = Vec::new();
        for cell in cells {
            let expectations = match cell.arm {
                Arm::Reference => [(ProbeKind::Recall, true), (ProbeKind::Decoy, false)],
                Arm::Floor => [(ProbeKind::Recall, false), (ProbeKind::Decoy, false)],
                Arm::Strategy => continue,
            };
            for (kind, expected_all) in expectations {
                let score = cell.survival.of_kind(kind);
                items += score.items;
                // The score of an exact value is 0 or 1; anything between fails on both sides.
                let expected = if expected_all { score.weight } else { 0.0 };
                if (score.sum - expected).abs() > 1e-9 {
                    let share = score.mean().unwrap_or(0.0) * score.items as f64;
                    let whole = (1..=score.items).filter(|count| *count as f64 <= share);
                    failures.push(ControlFailure {
                        arm: cell.strategy.clone(),
                        session: cell.session.clone(),
                        kind,
                        survived: whole.count(),
                        items: score.items,
                        expected_all,
                    });
                }
            }
        }
        match (failures.is_empty(), items) {
            (false, _) => Self::Failed { failures },
            (true, 0) => Self::NotMeasured,
            (true, items) => Self::Passed { items },
        }
    }

    /// An error if a control failed.
    pub fn check(&self) -> Result<(), InvalidRun> {
        match self {
            Self::Passed { .. } | Self::NotMeasured => Ok(()),
            Self::Failed { failures } => Err(InvalidRun { failures: failures.clone() }),
        }
    }
}

impl fmt::Display for ControlFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "under `{}`, {} of {} {} items survive in session `{}`, and {} should",
            self.arm,
            self.survived,
            self.items,
            self.kind.name(),
            self.session,
            if self.expected_all { "all" } else { "none" }
        )
    }
}

/// The first failures, and how many more there are.
fn sentence(failures: &[ControlFailure]) -> String {
    const SHOWN: usize = 3;
    let shown = failures.iter().take(SHOWN).map(ToString::to_string);
    let more = failures.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    display::joined(shown.chain(more), "; ")
}
