//! Which of a probe's values answer it at a point of the session.

use super::SurvivalPlan;
use crate::probe::Gold;

impl SurvivalPlan {
    /// The slots that answer an item. A list grows: only what was touched so far is asked for. Of what
    /// has an order only the right answer is.
    pub fn asked_slots(&self, index: usize) -> Vec<usize> {
        let item = self.items[index];
        let before = self.before[index];
        let probe = &self.probes[item.probe];
        let slots = self.survival.slots(item.probe);
        match &probe.gold {
            Gold::Files { files, .. } => slots
                .clone()
                .zip(files)
                .filter(|(_, file)| file.is_listed(before))
                .map(|(slot, _)| slot)
                .collect(),
            Gold::Sequence { .. } => {
                let said = probe.gold.events_before(before).len();
                (slots.start..slots.start + said).collect()
            }
            Gold::Versions { .. } | Gold::Requests { .. } => {
                let said = probe.gold.versions_before(before).len();
                (slots.start + said.saturating_sub(1)..slots.start + said).collect()
            }
            Gold::Plan { items, .. } => slots
                .clone()
                .step_by(2)
                .zip(items)
                .filter(|(_, (_, done))| done.is_none_or(|done| done >= before))
                .map(|(slot, _)| slot)
                .collect(),
            Gold::Value { .. }
            | Gold::Statement { .. }
            | Gold::Choice { .. }
            | Gold::Tried { .. }
            | Gold::Fault { .. }
            | Gold::Among { .. }
            | Gold::Answer { .. }
            | Gold::Untold
            | Gold::Absent { .. } => slots.clone().collect(),
        }
    }
}
