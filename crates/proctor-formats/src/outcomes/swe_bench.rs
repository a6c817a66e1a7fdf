//! SWE-bench writes a `report.json` for each instance, and a report of the run with the ids of all instances.

use super::{Problem, TrialOutcome};
use crate::prelude::*;

/// The lists of instances in the report of a run, with their score. One that was not handed in is in none of them.
const LISTS: [(&str, f64); 4] =
    [("resolved_ids", 1.0), ("unresolved_ids", 0.0), ("empty_patch_ids", 0.0), ("error_ids", 0.0)];

pub(super) fn read(mut report: Object<'_>) -> Option<Result<Vec<TrialOutcome>, Problem>> {
    let mut outcomes = Vec::new();
    if report.has(LISTS[0].0) {
        for (key, score) in LISTS {
            let ids: Vec<String> = report.take_as(key).unwrap_or_default();
            let each = ids.iter();
            outcomes.extend(each.map(|id| TrialOutcome::new(id, 0, Ok(score), format!(": {key}"))));
        }
        return Some(Ok(outcomes));
    }
    for (id, instance) in report.into_entries() {
        let resolved: bool = Object::read(instance)?.take_as("resolved")?;
        let score = f64::from(u8::from(resolved));
        outcomes.push(TrialOutcome::new(&id, 0, Ok(score), format!(": instance {id:?}")));
    }
    Some(Ok(outcomes))
}
