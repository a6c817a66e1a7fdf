//! What is added to a run folder after the run: verdicts, and what became known of judges.

use std::fs::File;
use std::io::Write as _;

use serde::Serialize;

use super::{Journal, JournalError, MANIFEST, lines, read_manifest, unwritable, write_private};
use crate::record::calibration::{self, JudgeCalibration};
use crate::record::verdicts::GivenVerdict;

/// Name of the file of what became known of judges after the run began.
pub const CALIBRATIONS: &str = "calibrations.jsonl";

/// Name of the file of verdicts that were given after the run.
pub const VERDICTS: &str = "verdicts.jsonl";

impl Journal {
    /// Adds verdicts that were given after the run.
    pub fn keep_verdicts(&mut self, given: &[GivenVerdict]) -> Result<(), JournalError> {
        let synced = self.add(VERDICTS, given)?.sync_data();
        synced.map_err(unwritable(&self.folder.join(VERDICTS)))
    }

    /// Adds lines to a file.
    pub(super) fn add<T: Serialize>(&self, name: &str, added: &[T]) -> Result<File, JournalError> {
        let path = self.folder.join(name);
        let added = lines::of(added, name)?;
        let mut file = lines::open(&path)?;
        file.write_all(&added).map_err(unwritable(&path))?;
        Ok(file)
    }

    /// Takes note of what people's labels say of judges, where the folder does not say it yet.
    pub fn keep_calibrations(&mut self, known: &[JudgeCalibration]) -> Result<(), JournalError> {
        let held = read_manifest(&self.folder.join(MANIFEST))?.calibrations;
        if known.iter().all(|one| held.contains(one)) {
            return Ok(());
        }
        let path = self.folder.join(CALIBRATIONS);
        let mut all: Vec<JudgeCalibration> = lines::read(&path)?;
        calibration::lay_over(&mut all, known.iter().cloned());
        let all = lines::of(&all, CALIBRATIONS)?;
        write_private(&path, &mut |out| out.write_all(&all))
    }
}
