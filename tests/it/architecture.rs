//! Tests of architecture.
