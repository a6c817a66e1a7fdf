//! The family `marathon`: feature after feature for days; keys that are revised from beginning to
//! end tell how far a much compacted context has drifted.

use super::code_review::profile::Away;
use super::feature_phases::words::{PHRASES, WORDS};
use super::plot::{Counts, Density, Plot};
use super::story::{Opening, Scenery, Story};

/// Features without end, and nights in between.
pub(super) static FAMILY: Story = Story {
    name: "marathon",
    description: "feature after feature for days, made for 5,000,000 tokens and tens of \
                  compactions: keys that are revised from beginning to end show drift",
    tokens_per_round: 1_900,
    phase_ends: [32, 45, 80],
    weights: [
        [48, 16, 0, 8, 0, 0, 8, 0, 14],
        [40, 28, 0, 10, 0, 0, 14, 0, 8],
        [22, 8, 14, 3, 34, 16, 2, 0, 1],
        [14, 8, 38, 22, 6, 2, 10, 0, 0],
    ],
    scenery: Scenery::Repository,
    opening: Opening::Work,
    // Evenings and lunch breaks.
    away: Away::Percent(12),
    recalls: (24, 60),
    constraints: (60, 24),
    plot: Plot {
        seed: "marathon-schedule",
        rounds_per_chapter: 88,
        most_chapters: 60,
        density: Density {
            decisions: (40, 2),
            settings: (44, 1),
            suites: (44, 2),
            attempts: (44, 2),
            steps: (5, 9),
            revisions: (2, 5),
            counted: (20, 100),
            counts: Counts::Grow,
            typed: 40,
            standing: 12,
        },
        phrases: PHRASES,
    },
    words: WORDS,
};
