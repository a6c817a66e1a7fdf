//! Families of sessions: what a TOML file in `families` says about the work, when things
//! happen in it, and in which words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Language;
use super::grammar::Grammar;
use super::workspace::{Intent, WorkspaceKind};

/// A kind of work that sessions can be generated of: one file, one line in [`FAMILIES`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The name used in scenarios, and part of the seed.
    pub name: &'static str,
    /// One sentence: what such a session stresses.
    pub description: &'static str,
    /// The languages it is written in; English is among them.
    #[serde(default = "english")]
    pub languages: Vec<Language>,
    /// The family whose phrases it uses, if not its own.
    like: Option<&'static str>,
    /// Sets how many facts and files a session of a given number of tokens gets, and nothing else.
    pub(crate) tokens_per_round: u64,
    pub(crate) workspace: WorkspaceKind,
    /// By kind of fact: one is planted every this many rounds, up to a cap.
    pub(crate) every: Every,
    /// All facts are said by this thousandth of the session.
    #[serde(default = "the_end")]
    pub(crate) said_by: u64,
    /// The percentage of requests before which the person is away; otherwise no gap reaches five
    /// minutes.
    #[serde(default)]
    pub(crate) away_percent: u64,
    pub(crate) work: Work,
    pub(crate) timeline: TimelinePlan,
    /// The words of the timeline. Templates may have `{chapter}`, `{noun}`, `{path}`, `{symbol}`
    /// and `{elsewhere}`, and the slots that a comment in the file names.
    #[serde(default)]
    pub(crate) phrases: Grammar,
}

/// How the work is divided.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    Tasks(Tasks),
    Phases(Phases),
}

/// By kind of fact: one is planted every this many rounds, up to a cap.
pub(crate) type Every = BTreeMap<&'static str, (u64, u64)>;

/// How often the agent does what.
pub(crate) type Weights = BTreeMap<Intent, u64>;

/// One request after another, each with its rounds of work.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tasks {
    /// The fewest and the most rounds between two requests.
    pub(crate) rounds: (u64, u64),
    /// Whether the user interrupts a task to say a fact.
    pub(crate) interrupts: bool,
    /// Rounds in which a huge result is shown, in percent.
    #[serde(default)]
    pub(crate) large_percent: u64,
    /// Rounds in which many files are read in one go, in percent.
    #[serde(default)]
    pub(crate) at_once_percent: u64,
    /// Whether most of the history is there when the session begins.
    #[serde(default)]
    pub(crate) resumed: bool,
    /// Whether the agent is shown the screen.
    #[serde(default)]
    pub(crate) screenshots: bool,
    pub(crate) weights: Weights,
}

/// Chapters of four phases, each ended by the person.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phases {
    /// Whether it begins with a little script and some talk, which nothing later refers to.
    #[serde(default)]
    pub(crate) small_talk: bool,
    /// Where the first three phases of a chapter end, in percent.
    pub(crate) ends: [u64; 3],
    pub(crate) weights: [Weights; 4],
}

/// The events of each chapter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct TimelinePlan {
    /// The approximate number of rounds of a chapter,
    pub(crate) rounds_per_chapter: u64,
    /// and the greatest number of chapters of a session: longer ones have longer chapters.
    pub(crate) most_chapters: u64,
    /// By kind of fact: one is planted every this many rounds of a chapter, up to a cap.
    pub(crate) every: Every,
    /// Steps of a plan: one every so many rounds, four at least, up to a cap.
    pub(crate) steps: (u64, u64),
    /// The fewest and the most values of a key that changes.
    pub(crate) revisions: (u64, u64),
    /// The part of the chapter, in percent, in which counts are printed.
    pub(crate) counted: (u64, u64),
    pub(crate) counts: CountTrend,
    /// The percentage of keys whose values the user types; tools print those of the others.
    pub(crate) typed: u64,
}

/// How counts move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CountTrend {
    /// Each is larger than the one before: the largest is the newest.
    Grow,
    /// Up and down: only the order shows which is the newest.
    Vary,
}

fn english() -> Vec<Language> {
    vec![Language::English]
}

fn the_end() -> u64 {
    1_000
}

/// All families, in the order of the documentation.
pub static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let texts = [
        include_str!("../families/code-review.toml"),
        include_str!("../families/feature-phases.toml"),
        include_str!("../families/ci-agent.toml"),
        include_str!("../families/teaching.toml"),
        include_str!("../families/pause-return.toml"),
        include_str!("../families/huge-outputs.toml"),
        include_str!("../families/resumed.toml"),
        include_str!("../families/debugging.toml"),
        include_str!("../families/small-talk-start.toml"),
        include_str!("../families/policy-support.toml"),
        include_str!("../families/screenshots.toml"),
        include_str!("../families/marathon.toml"),
    ];
    // A test reads each of them, so that none is left out.
    let mut families: Vec<Family> = texts.into_iter().flat_map(toml::from_str).collect();
    for at in 0..families.len() {
        let base = families.iter().find(|family| Some(family.name) == families[at].like);
        if let Some(phrases) = base.map(|base| base.phrases.clone()) {
            families[at].phrases = phrases;
        }
    }
    families
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_read_and_has_phrases() {
        const RULES: [&str; 14] = [
            "aspects",
            "designs",
            "grounds",
            "decided",
            "settings",
            "suites",
            "counted",
            "unit",
            "methods",
            "approach",
            "collapsed",
            "given_up",
            "tried",
            "steps",
        ];
        const PHASES: [&str; 10] = [
            "system",
            "openings",
            "remarks",
            "reports",
            "farewells",
            "snipping",
            "condensing",
            "turns.1",
            "turns.2",
            "turns.3",
        ];
        assert_eq!(FAMILIES.len(), 12);
        for family in FAMILIES.iter() {
            let phrases = &family.phrases;
            for rule in RULES {
                assert!(!phrases.bank(rule).is_empty(), "{}: {rule}", family.name);
            }
            let is_revised = phrases.bank("revised").len() > 2;
            assert!(is_revised || family.timeline.typed == 0, "{}", family.name);
            let is_in_phases = matches!(family.work, Work::Phases(_));
            for rule in PHASES {
                let words = phrases.bank(&format!("phases.{rule}"));
                assert_eq!(words.is_empty(), !is_in_phases, "{}: {rule}", family.name);
            }
        }
    }
}
