//! The request to end early, as Ctrl-C makes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether to end early. All clones of a token are the same request.
#[derive(Debug, Clone, Default)]
pub struct StopToken(Arc<AtomicBool>);

impl StopToken {
    /// How often something that waits looks again.
    pub const POLL: Duration = Duration::from_millis(20);

    /// Requests the end; returns whether that is the first request.
    pub fn request(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }

    /// Whether the end is requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps, and returns whether it slept this long: a request ends it.
    pub fn sleep(&self, length: Duration) -> bool {
        let mut left = length;
        while !self.is_requested() {
            if left.is_zero() {
                return true;
            }
            let part = left.min(Self::POLL);
            std::thread::sleep(part);
            left -= part;
        }
        false
    }

    /// Waits for the request.
    #[cfg(feature = "http")]
    pub async fn requested(&self) {
        while !self.is_requested() {
            tokio::time::sleep(Self::POLL).await;
        }
    }
}
