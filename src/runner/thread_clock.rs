//! Processor time of a thread, by which work is measured.

use std::time::Duration;

use crate::replay::CpuClock;

/// Processor time of the calling thread. Systems other than Unix are not asked: every time is 0 there.
pub(super) struct ThreadClock;

impl CpuClock for ThreadClock {
    #[cfg(unix)]
    fn now(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    }

    #[cfg(not(unix))]
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}
