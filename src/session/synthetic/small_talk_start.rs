//! The family `small-talk-start`: a little script and some talk first, and then features that have
//! nothing to do with it.

use super::code_review::profile::Away;
use super::feature_phases::words::{PHRASES, WORDS};
use super::plot::{Counts, Density, Plot};
use super::story::{Opening, Scenery, Story};

/// What is said first is not needed any more.
pub(super) static FAMILY: Story = Story {
    name: "small-talk-start",
    description: "an early `hello.py` and some talk, then unrelated work (from 40 rounds on): \
                  what is said first may go",
    tokens_per_round: 1_700,
    phase_ends: [32, 45, 80],
    weights: [
        [48, 16, 0, 8, 0, 0, 8, 0, 14],
        [40, 28, 0, 10, 0, 0, 14, 0, 8],
        [22, 8, 14, 3, 34, 16, 2, 0, 1],
        [14, 8, 38, 22, 6, 2, 10, 0, 0],
    ],
    scenery: Scenery::Repository,
    opening: Opening::SmallTalk,
    away: Away::Never,
    recalls: (6, 18),
    constraints: (10, 9),
    plot: Plot {
        seed: "small-talk-schedule",
        rounds_per_chapter: 64,
        most_chapters: 8,
        density: Density {
            decisions: (16, 2),
            settings: (16, 2),
            suites: (20, 2),
            attempts: (16, 2),
            steps: (5, 9),
            revisions: (2, 4),
            counted: (30, 100),
            counts: Counts::Grow,
            typed: 40,
            standing: 0,
        },
        phrases: PHRASES,
    },
    words: WORDS,
};
