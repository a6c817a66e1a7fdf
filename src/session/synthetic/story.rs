//! Work in chapters of four phases, each ended by a person: the frame of several families.
//!
//! A [`Story`] says what the work is, and in which words a person leads through it. What happens on
//! the way is its [`Plot`].

use super::code_review::profile::Away;
use super::plot::{Plot, Templates};
use super::{Family, Generated, Language, Recipe};
use crate::session::SessionError;
use crate::tokens::CountedTexts;

mod author;
mod scene;
mod small_talk;

use author::Author;

/// What sets a family apart.
#[derive(Debug)]
pub(super) struct Story {
    /// The name used in scenarios, and part of the seed.
    pub(super) name: &'static str,
    /// One sentence: what such a session stresses.
    pub(super) description: &'static str,
    /// Sets how many facts and files a session of a given number of tokens gets, and nothing else.
    pub(super) tokens_per_round: u64,
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
    /// What else happens.
    pub(super) plot: Plot,
    /// The words of its frame.
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

/// The words of a story's frame. In templates stand `{chapter}`, `{noun}`, `{path}`, `{symbol}` and
/// `{elsewhere}`.
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
    /// What the agent says when it marks results as not needed.
    pub(super) snipping: Templates,
    /// What the agent says when it has the conversation summarised, and what must be kept.
    pub(super) condensing: &'static [(&'static str, &'static str)],
}

impl Family for Story {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn languages(&self) -> &'static [Language] {
        self.plot.phrases.languages
    }

    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SessionError> {
        Author::new(self, recipe, counts).write(recipe)
    }
}
