//! The words of the family: what is decided, counted, tried and planned.

use crate::session::synthetic::Language;
use crate::session::synthetic::plot::Phrases;
use crate::session::synthetic::story::Words;

/// Of its frame.
pub(in crate::session::synthetic) const WORDS: Words = Words {
    system: SYSTEM,
    openings: OPENINGS,
    turns: TURNS,
    hints: HINTS,
    remarks: REMARKS,
    reports: REPORTS,
    farewells: FAREWELLS,
    snipping: SNIPPING,
    condensing: CONDENSING,
};

/// Of what happens.
pub(in crate::session::synthetic) const PHRASES: Phrases = Phrases {
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
    unit: "cases",
    methods: METHODS,
    approach: "{method} for {name}",
    collapsed: COLLAPSED,
    given_up: GIVEN_UP,
    tried: "Was the {approach} tried, and how did it end?",
    steps: STEPS,
};

/// What is decided about a feature.
const ASPECTS: &[&str] = &[
    "wire format",
    "eviction scheme",
    "id scheme",
    "locking model",
    "transport layer",
    "index structure",
    "rollout order",
    "storage engine",
    "paging style",
    "hash function",
    "backoff curve",
    "naming scheme",
];

/// What an option is.
const DESIGNS: &[&str] = &["codec", "layout", "driver", "engine", "adapter", "kernel"];

/// Why an option was taken; the name in it is made up for the occasion.
const GROUNDS: &[&str] = &[
    "it keeps the {name} readers working while both sides migrate",
    "it survives a restart of the {name} host with open transactions",
    "its worst latency on the {name} trace stays flat under load",
    "it needs half the memory on the {name} machines at peak traffic",
    "the {name} team already operates it and carries the pager",
    "its files can be inspected by hand during a {name} outage",
];

/// How a decision is said.
const DECIDED: &[&str] = &[
    "On the {key}: {all} were on the table.\nFor the {key} we go with {choice}: {reason}.",
    "Candidates for the {key} were {all}.\nMy pick for the {key} is {choice}, since {reason}.",
    "I compared {all} for the {key}.\nThe {key} will be {choice}, as {reason}.",
];

/// What has a value that is revised.
const SETTINGS: &[&str] = &[
    "shard map",
    "signing nonce",
    "cutover slot",
    "feature flag",
    "schema tag",
    "canary cohort",
    "bucket prefix",
    "queue name",
];

/// How a revised value is said by the user.
const REVISED: &[&str] = &[
    "The {key} is {value} from here on.",
    "Please take {value} for the {key}.",
    "I have {value} in my notes as the {key}.",
    "Ops set the {key} to {value}.",
];

/// Suites whose cases are counted.
const SUITES: &[&str] = &["replay suite", "fuzz corpus", "golden archive", "soak plan"];

/// How a count is printed.
const COUNTED: &[&str] = &[
    "{key}: {value} cases checked, none skipped",
    "checked {value} cases of the {key}",
    "{key} total {value} cases",
];

/// What is tried in vain.
const METHODS: &[&str] = &[
    "lock-free queue",
    "memory-mapped index",
    "lazy decoder",
    "batched writer",
    "shared arena",
    "double buffer",
    "bloom filter",
    "write-behind cache",
    "zero-copy parser",
    "background sweeper",
];

/// How a tool says that it did not work.
const COLLAPSED: &[&str] = &[
    "{approach} aborted with {reason}: {fault}",
    "{reason} in {approach}: {fault}",
    "{approach} gave {reason} ({fault}) on every run",
];

/// What the agent concludes.
const GIVEN_UP: &[&str] = &[
    "So the {approach} is out: it ends in {reason} whatever I do.",
    "I tried the {approach} and got {reason}, so I am dropping that road.",
    "The {approach} does not work here, {reason} proves it.",
];

/// Steps of a plan.
const STEPS: &[&str] = &[
    "wire {name} into the {noun} router",
    "backfill the {name} column",
    "write the {name} migration guide",
    "gate {name} behind its flag",
    "port {name} callers to the new signature",
    "trace {name} from end to end",
    "bound the {name} retries",
    "document {name} for operators",
    "drop the {name} shim",
    "benchmark {name} against the old route",
];

/// What the user says to begin.
const OPENINGS: &[&str] = &[
    "I'd like to build {chapter} into {noun}. Research first: read what is there around `{symbol}` and tell me what we have to work with.",
    "New feature: {chapter}, on top of {noun}. Begin with research, `{path}` is a good entry, and change nothing for now.",
];

/// What ends each phase and begins the next: research, plan, implementation, verification.
const TURNS: [&[&str]; 4] = [
    &[
        "Good, that is enough research on {chapter}. Draw up a plan now, with what you settled and what you left aside.",
        "Research is over, thanks. Please turn it into a plan for {chapter}, step by step.",
    ],
    &[
        "The plan for {chapter} looks right to me. Go ahead and implement it.",
        "Agreed, that is the plan. Implementation of {chapter} starts now, beginning with `{path}`.",
    ],
    &[
        "Implementation is through, as far as I can see. Verify {chapter} thoroughly: tests, logs, and the call sites of `{symbol}`.",
        "Stop coding here. Please verify {chapter} from the outside, and count what the suites check.",
    ],
    &[
        "{chapter} is good to go, so we are through with that one. The following feature sits in {noun}; research it first.",
        "That settles {chapter}. Another one is waiting: start its research at `{path}`.",
    ],
];

/// What a compaction at the end of each phase is to keep.
const HINTS: [&str; 4] = [
    "Keep all that {chapter} will be built on: what was ruled out and why, and each setting with its exact value.",
    "Keep the plan of {chapter} step by step, and every rule I gave.",
    "Keep which files {chapter} touched, what was tried in vain, and the counts of the suites.",
    "Keep how {chapter} was settled; the details of its logs can go.",
];

/// What the user throws in between.
const REMARKS: &[&str] = &[
    "A note while you are at it.",
    "Something came up on our side.",
    "Before you go on:",
    "This just reached me.",
];

/// How the agent reports at the end of a phase.
const REPORTS: &[&str] = &[
    "{chapter}: this part is complete. `{path}` is the centre of it, and `{symbol}` is the only entry from outside.",
    "Where {chapter} stands: `{elsewhere}` is understood, `{path}` needs the most care.",
    "Summary for {chapter}. Everything goes through `{symbol}`; `{elsewhere}` only forwards.",
];

/// What the agent says when it marks results as not needed.
const SNIPPING: &[&str] = &[
    "These listings served their purpose; I'm marking them as not needed.",
    "I have what I wanted from these results, so they can go.",
    "Clearing away what I will not quote again.",
];

/// What the agent says when it has the conversation summarised, and what must be kept.
const CONDENSING: &[(&str, &str)] = &[
    (
        "A phase is behind us; I'll condense the conversation.",
        "the settled questions, the plan and the newest settings",
    ),
    (
        "Time to make room before I open more files.",
        "what was decided about {chapter}, and which steps are left",
    ),
];

/// What the agent says when it writes its list.
const LISTING: &[&str] = &[
    "Bringing the list of steps up to date.",
    "One step further; noting that down.",
    "The list first, so that nothing gets lost.",
];

/// What the user says at the end.
const FAREWELLS: &[&str] = &[
    "I have to stop here. Close with a short account, please.",
    "Let's leave it at that for today; write me a last summary.",
];

/// The system prompt.
const SYSTEM: &str = "\
You build features in a repository together with its owner, in four phases: research, plan, \
implementation, verification. The owner says when a phase is over.

- Research reads and changes nothing. A plan names the options and settles them.
- Keep the task list in step with the plan. One step at a time.
- Whatever you gave up stays on record with the failure that ended it.
- Several independent tool calls may go out at once.
- Results that you will not need again can be marked with `snip`; a long conversation can be \
condensed with `compact`.

The repository holds services in Rust (`crates/`), Python (`services/`) and TypeScript (`web/`). \
Paths are relative to its root.";
