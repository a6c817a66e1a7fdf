//! The stages: one file each, registered in one line.

use super::StageKind;

pub mod clear_results;
pub mod drop_oldest;
pub mod extract;
pub mod summarize;

/// All kinds of stages, in the order of the documentation.
pub static STAGES: &[StageKind] = &[
    clear_results::KIND,
    drop_oldest::KIND,
    extract::KIND,
    summarize::KIND,
];

/// The kind of that name.
pub fn kind(name: &str) -> Option<&'static StageKind> {
    STAGES.iter().find(|kind| kind.name == name)
}
