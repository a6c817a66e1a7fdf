//! How far simulated costs are from the bill: what a report says beside its dollars.

use schemars::JsonSchema;

use crate::metric::prelude::*;
use crate::record::Arm;
use crate::units::median;

/// Simulated over billed input cost of the recordings that say what was billed.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct SimulatedCost {
    /// Of full history, up to the first recorded compaction: of prompts that were only appended to.
    #[schemars(required)]
    pub unedited: Option<CostRatio>,
    /// Of the recorded context, from the first recorded compaction on: of prompts that a product edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<CostRatio>,
}

/// Simulated over billed input cost, over sessions.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct CostRatio {
    /// The sessions.
    pub sessions: usize,
    /// Their median.
    pub median: f64,
    /// Their 10th percentile.
    pub p10: f64,
    /// Their 90th percentile.
    pub p90: f64,
}

impl SimulatedCost {
    /// From the records of a run; `None` where no session says what was billed.
    pub fn of<'a>(cells: impl Iterator<Item = &'a CellRecord>) -> Option<Self> {
        let (mut unedited, mut edited) = (Vec::new(), Vec::new());
        for cell in cells.filter(|cell| cell.repeat == 0) {
            let ratios = match cell.arm {
                Arm::Reference => &mut unedited,
                Arm::Strategy | Arm::Floor => &mut edited,
            };
            ratios.extend(cell.simulated_cost());
        }
        let [unedited, edited] = [unedited, edited].map(CostRatio::of);
        (unedited.is_some() || edited.is_some()).then_some(Self { unedited, edited })
    }

    /// The same in a few words.
    pub fn words(&self) -> String {
        let alone = self.edited.map_or(" alone", |_| "");
        let unedited = self.unedited.map(|ratio| ratio.words() + " of unedited prompts" + alone);
        let edited = self.edited.map(|ratio| ratio.words() + " after recorded compactions");
        let parts: Vec<String> = unedited.into_iter().chain(edited).collect();
        format!("simulated/billed input cost: {}", parts.join(", "))
    }
}

impl CostRatio {
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_unstable_by(f64::total_cmp);
        Some(Self {
            sessions: ratios.len(),
            median: median(&ratios, f64::midpoint)?,
            p10: *ratios.get(ratios.len() / 10)?,
            p90: *ratios.get(ratios.len() * 9 / 10)?,
        })
    }

    fn words(&self) -> String {
        let (sessions, median) = (self.sessions, self.median);
        let (low, high) = (self.p10, self.p90);
        match sessions {
            1 => format!("{median:.2} (1 session)"),
            _ => format!("{median:.2} ({low:.2} to {high:.2}, {sessions} sessions)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_ends_within_the_sessions_and_one_session_has_none() {
        let check = |unedited: &[f64], edited: &[f64], words: &str| {
            let [unedited, edited] =
                [unedited, edited].map(|ratios| CostRatio::of(ratios.to_vec()));
            let said = SimulatedCost { unedited, edited }.words();
            assert_eq!(said, format!("simulated/billed input cost: {words}"));
        };
        check(&[1.04], &[], "1.04 (1 session) of unedited prompts alone");
        check(
            &[1.1, 0.9, 1.0, 1.3],
            &[0.5],
            "1.05 (0.90 to 1.30, 4 sessions) of unedited prompts, 0.50 (1 session) after recorded compactions",
        );
        check(&[], &[0.5], "0.50 (1 session) after recorded compactions");
    }

    #[test]
    fn nothing_is_known_of_no_session() {
        assert_eq!(SimulatedCost::of(std::iter::empty()), None);
    }
}
