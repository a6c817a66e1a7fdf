//! Records that a file holds twice: two writers of one log, or a copy that was appended to itself.

use crate::prelude::*;

/// How a copy is counted.
pub(crate) const COPIED: &str = "a record stands in the file twice";

/// The records without their copies. Where the same was only said again, the time differs; of records that tell
/// none, a file counts as a copy of itself if all of it is.
pub(crate) fn once<'t>(mut records: Vec<&'t RawValue>, source: &mut Source) -> Vec<&'t RawValue> {
    /// So few records may say the same by chance.
    const FEW: usize = 3;
    let half = records.len() / 2;
    let mut written = records.iter().map(|record| record.get());
    let first: Vec<&str> = written.by_ref().take(half).collect();
    if half > FEW && written.eq(first) {
        records.drain(half..).for_each(|_| source.warn(COPIED));
    }
    let mut seen = BTreeSet::new();
    let copies = records.extract_if(.., |record| !seen.insert(record.get()) && tells_time(record));
    copies.for_each(|_| source.warn(COPIED));
    records
}

/// Whether a record says when it was written: one of the same words and time is a copy.
pub(crate) fn tells_time(record: &RawValue) -> bool {
    let record = Object::read(record).unwrap_or_default();
    let mut keys = ["timestamp", "time", "created"].iter();
    keys.any(|key| record.has(key))
}
