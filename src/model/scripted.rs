//! Scripted
