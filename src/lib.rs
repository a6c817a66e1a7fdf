//! Proctor: a test bench for context compaction.
pub mod units;
pub mod settings;
pub mod window;
pub mod tokens;
pub mod session;
pub mod context;
pub mod model;
pub mod step;
pub mod strategy;
