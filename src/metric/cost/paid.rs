//! Tokens at the usual price of the session's model: what calls with long prompts, or to other models, cost in them.

use super::SchemeCost;
use crate::record::words::PerToken;
use crate::units::{Usage, Usd};

/// Tokens that cost at the usual price of the session's model what calls cost. Those of a long prompt or of a dearer model
/// are more than were sent, those of a cheaper model fewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaidTokens {
    /// Of the agent's calls.
    pub agent: Usage,
    /// Of the strategy's calls to the agent's model.
    pub strategy: Usage,
    /// Of the agent's calls under full history.
    pub reference: Usage,
    /// Of all of these, those behind a death too.
    pub whole_reference: Usage,
}

impl PaidTokens {
    /// Of both the agent's calls and the strategy's.
    pub(crate) fn own(&self) -> Usage {
        self.agent + self.strategy
    }
}

impl SchemeCost {
    /// The bill of full history over the calls that are compared.
    pub(crate) fn reference_dollars(&self, prices: &PerToken) -> Option<Usd> {
        prices.cost(&self.paid.reference)
    }

    /// The tokens that long prompts cost beyond their own. For running agents, which call one model.
    pub(crate) fn surcharge(&self) -> Usage {
        self.paid.own() - self.agent - self.compaction - self.background - self.recovery
    }
}
