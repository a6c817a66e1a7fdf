//! What Codex writes down of a call's cost and of its window.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::session::import::assemble::Assembler;
use crate::session::import::lenient;
use crate::units::{Tokens, Usage};

/// The bill of a call.
#[derive(Default)]
pub(super) struct Bill {
    /// The counters; none where only the window is told.
    pub(super) usage: Option<Usage>,
    /// The provider's id of the response, in newer versions.
    pub(super) response: Option<Arc<str>>,
}

/// The whole window, of which Codex writes 95 %, rounded down.
///
/// Its first versions wrote the whole window. A figure that is 95 % of no multiple of 1,000 or
/// 1,024 is taken for one of theirs.
pub(super) fn whole_window(written: u64) -> Tokens {
    let whole = u128::from(written).saturating_mul(100).div_ceil(95);
    let is_round = whole.is_multiple_of(1_000) || whole.is_multiple_of(1_024);
    let whole = u64::try_from(whole).ok().filter(|_| is_round);
    Tokens(whole.unwrap_or(written))
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counters {
    #[serde(rename = "input_tokens")]
    input: u64,
    #[serde(rename = "cached_input_tokens")]
    cached: u64,
    #[serde(rename = "cache_write_input_tokens")]
    written: u64,
    #[serde(rename = "output_tokens")]
    output: u64,
}

/// The input includes what was read from and written to the cache, the output what was thought.
pub(super) fn usage(raw: &RawValue, assembler: &mut Assembler) -> Option<Usage> {
    let Some(counters) = lenient::object::<Counters>(raw.get(), assembler) else {
        assembler.warn("a bill cannot be read");
        return None;
    };
    let read = counters.cached.min(counters.input);
    if read < counters.cached {
        assembler.warn("a usage counts more cached tokens than the prompt has");
    }
    let written = counters.written.min(counters.input - read);
    Some(Usage {
        input_uncached: Tokens(counters.input - read - written),
        cache_write_5m: Tokens(written),
        cache_read: Tokens(read),
        output: Tokens(counters.output),
        ..Usage::default()
    })
}
