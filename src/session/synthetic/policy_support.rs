//! The family `policy-support`: a help desk; rules, ids, and many short tool calls.

use super::code_review::profile::Away;
use super::plot::{Counts, Density, Plot};
use super::story::{Opening, Scenery, Story};

mod words;

/// One case after another.
pub(super) static FAMILY: Story = Story {
    name: "policy-support",
    description: "a help desk, one case after another: rules of a policy, ids, and many short \
                  tool calls",
    tokens_per_round: 270,
    phase_ends: [26, 50, 82],
    weights: [
        [34, 26, 24, 0, 0, 0, 16, 0, 0],
        [4, 6, 24, 38, 0, 0, 20, 8, 0],
        [2, 4, 24, 8, 26, 14, 4, 10, 8],
        [2, 6, 22, 4, 6, 2, 12, 22, 24],
    ],
    scenery: Scenery::Desk,
    opening: Opening::Work,
    away: Away::Percent(6),
    recalls: (6, 30),
    constraints: (8, 18),
    plot: Plot {
        seed: "support-schedule",
        rounds_per_chapter: 24,
        most_chapters: 30,
        density: Density {
            decisions: (20, 1),
            settings: (20, 1),
            suites: (20, 1),
            attempts: (16, 1),
            steps: (5, 9),
            revisions: (2, 3),
            counted: (0, 100),
            counts: Counts::Vary,
            typed: 40,
            standing: 2,
        },
        phrases: words::PHRASES,
    },
    words: words::WORDS,
};
