//! `shard.json`: which part of a run a folder holds.
//!
//! The part of each session follows from the run's manifest alone, so that machines that cannot see each other
//! divide it alike.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Manifest, SessionEntry};
use crate::record::words::ModelKind;
use crate::units::ContentHash;

/// The value of `format` in a `shard.json`.
pub const FORMAT: &str = "proctor-shard";

/// Version of the file.
pub const VERSION: u32 = 1;

/// More shards than any cluster has tasks.
pub const MOST_SHARDS: u32 = 100_000;

/// How the sessions of a run are divided.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Division {
    /// By a hash of the session's id.
    Hash,
    /// By the work that a session is, the largest first, each to the shard with the least.
    Cost,
}

impl Division {
    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Cost => "cost",
        }
    }

    /// The shard of each session, from 1 to `of`, in the order of the sessions.
    pub fn shards(self, of: u32, manifest: &Manifest) -> Vec<u32> {
        let sessions = &manifest.sessions;
        match self {
            Self::Hash => sessions
                .iter()
                .map(|session: &SessionEntry| {
                    let hash = ContentHash::of(&session.id);
                    let (bytes, _) = hash.bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
                    let at = u64::from_le_bytes(*bytes) % u64::from(of.max(1));
                    u32::try_from(at).unwrap_or_default() + 1
                })
                .collect(),
            Self::Cost => {
                let mut order: Vec<usize> = (0..sessions.len()).collect();
                order.sort_by_key(|at| (Reverse(work(manifest, *at)), *at));
                let mut free: BinaryHeap<_> = (1..=of.max(1)).map(|at| Reverse((0, at))).collect();
                let mut shards = vec![1; sessions.len()];
                for at in order {
                    if let Some(mut least) = free.peek_mut() {
                        shards[at] = least.0.1;
                        least.0.0 += work(manifest, at);
                    }
                }
                shards
            }
        }
    }
}

impl FromStr for Division {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let found = [Self::Cost, Self::Hash].into_iter().find(|division| division.name() == typed);
        found.ok_or_else(|| "it must be `cost` or `hash`".to_owned())
    }
}

/// The work that a session is, relative to others of the same run. Measured on generated sessions of 8 to 120 calls: a
/// call costs 2.3 to 6.2 ms of processor time under three strategies, and sizing and searching its texts a little more. Where
/// a live model answers, each question is a request, which takes a thousand times as long.
pub fn work(manifest: &Manifest, session: usize) -> u64 {
    let entry = &manifest.sessions[session];
    let question = match manifest.reader.as_ref().map(|reader| reader.kind) {
        Some(ModelKind::Live) => 1_000_000,
        Some(ModelKind::Deterministic | ModelKind::Scripted) | None => 300,
    };
    entry.calls as u64 * 2_500 + entry.items as u64 * question + entry.tokens.0 / 4
}

/// One part of a run, written `cost:3/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// How sessions are divided.
    pub by: Division,
    /// Which part, from 1 to `of`.
    pub shard: u32,
    /// How many parts there are.
    pub of: u32,
}

impl fmt::Display for Partition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}/{}", self.by.name(), self.shard, self.of)
    }
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{typed}` does not name a part: write `cost:3/16`, `hash:3/16` or `auto`");
        let (name, part) = typed.split_once(':').ok_or_else(wrong)?;
        let by = name.parse().map_err(|_| wrong())?;
        let (shard, of) = part.split_once('/').ok_or_else(wrong)?;
        let [shard, of] = [shard, of].map(|digits| digits.parse::<u32>().map_err(|_| wrong()));
        Self::new(by, shard?, of?)
    }
}

/// A batch engine that numbers the tasks of a job in its environment.
struct BatchEngine {
    name: &'static str,
    /// The variable with the number of a task.
    task: &'static str,
    /// The number of the first task: a variable, else the number itself.
    first: (&'static str, u32),
    /// The variable with the number of the last task, if there is one.
    last: &'static str,
    /// The variable with the number of tasks.
    tasks: &'static str,
    hint: &'static str,
}

impl BatchEngine {
    /// The number in the text of this variable.
    fn number(&self, name: &str, text: &str) -> Result<u32, String> {
        let of = self.name;
        let number = text.trim().parse();
        number.map_err(|_| format!("`{name}` of {of} is `{text}`, which is not a number"))
    }
}

const ENGINES: [BatchEngine; 3] = [
    BatchEngine {
        name: "Slurm",
        task: "SLURM_ARRAY_TASK_ID",
        first: ("SLURM_ARRAY_TASK_MIN", 0),
        last: "SLURM_ARRAY_TASK_MAX",
        tasks: "SLURM_ARRAY_TASK_COUNT",
        hint: "`sbatch --array=1-16` sets it",
    },
    BatchEngine {
        name: "Kubernetes",
        task: "JOB_COMPLETION_INDEX",
        first: ("", 0),
        last: "",
        tasks: "PROCTOR_SHARDS",
        hint: "Kubernetes does not say how many completions a job has: set it in the container's `env`",
    },
    BatchEngine {
        name: "GitLab",
        task: "CI_NODE_INDEX",
        first: ("", 1),
        last: "",
        tasks: "CI_NODE_TOTAL",
        hint: "`parallel: 16` sets it",
    },
];

impl Partition {
    /// The part with this number; an error in words where there is none.
    pub fn new(by: Division, shard: u32, of: u32) -> Result<Self, String> {
        if of > MOST_SHARDS {
            return Err(format!("{of} shards are too many: at most {MOST_SHARDS}"));
        }
        if shard == 0 || shard > of {
            return Err(format!("there is no shard {shard} of {of}: shards are counted from 1"));
        }
        Ok(Self { by, shard, of })
    }

    /// The part of the task that a batch engine started this process for, read from its variables. The work is
    /// divided by [`Division::Cost`].
    pub fn of_engine(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let found = ENGINES.iter().find_map(|engine| Some((engine, variable(engine.task)?)));
        let Some((engine, task)) = found else {
            let names = ENGINES.map(|engine| format!("`{}`", engine.task)).join(", ");
            return Err(format!(
                "this is not the task of a batch engine: none of {names} is set; write `cost:K/N`"
            ));
        };
        let of = engine.name;
        let task = engine.number(engine.task, &task)?;
        let tasks = variable(engine.tasks).ok_or_else(|| {
            let (tasks, hint) = (engine.tasks, engine.hint);
            format!("`{tasks}` is not set, so that the number of {of}'s tasks is not known: {hint}")
        })?;
        let tasks = engine.number(engine.tasks, &tasks)?;
        let (first, default) = engine.first;
        let first = variable(first).map_or(Ok(default), |text| engine.number(first, &text))?;
        let end = variable(engine.last).map(|text| engine.number(engine.last, &text));
        let last = end.transpose()?.map(|end| end.saturating_sub(first));
        // Of a task that is submitted again alone, or of every second one, the number of all is not known.
        if tasks == 1 || last.is_some_and(|last| last.checked_add(1) != Some(tasks)) {
            let part = task.saturating_add(1).saturating_sub(first.min(1)).max(1);
            return Err(format!(
                "the tasks of this {of} job are not those of a whole run: name the part, as in `cost:{part}/16`"
            ));
        }
        let shard = task.checked_sub(first).map_or(0, |at| at.saturating_add(1));
        Self::new(Division::Cost, shard, tasks)
    }

    /// Whether sessions are divided in the same way in both.
    pub fn divides_like(self, other: Self) -> bool {
        (self.by, self.of) == (other.by, other.of)
    }
}

/// A file or recipe of sessions, as a plan found it.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedSource {
    /// The name of the file, without its folder; the id of a generated session.
    pub name: String,
    /// The ids of its sessions.
    pub sessions: Vec<String>,
    /// The ids of sessions whose beginning one of them repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// `shard.json`: the part of the run that its folder holds.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Always `proctor-shard`.
    pub format: String,
    /// [`VERSION`] of the build that wrote it.
    pub version: u32,
    /// Which part it is.
    pub part: Partition,
    /// Whether parts were joined here: then `part` is one of them.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub is_merged: bool,
    /// The command that makes it, with `--partition` and `--out` left out: its words.
    pub command: Vec<String>,
    /// The limit that stopped it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Shard {
    /// This part, made by this command.
    pub fn new(part: Partition, command: Vec<String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            part,
            is_merged: false,
            command,
            stopped: None,
        }
    }
}
