//! Cells that end without a measurement: an error of the machinery, or something that cannot be measured.

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;

use super::faults::FaultInjector;
use super::{CellName, CellReplay, MissedAnswer, Models, NoClock, PreparedSession, Replay};
use crate::record::End;
use crate::strategy::external::ProgramError;
use crate::strategy::{StageError, StrategyError};

impl CellReplay<'_> {
    /// The end of the cell, whose strategy cannot go on. Where its program was not even started, this is no result.
    pub(super) fn stopped(&mut self, call: usize, error: &StrategyError) -> End {
        match error {
            StrategyError::Stage { source: StageError::NotMeasurable { why }, .. } => {
                let why = (*why).to_owned();
                return End::NotMeasurable { call, why };
            }
            StrategyError::Stage {
                source:
                    StageError::Program(why @ (ProgramError::Start { .. } | ProgramError::NotLocated)),
                ..
            } => {
                let unanswered = &mut self.meter.unanswered;
                unanswered.get_or_insert_with(|| MissedAnswer::NotStarted(why.clone()));
            }
            StrategyError::Stage { .. } | StrategyError::ImpossiblePatch { .. } => {}
        }
        failed(call, error)
    }
}

/// The end of a cell at this call.
pub fn failed(call: usize, error: &dyn Error) -> End {
    End::Failed { call, error: chain(error) }
}

/// An error with its causes, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let causes = successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

impl Replay {
    /// The record of a cell that could not begin.
    pub fn not_begun(
        prepared: &PreparedSession,
        name: CellName,
        models: &Models,
        end: End,
    ) -> Self {
        let injector = FaultInjector::new(Arc::default(), prepared.session.id(), name.repeat);
        let cell = CellReplay::new(prepared, models, &NoClock, Vec::new(), injector);
        cell.finish(name, end)
    }
}
