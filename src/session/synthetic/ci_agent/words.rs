//! The words of a pipeline: the agent decides alone, tools print what is set, and tests are counted.

use crate::session::synthetic::Language;
use crate::session::synthetic::code_review::words;
use crate::session::synthetic::plot::Phrases;

/// All of it. Nobody types, so how a person says a revised value is never asked for.
pub(super) const PHRASES: Phrases = Phrases {
    languages: &[Language::English],
    aspects: ASPECTS,
    designs: DESIGNS,
    grounds: GROUNDS,
    decided: DECIDED,
    settings: SETTINGS,
    suites: SUITES,
    counted: COUNTED,
    unit: "tests",
    methods: METHODS,
    approach: "{method} on {name}",
    collapsed: COLLAPSED,
    given_up: GIVEN_UP,
    tried: "Was {approach} tried, and how did the run end?",
    steps: STEPS,
    listing: LISTING,
    ..words::PHRASES
};

/// What is decided about a run.
const ASPECTS: &[&str] = &[
    "cache scope",
    "job order",
    "runner size",
    "quarantine list",
    "time limit",
    "artefact store",
    "matrix split",
    "base image",
];

/// What an option is.
const DESIGNS: &[&str] = &["lane", "image", "shard", "cache", "queue", "gate"];

/// Why an option was taken; the name in it is made up for the occasion.
const GROUNDS: &[&str] = &[
    "it passed three times in a row on {name}",
    "it needs no secret of the {name} pool",
    "it leaves room for the {name} job on the same runner",
    "it is what the {name} branch has been using",
    "its logs from {name} are complete",
];

/// How a decision is said.
const DECIDED: &[&str] = &[
    "Choices for the {key}: {all}.\nThe {key} becomes {choice}: {reason}.",
    "The {key} can be {all}.\nI set the {key} to {choice} since {reason}.",
    "Nobody is there to ask, and there are {all}.\nDecision on the {key}: {choice}, as {reason}.",
];

/// What has a value that is revised.
const SETTINGS: &[&str] = &[
    "cache stamp",
    "image digest",
    "runner label",
    "retry token",
    "lockfile hash",
    "shard seed",
    "signing slot",
];

/// Jobs whose tests are counted.
const SUITES: &[&str] = &["nightly job", "smoke job", "matrix job", "coverage job"];

/// How a count is printed.
const COUNTED: &[&str] = &[
    "{key}: {value} tests passed",
    "{value} tests passed in {key}, 0 left",
    "summary of {key}: tests {value}",
    "{key} is through, {value} tests ran",
];

/// What is tried in vain.
const METHODS: &[&str] = &[
    "a cold cache",
    "a pinned linker",
    "a serial run",
    "a larger runner",
    "an older image",
    "a second attempt",
    "a clean checkout",
    "a split matrix",
    "a longer time limit",
    "a local mirror",
];

/// How a tool says that it did not work.
const COLLAPSED: &[&str] = &[
    "step failed: {approach}, exit {reason} ({fault})",
    "exit {reason} with {approach}: {fault}",
    "{fault}; {approach} ended in {reason}",
];

/// What the agent concludes.
const GIVEN_UP: &[&str] = &[
    "Not {approach} then: the run ends in {reason} as before.",
    "{reason} with {approach} as well, so that changes nothing.",
    "Giving up {approach}: {reason}.",
];

/// Steps of a plan.
const STEPS: &[&str] = &[
    "build {name} from scratch",
    "run the {noun} tests of {name}",
    "collect the logs of {name}",
    "repeat {name} with the flaky tests left out",
    "compare {name} with the last green run",
    "publish the report of {name}",
    "warm the cache of {name}",
    "tag the image of {name}",
    "bisect {name} between the two builds",
    "clear the workspace of {name}",
];

/// What the agent says when it writes its list.
const LISTING: &[&str] = &[
    "Updating the steps of the pipeline.",
    "That step is through; on to the next.",
    "The steps as they stand.",
];
