//! Is it better? Two strategies on the same sessions, paired probe by probe.
//!
//! A [`Sample`] is what one run left of one strategy, as far as a comparison needs it; it comes from a
//! run's records or from a [`baseline`]. [`judge`](judge::judge) pairs two samples and says, [`Axis`] by axis,
//! what changed and how sure that is. The advice of a run, the [`gate`] and the [`sweep`] conclude from its
//! states.

use crate::stats::multiple::holm;

pub mod advice;
mod axis;
pub mod baseline;
pub mod code;
mod canonical;
mod changes;
pub mod gate;
pub mod judge;
mod pair;
mod words;
pub mod prices;
pub mod sample;
pub mod source;
pub mod sweep;
pub mod prediction;
pub mod tasks;

pub use axis::{Axis, Kind, Margins};
pub use changes::{AxisCoverage, BrokenRule, ChangedProbe, Coverage, NewDeath};
pub(crate) use code::NoteCode;
pub use judge::{AxisFinding, Chance, Findings, JudgingRule, State, Target};
pub(crate) use pair::of_pair;
pub use prices::Repriced;
pub use sample::{ProbeSample, Sample, SessionSample};
pub use source::{ComparedRun, FactText, Mismatch};

/// One line of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictLine {
    /// One sentence or more. It holds names from the run, to be escaped.
    pub text: String,
    /// Its code; `None` where it only adds numbers to another line.
    pub(crate) code: Option<NoteCode>,
}

impl VerdictLine {
    pub(crate) fn new(code: NoteCode, text: impl Into<String>) -> Self {
        let (text, code) = (text.into(), Some(code));
        Self { text, code }
    }

    /// The sentences with the code behind them.
    pub(crate) fn in_full(&self) -> String {
        let text = &self.text;
        self.code.map_or_else(|| text.clone(), |code| code.behind(text))
    }
}

/// Adjusts the p values of each axis over several comparisons, by Holm's steps. With a single one nothing
/// changes.
pub fn adjust(comparisons: &mut [&mut Findings]) {
    if comparisons.len() < 2 {
        return;
    }
    for axis in Axis::ALL {
        let found = comparisons.iter_mut().filter_map(|one| {
            let target = one.chance.target(one.target, axis);
            let found = one.axes.iter_mut().find(|found| found.axis == axis)?;
            Some((found.p()?, found, target))
        });
        let mut found: Vec<_> = found.collect();
        let p_values: Vec<f64> = found.iter().map(|(p, ..)| *p).collect();
        for ((_, found, target), p) in found.iter_mut().zip(holm(&p_values)) {
            found.adjust(p, *target);
        }
    }
}
