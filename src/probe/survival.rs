//! survival.
