//! The validity observer.
