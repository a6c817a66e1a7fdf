//! The recovery arm: of what did not survive, whether a search over the removed text finds it.
//!
//! At each point where probes are asked, the messages of the session that are no longer in the
//! context as they were are searched with each question. What is found is looked at as survival
//! looks at a prompt; nothing is answered, and nothing is added to the context.

use super::prelude::*;
use super::survival::SurvivalPlan;
use super::{CallView, Observer};
use crate::probe::ProbeExt as _;
use crate::probe::recovery::Recovery;
use crate::record::{RecoveredItem, RecoveryRecord};
use snippets::Snippets;

mod snippets;

/// The snippets of one session: made once, searched by all its cells.
#[derive(Debug)]
pub struct RecoveryPlan {
    survival: Arc<SurvivalPlan>,
    snippets: Snippets,
    setting: Recovery,
    counts: Arc<CountedTexts>,
}

impl RecoveryPlan {
    /// Cuts the session's messages into snippets.
    pub fn new(
        session: &Session,
        counts: Arc<CountedTexts>,
        survival: Arc<SurvivalPlan>,
        setting: Recovery,
    ) -> Self {
        let texts = session.messages().iter().enumerate().flat_map(|(at, message)| {
            let texts = message.model_text().iter();
            texts.map(move |text| (at, &**text))
        });
        // Counting every piece that is tried would take longer than the replay: four characters are
        // about a token, and what is paid is counted.
        let most = usize::try_from(setting.snippet_tokens).unwrap_or(usize::MAX);
        let snippets = Snippets::of(texts, |text| text.len() <= most.saturating_mul(4));
        Self { survival, snippets, setting, counts }
    }
}

/// Searches what one cell removed.
#[derive(Debug)]
pub struct RecoveryArm {
    plan: Arc<RecoveryPlan>,
    /// By item, what its search brought back.
    found: Vec<Option<RecoveredItem>>,
}

impl RecoveryArm {
    /// An arm for one cell of the plan's session.
    pub fn new(plan: Arc<RecoveryPlan>) -> Self {
        Self { found: vec![None; plan.survival.items.len()], plan }
    }
}

impl Observer for RecoveryArm {
    fn called(&mut self, view: &CallView<'_>) {
        let plan = &self.plan;
        let survival = &plan.survival;
        let due = survival.due_range(view.call);
        if due.is_empty() {
            return;
        }
        let verbatim = view.context.entries().iter().filter_map(|entry| match entry.origin {
            Origin::Verbatim(at) => Some(at),
            _ => None,
        });
        let verbatim: BTreeSet<usize> = verbatim.collect();
        let scope = plan.snippets.within(|at: usize| at < view.before && !verbatim.contains(&at));
        for index in due {
            let item = survival.items[index];
            let probe = &survival.probes[item.probe];
            if !probe.kind().is_searched() {
                continue;
            }
            let (snippets, most) = (&plan.snippets, plan.setting.snippets);
            let best = snippets.search(&scope, &probe.question, most);
            let mut tokens = Tokens::ZERO;
            let mut missing = survival.asked_slots(index, view.before);
            for text in best {
                tokens += plan.counts.size(text).tokens;
                let held = survival.survival.held(text);
                missing.retain(|slot| !held.contains(slot));
            }
            self.found[index] = Some(RecoveredItem {
                probe: probe.id.clone(),
                percent: item.percent,
                is_regained: missing.is_empty(),
                tokens,
            });
        }
    }

    /// Keeps what did not survive. The record has its probes already: survival comes first.
    fn finish(self: Box<Self>, record: &mut CellRecord) {
        let items = self.found.into_iter().zip(&record.probes);
        let lost = items.filter(|(_, probe)| probe.survival.score < 1.0);
        record.recovery = Some(RecoveryRecord {
            snippets: self.plan.setting.snippets,
            snippet_tokens: self.plan.setting.snippet_tokens,
            items: lost.filter_map(|(found, _)| found).collect(),
        });
    }
}
