//! needles.
