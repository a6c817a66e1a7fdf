//! The family `debugging`: error trails, hypotheses that do not hold, and numbers that go up and down.

use super::code_review::profile::Away;
use super::plot::{Counts, Density, Plot};
use super::story::{Opening, Scenery, Story};

mod words;

/// Faults are reproduced, narrowed down, repaired and confirmed.
pub(super) static FAMILY: Story = Story {
    name: "debugging",
    description: "faults are reproduced, narrowed down, repaired and confirmed: error trails, \
                  hypotheses that do not hold, numbers that go up and down",
    tokens_per_round: 1_750,
    phase_ends: [22, 62, 84],
    weights: [
        [12, 6, 40, 34, 0, 2, 4, 0, 2],
        [26, 18, 18, 24, 0, 0, 10, 0, 4],
        [18, 8, 20, 6, 38, 8, 2, 0, 0],
        [6, 4, 48, 28, 8, 2, 4, 0, 0],
    ],
    scenery: Scenery::Repository,
    opening: Opening::Work,
    away: Away::Never,
    recalls: (6, 18),
    constraints: (12, 8),
    plot: Plot {
        seed: "debugging-schedule",
        rounds_per_chapter: 40,
        most_chapters: 12,
        density: Density {
            decisions: (20, 2),
            settings: (20, 1),
            suites: (16, 2),
            attempts: (7, 6),
            steps: (5, 9),
            revisions: (3, 5),
            counted: (0, 100),
            counts: Counts::Vary,
            typed: 40,
            standing: 0,
        },
        phrases: words::PHRASES,
    },
    words: words::WORDS,
};
