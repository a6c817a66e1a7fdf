//! The words of a lesson: what is practised and in which order, what the learner brings along, and
//! what turned out to be a misunderstanding.

use crate::session::synthetic::Language;
use crate::session::synthetic::plot::Phrases;

/// All of it.
pub(super) const PHRASES: Phrases = Phrases {
    languages: &[Language::English],
    aspects: ASPECTS,
    designs: DESIGNS,
    grounds: GROUNDS,
    decided: DECIDED,
    settings: SETTINGS,
    revised: REVISED,
    suites: SUITES,
    counted: COUNTED,
    unit: "exercises",
    methods: METHODS,
    approach: "{method} of {name}",
    collapsed: COLLAPSED,
    given_up: GIVEN_UP,
    tried: "Was the {approach} followed up, and what spoke against it?",
    steps: STEPS,
    listing: LISTING,
};

/// What is decided about a lesson.
const ASPECTS: &[&str] = &[
    "first example",
    "order of topics",
    "practice file",
    "notation",
    "running example",
    "closing exercise",
    "level of detail",
];

/// What an option is.
const DESIGNS: &[&str] = &["walk", "sketch", "drill", "puzzle", "tour", "story"];

/// Why an option was taken; the name in it is made up for the occasion.
const GROUNDS: &[&str] = &[
    "it needs nothing but {name}",
    "it shows {name} before it is explained",
    "you have used {name} already",
    "it ends where {name} begins",
    "mistakes in it show at once in {name}",
];

/// How a decision is said.
const DECIDED: &[&str] = &[
    "We could begin with {all}.\nLet's have {choice} as the {key}, for {reason}.",
    "For the {key} there would be {all}.\nI suggest {choice} for the {key}: {reason}.",
    "{all} would all do.\nAs the {key} we will use {choice}, because {reason}.",
];

/// What has a value that is revised.
const SETTINGS: &[&str] = &[
    "lesson code",
    "course key",
    "sandbox name",
    "practice branch",
    "hand-in folder",
    "notebook id",
];

/// How a revised value is said by the learner.
const REVISED: &[&str] = &[
    "My {key} is {value} now.",
    "I was given {value} as the {key}.",
    "They changed it, the {key} says {value}.",
    "Is it a problem that the {key} became {value}?",
];

/// Sheets whose exercises are counted.
const SUITES: &[&str] = &["warm-up sheet", "quiz", "drill set", "workbook"];

/// How a count is printed.
const COUNTED: &[&str] = &[
    "{key}: {value} exercises solved",
    "{value} exercises solved in {key}",
    "score of {key}, exercises {value}",
];

/// What is followed up in vain.
const METHODS: &[&str] = &[
    "literal reading",
    "top-down tracing",
    "comparison by name",
    "guess from the tests",
    "stepwise rewrite",
    "analogy with the cache",
    "search for the caller",
    "reading from the end",
];

/// How a tool says that it did not work.
const COLLAPSED: &[&str] = &[
    "tried the {approach}: {reason}, {fault}",
    "{reason}: the {approach} gives {fault}",
    "{fault} instead, says {reason} about the {approach}",
];

/// What the agent concludes.
const GIVEN_UP: &[&str] = &[
    "So the {approach} misleads us here, see {reason}.",
    "A good idea, but the {approach} ends at {reason}.",
    "{reason} shows that the {approach} does not explain it.",
];

/// Steps of a plan.
const STEPS: &[&str] = &[
    "read {name} aloud once",
    "draw how {name} calls {noun}",
    "predict what {name} prints",
    "explain {name} in one sentence",
    "change one line of {name}",
    "find where {name} is made",
    "write a test for {name}",
    "compare {name} with its sibling",
    "follow {name} through {noun}",
    "say when {name} may fail",
];

/// What the agent says when it writes its list.
const LISTING: &[&str] = &[
    "Let me note how far we are in the lesson.",
    "One part of the lesson is behind us.",
    "The parts of the lesson, so that you see what comes.",
];
