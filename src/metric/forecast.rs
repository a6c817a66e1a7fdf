//! The cost of a run before it is run: ranges where a model writes, exact figures everywhere else.
//!
//! A forecast reads the same records by the same functions as a report. The length of a live model's
//! answer is not known before: it lies between nothing and the longest answer that is allowed. A
//! summary of another length changes later prompts, too: [`Carry`] says by how much.

use std::ops::{Add, AddAssign};

use serde::Serializer;

use super::prelude::*;
use crate::metric::cost::{AS_BILLED, BillBasis, SchemeCost};
use crate::record::words::PerToken;
use crate::record::{Arm, CacheRecord, ForecastCell, Manifest, PriceEntry};
use crate::units::Usd;

mod carry;
mod spend;

pub use carry::Carry;
pub(crate) use spend::Tariff;
use spend::part_of;
pub use spend::{Spend, ThinkingTokens};

/// Least, expected and most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ForecastRange<T> {
    /// The least that is possible.
    pub low: T,
    /// The value with the offline model.
    pub expected: T,
    /// The most that is possible.
    pub high: T,
}

impl<T: Copy> ForecastRange<T> {
    /// From the least to the most.
    fn new(low: T, expected: T, high: T) -> Self {
        Self { low, expected, high }
    }

    /// A span of one value.
    pub fn exact(value: T) -> Self {
        Self::new(value, value, value)
    }

    fn map<U: Copy>(self, each: impl Fn(T) -> U) -> ForecastRange<U> {
        self.zip(self, |value, _| each(value))
    }

    fn zip<U: Copy, V: Copy>(
        self,
        other: ForecastRange<U>,
        each: impl Fn(T, U) -> V,
    ) -> ForecastRange<V> {
        let (low, high) = (each(self.low, other.low), each(self.high, other.high));
        ForecastRange::new(low, each(self.expected, other.expected), high)
    }
}

impl ForecastRange<Tokens> {
    /// As far below and above another number.
    fn around(self, expected: Tokens) -> Self {
        Self::new(expected - self.less(), expected, expected + self.more())
    }

    fn less(self) -> Tokens {
        self.expected - self.low
    }

    fn more(self) -> Tokens {
        self.high - self.expected
    }
}

impl<T: Copy> ForecastRange<Option<T>> {
    /// The span where all three values are known.
    fn known(self) -> Option<ForecastRange<T>> {
        Some(ForecastRange::new(self.low?, self.expected?, self.high?))
    }
}

impl<T: Copy + Add<Output = T>> AddAssign for ForecastRange<T> {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip(other, Add::add);
    }
}

/// Adds a cost in money; what is unknown makes the sum unknown.
fn add_money<T: AddAssign>(sum: &mut Option<T>, more: Option<T>) {
    match (&mut *sum, more) {
        (Some(sum), Some(more)) => *sum += more,
        (_, _) => *sum = None,
    }
}

/// The requests and costs of one strategy, over all its cells.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StrategyForecast {
    /// The strategy's name, or `full`.
    pub strategy: String,
    /// Cells.
    pub cells: usize,
    /// Of these, cells in which a prompt will not fit, or the strategy fails.
    pub broken: usize,
    /// Calls of the agent that are sent.
    pub agent_calls: usize,
    /// Calls of the strategy's own.
    pub calls: usize,
    /// Prompts of the agent and of the strategy.
    pub input_tokens: Tokens,
    /// The same with shorter and with longer summaries in them.
    pub input_range: ForecastRange<Tokens>,
    /// The output of the agent: recorded, hence known.
    pub agent_output: Tokens,
    /// The output of the strategy's calls.
    pub strategy_output: ForecastRange<Tokens>,
    /// Under each scheme, the one of the comparison first.
    pub costs: Vec<CostForecast>,
}

/// The costs of one strategy under one scheme.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostForecast {
    /// Which costs are summed up.
    pub bill: BillBasis,
    /// The scheme's name; `as billed` where sessions have different ones.
    pub scheme: String,
    /// Read from the cache.
    pub cache_read: Tokens,
    /// Written to it.
    pub cache_written: Tokens,
    /// In uncached input tokens of the same price, with what the agent writes.
    pub input_equivalents: ForecastRange<Tokens>,
    /// In money; `None` where a price is unknown.
    #[serde(serialize_with = "in_dollars")]
    pub dollars: Option<ForecastRange<Usd>>,
    /// Input equivalents before they are rounded, in thousandths.
    #[serde(skip)]
    thousandths: ForecastRange<u64>,
}

/// Writes money as dollars.
#[expect(clippy::ref_option, reason = "serde asks for it so")]
fn in_dollars<S: Serializer>(
    money: &Option<ForecastRange<Usd>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    money.map(|span| span.map(Usd::in_dollars)).serialize(serializer)
}

/// Everything that is forecast of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// `full` first, then the strategies in the order of the manifest.
    pub strategies: Vec<StrategyForecast>,
    /// The requests to live models of the run itself.
    pub spend: Spend,
}

impl Forecast {
    /// Sums cells up. `inputs` says what the models of the run itself cost and may write.
    pub(crate) fn of(manifest: &Manifest, cells: &[ForecastCell], inputs: &Tariff<'_>) -> Self {
        let names = manifest.strategies.iter().map(|entry| entry.name.as_str());
        let names = std::iter::once("full").chain(names);
        let all = names.map(|name| StrategyForecast::of(manifest, name, cells, &inputs.thinking));
        Self { strategies: all.collect(), spend: Spend::of(manifest, cells, inputs) }
    }
}

impl StrategyForecast {
    fn of(
        manifest: &Manifest,
        name: &str,
        all: &[ForecastCell],
        thinking: &ThinkingTokens,
    ) -> Self {
        let own = all.iter().filter(|cell| cell.record.strategy == name);
        let cells = own.clone().count();
        let mut total = Self { strategy: name.to_owned(), cells, ..Self::default() };
        for cell in own {
            let record = &cell.record;
            let carry = Carry::of(cell, writes(manifest, thinking));
            total.broken += usize::from(record.end != crate::record::End::Completed);
            total.agent_calls += record.prompt_tokens.len();
            total.calls += carry.requests.len();
            total.input_range += carry.total();
            for request in &carry.requests {
                total.strategy_output += request.output;
            }
            let Some(full) = all.iter().map(|cell| &cell.record).find(|other: &&CellRecord| {
                other.arm == Arm::Reference && other.session == record.session
            }) else {
                continue;
            };
            let sent = full.output_tokens.iter().take(record.prompt_tokens.len());
            total.agent_output += sent.copied().sum();
            let entry = manifest.sessions.iter().find(|entry| entry.id == record.session);
            let price = entry.and_then(|entry| entry.price.as_ref());
            let costs = SchemeCost::of(record, full);
            for bill in BillBasis::all(std::iter::once(&*costs)) {
                let Some(cost) = SchemeCost::under_bill(&costs, &bill) else {
                    continue;
                };
                let forecast = CostForecast::of(cell, &carry, bill, cost, price);
                let mut known = total.costs.iter_mut();
                match known.find(|known| known.bill == forecast.bill) {
                    Some(sum) => sum.add(&forecast),
                    None => total.costs.push(forecast),
                }
            }
        }
        total.input_tokens = total.input_range.expected;
        total
    }
}

impl CostForecast {
    fn of(
        cell: &ForecastCell,
        carry: &Carry,
        bill: BillBasis,
        cost: &SchemeCost,
        price: Option<&PriceEntry>,
    ) -> Self {
        let total = cost.total();
        let cache = cell.record.cache_under(&cost.scheme, cost.placement);
        let prices = price.map(|price| &price.per_token);
        let dollars = prices.and_then(|prices| cost.dollars(prices));
        let sides = [ForecastRange::less, ForecastRange::more];
        let [(less, less_dollars), (more, more_dollars)] = sides.map(|side| {
            let nothing = (0, Some(Usd::default()));
            cache.map_or(nothing, |cache| beyond(carry, cost, cache, prices, side))
        });
        let low = cost.cost.saturating_sub(less);
        let thousandths = ForecastRange::new(low, cost.cost, cost.cost.saturating_add(more));
        let change = dollars.zip(less_dollars.zip(more_dollars));
        Self {
            bill,
            scheme: cost.scheme.clone(),
            cache_read: total.cache_read,
            cache_written: total.cache_write_5m + total.cache_write_1h,
            input_equivalents: thousandths.map(rounded),
            thousandths,
            dollars: change.map(|(expected, (less, more))| {
                let low = Usd(expected.0.saturating_sub(less.0));
                ForecastRange::new(low, expected, expected + more)
            }),
        }
    }

    fn add(&mut self, other: &Self) {
        if self.scheme != other.scheme {
            AS_BILLED.clone_into(&mut self.scheme);
        }
        self.cache_read += other.cache_read;
        self.cache_written += other.cache_written;
        self.thousandths += other.thousandths;
        self.input_equivalents = self.thousandths.map(rounded);
        add_money(&mut self.dollars, other.dollars);
    }
}

/// Thousandths of a token as whole tokens.
fn rounded(thousandths: u64) -> Tokens {
    Tokens(thousandths.div_ceil(1_000))
}

/// How much a live summariser may think before it writes; `None` where a deterministic model
/// writes.
fn writes(manifest: &Manifest, thinking: &ThinkingTokens) -> Option<Tokens> {
    (manifest.summariser.kind == ModelKind::Live).then_some(thinking.summariser)
}

/// The cost of the tokens in addition to the expected ones, on the `side` where a live model writes
/// nothing or on that where it writes all that it may: in thousandths of an input token of the
/// agent's model, and in money; `None` where a price is unknown.
fn beyond(
    carry: &Carry,
    cost: &SchemeCost,
    cache: &CacheRecord,
    price: Option<&PerToken>,
    side: fn(ForecastRange<Tokens>) -> Tokens,
) -> (u64, Option<Usd>) {
    let output = price.and_then(|price| price.output);
    let requests = carry.requests.iter().map(|request| {
        let (rate, each) = match cache.other_models.get(&request.number) {
            None => (cache.rates.output.into(), output),
            Some(other) => {
                let input = price.and_then(|price| price.input);
                let each = input.zip(*other).map(|(input, other)| {
                    Usd(input.0.saturating_mul(other.output).div_ceil(1_000))
                });
                (other.map_or(0, |other| other.output), each)
            }
        };
        let tokens = side(request.output);
        let money = each.map(|each| each.times(tokens));
        (tokens, tokens.0.saturating_mul(rate), money)
    });
    // Prompts are read and written in the same shares as all prompts of the agent.
    let mut agent = cost.paid.agent;
    agent.output = Tokens::ZERO;
    let tokens = side(carry.total());
    // They cost as much more in long prompts as those do: the price of all is divided by the tokens that were sent.
    let sent = cost.agent.prompt().0;
    let whole = price.and_then(|price| price.cost(&agent));
    let money = whole.map(|whole| Usd(part_of(Tokens(whole.0), tokens.0, sent).0));
    let part = part_of(Tokens(cache.rates.cost(&agent)), tokens.0, sent);
    let prompts = (tokens, part.0, money);
    let (mut thousandths, mut dollars) = (0_u64, Some(Usd::default()));
    for (tokens, more, money) in requests.chain([prompts]) {
        if tokens > Tokens::ZERO {
            thousandths = thousandths.saturating_add(more);
            add_money(&mut dollars, money);
        }
    }
    (thousandths, dollars)
}

#[cfg(test)]
mod tests;
