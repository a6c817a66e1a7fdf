//! Between two passes of a run: deferred requests are sent in batches.

use std::path::Path;

use super::Result;
use crate::runner::{Plan, RunOutcome};
use crate::stop::StopToken;

/// Sends the requests that a pass deferred in batches, and returns whether there are new answers
/// for another pass.
#[cfg(feature = "http")]
pub(super) fn is_answered(
    plan: &Plan,
    outcome: &RunOutcome,
    folder: &Path,
    stop: &StopToken,
) -> Result<bool> {
    use super::{Exit, chain, say, stop_with};
    use crate::record::journal::BATCHES;
    use crate::runner::batch::{BatchFailure, BatchWait};

    let cassette = plan.models().and_then(|models| models.cassette.as_ref());
    let waits = cassette.is_some_and(|cassette| !cassette.deferred().is_empty());
    let over = outcome.missed || outcome.budget.is_some() || !outcome.unreached.is_empty();
    if !waits || over || stop.is_requested() {
        return Ok(false);
    }
    match plan.ask_in_batches(folder, stop, &say) {
        Ok(BatchWait::Answered) => Ok(true),
        Ok(BatchWait::Stopped) => Ok(false),
        Err(failure) => {
            let hint = match &failure {
                BatchFailure::MaybeSent { .. } => format!(
                    "the same command asks again; if the provider has no such batch, delete the last line of \
                     `{}`, and the same command sends it",
                    folder.join(BATCHES).display()
                ),
                BatchFailure::Provider { .. } | BatchFailure::File(_) => {
                    "the same command goes on, and sends no batch twice; without `--batch` requests are \
                     sent one by one"
                        .to_owned()
                }
            };
            stop_with(Exit::Outstanding, chain(&failure.into()), hint)
        }
    }
}

/// Without the network nothing is deferred.
#[cfg(not(feature = "http"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature `http` asking may fail")]
pub(super) fn is_answered(_: &Plan, _: &RunOutcome, _: &Path, _: &StopToken) -> Result<bool> {
    Ok(false)
}
