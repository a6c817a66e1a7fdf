//! Cells and probe items as rows: what tables for programs hold, whatever their format.
//!
//! A column is a name and how it is read, so that what stands under a name is of one kind in every format. Shares
//! are fractions of 1.

use super::{ItemOutcome, figure};
use crate::metric::CellSummary;
use crate::metric::answers::Answers;
use crate::metric::cost::{Bill, SchemeCost};
use crate::model::price::Placement;
use crate::probe::Verdict;
use crate::record::Arm;

/// A column of rows made from `T`.
#[derive(Debug)]
pub struct Column<T> {
    /// Its name, unique in its table; it never changes its meaning.
    pub name: &'static str,
    /// How it is read.
    pub read: Read<T>,
}

/// How a value is read, and so of what kind it is; nothing where nobody measured it.
#[derive(Debug)]
pub enum Read<T> {
    /// Words, as they were recorded: to be escaped where somebody would obey them.
    Text(fn(&T) -> Option<String>),
    /// A whole number, at least 0.
    Count(fn(&T) -> Option<i64>),
    /// Any other number.
    Number(fn(&T) -> Option<f64>),
}

impl<T> Column<T> {
    const fn text(name: &'static str, read: fn(&T) -> Option<String>) -> Self {
        let read = Read::Text(read);
        Self { name, read }
    }

    const fn count(name: &'static str, read: fn(&T) -> Option<i64>) -> Self {
        let read = Read::Count(read);
        Self { name, read }
    }

    const fn number(name: &'static str, read: fn(&T) -> Option<f64>) -> Self {
        let read = Read::Number(read);
        Self { name, read }
    }
}

/// One row per cell.
pub const CELLS: &[Column<CellSummary>] = &[
    Column::text("session", |cell| Some(cell.session.clone())),
    Column::text("strategy", |cell| Some(cell.strategy.clone())),
    Column::count("repeat", |cell| count(cell.repeat)),
    Column::text("arm", |cell| Some(arm(cell.arm))),
    Column::count("calls_planned", |cell| count(cell.completion.planned)),
    Column::count("calls_reached", |cell| count(cell.completion.reached)),
    Column::count("died_at", |cell| cell.completion.died_at.and_then(count)),
    Column::count("failed_at", |cell| {
        cell.completion.failed_at.and_then(count)
    }),
    Column::number("token_savings", |cell| cell.savings?.share()),
    Column::number("token_savings_without_calls", |cell| {
        cell.savings?.share_without_calls()
    }),
    Column::count("calls_compared", |cell| count(cell.savings?.calls)),
    Column::count("prompt_tokens", |cell| count(cell.savings?.prompts.0)),
    Column::count("strategy_tokens_compared", |cell| {
        count(cell.savings?.strategy.0)
    }),
    Column::count("reference_tokens", |cell| count(cell.savings?.reference.0)),
    Column::text("cache_scheme", |cell| Some(cost(cell)?.scheme.clone())),
    Column::number("cost_savings", |cell| cost(cell)?.share()),
    Column::number("cost_savings_edge", |cell| {
        SchemeCost::under_bill(&cell.costs, &Bill::Own(Placement::Edge))?.share()
    }),
    Column::count("cost_thousandths", |cell| count(cost(cell)?.cost)),
    Column::count("reference_cost_thousandths", |cell| {
        count(cost(cell)?.reference_cost)
    }),
    Column::number("cache_read_share", |cell| cost(cell)?.read_share()),
    Column::count("tokens_uncached", |cell| {
        count(cost(cell)?.total().input_uncached.0)
    }),
    Column::count("tokens_cache_written", |cell| {
        let total = cost(cell)?.total();
        count((total.cache_write_5m + total.cache_write_1h).0)
    }),
    Column::count("tokens_cache_read", |cell| {
        count(cost(cell)?.total().cache_read.0)
    }),
    Column::count("cache_broken", |cell| count(cost(cell)?.broken().0)),
    Column::count("cache_again", |cell| count(cost(cell)?.again.0)),
    Column::count("break_even_call", |cell| {
        cost(cell)?.break_even.and_then(count)
    }),
    Column::count("peak_prompt", |cell| count(cell.peak_prompt?.0)),
    Column::number("survival_uncorrected", |cell| {
        cell.survival.planted().mean()
    }),
    Column::count("survival_items", |cell| {
        count(cell.survival.planted().items)
    }),
    Column::number("survival_compacted_uncorrected", |cell| {
        cell.survival.compacted.mean()
    }),
    Column::count("survival_compacted_items", |cell| {
        count(cell.survival.compacted.items)
    }),
    Column::number("decoys_found", |cell| cell.survival.decoys().mean()),
    Column::count("decoy_items", |cell| count(cell.survival.decoys().items)),
    Column::number("extract", |cell| answered(cell)?.extract),
    Column::number("accuracy", |cell| answered(cell)?.accuracy),
    Column::count("answers_scored", |cell| count(answered(cell)?.scored)),
    Column::count("answers_unscored", |cell| count(answered(cell)?.unscored)),
    Column::number("action_support", |cell| cell.support.share()),
    Column::count("action_atoms", |cell| count(cell.support.wanted)),
    Column::number("action_support_compacted", |cell| {
        cell.support.compacted_share()
    }),
    Column::count("action_atoms_compacted", |cell| {
        count(cell.support.compacted_wanted)
    }),
    Column::count("compactions", |cell| count(cell.compactions())),
    Column::number("retained", |cell| cell.retained),
    Column::count("strategy_calls", |cell| {
        count(cell.model_calls.total().calls)
    }),
    Column::count("strategy_calls_failed", |cell| {
        count(cell.model_calls.total().failed)
    }),
    Column::count("strategy_tokens", |cell| {
        count(cell.model_calls.total().tokens.0)
    }),
    Column::count("rejected", |cell| count(cell.findings.rejected)),
    Column::count("warnings", |cell| count(cell.findings.warnings)),
    Column::count("overflows", |cell| count(cell.findings.overflows)),
    Column::count("blocked_turns", |cell| count(cell.strain.blocked_turns)),
    Column::count("blocked_agents", |cell| count(cell.strain.blocked_agents)),
    Column::count("thrash", |cell| count(cell.strain.thrash)),
    Column::count("futile", |cell| count(cell.strain.futile)),
    Column::count("retriggered", |cell| count(cell.strain.retriggered)),
    Column::count("unseen_altered", |cell| count(cell.strain.unseen_altered)),
    Column::count("unseen_reachable", |cell| {
        count(cell.strain.unseen_reachable)
    }),
    Column::count("unseen_gone", |cell| count(cell.strain.unseen_gone)),
    Column::count("blocking_calls", |cell| count(cell.strain.blocking_calls)),
    Column::count("auto_compact_calls", |cell| {
        count(cell.strain.auto_compact_calls)
    }),
    Column::count("warned_calls", |cell| count(cell.strain.warned_calls)),
    Column::count("agent_failures", |cell| count(cell.strain.agent_failures)),
    Column::count("retried_calls", |cell| count(cell.strain.retried_calls)),
    Column::count("wasted_calls", |cell| count(cell.strain.wasted_calls)),
    Column::count("prompt_area", |cell| count(cell.area.0)),
    Column::number("headroom", |cell| cell.headroom),
    Column::number("action_reachable", |cell| cell.support.reachable_share()),
    Column::count("next_call", |cell| count(cell.strain.next_call)),
];

/// One row per probe item of each cell.
pub const ITEMS: &[Column<ItemOutcome>] = &[
    Column::text("session", |item| Some(item.session.clone())),
    Column::text("strategy", |item| Some(item.strategy.clone())),
    Column::count("repeat", |item| count(item.repeat)),
    Column::text("arm", |item| Some(arm(item.arm))),
    Column::text("probe", |item| Some(item.probe.probe.clone())),
    Column::text("kind", |item| Some(item.probe.kind.name().to_owned())),
    Column::count("percent", |item| count(item.probe.percent)),
    Column::count("call", |item| count(item.probe.call)),
    Column::text("fate", |item| {
        Some(figure::fate(item.probe.survival.fate).to_owned())
    }),
    Column::number("survival", |item| Some(item.probe.survival.score)),
    Column::number("survival_compacted", |item| {
        item.probe.survival.compacted_score
    }),
    Column::count("lost_at_call", |item| {
        count(item.probe.survival.lost_at.as_ref()?.call)
    }),
    Column::text("lost_by_stage", |item| {
        Some(item.probe.survival.lost_at.as_ref()?.stage.clone())
    }),
    Column::text("lost_because", |item| {
        Some(item.probe.survival.lost_at.as_ref()?.reason.clone())
    }),
    Column::text("answer", |item| {
        item.probe
            .answer
            .as_ref()?
            .text
            .as_deref()
            .map(str::to_owned)
    }),
    Column::text("outcome", outcome),
    Column::number("score", score),
];

/// A count in the type of tables; nothing above what they can hold, which no session reaches.
fn count(count: impl TryInto<i64>) -> Option<i64> {
    count.try_into().ok()
}

fn arm(arm: Arm) -> String {
    match arm {
        Arm::Reference => "reference",
        Arm::Floor => "floor",
        Arm::Strategy => "strategy",
    }
    .to_owned()
}

/// What it costs under the scheme of the comparison.
fn cost(cell: &CellSummary) -> Option<&SchemeCost> {
    cell.costs.first()
}

/// What a reader made of a cell, whatever kind it is.
struct Answered {
    extract: Option<f64>,
    accuracy: Option<f64>,
    scored: usize,
    unscored: usize,
}

fn answered(cell: &CellSummary) -> Option<Answered> {
    Some(match cell.answers.as_ref()? {
        Answers::Extract(extract) => Answered {
            extract: extract.right_share(),
            accuracy: None,
            scored: extract.scored(),
            unscored: extract.unscored,
        },
        Answers::Accuracy(accuracy) => Answered {
            extract: None,
            accuracy: accuracy.score.mean(),
            scored: accuracy.score.items,
            unscored: accuracy.unscored,
        },
    })
}

fn outcome(item: &ItemOutcome) -> Option<String> {
    let outcome = match item.probe.verdict()? {
        Verdict::Unscored { .. } => "unscored",
        Verdict::Scored { outcome, .. } => figure::outcome(outcome),
    };
    Some(outcome.to_owned())
}

fn score(item: &ItemOutcome) -> Option<f64> {
    match item.probe.verdict()? {
        Verdict::Unscored { .. } => None,
        Verdict::Scored { score, .. } => Some(score),
    }
}
