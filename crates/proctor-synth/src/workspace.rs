//! Where the agent works, what it does there in a round, and how much a round may show.

use serde::Deserialize;
use serde_json::Value;

use super::Recipe;
use super::facts::{Channel, Content};
use super::family::Weights;
use super::help_desk::HelpDesk;
use super::prose::Topic;
use super::random::Random;
use super::repository::Repository;
use super::words::{HELP_DESK_FACTS, REPOSITORY_FACTS, WorkFacts};

/// A kind of workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkspaceKind {
    /// A repository, with files and a shell.
    Repository,
    /// A help desk, with customers and their orders.
    HelpDesk,
}

impl WorkspaceKind {
    /// The words of its facts.
    pub(crate) fn facts(self) -> &'static WorkFacts {
        match self {
            Self::Repository => &REPOSITORY_FACTS,
            Self::HelpDesk => &HELP_DESK_FACTS,
        }
    }

    /// A workspace of which the agent has seen nothing yet, of about `files` files if it has any.
    pub(crate) fn open(self, recipe: &Recipe, files: u64, random: &Random) -> Box<dyn Workspace> {
        match self {
            Self::Repository => Box::new(Repository::new(recipe, files, random)),
            Self::HelpDesk => Box::new(HelpDesk::new(recipe, random)),
        }
    }
}

/// The place where the agent works.
pub(crate) trait Workspace {
    /// The work turns to something else, or stays where there is much left to do. The topic, where
    /// the turn draws one.
    fn turn(&mut self) -> Option<Topic>;

    /// The subject of the conversation now.
    fn topic(&self) -> Topic;

    /// One round of work.
    fn round(&mut self, choice: WorkChoice<'_>, moment: WorkMoment) -> Round;

    /// The action whose result says a planted fact by a channel.
    fn show(&mut self, channel: Channel, content: &Content, moment: WorkMoment) -> Action;
}

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Intent {
    Read,
    Search,
    Test,
    Observe,
    Edit,
    Create,
    Find,
    List,
    Look,
    Policy,
    Change,
    Refund,
    History,
    Orient,
    Fetch,
    Note,
    Write,
    /// Something besides the work.
    Aside,
}

/// How the kind of work of a round is chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WorkChoice<'a> {
    Weighted(&'a Weights),
    /// Whatever else the agent does.
    Only(Intent),
}

/// A tool use with its result.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) tool: &'static str,
    pub(crate) input: Value,
    pub(crate) output: String,
    pub(crate) failed: bool,
}

impl Action {
    pub(crate) fn new(tool: &'static str, input: Value, output: String) -> Self {
        Self { tool, input, output, failed: false }
    }
}

/// The agent's words and actions in one round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) thought: Option<String>,
    pub(crate) paragraphs: Vec<String>,
    pub(crate) actions: Vec<Action>,
}

/// When the agent acts, and how much the round may show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkMoment {
    /// In thousandths of the session.
    pub(crate) progress: u64,
    /// The index of the message in which it asks for tools.
    pub(crate) asking: usize,
    pub(crate) now: i64,
    /// No result is planned with more bytes,
    pub(crate) most: usize,
    /// and the one that is drawn has at least this many, if `most` allows it.
    pub(crate) least: usize,
    /// The number of files that are read in one go; 0 leaves it to the draw.
    pub(crate) reads: usize,
    /// The most bytes of a result that says a fact, without the fact.
    pub(crate) aside: usize,
    /// Sizes are drawn as ever, and then scaled.
    pub(crate) scale_percent: usize,
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

impl Talk {
    /// The number of explanations, which `percent` of the rounds have.
    pub(crate) fn explanations(self, random: &Random, percent: u64, most: usize) -> usize {
        match self {
            Self::AsItComes => usize::from(random.percent(percent)),
            Self::Little => 0,
            Self::Much => most,
        }
    }

    /// Whether the agent thinks aloud, as in `percent` of the rounds.
    pub(crate) fn thinks(self, random: &Random, percent: u64) -> bool {
        self.explanations(random, percent, 1) > 0
    }
}

impl WorkMoment {
    /// The bytes of a round's result, from the drawn size.
    pub(crate) fn size(self, drawn: usize) -> usize {
        let scaled = drawn * self.scale_percent / 100;
        scaled.max(self.least).min(self.most)
    }
}
