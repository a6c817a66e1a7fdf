//! The family `huge-outputs`: results of up to half a megabyte, and five files read in one go.

use super::code_review::profile::{Away, DENSITY, Profile};
use super::code_review::words::PHRASES;
use super::plot::Plot;

/// Work whose results hardly fit.
pub(super) static FAMILY: Profile = Profile {
    name: "huge-outputs",
    description: "results of up to half a megabyte, and five files read in one go",
    tokens_per_round: 9_000,
    weights: [36, 8, 12, 20, 10, 4, 4, 2, 4],
    task: (4, 9),
    interrupts: true,
    said_by: 1_000,
    large_percent: 8,
    at_once_percent: 12,
    away: Away::Never,
    plot: Plot {
        seed: "huge-outputs-schedule",
        rounds_per_chapter: 48,
        most_chapters: 8,
        density: DENSITY,
        phrases: PHRASES,
    },
};
