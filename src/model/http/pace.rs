//! The pace of requests to a provider: concurrency and retries.
//!
//! The number of requests under way grows by one for each full round of answers and shrinks by a
//! third when the provider says that it is too much: the scheme by which TCP shares a line. What is
//! refused is sent again later, with a pause that doubles and is spread by the request, so that
//! workers that were refused together do not come back together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::units::{ContentHash, Tokens};

/// How fast a provider may be asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceSetting {
    /// Requests under way at most.
    pub at_once: usize,
    /// How many prompts the server keeps at once; `None` where it does not matter.
    pub slots: Option<usize>,
    /// How often a request is sent again at most.
    pub retries: u32,
    /// The first pause before it is; doubled each time.
    pub pause: Duration,
    /// No pause of our own is longer than this.
    pub longest_pause: Duration,
    /// A provider that asks to be left alone for longer than this is given up.
    pub longest_wait: Duration,
}

impl Default for PaceSetting {
    /// Sixteen at once, and eight retries from half a second on: about two minutes of refusals.
    fn default() -> Self {
        Self {
            at_once: 16,
            slots: None,
            retries: 8,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_mins(1),
            longest_wait: Duration::from_mins(5),
        }
    }
}

/// Whether a failed request is worth sending again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again.
    Never,
    /// It would fail again, unless it asks for no more output than this.
    Within(Tokens),
    /// The failure passes.
    Soon,
    /// The connection was closed before a byte came, as a server does with one that it kept too long.
    Afresh,
    /// The server cannot be reached. Many retries are of little use, unless it answered before and is far away.
    Unreachable,
    /// It says nothing that can be read, as a proxy does for some seconds whose server begins again.
    Unreadable,
    /// The provider wants to be asked less, perhaps not before this time has passed.
    Limited(Option<Duration>),
}

/// Lets requests to one provider through.
#[derive(Debug)]
pub struct Pacer {
    setting: PaceSetting,
    state: Mutex<PaceState>,
    changed: Notify,
    slots: Option<Semaphore>,
}

#[derive(Debug, Default)]
struct PaceState {
    /// How many may be under way; a fraction has grown.
    limit: f64,
    under_way: usize,
    /// Refusals of requests that began before the last shrinking say nothing new.
    round: u64,
    /// No request is let through before this time.
    closed_until: Option<Instant>,
    has_answered: bool,
    /// Whether it is on this machine and was given up since it last answered: nobody waits for it again.
    is_gone: bool,
}

/// A server that cannot be reached is tried so often again if it never answered (two seconds at most), and if it is
/// on this machine, where somebody may be starting it again (fifteen).
const UNREACHABLE_RETRIES: [u32; 2] = [2, 5];

/// A request whose answer cannot be read is sent so often again: for eight seconds at most.
const UNREADABLE_RETRIES: u32 = 4;

/// A request that was let through; it counts until it is dropped.
#[derive(Debug)]
pub(super) struct Pass {
    pacer: Arc<Pacer>,
    round: u64,
}

impl Pacer {
    /// Begins with as many at once as are allowed.
    pub fn new(setting: PaceSetting) -> Self {
        let limit = setting.at_once.max(1) as f64;
        let slots =
            setting.slots.map(|slots| Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            setting,
            state: Mutex::new(PaceState { limit, ..PaceState::default() }),
            changed: Notify::new(),
            slots,
        }
    }

    /// How many may be under way at most.
    pub fn at_once(&self) -> usize {
        let slots = self.setting.slots.unwrap_or(usize::MAX);
        self.setting.at_once.min(slots).max(1)
    }

    /// How many prompts the server keeps at once, where that matters.
    pub fn slots(&self) -> Option<usize> {
        self.setting.slots
    }

    /// Waits until the server has a slot for a prompt, where that matters: until it is dropped, no other prompt
    /// takes its place in the server's memory.
    pub(super) async fn slot(&self) -> Option<SemaphorePermit<'_>> {
        self.slots.as_ref()?.acquire().await.ok()
    }

    /// The pause before the next attempt of a request: doubled each time up to the longest, half of it at random.
    pub(super) fn pause(&self, attempts: u32, place: ContentHash) -> Duration {
        let times = attempts.saturating_sub(1);
        let doubled = 1_u32.checked_shl(times).unwrap_or(u32::MAX);
        let whole = self.setting.pause.saturating_mul(doubled);
        whole.min(self.setting.longest_pause).mul_f64(0.5 + drawn(place, attempts) / 2.0)
    }

    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more may be under way.
    pub(super) async fn enter(self: &Arc<Self>) -> Pass {
        loop {
            let changed = self.changed.notified();
            match self.try_enter() {
                Ok(round) => {
                    return Pass { pacer: self.clone(), round };
                }
                Err(Some(wait)) => drop(tokio::time::timeout(wait, changed).await),
                Err(None) => changed.await,
            }
        }
    }

    /// The round in which one more begins; or how long to wait, if that is known.
    fn try_enter(&self) -> Result<u64, Option<Duration>> {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(until) = state.closed_until {
            if until > now {
                return Err(Some(until - now));
            }
            state.closed_until = None;
        }
        if state.under_way as f64 + 1.0 > state.limit.max(1.0) {
            return Err(None);
        }
        state.under_way += 1;
        Ok(state.round)
    }
}

impl Pass {
    /// It was answered.
    pub(super) fn answered(self) {
        let mut state = self.pacer.state();
        (state.has_answered, state.is_gone) = (true, false);
        let most = self.pacer.setting.at_once.max(1) as f64;
        // One more for each full round of answers.
        state.limit = (state.limit + 1.0 / state.limit.max(1.0)).min(most);
    }

    /// Takes note of the `attempts`th failure of a request, which `place` separates from others.
    /// Returns the pause before the next attempt; `None` where the request stays failed.
    pub(super) fn failed(
        self,
        retry: Retry,
        attempts: u32,
        place: ContentHash,
    ) -> Option<Duration> {
        let setting = self.pacer.setting;
        let mut state = self.pacer.state();
        state.has_answered |= matches!(retry, Retry::Never | Retry::Within(_) | Retry::Limited(_));
        let asked_for = match retry {
            Retry::Never | Retry::Within(_) => return None,
            Retry::Soon | Retry::Afresh | Retry::Unreachable | Retry::Unreadable => None,
            Retry::Limited(asked_for) => {
                if self.round == state.round {
                    state.limit = (state.limit * 2.0 / 3.0).max(1.0);
                    state.round += 1;
                }
                asked_for
            }
        };
        let [unknown, at_home] = UNREACHABLE_RETRIES;
        let most = match (retry, setting.slots) {
            (Retry::Unreachable, _) if state.is_gone => 0,
            (Retry::Unreachable, _) if !state.has_answered => unknown,
            (Retry::Unreachable, Some(_)) => at_home,
            (Retry::Unreadable, _) => UNREADABLE_RETRIES,
            _ => u32::MAX,
        };
        if attempts > most.min(setting.retries) {
            // The way to a server elsewhere may be open again for the next request.
            state.is_gone |= retry == Retry::Unreachable && setting.slots.is_some();
            return None;
        }
        let Some(asked_for) = asked_for else {
            return Some(self.pacer.pause(attempts, place));
        };
        if asked_for > setting.longest_wait {
            return None;
        }
        // Of two answers to requests that were under way together, the later time holds.
        let until = Instant::now() + asked_for;
        state.closed_until = Some(state.closed_until.map_or(until, |known| known.max(until)));
        // Not all of them at the first moment that is allowed.
        Some(asked_for + setting.pause.mul_f64(drawn(place, attempts)))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.pacer.state();
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.pacer.changed.notify_waiters();
    }
}

/// A number from 0 to 1 that is the same for the same request and attempt.
fn drawn(place: ContentHash, attempts: u32) -> f64 {
    ContentHash::of_parts([place.bytes(), &attempts.to_le_bytes()]).fraction()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(at_once: usize) -> Arc<Pacer> {
        Arc::new(Pacer::new(PaceSetting { at_once, ..PaceSetting::default() }))
    }

    /// Lets one through that must be let through.
    fn enter(pacer: &Arc<Pacer>) -> Pass {
        let round = pacer.try_enter().unwrap();
        Pass { pacer: pacer.clone(), round }
    }

    #[test]
    fn refusals_of_one_round_shrink_it_once_and_answers_grow_it_back() {
        let pacer = pacer(9);
        let mut under_way: Vec<Pass> = (0..9).map(|_| enter(&pacer)).collect();
        assert_eq!(pacer.try_enter(), Err(None));
        for (at, pass) in under_way.drain(..).enumerate() {
            let place = ContentHash::of([u8::try_from(at).unwrap()]);
            let after = pass.failed(Retry::Limited(None), 1, place);
            assert!(after.is_some());
        }
        assert!((pacer.state().limit - 6.0).abs() < 1e-9, "{}", pacer.state().limit);
        for _ in 0..6 {
            enter(&pacer).answered();
        }
        assert!(pacer.state().limit > 6.9 && pacer.state().limit < 7.0, "{}", pacer.state().limit);
        for _ in 0..100 {
            enter(&pacer).answered();
        }
        assert!((pacer.state().limit - 9.0).abs() < 1e-9);
    }

    #[test]
    fn pauses_double_are_spread_and_end() {
        let [place, other] = ["a", "b"].map(ContentHash::of);
        assert!((drawn(place, 1) - drawn(place, 1)).abs() < 1e-12);
        assert!((drawn(place, 1) - drawn(other, 1)).abs() > 1e-9);
        let pacer = pacer(2);
        for (attempts, longest) in [(1, 500), (3, 2_000), (40, 60_000)] {
            let half = Duration::from_millis(longest / 2);
            let pause = pacer.pause(attempts, place);
            assert!((half..=2 * half).contains(&pause), "{attempts} {pause:?}");
        }
        assert_eq!(enter(&pacer).failed(Retry::Soon, 9, place), None);
        assert_eq!(enter(&pacer).failed(Retry::Never, 1, place), None);
        let hours = Retry::Limited(Some(Duration::from_hours(2)));
        assert_eq!(enter(&pacer).failed(hours, 1, place), None);
    }

    #[test]
    fn a_server_on_this_machine_that_is_gone_is_given_up_sooner_and_once() {
        let pacer_of =
            |slots| Arc::new(Pacer::new(PaceSetting { slots, ..PaceSetting::default() }));
        let attempts = |pacer: &Arc<Pacer>, retry| {
            let mut attempts = 1..;
            let place = ContentHash::of("a");
            let given_up = attempts.find(|at| enter(pacer).failed(retry, *at, place).is_none());
            given_up.unwrap()
        };
        let [gone, unreadable] = [Retry::Unreachable, Retry::Unreadable];
        for (slots, retry, [unknown, known, next]) in [
            (None, gone, [[3, 3], [9, 9], [9, 9]]),
            (Some(1), gone, [[3, 1], [6, 1], [6, 1]]),
            (None, unreadable, [[5, 5]; 3]),
            (Some(1), unreadable, [[5, 5]; 3]),
        ] {
            let pacer = pacer_of(slots);
            for expected in [unknown, known, next] {
                assert_eq!([attempts(&pacer, retry), attempts(&pacer, retry)], expected);
                enter(&pacer).answered();
            }
        }
    }

    #[test]
    fn a_provider_that_names_a_time_is_left_alone_until_then() {
        let pacer = pacer(4);
        let asked_for = Duration::from_secs(5);
        let pass = enter(&pacer);
        let pause = pass.failed(Retry::Limited(Some(asked_for)), 1, ContentHash::of("a"));
        assert!(pause.unwrap() >= asked_for);
        let wait = pacer.try_enter().unwrap_err().unwrap();
        assert!(wait > Duration::from_secs(4));
    }

    #[test]
    fn a_shorter_pause_that_another_refusal_names_does_not_open_the_way_earlier() {
        let pacer = pacer(4);
        let (first, second) = (enter(&pacer), enter(&pacer));
        let limited = |seconds| Retry::Limited(Some(Duration::from_secs(seconds)));
        first.failed(limited(30), 1, ContentHash::of("a"));
        second.failed(limited(1), 1, ContentHash::of("b"));
        let wait = pacer.try_enter().unwrap_err().unwrap();
        assert!(wait > Duration::from_secs(20), "{wait:?}");
    }
}
