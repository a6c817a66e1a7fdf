//! The clock that measures a strategy's own code.

use std::time::Duration;

/// Reads the processor time of the calling thread. Measured times are the only thing that may
/// differ between two runs, and never become part of a record.
pub trait CpuClock {
    /// Processor time of the thread so far.
    fn now(&self) -> Duration;
}

/// A clock that stands still: for tests, and where times do not matter.
#[derive(Debug, Clone, Copy)]
pub struct NoClock;

impl CpuClock for NoClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}
