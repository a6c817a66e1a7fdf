//! The reasons that leave a cell without a record: an answer that was needed did not come.

use std::sync::Arc;

use crate::model::{CallFailure, Model, ModelKind};
use crate::step::CallResult;
use crate::strategy::external::ProgramError;

/// Why a cell says nothing about its strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissedAnswer {
    /// An answer must be a recorded one and is not.
    NotRecorded,
    /// An answer is asked for in a batch, and is not there yet.
    Deferred,
    /// A language model could not be asked, or its provider failed, until nothing was left to try.
    Unreached {
        /// The model.
        model: Arc<str>,
        /// The last failure.
        failure: CallFailure,
    },
    /// The program of the strategy could not be started.
    NotStarted(ProgramError),
}

impl MissedAnswer {
    /// The reason in an answer of this model why no answer came; `None` if one came.
    pub(super) fn of(model: &dyn Model, answer: &CallResult) -> Option<Self> {
        match answer {
            Err(CallFailure::NotRecorded) if model.defers() => Some(Self::Deferred),
            Err(CallFailure::NotRecorded) => Some(Self::NotRecorded),
            Err(failure) if failure.is_of_the_way() && model.kind() == ModelKind::Live => {
                Some(Self::Unreached { model: Arc::from(model.name()), failure: failure.clone() })
            }
            _ => None,
        }
    }

    /// Whether nothing more is asked for this cell: it will be no record, and what else is answered
    /// would be paid for nothing. What is deferred is collected to the end.
    pub(super) fn ends_asking(&self) -> bool {
        *self != Self::Deferred
    }
}
