//! How long a server on this machine takes, from what a few timing requests took.

use std::time::Duration;

use crate::record::words::Latency;
pub use crate::record::words::ServerTiming;
use crate::units::{Tokens, Usage};

/// Tokens of a prompt in which attention takes as long as all else, at least: so many more a busy machine may seem to
/// need for the longer of two prompts, and not more. For Qwen 0.5B on a processor it was 9,000 to read, and 2,600 to
/// write.
const EVEN: f64 = 1_000.0;

/// No time is shorter, in seconds: rates stay finite numbers.
const LEAST: f64 = 1e-9;

/// A prompt that a server read twice, and wrote behind.
#[derive(Debug, Clone, Copy)]
pub struct TimedPrompt {
    /// Its tokens.
    pub tokens: Tokens,
    /// How long a server took that never saw it.
    pub first: Duration,
    /// How long it took the second time.
    pub again: Duration,
    /// The tokens that it wrote the third time, and how long that took.
    pub written: (Tokens, Duration),
}

impl TimedPrompt {
    /// Whether the server found it in its prompt cache: without one it reads as long again.
    fn is_cached(&self) -> bool {
        self.again < self.first / 2
    }

    /// Seconds for each token of a new prompt, behind so many that any call takes.
    pub fn per_read(&self, start: f64) -> f64 {
        (self.first.as_secs_f64() - start).max(LEAST) / self.tokens.0.max(1) as f64
    }

    /// Seconds for each token of the answer.
    fn per_written(&self) -> f64 {
        let (output, took) = self.written;
        let seconds = took.saturating_sub(self.again).as_secs_f64();
        seconds.max(LEAST) / output.0.max(1) as f64
    }
}

impl From<Latency> for ServerTiming {
    fn from(latency: Latency) -> Self {
        Self {
            latency,
            read_attention_ns: 0.0,
            write_attention_ns: 0.0,
            longest: None,
            counted: 1.0,
        }
    }
}

impl ServerTiming {
    /// The timing by a small and a large prompt, which are the same one if no large one could be read.
    pub fn fitted(small: TimedPrompt, large: TimedPrompt) -> Self {
        let tokens = [small, large].map(|prompt| prompt.tokens.0 as f64);
        let again = [small, large].map(|prompt| prompt.again.as_secs_f64());
        let (start, per_cached) = if large.is_cached() {
            let (start, per_cached) = line(tokens, again);
            (start, Some(per_cached.max(LEAST)))
        } else {
            (0.0, None)
        };
        let (per_read, squared) = line(tokens, [small, large].map(|prompt| prompt.per_read(start)));
        let (per_written, behind) = line(tokens, [small, large].map(|prompt| prompt.per_written()));
        Self {
            latency: Latency {
                start_ms: 1e3 * start,
                prefill_per_second: 1.0 / per_read,
                cached_per_second: 1.0 / per_cached.unwrap_or(per_read),
                decode_per_second: 1.0 / per_written,
            },
            read_attention_ns: 2e9 * squared,
            write_attention_ns: 1e9 * behind,
            longest: Some(large.tokens),
            counted: 1.0,
        }
    }

    /// Milliseconds that a number of calls take one after the other, which are alike and have this usage in total.
    pub fn milliseconds(&self, calls: u64, usage: &Usage) -> f64 {
        let caches = self.latency.cached_per_second > self.latency.prefill_per_second;
        let known = if caches { usage.cache_read.0 as f64 } else { 0.0 };
        let [prompt, output] = [usage.prompt(), usage.output].map(|tokens| tokens.0 as f64);
        let read_behind = (prompt - known) * (prompt + known) / 2.0;
        let written_behind = output * (prompt + output / 2.0);
        let attention =
            self.read_attention_ns * read_behind + self.write_attention_ns * written_behind;
        let every = calls.max(1) as f64;
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        self.latency.milliseconds(calls, usage) + attention / every / 1e6
    }

    /// Tokens that the server reads in a second behind so many others.
    pub fn read_behind(&self, tokens: Tokens) -> f64 {
        let attention = self.read_attention_ns * tokens.0 as f64 / 1e9;
        1.0 / (1.0 / self.latency.prefill_per_second + attention)
    }
}

/// The line through two points, the first with the smaller `x`: its value at 0, and its slope, which is not negative.
fn line(x: [f64; 2], y: [f64; 2]) -> (f64, f64) {
    let measured = (y[1] - y[0]) / (x[1] - x[0]).max(LEAST);
    let slope = measured.clamp(0.0, y[1] / (x[1] + EVEN));
    (y[1] - slope * x[1], slope)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server that takes so many seconds to start, for a cached, a new and a written token, and for each pair of
    /// a new or a written token and one in front of it.
    #[derive(Debug, Clone, Copy)]
    struct Speed([f64; 6]);

    impl Speed {
        /// How long a prompt takes of which it knows the first `cached` tokens, and an answer.
        fn takes(self, cached: f64, new: f64, output: f64) -> Duration {
            let Self([start, per_cached, per_new, per_written, read_pair, written_pair]) = self;
            let read = new * (cached + new / 2.0);
            let written = output * (cached + new + output / 2.0);
            Duration::from_secs_f64(
                start
                    + per_cached * cached
                    + per_new * new
                    + per_written * output
                    + read_pair * read
                    + written_pair * written,
            )
        }

        fn timed(self, tokens: u64) -> TimedPrompt {
            let size = tokens as f64;
            TimedPrompt {
                tokens: Tokens(tokens),
                first: self.takes(0.0, size, 0.0),
                again: self.takes(size, 0.0, 0.0),
                written: (Tokens(64), self.takes(size, 0.0, 64.0)),
            }
        }
    }

    proptest! {
        #[test]
        fn a_prompt_three_times_as_long_takes_what_two_shorter_ones_foretell(
            start in 0.01..0.3_f64,
            per_new in 1e-4..0.05_f64,
            looks_back in 0.0..2.0_f64,
            small in 400_u64..600,
            large in 2_000_u64..8_000,
        ) {
            // At the end of the large prompt a token takes up to three times as long as at its beginning.
            let pair = per_new * looks_back / large as f64;
            let speed = Speed([start, per_new / 100.0, per_new, 3.0 * per_new, pair, 3.0 * pair]);
            let timing = ServerTiming::fitted(speed.timed(small), speed.timed(large));
            let tokens = 3 * large;
            for (cached, new, output) in [(0, tokens, 0), (tokens, 50, 40)] {
                let usage = Usage {
                    cache_read: Tokens(cached),
                    ..Usage::uncached(Tokens(new), Tokens(output))
                };
                let takes = speed.takes(cached as f64, new as f64, output as f64);
                let foreseen = timing.milliseconds(1, &usage) / 1_000.0;
                let error = foreseen / takes.as_secs_f64() - 1.0;
                prop_assert!(error.abs() < 0.05, "{error} {timing:?}");
            }
        }
    }

    #[test]
    fn noise_and_missing_caches_leave_a_timing_of_finite_numbers() {
        let prompt = |tokens, first, again| TimedPrompt {
            tokens: Tokens(tokens),
            first: Duration::from_millis(first),
            again: Duration::from_millis(again),
            written: (Tokens(0), Duration::ZERO),
        };
        let zero = prompt(500, 0, 0);
        let uncached = prompt(4_000, 800, 790);
        for (small, large) in [
            (zero, zero),
            (zero, uncached),
            (uncached, zero),
            (uncached, uncached),
            (prompt(500, 900, 100), prompt(4_000, 800, 50)),
            (prompt(500, 10, 1), prompt(4_000, 8_000, 50)),
        ] {
            let timing = ServerTiming::fitted(small, large);
            let told = serde_json::to_string(&timing).unwrap();
            assert!(serde_json::from_str::<ServerTiming>(&told).is_ok(), "{told}");
            let usage = Usage::uncached(Tokens(12_000), Tokens(10));
            let foreseen = timing.milliseconds(1, &usage);
            assert!(foreseen.is_finite() && foreseen > 0.0, "{timing:?}");
        }
        // What is in no cache is read as if it were new.
        let timing = ServerTiming::fitted(uncached, uncached);
        let read = Usage { cache_read: Tokens(4_000), ..Usage::default() };
        let new = Usage::uncached(Tokens(4_000), Tokens::ZERO);
        let more = timing.milliseconds(1, &read) - timing.milliseconds(1, &new);
        assert!(more.abs() < 1e-9, "{more}");
    }
}
