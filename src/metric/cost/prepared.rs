//! Compactions requested in the background, and how long the agent waits for them.

use crate::record::words::Latency;
use crate::units::Usage;

/// A compaction that was asked for in the background, and what the agent did before it was put in place. If the
/// answer took longer than that, the agent waited for the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreparedWork {
    /// How many requests were made for it.
    pub requests: usize,
    /// Their usage; without those to another model, whose pace is not known.
    pub asked: Usage,
    /// The agent's calls until it was put in place.
    pub calls: usize,
    /// Their usage.
    pub meanwhile: Usage,
}

impl PreparedWork {
    /// Milliseconds that the agent waits for it. Tools take time too, which is not modelled: it is at most this.
    pub fn wait_milliseconds(&self, latency: &Latency) -> f64 {
        let asked = latency.milliseconds(self.requests, &self.asked);
        (asked - latency.milliseconds(self.calls, &self.meanwhile)).max(0.0)
    }
}
