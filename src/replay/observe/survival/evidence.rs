//! The evidence of open questions: which of its messages stand in the prompt as they were, and what
//! took the others out. What a compaction wrote of them, string matching cannot tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::context::{Applied, Origin};
use crate::probe::{Probe, ProbeKind};
use crate::record::{Fate, LostAt, PlaceInPrompt, SurvivalRecord};

/// The messages that open questions rest on.
#[derive(Debug)]
pub(super) struct Evidence {
    messages: BTreeSet<usize>,
    /// Those that are not there, with what took them out.
    gone: BTreeMap<usize, LostAt>,
}

impl Evidence {
    /// All of them are there until they are taken out.
    pub(super) fn of(probes: &[Probe]) -> Self {
        let open = probes
            .iter()
            .filter(|probe| probe.kind() == ProbeKind::Open);
        let messages = open.flat_map(|probe| probe.evidence.iter().copied());
        Self {
            messages: messages.collect(),
            gone: BTreeMap::new(),
        }
    }

    /// Notes which messages this patch took out or put back; `is_there` tells after it.
    pub(super) fn patched(&mut self, applied: &Applied, is_there: impl Fn(usize) -> bool) {
        if self.messages.is_empty() {
            return;
        }
        let added = applied.change.edits.iter().flat_map(|edit| &edit.with);
        for entry in applied.change.removed.iter().chain(added) {
            let (Origin::Verbatim(message)
            | Origin::Edited { message, .. }
            | Origin::Restored(message)) = entry.origin
            else {
                continue;
            };
            if !self.messages.contains(&message) {
                continue;
            }
            if is_there(message) {
                self.gone.remove(&message);
            } else {
                self.gone.entry(message).or_insert_with(|| LostAt {
                    call: applied.call,
                    stage: applied.stage.to_string(),
                    reason: applied.reason.clone(),
                    seen_by_summariser: None,
                });
            }
        }
    }

    /// How much of a question's evidence is there.
    pub(super) fn judge(
        &self,
        evidence: &[usize],
        is_there: impl Fn(usize) -> bool,
    ) -> SurvivalRecord {
        let kept = evidence.iter().filter(|at| is_there(**at)).count();
        let lost = evidence.iter().filter_map(|at| self.gone.get(at));
        SurvivalRecord {
            fate: match kept {
                0 => Fate::Lost,
                kept if kept == evidence.len() => Fate::Survived,
                _ => Fate::Partial,
            },
            score: if evidence.is_empty() {
                0.0
            } else {
                kept as f64 / evidence.len() as f64
            },
            place: (kept > 0).then_some(PlaceInPrompt::Verbatim),
            compacted_score: None,
            lost_at: lost.max_by_key(|lost| lost.call).cloned(),
        }
    }
}
