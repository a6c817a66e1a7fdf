//! The simulated prompt cache of a cell, under each scheme of the provider.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::CellRecord;
use crate::record::words::{CallPrices, DatedModel, Placement};
pub use crate::record::words::{Latency, PerToken, Rates, RelativePrice};
use crate::units::{Tokens, Usage, is_default};

/// The reads and writes of a cell's prompts under one scheme of the prompt cache.
///
/// The first record of a cell is that of the scheme that the session was billed with.
///
/// Series are indexed by call; a series of zeros is left empty. Tokens of a prompt that are neither
/// read nor written are plain input.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRecord {
    /// The scheme's name.
    pub scheme: String,
    /// Where the client puts its breakpoints.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub placement: Placement,
    /// The prices of its token classes.
    pub rates: Rates,
    /// The prices of the agent's calls, where the recorded one went from model to model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub call_prices: CallPrices,
    /// How long a prefix lives after its last use; `None` if it never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Tokens of each prompt that were read from the cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Tokens>,
    /// Tokens of each prompt that were billed as written to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<Tokens>,
    /// Tokens that each of the cell's `model_calls` read, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategy_read: Vec<Tokens>,
    /// Those of the cell's `model_calls`, by number, that went to another model than the agent's:
    /// with the relative price of that model, or `None` where a price is unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "elsewhere")]
    pub other_models: BTreeMap<usize, Option<RelativePrice>>,
    /// The breaks by cause: a stage, `expired`, `missed` where the recorded call read less too, or `look-back`
    /// where no breakpoint was near enough.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breaks: BTreeMap<String, CacheBreaks>,
    /// Tokens that were in an earlier prompt verbatim and were still not read, because the text
    /// before them had changed or was gone.
    #[serde(rename = "again")]
    pub resent: Tokens,
}

/// The prices in force for a session's model.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// The model.
    pub model: String,
    /// Whose prices they are.
    pub provider: String,
    /// When the document was read.
    pub date: String,
    /// The source of the prices.
    pub document: String,
    /// The scheme by which this provider's cache works where nothing else is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Calls that the recorded agent sent to models of other prices, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_models: BTreeMap<String, u64>,
    /// Calls to models without a known price, by model. They are on no bill.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unpriced_calls: BTreeMap<String, usize>,
    /// Requests within the recorded calls: of an advisor, around the provider's own tools, or with answers that were left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inner_requests: usize,
    /// The prices; with requests within calls, those of the mean over the recorded calls.
    pub per_token: PerToken,
    /// The longest prompt of these prices, where longer ones cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts_up_to: Option<Tokens>,
    /// How long its calls take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The provider's small model, where the price file names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast: Option<DatedModel>,
    /// The lowest and the highest price of a read among the provider's models, in thousandths of their input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_shares: Option<[u32; 2]>,
}

impl PriceEntry {
    /// The model, and the calls to others.
    pub fn models(&self) -> String {
        let others = self.other_models.iter().map(|(other, calls)| format!("{calls} of {other}"));
        let unpriced = self.unpriced_calls.iter();
        let unpriced = unpriced.map(|(other, calls)| format!("{calls} of {other} without a price"));
        let within = Some(self.inner_requests).filter(|requests| *requests > 0);
        let inner = within.map(|requests| format!("{requests} within others"));
        let calls: Vec<String> = others.chain(unpriced).chain(inner).collect();
        if calls.is_empty() {
            return self.model.clone();
        }
        format!("{} (with calls: {})", self.model, calls.join(", "))
    }
}

/// The scheme of the provider's cache that a session is billed with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionCache {
    /// The scheme's name.
    pub scheme: String,
    /// How it is known.
    pub basis: CacheBasis,
}

/// How the scheme of a session is known.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CacheBasis {
    /// The recorded usage shows it.
    Billed,
    /// The scenario sets it.
    Set,
    /// It is the usual one of the model's provider, or of the scenario's.
    Assumed,
}

/// How often one cause broke the cache, and for how many tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheBreaks {
    /// Calls at which less was read than had been cached at the call before.
    pub calls: u64,
    /// Tokens that were cached at the call before and not read.
    pub tokens: Tokens,
}

/// The cache reads that the provider reports, to compare with those of the schemes.
///
/// The compared calls are those with a recorded bill, of which the recording had the cell's prompt: of the
/// reference, up to the first compaction of the recorded product; of the strategy that replays these
/// compactions, from the first one on.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedCache {
    /// Calls compared.
    pub calls: usize,
    /// Their prompts, as billed; outputs are left out.
    pub billed: Usage,
    /// The part of the first prompt that the recording does not hold: its billed size minus the
    /// counted one.
    pub unrecorded: Tokens,
    /// Prompts of the same calls, as replayed.
    pub counted: Tokens,
    /// How each scheme splits them.
    pub simulated: BTreeMap<String, Usage>,
}

/// The scheme's name where classes of tokens are those that a provider billed.
pub const BILLED: &str = "billed";

impl CellRecord {
    /// The simulated cache of the comparison.
    pub fn simulated_cache(&self) -> Option<&CacheRecord> {
        self.prompt_cache.iter().find(|record| record.scheme != BILLED)
    }

    /// The simulated input cost of the prompts that were billed, over the billed cost, in the scheme of the
    /// bills; `None` without bills.
    pub fn simulated_cost(&self) -> Option<f64> {
        let (observed, own) = (self.observed_cache.as_ref()?, self.simulated_cache()?);
        let simulated = observed.simulated.get(&own.scheme)?;
        let [simulated, billed] =
            [simulated, &observed.billed].map(|usage| Tokens(own.rates.cost(usage)));
        simulated.share_of(billed)
    }

    /// The record under a scheme and a placement. Placements that would change nothing are not kept:
    /// then it is the usual one.
    pub fn cache_under(&self, scheme: &str, placement: Placement) -> Option<&CacheRecord> {
        let mut own = self.prompt_cache.iter().filter(|record| record.scheme == scheme);
        let exact = own.clone().find(|record| record.placement == placement);
        exact.or_else(|| own.find(|record| record.placement == Placement::Usual))
    }
}

impl CacheRecord {
    /// The bill of a provider, at these rates, and at the prices of other models as simulated.
    #[must_use]
    pub fn billed(rates: Rates, simulated: &Self) -> Self {
        Self {
            scheme: BILLED.to_owned(),
            rates,
            other_models: simulated.other_models.clone(),
            ..Self::default()
        }
    }

    /// The usage that costs at the usual price of the session's model what a call of the agent, or one of the strategy
    /// before it, costs with this usage; nothing where the call's price is unknown.
    #[must_use]
    pub fn at_usual_price(&self, call: usize, usage: Usage) -> Usage {
        match self.call_prices.range(..=call).next_back() {
            Some((_, price)) => price.map(|price| price.of_call(usage)).unwrap_or_default(),
            None => self.rates.of_call(usage),
        }
    }

    /// The token classes of the prompt of this size that was sent at a call.
    pub fn of_call(&self, call: usize, prompt: Tokens) -> Usage {
        let [read, written] =
            [&self.read, &self.written].map(|series| series.get(call).copied().unwrap_or_default());
        self.split(prompt - read - written, written, read)
    }

    /// The classes of the strategy's own call of this number.
    pub fn of_strategy(&self, number: usize, usage: &Usage) -> Usage {
        let prompt = usage.prompt();
        let read = self.strategy_read.get(number).copied().unwrap_or_default().min(prompt);
        Usage { output: usage.output, ..self.split(prompt - read, Tokens::ZERO, read) }
    }

    /// Prefixes that live longer than five minutes count as written to the one-hour cache.
    fn split(&self, uncached: Tokens, written: Tokens, read: Tokens) -> Usage {
        let mut usage = Usage { input_uncached: uncached, cache_read: read, ..Usage::default() };
        match self.ttl_seconds {
            Some(..=300) => usage.cache_write_5m = written,
            Some(_) | None => usage.cache_write_1h = written,
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ttl_seconds: Option<u64>, short: u64, long: u64) {
        let record = CacheRecord {
            scheme: "tried".to_owned(),
            rates: Rates { write: Some(1_250), read: 100, output: 5_000, long_prompts: None },
            ttl_seconds,
            read: vec![Tokens(0), Tokens(30)],
            written: vec![Tokens(50), Tokens(20)],
            strategy_read: vec![Tokens(0), Tokens(99)],
            ..CacheRecord::default()
        };
        let prompt = record.of_call(1, Tokens(60));
        let expected = Usage {
            input_uncached: Tokens(10),
            cache_write_5m: Tokens(short),
            cache_write_1h: Tokens(long),
            cache_read: Tokens(30),
            output: Tokens::ZERO,
        };
        assert_eq!(prompt, expected, "{ttl_seconds:?}");
        // A call of the strategy reads no more than it is long, and writes nothing.
        let own = record.of_strategy(1, &Usage::uncached(Tokens(40), Tokens(7)));
        let read = Usage { cache_read: Tokens(40), output: Tokens(7), ..Usage::default() };
        assert_eq!(own, read);
    }

    #[test]
    fn what_lives_longer_than_five_minutes_is_written_for_an_hour() {
        check(Some(300), 20, 0);
        check(Some(301), 0, 20);
        check(Some(3_600), 0, 20);
        check(None, 0, 20);
    }
}
