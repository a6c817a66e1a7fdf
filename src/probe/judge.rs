//! judge.
