//! The cells of a journal, put in order.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::{CELLS, Journal, JournalError, lines, write_private};
use crate::record::CellKey;

impl Journal {
    /// Puts the cells into this order, so that the same cells are the same bytes however many workers
    /// there were and however often they were stopped. Those that are not in it follow, as they stand.
    /// Where this fails, all cells are where they were.
    pub fn put_in_order(&mut self, order: &[CellKey]) -> Result<(), JournalError> {
        let ranks: BTreeMap<&CellKey, usize> = order.iter().zip(0..).collect();
        let rank = |key: &CellKey| ranks.get(key).copied().unwrap_or(order.len());
        if self.places.is_sorted_by_key(|(key, _)| rank(key)) {
            return Ok(());
        }
        let mut start = 0;
        let mut moved: Vec<(CellKey, u64, u64)> = Vec::with_capacity(self.places.len());
        for (key, length) in &self.places {
            moved.push((key.clone(), start, *length));
            start += length;
        }
        moved.sort_by_key(|(key, ..)| rank(key));
        let path = self.folder.join(CELLS);
        let cells = &mut self.cells;
        write_private(&path, &mut |out| {
            for (_, start, length) in &moved {
                cells.seek(SeekFrom::Start(*start))?;
                if io::copy(&mut (&mut *cells).take(*length), out)? != *length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })?;
        self.cells = lines::open(&path)?;
        let moved = moved.into_iter();
        self.places = moved.map(|(key, _, length)| (key, length)).collect();
        Ok(())
    }
}
