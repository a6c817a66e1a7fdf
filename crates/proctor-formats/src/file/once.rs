//! Records that a file holds twice: two writers of one log, or a copy that was appended to itself.

use crate::prelude::*;

/// How a copy is counted.
pub(crate) const COPIED: &str = "a record stands in the file twice";

/// The records without their copies. Where the same was only said again, the time differs; of records that tell
/// none, a file counts as a copy of itself if all of it is.
pub(crate) fn once<'t>(mut records: Vec<&'t RawValue>, source: &mut Source) -> Vec<&'t RawValue> {
    let half = records.len() / 2;
    let written: Vec<&str> = records.iter().map(|record| record.get()).collect();
    let (first, second) = written.split_at(half);
    // A few words may have been exchanged twice.
    let may_be_copied = half > 3;
    let follows_itself = may_be_copied && first == second;
    let is_pairs = may_be_copied && written.chunks(2).all(|pair| pair == [pair[0]; 2]);
    let mut seen = BTreeSet::new();
    let mut place = 0..;
    records.retain(|record| {
        let at = place.next().unwrap_or_default();
        let is_seen = !seen.insert(record.get());
        let in_copy = follows_itself && at >= half || is_pairs && at % 2 == 1;
        let is_copy = is_seen && (in_copy || tells_time(record));
        if is_copy {
            source.warn(COPIED);
        }
        !is_copy
    });
    records
}

fn tells_time(record: &RawValue) -> bool {
    let record = Object::read(record).unwrap_or_default();
    let mut keys = ["timestamp", "time", "created"].iter();
    keys.any(|key| record.has(key))
}
