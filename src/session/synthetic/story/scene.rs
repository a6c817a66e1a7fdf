//! Where the agent of a story works: a repository, or a help desk.

use super::Scenery;
use crate::session::ToolSchema;
use crate::session::synthetic::Recipe;
use crate::session::synthetic::code_review::act::{Action, Round};
use crate::session::synthetic::code_review::profile::Limits;
use crate::session::synthetic::code_review::repository::Repository;
use crate::session::synthetic::desk::Desk;
use crate::session::synthetic::facts::Planned;
use crate::session::synthetic::grammar::prose::Topic;
use crate::session::synthetic::plot::Site;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools;

impl Scenery {
    /// The tools at hand.
    pub(super) fn tools(self) -> Vec<ToolSchema> {
        match self {
            Self::Repository => tools::schemas_with_snip(),
            Self::Desk => tools::schemas_of_desk(),
        }
    }
}

/// What the agent finds, and what it remembers of it.
#[derive(Debug)]
pub(super) enum Scene {
    Repository(Repository),
    Desk(Desk),
}

impl Scene {
    /// A scene for so many rounds.
    pub(super) fn new(scenery: Scenery, recipe: &Recipe, rounds: u64, random: &mut Random) -> Self {
        match scenery {
            Scenery::Repository => {
                Self::Repository(Repository::new(recipe, 40 + rounds * 3 / 5, random))
            }
            Scenery::Desk => Self::Desk(Desk::new(recipe.seed, recipe.language)),
        }
    }

    /// What tools show there.
    pub(super) fn site(&self) -> &dyn Site {
        match self {
            Self::Repository(repository) => repository,
            Self::Desk(desk) => desk,
        }
    }

    /// The work turns to something else, or stays where there is much left to do.
    pub(super) fn turn(&mut self, random: &mut Random) {
        match self {
            Self::Repository(Repository { workspace, memory }) => {
                memory.turn(workspace, random);
            }
            Self::Desk(desk) => desk.turn(random),
        }
    }

    /// What is talked about now.
    pub(super) fn topic(&self, random: &mut Random) -> Topic {
        self.site().topic(random)
    }

    /// One round of work, of a kind drawn with these weights.
    pub(super) fn round(
        &mut self,
        random: &mut Random,
        weights: &[u64; 9],
        now: i64,
        limits: Limits,
    ) -> Round {
        match self {
            Self::Repository(Repository { workspace, memory }) => {
                memory.round(workspace, random, Some(weights), now, limits)
            }
            Self::Desk(desk) => desk.round(random, weights, now, limits),
        }
    }

    /// The action whose result says a planted fact, among others of its kind.
    pub(super) fn reveal(
        &mut self,
        random: &mut Random,
        fact: &Planned,
        now: i64,
        limits: Limits,
    ) -> Action {
        match self {
            Self::Repository(Repository { workspace, memory }) => {
                memory.reveal(workspace, random, fact, now, limits)
            }
            Self::Desk(desk) => desk.reveal(random, fact, now),
        }
    }
}
