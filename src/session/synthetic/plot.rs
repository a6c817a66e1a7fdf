//! What happens over a session besides keys and rules: settings that are revised, counts that move,
//! options taken and left, roads that led nowhere, and plans of which more and more is done.
//!
//! A [`Plot`] says how much of it there is, and in which words. [`Telling`] draws when it happens,
//! and tells it in the words of the person, of the agent and of tools.

use super::Language;
use super::code_review::act::Action;
use super::grammar::output::Place;
use super::grammar::prose::Topic;
use super::random::Random;

mod schedule;
mod telling;

pub(crate) use telling::{Moment, Telling, about};

/// What happens in the sessions of a family.
#[derive(Debug)]
pub(crate) struct Plot {
    /// Part of the seed of what happens when.
    pub(crate) seed: &'static str,
    /// A chapter takes about so many rounds,
    pub(crate) rounds_per_chapter: u64,
    /// and a session has at most so many: longer ones have longer chapters.
    pub(crate) most_chapters: u64,
    /// How much is planted.
    pub(crate) density: Density,
    /// In which words.
    pub(crate) phrases: Phrases,
}

/// How much is planted in a chapter: one every so many rounds, up to a cap.
#[derive(Debug)]
pub(crate) struct Density {
    pub(crate) decisions: (u64, u64),
    pub(crate) settings: (u64, u64),
    pub(crate) suites: (u64, u64),
    pub(crate) attempts: (u64, u64),
    /// Steps of a plan, of which there are four at least.
    pub(crate) steps: (u64, u64),
    /// The fewest and the most values of a key that changes.
    pub(crate) revisions: (u64, u64),
    /// The part of the chapter, in percent, in which counts are printed.
    pub(crate) counted: (u64, u64),
    /// How counts move.
    pub(crate) counts: Counts,
    /// Of a hundred revisions the person types so many; tools print the others.
    pub(crate) typed: u64,
    /// Keys that are revised over the whole session, at most.
    pub(crate) standing: u64,
}

/// How counts move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Each is larger than the one before: the largest is the newest.
    Grow,
    /// Up and down: only the order tells which is the newest.
    Vary,
}

/// In which words it is told. In templates stand `{chapter}`, `{noun}`, `{path}`, `{symbol}` and
/// `{elsewhere}`, and what else a field names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phrases {
    /// The languages that have tables of all of it.
    pub(crate) languages: &'static [Language],
    /// What is decided about a chapter.
    pub(crate) aspects: Templates,
    /// What an option is.
    pub(crate) designs: Templates,
    /// Why an option was taken: with `{name}`, made up for the occasion.
    pub(crate) grounds: Templates,
    /// How a decision is said: `{key}`, `{all}`, `{choice}`, `{reason}`.
    pub(crate) decided: Templates,
    /// What has a value that is revised.
    pub(crate) settings: Templates,
    /// How a revised value is said by the person: `{key}`, `{value}`.
    pub(crate) revised: Templates,
    /// What is counted.
    pub(crate) suites: Templates,
    /// How a count is printed: `{key}`, `{value}`.
    pub(crate) counted: Templates,
    /// What is counted in it.
    pub(crate) unit: &'static str,
    /// What is tried in vain,
    pub(crate) methods: Templates,
    /// where: `{method}`, `{name}`.
    pub(crate) approach: &'static str,
    /// How a tool says that it did not work: `{approach}`, `{reason}`, `{fault}`.
    pub(crate) collapsed: Templates,
    /// What the agent concludes: `{approach}`, `{reason}`.
    pub(crate) given_up: Templates,
    /// How it is asked for: `{approach}`.
    pub(crate) tried: &'static str,
    /// Steps of a plan: `{name}`, `{noun}`.
    pub(crate) steps: Templates,
    /// What the agent says when it writes its list.
    pub(crate) listing: Templates,
}

/// Banks of templates.
pub(crate) type Templates = &'static [&'static str];

/// Where it happens: what tools show there.
pub(crate) trait Site {
    /// What is talked about now.
    fn topic(&self, random: &mut Random) -> Topic;

    /// Where the work is now.
    fn here(&self, random: &mut Random) -> Place;

    /// An action that prints what is set, with this line among it.
    fn settings(&self, random: &mut Random, spot: &Spot, line: String) -> Action;

    /// An action that counts, with this line as its result.
    fn count(&self, random: &mut Random, spot: &Spot, line: String) -> Action;

    /// An action that fails; how, is still to be said.
    fn failure(&self, random: &mut Random, spot: &Spot) -> Action;
}

/// What a tool shows something about.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    pub(crate) now: i64,
    /// About so many bytes may be shown besides what is told.
    pub(crate) room: usize,
}
