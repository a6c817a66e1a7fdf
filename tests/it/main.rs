//! The one integration-test binary.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests find the shared data through the environment, say what they skipped, and fail loudly"
)]

mod answer;
mod architecture;
mod autopsy;
mod billed;
mod check_bill;
mod check_presets;
mod ci;
mod cli;
mod closed_loop;
mod compare;
mod context_pressure;
mod conditions;
mod contexts;
mod conversations;
#[cfg(feature = "sqlite")]
mod databases;
mod decided;
mod describe;
mod docs;
#[cfg(all(unix, feature = "http"))]
mod endless;
mod external;
mod facts;
mod faults;
mod goldens;
mod graded;
mod grader_suite;
mod health;
#[cfg(feature = "http")]
mod home;
mod import;
mod inputs;
mod inspect;
mod judging;
mod kept;
mod laws;
mod limits;
#[cfg(feature = "http")]
mod live;
mod manual;
#[cfg(feature = "http")]
mod metered;
mod metrics;
mod mistakes;
#[cfg(feature = "http")]
mod models;
mod noise;
mod odd;
mod one_screen;
mod outputs;
mod own_prompts;
#[cfg(feature = "http")]
mod parts;
mod pipeline;
mod plan;
mod presets;
mod printed;
mod probes;
mod prompt_cache;
#[cfg(feature = "http")]
mod proxy;
#[cfg(feature = "http")]
mod real_server;
mod qualified;
mod recorded;
mod recorded_cache;
mod recordings;
mod replay;
mod repriced;
mod scenarios;
mod self_recorded;
mod stale;
mod shared;
mod stages;
#[cfg(feature = "http")]
mod storm;
mod summarize;
mod support;
mod survivors;
mod synthetic;
mod tasks;
mod tokens;
#[cfg(feature = "http")]
mod trusted;
mod tuning;
mod validity;
mod walk;
mod words;

/// Small files of every format.
const FIXTURES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/crates/proctor-formats/tests/fixtures");
