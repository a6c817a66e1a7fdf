//! Tokens: what was processed, against what full history would have processed.

use serde::Serialize;

use crate::metric::calls::is_on_the_bill;
use crate::record::CellRecord;
use crate::units::Tokens;

/// What a cell and the reference processed over the calls both reached.
///
/// What the agent itself wrote is recorded, hence the same under both, and left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Savings {
    /// Calls both reached.
    pub calls: usize,
    /// Prompts of the agent's calls: S′.
    pub prompts: Tokens,
    /// Input and output of the calls the strategy made, failed ones included.
    pub strategy: Tokens,
    /// Prompts of the reference: S⁰.
    pub reference: Tokens,
}

impl Savings {
    /// Compares a cell with the reference on the same session.
    ///
    /// What the strategy spent at the very call at which its session died is on its bill; what it
    /// spent on calls the reference did not reach is not.
    pub fn of(cell: &CellRecord, reference: &CellRecord) -> Self {
        let reached = reached(cell);
        let calls = reached.min(self::reached(reference));
        Self {
            calls,
            prompts: cell.prompt_tokens[..calls].iter().copied().sum(),
            strategy: cell
                .model_calls
                .iter()
                .filter(|call| is_on_the_bill(call.purpose))
                .filter(|call| call.call < calls || calls == reached)
                .map(|call| call.usage.total())
                .sum(),
            reference: reference.prompt_tokens[..calls].iter().copied().sum(),
        }
    }

    /// Token savings. Formula: `1 − S/S⁰`, S = prompts + the strategy's calls. Higher is better;
    /// below 0 the strategy costs more than it saves. Nothing where the reference sent nothing.
    pub fn share(&self) -> Option<f64> {
        let spent = (self.prompts + self.strategy).share_of(self.reference)?;
        Some(1.0 - spent)
    }

    /// The same as if the strategy's own calls were free. Formula: `1 − S′/S⁰`.
    pub fn share_without_calls(&self) -> Option<f64> {
        Some(1.0 - self.prompts.share_of(self.reference)?)
    }
}

/// The largest prompt that was sent; nothing where none was. Lower is better.
pub fn peak_prompt(cell: &CellRecord) -> Option<Tokens> {
    cell.prompt_tokens.iter().copied().max()
}

/// Calls of which the prompt's size is known.
fn reached(cell: &CellRecord) -> usize {
    cell.reached_calls.min(cell.prompt_tokens.len())
}
