//! grade.
