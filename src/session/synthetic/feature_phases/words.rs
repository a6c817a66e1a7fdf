//! The words of the family: what is decided, counted, tried and planned.

/// Syllables of made-up names: six of them are more than 22 bits.
pub(super) const SYLLABLES: &[&str] = &[
    "bal", "cor", "dra", "fen", "gul", "hes", "ivo", "jun", "kar", "lor", "mib", "nax", "osk",
    "pel", "rud", "syl", "tov", "ume", "vir", "yon",
];

/// What is decided about a feature.
pub(super) const ASPECTS: &[&str] = &[
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
pub(super) const DESIGNS: &[&str] = &["codec", "layout", "driver", "engine", "adapter", "kernel"];

/// Why an option was taken; the name in it is made up for the occasion.
pub(super) const GROUNDS: &[&str] = &[
    "it keeps the {name} readers working while both sides migrate",
    "it survives a restart of the {name} host with open transactions",
    "its worst latency on the {name} trace stays flat under load",
    "it needs half the memory on the {name} machines at peak traffic",
    "the {name} team already operates it and carries the pager",
    "its files can be inspected by hand during a {name} outage",
];

/// How a decision is said.
pub(super) const DECIDED: &[&str] = &[
    "On the {key}: {all} were on the table.\nFor the {key} we go with {choice}: {reason}.",
    "Candidates for the {key} were {all}.\nMy pick for the {key} is {choice}, since {reason}.",
    "I compared {all} for the {key}.\nThe {key} will be {choice}, as {reason}.",
];

/// What has a value that is revised.
pub(super) const SETTINGS: &[&str] = &[
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
pub(super) const REVISED: &[&str] = &[
    "The {key} is {value} from here on.",
    "Please take {value} for the {key}.",
    "I have {value} in my notes as the {key}.",
    "Ops set the {key} to {value}.",
];

/// Suites whose cases are counted.
pub(super) const SUITES: &[&str] = &["replay suite", "fuzz corpus", "golden archive", "soak plan"];

/// How a count is printed.
pub(super) const COUNTED: &[&str] = &[
    "{key}: {value} cases checked, none skipped",
    "checked {value} cases of the {key}",
    "{key} total {value} cases",
];

/// What is tried in vain.
pub(super) const METHODS: &[&str] = &[
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
pub(super) const COLLAPSED: &[&str] = &[
    "{approach} aborted with {reason}: {fault}",
    "{reason} in {approach}: {fault}",
    "{approach} gave {reason} ({fault}) on every run",
];

/// What the agent concludes.
pub(super) const GIVEN_UP: &[&str] = &[
    "So the {approach} is out: it ends in {reason} whatever I do.",
    "I tried the {approach} and got {reason}, so I am dropping that road.",
    "The {approach} does not work here, {reason} proves it.",
];

/// Steps of a plan.
pub(super) const STEPS: &[&str] = &[
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
pub(super) const OPENINGS: &[&str] = &[
    "I'd like to build {feature} into {noun}. Research first: read what is there around `{symbol}` and tell me what we have to work with.",
    "New feature: {feature}, on top of {noun}. Begin with research, `{path}` is a good entry, and change nothing for now.",
];

/// What ends each phase and begins the next: research, plan, implementation, verification.
pub(super) const TURNS: [&[&str]; 4] = [
    &[
        "Good, that is enough research on {feature}. Draw up a plan now, with what you settled and what you left aside.",
        "Research is over, thanks. Please turn it into a plan for {feature}, step by step.",
    ],
    &[
        "The plan for {feature} looks right to me. Go ahead and implement it.",
        "Agreed, that is the plan. Implementation of {feature} starts now, beginning with `{path}`.",
    ],
    &[
        "Implementation is through, as far as I can see. Verify {feature} thoroughly: tests, logs, and the call sites of `{symbol}`.",
        "Stop coding here. Please verify {feature} from the outside, and count what the suites check.",
    ],
    &[
        "{feature} is good to go, so we are through with that one. The following feature sits in {noun}; research it first.",
        "That settles {feature}. Another one is waiting: start its research at `{path}`.",
    ],
];

/// What the user throws in between.
pub(super) const REMARKS: &[&str] = &[
    "A note while you are at it.",
    "Something came up on our side.",
    "Before you go on:",
    "This just reached me.",
];

/// How the agent reports at the end of a phase.
pub(super) const REPORTS: &[&str] = &[
    "{feature}: this part is complete. `{path}` is the centre of it, and `{symbol}` is the only entry from outside.",
    "Where {feature} stands: `{elsewhere}` is understood, `{path}` needs the most care.",
    "Summary for {feature}. Everything goes through `{symbol}`; `{elsewhere}` only forwards.",
];

/// What the agent says when it marks results as not needed.
pub(super) const SNIPPING: &[&str] = &[
    "These listings served their purpose; I'm marking them as not needed.",
    "I have what I wanted from these results, so they can go.",
    "Clearing away what I will not quote again.",
];

/// What the agent says when it has the conversation summarised, and what must be kept.
pub(super) const CONDENSING: &[(&str, &str)] = &[
    (
        "A phase is behind us; I'll condense the conversation.",
        "the settled questions, the plan and the newest settings",
    ),
    (
        "Time to make room before I open more files.",
        "what was decided about {feature}, and which steps are left",
    ),
];

/// What the agent says when it writes its list.
pub(super) const LISTING: &[&str] = &[
    "Bringing the list of steps up to date.",
    "One step further; noting that down.",
    "The list first, so that nothing gets lost.",
];

/// What the user says at the end.
pub(super) const FAREWELLS: &[&str] = &[
    "I have to stop here. Close with a short account, please.",
    "Let's leave it at that for today; write me a last summary.",
];

/// The system prompt.
pub(super) const SYSTEM: &str = "\
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
