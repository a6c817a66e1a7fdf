//! The write-ahead log beside a database: what a product has written last, and not yet moved.
//!
//! `SQLite` itself would have to write beside the database to read it. So the log's pages are laid
//! over the database's in memory, as far as the log's checksums hold and a transaction ended
//! (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).

use std::ops::Range;

/// Bytes of the log's header, and of the header of each page in it.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// How a log begins whose checksums are of little-endian words; of big-endian ones it is one more.
const MAGIC: u32 = 0x377f_0682;

/// Where a database says that it is read and written with a log.
const USES_LOG: Range<usize> = 18..20;

/// The database as it is with its log: none if no transaction of the log is whole.
pub(super) fn merged(mut database: Vec<u8>, log: &[u8]) -> Option<Vec<u8>> {
    let big = match word(log, 0)? ^ MAGIC {
        0 => false,
        1 => true,
        _ => return None,
    };
    let size = usize::try_from(word(log, 8)?).ok()?;
    if !size.is_power_of_two() || !(512..=65_536).contains(&size) {
        return None;
    }
    let mut sum = checksum((0, 0), log.get(..24)?, big);
    if sum != (word(log, 24)?, word(log, 28)?) {
        return None;
    }
    let salts = log.get(16..24)?;
    // Pages of the transaction that is being read, and all of those that ended.
    let mut open: Vec<(usize, &[u8])> = Vec::new();
    let mut is_whole = false;
    for frame in log.get(HEADER..)?.chunks_exact(FRAME + size) {
        let (head, page) = frame.split_at(FRAME);
        sum = checksum(checksum(sum, &head[..8], big), page, big);
        // A frame of an earlier turn of the log has other salts or another checksum.
        if head[8..16] != *salts || Some(sum) != word(head, 16).zip(word(head, 20)) {
            break;
        }
        open.push((usize::try_from(word(head, 0)?).ok()?.checked_sub(1)?, page));
        let pages = usize::try_from(word(head, 4)?).ok()?;
        if pages > 0 {
            database.resize(pages.checked_mul(size)?.min(database.len() + log.len()), 0);
            for (at, page) in open.drain(..) {
                let start = at.checked_mul(size)?;
                if let Some(place) = database.get_mut(start..start.checked_add(size)?) {
                    place.copy_from_slice(page);
                }
            }
            is_whole = true;
        }
    }
    // In memory there is no log.
    database.get_mut(USES_LOG)?.fill(1);
    is_whole.then_some(database)
}

/// A word of a header; they are big-endian.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The sum goes on over these bytes, two words at a time.
fn checksum(sum: (u32, u32), bytes: &[u8], is_big: bool) -> (u32, u32) {
    bytes.chunks_exact(8).fold(sum, |(one, two), pair| {
        let [first, second] = [&pair[..4], &pair[4..]].map(|word| {
            let word = [word[0], word[1], word[2], word[3]];
            if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        });
        let next = one.wrapping_add(first).wrapping_add(two);
        (next, two.wrapping_add(second).wrapping_add(next))
    })
}
