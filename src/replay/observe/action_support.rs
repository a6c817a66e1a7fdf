//! The action_support observer.
