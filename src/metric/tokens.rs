//! Tokens: what was processed, against what full history would have processed.

use derive_more::{Add, Sum};

use super::prelude::*;
use crate::metric::calls::is_on_the_bill;
use crate::metric::pool::SpendingPair;
use crate::record::BILLED;
use crate::record::words::Placement;

/// The tokens that a cell and the reference processed, over the calls both reached.
///
/// The output of the agent is recorded, hence the same under both, and left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, Sum, Serialize)]
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
    /// The strategy's calls at the call at which its session died are on its bill; those at calls that
    /// the reference did not reach are not. Where bills are known, they say it of all calls; `None` without that of
    /// the reference.
    pub fn of(cell: &CellRecord, reference: &CellRecord) -> Option<Self> {
        if cell.live.is_some() && reference.prompt_cache.is_empty() {
            return None;
        }
        if reference.cache_under(BILLED, Placement::Usual).is_some() {
            let (own, full) = (cell.live.as_ref()?, reference.live.as_ref()?);
            return own.is_billed().then(|| Self {
                calls: own.calls,
                prompts: own.billed.prompt(),
                strategy: own.strategy.total(),
                reference: full.billed.prompt(),
            });
        }
        let own = reached(cell);
        let calls = own.min(reached(reference));
        let billed = cell.model_calls.iter().filter(|call| is_on_the_bill(call.purpose));
        let asked = billed.filter(|call| call.call < calls || calls == own);
        Some(Self {
            calls,
            prompts: cell.prompt_tokens[..calls].iter().copied().sum(),
            strategy: asked.map(|call| call.usage.total()).sum(),
            reference: reference.prompt_tokens[..calls].iter().copied().sum(),
        })
    }

    /// Token savings. Formula: `1 − S/S⁰`, S = prompts + the strategy's calls. Higher is better;
    /// below 0 the strategy costs more than it saves. `None` where the reference sent nothing.
    pub fn share(&self) -> Option<f64> {
        let spent = (self.prompts + self.strategy).share_of(self.reference)?;
        Some(1.0 - spent)
    }
}

/// A share of what is compared, over the calls compared.
pub(super) fn compared(cell: &CellSummary, of: fn(&Savings) -> Option<f64>) -> Option<Observed> {
    let savings = cell.savings?;
    Some((of(&savings)?, savings.calls))
}

/// The tokens of its prompts and `more`, beside those of the reference.
pub(super) fn spending(cell: &CellSummary, more: Tokens) -> Option<SpendingPair> {
    let savings = cell.savings?;
    let spent = savings.prompts + more;
    Some(SpendingPair {
        tokens: (spent.0 as f64, savings.reference.0 as f64),
        dollars: None,
        calls: savings.calls,
    })
}

/// The largest prompt that was sent; `None` where none was. Lower is better.
pub fn peak_prompt(cell: &CellRecord) -> Option<Tokens> {
    cell.prompt_tokens.iter().copied().max()
}

/// All prompts together: the area under the curve of tokens by call. Lower is better. Formula: Σ over
/// the calls reached.
pub fn area(cell: &CellRecord) -> Tokens {
    cell.prompt_tokens.iter().copied().sum()
}

/// Calls of which the prompt's size is known.
fn reached(cell: &CellRecord) -> usize {
    cell.reached_calls.min(cell.prompt_tokens.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ModelCall;
    use crate::record::words::Purpose;
    use crate::units::Usage;

    /// A cell of one prompt.
    fn cell(prompt: u64) -> CellRecord {
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "", "strategy": "", "repeat": 0, "arm": "strategy",
            "end": { "end": "completed" }, "planned_calls": 1, "reached_calls": 1,
            "window": null, "fixed_tokens": 0, "prompt_tokens": [prompt], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
        });
        serde_json::from_value(record).unwrap()
    }

    /// Anthropic's cookbook on automatic compaction, five tickets, threshold 5,000: 204,416 + 4,422
    /// tokens become 82,171 + 4,275, published as 58.6 %. Its two summary calls, of about 5.0k in and
    /// 0.75k out each, are on nobody's bill there; with them it is 53 %.
    #[test]
    fn a_published_saving_shrinks_when_its_summaries_are_billed() {
        let full = cell(204_416 + 4_422);
        let mut compacted = cell(82_171 + 4_275);
        let in_percent = |share: Option<f64>| format!("{:.1}", 100.0 * share.unwrap());
        let savings = Savings::of(&compacted, &full).unwrap();
        assert_eq!(in_percent(savings.share()), "58.6");
        let summary = ModelCall {
            call: 0,
            purpose: Purpose::Compaction,
            usage: Usage::uncached(Tokens(5_000), Tokens(750)),
            model: None,
            failure: None,
            key: None,
        };
        compacted.model_calls = vec![summary.clone(), summary];
        let savings = Savings::of(&compacted, &full).unwrap();
        assert_eq!(in_percent(savings.share()), "53.1");
    }
}
