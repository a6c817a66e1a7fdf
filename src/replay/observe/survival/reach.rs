//! Where a lost value can still be read: in a text that was put aside and is named in the prompt,
//! or in a file that has not changed since, while the call that read it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::context::Context;
use crate::probe::Probe;
use crate::probe::survival::Survival;
use crate::session::{ContentBlock, Session, ToolUse};
use crate::strategy::files;
use crate::units::ContentHash;

/// The tool results in which each probe's evidence stands.
#[derive(Debug)]
pub(super) struct Sources {
    by_probe: Vec<Vec<Source>>,
}

/// One tool result.
#[derive(Debug)]
struct Source {
    message: usize,
    tool_use: Arc<str>,
    /// The name under which a stage puts it aside.
    saved_as: String,
    /// Whether it is the content of a file.
    is_file: bool,
    /// The message that changed the file next.
    changed: Option<usize>,
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
        let mut tools: BTreeMap<&str, &ToolUse> = BTreeMap::new();
        let mut changes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, message) in session.messages().iter().enumerate() {
            for (_, tool) in message.tool_uses() {
                tools.insert(&tool.id, tool);
                let written = files::written_by(tool).map(|(path, _)| path);
                for path in files::changed_by(tool).into_iter().chain(written) {
                    changes.entry(path).or_default().push(at);
                }
            }
        }
        let source = |message: usize, slots: &std::ops::Range<usize>| {
            let shown = session.messages().get(message)?;
            let holds = |block: usize| {
                let found = survival.find(&shown.model_text()[block]);
                found.iter().any(|finding| slots.contains(&finding.slot))
            };
            let (block, result) = shown.tool_results().find(|(block, _)| holds(*block))?;
            let tool = tools.get(&*result.tool_use_id);
            let view = tool.and_then(|tool| files::view_of(tool));
            let later_change = view.as_ref().and_then(|view| {
                let later = changes.get(&view.path).into_iter().flatten();
                later.copied().find(|at| *at > message)
            });
            Some(Source {
                message,
                tool_use: result.tool_use_id.clone(),
                saved_as: format!(
                    "{}.txt",
                    ContentHash::of(shown.model_text()[block].as_bytes()).hex(12)
                ),
                is_file: view.is_some(),
                changed: later_change,
            })
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
            let is_unchanged = source.is_file && source.changed.is_none_or(|at| at >= before);
            (is_unchanged && named.tool_uses.contains(&*source.tool_use))
                || named
                    .written
                    .iter()
                    .any(|text| text.contains(&source.saved_as))
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
