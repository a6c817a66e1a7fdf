//! Assumptions that a bill rests on, and what it would be under another one.
//!
//! An alternative is computed from a cell as it is: its prompts, and the calls at which its strategy fires,
//! are held fixed.

use super::cost::{BillBasis, SchemeCost};
use super::prelude::*;
use crate::naming::base_name;
use crate::record::words::Placement;
use crate::units::Usd;

/// The bill of a cell under another assumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The assumption: `at a read price of 0.1 of input`.
    pub words: String,
    /// The bill of the cell.
    pub own: Usd,
    /// That of full history over the same calls.
    pub reference: Usd,
}

/// Tokens of the real summaries of a product, for strategies of four or more. Claude Code's: the outputs of all
/// compactions in recordings of the product that say what they wrote.
const MEASURED: &[(&str, &[u64])] = &[("claude-code", &[2_568, 2_892, 4_322, 5_208])];

/// The bills of a cell under other assumptions, beside its [`dollars`](CellSummary::dollars); none for an assumption
/// that changes nothing for this cell, or where a price is unknown. `summariser` wrote the summaries.
pub fn alternatives(cell: &CellSummary, summariser: ModelKind) -> Vec<Alternative> {
    let Some(cost) = cell.costs.first().filter(|cost| !cost.is_billed()) else {
        return Vec::new();
    };
    let mut found = cache_reads(cell, cost);
    found.extend(breakpoints(cell, cost));
    found.extend(cache_lifetime(cell, cost));
    if summariser != ModelKind::Live {
        found.extend(summary_length(cell, cost));
    }
    let assumed = (cell.dollars(), cell.reference_dollars());
    found.retain(|other| (Some(other.own), Some(other.reference)) != assumed);
    found
}

/// Where the client puts its cache breakpoints is not recorded.
fn breakpoints(cell: &CellSummary, cost: &SchemeCost) -> Option<Alternative> {
    let (placement, words) = match cost.placement {
        Placement::Usual | Placement::Ideal => (Placement::Edge, "with breakpoints at the edge"),
        Placement::Edge => (Placement::Usual, "with the usual breakpoints"),
    };
    under(cell, &BillBasis::Own(placement), words)
}

/// How long Anthropic's cache keeps a prefix depends on the client.
fn cache_lifetime(cell: &CellSummary, cost: &SchemeCost) -> Option<Alternative> {
    let (scheme, words) = match cost.scheme.as_str() {
        "anthropic-5m" => ("anthropic-1h", "with a cache of 1 hour"),
        "anthropic-1h" => ("anthropic-5m", "with a cache of 5 minutes"),
        _ => return None,
    };
    under(cell, &BillBasis::Fixed(scheme.to_owned()), words)
}

fn under(cell: &CellSummary, bill: &BillBasis, words: &str) -> Option<Alternative> {
    let prices = &cell.price.as_ref()?.per_token;
    let cost = SchemeCost::under_bill(&cell.costs, bill)?;
    Some(Alternative {
        words: words.to_owned(),
        own: cost.dollars(prices)?,
        reference: cost.reference_dollars(prices)?,
    })
}

/// The same tokens at the lowest and the highest share of input that a read costs at the provider's models.
fn cache_reads(cell: &CellSummary, cost: &SchemeCost) -> Vec<Alternative> {
    let mut ends: Vec<u32> =
        cell.price.as_ref().and_then(|price| price.read_shares).into_iter().flatten().collect();
    ends.dedup();
    ends.into_iter().filter_map(|share| cache_read(cell, cost, share)).collect()
}

/// The same tokens where a read costs this share of input, in thousandths.
fn cache_read(cell: &CellSummary, cost: &SchemeCost, share: u32) -> Option<Alternative> {
    let mut prices = cell.price.as_ref()?.per_token;
    // A price that is not known is not assumed.
    prices.cache_read?;
    let read = prices.input?.0.saturating_mul(share.into()) / 1_000;
    prices.cache_read = Some(Usd(read));
    Some(Alternative {
        words: format!("at a read price of {} of input", f64::from(share) / 1_000.0),
        own: cost.dollars(&prices)?,
        reference: cost.reference_dollars(&prices)?,
    })
}

/// Each summary as long as the measured ones on average. What it is longer or shorter is output once, written to
/// the cache at the first call of the agent that it is part of, and read at the others, until the next one.
fn summary_length(cell: &CellSummary, cost: &SchemeCost) -> Option<Alternative> {
    let base = base_name(&cell.strategy);
    let (_, lengths) = MEASURED.iter().find(|(name, _)| *name == base)?;
    let measured = lengths.iter().sum::<u64>() / lengths.len() as u64;
    let rates = cost.prices.rates;
    let [write, read] = [rates.write.unwrap_or(1_000), rates.read].map(i128::from);
    // In thousandths of an input token.
    let mut change = 0_i128;
    let summaries = &cell.summaries;
    for (at, summary) in summaries.iter().enumerate() {
        if summary.call >= cost.calls && cost.calls < cell.completion.reached {
            continue;
        }
        let next = summaries.get(at + 1).map_or(cost.calls, |next| next.call);
        let calls = next.min(cost.calls).saturating_sub(summary.call) as i128;
        let output = match &summary.model {
            None => rates.output.into(),
            Some(model) => {
                let price = cost.prices.other_models.get(model).copied().flatten();
                i128::from(price?.output)
            }
        };
        let first = if calls > 0 { write - read } else { 0 };
        let longer = i128::from(measured) - i128::from(summary.tokens.0);
        change += longer * (output + first + calls * read);
    }
    let input = cell.price.as_ref()?.per_token.input?;
    let own = i128::from(cell.dollars()?.0) + change * i128::from(input.0) / 1_000;
    let hundreds = (measured + 50) / 100;
    let (thousands, hundreds) = (hundreds / 10, hundreds % 10);
    Some(Alternative {
        words: format!("with summaries of {thousands},{hundreds}00 tokens, as measured"),
        own: Usd(u64::try_from(own).unwrap_or(0)),
        reference: cell.reference_dollars()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::words::{PerToken, Rates};
    use crate::record::{CacheRecord, ModelCall, PriceEntry};
    use crate::units::Usage;

    /// Nano-dollars for a token: a write costs 1.25 and, for an hour, 2 times the input.
    fn prices(read: u64) -> PerToken {
        PerToken {
            input: Some(Usd(1_000)),
            cache_write_5m: Some(Usd(1_250)),
            cache_write_1h: Some(Usd(2_000)),
            cache_read: Some(Usd(read)),
            output: Some(Usd(5_000)),
            ..PerToken::default()
        }
    }

    /// Three prompts with answers of 10 tokens, all of them cached; under each scheme, what was read of each.
    fn cell(prompts: [u64; 3], schemes: &[(&str, Placement, [u64; 3])]) -> CellRecord {
        let mut cell = CellRecord {
            strategy: "claude-code[summarize.keep_last=2]".to_owned(),
            planned_calls: 3,
            reached_calls: 3,
            prompt_tokens: prompts.map(Tokens).to_vec(),
            output_tokens: vec![Tokens(10); 3],
            ..CellRecord::default()
        };
        for (scheme, placement, read) in schemes {
            let lives_long = *scheme == "anthropic-1h";
            cell.prompt_cache.push(CacheRecord {
                scheme: (*scheme).to_owned(),
                placement: *placement,
                rates: Rates {
                    write: Some(if lives_long { 2_000 } else { 1_250 }),
                    read: 100,
                    output: 5_000,
                    long_prompts: None,
                },
                ttl_seconds: Some(if lives_long { 3_600 } else { 300 }),
                read: read.map(Tokens).to_vec(),
                written: vec![
                    Tokens(prompts[0] - read[0]),
                    Tokens(prompts[1] - read[1]),
                    Tokens(prompts[2] - read[2]),
                ],
                ..CacheRecord::default()
            });
        }
        cell
    }

    /// A cell that cuts its history after the first call, with summaries before these calls.
    fn summary(summaries: &[(usize, u64)], read: u64, first: &str) -> CellSummary {
        let (usual, edge) = (Placement::Usual, Placement::Edge);
        let mut own = vec![
            ("anthropic-5m", usual, [0, 0, 50]),
            ("anthropic-5m", edge, [0, 40, 50]),
            ("anthropic-1h", usual, [0, 0, 50]),
            ("auto-prefix", usual, [0, 0, 50]),
        ];
        let mut full = own.clone();
        for (.., read) in &mut full {
            *read = [0, 100, 200];
        }
        own.sort_by_key(|(scheme, ..)| *scheme != first);
        let mut own = cell([100, 50, 60], &own);
        for (call, tokens) in summaries {
            own.model_calls.push(ModelCall {
                call: *call,
                purpose: Purpose::Compaction,
                usage: Usage::uncached(Tokens::ZERO, Tokens(*tokens)),
                model: None,
                failure: None,
                key: None,
            });
        }
        CellSummary {
            price: Some(PriceEntry {
                model: "m".to_owned(),
                provider: "p".to_owned(),
                date: "2026-01-01".to_owned(),
                document: "d".to_owned(),
                per_token: prices(read),
                read_shares: Some([50, 100]),
                ..PriceEntry::default()
            }),
            ..CellSummary::of(&own, Some(&cell([100, 200, 300], &full)))
        }
    }

    #[track_caller]
    fn check(cell: &CellSummary, assumption: &str, expected: &[(&str, u64, u64)]) {
        let found = alternatives(cell, ModelKind::Deterministic);
        let found = found.iter().filter(|other| other.words.contains(assumption));
        let found: Vec<(&str, u64, u64)> =
            found.map(|other| (&*other.words, other.own.0, other.reference.0)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn breakpoints_stand_at_the_edge_and_a_prefix_lives_for_an_hour() {
        let cell = summary(&[], 100, "anthropic-5m");
        // 160 written, 50 read and 30 answered; of full history 300, 300 and 30.
        let [own, full] = [200_000 + 5_000 + 150_000, 375_000 + 30_000 + 150_000];
        assert_eq!(cell.dollars(), Some(Usd(own)));
        assert_eq!(cell.reference_dollars(), Some(Usd(full)));
        let at_edge = 150_000 + 9_000 + 150_000;
        let edge = [("with breakpoints at the edge", at_edge, full)];
        check(&cell, "breakpoints", &edge);
        let [longer, full] = [320_000 + 5_000 + 150_000, 600_000 + 30_000 + 150_000];
        let hour = [("with a cache of 1 hour", longer, full)];
        check(&cell, "with a cache", &hour);
        // Where it lives for an hour, for five minutes; another scheme has neither, and no edge.
        let long = summary(&[], 100, "anthropic-1h");
        let minutes = [("with a cache of 5 minutes", own, 555_000)];
        check(&long, "with a cache", &minutes);
        let other = summary(&[], 100, "auto-prefix");
        check(&other, "with a cache", &[]);
        check(&other, "breakpoints", &[]);
    }

    #[test]
    fn a_read_costs_what_it_costs_at_the_other_end_or_at_both() {
        let [low, high] =
            ["0.05", "0.1"].map(|price| format!("at a read price of {price} of input"));
        // 50 tokens are read, and 300 under full history.
        let cheap = (&*low, 350_000 + 2_500, 525_000 + 15_000);
        let dear = (&*high, 350_000 + 5_000, 525_000 + 30_000);
        let scheme = "anthropic-5m";
        check(&summary(&[], 100, scheme), "read price", &[cheap]);
        check(&summary(&[], 50, scheme), "read price", &[dear]);
        check(&summary(&[], 25, scheme), "read price", &[cheap, dear]);
        let mut unknown = summary(&[], 100, scheme);
        unknown.price.as_mut().unwrap().read_shares = None;
        check(&unknown, "read price", &[]);
    }

    #[test]
    fn summaries_are_as_long_as_the_products_own_until_the_next_one() {
        let words = "with summaries of 3,700 tokens, as measured";
        let assumption = "summaries";
        // 2,747 tokens more: answered, written at the second call, and read at the third.
        let one = summary(&[(1, 1_000)], 100, "anthropic-5m");
        let more = 2_747 * (5_000 + 1_250 + 100);
        check(&one, assumption, &[(words, 5_355_000 + more, 555_000)]);
        // The second one takes its place, and is 1,253 tokens shorter.
        let two = summary(&[(1, 1_000), (2, 5_000)], 100, "anthropic-5m");
        let more = (2_747 - 1_253) * (5_000 + 1_250);
        check(&two, assumption, &[(words, 30_355_000 + more, 555_000)]);
        // A model's own summaries are what they are; none are assumed of other products, or where none was written.
        let live = alternatives(&one, ModelKind::Live);
        assert!(live.iter().all(|other| other.words != words));
        let mut other = one.clone();
        other.strategy = "codex".to_owned();
        check(&other, assumption, &[]);
        check(&summary(&[], 100, "anthropic-5m"), assumption, &[]);
    }

    #[test]
    fn without_a_price_there_is_no_alternative() {
        let mut cell = summary(&[(1, 1_000)], 100, "anthropic-5m");
        cell.price = None;
        check(&cell, "", &[]);
    }
}
