//! Generated sessions: same seed, same bytes.
