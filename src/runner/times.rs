//! What a run takes and may take: measured times, and the limits that end it early.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Connected, Plan};
use crate::record::Timing;
use crate::replay::Replay;

/// What a run may spend, and since when it spends.
pub(super) struct Limits<'a> {
    models: Option<&'a Connected>,
    started: Instant,
    reached: Mutex<Option<String>>,
}

impl<'a> Limits<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self {
            models: plan.models(),
            started: now(),
            reached: Mutex::new(None),
        }
    }

    /// Whether another session may be begun.
    pub(super) fn allow(&self) -> bool {
        let Some(models) = self.models else {
            return true;
        };
        let budget = models.budget();
        let in_time = budget.minutes.is_none_or(|minutes| {
            self.started.elapsed() < Duration::from_secs(minutes.saturating_mul(60))
        });
        let reached = if in_time {
            models.spending().reached(budget)
        } else {
            budget
                .minutes
                .map(|minutes| format!("{minutes} minutes are over"))
        };
        let mut first = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reached) = reached {
            first.get_or_insert(reached);
        }
        first.is_none()
    }

    /// The limit that was reached first, in words.
    pub(super) fn reached(&self) -> Option<String> {
        let first = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        first.clone()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "decides when to flush and when a time limit is over, and nothing else"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Measured times of one cell, in nanoseconds of processor time.
pub(super) fn timing(replay: &Replay) -> Timing {
    let mut times: Vec<u128> = replay.strategy_cpu.iter().map(Duration::as_nanos).collect();
    let total: u128 = times.iter().sum();
    times.sort_unstable();
    let at = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).max(1);
        times.get(rank - 1).copied().unwrap_or(0)
    };
    let short = |time: u128| u64::try_from(time).unwrap_or(u64::MAX);
    Timing {
        session: replay.record.session.clone(),
        strategy: replay.record.strategy.clone(),
        repeat: replay.record.repeat,
        cell_cpu_ns: short(replay.cell_cpu.as_nanos()),
        strategy_cpu_ns: short(total),
        p50_ns: short(at(50)),
        p95_ns: short(at(95)),
    }
}
