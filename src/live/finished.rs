//! Finished cells: the session, and all that its strategy did.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asked::Given;
use super::conversation::Conversation;
use super::played::Played;
use super::{Live, LiveCell, lock};
use crate::bill::Scale;
use crate::model::Model;
use crate::replay::RequestBill;
use crate::session::Session;
use crate::strategy::Strategy;
use crate::tokens::CountedTexts;
use crate::units::Usage;
use crate::window::Window;

/// A cell of a closed loop: the longest conversation of a task under a strategy, with what all of them cost.
#[derive(Debug)]
pub struct Finished {
    /// Which cell it is.
    pub cell: LiveCell,
    /// The session as the agent saw it.
    pub session: Session,
    /// Sizes of all texts.
    pub counts: Arc<CountedTexts>,
    /// The window it ran in.
    pub window: Window,
    /// Does again what the strategy did.
    pub strategy: Box<dyn Strategy>,
    /// Gives the answers again that it got.
    pub summariser: Arc<dyn Model>,
    /// The figures that are not in the replay.
    pub measured: Measured,
}

/// A cell's usage, and the calls at which its strategy was not applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Measured {
    /// The usage of all answered calls of the cell.
    pub billed: Usage,
    /// How many those are.
    pub calls: usize,
    /// How many of them the provider said no usage of.
    pub unbilled: usize,
    /// The usage of what the strategy asked its model, as billed or counted.
    pub strategy: Usage,
    /// Conversations in addition to the longest: of sub-agents, titles, the agent's own compactions.
    pub others: usize,
    /// Calls that were passed on as they came, by the reason.
    pub skipped: BTreeMap<String, u64>,
    /// Calls of the longest conversation at which the provider refused the prompt as too long.
    pub refused: Vec<usize>,
}

impl Live {
    /// The cells so far, in the order in which they began. Those without an answered call are left out.
    pub fn finished(&self) -> Vec<Finished> {
        let mut cells: Vec<(LiveCell, Vec<Arc<_>>)> = Vec::new();
        for (cell, conversation) in &lock(&self.table).conversations {
            let known = cells
                .iter_mut()
                .find(|(its, _)| cell.task.is_some() && its == cell);
            match known {
                Some((_, conversations)) => conversations.push(conversation.clone()),
                None => cells.push((cell.clone(), vec![conversation.clone()])),
            }
        }
        let cells = cells.into_iter();
        cells
            .filter_map(|(cell, conversations)| finished(cell, &conversations))
            .collect()
    }
}

fn finished(
    cell: LiveCell,
    conversations: &[Arc<std::sync::Mutex<Conversation>>],
) -> Option<Finished> {
    let mut measured = Measured {
        others: conversations.len() - 1,
        ..Measured::default()
    };
    let mut longest: Option<(usize, usize)> = None;
    for (at, conversation) in conversations.iter().enumerate() {
        let conversation = lock(conversation);
        // The calls that a branch has of another were made once.
        let own = conversation.inputs.iter().skip(conversation.inherited);
        for input in own {
            measured.calls += input.answers;
            measured.unbilled += input.unbilled;
            measured.billed += input.billed;
            if let Some(skip) = input.skipped {
                *measured.skipped.entry(skip.to_string()).or_default() += 1;
            }
        }
        let setting = &conversation.facts.setting;
        let slot = lock(&conversation.slot);
        let asked = slot
            .asked
            .iter()
            .filter(|(call, _)| *call >= conversation.inherited);
        for (request, reply) in asked.map(|(_, asked)| asked).chain(&slot.lost) {
            let bill = RequestBill::new(request, reply, Scale::COUNTED, &setting.counts);
            measured.strategy += bill.total();
        }
        drop(slot);
        let calls = conversation.inputs.len();
        if longest.is_none_or(|(most, _)| calls > most) {
            longest = Some((calls, at));
        }
    }
    let conversation = lock(&conversations[longest.filter(|_| measured.calls > 0)?.1]);
    let mut slot = lock(&conversation.slot);
    if slot
        .state
        .as_ref()
        .is_none_or(|state| state.calls < conversation.inputs.len())
    {
        // Where it cannot be brought there, nothing of it is in the record.
        let _ = conversation
            .job(conversation.inputs.len())
            .advance(&mut slot);
    }
    let inputs = conversation.inputs.iter().enumerate();
    let refused = inputs.filter(|(_, input)| input.refusals > 0);
    measured.refused = refused.map(|(call, _)| call).collect();
    let work = slot.state.as_ref().map(|state| state.asking.work.clone());
    let applied = work
        .iter()
        .flatten()
        .filter(|(_, work)| !work.applied.is_empty());
    let changed = applied
        .map(|(moment, _)| conversation.call_of(*moment))
        .min();
    let session = conversation.session(changed.unwrap_or(usize::MAX))?;
    let setting = conversation.facts.setting.clone();
    let asked = slot.asked.iter();
    let replies = asked.map(|(_, (_, reply))| reply.clone()).collect();
    Some(Finished {
        cell,
        session,
        counts: setting.counts.clone(),
        window: setting.window,
        strategy: Box::new(Played(work.unwrap_or_default())),
        summariser: Arc::new(Given::new(&*setting.summariser, replies)),
        measured,
    })
}
