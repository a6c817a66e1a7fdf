//! Work in chapters of four phases, each ended by a person: the frame of several families.
//!
//! What changes its value is here: settings that are revised, counts that move, plans of which more
//! and more is done. So is what was settled: options taken and left, and roads that led nowhere. A
//! [`Story`] says what the work is, and in which words.

use super::code_review::profile::Away;
use super::{Family, Generated, Recipe};
use crate::session::SessionError;
use crate::tokens::CountedTexts;

mod author;
mod scene;
mod schedule;
mod small_talk;

use author::Author;

/// What sets a family apart.
#[derive(Debug)]
pub(super) struct Story {
    /// The name used in scenarios, and part of the seed.
    pub(super) name: &'static str,
    /// One sentence: what such a session stresses.
    pub(super) description: &'static str,
    /// Part of the seed of what happens when.
    pub(super) schedule: &'static str,
    /// Sets how many facts and files a session of a given number of tokens gets, and nothing else.
    pub(super) tokens_per_round: u64,
    /// A chapter takes about so many rounds,
    pub(super) rounds_per_chapter: u64,
    /// and a session has at most so many: longer ones have longer phases.
    pub(super) most_chapters: u64,
    /// Where the first three phases of a chapter end, in percent.
    pub(super) phase_ends: [u64; 3],
    /// What the agent does in each phase, with the weights of its scene.
    pub(super) weights: [[u64; 9]; 4],
    /// Where it works.
    pub(super) scenery: Scenery,
    /// How it begins.
    pub(super) opening: Opening,
    /// How long the person is away.
    pub(super) away: Away,
    /// A key is planted every so many rounds, up to a cap,
    pub(super) recalls: (u64, u64),
    /// and a rule.
    pub(super) constraints: (u64, u64),
    /// How much of all else is planted.
    pub(super) density: Density,
    /// In which words.
    pub(super) words: Words,
}

/// Where the agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenery {
    /// In a repository, with files and a shell.
    Repository,
    /// At a help desk, with customers and their orders.
    Desk,
}

/// How a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// With the work.
    Work,
    /// With a little script and some talk, which nothing later refers to.
    SmallTalk,
}

/// How much is planted in a chapter: one every so many rounds, up to a cap.
#[derive(Debug)]
pub(super) struct Density {
    pub(super) decisions: (u64, u64),
    pub(super) settings: (u64, u64),
    pub(super) suites: (u64, u64),
    pub(super) attempts: (u64, u64),
    /// The fewest and the most values of a key that changes.
    pub(super) revisions: (u64, u64),
    /// The part of the chapter, in percent, in which counts are printed.
    pub(super) counted: (u64, u64),
    /// How counts move.
    pub(super) counts: Counts,
    /// Keys that are revised over the whole session, at most.
    pub(super) standing: u64,
}

/// How counts move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// Each is larger than the one before: the largest is the newest.
    Grow,
    /// Up and down: only the order tells which is the newest.
    Vary,
}

/// The words of a story. In templates stand `{chapter}`, `{noun}`, `{path}`, `{symbol}` and
/// `{elsewhere}`, and what else a field names.
#[derive(Debug)]
pub(super) struct Words {
    /// The system prompt.
    pub(super) system: &'static str,
    /// What the person says to begin.
    pub(super) openings: Templates,
    /// What ends each phase and begins the next.
    pub(super) turns: [Templates; 4],
    /// What the person would have a compaction at the end of each phase keep; empty for no hint.
    pub(super) hints: [&'static str; 4],
    /// What the person throws in between.
    pub(super) remarks: Templates,
    /// How the agent reports at the end of a phase.
    pub(super) reports: Templates,
    /// What the person says at the end.
    pub(super) farewells: Templates,
    /// What the agent says when it writes its list.
    pub(super) listing: Templates,
    /// What the agent says when it marks results as not needed.
    pub(super) snipping: Templates,
    /// What the agent says when it has the conversation summarised, and what must be kept.
    pub(super) condensing: &'static [(&'static str, &'static str)],
    /// What is decided about a chapter.
    pub(super) aspects: Templates,
    /// What an option is.
    pub(super) designs: Templates,
    /// Why an option was taken: with `{name}`, made up for the occasion.
    pub(super) grounds: Templates,
    /// How a decision is said: `{key}`, `{all}`, `{choice}`, `{reason}`.
    pub(super) decided: Templates,
    /// What has a value that is revised.
    pub(super) settings: Templates,
    /// How a revised value is said by the person: `{key}`, `{value}`.
    pub(super) revised: Templates,
    /// What is counted.
    pub(super) suites: Templates,
    /// How a count is printed: `{key}`, `{value}`.
    pub(super) counted: Templates,
    /// What is counted in it.
    pub(super) unit: &'static str,
    /// What is tried in vain,
    pub(super) methods: Templates,
    /// where: `{method}`, `{name}`.
    pub(super) approach: &'static str,
    /// How a tool says that it did not work: `{approach}`, `{reason}`, `{fault}`.
    pub(super) collapsed: Templates,
    /// What the agent concludes: `{approach}`, `{reason}`.
    pub(super) given_up: Templates,
    /// How it is asked for: `{approach}`.
    pub(super) tried: &'static str,
    /// Steps of a plan: `{name}`, `{noun}`.
    pub(super) steps: Templates,
}

type Templates = &'static [&'static str];

impl Family for Story {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SessionError> {
        Author::new(self, recipe, counts).write(recipe)
    }
}
