//! The family `teaching`: a learner asks often and briefly; what was told in the first quarter is needed to the end.

use super::code_review::profile::{Away, Profile};

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
};
