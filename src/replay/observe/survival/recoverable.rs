//! Finds where a lost value can still be read: in an offloaded text that the prompt names, or in a
//! file that has not changed since, while the call that read it is there.

use super::super::sources::{Places, Pointers, ResultSource};
use crate::probe::Probe;
use crate::probe::survival::{Survival, WrittenBy};
use crate::session::Session;

/// The tool results that hold each probe's evidence.
#[derive(Debug)]
pub(super) struct Sources {
    by_probe: Vec<Vec<ResultSource>>,
}

impl Sources {
    pub(super) fn new(session: &Session, probes: &[Probe], survival: &Survival) -> Self {
        let places = Places::new(session);
        let source = |message: usize, slots: &std::ops::Range<usize>| {
            let shown = session.messages().get(message)?;
            let holds = |block: usize| {
                let found = survival.find(&shown.model_text()[block], WrittenBy::Session);
                found.iter().any(|finding| slots.contains(&finding.slot))
            };
            let (block, _) = shown.tool_results().find(|(block, _)| holds(*block))?;
            places.of(message, block)
        };
        let by_probe = probes.iter().enumerate().map(|(index, probe)| {
            let slots = survival.slots(index);
            probe.evidence.iter().filter_map(|at| source(*at, &slots)).collect()
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
                let mut sources = sources.iter().filter(|source| source.message == *at);
                sources.any(|source| pointers.is_recoverable(source, before))
            })
    }
}
