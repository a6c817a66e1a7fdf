//! The calibrations of a scenario's judges, as `proctor judge test` wrote them.

use crate::record::JudgeCalibration;
use crate::runner::{PlanError, Result};
use crate::scenario::{ModelSetting, ModelsSetting};

/// Reads the files that a scenario names; each must be of one of its judges, or of all of them.
pub(super) fn read(models: &ModelsSetting) -> Result<Vec<JudgeCalibration>> {
    let judges: Vec<&str> = models.judges.iter().map(ModelSetting::name).collect();
    let panel = judges.join(" + ");
    let mut all = Vec::new();
    for (path, place) in &models.calibrations {
        let wrong = |problem: String| PlanError::Calibration {
            file: path.display().to_string(),
            place: place.clone(),
            problem,
        };
        let text = crate::files::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let read = JudgeCalibration::read(&text).map_err(wrong)?;
        if read.judge != panel && !judges.contains(&read.judge.as_str()) {
            let known = if judges.is_empty() { "none" } else { &panel };
            return Err(wrong(format!(
                "it is of judge `{}`, and the judges of this scenario are: {known}",
                read.judge
            )));
        }
        all.push(read);
    }
    Ok(all)
}
