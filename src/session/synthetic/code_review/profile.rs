//! The shape of a family whose work is that of `code-review`: what is done how often, how long a
//! task takes, when facts are told, how much a round shows, and how long the person is away.

use crate::session::synthetic::plot::{Counts, Density, Plot};
use crate::session::synthetic::random::Quantiles;

/// What sets a family apart. Its words, tools and repositories are those of `code-review`.
#[derive(Debug)]
pub(in crate::session::synthetic) struct Profile {
    /// The name used in scenarios, and part of the seed.
    pub(in crate::session::synthetic) name: &'static str,
    /// One sentence: what such a session stresses.
    pub(in crate::session::synthetic) description: &'static str,
    /// Sets how many facts and files a session of a given number of tokens gets, and nothing else.
    pub(in crate::session::synthetic) tokens_per_round: u64,
    /// How often the agent reads, searches, tests, observes, edits, creates, looks into the
    /// history, looks around, fetches.
    pub(in crate::session::synthetic) weights: [u64; 9],
    /// The fewest and the most rounds between two requests.
    pub(in crate::session::synthetic) task: (u64, u64),
    /// Whether the person interrupts a task to tell something.
    pub(in crate::session::synthetic) interrupts: bool,
    /// All facts are told by this thousandth of the session.
    pub(in crate::session::synthetic) said_by: u64,
    /// Rounds in which a huge result is shown, in percent.
    pub(in crate::session::synthetic) large_percent: u64,
    /// Rounds in which [`READS_AT_ONCE`] files are read in one go, in percent.
    pub(in crate::session::synthetic) at_once_percent: u64,
    /// How long the person is away.
    pub(in crate::session::synthetic) away: Away,
    /// What else happens.
    pub(in crate::session::synthetic) plot: Plot,
}

/// How much happens in these families: little enough that the calls of a request, and the tools
/// that are used at once, stay what they are without it.
pub(in crate::session::synthetic) const DENSITY: Density = Density {
    decisions: (20, 2),
    settings: (20, 2),
    suites: (30, 1),
    attempts: (24, 2),
    steps: (8, 7),
    revisions: (2, 4),
    counted: (10, 100),
    counts: Counts::Vary,
    typed: 40,
    standing: 0,
};

/// Whether the person is away between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::synthetic) enum Away {
    /// Never: no gap reaches five minutes.
    Never,
    /// Before so many requests of a hundred.
    Percent(u64),
}

/// Milliseconds that a person is away: past the five minutes after which a provider's prompt cache
/// is forgotten, and past the hour of the longer cache.
pub(in crate::session::synthetic) const AWAY: [&Quantiles; 2] = [
    &[(0, 360_000), (70_000, 1_500_000), (100_000, 3_300_000)],
    &[(0, 3_720_000), (60_000, 9_000_000), (100_000, 57_600_000)],
];

/// Bytes of a huge result, from the fewest to the most.
pub(in crate::session::synthetic) const LARGE: (u64, u64) = (60_000, 500_000);

/// Files that are read in one go.
pub(super) const READS_AT_ONCE: usize = 5;

/// Weights of a round in which nothing but files is read.
pub(super) const READ_ONLY: [u64; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 0];

/// How much a round may show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// No result is planned with more bytes,
    pub(crate) most: u64,
    /// and the one that is drawn has at least so many, where `most` allows it.
    pub(crate) least: u64,
    /// So many files are read in one go; 0 for as many as it comes.
    pub(crate) reads: usize,
    /// A result that is shown to tell a fact has no more bytes than this, but for what it tells.
    pub(crate) aside: usize,
    /// Sizes are drawn as ever, and then scaled.
    pub(crate) scale_percent: u64,
    /// How much the agent says.
    pub(crate) talk: Talk,
}

/// How much the agent says before it uses tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// A sentence or four; mostly with what it thinks, often with an explanation.
    AsItComes,
    /// A sentence or four, and nothing else.
    Little,
    /// Always with all that it thinks, and with explanations.
    Much,
}

impl Limits {
    /// Whether a round may show something else than what is drawn for it.
    pub(crate) fn are_usual(&self) -> bool {
        self.least == 0 && self.reads == 0
    }

    /// As it comes, up to so many bytes.
    pub(crate) fn up_to(most: u64) -> Self {
        Self {
            most,
            least: 0,
            reads: 0,
            aside: 9_000,
            scale_percent: 100,
            talk: Talk::AsItComes,
        }
    }
}
