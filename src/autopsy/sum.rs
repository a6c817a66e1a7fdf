//! Sums over autopsies: a session with its sub-agents, or all sessions of a folder.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{Autopsy, Breaks, ThingKind, Thrown};
use crate::units::{Tokens, Usd};

/// The costs and losses of many compactions. Money is the sum of what is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    /// The cost of all calls and requests for summaries.
    pub usd: f64,
    /// The part of it that is estimated: requests for summaries without a bill.
    pub estimated_usd: f64,
    /// Conversations of which no price is known.
    pub unpriced: usize,
    /// Calls whose price is not known, in all conversations.
    pub unpriced_calls: usize,
    /// Compactions that a call followed.
    pub compactions: usize,
    /// The cost of compactions.
    pub spent: Spent,
    /// The cost of files and results that were fetched again.
    pub again: Spent,
    /// By kind, what became of all that stood in the prompts before.
    pub thrown: BTreeMap<ThingKind, Thrown>,
    /// Breaks of the prompt cache, by cause.
    pub breaks: BTreeMap<&'static str, Breaks>,
}

/// A sum of costs of which some may not be known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spent {
    /// The known costs.
    pub usd: f64,
    /// The tokens of all.
    pub tokens: Tokens,
    /// The tokens without a known price.
    pub unpriced: Tokens,
}

impl Spent {
    fn add(&mut self, usd: Option<f64>, tokens: Tokens) {
        self.usd += usd.unwrap_or_default();
        self.tokens += tokens;
        self.unpriced += if usd.is_none() { tokens } else { Tokens::ZERO };
    }
}

impl Totals {
    /// The sum over these sessions and their sub-agents.
    pub fn of(sessions: &[Autopsy]) -> Self {
        let mut sum = Self::default();
        for autopsy in sessions.iter().flat_map(|main| [main].into_iter().chain(&main.sub_agents)) {
            sum.usd += autopsy.usd.unwrap_or_default();
            sum.estimated_usd += autopsy.estimated_usd;
            sum.unpriced += usize::from(autopsy.usd.is_none());
            sum.unpriced_calls += autopsy.unpriced_calls;
            for compaction in &autopsy.compactions {
                sum.compactions += compaction.in_a_row;
                sum.spent.add(compaction.usd, compaction.tokens);
                compaction.needed.iter().for_each(|need| sum.again.add(need.usd, need.tokens));
                let thrown = compaction.thrown.iter();
                thrown.for_each(|(kind, row)| *sum.thrown.entry(*kind).or_default() += *row);
            }
            for (cause, more) in &autopsy.breaks {
                let known = sum.breaks.entry(cause).or_default();
                known.calls += more.calls;
                known.tokens += more.tokens;
                known.usd += more.usd;
                known.largest = known.largest.max(more.largest);
            }
        }
        sum
    }
}

/// Puts the conversations of sub-agents under their main sessions, and the worst session first: by what compactions and
/// what was fetched again cost, in dollars, then in tokens. A sub-agent whose main session is not there stays where it is.
pub fn with_sub_agents(all: Vec<Autopsy>) -> Vec<Autopsy> {
    let (agents, mut all): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.main.is_some());
    for own in agents {
        match all.iter_mut().find(|main| own.main.as_ref() == Some(&main.session)) {
            Some(main) => main.sub_agents.push(own),
            None => all.push(own),
        }
    }
    all.sort_by_cached_key(|autopsy| {
        let sum = Totals::of(std::slice::from_ref(autopsy));
        let usd = Usd::of_dollars(sum.spent.usd + sum.again.usd);
        Reverse((usd, sum.spent.tokens + sum.again.tokens))
    });
    all
}
