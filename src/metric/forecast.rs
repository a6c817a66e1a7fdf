//! What a run will cost: ranges where a model writes, exact figures everywhere else.
//!
//! A forecast reads the same records by the same functions as a report. What a live model writes is
//! not known before: between nothing and the longest answer that is allowed.

use std::ops::{Add, AddAssign};

use serde::Serialize;

use crate::metric::calls::{ModelCalls, is_on_the_bill};
use crate::metric::cost::SchemeCost;
use crate::model::ModelKind;
use crate::model::price::PerToken;
use crate::record::{Arm, CellRecord, ForecastCell, Manifest, PriceEntry};
use crate::units::{Tokens, Usage, Usd};

/// Least, expected and most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Span<T> {
    /// The least that is possible.
    pub low: T,
    /// What it is with the offline model.
    pub expected: T,
    /// The most that is possible.
    pub high: T,
}

impl<T: Copy> Span<T> {
    /// A span of one value.
    pub fn exact(value: T) -> Self {
        Self {
            low: value,
            expected: value,
            high: value,
        }
    }

    fn map<U>(self, each: impl Fn(T) -> U) -> Span<U> {
        Span {
            low: each(self.low),
            expected: each(self.expected),
            high: each(self.high),
        }
    }
}

impl<T: Add<Output = T>> Add for Span<T> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            expected: self.expected + other.expected,
            high: self.high + other.high,
        }
    }
}

impl<T: Copy + Add<Output = T>> AddAssign for Span<T> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What one strategy will send and cost, over all its cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmForecast {
    /// The strategy's name, or `full`.
    pub strategy: String,
    /// Cells.
    pub cells: usize,
    /// Of these, cells in which a prompt will not fit, or the strategy fails.
    pub broken: usize,
    /// Calls of the agent that are sent.
    pub agent_calls: usize,
    /// Calls of the strategy's own.
    pub strategy_calls: usize,
    /// Prompts of the agent and of the strategy.
    pub input_tokens: Tokens,
    /// What the agent writes: recorded, hence known.
    pub agent_output: Tokens,
    /// What is written for the strategy.
    pub strategy_output: Span<Tokens>,
    /// Under each scheme, the one of the comparison first.
    pub costs: Vec<CostForecast>,
}

/// What one strategy will cost under one scheme.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostForecast {
    /// The scheme.
    pub scheme: String,
    /// Read from the cache.
    pub cache_read: Tokens,
    /// Written to it.
    pub cache_written: Tokens,
    /// As so many uncached input tokens would, without what the agent writes.
    pub input_equivalents: Span<Tokens>,
    /// In money, with what the agent writes; nothing where a price is unknown.
    pub dollars: Option<Span<Usd>>,
    /// Input equivalents before they are rounded, in thousandths.
    #[serde(skip)]
    thousandths: Span<u64>,
}

/// What live models will be asked in the run itself: the money that is really spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spend {
    /// Requests.
    pub calls: u64,
    /// Tokens of their prompts, without the questions of probes.
    pub input_tokens: Tokens,
    /// Tokens of the answers.
    pub output_tokens: Span<Tokens>,
    /// In money, with nothing read from a cache; nothing where a price is unknown.
    pub dollars: Option<Span<Usd>>,
    /// Answers that a live judge may be asked about: these are not priced.
    pub judged_at_most: u64,
}

/// Everything that is forecast of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// `full` first, then the strategies in the order of the manifest.
    pub arms: Vec<ArmForecast>,
    /// What the run itself spends.
    pub spend: Spend,
}

impl Forecast {
    /// Sums cells up. `price_of` knows the prices of the models of the run itself; a reader's answer
    /// has at most `longest_answer` tokens.
    pub fn of(
        manifest: &Manifest,
        cells: &[ForecastCell],
        price_of: impl Fn(&str) -> Option<PerToken>,
        longest_answer: Tokens,
    ) -> Self {
        let mut arms: Vec<ArmForecast> = Vec::new();
        let names = manifest.strategies.iter().map(|entry| entry.name.as_str());
        for name in std::iter::once("full").chain(names) {
            let own: Vec<&ForecastCell> = cells
                .iter()
                .filter(|cell| cell.record.strategy == name)
                .collect();
            arms.push(ArmForecast::of(manifest, name, &own, cells));
        }
        Self {
            arms,
            spend: Spend::of(manifest, cells, price_of, longest_answer),
        }
    }
}

impl ArmForecast {
    fn of(manifest: &Manifest, name: &str, own: &[&ForecastCell], all: &[ForecastCell]) -> Self {
        let is_live = manifest.summariser.kind == ModelKind::Live;
        let mut arm = Self {
            strategy: name.to_owned(),
            cells: own.len(),
            broken: 0,
            agent_calls: 0,
            strategy_calls: 0,
            input_tokens: Tokens::ZERO,
            agent_output: Tokens::ZERO,
            strategy_output: Span::default(),
            costs: Vec::new(),
        };
        for cell in own {
            let record = &cell.record;
            let prompts: Tokens = record.prompt_tokens.iter().copied().sum();
            let calls = ModelCalls::of(record).total();
            let output = written(cell, is_live);
            let usages = on_the_bill(record).map(|(_, usage)| usage.prompt());
            arm.broken += usize::from(record.end != crate::record::End::Completed);
            arm.agent_calls += record.prompt_tokens.len();
            arm.strategy_calls += calls.calls;
            arm.input_tokens += prompts + usages.sum();
            arm.strategy_output += output;
            let full = all.iter().map(|cell| &cell.record);
            let mut full = full.filter(|other| other.session == record.session);
            let Some(full) = full.find(|other| other.arm == Arm::Reference) else {
                continue;
            };
            let sent = full.output_tokens.iter().take(record.prompt_tokens.len());
            arm.agent_output += sent.copied().sum();
            let price = price_of_session(manifest, &record.session);
            for (at, cost) in SchemeCost::of(record, full).iter().enumerate() {
                let forecast = CostForecast::of(record, cost, output, price);
                match arm.costs.get_mut(at) {
                    Some(sum) => sum.add(&forecast),
                    None => arm.costs.push(forecast),
                }
            }
        }
        arm
    }
}

impl CostForecast {
    fn of(
        record: &CellRecord,
        cost: &SchemeCost,
        output: Span<Tokens>,
        price: Option<&PriceEntry>,
    ) -> Self {
        let total = cost.total();
        let strategy = cost.compaction + cost.background + cost.recovery;
        let rates = record.prompt_cache.iter();
        let rates = rates
            .filter(|cache| cache.scheme == cost.scheme)
            .map(|cache| cache.rates);
        let rate = rates.map(|rates| u64::from(rates.output)).next();
        let thousandths = output.map(|output| {
            let rate = rate.unwrap_or_default();
            let without = cost.cost - strategy.output.0.saturating_mul(rate).min(cost.cost);
            without + output.0.saturating_mul(rate)
        });
        let dollars = |output: Tokens| {
            let output = total.output - strategy.output + output;
            price?.per_token.cost(&Usage { output, ..total })
        };
        Self {
            scheme: cost.scheme.clone(),
            cache_read: total.cache_read,
            cache_written: total.cache_write_5m + total.cache_write_1h,
            input_equivalents: thousandths.map(rounded),
            thousandths,
            dollars: whole(output.map(dollars)),
        }
    }

    fn add(&mut self, other: &Self) {
        self.cache_read += other.cache_read;
        self.cache_written += other.cache_written;
        self.thousandths += other.thousandths;
        self.input_equivalents = self.thousandths.map(rounded);
        self.dollars = self
            .dollars
            .zip(other.dollars)
            .map(|(sum, more)| sum + more);
    }
}

impl Spend {
    fn of(
        manifest: &Manifest,
        cells: &[ForecastCell],
        price_of: impl Fn(&str) -> Option<PerToken>,
        longest_answer: Tokens,
    ) -> Self {
        let mut spend = Self {
            dollars: Some(Span::default()),
            ..Self::default()
        };
        if manifest.summariser.kind == ModelKind::Live {
            let price = price_of(&manifest.summariser.name);
            for cell in cells {
                let asked = on_the_bill(&cell.record);
                for (number, usage) in asked.filter(|(number, _)| cell.asks.contains_key(number)) {
                    let most = cell.asks.get(&number).copied().unwrap_or_default();
                    let output = Span {
                        low: Tokens::ZERO,
                        expected: usage.output.min(most),
                        high: most,
                    };
                    spend.add(1, usage.prompt(), output, price);
                }
            }
        }
        if manifest.reader.kind == ModelKind::Live {
            let price = price_of(&manifest.reader.name);
            let answer = Span {
                low: Tokens::ZERO,
                expected: longest_answer,
                high: longest_answer,
            };
            for cell in cells {
                for (call, probes) in &cell.probes {
                    let Some(prompt) = cell.record.prompt_tokens.get(*call) else {
                        continue;
                    };
                    for _ in 0..*probes {
                        spend.add(1, *prompt, answer, price);
                    }
                    // The floor is asked the same of the system prompt alone.
                    if cell.record.arm == Arm::Reference {
                        for _ in 0..*probes {
                            spend.add(1, cell.record.fixed_tokens, answer, price);
                        }
                    }
                }
            }
        }
        let is_judged = manifest
            .judge
            .as_ref()
            .is_some_and(|judge| judge.kind == ModelKind::Live);
        if is_judged {
            let asked = |cell: &ForecastCell| {
                let own: u64 = cell.probes.values().sum();
                // The floor's answers are judged too.
                own * (1 + u64::from(cell.record.arm == Arm::Reference))
            };
            spend.judged_at_most = cells.iter().map(asked).sum();
        }
        spend
    }

    /// Adds requests that read so much and write so much.
    pub fn add(
        &mut self,
        calls: u64,
        input: Tokens,
        output: Span<Tokens>,
        price: Option<PerToken>,
    ) {
        self.calls += calls;
        self.input_tokens += input;
        self.output_tokens += output;
        let cost = output.map(|output| price?.cost(&Usage::uncached(input, output)));
        self.dollars = self.dollars.zip(whole(cost)).map(|(sum, more)| sum + more);
    }
}

/// Thousandths of a token as whole tokens.
fn rounded(thousandths: u64) -> Tokens {
    Tokens(thousandths.div_ceil(1_000))
}

/// The strategy's calls, with their numbers among all of the cell's.
fn on_the_bill(record: &CellRecord) -> impl Iterator<Item = (usize, Usage)> {
    let calls = record.model_calls.iter().enumerate();
    calls
        .filter(|(_, call)| is_on_the_bill(call.purpose))
        .map(|(number, call)| (number, call.usage))
}

/// What is written for a strategy. A deterministic model writes what it writes.
fn written(cell: &ForecastCell, is_live: bool) -> Span<Tokens> {
    let mut span = Span::default();
    for (number, usage) in on_the_bill(&cell.record) {
        span += match cell.asks.get(&number) {
            Some(most) if is_live => Span {
                low: Tokens::ZERO,
                expected: usage.output,
                high: (*most).max(usage.output),
            },
            Some(_) | None => Span::exact(usage.output),
        };
    }
    span
}

fn price_of_session<'a>(manifest: &'a Manifest, session: &str) -> Option<&'a PriceEntry> {
    let mut sessions = manifest.sessions.iter();
    let found = sessions.find(|entry| entry.id == session)?;
    found.price.as_ref()
}

fn whole(span: Span<Option<Usd>>) -> Option<Span<Usd>> {
    Some(Span {
        low: span.low?,
        expected: span.expected?,
        high: span.high?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;
    use crate::record::{Asks, ModelCall, ModelEntry};

    fn entry(kind: ModelKind) -> ModelEntry {
        ModelEntry {
            name: "m".to_owned(),
            kind,
        }
    }

    fn manifest(summariser: ModelKind, reader: ModelKind) -> Manifest {
        let manifest = serde_json::json!({
            "format": "proctor-run", "version": 1, "proctor": "0", "fingerprint": "", "scenario": "s",
            "counter": "chars/4", "seed": 1, "window": "native", "summariser": entry(summariser),
            "reader": entry(reader), "judge": null, "sessions": [],
            "strategies": [{ "name": "s", "description": "", "toml": "" }], "repeats": 1,
        });
        serde_json::from_value(manifest).unwrap()
    }

    /// One cell with a summary of 200 tokens in and 10 out, of which 100 are allowed, and a recorded
    /// one of 300 in and 30 out.
    fn cell(arm: &str) -> ForecastCell {
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "a", "strategy": if arm == "reference" { "full" } else { "s" }, "repeat": 0,
            "arm": arm, "end": { "end": "completed" }, "planned_calls": 2, "reached_calls": 2,
            "window": null, "fixed_tokens": 40, "prompt_tokens": [1_000, 2_000], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
        });
        let mut record: CellRecord = serde_json::from_value(record).unwrap();
        let mut asks = Asks::new();
        if arm == "strategy" {
            let call = |input, output| ModelCall {
                call: 1,
                purpose: Purpose::Compaction,
                usage: Usage::uncached(Tokens(input), Tokens(output)),
                failure: None,
                key: None,
            };
            record.model_calls = vec![call(200, 10), call(300, 30)];
            asks.insert(0, Tokens(100));
        }
        ForecastCell {
            record,
            asks,
            probes: [(1, 3)].into_iter().collect(),
        }
    }

    fn forecast(summariser: ModelKind, reader: ModelKind) -> Forecast {
        let price = PerToken {
            input: Some(Usd(1)),
            output: Some(Usd(10)),
            ..PerToken::default()
        };
        Forecast::of(
            &manifest(summariser, reader),
            &[cell("reference"), cell("strategy")],
            |model| (model == "m").then_some(price),
            Tokens(1_024),
        )
    }

    #[track_caller]
    fn check(spend: &Spend, calls: u64, input: u64, dollars: [u64; 3]) {
        let [low, expected, high] = dollars.map(Usd);
        let span = Span {
            low,
            expected,
            high,
        };
        assert_eq!((spend.calls, spend.input_tokens.0), (calls, input));
        assert_eq!(spend.dollars, Some(span));
    }

    #[test]
    fn only_what_a_live_model_writes_is_a_range() {
        use ModelKind::{Deterministic, Live};
        let offline = forecast(Deterministic, Deterministic);
        let live = forecast(Live, Deterministic);
        let output = |forecast: &Forecast| forecast.arms[1].strategy_output;
        assert_eq!(output(&offline), Span::exact(Tokens(40)));
        // The recorded answer is what it is; the other one may be empty, or as long as allowed.
        let range = Span {
            low: Tokens(30),
            expected: Tokens(40),
            high: Tokens(130),
        };
        assert_eq!(output(&live), range);
        assert_eq!(offline.arms[1].input_tokens, Tokens(3_000 + 500));
        check(&offline.spend, 0, 0, [0, 0, 0]);
        check(&live.spend, 1, 200, [200, 300, 1_200]);
    }

    #[test]
    fn a_live_reader_is_asked_every_probe_of_every_arm_the_floor_included() {
        use ModelKind::{Deterministic, Live};
        let spend = forecast(Deterministic, Live).spend;
        // Three of the reference, three of the floor, three of the strategy.
        let input = 3 * 2_000 + 3 * 40 + 3 * 2_000;
        let most = input + 9 * 10 * 1_024;
        check(&spend, 9, input, [input, most, most]);
    }

    #[test]
    fn a_price_nobody_knows_is_no_price_of_nothing() {
        let manifest = manifest(ModelKind::Live, ModelKind::Deterministic);
        let cells = [cell("reference"), cell("strategy")];
        let spend = Forecast::of(&manifest, &cells, |_| None, Tokens(1_024)).spend;
        assert_eq!((spend.calls, spend.dollars), (1, None));
    }
}
