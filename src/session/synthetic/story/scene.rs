//! Where the agent of a story works: a repository, or a help desk.

use serde_json::json;

use super::Scenery;
use crate::session::ToolSchema;
use crate::session::synthetic::code_review::act::{Action, Memory, Round};
use crate::session::synthetic::code_review::profile::Limits;
use crate::session::synthetic::desk::Desk;
use crate::session::synthetic::facts::Planned;
use crate::session::synthetic::grammar::output::{self, Place};
use crate::session::synthetic::grammar::prose::Topic;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools::{self, Tool};
use crate::session::synthetic::workspace::Workspace;

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
    Repository {
        workspace: Workspace,
        memory: Memory,
    },
    Desk(Desk),
}

impl Scene {
    /// A scene for so many rounds.
    pub(super) fn new(scenery: Scenery, seed: u64, rounds: u64, random: &mut Random) -> Self {
        match scenery {
            Scenery::Repository => {
                let files = usize::try_from(40 + rounds * 3 / 5).unwrap_or(usize::MAX);
                let mut workspace = Workspace::new(seed, files).with_usual(random.usual_percent());
                let memory = Memory::new(&mut workspace, random);
                Self::Repository { workspace, memory }
            }
            Scenery::Desk => Self::Desk(Desk::new(seed)),
        }
    }

    /// The work turns to something else, or stays where there is much left to do.
    pub(super) fn turn(&mut self, random: &mut Random) {
        match self {
            Self::Repository { workspace, memory } => {
                memory.turn(workspace, random);
            }
            Self::Desk(desk) => desk.turn(random),
        }
    }

    /// What is talked about now.
    pub(super) fn topic(&self, random: &mut Random) -> Topic {
        match self {
            Self::Repository { workspace, memory } => memory.topic(workspace, random),
            Self::Desk(desk) => desk.topic(random),
        }
    }

    /// Where the work is now.
    pub(super) fn here(&self, random: &mut Random) -> Place {
        match self {
            Self::Repository { workspace, memory } => memory.here(workspace, random),
            Self::Desk(desk) => desk.here(),
        }
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
            Self::Repository { workspace, memory } => {
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
            Self::Repository { workspace, memory } => {
                memory.reveal(workspace, random, fact, now, limits)
            }
            Self::Desk(desk) => desk.reveal(random, fact, now),
        }
    }

    /// An action that prints what is set, with this line among it.
    pub(super) fn settings(
        &self,
        random: &mut Random,
        place: &Place,
        now: i64,
        line: String,
    ) -> Action {
        if let Self::Desk(desk) = self {
            return desk.settings(random, now, &line);
        }
        let mut lines = vec![line];
        for _ in 0..random.count(4, 12) {
            let line = output::log_line(random, place, now, &mut Vec::new());
            let slot = random.index(lines.len() + 1);
            lines.insert(slot, line);
        }
        Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/settings show {}", place.noun),
                "description": "show the settings in force",
            }),
            output: lines.join("\n"),
            failed: false,
        }
    }

    /// An action that counts, with this line as its result.
    pub(super) fn count(
        &self,
        random: &mut Random,
        place: &Place,
        now: i64,
        line: String,
    ) -> Action {
        if let Self::Desk(_) = self {
            return Desk::count(random, line);
        }
        let size = random.count(400, 2_400);
        let mut run = output::test_run(random, std::slice::from_ref(place), now, size);
        run.lines.push(line);
        Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/verify {} --count", place.noun),
                "description": "run the tests and count the cases",
            }),
            output: run.lines.join("\n"),
            failed: run.failed,
        }
    }

    /// An action that fails; how, is still to be said.
    pub(super) fn failure(&self, random: &mut Random, place: &Place, now: i64) -> Action {
        if let Self::Desk(desk) = self {
            return desk.failure(random);
        }
        let size = random.count(300, 1_800);
        let log = output::log(random, place, now, size);
        Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/prototype {}", place.noun),
                "description": "try the idea on recorded traffic",
            }),
            output: log.lines.join("\n"),
            failed: true,
        }
    }
}
