//! Where a context may be cut in two.

use std::ops::Range;

use crate::context::Entry;
use crate::session::Role;

/// The API rounds of a context: each starts with an assistant message and holds what answers it.
///
/// What stands before the first assistant message is no round; it is returned apart, and may be
/// empty. Cutting between two rounds never separates a tool use from its result.
pub fn rounds(entries: &[Entry]) -> (Range<usize>, Vec<Range<usize>>) {
    let starts: Vec<usize> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.message.role() == Role::Assistant)
        .map(|(at, _)| at)
        .collect();
    let head = 0..starts.first().copied().unwrap_or(entries.len());
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let rounds = starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect();
    (head, rounds)
}
