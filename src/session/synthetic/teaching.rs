//! The family `teaching`: a learner asks often and briefly; what was told in the first quarter is needed to the end.

use super::code_review::profile::{Away, DENSITY, Profile};
use super::plot::{Density, Plot};

mod words;

/// A person learns a repository with the help of an agent.
pub(super) static FAMILY: Profile = Profile {
    name: "teaching",
    description: "a learner asks often and briefly; what was told in the first quarter is needed to the end",
    tokens_per_round: 1_500,
    weights: [46, 16, 6, 4, 8, 4, 10, 0, 6],
    task: (1, 4),
    interrupts: true,
    said_by: 250,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
    plot: Plot {
        seed: "teaching-schedule",
        // All of it falls into a quarter of the session.
        rounds_per_chapter: 160,
        most_chapters: 4,
        density: Density {
            decisions: (40, 4),
            settings: (40, 4),
            suites: (50, 3),
            attempts: (50, 3),
            steps: (12, 9),
            // A learner says most of it.
            typed: 70,
            ..DENSITY
        },
        phrases: words::PHRASES,
    },
};
