//! Proctor: a test bench for context compaction.
pub mod units;
pub mod window;
pub mod tokens;
pub mod session;
