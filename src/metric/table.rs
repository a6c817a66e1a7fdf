//! The table of metrics: their texts from `metrics.toml`, and the function of each.
//!
//! The comparison, the files for programs and the documentation are made from it.

use std::sync::LazyLock;

use serde::Deserialize;

use super::answers::Scope;
use super::cost::SchemeCost;
use super::pool::Formula::{self, Count, Largest, Mean, Nothing, Pool, Tokens};
use super::pool::{PooledValue, counted};
use super::tokens::Savings;
use super::{Metric, compaction, completion, cost, fidelity, summaries, survival, tokens, trail};

/// Every metric, in the order of the documentation.
pub static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let mut metrics = Texts::read().metric;
    for metric in &mut metrics {
        metric.function = function(metric.name);
    }
    metrics
});

/// Metrics with a table of their own, named as their columns there.
pub static DETAILS: LazyLock<Vec<Metric>> = LazyLock::new(|| Texts::read().detail);

/// The order of the columns of a cell in tables for programs.
pub(crate) static CELL_COLUMNS: LazyLock<Vec<&str>> =
    LazyLock::new(|| Texts::read().cells.split_whitespace().collect());

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    cells: &'static str,
    metric: Vec<Metric>,
    detail: Vec<Metric>,
}

impl Texts {
    /// A test reads them, so that there are always some.
    fn read() -> Self {
        toml::from_str(include_str!("metrics.toml")).unwrap_or_default()
    }
}

/// How a metric is computed from the cells of a strategy.
fn function(metric: &str) -> Formula {
    match metric {
        "completion" => Pool(completion::pooled),
        "fired" => Pool(|cells, _| Some(compaction::fired(cells))),
        "tasks_solved" => Mean(|cell| counted(cell.score, 1)),
        "token_savings" => Mean(|cell| tokens::compared(cell, Savings::share)),
        "cost_savings" => Mean(|cell| cost::under_first_bill(cell, SchemeCost::share)),
        "cost_savings_edge" => Mean(cost::edge_savings),
        "token_savings_of_totals" => Pool(tokens::savings_of_totals),
        "token_savings_without_calls" => {
            Mean(|cell| tokens::compared(cell, Savings::share_without_calls))
        }
        "peak_prompt" => Largest(|cell| cell.peak_prompt),
        "area" => Tokens(|cell| Some(cell.area)),
        "cache_read_share" => Mean(|cell| cost::under_first_bill(cell, SchemeCost::read_share)),
        "cache_broken" => Tokens(|cell| Some(cell.costs.first()?.broken())),
        "cache_again" => Tokens(|cell| Some(cell.costs.first()?.resent)),
        "broke_even" => Pool(cost::broke_even),
        "survival" => Pool(|cells, _| survival::corrected(cells).map(PooledValue::Estimate)),
        "survival_compacted" => {
            Pool(|cells, _| survival::compacted(cells).map(PooledValue::Estimate))
        }
        "survival_reachable" => Mean(|cell| cell.survival.reachable.counted()),
        "accuracy" => Mean(|cell| cell.accuracy(Scope::Context)?.score.counted()),
        "fidelity" => Pool(fidelity::pooled),
        "action_support" => Mean(|cell| counted(cell.support.share(), cell.support.wanted)),
        "action_support_compacted" => Mean(|cell| {
            counted(
                cell.support.compacted_share(),
                cell.support.compacted_wanted,
            )
        }),
        "action_reachable" => {
            Mean(|cell| counted(cell.support.reachable_share(), cell.support.wanted))
        }
        "retained" => Mean(|cell| Some((cell.retained?, cell.compactions()))),
        "headroom" => Mean(|cell| Some((cell.headroom?, cell.compactions()))),
        "compactions" => Count(|cell| Some(cell.compactions())),
        "strategy_calls" => Count(|cell| Some(cell.model_calls.total().calls)),
        "failed_calls" => Count(|cell| Some(cell.context_pressure.failed_calls)),
        "retried_calls" => Count(|cell| Some(cell.context_pressure.retried_calls)),
        "wasted_calls" => Count(|cell| Some(cell.context_pressure.wasted_calls)),
        "strategy_tokens" => Tokens(|cell| Some(cell.model_calls.total().tokens)),
        "summary_tokens" => Pool(summaries::pooled),
        "net_savings" => Mean(|cell| {
            let savings = cell.savings?;
            Some((cell.rereads?.net_savings(&savings)?, savings.calls))
        }),
        "reread_calls" => Count(|cell| Some(cell.rereads?.calls)),
        "trail_f1" => Mean(|cell| trail::share_of(cell, trail::f1, |it| it.touched)),
        "trail_precision" => {
            Mean(|cell| trail::share_of(cell, trail::precision, |it| it.mentioned))
        }
        "trail_recall" => Mean(|cell| trail::share_of(cell, trail::recall, |it| it.touched)),
        "unsupported_atoms" => Mean(trail::unsupported_atoms),
        "rejected" => Count(|cell| Some(cell.findings.rejected)),
        "warnings" => Count(|cell| Some(cell.findings.warnings)),
        "overflows" => Count(|cell| Some(cell.findings.overflows)),
        "warned_calls" => Count(|cell| Some(cell.context_pressure.warned_calls)),
        "auto_compact_calls" => Count(|cell| Some(cell.context_pressure.auto_compact_calls)),
        "blocking_calls" => Count(|cell| Some(cell.context_pressure.blocking_calls)),
        "blocked_turns" => Count(|cell| Some(cell.context_pressure.blocked_turns)),
        "blocked_agents" => Count(|cell| Some(cell.context_pressure.blocked_agents)),
        "thrash" => Count(|cell| Some(cell.context_pressure.thrash)),
        "retriggered" => Count(|cell| Some(cell.context_pressure.retriggered)),
        "next_call" => Count(|cell| Some(cell.context_pressure.next_call)),
        "futile" => Count(|cell| Some(cell.context_pressure.futile)),
        "unseen_altered" => Count(|cell| Some(cell.context_pressure.unseen_altered)),
        "unseen_reachable" => Count(|cell| Some(cell.context_pressure.unseen_reachable)),
        "unseen_gone" => Count(|cell| Some(cell.context_pressure.unseen_gone)),
        "agent_failures" => Count(|cell| Some(cell.context_pressure.agent_failures)),
        _ => Nothing,
    }
}
