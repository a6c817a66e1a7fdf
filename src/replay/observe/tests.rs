//! Observers against a second count, and a walk for their tests.

mod recount;
pub(super) mod walk;
