//! What bills show of the provider's cache beside its prompts: other sessions warmed it, and at some calls
//! what was cached was gone.

use std::collections::BTreeMap;

use super::CacheEvent;
use crate::bill::{SessionSizes, Sizes};
use crate::model::price::{CacheScheme, Reuse};
use crate::record::CellRecord;
use crate::session::Session;
use crate::units::{Tokens, Usage};

/// What happened to the provider's cache while a session was recorded, by call: the same for every strategy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedCache(BTreeMap<usize, CacheEvent>);

impl RecordedCache {
    /// Whether the bills of a session tell cached tokens apart.
    pub fn is_shown(session: &Session) -> bool {
        session.messages().iter().any(|message| {
            let usage = message.details.usage.unwrap_or_default();
            usage.prompt() > usage.input_uncached
        })
    }

    /// From the bills of a session and a cell that replays the recorded context, under the scheme of the bills,
    /// in a cache that nothing happens to.
    ///
    /// A call misses if it read less than half of what that cache reads; of an automatic cache, which chooses
    /// the prefix itself, less than nine tenths. After a change of the recorded context that is no miss: the
    /// context that was read is another one. Where that cache is empty, the head may be warm; all of it is alive
    /// where nine tenths of what could be were read. The first call
    /// of a session that goes on from an earlier one, or whose head is unknown, reads whatever was billed as read.
    pub fn of(
        session: &Session,
        sizes: &SessionSizes,
        scheme: &CacheScheme,
        replayed: &CellRecord,
    ) -> Self {
        let least = match scheme.reuse {
            Reuse::LongestPrefix => 90,
            Reuse::Breakpoints | Reuse::Nothing => 50,
        };
        let head = sizes.head.filter(|_| sizes.sizes == Sizes::Billed);
        let first = replayed.prompt_cache.first();
        let reads = first.map(|cache| &*cache.read).unwrap_or_default();
        let mut compactions = session.compactions().iter().peekable();
        let mut drops = sizes.drops.iter().peekable();
        let mut events = BTreeMap::new();
        let prompts = session.calls().iter().zip(&replayed.prompt_tokens);
        for (call, (at, prompt)) in prompts.enumerate() {
            let mut is_changed = drops.next_if(|drop| drop.call <= call).is_some();
            while compactions.next_if(|event| event.at <= *at).is_some() {
                is_changed = true;
            }
            let usage = session.message(*at).details.usage;
            let Some(usage) = usage.filter(|usage| usage.prompt() > Tokens::ZERO) else {
                continue;
            };
            let read = read_share(&usage, *prompt);
            let most = read.min(usage.cache_read);
            let readable = reads.get(call).copied().unwrap_or_default();
            let missed = u128::from(read.0) * 100 < u128::from(readable.0) * least;
            let last = call.checked_sub(1);
            let before = last.map(|last| replayed.prompt_tokens[last].min(*prompt));
            let alive = before.is_some_and(|both| read.0 * 10 >= both.0.saturating_mul(9));
            if readable == Tokens::ZERO && alive && !is_changed {
                events.insert(call, CacheEvent::Alive);
            } else if readable == Tokens::ZERO {
                let begins_later = session.loaded() > 0 || head.is_none();
                let warm = match call {
                    0 if begins_later => most,
                    _ => most.min(head.unwrap_or_default()),
                };
                events.insert(call, CacheEvent::Warm(warm));
            } else if missed && !is_changed {
                events.insert(call, CacheEvent::Missed(most));
            }
        }
        Self(events)
    }

    /// What happened before the prompt of a call was sent.
    pub fn event(&self, call: usize) -> Option<CacheEvent> {
        self.0.get(&call).copied()
    }
}

/// The part of a replayed prompt that was read, if it is the same share as of the billed one.
fn read_share(usage: &Usage, prompt: Tokens) -> Tokens {
    let billed = u128::from(usage.prompt().0.max(1));
    let read = u128::from(usage.cache_read.0) * u128::from(prompt.0) / billed;
    Tokens(u64::try_from(read).unwrap_or(u64::MAX))
}
