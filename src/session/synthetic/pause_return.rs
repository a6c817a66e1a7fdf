//! The family `pause-return`: the person goes away for minutes or for hours and comes back: caches expire, idle triggers fire.

use super::code_review::profile::{Away, DENSITY, Profile};
use super::code_review::words::PHRASES;
use super::plot::Plot;

/// Work with long breaks.
pub(super) static FAMILY: Profile = Profile {
    name: "pause-return",
    description: "the person goes away for minutes or for hours and comes back: caches expire, idle triggers fire",
    tokens_per_round: 1_600,
    weights: [42, 9, 9, 9, 12, 8, 6, 2, 4],
    task: (3, 7),
    interrupts: true,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Percent(60),
    plot: Plot {
        seed: "pause-return-schedule",
        rounds_per_chapter: 48,
        most_chapters: 8,
        density: DENSITY,
        phrases: PHRASES,
    },
};
