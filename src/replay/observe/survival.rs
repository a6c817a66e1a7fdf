//! The survival observer.
