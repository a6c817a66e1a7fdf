//! metric.
