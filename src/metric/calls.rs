//! Calls: the strategy's requests to models, by purpose.

use derive_more::{Add, Sum};

use super::prelude::*;

/// Whether a call of this purpose is on the strategy's bill. The agent's own calls are in the
/// prompts; probe and judge calls are on no strategy's bill.
pub fn is_on_the_bill(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Compaction | Purpose::Background | Purpose::Recovery => true,
        Purpose::Agent | Purpose::Probe | Purpose::Qualification | Purpose::Judge => false,
    }
}

/// Model calls a strategy made. Counts and tokens; lower is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, Sum, Serialize)]
pub struct ModelCalls {
    /// Before a call.
    pub compaction: CallTotal,
    /// Beside the agent's work.
    pub background: CallTotal,
    /// After a prompt was refused.
    pub recovery: CallTotal,
}

/// Calls of one purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, Sum, Serialize)]
pub struct CallTotal {
    /// How many, failed ones included.
    pub calls: usize,
    /// Of these, how many brought no answer.
    pub failed: usize,
    /// Input and output.
    pub tokens: Tokens,
}

impl CallTotal {
    fn of(cell: &CellRecord, purpose: Purpose) -> Self {
        let own = cell.model_calls.iter().filter(|call| call.purpose == purpose);
        let each = own.map(|call| Self {
            calls: 1,
            failed: usize::from(call.failure.is_some()),
            tokens: call.usage.total(),
        });
        each.sum()
    }
}

impl ModelCalls {
    /// The calls of this cell.
    pub fn of(cell: &CellRecord) -> Self {
        Self {
            compaction: CallTotal::of(cell, Purpose::Compaction),
            background: CallTotal::of(cell, Purpose::Background),
            recovery: CallTotal::of(cell, Purpose::Recovery),
        }
    }

    /// Purposes with their totals, in the order of tables.
    pub fn by_purpose(&self) -> [(&'static str, CallTotal); 3] {
        [
            ("compaction", self.compaction),
            ("background", self.background),
            ("recovery", self.recovery),
        ]
    }

    /// All purposes together.
    pub fn total(&self) -> CallTotal {
        self.compaction + self.background + self.recovery
    }
}
