//! The provider's prompt cache, simulated: what of each prompt is read, written, and neither.
//!
//! A prompt is a [`PromptLine`] of blocks: tools, system prompt, messages. A provider keeps prefixes of it
//! for a while and finds them again by their hash, block by block; a change anywhere makes everything
//! behind it new. Which prefixes are kept and found is a [`CacheScheme`]; all schemes watch one line.
//!
//! Only what changed since the last prompt is looked at: appending costs what is appended, and a
//! patch what it changes, and what is in front of that or behind it, whichever is less.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

pub use ideal::IdealCache;
pub use line::{EditedEntries, KnownPrefix, LineChange, PromptLine};
pub use piece::{BlockList, PromptPiece};
pub use recorded::RecordedCache;

use crate::model::price::{CacheScheme, Client, Reuse};
use crate::units::Tokens;

mod ideal;
mod line;
mod piece;
mod recorded;
mod sent;
#[cfg(test)]
mod tests;

/// When a prompt is sent, in milliseconds from an arbitrary start; or the time between two prompts.
pub type SentAt = i64;

/// What a recording shows of the provider's cache at a call, whatever the prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheEvent {
    /// So many tokens were cached by others. Nothing that was sent itself is alive.
    Warm(Tokens),
    /// All but so many tokens of what was cached were gone.
    Missed(Tokens),
    /// What was cached was there, though its time was over.
    Alive,
}

/// Why cached tokens are not read, where no edit is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLoss {
    /// Too much time went by.
    Expired,
    /// The recording missed them too.
    Missed,
}

/// The last use of a prefix, by its hash.
type LastUse = HashMap<u64, SentAt, FixedState>;

/// How a prompt splits for the provider. What is neither read nor written is plain input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Found in the cache.
    pub read: Tokens,
    /// Billed as written to it.
    pub written: Tokens,
}

/// The outcome of one call in the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheOutcome {
    /// How the prompt splits.
    pub split: Split,
    /// Tokens that were cached at the last call and are not read now.
    pub broken: Tokens,
    /// Why they are gone, if not by an edit or for the look-back.
    pub loss: Option<CacheLoss>,
    /// Tokens of this prompt that are not read though they stood in the last one just so.
    pub resent: Tokens,
}

/// One provider's cache beside a prompt that grows and is edited.
#[derive(Debug, Clone)]
pub struct PromptCache {
    /// Its rules.
    pub scheme: Arc<CacheScheme>,
    client: Client,
    /// Breakpoints of earlier prompts.
    entries: LastUse,
    /// Tokens that were read or written at the last call, less what was removed on the provider's
    /// side since.
    cached: Tokens,
}

impl PromptCache {
    /// An empty cache behind this client.
    pub fn new(scheme: Arc<CacheScheme>, client: Client) -> Self {
        Self { scheme, client, entries: LastUse::default(), cached: Tokens::ZERO }
    }

    /// The provider removed this number of cached tokens on its side: they do not count as broken.
    pub fn removed(&mut self, tokens: Tokens) {
        self.cached = self.cached - tokens;
    }

    /// The prompt is sent. The caller calls [`PromptLine::meet`] before and [`PromptLine::sent`] afterwards, once for all
    /// schemes. `edge` is the number of blocks behind which the breakpoint of the tools goes instead.
    pub fn send(&mut self, line: &PromptLine, edge: Option<usize>, now: SentAt) -> CacheOutcome {
        if self.scheme.reuse == Reuse::Nothing {
            return CacheOutcome::default();
        }
        let breakpoints = self.breakpoints(line, edge);
        let found = self.find(line, line, line.len(), &breakpoints, now);
        let alive = line.last_sent.is_some_and(|last| line.is_live(&self.scheme, last, now));
        let live = self.scheme.rounded(line.until(found));
        let read = self.scheme.rounded(line.readable(line.until(found), alive));
        let last = match self.scheme.reuse {
            Reuse::Nothing => 0,
            Reuse::Breakpoints => breakpoints.first().copied().unwrap_or(0),
            Reuse::LongestPrefix => line.len(),
        };
        let cacheable = self.scheme.rounded(line.until(last)).max(read);
        let written = match self.scheme.rates.write {
            Some(_) => cacheable - read,
            None => Tokens::ZERO,
        };
        let served = CacheOutcome {
            split: Split { read, written },
            broken: self.cached - read,
            loss: if alive {
                (read < live).then_some(CacheLoss::Missed)
            } else {
                line.last_sent.map(|_| CacheLoss::Expired)
            },
            resent: line.seen_from(found) + (live - read),
        };
        if self.scheme.reuse == Reuse::Breakpoints {
            if matches!(line.event, Some(CacheEvent::Missed(_))) {
                self.entries = LastUse::default();
            }
            if self.entries.len() + breakpoints.len() >= self.entries.capacity() {
                self.make_room(now);
            }
            // A prefix that is read stays cached, and one that ends at a breakpoint is cached from
            // now on.
            let kept = breakpoints
                .iter()
                .copied()
                .filter(|at| *at == found || line.until(*at) >= self.scheme.minimum);
            let reread = found > 0 && read == live && !breakpoints.contains(&found);
            for at in kept.chain(reread.then_some(found)) {
                self.entries.insert(line.chain(at), now);
            }
        }
        self.cached = cacheable;
        served
    }

    /// Forgets what is no longer kept: time never goes back. Where that is less than half, the table grows.
    fn make_room(&mut self, now: SentAt) {
        let scheme = &self.scheme;
        self.entries.retain(|_, used| is_live(scheme, *used, now));
        if self.entries.len() > self.entries.capacity() / 2 {
            self.entries.reserve(self.entries.capacity());
        }
    }

    /// Tokens that a request beside the agent's prompt reads. Its line begins like the agent's for
    /// `shared` blocks. It leaves nothing in the cache.
    pub fn side_request(
        &self,
        line: &PromptLine,
        request: &PromptLine,
        shared: usize,
        now: SentAt,
    ) -> Tokens {
        if self.scheme.reuse == Reuse::Nothing {
            return Tokens::ZERO;
        }
        let newest = request.ends(self.client.messages, self.client.senders);
        let ends = newest.chain(request.heads()).take(self.scheme.breakpoints);
        let breakpoints: Vec<usize> = ends.collect();
        let found = self.find(line, request, shared, &breakpoints, now);
        self.scheme.rounded(line.until(found))
    }

    /// Blocks in the longest live prefix of `line`, of at most `limit` blocks. The breakpoints are
    /// those of `request`, which has these blocks in common with the line.
    fn find(
        &self,
        line: &PromptLine,
        request: &PromptLine,
        limit: usize,
        breakpoints: &[usize],
        now: SentAt,
    ) -> usize {
        match self.scheme.reuse {
            Reuse::Nothing => 0,
            Reuse::Breakpoints => {
                let look_back = self.scheme.look_back.unwrap_or(usize::MAX);
                // Breakpoints descend, so the first that finds anything finds the most.
                let found = breakpoints.iter().find_map(|end| {
                    let last = request.position(*end);
                    // The breakpoint itself is the first position.
                    let mut near = (1..=(*end).min(limit))
                        .rev()
                        .take_while(|at| last - request.position(*at) < look_back);
                    near.find(|at| {
                        let used = self.entries.get(&line.chain(*at));
                        used.is_some_and(|used| line.is_live(&self.scheme, *used, now))
                    })
                });
                found.unwrap_or(0)
            }
            Reuse::LongestPrefix => {
                let live = line.longest_known(limit, &|used| line.is_live(&self.scheme, used, now));
                live.map_or(0, |known| known.blocks)
            }
        }
    }

    /// Ends of prefixes, in blocks, the longest first.
    fn breakpoints(&self, line: &PromptLine, edge: Option<usize>) -> Vec<usize> {
        if self.scheme.reuse != Reuse::Breakpoints {
            return Vec::new();
        }
        // The last head is the system prompt's, or the tools' where there is none.
        let marks_tools = edge.is_none() && self.client.marks_tools;
        let heads = if marks_tools { usize::MAX } else { 1 };
        let ends = line.ends(self.client.messages, self.client.senders);
        let mut ends: Vec<usize> = ends.chain(edge).chain(line.heads().take(heads)).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends.dedup();
        ends.truncate(self.scheme.breakpoints);
        ends
    }
}

/// Whether a prefix that was last used at `used` is still kept.
fn is_live(scheme: &CacheScheme, used: SentAt, now: SentAt) -> bool {
    scheme.ttl_seconds.is_none_or(|seconds: u64| {
        now.saturating_sub(used).unsigned_abs() <= seconds.saturating_mul(1_000)
    })
}
