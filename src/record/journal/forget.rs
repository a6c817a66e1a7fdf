//! Forgetting finished cells: their numbers no longer hold, and they are computed again.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::{
    CELLS, Journal, JournalError, MANIFEST, TIMINGS, VERDICTS, lines, read_manifest, unreadable,
    write_document, write_private,
};
use crate::files::{self, lines::CheckedLines};
use crate::record::{CellKey, CellRecord, End, Manifest};

/// The name and the end of a cell, read from its line of the journal.
#[derive(Debug, Deserialize)]
pub(super) struct FinishedCell {
    session: String,
    strategy: String,
    repeat: u32,
    end: End,
}

impl FinishedCell {
    pub(super) fn key(&self) -> CellKey {
        CellKey {
            session: self.session.clone(),
            strategy: self.strategy.clone(),
            repeat: self.repeat,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.end, End::Failed { .. })
    }
}

impl Journal {
    /// The finished cells that rest on a missing answer: one under a name, of which records keep the first digits.
    pub fn resting_on(
        &self,
        is_missing: &dyn Fn(&str) -> bool,
    ) -> Result<BTreeSet<CellKey>, JournalError> {
        let path = self.folder.join(CELLS);
        let mut cells = BTreeSet::new();
        let Some(mut finished) = CheckedLines::open(&path).map_err(unreadable(&path))? else {
            return Ok(cells);
        };
        while let Some(cell) = finished.read::<CellRecord>().map_err(lines::refused(&path))? {
            if cell.kept_calls().any(|(name, ..)| is_missing(name)) {
                cells.insert(cell.key());
            }
        }
        Ok(cells)
    }

    /// Forgets cells, with their times and the verdicts that were given after the run: they are outstanding from
    /// now on. The manifest is written anew where it says something else of the strategies' programs.
    pub fn forget(
        &mut self,
        cells: &BTreeSet<CellKey>,
        manifest: &Manifest,
    ) -> Result<(), JournalError> {
        let known = self.strategies == manifest.strategies;
        if cells.is_empty() && known {
            return Ok(());
        }
        self.is_ours()?;
        // If this is interrupted, no verdict or time of a forgotten cell is left, and no cell of a program that the
        // manifest does not know.
        for name in [VERDICTS, TIMINGS, CELLS] {
            drop_lines(&self.folder.join(name), cells)?;
        }
        if !known {
            let mut written = read_manifest(&self.folder)?;
            written.strategies.clone_from(&manifest.strategies);
            write_document(&self.folder, MANIFEST, &written)?;
            self.strategies = written.strategies;
        }
        self.cells = lines::open(&self.folder.join(CELLS))?;
        self.order.retain(|key| !cells.contains(key));
        self.done.retain(|key| !cells.contains(key));
        self.failed.retain(|key| !cells.contains(key));
        Ok(())
    }
}

/// Writes a file of lines without those of these cells. A file that is not there stays so.
fn drop_lines(path: &Path, cells: &BTreeSet<CellKey>) -> Result<(), JournalError> {
    let keys: Vec<CellKey> = lines::read(path)?;
    if !keys.iter().any(|key| cells.contains(key)) {
        return Ok(());
    }
    let text = files::read_to_string(path).map_err(unreadable(path))?;
    write_private(path, &mut |out| {
        let lines = keys.iter().zip(text.split_inclusive('\n'));
        let mut kept = lines.filter(|(key, _)| !cells.contains(key));
        kept.try_for_each(|(_, line)| out.write_all(line.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, manifest};
    use super::*;
    use crate::record::StrategyEntry;
    use crate::record::journal::RecordedRun;

    #[test]
    fn a_forgotten_cell_leaves_no_line_and_may_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut changed = manifest("a");
        changed.strategies.push(StrategyEntry {
            name: "own".to_owned(),
            description: String::new(),
            toml: String::new(),
            is_added: false,
            is_random: false,
            program: None,
            worth: None,
        });
        let mut journal = Journal::open(folder.path(), &changed).unwrap();
        for id in ["one", "two"] {
            journal.append(&cell(id)).unwrap();
            journal.time(TIMINGS, &cell(id)).unwrap();
        }
        changed.strategies[0].is_random = true;
        let forgotten = BTreeSet::from([cell("one").key()]);
        journal.forget(&forgotten, &changed).unwrap();
        assert_eq!(journal.done(), &BTreeSet::from([cell("two").key()]));
        let run = RecordedRun::read(folder.path()).unwrap();
        assert!(run.manifest.strategies[0].is_random);
        assert_eq!(run.cells, [cell("two")]);
        let times: Vec<CellKey> = lines::read(&folder.path().join(TIMINGS)).unwrap();
        assert_eq!(times, [cell("two").key()]);
        journal.append(&cell("one")).unwrap();
        drop(journal);
        let run = RecordedRun::read(folder.path()).unwrap();
        assert_eq!(run.cells, [cell("one"), cell("two")]);
    }
}
