//! Finds where a lost value can still be read: in an offloaded text that the prompt names, or in a
//! file that has not changed since, while the call that read it is there.

use super::super::sources::{Places, Pointers, ResultSource};
use crate::probe::Probe;
use crate::probe::survival::{SurvivalSlots, WrittenBy};
use crate::session::Session;

/// The tool results that hold each probe's evidence.
#[derive(Debug)]
pub(super) struct Sources {
    by_probe: Vec<Vec<ResultSource>>,
}

impl Sources {
    pub(super) fn new(session: &Session, probes: &[Probe], survival: &SurvivalSlots) -> Self {
        let places = Places::new(session);
        let by_probe = probes.iter().enumerate().map(|(index, probe)| {
            let slots = survival.slots(index);
            let sources = probe.evidence.iter().filter_map(|at| {
                let shown = session.messages().get(*at)?;
                let (block, _) = shown.tool_results().find(|(block, _)| {
                    let found = survival.find(&shown.model_text()[*block], WrittenBy::Session);
                    found.iter().any(|finding| slots.contains(&finding.slot))
                })?;
                places.of(*at, block)
            });
            sources.collect()
        });
        Self { by_probe: by_probe.collect() }
    }

    /// Whether all evidence of the probe can be read again before the message of index `before`.
    pub(super) fn is_recoverable(
        &self,
        probe: usize,
        evidence: &[usize],
        before: usize,
        pointers: &Pointers,
    ) -> bool {
        let sources = &self.by_probe[probe];
        !evidence.is_empty()
            && evidence.iter().all(|at: &usize| {
                let mut own = sources.iter().filter(|source| source.message == *at);
                own.any(|source| pointers.is_recoverable(source, before))
            })
    }
}
