//! Faults between an agent and its provider, injected on purpose and by a seed.
//!
//! A fault is injected at named calls, or with a probability. A hash of seed, fault, session,
//! repeat, call and attempt decides: no fault depends on another, and all strategies of a session
//! meet the same faults at the same call.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::units::ContentHash;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Fault {
    /// The provider refuses the agent's prompt as too long, though it fits the stated window.
    OverflowAt,
    /// The provider fails while it makes a summary.
    SummaryError,
    /// No summary comes in time.
    SummaryTimeout,
    /// The request for a summary is itself too long.
    SummaryOverflow,
    /// The summary is empty.
    SummaryEmpty,
    /// The model calls a tool instead of writing a summary.
    SummaryIsToolCall,
    /// The model goes on with the conversation instead of summarising it.
    SummaryIsChat,
    /// The summary is longer than the text that it replaces.
    SummaryInflates,
    /// The summary breaks off half way.
    SummaryTruncated,
    /// The agent's call is refused for calling too often.
    RateLimited,
    /// The provider fails at the agent's call.
    ServerError,
    /// The connection breaks while the agent's answer is coming in.
    StreamCut,
}

/// A line for each fault, in the order of [`Fault`]: its name, where it acts, and its effect.
const FAULTS: &str = include_str!("fault/faults.tsv");

/// Where a fault acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTarget {
    /// On the size check of the agent's prompt.
    Prompt,
    /// On a request of the strategy.
    Summary,
    /// On the agent's own call.
    Agent,
}

impl Fault {
    /// All faults. If several are due at one request, the first of them is injected.
    pub const ALL: [Self; 12] = [
        Self::OverflowAt,
        Self::SummaryError,
        Self::SummaryTimeout,
        Self::SummaryOverflow,
        Self::SummaryEmpty,
        Self::SummaryIsToolCall,
        Self::SummaryIsChat,
        Self::SummaryInflates,
        Self::SummaryTruncated,
        Self::RateLimited,
        Self::ServerError,
        Self::StreamCut,
    ];

    fn column(self, at: usize) -> &'static str {
        let row = FAULTS.lines().nth(self as usize).unwrap_or_default();
        row.split('\t').nth(at).unwrap_or_default()
    }

    /// Its name in settings and records.
    pub fn name(self) -> &'static str {
        self.column(0)
    }

    /// The effect, in one line.
    pub fn doc(self) -> &'static str {
        self.column(2)
    }

    /// Where it acts.
    pub fn target(self) -> FaultTarget {
        match self.column(1) {
            "prompt" => FaultTarget::Prompt,
            "summary" => FaultTarget::Summary,
            _ => FaultTarget::Agent,
        }
    }
}

/// When a fault is injected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum FaultSchedule {
    /// Each attempt by itself, with this probability from 0 to 1.
    Probability(f64),
    /// The first `attempts` attempts at each of these calls of the agent, counted from 0.
    Calls {
        /// The calls.
        calls: BTreeSet<usize>,
        /// How many attempts; at least 1.
        attempts: u32,
    },
}

/// The faults of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Faults {
    /// The seed that decides which attempts a probability hits.
    pub seed: u64,
    /// How often the agent's own call is sent again before the session is given up.
    pub agent_retries: u32,
    /// The faults.
    #[serde(rename = "strikes")]
    pub schedules: BTreeMap<Fault, FaultSchedule>,
}

impl Default for Faults {
    /// Nothing goes wrong. Two retries: the default of the client libraries of Anthropic and
    /// OpenAI.
    fn default() -> Self {
        Self { seed: 1, agent_retries: 2, schedules: BTreeMap::new() }
    }
}

/// One attempt at one call.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The session's id.
    pub session: &'a str,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The call of the agent, from 0.
    pub call: usize,
    /// Which attempt of this kind at this call, from 0.
    pub attempt: u32,
}

impl Faults {
    /// Whether nothing ever goes wrong.
    pub fn is_empty(&self) -> bool {
        self.schedules.is_empty()
    }

    /// The fault that is injected into an attempt, if any.
    pub fn injected(&self, target: FaultTarget, attempt: Attempt<'_>) -> Option<Fault> {
        let mut faults = self.schedules.iter();
        let due = faults.find(|(fault, schedule)| {
            fault.target() == target && self.is_due(**fault, schedule, attempt)
        });
        due.map(|(fault, _)| *fault)
    }

    fn is_due(&self, fault: Fault, schedule: &FaultSchedule, at: Attempt<'_>) -> bool {
        match schedule {
            FaultSchedule::Calls { calls, attempts } => {
                at.attempt < *attempts && calls.contains(&at.call)
            }
            FaultSchedule::Probability(probability) => {
                let parts = [
                    &self.seed.to_le_bytes()[..],
                    fault.name().as_bytes(),
                    at.session.as_bytes(),
                    &at.repeat.to_le_bytes(),
                    &(at.call as u64).to_le_bytes(),
                    &at.attempt.to_le_bytes(),
                ];
                ContentHash::of_parts(parts).fraction() < *probability
            }
        }
    }
}

impl fmt::Display for FaultSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probability(probability) => write!(f, "with probability {probability}"),
            Self::Calls { calls, attempts } => {
                let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
                write!(f, "at calls {}", calls.join(", "))?;
                match attempts {
                    1 => Ok(()),
                    attempts => write!(f, ", {attempts} attempts each"),
                }
            }
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed =
            self.schedules.iter().map(|(fault, schedule)| format!("{} {schedule}", fault.name()));
        let listed: Vec<String> = listed.collect();
        write!(
            f,
            "{}; seed {}, agent's calls sent again {} times",
            listed.join("; "),
            self.seed,
            self.agent_retries
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(schedules: &[(Fault, FaultSchedule)]) -> Faults {
        Faults { schedules: schedules.iter().cloned().collect(), ..Faults::default() }
    }

    fn at(session: &str, call: usize, attempt: u32) -> Attempt<'_> {
        Attempt { session, repeat: 0, call, attempt }
    }

    #[test]
    fn a_probability_strikes_as_often_as_it_says_and_the_same_each_time() {
        let often = |probability| {
            let faults = faults(&[(Fault::SummaryError, FaultSchedule::Probability(probability))]);
            let is_injected =
                |call| faults.injected(FaultTarget::Summary, at("s", call, 0)).is_some();
            (0..10_000).filter(|call| is_injected(*call)).count()
        };
        assert_eq!(often(0.0), 0);
        assert_eq!(often(1.0), 10_000);
        // Ten standard deviations around the mean would be 2,542 to 3,458; the number itself is
        // fixed by the seed.
        let thirty = often(0.3);
        assert!((2_850..3_150).contains(&thirty), "{thirty}");
        assert_eq!(often(0.3), thirty);
    }

    #[test]
    fn neither_another_fault_nor_another_session_moves_a_strike() {
        let half = || FaultSchedule::Probability(0.5);
        let alone = faults(&[(Fault::SummaryEmpty, half())]);
        let both = faults(&[
            (Fault::SummaryEmpty, half()),
            (Fault::ServerError, half()),
            (Fault::SummaryTruncated, FaultSchedule::Probability(0.0)),
        ]);
        let calls = |faults: &Faults, session: &str| -> Vec<bool> {
            (0..64)
                .map(|call| faults.injected(FaultTarget::Summary, at(session, call, 0)).is_some())
                .collect()
        };
        assert_eq!(calls(&alone, "a"), calls(&both, "a"));
        assert_ne!(calls(&alone, "a"), calls(&alone, "b"));
        let other = Faults { seed: 2, ..alone.clone() };
        assert_ne!(calls(&alone, "a"), calls(&other, "a"));
    }

    #[test]
    fn a_fault_at_named_calls_affects_the_given_number_of_attempts() {
        let schedule = FaultSchedule::Calls { calls: [3, 5].into(), attempts: 2 };
        let faults = faults(&[(Fault::RateLimited, schedule)]);
        let injected = |target, call, attempt| faults.injected(target, at("s", call, attempt));
        assert_eq!(injected(FaultTarget::Agent, 3, 0), Some(Fault::RateLimited));
        assert_eq!(injected(FaultTarget::Agent, 3, 1), Some(Fault::RateLimited));
        assert_eq!(injected(FaultTarget::Agent, 3, 2), None);
        assert_eq!(injected(FaultTarget::Agent, 4, 0), None);
        assert_eq!(injected(FaultTarget::Summary, 3, 0), None);
        assert_eq!(
            faults.to_string(),
            "rate_limited at calls 3, 5, 2 attempts each; seed 1, agent's calls sent again 2 times"
        );
    }

    #[test]
    fn all_lists_every_fault_in_their_order() {
        let mut sorted = Fault::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, Fault::ALL);
        let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
    }
}
