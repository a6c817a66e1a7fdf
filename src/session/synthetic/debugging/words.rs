//! The words of the family: what is suspected, counted and repaired.

use crate::session::synthetic::Language;
use crate::session::synthetic::plot::Phrases;
use crate::session::synthetic::story::Words;

/// Of its frame.
pub(super) const WORDS: Words = Words {
    system: SYSTEM,
    openings: OPENINGS,
    turns: TURNS,
    hints: [""; 4],
    remarks: REMARKS,
    reports: REPORTS,
    farewells: FAREWELLS,
    snipping: SNIPPING,
    condensing: CONDENSING,
};

/// Of what happens.
pub(super) const PHRASES: Phrases = Phrases {
    languages: &[Language::English],
    listing: LISTING,
    aspects: ASPECTS,
    designs: DESIGNS,
    grounds: GROUNDS,
    decided: DECIDED,
    settings: SETTINGS,
    revised: REVISED,
    suites: SUITES,
    counted: COUNTED,
    unit: "faults",
    methods: METHODS,
    approach: "{method} in {name}",
    collapsed: COLLAPSED,
    given_up: GIVEN_UP,
    tried: "Was the {approach} suspected, and what spoke against it?",
    steps: STEPS,
};

/// What is decided about a fault.
const ASPECTS: &[&str] = &[
    "repair",
    "rollback scope",
    "alarm level",
    "retry bound",
    "lock order",
    "guard placement",
    "data clean-up",
    "release vehicle",
];

/// What an option is.
const DESIGNS: &[&str] = &["patch", "switch", "fence", "rewrite", "pin", "detour"];

/// Why an option was taken; the name in it is made up for the occasion.
const GROUNDS: &[&str] = &[
    "it leaves the {name} callers as they are",
    "it can be shipped to the {name} hosts tonight",
    "it removes the cause that the {name} trace shows",
    "it was rehearsed by the {name} crew in spring",
    "it costs the {name} workers nothing while idle",
];

/// How a decision is said.
const DECIDED: &[&str] = &[
    "Ways out for the {key}: {all}.\nThe {key} is going to be {choice}, for {reason}.",
    "For the {key} I weighed {all}.\nThe winner for the {key} is {choice}: {reason}.",
    "There were {all} to choose from.\nI settle the {key} with {choice} as {reason}.",
];

/// What has a value that is revised.
const SETTINGS: &[&str] = &[
    "core dump id",
    "bisect bound",
    "trace token",
    "reproduction seed",
    "suspect commit",
    "heap profile",
];

/// How a revised value is said by the user.
const REVISED: &[&str] = &[
    "Correction from our side: the {key} is {value}.",
    "The {key} we should look at is {value}.",
    "{value} came up as {key} in the night run.",
    "Forget the old one, {key} {value}.",
];

/// Runs whose faults are counted.
const SUITES: &[&str] = &[
    "overnight run",
    "stress loop",
    "replayed hour",
    "canary shift",
    "memory check",
];

/// How a count is printed.
const COUNTED: &[&str] = &[
    "{key}: {value} faults",
    "{value} faults seen by the {key}",
    "after the {key}: faults {value}",
    "{key} ended, faults so far {value}",
];

/// What is suspected in vain.
const METHODS: &[&str] = &[
    "stale cache entry",
    "clock skew",
    "lost wake-up",
    "torn write",
    "double release",
    "integer wrap",
    "encoding mix-up",
    "leaked handle",
    "reordered ack",
    "silent truncation",
    "shadowed setting",
    "half-open socket",
];

/// How a tool says that it is not so.
const COLLAPSED: &[&str] = &[
    "check for {approach}: {reason} all the same ({fault})",
    "{fault} again, {reason} without any {approach}",
    "{approach} excluded, the trail ends in {reason}: {fault}",
];

/// What the agent concludes.
const GIVEN_UP: &[&str] = &[
    "It cannot be the {approach}, because {reason} shows up without it.",
    "{reason} clears the {approach}; next suspect.",
    "I was wrong about the {approach}: what we get is {reason}.",
];

/// Steps of a plan.
const STEPS: &[&str] = &[
    "reproduce {name} on one core",
    "record the {name} hand-over",
    "compare {name} with the {noun} path",
    "shrink the {name} input",
    "watch {name} under load",
    "undo the {name} workaround",
    "add an assertion to {name}",
    "repeat {name} with the old build",
    "explain {name} to the {noun} owners",
    "check {name} for the same mistake",
];

/// What the user says to begin.
const OPENINGS: &[&str] = &[
    "We have a fault we call {chapter}, somewhere around {noun}. First make it happen on demand; `{symbol}` is in every stack.",
    "Fault {chapter} is back: {noun} stops answering. Reproduce it before anything else, `{path}` would be my start.",
];

/// What ends each phase and begins the next: reproduce, narrow down, repair, confirm.
const TURNS: [&[&str]; 4] = [
    &[
        "Good, {chapter} can be provoked. Narrow it down now: suspect, check, cross out.",
        "So {chapter} is reproducible. What is behind it? Go through the suspects one by one.",
    ],
    &[
        "I am convinced, that is where {chapter} comes from. Repair it, as small as you can.",
        "Enough suspects for {chapter}. Mend it, starting at `{path}`.",
    ],
    &[
        "The repair of {chapter} is in. Confirm it: runs, counts, and the callers of `{symbol}`.",
        "Leave the code alone now and confirm that {chapter} is gone.",
    ],
    &[
        "{chapter} is closed. There is another one in {noun}; make it happen first.",
        "That was {chapter}. The next fault waits at `{path}`, please reproduce it.",
    ],
];

/// What the user throws in between.
const REMARKS: &[&str] = &[
    "News from the people on call.",
    "I just found this in the chat:",
    "One thing you cannot know.",
    "Hold on a second.",
];

/// How the agent reports at the end of a phase.
const REPORTS: &[&str] = &[
    "Where {chapter} stands: it starts in `{symbol}`, and `{elsewhere}` only passes it on.",
    "{chapter}, so far: `{path}` is involved every time, `{elsewhere}` some of the time.",
    "As of now {chapter} needs `{symbol}` to be called twice; everything else is noise.",
];

/// What the agent says when it marks results as not needed.
const SNIPPING: &[&str] = &[
    "These traces led nowhere; marking them as not needed.",
    "I will not come back to these runs.",
    "Old noise, away with it.",
];

/// What the agent says when it has the conversation summarised, and what must be kept.
const CONDENSING: &[(&str, &str)] = &[
    (
        "The trail got long; I'll condense it.",
        "the suspects that were crossed out and why, and the newest counts",
    ),
    (
        "Let me make room before the next run.",
        "what is known about {chapter}, and which steps are left",
    ),
];

/// What the agent says when it writes its list.
const LISTING: &[&str] = &[
    "Keeping the list of checks honest.",
    "One check further.",
    "Crossing off what is done.",
];

/// What the user says at the end.
const FAREWELLS: &[&str] = &[
    "We hand over to the next shift now. Leave them a few lines, please.",
    "That has to do for today. Note down where you are.",
];

/// The system prompt.
const SYSTEM: &str = "\
You track down faults in a running system, together with the person on call. You work in four \
phases: reproduce, narrow down, repair, confirm. The person on call says when a phase is over.

- A suspect is crossed out with the error that speaks against it, never by feeling.
- Numbers change from run to run. Only the newest one counts.
- Nothing is repaired before it was reproduced.
- Several independent tool calls may go out at once.
- Results that you will not need again can be marked with `snip`; a long conversation can be \
condensed with `compact`.

The repository holds services in Rust (`crates/`), Python (`services/`) and TypeScript (`web/`). \
Paths are relative to its root.";
