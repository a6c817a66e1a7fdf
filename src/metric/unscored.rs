//! Answers without a score, and why: they count neither as wrong nor as if they had not been asked.

use std::fmt;

use super::prelude::*;
use crate::record::words::{GradeVerdict, Unscored};
use crate::units::many;

/// How many items were asked, and how many of them have no score.
///
/// An item has a score if one of its answers does. Items that rules cannot grade are left out where no
/// judge was named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnscoredItems {
    /// Items that were asked and should have been graded.
    pub asked: usize,
    /// Items without a score, by the reason of their first answer.
    pub unscored: BTreeMap<Unscored, usize>,
    /// The provider's message for the first refused request.
    pub refusal: Option<String>,
}

impl UnscoredItems {
    /// Counts over cells, those of full history and of the empty context included: fidelity rests on them.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a CellRecord>) -> Self {
        let mut found = Self::default();
        for item in cells.into_iter().flat_map(|cell| &cell.probes) {
            let Some(verdict) = item.verdict() else {
                continue;
            };
            let refusal = item.answer.as_ref().and_then(|answer| answer.refusal.as_ref());
            found.refusal = found.refusal.take().or_else(|| refusal.cloned());
            if verdict == GradeVerdict::unscored(Unscored::NeedsJudge) {
                continue;
            }
            found.asked += 1;
            if let GradeVerdict::Unscored { reason } = verdict {
                *found.unscored.entry(reason).or_default() += 1;
            }
        }
        found
    }

    /// Items without a score.
    pub fn items(&self) -> usize {
        self.unscored.values().sum()
    }

    /// Formula: unscored / asked; 0 where nothing was asked. Lower is better.
    pub fn share(&self) -> f64 {
        self.items() as f64 / self.asked.max(1) as f64
    }
}

impl fmt::Display for UnscoredItems {
    /// `3 of 96 answers have no score: 2 empty, 1 refused`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = many(self.asked, "answer has", "answers have");
        write!(f, "{} of {answers} no score", self.items())?;
        for (at, (reason, count)) in self.unscored.iter().enumerate() {
            let why = match reason {
                Unscored::NeedsJudge => "without a judge",
                Unscored::NoAnswer => "empty",
                Unscored::Refused => "declined",
                Unscored::Rejected => "refused by the provider",
                Unscored::JudgeFailed => "without a verdict",
                Unscored::Unparsable => "with a verdict that cannot be read",
                Unscored::Split => "on which judges are split",
                Unscored::JudgeUnfit => "by judges that do not count",
                Unscored::TooLong => "too long for the reader",
            };
            let comma = if at == 0 { ": " } else { ", " };
            write!(f, "{comma}{count} {why}")?;
            if let (Unscored::Rejected, Some(said)) = (reason, &self.refusal) {
                write!(f, " ({said})")?;
            }
        }
        Ok(())
    }
}
