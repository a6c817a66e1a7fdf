//! Why a scenario cannot be run.

use crate::session::import::ImportError;
use crate::session::synthetic::SyntheticError;
use crate::settings::{Place, SettingError};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A recording cannot be read.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A price file cannot be read.
    #[error("cannot read prices `{file}`, named by {place}")]
    Prices {
        /// The file.
        file: String,
        /// What named it.
        place: Place,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A file of facts cannot be read.
    #[error("cannot read facts `{file}`, named by {place}")]
    Probes {
        /// The file.
        file: String,
        /// What named it.
        place: Place,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A file of facts says something wrong.
    #[error("`{file}`: line {line}: {problem}")]
    Fact {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A price file says something wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A synthetic session cannot be made.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// There is no such counter.
    #[error("there is no token counter `{name}`")]
    NoCounter {
        /// What was asked for.
        name: String,
    },
    /// Two sessions have the same id.
    #[error("session `{id}` is there twice: name each recording once")]
    SessionTwice {
        /// The id.
        id: String,
    },
}
