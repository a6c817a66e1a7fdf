//! Finished cells: the session, and all that its strategy did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::Given;
use super::conversation::LiveConversation;
use super::played::PlayedStrategy;
use super::{Live, LiveCell, lock};
use crate::model::Model;
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
    /// The part of it that was billed by each model.
    pub by_model: BTreeMap<Arc<str>, Usage>,
    /// How many calls those are.
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
    /// The numbers of the strategies that requests came for.
    pub fn strategies_that_ran(&self) -> BTreeSet<usize> {
        let table = lock(&self.table);
        table.conversations.iter().map(|one| one.cell.strategy).collect()
    }

    /// The cells so far, in the order in which they began. Those without an answered call are left out.
    ///
    /// Waits for the strategies to end their work.
    pub fn finished(&self) -> Vec<Finished> {
        let conversations = lock(&self.table).conversations.clone();
        let mut cells: Vec<Vec<LiveConversation>> = Vec::new();
        // Without a task a conversation is a cell of its own, with those that summarise it.
        let mut places: BTreeMap<(LiveCell, Option<usize>), usize> = BTreeMap::new();
        for (number, conversation) in conversations.into_iter().enumerate() {
            let own = conversation.summarises.unwrap_or(number);
            let own = conversation.cell.task.is_none().then_some(own);
            let next = cells.len();
            let place = *places.entry((conversation.cell.clone(), own)).or_insert(next);
            if place == next {
                cells.push(Vec::new());
            }
            cells[place].push(conversation);
        }
        cells.iter().filter_map(|parts| self.cell(parts)).collect()
    }

    fn cell(&self, parts: &[LiveConversation]) -> Option<Finished> {
        let cell = parts.first()?.cell.clone();
        let setting = &self.settings[cell.strategy];
        let mut measured = Measured { others: parts.len() - 1, ..Measured::default() };
        let apart: Vec<_> = {
            let table = lock(&self.table);
            let from = table.apart.range((cell.clone(), None)..);
            let own = from.take_while(|((its, _), _)| *its == cell);
            own.map(|(_, call)| call.clone()).collect()
        };
        // The calls that a branch has of another were made once.
        for call in parts.iter().flat_map(|part| &part.calls[part.inherited..]).chain(&apart) {
            measured.calls += call.answers;
            measured.unbilled += call.unbilled;
            measured.billed += call.billed;
            if let Some(model) = &call.model {
                *measured.by_model.entry(model.clone()).or_default() += call.billed;
            }
        }
        for part in parts {
            let from = part.inherited;
            let (spent, skipped) = part.actor.ask(move |worker| worker.account(from))?;
            measured.strategy += spent;
            for skip in skipped {
                *measured.skipped.entry(skip.to_string()).or_default() += 1;
            }
        }
        if measured.calls == 0 {
            return None;
        }
        // The first of the longest.
        let longest = parts.iter().rev().max_by_key(|part| part.calls.len())?;
        let answer = longest.answer.clone();
        let record = longest.actor.ask(|worker| worker.record(answer))??;
        measured.refused = record.refused;
        Some(Finished {
            cell,
            session: record.session,
            counts: setting.counts.clone(),
            window: setting.window,
            strategy: Box::new(PlayedStrategy(record.work)),
            summariser: Arc::new(Given::new(&*setting.summariser, record.replies)),
            measured,
        })
    }
}
