//! The cells of a journal: read as far as they are whole, and put in order.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::{CELLS, Journal, JournalError, private};
use crate::record::{CellKey, CellRecord};

/// Where the cells are written in order, before they take the place of the others.
const PART: &str = "cells.jsonl.part";

impl Journal {
    /// Puts the cells into this order, so that the same cells are the same bytes however many workers
    /// there were and however often they were stopped. Those that are not in it follow, as they stand.
    /// Where this fails, all cells are where they were.
    pub fn put_in_order(&mut self, order: &[CellKey]) -> Result<(), JournalError> {
        let ranks: BTreeMap<&CellKey, usize> = order
            .iter()
            .enumerate()
            .map(|(at, key)| (key, at))
            .collect();
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
        let part = self.folder.join(PART);
        let sorted = self.copied(&part, &moved).and_then(|sorted| {
            fs::rename(&part, &path)?;
            Ok(sorted)
        });
        self.cells = sorted.map_err(|source| {
            // What is half written helps nobody, least of all on a disk that is full.
            drop(fs::remove_file(&part));
            JournalError::Io { path, source }
        })?;
        self.places = moved
            .into_iter()
            .map(|(key, _, length)| (key, length))
            .collect();
        Ok(())
    }

    /// A file of the cells at these places, to which more may be added.
    fn copied(&mut self, part: &Path, places: &[(CellKey, u64, u64)]) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(true).read(true).write(true);
        let mut sorted = private(options).open(part)?;
        for (_, start, length) in places {
            self.cells.seek(SeekFrom::Start(*start))?;
            let copied = io::copy(&mut (&mut self.cells).take(*length), &mut sorted)?;
            if copied != *length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        sorted.sync_data()?;
        Ok(sorted)
    }
}

/// Reads all whole lines: each record, and how many bytes its line takes.
pub(super) fn read_cells(path: &Path, file: &File) -> Result<Vec<(CellRecord, u64)>, JournalError> {
    let at = |source| JournalError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0)).map_err(at)?;
    let mut records = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(at)?;
        // Without its line feed, the last line was cut off by a crash.
        if length == 0 || line.last() != Some(&b'\n') {
            return Ok(records);
        }
        let record = serde_json::from_slice(&line).map_err(|source| JournalError::BadLine {
            path: path.to_owned(),
            line: records.len() + 1,
            source,
        })?;
        records.push((record, length as u64));
    }
}
