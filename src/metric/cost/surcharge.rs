//! The surcharge of long prompts: some models ask a higher price for whole requests above a length.

use super::SchemeCost;
use crate::record::words::PerToken;
use crate::units::{Usage, Usd};

/// Tokens at the usual price that long prompts cost beyond their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Surcharge {
    /// Of the agent's calls.
    pub agent: Usage,
    /// Of the strategy's calls to the agent's model.
    pub strategy: Usage,
    /// Of the agent's calls under full history.
    pub reference: Usage,
    /// Of all of these, those behind a death too.
    pub whole_reference: Usage,
}

impl SchemeCost {
    /// What the agent's calls cost, in tokens at the usual price.
    pub(crate) fn paid_by_agent(&self) -> Usage {
        self.agent + self.surcharge.agent
    }

    /// The same of the strategy's calls to the agent's model.
    pub(crate) fn paid_by_strategy(&self) -> Usage {
        self.compaction + self.background + self.recovery + self.surcharge.strategy
    }

    /// The same of both.
    pub(crate) fn paid(&self) -> Usage {
        self.paid_by_agent() + self.paid_by_strategy()
    }

    /// The same of full history.
    pub(crate) fn paid_reference(&self) -> Usage {
        self.reference + self.surcharge.reference
    }

    /// The bill of full history over the calls that are compared.
    pub(crate) fn reference_dollars(&self, prices: &PerToken) -> Option<Usd> {
        prices.cost(&self.paid_reference())
    }
}
