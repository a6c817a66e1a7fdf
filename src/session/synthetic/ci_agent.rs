//! The family `ci-agent`: a long pipeline without a person at it: builds, tests and logs, failures and what is tried next.

use super::code_review::profile::{Away, DENSITY, Profile};
use super::plot::{Density, Plot};

mod words;

/// An agent in a pipeline runs builds and tests until they pass.
pub(super) static FAMILY: Profile = Profile {
    name: "ci-agent",
    description: "a long pipeline without a person at it: builds, tests and logs, failures and what is tried next",
    tokens_per_round: 1_750,
    weights: [12, 6, 40, 26, 12, 2, 2, 0, 0],
    // The pipeline asks; nobody reads along.
    task: (18, 40),
    interrupts: false,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
    plot: Plot {
        seed: "ci-agent-schedule",
        rounds_per_chapter: 48,
        most_chapters: 8,
        density: Density {
            suites: (24, 2),
            attempts: (16, 3),
            counted: (0, 100),
            // Nobody is there to type.
            typed: 0,
            ..DENSITY
        },
        phrases: words::PHRASES,
    },
};
