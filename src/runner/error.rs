//! Why a scenario cannot be run.

use std::path::Path;

use crate::model::cassette::CassetteError;
use crate::session::SessionError;
use crate::session::import::ImportError;
use crate::session::synthetic::SyntheticError;
use crate::settings::{Place, SettingError};

/// A result of planning, or why the scenario cannot be run.
pub(super) type Result<T, E = PlanError> = std::result::Result<T, E>;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A recording cannot be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// No file that was found in folders holds a conversation.
    #[error("no file that was found holds a conversation")]
    NoSession,
    /// There are other files or recipes of sessions than a plan of the run names.
    #[error(
        "the plan is of {planned} files and generated sessions, and here are {here}, or others"
    )]
    OtherSources {
        /// Sources of the plan.
        planned: usize,
        /// Sources that were found.
        here: usize,
    },
    /// A session of the plan is not in the file where it was.
    #[error("session `{0}` of the plan is not there any more")]
    PlannedSession(String),
    /// A plan is of another run.
    #[error("the plan is of run {planned}, and this is run {wanted}")]
    AnotherPlan {
        /// Fingerprint of the plan.
        planned: String,
        /// Fingerprint of what was to be run.
        wanted: String,
    },
    /// A program is not the one that a plan was made with.
    #[error("the program of `{strategy}` is not the one that was planned: {difference}")]
    AnotherProgram {
        /// The strategy.
        strategy: String,
        /// The difference in words.
        difference: String,
    },
    /// The scenario leaves out every session.
    #[error("no session is left: {0}")]
    AllLeftOut(String),
    /// A session without the part that it repeats of another is not a session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A file that the scenario names cannot be read.
    #[error("cannot read {what} `{file}`, named by {place}")]
    Unread {
        /// Its kind: `script`, `prices`.
        what: &'static str,
        /// The file.
        file: String,
        /// The setting that named it.
        place: Place,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A calibration of a judge cannot be used.
    #[error("cannot use calibration `{file}`, named by {place}: {problem}")]
    Calibration {
        /// The file.
        file: String,
        /// The setting that named it.
        place: Place,
        /// The problem.
        problem: String,
    },
    /// A file of facts is wrong in this line.
    #[error("`{0}`: line {1}: {2}")]
    Fact(String, usize, String),
    /// A price file says something wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A synthetic session cannot be made.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// Recorded answers cannot be used.
    #[error(transparent)]
    Cassette(#[from] CassetteError),
    /// The key of a model is not there.
    #[error("model `{model}`, named by {place}, needs a key: `{variable}` is not set")]
    NoKey {
        /// The model.
        model: String,
        /// The variable.
        variable: String,
        /// The setting that named it.
        place: Place,
    },
    /// A live model cannot be used.
    #[cfg(feature = "http")]
    #[error("model `{model}`, named by {place}, cannot be used")]
    Http {
        /// The model.
        model: String,
        /// The setting that named it.
        place: Place,
        /// Why not.
        #[source]
        cause: crate::model::http::HttpError,
    },
    /// A live model is named, and this build has no HTTP.
    #[cfg(not(feature = "http"))]
    #[error("model `{model}`, named by {place}, needs a build with the feature `http`")]
    NoHttp {
        /// The model.
        model: String,
        /// The setting that named it.
        place: Place,
    },
    /// There is no counter of this name.
    #[error("there is no token counter `{0}`")]
    NoCounter(String),
    /// Two sessions have the same id.
    #[error("session `{0}` is there twice: name each recording once")]
    SessionTwice(String),
}

impl PlanError {
    /// How it is mended; errors of other rooms have hints of their own.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoKey { variable, .. } => {
                return Some(format!(
                    "set `{variable}`, or give the model `key`, the name of another variable"
                ));
            }
            Self::OtherSources { .. }
            | Self::PlannedSession(_)
            | Self::AnotherPlan { .. }
            | Self::AnotherProgram { .. } => {
                "`proctor run --dry-run --shards N --out DIR` of the same scenario and options makes it again"
            }
            Self::Unread { .. } => {
                "check the path; it starts at the working directory, or at the folder of the scenario that names it"
            }
            Self::AllLeftOut(_) => {
                "`--window 8000` takes one size for all sessions, and `--set window.floor=0` any share"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// The text of a file that `place` names; `what` says what it holds.
pub(super) fn read_named(what: &'static str, path: &Path, place: &Place) -> Result<String> {
    crate::files::read_to_string(path).map_err(|cause| PlanError::Unread {
        what,
        file: path.display().to_string(),
        place: place.clone(),
        cause,
    })
}
