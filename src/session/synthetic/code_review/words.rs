//! The words of what happens in a repository: what is settled, revised, counted, tried and planned.

use crate::session::synthetic::Language;
use crate::session::synthetic::plot::Phrases;

/// All of it, for the families of this work.
pub(in crate::session::synthetic) const PHRASES: Phrases = Phrases {
    languages: &Language::ALL,
    aspects: ASPECTS,
    designs: DESIGNS,
    grounds: GROUNDS,
    decided: DECIDED,
    settings: SETTINGS,
    revised: REVISED,
    suites: SUITES,
    counted: COUNTED,
    unit: "assertions",
    methods: METHODS,
    approach: "{method} in {name}",
    collapsed: COLLAPSED,
    given_up: GIVEN_UP,
    tried: "Was the {approach} tried, and what came of it?",
    steps: STEPS,
    listing: LISTING,
};

/// What is decided about a piece of work.
const ASPECTS: &[&str] = &[
    "error type",
    "lock scope",
    "cache policy",
    "retry rule",
    "public signature",
    "module boundary",
    "test layout",
    "log format",
    "ownership model",
    "deprecation path",
];

/// What an option is.
const DESIGNS: &[&str] = &["wrapper", "guard", "table", "visitor", "facade", "split"];

/// Why an option was taken; the name in it is made up for the occasion.
const GROUNDS: &[&str] = &[
    "it leaves the {name} callers untouched",
    "it is the only one the {name} tests can reach",
    "it keeps the diff of {name} small enough to review",
    "it removes the second lock that {name} takes",
    "it was agreed in the last {name} review",
    "it can be undone without a release of {name}",
];

/// How a decision is said.
const DECIDED: &[&str] = &[
    "There are {all} for the {key}.\nI settle the {key}: {choice}, because {reason}.",
    "Open question, {key}: {all}.\n{choice} it is for the {key}; {reason}.",
    "Weighing {all}.\nFor the {key} I take {choice}, given that {reason}.",
];

/// What has a value that is revised.
const SETTINGS: &[&str] = &[
    "lint baseline",
    "review label",
    "fuzz seed",
    "merge slot",
    "mirror bucket",
    "licence key",
    "trace filter",
    "toolchain pin",
];

/// How a revised value is said by the user.
const REVISED: &[&str] = &[
    "Please work with {value} as the {key} from now on.",
    "The {key} is {value}, as of a minute ago.",
    "{key}: {value}, the other one is void.",
    "We had to set the {key} to {value}.",
];

/// Suites whose assertions are counted.
const SUITES: &[&str] = &[
    "property suite",
    "doc tests",
    "contract tests",
    "replay set",
];

/// How a count is printed.
const COUNTED: &[&str] = &[
    "{key}: {value} assertions held",
    "{value} assertions held in {key}",
    "finished {key} with {value} assertions",
];

/// What is tried in vain.
const METHODS: &[&str] = &[
    "early return",
    "borrowed cache",
    "single lock",
    "retry loop",
    "interior copy",
    "sorted merge",
    "weak handle",
    "eager flush",
    "shared buffer",
    "type erasure",
];

/// How a tool says that it did not work.
const COLLAPSED: &[&str] = &[
    "{approach}: stopped by {reason}, {fault}",
    "{fault} while trying the {approach} ({reason})",
    "{reason} {approach} {fault}",
];

/// What the agent concludes.
const GIVEN_UP: &[&str] = &[
    "The {approach} is no way out: {reason}.",
    "That rules out the {approach}, it runs into {reason}.",
    "{reason} again, so I leave the {approach} alone.",
];

/// Steps of a plan.
const STEPS: &[&str] = &[
    "give {name} a typed error",
    "move {name} out of the {noun} module",
    "cover the {name} branch with a test",
    "rename {name} throughout",
    "make {name} return early",
    "split the {name} function in two",
    "take the lock of {name} once",
    "drop the unused {name} field",
    "write down who owns {name}",
    "check each {noun} caller of {name}",
];

/// What the agent says when it writes its list.
const LISTING: &[&str] = &[
    "Let me write down what is left.",
    "I'll bring the task list up to date before going on.",
    "Ticking off what is done.",
];
