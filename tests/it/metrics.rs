//! Tests of metrics.
