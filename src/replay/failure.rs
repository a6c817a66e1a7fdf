//! An error of the machinery as the end of a cell.

use std::error::Error;

use crate::record::End;
use crate::strategy::{StageError, StrategyError};

/// The end of a cell whose strategy cannot go on.
pub(super) fn stopped(call: usize, error: &StrategyError) -> End {
    match error {
        StrategyError::NotMeasurable {
            source: StageError::NotMeasurable { why },
            ..
        } => End::NotMeasurable {
            call,
            why: (*why).to_owned(),
        },
        StrategyError::NotMeasurable { .. } | StrategyError::ImpossiblePatch { .. } => {
            failed(call, error)
        }
    }
}

/// The end of a cell at this call.
pub(super) fn failed(call: usize, error: &dyn Error) -> End {
    End::Failed {
        call,
        error: chain(error),
    }
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
