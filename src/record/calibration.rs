//! The calibration of a judge against people's labels: the verdict of `proctor judge test`, as runs
//! keep it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::calibration::Calibration;
pub use crate::stats::calibration::CalibrationStatus;

/// The value of `format` in what `proctor judge test -o` writes.
pub const FORMAT: &str = "proctor-calibration";

/// The calibration of one judge, or of a panel, against people's labels.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeCalibration {
    /// The judge; of a panel all of them, with ` + ` between.
    pub judge: String,
    /// The hash of the rubric it was given.
    pub rubric: String,
    /// The hash of everything that it was sent, and of how its reply was parsed.
    pub prompt: String,
    /// Whether its verdicts may be believed.
    pub verdict: CalibrationStatus,
    /// Answers with both a label and a verdict.
    pub labels: usize,
    /// Cohen's κ between people and judge; `None` where it is not defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// Of right answers, the share called right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<f64>,
    /// Of wrong answers, the share called wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specificity: Option<f64>,
}

/// A file of `proctor judge test`, as far as a run keeps it.
#[derive(Deserialize)]
struct CalibrationFile {
    format: String,
    judge: String,
    rubric: String,
    prompt: String,
    all: Calibration,
}

impl JudgeCalibration {
    /// Reads what `proctor judge test -o` wrote; otherwise says what is wrong with it.
    pub fn read(json: &str) -> Result<Self, String> {
        let written: CalibrationFile =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        if written.format != FORMAT {
            return Err(format!("its `format` is not `{FORMAT}`"));
        }
        let all = written.all;
        Ok(Self {
            judge: written.judge,
            rubric: written.rubric,
            prompt: written.prompt,
            verdict: all.fitness,
            labels: all.labels,
            kappa: all.kappa,
            sensitivity: all.sensitivity.map(|rate| rate.value),
            specificity: all.specificity.map(|rate| rate.value),
        })
    }
}

/// Lays later calibrations over earlier ones: of each judge the last counts.
pub fn lay_over(
    known: &mut Vec<JudgeCalibration>,
    later: impl IntoIterator<Item = JudgeCalibration>,
) {
    for one in later {
        known.retain(|other| other.judge != one.judge);
        known.push(one);
    }
}
