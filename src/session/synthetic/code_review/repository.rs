//! The repository that is worked on, and what the agent remembers of it.

use serde_json::json;

use super::act::{Action, Memory};
use crate::session::synthetic::Recipe;
use crate::session::synthetic::grammar::output::{self, Place};
use crate::session::synthetic::grammar::prose::Topic;
use crate::session::synthetic::plot::{Site, Spot};
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools::Tool;
use crate::session::synthetic::workspace::Workspace;

/// Bytes of a line of a log, about.
const LINE: usize = 120;

/// What there is, and what was seen of it.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) workspace: Workspace,
    pub(crate) memory: Memory,
}

impl Repository {
    /// A repository of at least so many files, at which nobody has looked yet.
    pub(crate) fn new(recipe: &Recipe, files: u64, random: &mut Random) -> Self {
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let mut workspace = Workspace::new(recipe.seed, files).with_usual(random.usual_percent());
        let memory = Memory::new(&mut workspace, random, recipe.language);
        Self { workspace, memory }
    }
}

impl Site for Repository {
    fn topic(&self, random: &mut Random) -> Topic {
        self.memory.topic(&self.workspace, random)
    }

    fn here(&self, random: &mut Random) -> Place {
        self.memory.here(&self.workspace, random)
    }

    fn settings(&self, random: &mut Random, spot: &Spot, line: String) -> Action {
        let mut lines = vec![line];
        for _ in 0..random.count(4, 12).min(spot.room / LINE) {
            let line = output::log_line(random, &spot.place, spot.now, &mut Vec::new());
            let at = random.index(lines.len() + 1);
            lines.insert(at, line);
        }
        Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/settings show {}", spot.place.noun),
                "description": "show the settings in force",
            }),
            output: lines.join("\n"),
            failed: false,
        }
    }

    fn count(&self, random: &mut Random, spot: &Spot, line: String) -> Action {
        let size = random.count(400, 2_400).min(spot.room);
        let mut run = output::test_run(random, std::slice::from_ref(&spot.place), spot.now, size);
        run.lines.push(line);
        Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/verify {} --count", spot.place.noun),
                "description": "run the tests and count the cases",
            }),
            output: run.lines.join("\n"),
            failed: run.failed,
        }
    }

    fn failure(&self, random: &mut Random, spot: &Spot) -> Action {
        let size = random.count(300, 1_800).min(spot.room);
        let log = output::log(random, &spot.place, spot.now, size);
        Action {
            tool: Tool::Bash,
            input: json!({
                "command": format!("scripts/prototype {}", spot.place.noun),
                "description": "try the idea on recorded traffic",
            }),
            output: log.lines.join("\n"),
            failed: true,
        }
    }
}
