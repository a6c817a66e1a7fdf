//! What is added to a run folder after the run: verdicts, and what became known of judges.

use std::fs::OpenOptions;
use std::io::Write as _;

use super::{
    Journal, JournalError, MANIFEST, private, read_lines, read_manifest, to_lines, write_private,
};
use crate::record::DimensionScores;
use crate::record::calibration::{self, JudgeCalibration};
use crate::record::verdicts::GivenVerdict;

/// Name of the file of what became known of judges after the run began.
pub const CALIBRATIONS: &str = "calibrations.jsonl";

/// Name of the file of scores by dimension.
pub const DIMENSIONS: &str = "dimensions.jsonl";

/// Name of the file of verdicts that were given after the run.
pub const VERDICTS: &str = "verdicts.jsonl";

impl Journal {
    /// Adds verdicts that were given after the run.
    pub fn keep_verdicts(&mut self, given: &[GivenVerdict]) -> Result<(), JournalError> {
        self.add(VERDICTS, &to_lines(given)?)
    }

    /// Adds scores by dimension.
    pub fn keep_dimensions(&mut self, given: &[DimensionScores]) -> Result<(), JournalError> {
        self.add(DIMENSIONS, &to_lines(given)?)
    }

    fn add(&mut self, file: &str, lines: &[u8]) -> Result<(), JournalError> {
        let path = self.folder.join(file);
        let at = |source| JournalError::Io {
            path: path.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        let mut file = private(options.create(true).append(true))
            .open(&path)
            .map_err(at)?;
        file.write_all(lines).map_err(at)?;
        file.sync_data().map_err(at)
    }

    /// Takes note of what people's labels say of judges, where the folder does not say it yet.
    pub fn keep_calibrations(&mut self, known: &[JudgeCalibration]) -> Result<(), JournalError> {
        let held = read_manifest(&self.folder.join(MANIFEST))?.calibrations;
        if known.iter().all(|one| held.contains(one)) {
            return Ok(());
        }
        let path = self.folder.join(CALIBRATIONS);
        let mut all: Vec<JudgeCalibration> = read_lines(&path)?;
        calibration::lay_over(&mut all, known.iter().cloned());
        let lines = to_lines(&all)?;
        write_private(&path, &mut |out| out.write_all(&lines))
    }
}
