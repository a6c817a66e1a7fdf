//! Validity
