//! Where a lost value can still be read: in a text that was put aside and is named in the prompt,
//! or in a file that has not changed since, while the call that read it is there.

use std::collections::BTreeSet;

use super::super::sources::{Places, Source};
use crate::context::Context;
use crate::probe::Probe;
use crate::probe::survival::Survival;
use crate::session::{ContentBlock, Session};

/// The tool results in which each probe's evidence stands.
#[derive(Debug)]
pub(super) struct Sources {
    by_probe: Vec<Vec<Source>>,
}

/// What the prompt names. Made only where something is lost.
#[derive(Debug)]
pub(super) struct Named<'a> {
    tool_uses: BTreeSet<&'a str>,
    /// Texts that are not those of the session.
    written: Vec<&'a str>,
}

impl Sources {
    pub(super) fn new(session: &Session, probes: &[Probe], survival: &Survival) -> Self {
        let places = Places::new(session);
        let source = |message: usize, slots: &std::ops::Range<usize>| {
            let shown = session.messages().get(message)?;
            let holds = |block: usize| {
                let found = survival.find(&shown.model_text()[block]);
                found.iter().any(|finding| slots.contains(&finding.slot))
            };
            let (block, _) = shown.tool_results().find(|(block, _)| holds(*block))?;
            places.of(message, block)
        };
        let by_probe = probes.iter().enumerate().map(|(index, probe)| {
            let slots = survival.slots(index);
            let evidence = probe.evidence.iter();
            evidence.filter_map(|at| source(*at, &slots)).collect()
        });
        Self {
            by_probe: by_probe.collect(),
        }
    }

    /// Whether all evidence of the probe can be read again before the message of index `before`.
    pub(super) fn reach(
        &self,
        probe: usize,
        evidence: &[usize],
        before: usize,
        named: &Named<'_>,
    ) -> bool {
        let sources = &self.by_probe[probe];
        let is_named = |source: &Source| {
            let saved_as = source.saved_as();
            (source.is_unchanged(before) && named.tool_uses.contains(&*source.tool_use))
                || named.written.iter().any(|text| text.contains(&saved_as))
        };
        !evidence.is_empty()
            && evidence.iter().all(|at| {
                let mut sources = sources.iter();
                sources.any(|source| source.message == *at && is_named(source))
            })
    }
}

impl<'a> Named<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        let (mut tool_uses, mut written) = (BTreeSet::new(), Vec::new());
        for entry in context.entries() {
            for (block, content) in entry.message.content().iter().enumerate() {
                if let ContentBlock::ToolUse(tool) = content {
                    tool_uses.insert(&*tool.id);
                }
                if !entry.is_verbatim(block) {
                    written.push(&*entry.message.model_text()[block]);
                }
            }
        }
        Self { tool_uses, written }
    }
}
