//! The family `ci-agent`: a long pipeline without a person at it: builds, tests and logs, failures and what is tried next.

use super::code_review::profile::{Away, Profile};

/// An agent in a pipeline runs builds and tests until they pass.
pub(super) static FAMILY: Profile = Profile {
    name: "ci-agent",
    description: "a long pipeline without a person at it: builds, tests and logs, failures and what is tried next",
    tokens_per_round: 1_900,
    weights: [12, 6, 40, 26, 12, 2, 2, 0, 0],
    // The pipeline asks; nobody reads along.
    task: (18, 40),
    interrupts: false,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
};
