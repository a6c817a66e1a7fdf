//! The family `feature-phases`: features are researched, planned, implemented and verified, and a
//! person says when each phase is over.

use super::code_review::profile::Away;
use super::plot::{Counts, Density, Plot};
use super::story::{Opening, Scenery, Story};

pub(super) mod words;

/// Features are built in phases.
pub(super) static FAMILY: Story = Story {
    name: "feature-phases",
    description: "builds features in phases: research, plan, implementation, verification, each \
                  ended by a marker",
    // Measured over seeds 1 to 8 at 120 rounds with the counter `o200k`.
    tokens_per_round: 1_800,
    phase_ends: [32, 45, 80],
    weights: [
        [48, 16, 0, 8, 0, 0, 8, 0, 14],
        [40, 28, 0, 10, 0, 0, 14, 0, 8],
        [22, 8, 14, 3, 34, 16, 2, 0, 1],
        [14, 8, 38, 22, 6, 2, 10, 0, 0],
    ],
    scenery: Scenery::Repository,
    opening: Opening::Work,
    away: Away::Never,
    recalls: (6, 18),
    constraints: (10, 9),
    plot: Plot {
        seed: "feature-schedule",
        rounds_per_chapter: 64,
        most_chapters: 8,
        density: Density {
            decisions: (10, 3),
            settings: (14, 2),
            suites: (18, 2),
            attempts: (14, 2),
            steps: (5, 9),
            revisions: (2, 4),
            counted: (45, 100),
            counts: Counts::Grow,
            typed: 40,
            standing: 0,
        },
        phrases: words::PHRASES,
    },
    words: words::WORDS,
};
