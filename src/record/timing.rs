//! Measured times of one cell: the only bytes of a run folder that may differ between two runs.

use serde::{Deserialize, Serialize};

/// Processor time of one cell, in nanoseconds: one line of `timings.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Everything: strategy, observers, probes.
    pub cell_cpu_ns: u64,
    /// The strategy's own code, over all calls; its model calls left out.
    pub strategy_cpu_ns: u64,
    /// The same at one call, in the median of the calls.
    pub p50_ns: u64,
    /// The same at one call, at the 95th percentile of the calls.
    pub p95_ns: u64,
}
